// The compiled half of the Python package. The public half is Python code in python/portwave.

#include <nanobind/nanobind.h>

#include "callbacks.hpp"
#include "catalogue.hpp"
#include "derivatives.hpp"
#include "ensemble.hpp"
#include "errors.hpp"
#include "fmu.hpp"
#include "inverse_dynamics.hpp"
#include "part_types.hpp"
#include "plugins.hpp"
#include "snapshot.hpp"
#include "stepper.hpp"
#include "study.hpp"

namespace nb = nanobind;

NB_MODULE(_portwave, m) {
  m.doc() = "The compiled half of portwave.";
  // The catalogue keeps the functions of types from Python until the program ends, on purpose.
  nb::set_leak_warnings(false);
  m.attr("__version__") = PORTWAVE_VERSION;
  bind_errors();
  bind_snapshot(m);
  bind_catalogue(m);
  bind_derivatives(m);
  bind_inverse_dynamics(m);
  bind_stepper(m);
  bind_ensemble(m);
  bind_callbacks(m);
  bind_part_types(m);
  bind_plugins(m);
  bind_studies(m);
  bind_fmu(m);
}
