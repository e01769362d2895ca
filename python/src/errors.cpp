// Exceptions of C++ as those of the package.

#include "errors.hpp"

#include <exception>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <string>

#include "callbacks.hpp"
#include "names.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/step_report.hpp"

namespace nb = nanobind;

namespace {

PyObject* config_error = nullptr;
PyObject* step_error = nullptr;

void raise_config_error(const char* text, const portwave::Issues& issues) {
  const nb::object error = nb::handle(config_error)(text);
  error.attr("issues") = pairs_of(issues);
  PyErr_SetObject(config_error, error.ptr());
}

void translate(const std::exception_ptr& pointer, void* /*payload*/) {
  try {
    std::rethrow_exception(pointer);
  } catch (const portwave::ScenarioError& error) {
    raise_config_error(error.what(), error.issues());
  } catch (const portwave::ConfigError& error) {
    raise_config_error(error.what(), error.issues());
  } catch (const portwave::StepError& failure) {
    const nb::object error = nb::handle(step_error)(failure.what());
    error.attr("part") = failure.part();
    error.attr("step") = failure.step();
    error.attr("iteration") = failure.iteration();
    error.attr("fault") = std::string(to_string(failure.fault()));
    error.attr("state") = failure.solve().state;
    error.attr("inputs") = failure.solve().inputs;
    error.attr("waves") = failure.solve().waves;
    error.attr("residual") = failure.solve().residual;
    if (failure.fault() == portwave::StepFault::threw) {
      if (const nb::object interrupt = take_interrupt(); interrupt.is_valid()) {
        PyErr_SetObject(interrupt.type().ptr(), interrupt.ptr());  // Ctrl-C is no fault of the step
        return;
      }
      if (const nb::object raised = take_raised(); raised.is_valid()) {
        error.attr("__cause__") = raised;
      }
    }
    PyErr_SetObject(step_error, error.ptr());
  }
}

}  // namespace

void bind_errors() {
  const nb::module_ errors = nb::module_::import_("portwave.errors");
  config_error = nb::object(errors.attr("ConfigError")).release().ptr();
  step_error = nb::object(errors.attr("StepError")).release().ptr();
  nb::register_exception_translator(translate);
}
