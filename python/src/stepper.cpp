// A stepper over a scenario, for Python.

#include "stepper.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "derivatives.hpp"
#include "matrices.hpp"
#include "names.hpp"
#include "portwave/runtime/output/recorder.hpp"
#include "portwave/runtime/output/summary.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/named_states.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "readings.hpp"
#include "stepping.hpp"

using namespace nb::literals;

namespace {

using portwave::Quantity;
using portwave::Scenario;
using portwave::Snapshot;
using portwave::StepperOptions;

using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void expect_steps(std::int64_t steps) {
  if (steps >= 0 && steps <= std::int64_t{1} << 53) return;
  throw std::invalid_argument("the number of steps must be from 0 to 2**53, got " +
                              std::to_string(steps));
}

class PyStepper {
 public:
  PyStepper(const std::string& text, const std::string& folder,
            const std::vector<HandedMatrix>& matrices,
            const std::vector<std::pair<std::string, std::string>>& overrides, int threads,
            bool certify, double deadline_s, double pace,
            const std::shared_ptr<portwave::Arena>& arena, bool allows_plugins) {
    std::vector<portwave::Override> changes;
    for (const auto& [pointer, value] : overrides) changes.push_back({pointer, value});
    scenario_ = std::make_shared<Scenario>(portwave::parse_scenario(
        text, "scenario", folder, changes, plugins_of(allows_plugins), matrices_of(matrices)));
    options_ = scenario_->options;
    notes_ = scenario_->notes;
    options_.threads = threads;
    options_.time = {.deadline_s = deadline_s, .pace = pace};
    options_.arena = arena;
    if (!certify) options_.certify = portwave::Certify::none;
    // Other threads may call parts and blocks from Python during the construction.
    const nb::gil_scoped_release unlocked;
    stepper_ = std::make_unique<portwave::Stepper>(std::move(scenario_->system), options_);
  }

  PyStepper* clone() {
    const Stepping stepping(user_);
    auto out = std::unique_ptr<PyStepper>(new PyStepper);
    out->scenario_ = scenario_;
    out->options_ = options_;
    out->quantities_ = quantities_;
    out->report_ = report_;
    out->events_ = events_;
    const nb::gil_scoped_release unlocked;
    out->stepper_ = std::make_unique<portwave::Stepper>(stepper_->clone());
    return out.release();
  }

