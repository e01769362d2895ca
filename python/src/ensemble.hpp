#pragma once

#include <nanobind/nanobind.h>

/// Adds the class Ensemble.
void bind_ensemble(nanobind::module_& m);
