#pragma once

#include <cstddef>

namespace portwave {

/// Short measurements of the machine: what a step on several threads costs beside its work, and the two roofs
/// of a roofline. Some milliseconds each.

/// What threads cost that work together, on two cores.
struct HandOver {
  double message_ns =
      0.0;  ///< a cache line with a number, from its writer to a reader that waits for it
  double line_ns = 0.0;   ///< each further line of the same message
  double start_ns = 0.0;  ///< calling a thread that waits for work, and waiting for it
};
/// Measured once in a process.
HandOver measured_hand_over();

/// Bytes per second of one thread that adds a multiple of one array to another into a third, again and again;
/// together they have so many bytes, so that they come from the caches or the memory where data of that size
/// lie.
double measured_stream_B_per_s(std::size_t bytes);

/// Additions and multiplications per second of one thread with numbers in registers, with the widest vectors
/// that it has. Not fused, as in all kernels: results must not depend on the processor.
/// Measured once in a process.
double measured_peak_flop_per_s();

}  // namespace portwave
