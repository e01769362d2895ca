#include "portwave/coupling/impedance/one_sided_decays.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <exception>
#include <optional>
#include <ranges>

#include "impedance/fast_ports.hpp"
#include "impedance/response_tools.hpp"
#include "impedance/rigid_ties.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "system/balance_row.hpp"

namespace portwave {
namespace {

/// Motion this much faster than a step is what a decay is judged for.
constexpr double kBeyond = 1e3;
constexpr double kMost = 1e100, kLeast = 1e-100;
/// The stiffness of nonlinear storages is looked at where a decay is within this of the limit with that of the start.
constexpr double kMargin = 1e3;

/// A resistance, or a little less: those that differ by a tenth or less are mostly the same.
double rounded(double resistance) {
  if (!(resistance > 0.0)) return 0.0;
  int exponent = 0;
  const double share = std::frexp(std::min(resistance, kMost), &exponent);
  return std::ldexp(std::floor(16.0 * share) / 16.0, exponent);
}

using Change = OneSidedDecays::Change;

/// With what the resistance at a port changes; none where it stays. `is_exchanged`: the part has other parameters from
/// time to time, so that what it is now says little.
std::optional<Change> change_of(const Subsystem& physics, int own, bool is_exchanged) {
  if (physics.has_vertical_laws()) return std::nullopt;  // their islands are damped anyway
  if (physics.has_port_laws()) {
    if (is_exchanged) return Change::input;
    const double at_rest = physics.port_law(own, 0.0).slope;
    for (const double u : {-1e6, -1.0, -1e-6, 1e-6, 1.0, 1e6}) {
      if (physics.port_law(own, u).slope != at_rest) return Change::input;
    }
    return std::nullopt;
  }
  const bool is_constant = physics.constant_structure();
  if (is_constant ? !is_exchanged : !is_without_energy(physics)) return std::nullopt;
  const Structure& s = physics.structure();
  for (SparseMatrix::InnerIterator it(s.S, own); it; ++it) {
    if (it.row() == own) return is_constant ? Change::parameter : Change::state;
  }
  // A resistor of 0 ohm has no entry yet; a gear never has one.
  const bool may_resist = is_constant && physics.signature().states.empty() &&
                          s.S.nonZeros() == 0 && s.N.nonZeros() == 0;
  return may_resist ? std::optional(Change::parameter) : std::nullopt;
}

/// The largest slope of a law, as far as some inputs show it.
double steepest(const Subsystem& physics, int own) {
  double out = physics.port_law(own, 0.0).slope;
  for (int exponent = -12; exponent <= 9; ++exponent) {
    const double u = std::pow(10.0, exponent);
    for (const double slope : {physics.port_law(own, u).slope, physics.port_law(own, -u).slope}) {
      if (slope > out) out = slope;
    }
  }
  return std::min(out, kMost);
}

}  // namespace

struct OneSidedDecays::Joint {
  struct Port {
    int part;
    int own;
    int resistance;  ///< number; −1: none
    int storage;     ///< number; −1: none
  };
  bool adds_admittances;
  Eigen::MatrixXd E, F;  // of a junction that does not add up immittances; else empty
  std::vector<Port> ports;
  std::vector<FastTerm> terms;    // by port, without what changes
  std::vector<double> judged;     // by port: of the resistances, when `rates` was found
  std::vector<double> rates;      // by port, 1/s
  bool has_nonlinear = false;     // storages
  std::vector<double> at_states;  // by port, 1/s: with what stores as the states are; scratch
  std::vector<FastTerm> now;      // scratch
  std::vector<std::complex<double>> work;
};

OneSidedDecays::~OneSidedDecays() = default;
OneSidedDecays::OneSidedDecays(OneSidedDecays&&) noexcept = default;

OneSidedDecays::OneSidedDecays(const System& system, double step_s, double limit,
                               const std::function<bool(int part)>& may_take,
                               const std::function<bool(int part)>& is_exchanged)
    : system_(system), h_(step_s), limit_(limit), scratch_(std::make_unique<Structure>()) {
  std::vector<int> number(system.scalar_ports().size(), -1);  // of a resistance
  for (int i = 0; i < std::ssize(system.parts()); ++i) {
    const Component& component = *system.parts()[at(i)].component;
    const Subsystem* const physics = component.port_hamiltonian();
    if (physics == nullptr) continue;
    const bool is_other = is_exchanged(i);
    if (!physics->has_port_laws() && physics->constant_structure() && !is_other) continue;
    for (int wave = 0; wave < component.signature().wave_size(); ++wave) {
      const int own = port_of_physics(component, wave);
      const auto with = change_of(*physics, own, is_other);
      if (!with) continue;
      const int port = system.first_scalar_port(i) + wave;
      number[at(port)] = static_cast<int>(resistances_.size());
      const int port_of_part = system.scalar_ports()[at(port)].port;
      resistances_.push_back(
          {i, port, own, component.signature().ports[at(port_of_part)].causality, *with, is_other});
    }
  }
  if (resistances_.empty()) return;
  RigidTies ties(system, may_take);
  std::vector<double> direct(resistances_.size(), 0.0);
  for (const Junction& junction : system.junctions()) {
    const auto known = static_cast<std::ptrdiff_t>(storages_.size());
    if (!add(junction, number, ties) || may_be_fast(joints_.back(), direct)) continue;
    storages_.erase(storages_.begin() + known, storages_.end());
    sets_.pop_back();
    joints_.pop_back();
  }
  for (int j = 0; j < std::ssize(joints_); ++j) {
    for (const Joint::Port& port : joints_[at(j)].ports)
      joints_of_parts_.emplace_back(port.part, j);
  }
  std::ranges::sort(joints_of_parts_);
}

/// Whether there is a joint to be judged at the junction: then it is the last one.
bool OneSidedDecays::add(const Junction& junction, const std::vector<int>& number,
                         RigidTies& ties) {
  const auto changes = [&](int port) { return number[at(port)] >= 0; };
  if (junction.waves.size() < 2 || std::ranges::none_of(junction.waves, changes)) return false;
  // e = w·(a number) and Σ wf = 0: admittances add up; else impedances.
  auto w = balance_row(junction.dirac.F, junction.dirac.E);
  const bool adds_admittances = w.has_value();
  if (!w) w = balance_row(junction.dirac.E, junction.dirac.F);
  constexpr std::size_t kMostPorts = 64;
  if (!w && junction.waves.size() > kMostPorts) return false;
  Joint joint;
  if (!w) {
    joint.E = junction.dirac.E;
    joint.F = junction.dirac.F;
  }
  joint.adds_admittances = adds_admittances;
  std::vector<int> parts;
  for (std::size_t k = 0; k < junction.waves.size(); ++k) {
    const int port = junction.waves[k];
    const ScalarPort& place = system_.scalar_ports()[at(port)];
    const Part& part = system_.parts()[at(place.part)];
    const double weight = w ? (*w)[static_cast<Eigen::Index>(k)] : 1.0;
    const bool is_storage = weight != 0.0 && ties.may_take(place.part);
    joint.ports.push_back(
        {place.part, port_of_physics(*part.component, port - system_.first_scalar_port(place.part)),
         number[at(port)], is_storage ? static_cast<int>(storages_.size()) : -1});
    const Causality causality = part.component->signature().ports[at(place.port)].causality;
    joint.terms.push_back({0.0, 0.0, weight * weight, causality == Causality::effort_in});
    if (is_storage) {
      storages_.push_back({place.part, static_cast<int>(sets_.size())});
      parts.push_back(place.part);
    }
  }
  if (parts.empty()) return false;
  joint.rates.resize(joint.ports.size());
  joint.at_states.resize(joint.ports.size());
  joint.work.resize(joint.ports.size());
  take_physics(joint);
  const auto stores_apart = [&](std::size_t k) {
    return joint.ports[k].storage < 0 && joint.terms[k].storage > 0.0;
  };
  const auto all = std::views::iota(std::size_t{0}, joint.ports.size());
  std::vector<int> set;
  if (std::ranges::none_of(all, stores_apart)) set = ties.with(parts);
  if (set.empty()) {
    storages_.erase(storages_.end() - std::ssize(parts), storages_.end());
    return false;
  }
  sets_.push_back(std::move(set));
  joints_.push_back(std::move(joint));
  return true;
}

/// What does not change at the ports of a joint.
void OneSidedDecays::take_physics(Joint& joint) {
  joint.judged.clear();
  for (std::size_t k = 0; k < joint.ports.size(); ++k) {
    const Joint::Port& port = joint.ports[k];
    const Part& part = system_.parts()[at(port.part)];
    FastTerm& term = joint.terms[k];
    term.direct = term.storage = 0.0;
    const Subsystem* const physics = part.port_hamiltonian();
    if (physics == nullptr) continue;
    try {
      const FastPort fast = fast_part(*physics, part.initial_state.data()).ports[at(port.own)];
      const bool is_whole =
          port.resistance >= 0 && resistances_[at(port.resistance)].with != Change::input;
      term.direct = is_whole ? 0.0 : fast.direct;  // `direct` gives all of it
      term.storage = fast.storage;
    } catch (const std::exception&) {  // a callback outside its domain
    }
    if (port.storage < 0) continue;
    const Structure& s = physics->structure();
    const Eigen::SparseVector<double> column = Eigen::SparseVector<double>(s.G.col(port.own)) +
                                               Eigen::SparseVector<double>(s.P.col(port.own));
    Storage& storage = storages_[at(port.storage)];
    storage.output.clear();
    storage.shown.clear();
    storage.is_linear = physics->is_linear();
    joint.has_nonlinear |= !storage.is_linear;
    const auto take = [&](const SparseMatrix& K, bool is_output) {
      const Eigen::SparseVector<double> c = K * column;
      for (Eigen::SparseVector<double>::InnerIterator it(c); it; ++it) {
        const auto state = static_cast<int>(it.index());
        if (is_output) storage.output.emplace_back(state, it.value());
        if (std::ranges::find(storage.shown, state) == storage.shown.end()) {
          storage.shown.push_back(state);
        }
      }
    };
    if (const auto* const linear = dynamic_cast<const LinearPortHamiltonian*>(physics)) {
      take(linear->Q(), true);
      continue;
    }
    for (Eigen::SparseVector<double>::InnerIterator it(column); it; ++it) {
      storage.output.emplace_back(static_cast<int>(it.index()), it.value());
    }
    try {
      take(hessian_at(*physics, part.initial_state.data()), false);
      take(hessian_at(*physics, physics->typical_state().data()), false);
    } catch (const std::exception&) {  // a callback outside its domain
    }
  }
}

/// Whether some decay exceeds the limit at resistances that the parts may have.
bool OneSidedDecays::may_be_fast(Joint& joint, std::vector<double>& direct) {
  std::vector<double> most(joint.ports.size(), 0.0);
  constexpr int kDecades = 15;
  constexpr double kLarge = 1e12;
  for (std::size_t j = 0; j < joint.ports.size(); ++j) {
    if (joint.ports[j].resistance < 0) continue;
    const Resistance& own = resistances_[at(joint.ports[j].resistance)];
    // What the state or a parameter decides may be anything.
    most[j] = own.with != Change::input || own.is_exchanged
                  ? kLarge
                  : steepest(*system_.parts()[at(own.part)].port_hamiltonian(), own.own);
  }
  for (int k = 0; k <= 2 * kDecades; ++k) {
    const double share = std::pow(10.0, -k);
    for (std::size_t j = 0; j < joint.ports.size(); ++j) {
      const int number = joint.ports[j].resistance;
      if (number >= 0) direct[at(number)] = share * most[j];
    }
    joint.judged.clear();
    judge(joint, direct);
    for (std::size_t j = 0; j < joint.ports.size(); ++j) {
      const int storage = joint.ports[j].storage;
      if (storage < 0) continue;
      const double margin = storages_[at(storage)].is_linear ? 1.0 : kMargin;
      if (h_ * joint.rates[j] > limit_ / margin) return true;
    }
  }
  return false;
}

/// Finds the rates again if a resistance has changed.
void OneSidedDecays::judge(Joint& joint, std::span<const double> direct) {
  const std::size_t count = joint.ports.size();
  bool is_known = !joint.judged.empty();
  joint.judged.resize(count, 0.0);
  for (std::size_t k = 0; k < count; ++k) {
    const int number = joint.ports[k].resistance;
    if (number < 0) continue;
    const double own = rounded(direct[at(number)]);
    is_known = is_known && joint.judged[k] == own;
    joint.judged[k] = own;
  }
  if (is_known) return;
  joint.now = joint.terms;
  for (std::size_t k = 0; k < count; ++k) {
    double& own = joint.now[k].direct;
    own = std::min(own + joint.judged[k], kMost);
    // A law without a slope, as that of friction that slides, gives way to what stores, and at once.
    if (joint.ports[k].resistance >= 0) own = std::max(own, kLeast);
  }
  find_rates(joint, joint.work, joint.rates);
}

void OneSidedDecays::find_rates(const Joint& joint, std::vector<std::complex<double>>& work,
                                std::span<double> rates) const {
  if (joint.E.size() > 0) {
    junction_decays(joint.now, joint.E, joint.F, kBeyond / h_, rates);
  } else {
    joint_decays(joint.now, joint.adds_admittances, kBeyond / h_, work, rates);
  }
}

/// Finds `at_states` of a joint that was judged; false where no decay is near the limit.
bool OneSidedDecays::look_at_states(Joint& joint, const StateOf& state) {
  const double near = limit_ / (kMargin * h_);
  if (std::ranges::none_of(joint.rates, [&](double rate) { return rate > near; })) return false;
  for (std::size_t k = 0; k < joint.ports.size(); ++k) {
    const Joint::Port& port = joint.ports[k];
    if (port.storage < 0 || storages_[at(port.storage)].is_linear) continue;
    const Subsystem& physics = *system_.parts()[at(port.part)].port_hamiltonian();
    try {
      joint.now[k].storage = fast_part(physics, state(port.part)).ports[at(port.own)].storage;
    } catch (const std::exception&) {  // a callback outside its domain: what the start shows stays
      joint.now[k].storage = joint.terms[k].storage;
    }
  }
  find_rates(joint, joint.work, joint.at_states);
  return true;
}

double OneSidedDecays::output(std::size_t storage, const double* state) {
  const Storage& own = storages_[storage];
  double sum = 0.0;
  if (own.is_linear) {
    for (const auto& [i, c] : own.output) sum += c * state[i];
    return sum;
  }
  const Subsystem& physics = *system_.parts()[at(own.part)].port_hamiltonian();
  gradient_.resize(std::max(gradient_.size(), physics.signature().states.size()));
  physics.gradient(state, gradient_.data());
  for (const auto& [i, c] : own.output) sum += c * gradient_[at(i)];
  return sum;
}

double OneSidedDecays::direct(std::size_t i, double input, const double* state) {
  const Resistance& own = resistances_[i];
  const Subsystem& physics = *system_.parts()[at(own.part)].port_hamiltonian();
  if (own.with == Change::input) return physics.port_law(own.own, input).slope;
  if (own.with == Change::parameter) return physics.structure().S.coeff(own.own, own.own);
  *scratch_ = physics.structure();
  physics.structure_at(state, *scratch_);
  return scratch_->S.coeff(own.own, own.own);
}

void OneSidedDecays::find(std::span<const double> direct, std::span<double> h_lambda,
                          const StateOf& state) {
  std::ranges::fill(h_lambda, 0.0);
  for (Joint& joint : joints_) {
    judge(joint, direct);
    const bool moves = joint.has_nonlinear && look_at_states(joint, state);
    const std::vector<double>& rates = moves ? joint.at_states : joint.rates;
    for (std::size_t k = 0; k < joint.ports.size(); ++k) {
      if (const int storage = joint.ports[k].storage; storage >= 0) {
        h_lambda[at(storage)] = h_ * rates[k];
      }
    }
  }
}

void OneSidedDecays::set_step(double step_s) {
  if (step_s == h_) return;
  h_ = step_s;
  for (Joint& joint : joints_) joint.judged.clear();
}

void OneSidedDecays::component_changed(int part) {
  auto it = std::ranges::lower_bound(joints_of_parts_, std::pair(part, 0));
  for (; it != joints_of_parts_.end() && it->first == part; ++it) {
    take_physics(joints_[at(it->second)]);
  }
}

}  // namespace portwave
