#include "portwave/coupling/network/kick_drift.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <fmt/format.h>

#include "network/kick_drift_island.hpp"
#include "network/separable.hpp"
#include "portwave/coupling/energy/compensated_sum.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {

struct KickDriftMethod::Impl {
  Impl(std::shared_ptr<const SeparableNetwork> shared, double start_s, double step,
       const Splitting& given)
      : owner(std::move(shared)),
        network(*owner),
        scheme(KickDriftScheme::of_order(given.order)),
        step_s(step),
        clock(start_s),
        x(at(network.size()), 0.0) {
    const System& system = network.system();
    for (const Part& part : system.parts()) {
      const int number = static_cast<int>(&part - system.parts().data());
      std::ranges::copy(part.initial_state, x.begin() + network.first_state(number));
      if (!part.initial_state.empty()) block_parts.push_back(number);
    }
    previous_x = x;
    std::vector<std::vector<int>> states(at(system.island_count()));
    for (int i = 0; i < network.size(); ++i) {
      states[at(system.island_of_part(network.part_of(i)))].push_back(i);
    }
    std::vector<int> row_numbers(at(network.size()), 0);
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (states[i].empty()) continue;
      islands.emplace_back(network, states[i], scheme, step, row_numbers);
      part_of_island.push_back(network.part_of(states[i].front()));
    }
    for (std::vector<KickDriftState>* own : {&now, &next, &before}) own->resize(islands.size());
    load();
    energies.resize(islands.size());
    succeeded.resize(islands.size());
    thrown.resize(islands.size());
    CompensatedSum sum;
    std::vector<double> of_island(at(system.island_count()), 0.0);
    for (int block = 0; block < static_cast<int>(block_parts.size()); ++block) {
      sum.add(storage(block));
      of_island[at(system.island_of_part(block_parts[at(block)]))] += storage(block);
    }
    stored = sum;
    for (std::size_t i = 0; i < islands.size(); ++i) {
      now[i].stored_J = of_island[at(system.island_of_part(part_of_island[i]))];
    }
  }

  /// The islands' states from those of the whole.
  void load() {
    for (std::size_t i = 0; i < islands.size(); ++i) {
      for (std::vector<KickDriftState>* own : {&now, &next}) {
        islands[i].load(x.data(), (*own)[i]);
      }
      islands[i].load(previous_x.data(), before[i]);
    }
    is_gathered = true;
  }

  void gather() {
    if (is_gathered) return;
    for (std::size_t i = 0; i < islands.size(); ++i) {
      islands[i].store(now[i], x.data());
      islands[i].store(before[i], previous_x.data());
    }
    is_gathered = true;
  }

  double storage(int block) {
    gather();
    const int part = block_parts[at(block)];
    return network.system().parts()[at(part)].port_hamiltonian()->storage(
        x.data() + network.first_state(part));
  }

  [[noreturn]] void fail(const KickDriftInputFault& fault) const {
    const SeparableInput& input = network.inputs[at(fault.input)];
    if (fault.threw) throw NetworkFault(input.part, -1, StepFault::threw, fault.detail);
    throw NetworkFault(input.part, -1, StepFault::not_finite,
                       fmt::format("input \"{}\" is not finite", network.system()
                                                                     .parts()[at(input.part)]
                                                                     .component->signature()
                                                                     .inputs[at(input.input)]
                                                                     .name));
  }

  /// Inputs are sampled, and steps halved, on the calling thread: callbacks may ask for it.
  NetworkStep step(const ForEach& each) {
    const double start_s = clock.time_s();
    try {
      for (KickDriftIsland& island : islands) {
        if (island.has_inputs()) island.sample(start_s);
      }
      each(static_cast<int>(islands.size()), [&](int i) {
        energies[at(i)] = {};
        thrown[at(i)] = nullptr;
        succeeded[at(i)] = 0;
        try {
          const bool is_met = islands[at(i)].attempt(now[at(i)], next[at(i)], energies[at(i)]);
          succeeded[at(i)] = is_met ? 1 : 0;
        } catch (...) {  // of a gradient; no task may throw
          thrown[at(i)] = std::current_exception();
        }
      });
      for (std::size_t i = 0; i < islands.size(); ++i) {
        if (succeeded[i] != 0) continue;
        if (thrown[i] != nullptr) fail_by(i, thrown[i]);
        halve(i, start_s);
      }
    } catch (const KickDriftInputFault& fault) {
      fail(fault);
    }
    NetworkStep result;
    result.converged = true;
    close(result);
    before.swap(now);
    now.swap(next);
    clock.advance(step_s);
    is_gathered = false;
    return result;
  }

  void halve(std::size_t i, double start_s) {
    bool is_met = false;
    try {
      is_met = islands[i].halve(now[i], next[i], start_s, energies[i]);
    } catch (const KickDriftInputFault&) {
      throw;
    } catch (...) {
      fail_by(i, std::current_exception());
    }
    if (!is_met) refuse(i);
  }

  /// A gradient has thrown in an island.
  [[noreturn]] void fail_by(std::size_t island, const std::exception_ptr& own) const {
    std::string what = "an unknown exception";
    try {
      std::rethrow_exception(own);
    } catch (const std::exception& error) {
      what = error.what();
    } catch (...) {
    }
    throw NetworkFault(islands.size() == 1 ? -1 : part_of_island[island], -1, StepFault::threw,
                       what);
  }

  [[noreturn]] void refuse(std::size_t island) const {
    const KickDriftIsland& own = islands[island];
    throw NetworkFault(
        islands.size() == 1 ? -1 : part_of_island[island], -1, StepFault::too_inaccurate,
        fmt::format("its energy balance is not met even by steps of h/{}: at the start its "
                    "fastest oscillation was {:.3g} rad/s (times h: should be below 2.5) and "
                    "its fastest damping {:.3g} 1/s. Take shorter steps, or wave coupling "
                    "({{\"kind\": \"auto\"}})",
                    1 << KickDriftIsland::kMostHalvings, own.highest_frequency(),
                    own.fastest_damping()));
  }

  void close(NetworkStep& result) {
    CompensatedSum changed, supplied, dissipated, tank;
    double size = 0.0;
    for (std::size_t i = 0; i < islands.size(); ++i) {
      const KickDriftEnergies& own = energies[i];
      changed.add(own.changed_J);
      supplied.add(own.supplied_J);
      dissipated.add(own.dissipated_J);
      tank.add(next[i].tank_J);
      size += own.size_J;
      halvings += own.halvings;
      if (own.halvings > 0) ++halved_steps;
    }
    stored.add(changed.value());
    StepLedger& energy = result.energy;
    energy.stored_J = stored.value();
    energy.changed_J = changed.value();
    energy.supplied_J = supplied.value();
    energy.dissipated_J = dissipated.value();
    energy.tank_J = tank.value();
    energy.mismatch_J = energy.supplied_J - energy.dissipated_J - energy.changed_J;
    energy.max_passivity_residual_J = energy.changed_J - energy.supplied_J;
    result.energy_scale_J = std::abs(energy.stored_J) + size;
  }

  std::shared_ptr<const SeparableNetwork> owner;
  const SeparableNetwork& network;
  KickDriftScheme scheme;
  double step_s;
  StepClock clock;
  std::vector<double> x, previous_x;
  bool is_gathered = true;
  std::vector<int> block_parts;
  std::vector<KickDriftIsland> islands;
  std::vector<int> part_of_island;
  std::vector<KickDriftState> now, next, before;
  std::vector<KickDriftEnergies> energies;
  std::vector<char> succeeded;
  std::vector<std::exception_ptr> thrown;
  CompensatedSum stored;
  std::int64_t halvings = 0, halved_steps = 0;
};

