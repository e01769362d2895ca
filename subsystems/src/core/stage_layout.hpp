#pragma once

#include "portwave/subsystems/core/component.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {

/// The numbers of a part with stages. States are numbered stage by stage, and so are ports and
/// inputs, all ports before all inputs. With substeps, states and inputs are those of the stages of
/// all substeps, and ports those of the stages of the step.
struct StageLayout {
  int stages;
  int n;  ///< states of the part
  int p;  ///< its scalar ports
  int q;  ///< its external inputs
  int substeps = 1;

  int states() const { return substeps * stages * n; }
  int ports() const { return stages * p; }
  int inputs() const { return substeps * stages * q; }
  int port(int stage, int j) const { return stage * p + j; }
  /// Of input j of the part, ports first, among those of all stages. Precondition: one substep.
  int input(int stage, int j) const {
    return j < p ? port(stage, j) : ports() + stage * q + (j - p);
  }
};

/// Puts the matrices of one stage, `own`, into those of all. `held` states stand before the first.
void add_stage(const StageLayout& layout, int stage, int held, const Structure& own,
               Structure& all);

/// Ports once per stage, inputs once per stage and substep: "port@stage", "input@substep.stage".
Signature staged_signature(const Signature& part, int stages, int substeps = 1);

}  // namespace portwave
