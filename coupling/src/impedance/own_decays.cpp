#include "impedance/own_decays.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "impedance/fast_ports.hpp"
#include "impedance/response_tools.hpp"
#include "portwave/coupling/system/derived_systems.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"
#include "system/balance_row.hpp"

namespace portwave {
namespace {

Causality causality_of(const System& system, int port) {
  const ScalarPort& own = system.scalar_ports()[at(port)];
  return system.parts()[at(own.part)].component->signature().ports[at(own.port)].causality;
}

/// D > 0 of a port with y = Du whose part has no states and, its idle ports aside, no other ports; else 0.
double lone_resistance(const System& system, const std::vector<bool>& idle, int port) {
  const int number = system.scalar_ports()[at(port)].part;
  const Part& part = system.parts()[at(number)];
  const Subsystem* const physics = part.port_hamiltonian();
  if (physics == nullptr || part.component->signature().state_size() > 0 ||
      physics->has_port_laws() || physics->linear_form().E != nullptr) {
    return 0.0;
  }
  const int first = system.first_scalar_port(number), own = port - first;
  for (int k = 0; k < part.component->signature().wave_size(); ++k) {
    if (k != own && !idle[at(first + k)]) return 0.0;
  }
  const double D = physics->structure().S.coeff(own, own);
  return std::isfinite(D) ? std::max(D, 0.0) : 0.0;
}

/// s of fast_part, 0 where that cannot be found.
double storage_at(const System& system, int port) {
  const int number = system.scalar_ports()[at(port)].part;
  const Part& part = system.parts()[at(number)];
  const Subsystem* const physics = part.port_hamiltonian();
  if (physics == nullptr) return 0.0;
  try {
    const FastPart fast = fast_part(*physics, part.initial_state.data());
    return fast.ports[at(port - system.first_scalar_port(number))].storage;
  } catch (const std::exception&) {  // a callback outside its domain
    return 0.0;
  }
}

/// By scalar port: the resistance that its output alone sees across its joint; in a junction that does not add up
/// immittances, what it meets in motion of angular frequency 1/h, which small storages beyond it do not hinder and those
/// of its own size do.
std::vector<double> resistances_at_ports(const System& system, double step_s,
                                         std::span<const char> exchanged, bool of_junctions) {
  std::vector<double> out(system.scalar_ports().size(), 0.0);
  const std::vector<bool> idle = idle_ports(system);
  const auto resistance = [&](int port) {
    const int part = system.scalar_ports()[at(port)].part;
    const bool is_exchanged = !exchanged.empty() && exchanged[at(part)] != 0;
    return is_exchanged ? 0.0 : lone_resistance(system, idle, port);
  };
  for (const Junction& junction : system.junctions()) {
    if (junction.waves.size() < 2) continue;
    // e = w·(a number) and Σ wf = 0: admittances beside an effort; else impedances beside a flow.
    bool shares_effort = true;
    std::optional<Eigen::VectorXd> w = balance_row(junction.dirac.F, junction.dirac.E);
    if (!w) {
      w = balance_row(junction.dirac.E, junction.dirac.F);
      shares_effort = false;
    }
    if (!w) {
      if (!of_junctions || junction.waves.size() > kMostJunctionPorts) continue;
      std::vector<FastTerm> terms;
      for (const int port : junction.waves) {
        terms.push_back({resistance(port), storage_at(system, port), 1.0,
                         causality_of(system, port) == Causality::effort_in});
      }
      const std::vector<double> closed =
          closed_resistances(terms, junction.dirac.E, junction.dirac.F, 1.0 / step_s);
      for (std::size_t k = 0; k < terms.size(); ++k) {
        if (terms[k].storage > 0.0) out[at(junction.waves[k])] = std::max(0.0, closed[k]);
      }
      continue;
    }
    double sum = 0.0;  // of w² times the immittances that add up
    for (std::size_t k = 0; k < junction.waves.size(); ++k) {
      const int port = junction.waves[k];
      const double D = resistance(port);
      if (D == 0.0) continue;
      const bool fits = shares_effort == (causality_of(system, port) == Causality::effort_in);
      const double weight = (*w)[static_cast<Eigen::Index>(k)];
      sum += weight * weight * (fits ? D : 1.0 / D);
    }
    if (sum == 0.0) continue;
    for (std::size_t k = 0; k < junction.waves.size(); ++k) {
      const int port = junction.waves[k];
      const double weight = (*w)[static_cast<Eigen::Index>(k)];
      if (weight == 0.0) continue;
      // What all share is an output of this port; with two ports the other one's input is, too.
      const bool is_shared = shares_effort == (causality_of(system, port) == Causality::flow_in);
      if (is_shared) {
        out[at(port)] = sum / (weight * weight);
      } else if (junction.waves.size() == 2) {
        out[at(port)] = weight * weight / sum;
      }
    }
  }
  return out;
}

/// By row: the diagonal entry, NaN where the row has others.
std::vector<double> lone_diagonal(const SparseMatrix& A) {
  std::vector<double> out(at(static_cast<int>(A.rows())), 0.0);
  for (int j = 0; j < A.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(A, j); it; ++it) {
      if (it.value() == 0.0) continue;
      double& own = out[at(static_cast<int>(it.row()))];
      own = it.row() == j ? own + it.value() : std::numeric_limits<double>::quiet_NaN();
    }
  }
  return out;
}

/// The state that a port alone shows, y = G z of it, and the entry; −1: others, or more than that.
std::pair<int, double> shown_state(const Structure& s, int port) {
  int state = -1;
  double entry = 0.0;
  for (SparseMatrix::InnerIterator it(s.G, port); it; ++it) {
    if (it.value() == 0.0) continue;
    if (state >= 0) return {-1, 0.0};
    state = static_cast<int>(it.row());
    entry = it.value();
  }
  const bool is_alone =
      s.P.col(port).norm() == 0.0 && s.S.col(port).norm() == 0.0 && s.N.col(port).norm() == 0.0;
  return {is_alone ? state : -1, entry};
}

/// By state: the resistance of its own; NaN where there is none such.
std::vector<double> own_resistances(const Structure& s, const Component& part,
                                    std::span<const double> at_port) {
  std::vector<double> out = lone_diagonal(s.R);
  for (int j = 0; j < s.P.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(s.P, j); it; ++it) {
      if (it.value() != 0.0) {
        out[at(static_cast<int>(it.row()))] = std::numeric_limits<double>::quiet_NaN();
      }
    }
  }
  for (int j = 0; j < part.signature().wave_size(); ++j) {
    if (at_port[at(j)] == 0.0) continue;
    const auto [state, entry] = shown_state(s, j);
    if (state >= 0) out[at(state)] += entry * entry * at_port[at(j)];
  }
  return out;
}

