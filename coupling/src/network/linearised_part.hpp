#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <fmt/format.h>

#include "network/elimination.hpp"
#include "portwave/coupling/network/linearisation.hpp"
#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/typical_state.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave::linearisation {

using Eigen::VectorXd;
using elimination::matrix;
using elimination::Triplets;

/// ẋ = Ag + Bu, y = Cg + Du.
struct Realisation {
  SparseMatrix A, B, C, D;

  explicit Realisation(const Structure& s)
      : A(s.J - s.R), B(s.G - s.P), C((s.G + s.P).transpose()), D(s.S + s.N) {}
};

/// A part in place: its states are [state, state + n) of all, its scalar ports [port, port + p).
struct Block {
  const Part* placed;
  const Subsystem* part;
  int number, state, port, n, p;
  std::vector<bool> effort_in;
  VectorXd x;
  VectorXd external;  ///< one per external input
  VectorXd g;
  LinearForm form;
  Realisation at_x;

  Block(const Part& placed_part, int part_number, int first_state, int first_port,
        const double* own)
      : placed(&placed_part),
        part(placed_part.port_hamiltonian()),
        number(part_number),
        state(first_state),
        port(first_port),
        n(part->signature().state_size()),
        p(part->signature().wave_size()),
        x(Eigen::Map<const VectorXd>(own, n)),
        external(VectorXd::Zero(part->signature().input_size())),
        g(n),
        form(part->linear_form()),
        at_x(realisation(x)) {
    for (const Port& each : part->signature().ports) {
      effort_in.insert(effort_in.end(), at(each.dimension), each.causality == Causality::effort_in);
    }
    part->gradient(x.data(), g.data());
  }

  Realisation realisation(const VectorXd& state_there) const {
    if (part->constant_structure()) return Realisation(part->structure());
    Structure structure = part->structure();
    part->structure_at(state_there.data(), structure);
    return Realisation(structure);
  }

  /// ∂z/∂x, n×n.
  SparseMatrix hessian() const {
    if (form.Q != nullptr) return *form.Q;
    Triplets entries;
    if (part->hessian(x.data(), entries)) return matrix(n, n, entries);
    entries.clear();
    const std::vector<double> typical = part->typical_state();
    VectorXd ahead(n), back(n), moved = x;
    for (int c = 0; c < n; ++c) {
      const double reach = difference_step(typical[at(c)], x[c]);
      moved[c] = x[c] + reach;
      const double above = moved[c];
      part->gradient(moved.data(), ahead.data());
      moved[c] = x[c] - reach;
      const double width = above - moved[c];
      part->gradient(moved.data(), back.data());
      moved[c] = x[c];
      for (int r = 0; r < n; ++r) entries.emplace_back(r, c, (ahead[r] - back[r]) / width);
    }
    return matrix(n, n, entries);
  }
};

/// Refuses points that are no such thing, and parts that show no equations. Errors: ConfigError.
inline void check(const System& system, const OperatingPoint& point, int states) {
  const auto ports = static_cast<int>(system.scalar_ports().size());
  Issues issues;
  const auto expect = [&](const char* where, const std::vector<double>& values, int wanted,
                          const char* what) {
    if (!values.empty() && static_cast<int>(values.size()) != wanted) {
      issues.push_back({where, fmt::format("must have {} numbers, {}, and has {}", wanted, what,
                                           values.size())});
    } else if (!std::ranges::all_of(values, [](double v) { return std::isfinite(v); })) {
      issues.push_back({where, "must be finite"});
    }
  };
  expect("/state", point.state, states, "one per state of each part");
  expect("/input", point.input, static_cast<int>(system.settable_inputs().size()),
         "one per settable input");
  expect("/effort", point.effort, ports, "one per scalar port");
  expect("/flow", point.flow, ports, "one per scalar port");
  if (!std::isfinite(point.time_s)) issues.push_back({"/time_s", "must be finite"});
  for (std::size_t i = 0; i < system.parts().size(); ++i) {
    if (system.parts()[i].port_hamiltonian() != nullptr) continue;
    issues.push_back({fmt::format("/subsystems/{}", i), opaque_defect(system.parts()[i])});
  }
  throw_if_any(std::move(issues));
  const double* own = point.state.data();
  for (std::size_t i = 0; i < system.parts().size() && !point.state.empty(); ++i) {
    const Component& component = *system.parts()[i].component;
    for (Issue& issue : component.check_initial_state(own)) {
      issues.push_back(
          {"/state", fmt::format("of part \"{}\": {}", system.parts()[i].name, issue.what)});
    }
    own += component.signature().state_size();
  }
  throw_if_any(std::move(issues));
}

}  // namespace portwave::linearisation