  void step(std::int64_t steps) {
    const Stepping stepping(user_);
    expect_steps(steps);
    const nb::gil_scoped_release unlocked;
    Interrupts interrupts;
    events_.clear();
    for (std::int64_t i = 0; i < steps; ++i) {
      const bool is_over = ends_with(stepper_->step());
      interrupts.check();
      if (is_over) break;
    }
  }
  void step_by(double step_s) {
    const Stepping stepping(user_);
    const nb::gil_scoped_release unlocked;
    events_.clear();
    (void)ends_with(stepper_->step_by(step_s));
    raise_interrupt();
  }
  void run_until(double time_s) {
    const Stepping stepping(user_);
    const nb::gil_scoped_release unlocked;
    Interrupts interrupts;
    events_.clear();
    while (auto report = stepper_->step_if_before(time_s)) {
      const bool is_over = ends_with(*report);
      interrupts.check();
      if (is_over) break;
    }
  }
  /// Steps `steps` times, or to `end_s` where no number is given, unless an event ends the run before. Returns
  /// rows of the time and the quantities: one now, and one after every `every`-th step.
  nb::ndarray<nb::numpy, double> record(std::optional<std::int64_t> steps, double end_s,
                                        const Indices& quantities, std::int64_t every,
                                        const std::optional<nb::callable>& progress) {
    const Stepping stepping(user_);
    if (every < 1) throw std::invalid_argument("`every` must be at least 1");
    if (steps) expect_steps(*steps);
    std::vector<double> rows;
    std::vector<Quantity> wanted;
    for (std::size_t i = 0; i < quantities.shape(0); ++i) wanted.push_back(quantity(quantities(i)));
    const std::size_t width = wanted.size() + 1;
    const auto add_row = [&] {
      rows.push_back(stepper_->time_s());
      for (const Quantity& one : wanted) rows.push_back(observe(*stepper_, one));
    };
    {
      const nb::gil_scoped_release unlocked;
      Interrupts interrupts;
      auto told = std::chrono::steady_clock::now();
      events_.clear();
      add_row();
      bool is_over = false;
      for (std::int64_t i = 0; !is_over && (!steps || i < *steps); ++i) {
        const auto report = steps ? stepper_->step() : stepper_->step_if_before(end_s);
        if (!report) break;
        is_over = ends_with(*report);
        if ((i + 1) % every == 0) add_row();
        interrupts.check();
        if (!progress || i % 64 != 0) continue;
        const auto now = std::chrono::steady_clock::now();
        if (now - told < std::chrono::milliseconds(100)) continue;
        told = now;
        const nb::gil_scoped_acquire lock;
        (*progress)(stepper_->time_s());
      }
    }
    double* data = nullptr;
    auto out = new_array({rows.size() / width, width}, &data);
    std::ranges::copy(rows, data);
    return out;
  }
  /// Steps under the inputs u (T, m), one row per step, unless an event ends the run before. Returns the
  /// quantities after each step, (T, k).
  nb::ndarray<nb::numpy, double> drive(const Matrix& u, const Indices& quantities) {
    const Stepping stepping(user_);
    const std::size_t inputs = stepper_->system().settable_inputs().size();
    if (u.shape(1) != inputs) {
      throw std::invalid_argument("u is [steps, " + std::to_string(u.shape(1)) +
                                  "], and the system has " + std::to_string(inputs) +
                                  " settable inputs: it must be [steps, " + std::to_string(inputs) +
                                  "]");
    }
    std::vector<Quantity> wanted;
    for (std::size_t i = 0; i < quantities.shape(0); ++i) wanted.push_back(quantity(quantities(i)));
    std::vector<double> rows;
    rows.reserve(u.shape(0) * wanted.size());
    std::size_t made = 0;
    {
      const nb::gil_scoped_release unlocked;
      Interrupts interrupts;
      events_.clear();
      for (bool is_over = false; !is_over && made < u.shape(0); ++made) {
        stepper_->set_inputs({u.data() + made * inputs, inputs});
        is_over = ends_with(stepper_->step());
        for (const Quantity& one : wanted) rows.push_back(observe(*stepper_, one));
        interrupts.check();
      }
    }
    double* data = nullptr;
    auto out = new_array({made, wanted.size()}, &data);
    std::ranges::copy(rows, data);
    return out;
  }

  /// Makes a step for each row of u (T, m), held over it, or T without, unless an event ends the run before.
  /// Returns their derivatives and all states.
  nb::tuple differentiate(const std::optional<Matrix>& u, std::int64_t steps,
                          const std::vector<std::string>& parameters) {
    const Stepping stepping(user_);
    expect_steps(steps);
    const std::size_t inputs = stepper_->system().settable_inputs().size();
    if (u && (u->shape(1) != inputs || static_cast<std::int64_t>(u->shape(0)) != steps)) {
      throw std::invalid_argument("u must be [steps, " + std::to_string(inputs) + "]");
    }
    std::vector<portwave::StepDerivatives> made;
    std::vector<double> rows;
    const auto add_row = [&] {
      for (int part = 0; part < static_cast<int>(stepper_->system().parts().size()); ++part) {
        const auto own = stepper_->state(part);
        rows.insert(rows.end(), own.begin(), own.end());
      }
    };
    {
      const nb::gil_scoped_release unlocked;
      portwave::StepDifferentiator differentiator(*stepper_, *scenario_, options_.step_s,
                                                  parameters);
      Interrupts interrupts;
      add_row();
      events_.clear();
      bool is_over = false;
      for (std::int64_t i = 0; !is_over && i < steps; ++i) {
        if (u) stepper_->set_inputs({u->data() + static_cast<std::size_t>(i) * inputs, inputs});
        portwave::StepReport report;
        made.push_back(differentiator.step(&report));
        is_over = ends_with(report);
        add_row();
        interrupts.check();
      }
    }
    nb::list derivatives;
    for (portwave::StepDerivatives& own : made) derivatives.append(std::move(own));
    return nb::make_tuple(derivatives, array_of(rows));
  }

