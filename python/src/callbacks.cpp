// Python functions that steps call: energies of parts, and blocks of signal graphs.

#include "callbacks.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "portwave/runtime/scenario/block_kinds.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"

using namespace nb::literals;

namespace {

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

thread_local PyObject* raised = nullptr;     // an exception; it leaks where its thread ends first
thread_local bool raised_interrupt = false;  // the exception is not an `Exception`

void keep_raised(const nb::python_error& error) {
  forget_raised();
  nb::object value = nb::borrow(error.value());
  if (error.traceback().is_valid()) {
    PyException_SetTraceback(value.ptr(), error.traceback().ptr());
  }
  raised_interrupt = PyErr_GivenExceptionMatches(value.ptr(), PyExc_Exception) == 0;
  raised = value.release().ptr();
}

/// A new array, which the called function may keep.
nb::object copied(const double* x, std::size_t n) {
  double* data = nullptr;
  auto out = new_array({n}, &data);
  std::copy_n(x, n, data);
  return nb::cast(std::move(out));
}

/// A Python function that threads may call and release without the interpreter's lock.
class SharedCallable {
 public:
  explicit SharedCallable(nb::callable function)
      : function_(new nb::callable(std::move(function)), [](nb::callable* own) {
          // The catalogue outlives the interpreter; by then the memory is gone.
          if (Py_IsInitialized() == 0) return;
          const nb::gil_scoped_acquire lock;
          delete own;
        }) {}

  /// Returns use(function), with the interpreter's lock. An exception of Python is kept for this
  /// thread, and its text is thrown.
  template <class Use>
  auto operator()(const Use& use) const {
    const nb::gil_scoped_acquire lock;
    try {
      return use(*function_);
    } catch (const nb::python_error& error) {
      keep_raised(error);
      throw std::runtime_error(error.what());  // copies the text while the lock is held
    }
  }
  template <class Use>
  auto operator()(const double* x, std::size_t n, const Use& use) const {
    return (*this)([&](const nb::callable& function) { return use(function(copied(x, n))); });
  }

 private:
  std::shared_ptr<nb::callable> function_;
};

void copy_result(const nb::object& from, std::size_t size, double* to, const char* what) {
  const auto values = nb::cast<nb::ndarray<const double, nb::c_contig, nb::device::cpu>>(
      nb::module_::import_("numpy").attr("ascontiguousarray")(from, "dtype"_a = "float64"));
  if (values.size() != size) {
    throw std::runtime_error(std::string(what) + " must have " + std::to_string(size) +
                             " entries, got " + std::to_string(values.size()));
  }
  std::copy_n(values.data(), size, to);
}

portwave::SparseMatrix sparse(const Matrix& matrix, int rows, int columns, const char* name) {
  if (static_cast<int>(matrix.shape(0)) != rows || static_cast<int>(matrix.shape(1)) != columns) {
    throw std::invalid_argument(
        std::string(name) + " must be " + std::to_string(rows) + " x " + std::to_string(columns) +
        ", got " + std::to_string(matrix.shape(0)) + " x " + std::to_string(matrix.shape(1)));
  }
  portwave::SparseMatrix out(rows, columns);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      const double value = matrix(static_cast<std::size_t>(i), static_cast<std::size_t>(j));
      if (value != 0.0) out.insert(i, j) = value;
    }
  }
  return out;
}

using NameAndUnit = std::pair<std::string, std::string>;
using PortOf = std::tuple<std::string, std::string, std::string>;  // name, domain, causality

portwave::Domain domain_of(const std::string& name) {
  using enum portwave::Domain;
  for (const portwave::Domain domain :
       {generic, translation, rotation, electrical, magnetic, hydraulic, thermal}) {
    if (name == to_string(domain)) return domain;
  }
  throw std::invalid_argument("no domain is named \"" + name + "\"");
}

using Build = std::function<std::unique_ptr<portwave::Component>()>;

/// The builders of types from Python. The catalogue keeps a type for good; a notebook cell that runs
/// again replaces its builder.
std::map<std::string, std::shared_ptr<Build>>& part_types() {
  static std::map<std::string, std::shared_ptr<Build>> all;
  return all;
}

portwave::DiscreteGradient discrete_gradient_of(const std::string& name) {
  using portwave::DiscreteGradient;
  for (const auto kind :
       {DiscreteGradient::gonzalez, DiscreteGradient::mean_value, DiscreteGradient::itoh_abe}) {
    if (name == portwave::to_string(kind)) return kind;
  }
  throw std::invalid_argument(
      "a discrete gradient is \"gonzalez\", \"mean_value\" or \"itoh_abe\", got \"" + name + "\"");
}

