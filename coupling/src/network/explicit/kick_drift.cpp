#include "portwave/coupling/network/kick_drift.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <fmt/format.h>

#include "network/explicit/explicit_model.hpp"
#include "network/explicit/explicit_stepper.hpp"
#include "network/explicit/kick_drift_island.hpp"
#include "network/explicit/separable.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {

struct KickDriftMethod::Impl {
  Impl(std::shared_ptr<const SeparableNetwork> shared, double step, int order)
      : owner(std::move(shared)),
        network(*owner),
        scheme(KickDriftScheme::of_order(order)),
        step_s(step) {}

  std::shared_ptr<const SeparableNetwork> owner;
  const SeparableNetwork& network;
  KickDriftScheme scheme;
  double step_s;                                ///< the first size
  std::vector<const KickDriftIsland*> islands;  ///< of the stepper
};

KickDriftMethod::KickDriftMethod(const System& system, double start_s, double step_s,
                                 const Splitting& options)
    : KickDriftMethod(std::make_shared<const SeparableNetwork>(system), start_s, step_s, options) {}
KickDriftMethod::KickDriftMethod(std::shared_ptr<const SeparableNetwork> shared, double start_s,
                                 double step_s, const Splitting& options)
    : impl_(std::make_unique<Impl>(std::move(shared), step_s, order_of(options))) {
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

KickDriftMethod::Rates KickDriftMethod::rates() const {
  Rates rates;
  for (const KickDriftIsland* const island : impl_->islands) {
    rates.oscillation = std::max(rates.oscillation, impl_->step_s * island->highest_frequency());
    rates.damping = std::max(rates.damping, impl_->step_s * island->fastest_damping());
    rates.shares_dampers = rates.shares_dampers || island->degree() > 0;
  }
  return rates;
}

KickDriftFit suits_kick_drift(const System& system, double start_s, double step_s, int order) {
  constexpr double kFastest = 2.5, kOwnDamping = 1.0, kSharedDamping = 0.3;
  try {
    const KickDriftMethod method(system, start_s, step_s,
                                 {.kind = SplittingKind::kick_drift, .order = order});
    const KickDriftMethod::Rates rates = method.rates();
    const double most = rates.shares_dampers ? kSharedDamping : kOwnDamping;
    if (!(rates.oscillation <= kFastest)) {
      return {false, fmt::format("h times the highest frequency is {:.2g}, more than {:g}",
                                 rates.oscillation, kFastest)};
    }
    if (!(rates.damping <= most)) {
      return {false, fmt::format("h times the fastest damping is {:.2g}, more than {:g}",
                                 rates.damping, most)};
    }
    return {true, fmt::format("h times the highest frequency is {:.2g}", rates.oscillation)};
  } catch (const ConfigError& error) {
    const Issue& first = error.issues().front();
    return {false, first.what.substr(0, first.what.find('\n'))};
  }
}

namespace {

class KickDriftNetwork final : public ExplicitModel {
 public:
  KickDriftNetwork(const System& system, double start_s)
      : ExplicitModel(system),
        shared_(std::make_shared<const SeparableNetwork>(system)),
        network_(*shared_),
        start_s_(start_s) {
    for (Eigen::VectorXd* own : {&z_, &rate_, &middle_, &mean_z_}) own->resize(network_.size());
    for (Eigen::VectorXd* own : {&s_, &mean_s_}) {
      own->resize(static_cast<Eigen::Index>(network_.inputs.size()));
    }
  }

  bool has_active() const override { return network_.has_active(); }
  std::unique_ptr<NetworkMethod> make_method(double step_s, const CouplingMethod& method,
                                             bool /*ledger*/) const override {
    return std::make_unique<KickDriftMethod>(shared_, start_s_, step_s, method.splitting());
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

  bool has_states_within() const override { return true; }

  /// By the polynomial of degree 5 through both ends, their rates and the rates of those.
  void state_within(const NetworkMethod& method, int block, double share,
                    std::span<double> state) override {
    if (!knows_ends(method, block)) find_ends(method);
    const double t = share, s = 1.0 - t, h = method.clock().last_step_s();
    const auto first = static_cast<Eigen::Index>(blocks()[at(block)].first);
    for (Eigen::Index i = 0; i < static_cast<Eigen::Index>(state.size()); ++i) {
      const auto half = [&](const End& end, double near, double far, double sign) {
        const double value = end.x[first + i], slope = sign * h * end.rate[first + i],
                     bend = h * h * end.bend[first + i];
        return far * far * far *
               (value * (1.0 + near * (3.0 + 6.0 * near)) +
                near * (slope * (1.0 + 3.0 * near) + near * 0.5 * bend));
      };
      state[static_cast<std::size_t>(i)] = half(ends_[0], t, s, 1.0) + half(ends_[1], s, t, -1.0);
    }
  }

 private:
  /// An end of a step: x, ẋ, ẍ.
  struct End {
    Eigen::VectorXd x, rate, bend;
  };

  /// States may have been restored since.
  bool knows_ends(const NetworkMethod& method, int block) const {
    if (within_step_ != method.clock().steps()) return false;
    const NetworkBlock& own = blocks()[at(block)];
    const auto is_at = [&](const End& end, std::span<const double> x) {
      return std::equal(x.begin() + own.first, x.begin() + own.first + own.size,
                        end.x.data() + own.first);
    };
    return is_at(ends_[0], method.previous_state()) && is_at(ends_[1], method.state());
  }

  /// ẍ from rates at three states along the tangent, into the step.
  void find_ends(const NetworkMethod& method) {
    constexpr double kReach = 1e-3;  // of the step: its square is the error
    const auto n = static_cast<Eigen::Index>(network_.size());
    const double h = method.clock().last_step_s(), start_s = method.clock().time_s() - h;
    const std::span<const double> states[2] = {method.previous_state(), method.state()};
    for (int k = 0; k < 2; ++k) {
      End& end = ends_[k];
      const double inward = k == 0 ? kReach : -kReach, place = k == 0 ? 0.0 : 1.0;
      end.x = Eigen::Map<const Eigen::VectorXd>(states[k].data(), n);
      look_at(end.x, start_s, h, place, true);
      end.rate = rate_;
      end.bend = -3.0 * rate_;
      // The second state has the curvature of the first, so that its own is met to the second order.
      middle_ = end.x + inward * h * end.rate;
      look_at(middle_, start_s, h, place + inward, true);
      const Eigen::VectorXd curved = (0.5 * inward * h) * (rate_ - end.rate);
      middle_ += curved;
      look_at(middle_, start_s, h, place + inward, true);
      end.bend += 4.0 * rate_;
      middle_ = end.x + 2.0 * inward * h * end.rate + 4.0 * curved;
      look_at(middle_, start_s, h, place + 2.0 * inward, true);
      end.bend -= rate_;
      end.bend /= 2.0 * inward * h;
    }
    within_step_ = method.clock().steps();
  }

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

  std::shared_ptr<const SeparableNetwork> shared_;
  const SeparableNetwork& network_;
  double start_s_;
  Eigen::VectorXd z_, s_, rate_, middle_, mean_z_, mean_s_;  // scratch
  End ends_[2];                                              // of the last step
  std::int64_t within_step_ = -1;                            // whose ends they are
};

}  // namespace

std::unique_ptr<NetworkModel> make_kick_drift_model(const System& system, double start_s) {
  return std::make_unique<KickDriftNetwork>(system, start_s);
}

}  // namespace portwave
