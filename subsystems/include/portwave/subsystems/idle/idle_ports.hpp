#pragma once

#include <memory>
#include <span>
#include <vector>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/component.hpp"

// Idle ports: ports whose input is zero, whatever the part does, because nothing is joined to them: `free` on a
// port that takes an effort, `fixed` on one that takes a flow. They pass no power, and no wave has to be found
// for them.

namespace PORTWAVE_EXPORT portwave {

/// The part without idle ports, to be stepped in its place: the same states, external inputs and energies, and
/// the other ports in their order. `idle`: by port.
///
/// Linear parts and descriptor parts are built from the remaining columns of their matrices; all others are
/// stepped by the general Newton solver with those columns. Its batches (IdleOutputs) know what the outputs at
/// the idle ports were in the last step.
/// Null      where nothing is idle, and for parts that cannot be stepped so: opaque ones, those with stages or
///           substeps, and those with a solver of their own.
/// Cost      at set-up that of building the part again; in a step a copy of its state.
/// Threads   As for the given part; parts of structure that depends on the state should not share one.
std::shared_ptr<const Component> without_idle_ports(std::shared_ptr<const Component> part,
                                                    const std::vector<bool>& idle);

/// staged_part of a part that may be one of without_idle_ports: of a linear one, or, with several stages, of any that
/// is no descriptor part.
std::shared_ptr<const Component> staged_live_part(std::shared_ptr<const Component> part,
                                                  const StageRule& rule);

/// The number that a scalar port of a part has in the part that it was made of by without_idle_ports, or in the
/// staged_part of that; of other parts the number itself.
int given_scalar_port(const Component& part, int scalar_port);

/// Facet of the batches of such parts, asked for by dynamic_cast when somebody reads.
class IdleOutputs {
 public:
  virtual ~IdleOutputs() = default;

  /// The output y of an idle scalar port at a stage of the step that led to `record`, 0 if none did; of several
  /// stages √bᵢ times that. `scalar_port` is its number in the given part, and `inputs` holds u of all scalar
  /// ports of that, at that stage and scaled alike: 0 at idle ones.
  virtual double idle_output(int lane, const double* record, int scalar_port, int stage,
                             std::span<const double> inputs) const = 0;
  /// No step led to this record.
  virtual void forget_step(int lane, double* record) const = 0;
};

/// Facet of components that know a better way to leave idle ports away, as where the structure depends on the
/// state at these ports alone.
class LeavesPorts {
 public:
  /// This part without some or all of the idle ports, by port; null: it has no better way. Ports that it leaves
  /// in place are in the order of the signature.
  virtual std::shared_ptr<const Component> without_ports(const std::vector<bool>& idle) const = 0;

 protected:
  ~LeavesPorts() = default;
};

}  // namespace portwave
