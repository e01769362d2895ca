#pragma once

#include <nanobind/nanobind.h>

/// Adds load_plugin.
void bind_plugins(nanobind::module_& m);
