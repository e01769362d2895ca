// Many replicas of one system, for Python.

#include "ensemble.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "callbacks.hpp"
#include "matrices.hpp"
#include "names.hpp"
#include "portwave/runtime/ensemble/ensemble.hpp"
#include "portwave/runtime/scenario/part_recipes.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "readings.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Read = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Written = nb::ndarray<double, nb::c_contig, nb::device::cpu>;

template <class Array>
auto numbers(const Array& array) {
  return std::span(array.data(), array.size());
}

/// Ends a run where the user presses Ctrl-C, of which Python informs the calling thread only. Called
/// without the interpreter's lock.
std::function<void()> interruptible() {
  using Clock = std::chrono::steady_clock;
  return [caller = std::this_thread::get_id(), last = Clock::now()]() mutable {
    if (std::this_thread::get_id() != caller) return;
    raise_interrupt();
    const Clock::time_point now = Clock::now();
    if (now - last < std::chrono::milliseconds(50)) return;
    last = now;
    const nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  };
}

class PyEnsemble {
 public:
  /// `values`: shape (N, number of paths).
  PyEnsemble(const std::string& text, const std::string& folder,
             const std::vector<HandedMatrix>& matrices,
             const std::vector<std::pair<std::string, std::string>>& overrides, int replicas,
             const std::vector<std::string>& paths, const Matrix& values, int threads, int chunk,
             bool certify, bool allows_plugins) {
    std::vector<portwave::Override> replacements;
    for (const auto& [pointer, value] : overrides) replacements.push_back({pointer, value});
    scenario_ = portwave::parse_scenario(text, "scenario", folder, replacements,
                                         plugins_of(allows_plugins), matrices_of(matrices));
    const portwave::Scenario& scenario = *scenario_;
    notes_ = scenario.notes;
    portwave::StepperOptions options = scenario.options;
    if (!certify) options.certify = portwave::Certify::none;
    const nb::gil_scoped_release unlocked;
    ensemble_.emplace(portwave::make_ensemble(scenario.system, scenario, replicas, paths,
                                              {values.data(), values.size()}, options,
                                              {.threads = threads, .chunk = chunk}));
  }

  void rollout(const std::optional<Read>& x0, const std::optional<Read>& u, int steps,
               const Written& x, int every) {
    forget_raised();
    const nb::gil_scoped_release unlocked;
    ensemble_->rollout(x0 ? numbers(*x0) : std::span<const double>(),
                       u ? numbers(*u) : std::span<const double>(), steps, numbers(x),
                       {.every = every, .ask = interruptible()});
    raise_interrupt();  // a replica that it has ended is no more than that
  }
  void step(std::int64_t steps) {
    forget_raised();
    const nb::gil_scoped_release unlocked;
    ensemble_->step(steps, interruptible());
    raise_interrupt();
  }
  void states(const Written& x) {
    const auto n = static_cast<std::size_t>(ensemble_->state_size());
    expect_numbers(x.size(), n);
    for (int i = 0; i < ensemble_->replicas(); ++i) {
      ensemble_->get_state(i, numbers(x).subspan(static_cast<std::size_t>(i) * n, n));
    }
  }
  void set_states(const Read& x) {
    const auto n = static_cast<std::size_t>(ensemble_->state_size());
    expect_numbers(x.size(), n);
    ensemble_->set_states(numbers(x));
    ensemble_->reset();
  }
  void set_parameter(int replica, const std::string& path, double value) {
    portwave::set_parameter(*ensemble_, *scenario_, replica, path, value);
  }
  double parameter(int replica, const std::string& path) const {
    return portwave::parameter(*ensemble_, *scenario_, replica, path);
  }
  void set_inputs(const Read& u) {
    const auto m = static_cast<std::size_t>(ensemble_->input_size());
    expect_numbers(u.size(), m);
    for (int i = 0; i < ensemble_->replicas(); ++i) {
      for (std::size_t k = 0; k < m; ++k) {
        ensemble_->set_input(i, static_cast<int>(k), u.data()[static_cast<std::size_t>(i) * m + k]);
      }
    }
  }
  nb::dict status(int replica) const {
    const portwave::ReplicaStatus own = ensemble_->status(replica);
    nb::dict out;
    out["failed"] = own.failed;
    out["error"] = own.error;
    out["part"] = own.part;
    out["steps"] = own.steps;
    out["iterations"] = own.iterations;
    out["not_converged"] = own.not_converged;
    out["guard_uses"] = own.guard.uses;
    return out;
  }
  nb::dict energy(int replica) const { return as_dict(ensemble_->energy(replica)); }
  std::string certificate(int replica) const {
    return std::string(to_string(ensemble_->certificate(replica).status));
  }
  std::vector<std::string> state_names() const { return state_names_of(ensemble_->system()); }
  std::vector<std::string> input_names() const { return input_names_of(ensemble_->system()); }
  nb::list notes() const { return pairs_of(notes_); }
  /// For each named state its index among the states of a replica, and for each of those the index of
  /// its name; None where both orders are the same.
  nb::tuple state_places() const {
    if (ensemble_->system().cuts().empty()) return nb::make_tuple(nb::none(), nb::none());
    const portwave::StateNames names = portwave::state_names(ensemble_->system());
    return nb::make_tuple(names.place, names.name_of);
  }
  int replicas() const { return ensemble_->replicas(); }
  int failures() const { return ensemble_->failures(); }
  std::int64_t step_index() const { return ensemble_->step_index(); }
  std::string execution() const { return ensemble_->execution(); }
  std::string method() const { return ensemble_->method().reason; }
  double step_s() const { return ensemble_->options_of(0).step_s; }

