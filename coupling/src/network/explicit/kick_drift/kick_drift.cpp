#include "portwave/coupling/network/kick_drift.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <fmt/format.h>

#include "network/explicit/explicit_model.hpp"
#include "network/explicit/explicit_stepper.hpp"
#include "network/explicit/kick_drift/kick_drift_island.hpp"
#include "network/explicit/kick_drift/separable.hpp"
#include "network/explicit/taylor/step_polynomial.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"

namespace portwave {

struct KickDriftMethod::Impl {
  Impl(std::shared_ptr<const SeparableNetwork> shared, double step, int order)
      : owner(std::move(shared)),
        network(*owner),
        scheme(KickDriftScheme::of_order(order)),
        step_s(step),
        within(network),
        x(at(network.size())) {}

  /// Of these, how exactly drifts take shared dampers; 0: none is shared.
  int degree() const {
    int most = 0;
    for (const KickDriftIsland* const island : islands) most = std::max(most, island->model.degree);
    return most;
  }

  std::shared_ptr<const SeparableNetwork> owner;
  const SeparableNetwork& network;
  KickDriftScheme scheme;
  double step_s;                                ///< the first size
  std::vector<const KickDriftIsland*> islands;  ///< of the stepper
  StepPolynomial within;
  std::optional<NetworkTrials::Step> known;  ///< the step that `within` is of
  std::vector<double> x;                     ///< scratch
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
  const int degree = i.degree();
  int momenta = 0, positions = 0;
  double frequency = 0.0;
  for (const KickDriftIsland* const island : i.islands) {
    momenta += island->momenta();
    positions += island->positions();
    frequency = std::max(frequency, island->model.highest_frequency);
  }
  const double angle = i.step_s * frequency;
  std::string text = fmt::format(
      "order {}, {} kicks a step of {} momenta and {} positions; h times the highest "
      "frequency is {:.2g}",
      i.scheme.order, i.scheme.kicks.size(), momenta, positions, angle);
  if (angle > 2.5) text += ", which is too long a step: below 2.5 is advised";
  if (degree > 0) text += fmt::format("; shared dampers to degree {}", degree);
  const auto damping = [](const KickDriftIsland* island) { return island->model.fastest_damping; };
  if (i.islands.empty()) return text;
  const KickDriftIsland& worst = **std::ranges::max_element(i.islands, {}, damping);
  const double damped = i.step_s * worst.model.fastest_damping, most = i.scheme.longest_damping();
  if (damped <= most) return text;
  return text +
         fmt::format(
             "; h times the fastest damping, that of \"{}\", is {:.2g}, and may be {:.2g}: steps "
             "of its island are taken in {} pieces (wave coupling takes whole ones)",
             i.network.system().name_of_part(worst.fastest_part()), damped, most,
             std::exp2(std::ceil(std::log2(damped / most))));
}

KickDriftMethod::Rates KickDriftMethod::rates() const {
  Rates rates;
  for (const KickDriftIsland* const island : impl_->islands) {
    rates.oscillation =
        std::max(rates.oscillation, impl_->step_s * island->model.highest_frequency);
    rates.damping = std::max(rates.damping, impl_->step_s * island->model.fastest_damping);
    rates.shares_dampers = rates.shares_dampers || island->model.degree > 0;
  }
  return rates;
}

int KickDriftMethod::order() const { return impl_->scheme.order; }

/// The error of a step of hω = 1 is about 1e-6 of the motion. Of oscillations alone.
double KickDriftMethod::free_step_s(double tolerance) const {
  constexpr double kLongest = 2.0;
  double frequency = 0.0;
  for (const KickDriftIsland* const island : impl_->islands) {
    frequency = std::max(frequency, island->model.highest_frequency);
  }
  return std::min(kLongest, std::pow(1e6 * tolerance, 1.0 / order())) / frequency;
}

double KickDriftMethod::suited_step_s(double tolerance) const {
  constexpr double kOwnDamping = 1.0, kSharedDamping = 0.3;
  double damping = 0.0;
  for (const KickDriftIsland* const island : impl_->islands) {
    const double most = island->model.degree > 0 ? kSharedDamping : kOwnDamping;
    damping = std::max(damping, island->model.fastest_damping / most);
  }
  return std::min(free_step_s(tolerance), 1.0 / damping);
}

double KickDriftMethod::error_of(double amplitude, double tolerance) const {
  // The error of the halves by the order, if the two are close enough for it. Where drifts take dampers to few terms
  // the leading error may go with the fourth power only.
  constexpr double kTrusted = 5.0;
  const int degree = impl_->degree();
  const int power = degree > 0 && degree < order() ? 4 : order();
  const double share = std::max(1.0 / (std::exp2(power) - 1.0), kTrusted * amplitude);
  // Where inputs make steps far shorter than oscillations ask for, there are as many more of them in each of these, and
  // their errors may all have one sign. Those of shared dampers have, and the order is lower where h times the damping is
  // above 1.
  constexpr double kUsual = 4.0, kMost = 16.0;
  const double h = stepper().step_s(), free = free_step_s(tolerance) / h;
  const double times = std::isfinite(free) ? free : 1.0;
  double more = times / kUsual;
  if (degree > 0) {
    for (const KickDriftIsland* const island : impl_->islands) {
      more = std::max(more, std::max(1.0, times) * h * island->model.fastest_damping);
    }
  }
  more = std::clamp(more, 1.0, kMost);
  return more * std::min(share, 1.0) * amplitude;
}

void KickDriftMethod::forget_states_within() { impl_->known.reset(); }

void KickDriftMethod::state_within(Step step, int first, double share, std::span<double> state) {
  Impl& i = *impl_;
  if (i.known != step) {
    const bool is_attempt = step == Step::attempted;
    const double h = is_attempt ? stepper().step_s() : clock().last_step_s();
    const std::span<const double> start = is_attempt ? this->state() : previous_state();
    const StepPolynomial::Node nodes[] = {{0.0, start},
                                          {0.5, stepper().middle(step)},
                                          {1.0, is_attempt ? attempted() : this->state()}};
    i.within.pass_through(nodes, clock().time_s() - (is_attempt ? 0.0 : h), h);
    i.known = step;
  }
  i.within.state(first, share, state);
}

void KickDriftMethod::ports_within(Step step, double share, std::span<double> effort,
                                   std::span<double> flow) {
  Impl& i = *impl_;
  state_within(step, 0, share, i.x);
  const bool is_attempt = step == Step::attempted;
  const double h = is_attempt ? stepper().step_s() : clock().last_step_s();
  i.within.look_at(i.x.data(), clock().time_s() - (is_attempt ? 0.0 : h), h, share, false);
  i.network.ports(i.within.z().data(), i.within.s().data(), effort, flow);
}

/// By three Gauss points in each half.
bool KickDriftMethod::mean_ports(std::span<double> effort, std::span<double> flow) {
  Impl& i = *impl_;
  const StageRule& gauss = gauss_stages(3);
  const double h = clock().last_step_s();
  Eigen::VectorXd z = Eigen::VectorXd::Zero(i.network.size()),
                  s = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(i.network.inputs.size()));
  for (int half = 0; half < 2; ++half) {
    for (int k = 0; k < gauss.count; ++k) {
      const double share = 0.5 * (half + gauss.c[at(k)]);
      state_within(Step::committed, 0, share, i.x);
      i.within.look_at(i.x.data(), clock().time_s() - h, h, share, false);
      z += 0.5 * gauss.b[at(k)] * i.within.z();
      s += 0.5 * gauss.b[at(k)] * i.within.s();
    }
  }
  i.network.ports(z.data(), s.data(), effort, flow);
  return true;
}

