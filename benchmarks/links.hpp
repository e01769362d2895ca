#pragma once

// Branches between two nodes of a circuit, as parts with a port for each of their ends.

#include <memory>
#include <utility>

#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave::bench {

/// A resistor between two nodes: f₁ = (e₁ − e₂)/R, f₂ = −f₁.
inline std::shared_ptr<const Subsystem> link(double ohm) {
  Structure s = Structure::zero(0, 2);
  for (const int row : {0, 1}) {
    for (const int column : {0, 1}) s.S.insert(row, column) = (row == column ? 1.0 : -1.0) / ohm;
  }
  return std::make_shared<LinearPortHamiltonian>(
      Signature{"link",
                {},
                {{"a", Causality::effort_in, Domain::electrical, 1},
                 {"b", Causality::effort_in, Domain::electrical, 1}},
                {}},
      std::move(s), SparseMatrix(0, 0));
}

/// The same with a coil in series: L f₁' = e₁ − e₂ − R f₁.
inline std::shared_ptr<const Subsystem> coil_link(double henry, double ohm) {
  Structure s = Structure::zero(1, 2);
  s.R.insert(0, 0) = ohm / (henry * henry);
  s.G.insert(0, 0) = 1.0 / henry;
  s.G.insert(0, 1) = -1.0 / henry;
  SparseMatrix Q(1, 1);
  Q.insert(0, 0) = henry;
  return std::make_shared<LinearPortHamiltonian>(
      Signature{"coil_link",
                {{"current", "A"}},
                {{"a", Causality::effort_in, Domain::electrical, 1},
                 {"b", Causality::effort_in, Domain::electrical, 1}},
                {}},
      std::move(s), Q);
}

}  // namespace portwave::bench
