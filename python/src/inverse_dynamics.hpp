#pragma once

#include <nanobind/nanobind.h>

void bind_inverse_dynamics(nanobind::module_& m);