  void set_parameter(const std::string& path, double value) {
    const Stepping stepping(user_);
    portwave::set_parameter(*stepper_, *scenario_, path, value);
  }
  double parameter(const std::string& path) const {
    user_.expect_readable();
    return portwave::parameter(*stepper_, *scenario_, path);
  }
  /// States in the order of `state_names`: those of a part that is cut once.
  void set_states(const Doubles& values) {
    const Stepping stepping(user_);
    portwave::set_named_states(*stepper_, {values.data(), values.shape(0)});
  }
  void retune() {
    const Stepping stepping(user_);
    if (portwave::WaveView* const waves = stepper_->waves()) waves->tune_again();
  }
  nb::dict linearise(const std::vector<std::string>& outputs) const {
    user_.expect_readable();
    return as_dict(portwave::linearise(*stepper_, outputs));
  }

  double time_s() const {
    user_.expect_readable();
    return stepper_->time_s();
  }
  std::int64_t step_index() const {
    user_.expect_readable();
    return stepper_->step_index();
  }
  double step_s() const { return options_.step_s; }
  double end_s() const {
    return scenario_->steps > 0
               ? options_.start_s + static_cast<double>(scenario_->steps) * options_.step_s
               : scenario_->end_s;
  }
  std::vector<std::string> default_quantities() const {
    std::vector<std::string> out;
    for (const Quantity& one : scenario_->recording.quantities) out.push_back(one.label);
    return out;
  }

  void set_input(int slot, double value) {
    user_.expect_idle();
    stepper_->set_input(portwave::InputSlot{slot}, value);
  }
  int find_input(const std::string& name) const { return stepper_->find_input(name).slot; }
  double read_input(int slot) const {
    user_.expect_readable();
    return stepper_->input(portwave::InputSlot{slot});
  }
  void set_inputs(const Doubles& values) {
    user_.expect_idle();
    const std::size_t inputs = stepper_->system().settable_inputs().size();
    if (values.shape(0) != inputs) {
      throw std::invalid_argument("inputs must be of shape [" + std::to_string(inputs) +
                                  "], got [" + std::to_string(values.shape(0)) + "]");
    }
    stepper_->set_inputs({values.data(), inputs});
  }
  std::vector<std::string> input_names() const { return input_names_of(stepper_->system()); }
  nb::list notes() const { return pairs_of(notes_); }

  int find(const std::string& name) {
    user_.expect_readable();
    const auto known = std::ranges::find(quantities_, name, &Quantity::label);
    if (known != quantities_.end()) return static_cast<int>(known - quantities_.begin());
    quantities_.push_back(portwave::find_quantity(*stepper_, name));
    return static_cast<int>(quantities_.size()) - 1;
  }
  const Quantity& quantity(int index) const {
    if (index < 0 || static_cast<std::size_t>(index) >= quantities_.size()) {
      throw std::out_of_range("there is no quantity of number " + std::to_string(index));
    }
    return quantities_[static_cast<std::size_t>(index)];
  }
  double read(int index) const {
    user_.expect_readable();
    return observe(*stepper_, quantity(index));
  }
  nb::ndarray<nb::numpy, double> read_all(const Indices& indices) const {
    user_.expect_readable();
    double* data = nullptr;
    auto out = new_array({indices.shape(0)}, &data);
    for (std::size_t i = 0; i < indices.shape(0); ++i) {
      data[i] = observe(*stepper_, quantity(indices(i)));
    }
    return out;
  }
  std::string unit(int index) const { return quantity(index).unit; }

