#include "portwave/coupling/network/kick_drift.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <fmt/format.h>

#include "network/explicit_model.hpp"
#include "network/explicit_stepper.hpp"
#include "network/kick_drift_island.hpp"
#include "network/separable.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {

struct KickDriftMethod::Impl {
  Impl(const System& system, double step, int order)
      : network(system), scheme(KickDriftScheme::of_order(order)), step_s(step) {}

  SeparableNetwork network;
  KickDriftScheme scheme;
  double step_s;
  std::vector<const KickDriftIsland*> islands;  ///< of the stepper
};

KickDriftMethod::KickDriftMethod(const System& system, double start_s, double step_s,
                                 const Splitting& options)
    : impl_(std::make_unique<Impl>(system, step_s, order_of(options))) {
  const SeparableNetwork& network = impl_->network;
  std::vector<int> row_numbers(at(network.size()), 0), numbers;
  std::vector<std::unique_ptr<ExplicitIsland>> islands;
  const std::vector<std::vector<int>> states = ExplicitStepper::states_by_island(network);
  for (int i = 0; i < static_cast<int>(states.size()); ++i) {
    if (states[at(i)].empty()) continue;
    auto island = std::make_unique<KickDriftIsland>(network, states[at(i)], impl_->scheme, step_s,
                                                    row_numbers);
    impl_->islands.push_back(island.get());
    islands.push_back(std::move(island));
    numbers.push_back(i);
  }
  set_stepper(std::make_unique<ExplicitStepper>(network, start_s, step_s, std::move(islands),
                                                std::move(numbers)));
}
KickDriftMethod::~KickDriftMethod() = default;

std::string KickDriftMethod::description() const {
  const Impl& i = *impl_;
  int momenta = 0, positions = 0, degree = 0;
  double frequency = 0.0;
  for (const KickDriftIsland* const island : i.islands) {
    momenta += island->momenta();
    positions += island->positions();
    degree = std::max(degree, island->degree());
    frequency = std::max(frequency, island->highest_frequency());
  }
  const double angle = i.step_s * frequency;
  std::string text = fmt::format(
      "order {}, {} kicks a step of {} momenta and {} positions; h times the highest "
      "frequency is {:.2g}",
      i.scheme.order, i.scheme.kicks.size(), momenta, positions, angle);
  if (angle > 2.5) text += ", which is too long a step: below 2.5 is advised";
  if (degree > 0) text += fmt::format("; shared dampers to degree {}", degree);
  return text;
}

namespace {

class KickDriftNetwork final : public ExplicitModel {
 public:
  KickDriftNetwork(const System& system, double start_s)
      : ExplicitModel(system), network_(system), start_s_(start_s) {
    for (Eigen::VectorXd* own : {&z_, &rate_, &middle_, &mean_z_}) own->resize(network_.size());
    for (Eigen::VectorXd* own : {&s_, &mean_s_}) {
      own->resize(static_cast<Eigen::Index>(network_.inputs.size()));
    }
  }

  bool has_active() const override { return network_.has_active(); }
  std::unique_ptr<NetworkMethod> make_method(double step_s, const CouplingMethod& method,
                                             bool /*ledger*/) const override {
    return std::make_unique<KickDriftMethod>(network_.system(), start_s_, step_s,
                                             method.splitting());
  }

  /// By Simpson's rule, the state in the middle being that of the cubic through both ends and their rates.
  void mean_ports(const NetworkMethod& method, std::span<double> effort,
                  std::span<double> flow) override {
    const auto n = static_cast<Eigen::Index>(network_.size());
    const Eigen::Map<const Eigen::VectorXd> x0(method.previous_state().data(), n),
        x1(method.state().data(), n);
    const double h = method.clock().last_step_s(), start_s = method.clock().time_s() - h;
    look_at(x0, start_s, h, 0.0, true);
    middle_ = 0.5 * (x0 + x1) + 0.125 * h * rate_;
    mean_z_ = z_;
    mean_s_ = s_;
    look_at(x1, start_s, h, 1.0, true);
    middle_ -= 0.125 * h * rate_;
    mean_z_ += z_;
    mean_s_ += s_;
    look_at(middle_, start_s, h, 0.5, false);
    mean_z_ = (mean_z_ + 4.0 * z_) / 6.0;
    mean_s_ = (mean_s_ + 4.0 * s_) / 6.0;
    network_.ports(mean_z_.data(), mean_s_.data(), effort, flow);
  }

 private:
  /// z_ = ∇H(x), s_ = the inputs there, and rate_ = ẋ if asked for.
  template <class State>
  void look_at(const State& x, double start_s, double h, double share, bool with_rate) {
    for (const NetworkBlock& block : blocks()) {
      system().parts()[at(block.part)].port_hamiltonian()->gradient(x.data() + block.first,
                                                                    z_.data() + block.first);
    }
    for (std::size_t k = 0; k < network_.inputs.size(); ++k) {
      s_[static_cast<Eigen::Index>(k)] =
          network_.inputs[k].signal->in_step({start_s + share * h, start_s, h, share, 3});
    }
    if (!with_rate) return;
    rate_.noalias() = network_.A * z_;
    rate_.noalias() += network_.B * s_;
  }

  SeparableNetwork network_;
  double start_s_;
  Eigen::VectorXd z_, s_, rate_, middle_, mean_z_, mean_s_;  // scratch of mean_ports
};

}  // namespace

std::unique_ptr<NetworkModel> make_kick_drift_model(const System& system, double start_s) {
  return std::make_unique<KickDriftNetwork>(system, start_s);
}

}  // namespace portwave
