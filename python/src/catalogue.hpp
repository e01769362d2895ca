#pragma once

#include <nanobind/nanobind.h>

void bind_catalogue(nanobind::module_& m);
