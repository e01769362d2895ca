#pragma once

#include <sundials/sundials_nvector.h>

namespace portwave::bench {

/// Gives a serial vector, and all that are cloned from it, loops that are compiled like the peers
/// are. Those of a distribution are compiled for any processor and without vector instructions,
/// which would make SUNDIALS up to three times as slow here.
void use_vector_loops(N_Vector vector);

}  // namespace portwave::bench
