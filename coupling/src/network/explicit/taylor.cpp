#include "portwave/coupling/network/taylor.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <fmt/format.h>

#include "network/explicit/explicit_model.hpp"
#include "network/explicit/explicit_stepper.hpp"
#include "network/explicit/taylor_island.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {

struct TaylorMethod::Impl {
  Impl(const System& system, double step, int order)
      : network(system), scheme(order), step_s(step) {}

  LinearNetwork network;
  TaylorScheme scheme;
  double step_s;
  std::vector<const TaylorIsland*> islands;  ///< of the stepper
};

TaylorMethod::TaylorMethod(const System& system, double start_s, double step_s,
                           const Splitting& options)
    : impl_(std::make_unique<Impl>(system, step_s, order_of(options))) {
  const LinearNetwork& network = impl_->network;
  std::vector<int> row_numbers(at(network.size()), -1), numbers;
  std::vector<std::unique_ptr<ExplicitIsland>> islands;
  const std::vector<std::vector<int>> states = ExplicitStepper::states_by_island(network);
  for (int i = 0; i < static_cast<int>(states.size()); ++i) {
    if (states[at(i)].empty()) continue;
    auto island =
        std::make_unique<TaylorIsland>(network, states[at(i)], impl_->scheme, step_s, row_numbers);
    impl_->islands.push_back(island.get());
    islands.push_back(std::move(island));
    numbers.push_back(i);
  }
  set_stepper(std::make_unique<ExplicitStepper>(network, start_s, step_s, std::move(islands),
                                                std::move(numbers)));
}
TaylorMethod::~TaylorMethod() = default;

int TaylorMethod::depth_of_last_step() const { return stepper().depth_of_last_step(); }

std::string TaylorMethod::description() const {
  const Impl& i = *impl_;
  int states = 0;
  double rate = 0.0;
  for (const TaylorIsland* const island : i.islands) {
    states += island->states();
    rate = std::max(rate, island->fastest_rate());
  }
  const double angle = i.step_s * rate, longest = i.scheme.longest_angle();
  std::string text =
      fmt::format("order {}, {} products a step of {} states; h times the fastest rate is {:.2g}",
                  i.scheme.order, i.scheme.order + 1, states, angle);
  if (angle > longest) {
    text += fmt::format(", which is a long step: below {:.2g} is advised", longest);
  }
  return text;
}

namespace {

class TaylorModel final : public ExplicitModel {
 public:
  TaylorModel(const System& system, double start_s)
      : ExplicitModel(system), network_(system), start_s_(start_s) {}

  bool has_active() const override { return network_.has_active(); }
  std::unique_ptr<NetworkMethod> make_method(double step_s, const CouplingMethod& method,
                                             bool /*ledger*/) const override {
    scheme_ = std::make_unique<TaylorScheme>(order_of(method.splitting()));
    return std::make_unique<TaylorMethod>(network_.system(), start_s_, step_s, method.splitting());
  }

  /// Means of the series itself, formed anew from the state before the step.
  void mean_ports(const NetworkMethod& method, std::span<double> effort,
                  std::span<double> flow) override {
    if (rate_.rows() == 0) prepare();
    const int depth = static_cast<const TaylorMethod&>(method).depth_of_last_step();
    const double h = std::ldexp(method.clock().last_step_s(), -depth);
    const double begin_s = method.clock().time_s() - method.clock().last_step_s();
    const int pieces = 1 << depth;
    x_ = Eigen::Map<const Eigen::VectorXd>(method.previous_state().data(), x_.size());
    mean_.setZero();
    mean_s_.setZero();
    for (int piece = 0; piece < pieces; ++piece) add_means(begin_s + piece * h, h);
    z_.noalias() = network_.hessian * (mean_ / pieces);
    for (Eigen::Index i = 0; i < z_.size(); ++i) {
      z_[i] += network_.constant[at(static_cast<int>(i))];
    }
    mean_s_ /= pieces;
    network_.ports(z_.data(), mean_s_.data(), effort, flow);
  }

 private:
  /// Dead states, which may be too fast for a series, are left out of it: nobody sees them.
  void prepare() {
    SparseMatrix A = network_.A;
    A.prune([this](Eigen::Index i, Eigen::Index, double) {
      return network_.is_dead[at(static_cast<int>(i))] == 0;
    });
    rate_ = A * network_.hessian;
    steady_ =
        A * Eigen::Map<const Eigen::VectorXd>(network_.constant.data(), network_.hessian.rows());
    for (Eigen::VectorXd* own : {&x_, &w_, &mean_, &z_}) own->resize(network_.size());
    const auto inputs = static_cast<Eigen::Index>(network_.inputs.size());
    mean_s_.resize(inputs);
    powers_.resize(scheme_->inputs.points(), inputs);
  }

  void add_means(double start_s, double h) {
    for (int k = 0; k < static_cast<int>(network_.inputs.size()); ++k) {
      sample_powers(network_, k, scheme_->inputs, start_s, h, powers_.col(k).data());
    }
    w_ = x_;
    mean_ += w_;
    for (int k = 0; k <= scheme_->order; ++k) {
      Eigen::VectorXd next = rate_ * w_;
      if (k == 0) next += steady_;
      if (k < powers_.rows()) {
        next += network_.B * powers_.row(k).transpose();
        mean_s_ += powers_.row(k).transpose() / (k + 1.0);
      }
      w_ = h / (k + 1) * next;
      x_ += w_;
      mean_ += w_ / (k + 2.0);
    }
  }

  LinearNetwork network_;
  double start_s_;
  mutable std::unique_ptr<TaylorScheme> scheme_;  ///< of the method
  SparseMatrix rate_;
  Eigen::VectorXd steady_, x_, w_, mean_, z_, mean_s_;
  Eigen::MatrixXd powers_;
};

}  // namespace

std::unique_ptr<NetworkModel> make_taylor_model(const System& system, double start_s) {
  return std::make_unique<TaylorModel>(system, start_s);
}

}  // namespace portwave