KickDriftFit suits_kick_drift(const System& system, double start_s, double step_s, int order,
                              bool steps_choose) {
  constexpr double kFastest = 2.5, kOwnDamping = 1.0, kSharedDamping = 0.3;
  try {
    const KickDriftMethod method(system, start_s, step_s,
                                 {.kind = SplittingKind::kick_drift, .order = order});
    const KickDriftMethod::Rates rates = method.rates();
    const double most = rates.shares_dampers ? kSharedDamping : kOwnDamping;
    if (steps_choose && rates.damping <= most) {
      return {true, fmt::format("h times the fastest damping is {:.2g} at most", rates.damping)};
    }
    if (steps_choose) {
      const bool is_slow = rates.damping <= most * rates.oscillation;
      return {is_slow,
              fmt::format("the fastest damping is {:.2g} times the highest frequency, {} "
                          "than {:g}",
                          rates.damping / rates.oscillation, is_slow ? "no more" : "more", most)};
    }
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
        start_s_(start_s),
        within_(network_) {}

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
    StepPolynomial& at_state = within_;
    at_state.look_at(x0.data(), start_s, h, 0.0, true);
    middle_ = 0.5 * (x0 + x1) + 0.125 * h * at_state.rate();
    mean_z_ = at_state.z();
    mean_s_ = at_state.s();
    at_state.look_at(x1.data(), start_s, h, 1.0, true);
    middle_ -= 0.125 * h * at_state.rate();
    mean_z_ += at_state.z();
    mean_s_ += at_state.s();
    at_state.look_at(middle_.data(), start_s, h, 0.5, false);
    mean_z_ = (mean_z_ + 4.0 * at_state.z()) / 6.0;
    mean_s_ = (mean_s_ + 4.0 * at_state.s()) / 6.0;
    network_.ports(mean_z_.data(), mean_s_.data(), effort, flow);
  }

  std::span<double> settings() override { return network_.settings(); }
  bool has_states_within() const override { return true; }

  /// By the polynomial of degree 5 through both ends, their rates and the rates of those. States may have been restored
  /// since the last time.
  void state_within(const NetworkMethod& method, int block, double share,
                    std::span<double> state) override {
    const NetworkBlock& own = blocks()[at(block)];
    pass_through_ends(method, own.first, own.size);
    within_.state(own.first, share, state);
  }
  void ports_within(const NetworkMethod& method, double share, std::span<double> effort,
                    std::span<double> flow) override {
    pass_through_ends(method, 0, network_.size());
    x_.resize(at(network_.size()));
    within_.state(0, share, x_);
    const double h = method.clock().last_step_s();
    within_.look_at(x_.data(), method.clock().time_s() - h, h, share, false);
    network_.ports(within_.z().data(), within_.s().data(), effort, flow);
  }

 private:
  void pass_through_ends(const NetworkMethod& method, int first, int size) {
    const std::span<const double> start = method.previous_state(), end = method.state();
    if (within_step_ == method.clock().steps() && within_.ends_at(start, end, first, size)) return;
    const double h = method.clock().last_step_s();
    const StepPolynomial::Node ends[] = {{0.0, start}, {1.0, end}};
    within_.pass_through(ends, method.clock().time_s() - h, h);
    within_step_ = method.clock().steps();
  }

  std::shared_ptr<const SeparableNetwork> shared_;
  const SeparableNetwork& network_;
  double start_s_;
  Eigen::VectorXd middle_, mean_z_, mean_s_;  // scratch
  std::vector<double> x_;
  StepPolynomial within_;
  std::int64_t within_step_ = -1;  // that it is of
};

}  // namespace

std::unique_ptr<NetworkModel> make_kick_drift_model(const System& system, double start_s) {
  return std::make_unique<KickDriftNetwork>(system, start_s);
}

}  // namespace portwave
