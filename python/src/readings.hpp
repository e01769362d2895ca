#pragma once

#include <nanobind/nanobind.h>

#include "portwave/runtime/output/linearise.hpp"
#include "portwave/runtime/step/stepper.hpp"

/// What is read of a stepper or an ensemble, as dictionaries. With the interpreter's lock.
nanobind::dict as_dict(const portwave::EnergyTotals& totals);
nanobind::dict as_dict(const portwave::DeadlineScheduler::Statistics& own);
nanobind::dict as_dict(const portwave::Impulses& all);
nanobind::dict as_dict(const portwave::Linearisation& own);
