#pragma once

#include <nanobind/nanobind.h>

#include "portwave/runtime/study/step_derivatives.hpp"

namespace nb = nanobind;

void bind_derivatives(nb::module_& m);
