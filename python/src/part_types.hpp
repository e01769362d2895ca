#pragma once

#include <nanobind/nanobind.h>

/// Adds add_part_type.
void bind_part_types(nanobind::module_& m);
