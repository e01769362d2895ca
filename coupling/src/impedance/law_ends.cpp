#include "portwave/coupling/impedance/law_ends.hpp"

#include <algorithm>
#include <cmath>
#include <exception>

#include "impedance/fast_ports.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "system/balance_row.hpp"

namespace portwave {
namespace {

/// Values of a law that differ by less than this share of the largest one are where the stages lead.
constexpr double kAlike = 0.25;

/// Whether a port's output follows from the state: y = (G + P)ᵀ∇H alone.
bool gives_by_state(const Subsystem& physics, int own) {
  if (physics.signature().state_size() == 0 || physics.linear_form().E != nullptr) return false;
  if (!physics.constant_structure() || physics.has_port_laws()) return false;
  const Structure& s = physics.structure();
  for (const SparseMatrix* M : {&s.S, &s.N}) {
    for (SparseMatrix::InnerIterator it(*M, own); it; ++it) {
      if (it.value() != 0.0) return false;
    }
  }
  return true;
}

/// (G + P)ᵀ∇H at a port.
double output_of(const Subsystem& physics, int own, std::span<const double> state,
                 std::vector<double>& gradient) {
  gradient.resize(state.size());
  physics.gradient(state.data(), gradient.data());
  double sum = 0.0;
  const Structure& s = physics.structure();
  for (const SparseMatrix* M : {&s.G, &s.P}) {
    for (SparseMatrix::InnerIterator it(*M, own); it; ++it) {
      sum += it.value() * gradient[at(static_cast<int>(it.row()))];
    }
  }
  return sum;
}

}  // namespace

LawEnds::LawEnds(const System& system) : system_(system) {
  for (const Junction& junction : system.junctions()) {
    for (std::size_t k = 0; k < junction.waves.size(); ++k) {
      const Part& part = system.parts()[at(system.scalar_ports()[at(junction.waves[k])].part)];
      const Subsystem* const physics = part.port_hamiltonian();
      if (physics == nullptr || !physics->has_port_laws() || physics->has_vertical_laws()) continue;
      if (auto law = law_at(junction, k)) laws_.push_back(std::move(*law));
    }
  }
}

std::optional<LawEnds::Law> LawEnds::law_at(const Junction& junction, std::size_t place) const {
  // e = w·(a number) and Σ wf = 0: efforts are common, flows add up; else the other way round.
  auto w = balance_row(junction.dirac.F, junction.dirac.E);
  const bool efforts_are_common = w.has_value();
  if (!w) w = balance_row(junction.dirac.E, junction.dirac.F);
  if (!w || junction.waves.size() < 2) return std::nullopt;
  const auto weight = [&](std::size_t k) { return (*w)[static_cast<Eigen::Index>(k)]; };
  const auto takes_effort = [&](std::size_t k) {
    const ScalarPort& own = system_.scalar_ports()[at(junction.waves[k])];
    const Signature& signature = system_.parts()[at(own.part)].component->signature();
    return signature.ports[at(own.port)].causality == Causality::effort_in;
  };
  const auto own_port = [&](std::size_t k) {
    const int port = junction.waves[k];
    return port - system_.first_scalar_port(system_.scalar_ports()[at(port)].part);
  };
  const auto part_of = [&](std::size_t k) {
    return system_.scalar_ports()[at(junction.waves[k])].part;
  };
  if (weight(place) == 0.0) return std::nullopt;
  const bool takes_common = takes_effort(place) == efforts_are_common;
  Law law{part_of(place), own_port(place), junction.waves[place], {}};
  for (std::size_t k = 0; k < junction.waves.size(); ++k) {
    if (k == place || weight(k) == 0.0) continue;
    const bool gives_common = takes_effort(k) != efforts_are_common;
    if (gives_common != takes_common) {
      if (takes_common) continue;  // what is common comes from another
      return std::nullopt;
    }
    const Part& part = system_.parts()[at(part_of(k))];
    const Subsystem* const physics = part.port_hamiltonian();
    if (physics == nullptr || !gives_by_state(*physics, own_port(k))) return std::nullopt;
    const double share = takes_common ? weight(place) / weight(k) : -weight(k) / weight(place);
    double storage = 0.0;
    try {
      storage = fast_part(*physics, part.initial_state.data()).ports[at(own_port(k))].storage;
    } catch (const std::exception&) {  // a callback outside its domain
      return std::nullopt;
    }
    law.givers.push_back({part_of(k), own_port(k), share, storage});
    if (takes_common) break;
  }
  if (law.givers.empty()) return std::nullopt;
  return law;
}

LawEnds::Error LawEnds::error(double step_s, const StageRule& rule,
                              const std::function<double(int scalar_port, int stage)>& input,
                              const std::function<std::span<const double>(int part)>& state) const {
  Error out;
  std::vector<double> gradient;
  const double left_s = (1.0 - rule.c[at(rule.count - 1)]) * step_s;
  for (const Law& law : laws_) {
    const Subsystem& physics = *system_.parts()[at(law.part)].port_hamiltonian();
    double expected = 0.0, largest = 0.0;
    for (int i = 0; i < rule.count; ++i) {
      const double value = physics.port_law(law.own, input(law.port, i)).value;
      expected += rule.lagrange(i, 1.0) * value;
      largest = std::max(largest, std::abs(value));
    }
    double end = 0.0;
    for (const Giver& own : law.givers) {
      const Subsystem& giver = *system_.parts()[at(own.part)].port_hamiltonian();
      end += own.share * output_of(giver, own.own, state(own.part), gradient);
    }
    const double value = physics.port_law(law.own, end).value;
    const double off = std::abs(value - expected);
    if (!(off > kAlike * std::max(largest, std::abs(value))) || !std::isfinite(off)) continue;
    for (const Giver& own : law.givers) {
      const double impulse = own.share * off * left_s;
      const double energy_J = 0.5 * own.storage * impulse * impulse;
      if (energy_J > out.energy_J) out = {own.part, energy_J};
    }
  }
  return out;
}

}  // namespace portwave