  /// Returns a view that the stepper owns; a copy for a part that was cut.
  nb::ndarray<nb::numpy, const double> state(nb::handle self, const std::string& part) const {
    user_.expect_readable();
    const auto x = stepper_->state(part);
    const std::size_t size = x.size();
    if (stepper_->system().find_part(part) < 0) {
      auto own = std::make_unique<double[]>(size);
      std::ranges::copy(x, own.get());
      const double* const data = own.get();
      const nb::capsule owner(own.release(),
                              [](void* p) noexcept { delete[] static_cast<double*>(p); });
      return nb::ndarray<nb::numpy, const double>(data, 1, &size, owner);
    }
    return nb::ndarray<nb::numpy, const double>(x.data(), 1, &size, self);
  }
  nb::ndarray<nb::numpy, double> states() const {
    user_.expect_readable();
    double* data = nullptr;
    const std::size_t count = portwave::named_state_count(stepper_->system());
    auto out = new_array({count}, &data);
    portwave::get_named_states(*stepper_, {data, count});
    return out;
  }
  nb::ndarray<nb::numpy, double> state_at(double time_s) const {
    user_.expect_readable();
    double* data = nullptr;
    const std::size_t count = portwave::named_state_count(stepper_->system());
    auto out = new_array({count}, &data);
    portwave::get_named_states_at(*stepper_, time_s, {data, count});
    return out;
  }
  /// Of the last call that stepped, in order of time.
  nb::list events() const {
    user_.expect_readable();
    nb::list out;
    for (const portwave::Event& event : events_) {
      const portwave::Watch& watch = stepper_->watches()[static_cast<std::size_t>(event.watch)];
      nb::dict one;
      one["time_s"] = event.time_s;
      one["event"] = watch.name;
      one["direction"] = event.rising ? watch.rising : watch.falling;
      out.append(one);
    }
    return out;
  }
  nb::object ended_by() const {
    user_.expect_readable();
    const portwave::Watch* const watch = stepper_->ending_watch();
    return watch == nullptr ? nb::none() : nb::object(nb::cast(watch->name));
  }
  std::vector<std::string> state_names() const { return state_names_of(stepper_->system()); }

  void snapshot(Snapshot& into) const {
    user_.expect_idle();
    stepper_->snapshot(into);
  }
  void restore(const Snapshot& snapshot) {
    const Stepping stepping(user_);
    const nb::gil_scoped_release unlocked;
    stepper_->restore(snapshot);
    events_.assign(stepper_->events().begin(), stepper_->events().end());
  }

  nb::dict energy() const {
    user_.expect_readable();
    return as_dict(stepper_->energy());
  }
  std::string certificate() const {
    user_.expect_readable();
    return std::string(to_string(stepper_->certificate().status));
  }
  nb::dict coupling() const {
    user_.expect_readable();
    const portwave::RunSummary summary = portwave::summarize("", options_, *stepper_, 1.0);
    nb::dict out;
    out["poor"] = summary.is_coupled_poorly();
    out["mismatch_share"] = summary.mismatch_share();
    out["moved_J"] = summary.moved_J;
    out["largest_residual"] = summary.coupling.residual;
    return out;
  }
  nb::object deadline() const {
    user_.expect_readable();
    const auto own = stepper_->deadline();
    return own ? nb::object(as_dict(*own)) : nb::none();
  }
  nb::object resolution() const {
    user_.expect_readable();
    const portwave::RunSummary summary = portwave::summarize("", options_, *stepper_, 1.0);
    if (summary.is_resolved()) return nb::none();
    const portwave::Resolution& worst = *summary.resolution;
    nb::dict out;
    out["kind"] = std::string(to_string(worst.kind));
    out["part"] = summary.unresolved_part;
    out["name"] = summary.unresolved_name;
    out["port"] = summary.unresolved_port;
    out["share"] = worst.share;
    out["h_lambda"] = worst.h_lambda;
    out["step"] = worst.step;
    return out;
  }
  std::vector<std::string> shortcomings() const {
    user_.expect_readable();
    return portwave::summarize("", options_, *stepper_, 1.0).shortcomings();
  }
  nb::object starts_at_odds() const {
    user_.expect_readable();
    const portwave::StartsAtOdds& odds = stepper_->starts_at_odds();
    if (odds.count == 0) return nb::none();
    nb::dict out;
    out["count"] = odds.count;
    out["first_s"] = odds.first_s;
    out["first"] = odds.first;
    return out;
  }
  nb::object impulses() const {
    user_.expect_readable();
    const portwave::Impulses& all = stepper_->impulses();
    return all.count == 0 ? nb::none() : nb::object(as_dict(all));
  }
  std::string method() const { return stepper_->method().reason; }
  nb::dict report() const {
    user_.expect_readable();
    nb::dict out;
    out["step_s"] = report_.step_s;
    out["iterations"] = report_.iterations;
    out["residual"] = report_.residual;
    out["converged"] = report_.converged;
    out["rejected_steps"] = report_.rejected_steps;
    out["stored_J"] = report_.energy.stored_J;
    return out;
  }

 private:
  PyStepper() = default;

  /// Takes a step that was made, and its events. Whether one of these ends the run.
  bool ends_with(const portwave::StepReport& report) {
    report_ = report;
    const auto events = stepper_->events();
    events_.insert(events_.end(), events.begin(), events.end());
    return stepper_->ending_watch() != nullptr;
  }

