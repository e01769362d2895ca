#pragma once

#include <nanobind/nanobind.h>

/// Adds the class Snapshot.
void bind_snapshot(nanobind::module_& m);
