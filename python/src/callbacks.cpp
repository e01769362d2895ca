// Blocks of signal graphs from Python functions, and the exceptions of functions that steps call.

#include "callbacks.hpp"

#include <atomic>
#include <cmath>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "portwave/runtime/scenario/block_kinds.hpp"
#include "shared_callable.hpp"

using namespace nb::literals;

namespace {

thread_local PyObject* raised = nullptr;     // an exception; it leaks where its thread ends first
thread_local bool raised_interrupt = false;  // the exception is not an `Exception`
// The first such one of a worker. Written with the interpreter's lock.
PyObject* interrupt = nullptr;
std::atomic<bool> has_interrupt = false;

/// Copies the numbers that a block's function returned; a single number counts as an array of one.
void copy_numbers(const nb::object& from, std::span<double> to, const char* what,
                  const char* function) {
  if (to.size() == 1 && (PyFloat_Check(from.ptr()) || PyLong_Check(from.ptr()))) {
    to[0] = PyFloat_AsDouble(from.ptr());
    if (to[0] == -1.0 && PyErr_Occurred() != nullptr) throw nb::python_error();
    return;
  }
  try {
    copy_result(from, to.size(), to.data(), what);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(std::string(function) + ": " + error.what());
  }
}

/// Calls function(t, u) or function(t, u, x), and passes the numbers of the scenario by name.
class PythonLaw {
 public:
  PythonLaw(std::string name, SharedCallable function, bool has_state,
            std::vector<std::pair<std::string, double>> numbers)
      : name_(std::move(name)),
        function_(std::move(function)),
        has_state_(has_state),
        numbers_(std::move(numbers)) {}

  void operator()(const portwave::SampleTime& when, std::span<const double> u, std::span<double> y,
                  std::span<double> x) const {
    function_([&](const nb::object& function) {
      nb::object given;
      const nb::object inputs = copied(u.data(), u.size());
      if (numbers_.empty()) {
        given = has_state_ ? function(when.time_s, inputs, copied(x.data(), x.size()))
                           : function(when.time_s, inputs);
      } else {
        nb::dict by_name;
        for (const auto& [name, value] : numbers_) by_name[name.c_str()] = value;
        given = has_state_ ? function(when.time_s, inputs, copied(x.data(), x.size()), **by_name)
                           : function(when.time_s, inputs, **by_name);
      }
      if (!has_state_) return copy_numbers(given, y, "outputs", name_.c_str());
      if (!nb::isinstance<nb::tuple>(given) || nb::len(given) != 2) {
        throw std::runtime_error(name_ + " must return (outputs, next state)");
      }
      const auto pair = nb::borrow<nb::tuple>(given);
      copy_numbers(pair[0], y, "outputs", name_.c_str());
      copy_numbers(pair[1], x, "the next state", name_.c_str());
      for (const double value : x) {
        if (!std::isfinite(value)) {
          throw std::runtime_error(name_ + ": a number of the next state is not finite");
        }
      }
    });
  }

 private:
  std::string name_;
  SharedCallable function_;
  bool has_state_;
  std::vector<std::pair<std::string, double>> numbers_;
};

/// Adds a kind of block. `inputs`: keys that name a signal each. `numbers`: keys and their defaults.
void add_block_kind(const std::string& name, const std::string& summary, nb::callable function,
                    const std::vector<std::string>& inputs, int outputs,
                    const std::vector<double>& state,
                    const std::vector<std::pair<std::string, double>>& numbers) {
  portwave::BlockKind kind;
  kind.name = name;
  kind.summary = summary;
  using Field = portwave::BlockField;
  for (const std::string& input : inputs) {
    kind.fields.push_back({.name = input, .kind = Field::Kind::signal, .summary = "an input"});
  }
  for (const auto& [number, otherwise] : numbers) {
    kind.fields.push_back({.name = number,
                           .kind = Field::Kind::number,
                           .summary = "a number that the function is given",
                           .required = false,
                           .default_number = otherwise});
  }
  const SharedCallable shared(std::move(function));
  kind.make = [=](const portwave::BlockValues& values, int count) {
    std::vector<std::pair<std::string, double>> own = numbers;
    for (auto& [number, value] : own) value = values.number(number);
    return portwave::block::callback(count, outputs, state,
                                     PythonLaw(name, shared, !state.empty(), std::move(own)));
  };
  (void)kind.make(
      [&] {
        portwave::BlockValues defaults;
        for (const auto& [number, value] : numbers) defaults.set(number, value);
        return defaults;
      }(),
      static_cast<int>(inputs.size()));  // reports defects here
  portwave::add_block_kind(std::move(kind));
}

}  // namespace

void keep_raised(const nb::python_error& error, bool is_worker) {
  forget_raised();
  nb::object value = nb::borrow(error.value());
  if (error.traceback().is_valid()) {
    PyException_SetTraceback(value.ptr(), error.traceback().ptr());
  }
  const bool is_interrupt = PyErr_GivenExceptionMatches(value.ptr(), PyExc_Exception) == 0;
  if (is_interrupt && is_worker && interrupt == nullptr) {
    interrupt = nb::borrow(value).release().ptr();
    has_interrupt.store(true, std::memory_order_relaxed);
  }
  raised_interrupt = is_interrupt && !is_worker;
  raised = value.release().ptr();
}

void forget_raised() {
  raised_interrupt = false;
  Py_XDECREF(std::exchange(raised, nullptr));
}

nb::object take_raised() {
  raised_interrupt = false;
  return nb::steal(std::exchange(raised, nullptr));
}

nb::object take_interrupt() {
  if (raised_interrupt) return take_raised();
  has_interrupt.store(false, std::memory_order_relaxed);
  return nb::steal(std::exchange(interrupt, nullptr));
}

void raise_interrupt() {
  if (!raised_interrupt && !has_interrupt.load(std::memory_order_relaxed)) return;
  const nb::gil_scoped_acquire lock;
  const nb::object own = take_interrupt();
  if (!own.is_valid()) return;  // another thread was faster
  PyErr_SetObject(own.type().ptr(), own.ptr());
  throw nb::python_error();
}

void bind_callbacks(nb::module_& m) {
  m.def("add_block_kind", &add_block_kind, "name"_a, "summary"_a, "function"_a, "inputs"_a,
        "outputs"_a, "state"_a, "numbers"_a);
}