 private:
  /// Checks that `found` is `each` times the number of replicas.
  void expect_numbers(std::size_t found, std::size_t each) const {
    const std::size_t wanted = static_cast<std::size_t>(ensemble_->replicas()) * each;
    if (found == wanted) return;
    throw std::invalid_argument(std::to_string(found) + " numbers are given, and " +
                                std::to_string(wanted) + " are needed: " + std::to_string(each) +
                                " for each replica");
  }

  std::optional<portwave::Scenario> scenario_;
  std::optional<portwave::Ensemble> ensemble_;
  portwave::Issues notes_;
};

}  // namespace

void bind_ensemble(nb::module_& m) {
  nb::class_<PyEnsemble>(m, "Ensemble", "The compiled half of portwave.Ensemble.")
      .def(nb::init<const std::string&, const std::string&, const std::vector<HandedMatrix>&,
                    const std::vector<std::pair<std::string, std::string>>&, int,
                    const std::vector<std::string>&, const Matrix&, int, int, bool, bool>(),
           "text"_a, "folder"_a, "matrices"_a, "overrides"_a, "replicas"_a, "paths"_a, "values"_a,
           "threads"_a, "chunk"_a, "certify"_a, "allow_plugins"_a)
      .def("rollout", &PyEnsemble::rollout, "x0"_a.none(), "u"_a.none(), "steps"_a, "x"_a,
           "every"_a)
      .def("step", &PyEnsemble::step, "steps"_a)
      .def("states", &PyEnsemble::states, "x"_a)
      .def("set_states", &PyEnsemble::set_states, "x"_a)
      .def("set_inputs", &PyEnsemble::set_inputs, "u"_a)
      .def("set_parameter", &PyEnsemble::set_parameter, "replica"_a, "path"_a, "value"_a)
      .def("parameter", &PyEnsemble::parameter, "replica"_a, "path"_a)
      .def("status", &PyEnsemble::status, "replica"_a)
      .def("energy", &PyEnsemble::energy, "replica"_a)
      .def("certificate", &PyEnsemble::certificate, "replica"_a)
      .def_prop_ro("state_names", &PyEnsemble::state_names)
      .def_prop_ro("input_names", &PyEnsemble::input_names)
      .def_prop_ro("notes", &PyEnsemble::notes)
      .def_prop_ro("state_places", &PyEnsemble::state_places)
      .def_prop_ro("replicas", &PyEnsemble::replicas)
      .def_prop_ro("failures", &PyEnsemble::failures)
      .def_prop_ro("step_index", &PyEnsemble::step_index)
      .def_prop_ro("execution", &PyEnsemble::execution)
      .def_prop_ro("method", &PyEnsemble::method)
      .def_prop_ro("step_s", &PyEnsemble::step_s);
}
