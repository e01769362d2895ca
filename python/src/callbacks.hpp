#pragma once

#include <nanobind/nanobind.h>

/// What a Python function raised that the step called in this thread. C++ carries its text alone; the
/// exception waits here for the one that ends the step.
///
/// Forgets it. With the interpreter's lock.
void forget_raised();
/// Gives it away; not valid where there is none. With the interpreter's lock.
nanobind::object take_raised();
/// Throws it again where it is no `Exception` but KeyboardInterrupt or the like, which no step may
/// keep to itself. Without the interpreter's lock.
void raise_interrupt();

/// Adds add_part_type and add_block_kind.
void bind_callbacks(nanobind::module_& m);
