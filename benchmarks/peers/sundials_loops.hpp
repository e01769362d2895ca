#pragma once

// Loops in place of those of the SUNDIALS library, compiled as the other peers are. Distributions
// may compile the library for any processor, and Debian 12 does so without optimisation: with its
// own loops it takes six to nine times as long on the chain.

#include <sundials/sundials_linearsolver.h>
#include <sundials/sundials_nvector.h>

namespace portwave::bench {

/// For a serial vector and all that are cloned from it.
void use_own_loops(N_Vector vector);

/// For SUNDIALS's band solver: the same LU with partial pivoting.
void use_own_loops(SUNLinearSolver band);

}  // namespace portwave::bench
