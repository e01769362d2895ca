#pragma once

#include <memory>

#include <portwave/runtime/ranks/ranks.hpp>

namespace PORTWAVE_EXPORT portwave {

/// The processes of this program that were started together (MPI_COMM_WORLD), for
/// StepperOptions::ranks. Initialises MPI (MPI_THREAD_FUNNELED) where nobody has, and finalises it
/// when the last of them is gone. The thread that calls first makes all calls of MPI.
///
///   options.ranks = portwave::mpi_ranks();
///
/// Errors: RankError where MPI gives no thread support.
std::shared_ptr<Ranks> mpi_ranks();

}  // namespace portwave