/// By state: ∂²H/∂x² at x, NaN where there are mixed derivatives.
std::vector<double> own_stiffness(const Subsystem& part, const double* x) {
  return lone_diagonal(hessian_at(part, x));
}

OwnDecays decays_of(const Part& part, std::span<const double> at_port, double step_s,
                    double least) {
  OwnDecays out;
  const Subsystem* const physics = part.port_hamiltonian();
  if (physics == nullptr || !can_damp_single_states(*part.component) ||
      !physics->constant_structure()) {
    return out;
  }
  const int n = part.component->signature().state_size();
  if (n == 0) return out;
  const std::vector<double> r = own_resistances(physics->structure(), *part.component, at_port);
  std::vector<double> here, usual;
  try {
    here = own_stiffness(*physics, part.initial_state.data());
    usual = own_stiffness(*physics, physics->typical_state().data());
  } catch (const std::exception&) {  // a callback outside its domain
    return out;
  }
  for (int i = 0; i < n; ++i) {
    const double h_lambda = step_s * r[at(i)] * std::min(here[at(i)], usual[at(i)]);
    // Not so where it is not a number: then of that state, or of its resistance, more is mixed.
    const bool is_fast = std::isfinite(usual[at(i)]) && h_lambda > least && std::isfinite(h_lambda);
    if (is_fast && h_lambda > out.h_lambda) {
      out.h_lambda = h_lambda;
      out.state = i;
    }
    const bool stores = here[at(i)] != 0.0 || usual[at(i)] != 0.0;
    if (!is_fast && (stores || !physics->is_linear())) out.conserved |= std::uint64_t{1} << i;
  }
  return out;
}

}  // namespace

std::vector<OwnDecays> own_decays(const System& system, double step_s, double least,
                                  std::span<const char> exchanged, bool of_junctions) {
  const std::vector<double> at_port = resistances_at_ports(system, step_s, exchanged, of_junctions);
  std::vector<OwnDecays> out;
  out.reserve(system.parts().size());
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    const Part& part = system.parts()[at(i)];
    const auto ports = at(part.component->signature().wave_size());
    out.push_back(decays_of(
        part, std::span(at_port).subspan(at(system.first_scalar_port(i)), ports), step_s, least));
  }
  return out;
}

}  // namespace portwave