KickDriftMethod::KickDriftMethod(const System& system, double start_s, double step_s,
                                 const Splitting& options)
    : KickDriftMethod(std::make_shared<const SeparableNetwork>(system), start_s, step_s, options) {}
KickDriftMethod::KickDriftMethod(std::shared_ptr<const SeparableNetwork> network, double start_s,
                                 double step_s, const Splitting& options)
    : impl_(std::make_unique<Impl>(std::move(network), start_s, step_s, options)) {}
KickDriftMethod::~KickDriftMethod() = default;

NetworkStep KickDriftMethod::step(const ForEach& each) { return impl_->step(each); }
const StepClock& KickDriftMethod::clock() const { return impl_->clock; }
std::span<const double> KickDriftMethod::state() const {
  impl_->gather();
  return impl_->x;
}
std::span<const double> KickDriftMethod::previous_state() const {
  impl_->gather();
  return impl_->previous_x;
}
double KickDriftMethod::storage(int block) const { return impl_->storage(block); }
int KickDriftMethod::tasks() const { return static_cast<int>(impl_->islands.size()); }

double KickDriftMethod::shared_cost_ns() const {
  double sum = 0.0;
  for (const KickDriftIsland& island : impl_->islands) sum += island.cost_ns();
  return sum;
}

std::size_t KickDriftMethod::bytes() const {
  std::size_t sum = (impl_->x.capacity() + impl_->previous_x.capacity()) * sizeof(double);
  for (std::size_t i = 0; i < impl_->islands.size(); ++i) {
    const KickDriftState& state = impl_->now[i];
    sum += impl_->islands[i].bytes() +
           3 * sizeof(double) *
               (state.u.size() + state.position.size() + state.decaying.size() + state.dead.size());
  }
  return sum;
}

