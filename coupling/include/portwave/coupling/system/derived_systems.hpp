#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/base/export.hpp"

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
/// substeps stay as they are. Cost: that of copying the system, and of building the parts concerned again.
LiveSystem live_system(const System& system);

/// The component that live_system has for a part of `system`.
std::shared_ptr<const Component> live_component(const System& system, int part);

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
