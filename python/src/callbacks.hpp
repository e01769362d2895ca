#pragma once

#include <nanobind/nanobind.h>

/// A Python function that a step calls may raise an exception. C++ carries its text alone; the
/// exception itself is kept per thread for the code that ends the step.

/// Keeps an exception for this thread. Called with the interpreter's lock.
void keep_raised(const nanobind::python_error& error);
/// Forgets the exceptions that this thread has kept, and an interrupt of any. Called with the interpreter's lock.
void forget_raised();
/// Hands over the kept exception; an invalid object where there is none. Called with the
/// interpreter's lock.
nanobind::object take_raised();
/// Raises the first exception again that any thread has kept and that is not an `Exception` but KeyboardInterrupt or
/// the like, which no step may suppress. With the interpreter's lock or without.
void raise_interrupt();

/// Adds add_block_kind.
void bind_callbacks(nanobind::module_& m);
