#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"

// Systems made from others: without idle ports, with stages in every step, several gathered into one, with
// another component in place of one.

namespace PORTWAVE_EXPORT portwave {

/// Whether joints leave a port idle, by scalar port: e = 0 where its part takes an effort, f = 0 where it takes a
/// flow. What the part does there needs no waves. Only whole ports count, and in a slice those of its own
/// parts.
std::vector<bool> idle_ports(const System& system);

/// A system without the idle ports of parts that can be stepped without them (without_idle_ports), and the
/// numbers of the others in it.
struct LiveSystem {
  System system;
  std::vector<int> number_of_port;  ///< by scalar port of the given system; −1: not there
};

/// Parts keep their numbers, names, states and islands, external inputs theirs; ports are renumbered. Parts with
/// substeps stay as they are, and so do descriptor parts that are to have several `stages`. Cost: that of copying the
/// system, and of building the parts concerned again.
LiveSystem live_system(const System& system, int stages = 1);

/// What a LiveSystem of `system` with this `number_of_port` has for a part whose component has changed. Cost: that
/// of the part, however large the system is.
std::shared_ptr<const Component> live_component(const System& system,
                                                std::span<const int> number_of_port, int part,
                                                int stages = 1);

/// The stages of a run: their number and nodes, and the parts whose stages are damped.
struct StagePlan {
  int stages = 1;
  StageNodes nodes = StageNodes::gauss;
  std::vector<char> is_damped = {};        ///< by part; empty: none is
  std::vector<StageDamping> damping = {};  ///< by part, of damped ones; empty: all of each

  const StageRule& rule() const { return stage_rule(stages, nodes); }
  bool damps(int part) const {
    return !is_damped.empty() && is_damped[static_cast<std::size_t>(part)] != 0;
  }
  StageDamping damping_of(int part) const {
    return damping.empty() ? StageDamping{} : damping[static_cast<std::size_t>(part)];
  }
  StageRule rule_of(int part) const {
    return damps(part) ? damped(rule(), damping_of(part)) : rule();
  }
  /// Whether a part is stepped as it is.
  bool keeps(int part, int substeps) const { return stages == 1 && substeps == 1 && !damps(part); }
};

/// The system with s stages in every step: each part a staged_part, in its substeps, each junction
/// once per stage. A step of one stage of it is a step of s stages of `system`, of order 2s, or 2s − 1 where
/// parts are damped; so all code that couples and judges steps by waves does so at any order. Parts keep their numbers, names, states
/// and islands. External inputs are those of the part at the stages, √bᵢ u(t + cᵢh), or at those of its
/// substeps (InputNode). With one stage, parts without substeps and damping are unchanged but for the places
/// of their inputs: on the nodes of Radau, the end of the step.
/// Errors: ConfigError: stages outside 1 to kMostStages; else naming every part that cannot have
/// such stages.
System staged_system(const System& system, const StagePlan& plan);
inline System staged_system(const System& system, int stages) {
  return staged_system(system, StagePlan{.stages = stages});
}

/// Whether any part takes more than one step within a step.
bool has_substeps(const System& system);

/// Why parts of it cannot have more than one stage, pointing at "/subsystems/i"; empty where all can.
Issues check_stages(const System& system);
/// Why those that a plan damps cannot be damped.
Issues check_damping(const System& system, const StagePlan& plan);

/// The scalar port of a staged system that is `scalar_port` of `system` at a stage, from 0.
int staged_port(const System& system, int stages, int scalar_port, int stage);

/// Several systems as one, uncoupled: parts, ports, junctions, islands and settable inputs of the
/// first, then those of the second, and so on, each in its own order. Parts keep their names, so
/// that names need not be unique, and find_part finds any of those of a name. Components and
/// junction structures are shared with the systems, which need not outlive it.
/// `states`: initial states, part by part in that order, in place of the systems' own; null: their own.
/// Cost     that of copying names, initial states and input lists.
System gathered_system(std::span<const System* const> systems, const double* states = nullptr);

/// Why a component cannot replace another while a system is being stepped; empty: it can.
/// It must be of the same class, with the same states, ports, external inputs and capabilities, and
/// may be active only if the other one is.
std::string exchange_defect(const Component& present, const Component& other);

/// Replaces a part's component by another one. Nothing else of the system changes.
/// Preconditions: there is such a part, and no `exchange_defect`.
void exchange_component(System& system, int part, std::shared_ptr<const Component> component);

}  // namespace portwave
