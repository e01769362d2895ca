#pragma once

#include <memory>

#include "portwave/subsystems/core/component.hpp"
#include "portwave/subsystems/core/gauss_stages.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {

/// The numbers of a part with stages. States are numbered stage by stage, and so are ports and
/// inputs, all ports before all inputs.
struct StageLayout {
  int stages;
  int n;  ///< states of the part
  int p;  ///< its scalar ports
  int q;  ///< its external inputs

  int states() const { return stages * n; }
  int ports() const { return stages * p; }
  int inputs() const { return stages * q; }
  int port(int stage, int j) const { return stage * p + j; }
  /// Of input j of the part, ports first, among those of all stages.
  int input(int stage, int j) const {
    return j < p ? port(stage, j) : ports() + stage * q + (j - p);
  }
};

/// Puts the matrices of one stage, `own`, into those of all. `held` states stand before the first.
void add_stage(const StageLayout& layout, int stage, int held, const Structure& own,
               Structure& all);

/// Ports and inputs once per stage.
Signature staged_signature(const Signature& part, int stages);

}  // namespace portwave
