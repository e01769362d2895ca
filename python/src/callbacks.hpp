#pragma once

#include <nanobind/nanobind.h>

/// A Python function that a step calls may raise an exception. C++ carries its text alone; the
/// exception itself is kept per thread for the code that ends the step.

/// Keeps an exception for this thread; of a worker, a thread that Python does not know, also for the next thread that
/// asks for interrupts. Called with the interpreter's lock.
void keep_raised(const nanobind::python_error& error, bool is_worker);
/// Forgets the exception that this thread has kept. Called with the interpreter's lock.
void forget_raised();
/// Hands over the kept exception; an invalid object where there is none. Called with the
/// interpreter's lock.
nanobind::object take_raised();
/// Hands over the exception that this thread or a worker has kept if it is not an `Exception` but KeyboardInterrupt or
/// the like, which no step may suppress; else an invalid object. Called with the interpreter's lock.
nanobind::object take_interrupt();
/// Raises it. With the interpreter's lock or without.
void raise_interrupt();

/// Adds add_block_kind.
void bind_callbacks(nanobind::module_& m);
