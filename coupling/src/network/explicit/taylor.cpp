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
#include "network/explicit/taylor_polynomial.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {

struct TaylorMethod::Impl {
  Impl(std::shared_ptr<const LinearNetwork> shared, double step, int order)
      : owner(std::move(shared)),
        network(*owner),
        scheme(order),
        step_s(step),
        x(at(network.size())),
        z(network.size()),
        s(static_cast<Eigen::Index>(network.inputs.size())) {}

  double fastest_rate() const {
    double rate = 0.0;
    for (const TaylorIsland* const island : islands) rate = std::max(rate, island->fastest_rate());
    return rate;
  }

  std::shared_ptr<const LinearNetwork> owner;
  const LinearNetwork& network;
  TaylorScheme scheme;
  double step_s;
  std::unique_ptr<TaylorPolynomial> within;  ///< null until somebody asks
  std::vector<double> x;
  Eigen::VectorXd z, s;
  std::vector<const TaylorIsland*> islands;  ///< of the stepper
};

TaylorMethod::TaylorMethod(const System& system, double start_s, double step_s,
                           const Splitting& options)
    : TaylorMethod(std::make_shared<const LinearNetwork>(system), start_s, step_s, options) {}
TaylorMethod::TaylorMethod(std::shared_ptr<const LinearNetwork> shared, double start_s,
                           double step_s, const Splitting& options)
    : impl_(std::make_unique<Impl>(std::move(shared), step_s, order_of(options))) {
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

/// Of the move along w_{M+1}, which is near 1, only w_{M+2} is left.
int TaylorMethod::order() const { return impl_->scheme.order + 1; }

double TaylorMethod::suited_step_s(double tolerance) const {
  return impl_->scheme.longest_angle(tolerance) / impl_->fastest_rate();
}

void TaylorMethod::forget_states_within() {
  if (impl_->within != nullptr) impl_->within->forget();
}

void TaylorMethod::state_within(Step step, int first, double share, std::span<double> state) {
  Impl& i = *impl_;
  if (i.within == nullptr) i.within = std::make_unique<TaylorPolynomial>(i.network, i.scheme);
  if (step == Step::attempted) {
    i.within->pass_through(this->state(), attempted(), clock().time_s(), stepper().step_s());
    i.within->state(first, share, state);
    return i.within->forget();
  }
  if (!i.within->is_known()) {
    const double h = clock().last_step_s();
    i.within->pass_through(previous_state(), this->state(), clock().time_s() - h, h);
  }
  i.within->state(first, share, state);
}

void TaylorMethod::ports_within(double share, std::span<double> effort, std::span<double> flow) {
  Impl& i = *impl_;
  state_within(Step::committed, 0, share, i.x);
  const double h = clock().last_step_s(), start_s = clock().time_s() - h;
  i.z = i.network.hessian *
        Eigen::Map<const Eigen::VectorXd>(i.x.data(), static_cast<Eigen::Index>(i.x.size()));
  i.z += Eigen::Map<const Eigen::VectorXd>(i.network.constant.data(), i.z.size());
  for (std::size_t k = 0; k < i.network.inputs.size(); ++k) {
    i.s[static_cast<Eigen::Index>(k)] =
        i.network.input_in_step(static_cast<int>(k), {start_s + share * h, start_s, h, share, 3});
  }
  i.network.ports(i.z.data(), i.s.data(), effort, flow);
}

std::string TaylorMethod::description() const {
  const Impl& i = *impl_;
  int states = 0;
  for (const TaylorIsland* const island : i.islands) states += island->states();
  const double angle = i.step_s * i.fastest_rate(), longest = i.scheme.longest_angle();
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
      : ExplicitModel(system),
        shared_(std::make_shared<const LinearNetwork>(system)),
        network_(*shared_),
        start_s_(start_s) {}

  bool has_active() const override { return network_.has_active(); }
  std::unique_ptr<NetworkMethod> make_method(double step_s, const CouplingMethod& method,
                                             bool /*ledger*/) const override {
    scheme_ = std::make_unique<TaylorScheme>(order_of(method.splitting()));
    return std::make_unique<TaylorMethod>(shared_, start_s_, step_s, method.splitting());
  }
  std::span<double> settings() override { return network_.settings(); }

  /// Means of the series itself, formed anew from the state before the step.
  void mean_ports(const NetworkMethod& method, std::span<double> effort,
                  std::span<double> flow) override {
    if (series_ == nullptr) {
      series_ = std::make_unique<TaylorSeries>(network_, *scheme_);
      for (Eigen::VectorXd* own : {&x_, &mean_, &z_}) own->resize(network_.size());
      mean_s_.resize(static_cast<Eigen::Index>(network_.inputs.size()));
    }
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
  void add_means(double start_s, double h) {
    series_->begin(x_, start_s, h);
    mean_ += series_->term();
    for (int k = 0; k <= scheme_->order; ++k) {
      if (k < series_->powers().rows()) {
        mean_s_ += series_->powers().row(k).transpose() / (k + 1.0);
      }
      series_->next();
      x_ += series_->term();
      mean_ += series_->term() / (k + 2.0);
    }
  }

  std::shared_ptr<const LinearNetwork> shared_;
  const LinearNetwork& network_;
  double start_s_;
  mutable std::unique_ptr<TaylorScheme> scheme_;  ///< of the method
  std::unique_ptr<TaylorSeries> series_;
  Eigen::VectorXd x_, mean_, z_, mean_s_;
};

}  // namespace

std::unique_ptr<NetworkModel> make_taylor_model(const System& system, double start_s) {
  return std::make_unique<TaylorModel>(system, start_s);
}

}  // namespace portwave
