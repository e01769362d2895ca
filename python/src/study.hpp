#pragma once

#include <nanobind/nanobind.h>

/// Adds the studies: functions of a scenario that give rows as dictionaries.
void bind_studies(nanobind::module_& m);
