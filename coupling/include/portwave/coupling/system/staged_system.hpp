#pragma once

#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The system with s Gauss stages in every step: each part a staged_part, in its substeps, each junction
/// once per stage. A step of one stage of it is a step of s stages, of order 2s, of `system`; so all code
/// that couples and judges steps by waves does so at any order. Parts keep their numbers, names, states
/// and islands. External inputs are those of the part at the stages, √bᵢ u(t + cᵢh), or at those of its
/// substeps (InputNode). With one stage, parts without substeps are unchanged.
/// Errors: ConfigError: stages outside 1 to kMostStages; else naming every part that cannot have
/// stages.
System staged_system(const System& system, int stages);

/// Whether any part takes more than one step within a step.
bool has_substeps(const System& system);

/// Why parts of it cannot have stages, pointing at "/subsystems/i"; empty where all can.
Issues check_stages(const System& system);

/// The scalar port of a staged system that is `scalar_port` of `system` at a stage, from 0.
int staged_port(const System& system, int stages, int scalar_port, int stage);

}  // namespace portwave
