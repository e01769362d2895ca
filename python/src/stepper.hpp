#pragma once

#include <nanobind/nanobind.h>

/// Adds the class Stepper.
void bind_stepper(nanobind::module_& m);