  std::shared_ptr<Scenario> scenario_;  // without its system; clones share it
  StepperOptions options_;
  std::unique_ptr<portwave::Stepper> stepper_;
  portwave::Issues notes_;
  std::vector<Quantity> quantities_;
  portwave::StepReport report_;
  std::vector<portwave::Event> events_;  // of the last call that stepped
  User user_;
};

}  // namespace

void bind_stepper(nb::module_& m) {
  nb::class_<PyStepper>(m, "Stepper", "The compiled half of portwave.Stepper.")
      .def(nb::init<const std::string&, const std::string&, const std::vector<HandedMatrix>&,
                    const std::vector<std::pair<std::string, std::string>>&, int, bool, double,
                    double, const std::shared_ptr<portwave::Arena>&, bool>(),
           "text"_a, "folder"_a, "matrices"_a, "overrides"_a, "threads"_a, "certify"_a,
           "deadline_s"_a, "pace"_a, "arena"_a.none(), "allow_plugins"_a)
      .def("clone", &PyStepper::clone, nb::rv_policy::take_ownership)
      .def("step", &PyStepper::step, "steps"_a)
      .def("step_by", &PyStepper::step_by, "step_s"_a)
      .def("run_until", &PyStepper::run_until, "time_s"_a)
      .def("record", &PyStepper::record, "steps"_a.none(), "end_s"_a, "quantities"_a, "every"_a,
           "progress"_a.none())
      .def("drive", &PyStepper::drive, "u"_a, "quantities"_a)
      .def("differentiate", &PyStepper::differentiate, "u"_a.none(), "steps"_a, "parameters"_a)
      .def_prop_ro("time_s", &PyStepper::time_s)
      .def_prop_ro("step_index", &PyStepper::step_index)
      .def_prop_ro("step_s", &PyStepper::step_s)
      .def_prop_ro("end_s", &PyStepper::end_s)
      .def_prop_ro("default_quantities", &PyStepper::default_quantities)
      .def("set_input", &PyStepper::set_input, "slot"_a, "value"_a)
      .def("read_input", &PyStepper::read_input, "slot"_a)
      .def("set_inputs", &PyStepper::set_inputs, "values"_a)
      .def("find_input", &PyStepper::find_input, "name"_a)
      .def_prop_ro("input_names", &PyStepper::input_names)
      .def_prop_ro("notes", &PyStepper::notes)
      .def("find", &PyStepper::find, "name"_a)
      .def("read", &PyStepper::read, "quantity"_a)
      .def("read_all", &PyStepper::read_all, "quantities"_a)
      .def("unit", &PyStepper::unit, "quantity"_a)
      .def(
          "state",
          [](nb::handle_t<PyStepper> self, const std::string& part) {
            return nb::cast<PyStepper&>(self).state(self, part);
          },
          "part"_a)
      .def("set_parameter", &PyStepper::set_parameter, "path"_a, "value"_a)
      .def("set_states", &PyStepper::set_states, "states"_a)
      .def("parameter", &PyStepper::parameter, "path"_a)
      .def("retune", &PyStepper::retune)
      .def("linearise", &PyStepper::linearise, "outputs"_a)
      .def("states", &PyStepper::states)
      .def("state_at", &PyStepper::state_at, "time_s"_a)
      .def_prop_ro("events", &PyStepper::events)
      .def_prop_ro("ended_by", &PyStepper::ended_by)
      .def_prop_ro("state_names", &PyStepper::state_names)
      .def("snapshot", &PyStepper::snapshot, "into"_a)
      .def("restore", &PyStepper::restore, "snapshot"_a)
      .def_prop_ro("energy", &PyStepper::energy)
      .def_prop_ro("certificate", &PyStepper::certificate)
      .def_prop_ro("coupling", &PyStepper::coupling)
      .def_prop_ro("deadline", &PyStepper::deadline)
      .def_prop_ro("starts_at_odds", &PyStepper::starts_at_odds)
      .def_prop_ro("impulses", &PyStepper::impulses)
      .def_prop_ro("resolution", &PyStepper::resolution)
      .def_prop_ro("shortcomings", &PyStepper::shortcomings)
      .def_prop_ro("method", &PyStepper::method)
      .def_prop_ro("report", &PyStepper::report);
}
