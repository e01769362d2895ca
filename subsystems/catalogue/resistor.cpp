#include <cmath>

#include <fmt/format.h>

#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave {

std::unique_ptr<Subsystem> make_resistor(double resistance, const Port& port) {
  if (!std::isfinite(resistance) || resistance < 0.0) {
    throw ConfigError("/resistance", fmt::format("must be finite and >= 0, got {}", resistance));
  }
  Port closing = port;
  closing.causality = Causality::flow_in;
  Structure structure = Structure::zero(0, closing.dimension);
  for (int i = 0; i < closing.dimension; ++i) structure.S.insert(i, i) = resistance;
  return std::make_unique<LinearPortHamiltonian>(
      Signature{"resistor", {}, {std::move(closing)}, {}}, std::move(structure),
      SparseMatrix(0, 0));
}

}  // namespace portwave
