#pragma once

#include <memory>
#include <optional>
#include <span>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace PORTWAVE_EXPORT portwave {

struct NewtonOptions {
  int max_steps = 50;  ///< Newton steps per port solve, > 0
};

/// The fallback solver: dense Newton on x⁺ of the discrete-gradient step
///   x⁺ − x − h[(J − R)∇̄H(x, x⁺) + (G − P)u] = 0,   u from the wave relation,
/// for any Subsystem, one lane per part. It uses only the contract of the part, which makes
/// it the yardstick for parts that solve their own step.
/// Cost     one dense LU of size n per Newton step. Errors: StepFault::not_converged.
std::unique_ptr<StepBatch> make_newton_batch(std::span<const Subsystem* const> parts,
                                             NewtonOptions options = {});

/// The options of a batch made by make_newton_batch; empty for batches of other solvers.
std::optional<NewtonOptions> newton_options_of(const StepBatch& batch);

/// Whether a batch may damp a lane for a step, and the others not: those of make_newton_batch, and of contacts. Parts
/// that are solved in other lanes would lose these.
bool damps_each_lane(const StepBatch& batch);

}  // namespace portwave