std::string KickDriftMethod::remarks() const {
  const Impl& i = *impl_;
  if (i.halvings == 0) return {};
  return fmt::format(
      "{} step{} of an island {} halved, {} time{} in all: the balance of energy asks "
      "for shorter steps",
      i.halved_steps, i.halved_steps == 1 ? "" : "s", i.halved_steps == 1 ? "was" : "were",
      i.halvings, i.halvings == 1 ? "" : "s");
}

void KickDriftMethod::archive(StateArchive& archive) {
  Impl& i = *impl_;
  if (!archive.reads()) i.gather();
  for (std::vector<double>* own : {&i.x, &i.previous_x}) archive.array(*own);
  for (KickDriftState& state : i.now) archive.values(state.tank_J, state.stored_J);
  archive.values(i.stored, i.clock, i.halvings, i.halved_steps);
  for (const std::vector<double>* own : {&i.x, &i.previous_x}) {
    archive.expect_finite(*own, "a state");
  }
  for (const KickDriftState& state : i.now) {
    archive.expect(std::isfinite(state.tank_J) && std::isfinite(state.stored_J), "a tank");
  }
  archive.expect_counts({i.halvings, i.halved_steps}, "the number of halved steps");
  archive.expect(i.clock.is_sound(), "the time");
  if (archive.reads()) i.load();
  // What is kept shifted has digits that its states do not show.
  for (std::vector<KickDriftState>* own : {&i.now, &i.before}) {
    for (std::size_t k = 0; k < own->size(); ++k) {
      KickDriftState& state = (*own)[k];
      archive.array(state.u);
      archive.array(state.decaying);
      if (archive.reads()) i.islands[k].clear_gaps(state);
      archive.expect_finite(state.u, "a momentum");
      archive.expect_finite(state.decaying, "a damped position");
    }
  }
}

std::string KickDriftMethod::description() const {
  const Impl& i = *impl_;
  int momenta = 0, positions = 0, degree = 0;
  double frequency = 0.0;
  for (const KickDriftIsland& island : i.islands) {
    momenta += island.momenta();
    positions += island.positions();
    degree = std::max(degree, island.degree());
    frequency = std::max(frequency, island.highest_frequency());
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

bool KickDriftMethod::set_step(double step_s) {
  Impl& i = *impl_;
  if (step_s == i.step_s) return true;
  for (KickDriftIsland& island : i.islands) island.set_step(step_s);
  i.step_s = step_s;
  return true;
}

KickDriftMethod::Rates KickDriftMethod::rates() const {
  Rates rates;
  for (const KickDriftIsland& island : impl_->islands) {
    rates.oscillation = std::max(rates.oscillation, impl_->step_s * island.highest_frequency());
    rates.damping = std::max(rates.damping, impl_->step_s * island.fastest_damping());
    rates.shares_dampers = rates.shares_dampers || island.degree() > 0;
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

class KickDriftNetwork final : public NetworkModel {
 public:
  KickDriftNetwork(const System& system, double start_s)
      : shared_(std::make_shared<const SeparableNetwork>(system)),
        network_(*shared_),
        start_s_(start_s) {
    for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
      const auto size = static_cast<int>(system.parts()[at(i)].initial_state.size());
      block_of_part_.push_back(size > 0 ? static_cast<int>(blocks_.size()) : -1);
      if (size > 0) blocks_.push_back({i, network_.first_state(i), size});
    }
    for (Eigen::VectorXd* own : {&z_, &rate_, &middle_, &mean_z_}) own->resize(network_.size());
    for (Eigen::VectorXd* own : {&s_, &mean_s_}) {
      own->resize(static_cast<Eigen::Index>(network_.inputs.size()));
    }
  }

  const System& system() const override { return network_.system(); }
  std::span<const NetworkBlock> blocks() const override { return blocks_; }
  int block_of_part(int part) const override { return block_of_part_[at(part)]; }
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
    const auto first = static_cast<Eigen::Index>(blocks_[at(block)].first);
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
    const NetworkBlock& own = blocks_[at(block)];
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
    for (const NetworkBlock& block : blocks_) {
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
  std::vector<NetworkBlock> blocks_;
  std::vector<int> block_of_part_;
  Eigen::VectorXd z_, s_, rate_, middle_, mean_z_, mean_s_;  // scratch
  End ends_[2];                                              // of the last step
  std::int64_t within_step_ = -1;                            // whose ends they are
};

}  // namespace

std::unique_ptr<NetworkModel> make_kick_drift_model(const System& system, double start_s) {
  return std::make_unique<KickDriftNetwork>(system, start_s);
}

}  // namespace portwave
