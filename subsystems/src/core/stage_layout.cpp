#include "core/stage_layout.hpp"

#include <fmt/format.h>

namespace portwave {

void add_stage(const StageLayout& layout, int stage, int held, const Structure& own,
               Structure& all) {
  const int first = held + stage * layout.n;
  const auto state = [&](int i) { return first + i; };
  const auto input = [&](int j) { return layout.input(stage, j); };
  const auto put = [](const SparseMatrix& from, SparseMatrix& to, const auto& row,
                      const auto& column) {
    for (int j = 0; j < from.outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(from, j); it; ++it) {
        to.coeffRef(row(static_cast<int>(it.row())), column(j)) = it.value();
      }
    }
  };
  put(own.J, all.J, state, state);
  put(own.R, all.R, state, state);
  put(own.G, all.G, state, input);
  put(own.P, all.P, state, input);
  put(own.S, all.S, input, input);
  put(own.N, all.N, input, input);
}

Signature staged_signature(const Signature& part, int stages, int substeps) {
  Signature out{part.type, part.states, {}, {}};
  for (int i = 1; i <= stages; ++i) {
    for (Port port : part.ports) {
      if (stages > 1) port.name += fmt::format("@{}", i);
      out.ports.push_back(port);
    }
  }
  for (int k = 1; k <= substeps; ++k) {
    for (int i = 1; i <= stages; ++i) {
      for (ExternalInput input : part.inputs) {
        if (substeps > 1) {
          input.name += fmt::format("@{}.{}", k, i);
        } else if (stages > 1) {
          input.name += fmt::format("@{}", i);
        }
        out.inputs.push_back(input);
      }
    }
  }
  return out;
}

}  // namespace portwave