/// Adds a type without parameters to the catalogue; all parts of the type share the functions.
void add_part_type(const std::string& name, const std::string& summary,
                   const std::vector<NameAndUnit>& states, const std::vector<PortOf>& ports,
                   const std::vector<NameAndUnit>& inputs, nb::callable energy,
                   nb::callable gradient, std::optional<nb::callable> hessian, const Matrix& J,
                   const Matrix& R, const Matrix& G, const std::vector<double>& default_state,
                   const std::string& discrete_gradient) {
  portwave::Signature signature;
  signature.type = name;
  for (const auto& [state, unit] : states) signature.states.push_back({state, unit});
  for (const auto& [port, domain, causality] : ports) {
    if (causality != "effort_in" && causality != "flow_in") {
      throw std::invalid_argument("a port is \"effort_in\" or \"flow_in\", got \"" + causality +
                                  "\"");
    }
    signature.ports.push_back(
        {port,
         causality == "effort_in" ? portwave::Causality::effort_in : portwave::Causality::flow_in,
         domain_of(domain), 1});
  }
  for (const auto& [input, unit] : inputs) signature.inputs.push_back({input, unit});
  const int n = static_cast<int>(states.size());
  const int m = static_cast<int>(ports.size() + inputs.size());
  portwave::Structure structure = portwave::Structure::zero(n, m);
  structure.J = sparse(J, n, n, "J");
  structure.R = sparse(R, n, n, "R");
  structure.G = sparse(G, n, m, "G");

  const auto size = static_cast<std::size_t>(n);
  portwave::Hamiltonian hamiltonian;
  hamiltonian.value = [size, call = SharedCallable(std::move(energy))](const double* x) {
    return call(x, size,
                [](const nb::object& value) { return nb::cast<double>(nb::float_(value)); });
  };
  hamiltonian.gradient = [size, call = SharedCallable(std::move(gradient))](const double* x,
                                                                            double* g) {
    call(x, size, [&](const nb::object& value) { copy_result(value, size, g, "the gradient"); });
  };
  if (hessian) {  // symmetric: the order of rows and columns does not matter
    hamiltonian.hessian = [size, call = SharedCallable(std::move(*hessian))](const double* x,
                                                                             double* h) {
      call(x, size,
           [&](const nb::object& value) { copy_result(value, size * size, h, "the Hessian"); });
    };
  }
  portwave::NonlinearPortHamiltonian::Options options;
  options.default_state = default_state;
  options.discrete_gradient = discrete_gradient_of(discrete_gradient);

  const Build build = [=] {
    return std::make_unique<portwave::NonlinearPortHamiltonian>(signature, structure, hamiltonian,
                                                                options);
  };
  (void)build();  // reports defects here
  if (const auto known = part_types().find(name); known != part_types().end()) {
    *known->second = build;
    return;
  }
  portwave::PartType type;
  type.name = name;
  type.group = "python";
  type.summary = summary;
  type.equations = "H(x), its gradient and structure matrices from Python";
  const auto own = std::make_shared<Build>(build);
  type.build = [own](const portwave::Parameters&) { return (*own)(); };
  portwave::Catalogue::add(std::move(type));
  part_types().emplace(name, own);
}

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
    function_([&](const nb::callable& function) {
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

void forget_raised() {
  if (raised == nullptr) return;
  raised_interrupt = false;
  Py_DECREF(std::exchange(raised, nullptr));
}

nb::object take_raised() {
  raised_interrupt = false;
  return nb::steal(std::exchange(raised, nullptr));
}

void raise_interrupt() {
  if (!raised_interrupt) return;
  const nb::gil_scoped_acquire lock;
  const nb::object own = take_raised();
  PyErr_SetObject(own.type().ptr(), own.ptr());
  throw nb::python_error();
}

void bind_callbacks(nb::module_& m) {
  m.def("add_part_type", &add_part_type, "name"_a, "summary"_a, "states"_a, "ports"_a, "inputs"_a,
        "energy"_a, "gradient"_a, "hessian"_a.none(), "J"_a, "R"_a, "G"_a, "default_state"_a,
        "discrete_gradient"_a);
  m.def("add_block_kind", &add_block_kind, "name"_a, "summary"_a, "function"_a, "inputs"_a,
        "outputs"_a, "state"_a, "numbers"_a);
}
