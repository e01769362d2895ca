#pragma once

#include <nanobind/nanobind.h>

void bind_fmu(nanobind::module_& m);
