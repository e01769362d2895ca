// Changes of a run between two steps: settable inputs, and the components of parts.

#include <algorithm>
#include <cmath>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "portwave/coupling/system/derived_systems.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/name_search.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "signals/signal_run.hpp"
#include "step/event_watch.hpp"
#include "step/states/start_check.hpp"
#include "step/step_engine.hpp"

namespace portwave {
namespace {

/// Whether the outputs of a part at its ports depend on the inputs there in another way.
bool have_other_feedthrough(const Component& a, const Component& b) {
  const Subsystem *const x = a.port_hamiltonian(), *const y = b.port_hamiltonian();
  if (x == nullptr || y == nullptr) return false;
  const auto differ = [](const SparseMatrix& M, const SparseMatrix& N) {
    return SparseMatrix(M - N).squaredNorm() != 0.0;
  };
  return x->has_port_laws() || !x->constant_structure() || x->linear_form().E != nullptr ||
         differ(x->structure().S, y->structure().S) || differ(x->structure().N, y->structure().N);
}

void refuse_non_finite(double value) {
  if (std::isfinite(value)) return;
  throw std::invalid_argument(fmt::format("an input must be finite, got {}", shown_number(value)));
}

}  // namespace

InputSlot Stepper::find_input(std::string_view path) const {
  const auto inputs = system().settable_inputs();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    names.push_back(system().input_label(inputs[i]));
    if (names.back() == path) return {static_cast<int>(i)};
  }
  std::string what = fmt::format("no settable input is named \"{}\".", path);
  if (names.empty()) what += " The system has none";
  throw std::out_of_range(what + NameSearch(std::move(names)).did_you_mean(path));
}

std::span<double> Stepper::settings() const {
  const std::span<double> settings = engine_->settings();
  if (settings.empty() && !system().settable_inputs().empty()) {
    throw std::logic_error("the method couples without waves: inputs are functions of time only");
  }
  return settings;
}

void Stepper::set_input(InputSlot input, double value) {
  const std::span<double> held = settings();
  if (input.slot < 0 || at(input.slot) >= held.size()) {
    throw std::out_of_range(fmt::format("the system has {} settable inputs, and none of number {}",
                                        held.size(), input.slot));
  }
  refuse_non_finite(value);
  engine_->activity().expect_whole_step();
  if (held[at(input.slot)] == value) return;
  held[at(input.slot)] = value;
  engine_->settings_changed();
}

double Stepper::input(InputSlot input) const {
  const std::span<double> held = settings();
  if (input.slot < 0 || at(input.slot) >= held.size()) {
    throw std::out_of_range(fmt::format("the system has {} settable inputs, and none of number {}",
                                        held.size(), input.slot));
  }
  return held[at(input.slot)];
}

void Stepper::set_inputs(std::span<const double> values) {
  const std::span<double> held = settings();
  if (values.size() != held.size()) {
    throw std::out_of_range(fmt::format(
        "the system has {} settable inputs, and {} values are given", held.size(), values.size()));
  }
  for (const double value : values) refuse_non_finite(value);
  engine_->activity().expect_whole_step();
  if (std::ranges::equal(values, held)) return;
  std::ranges::copy(values, held.begin());
  engine_->settings_changed();
}

double& Stepper::setting(int part, int input) const {
  const int slot = system().find_setting(part, input);
  if (slot < 0) {
    throw std::out_of_range(
        fmt::format("part {} has no external input {} that is Signal::settable", part, input));
  }
  return settings()[at(slot)];
}

void Stepper::set_input(int part, int input, double value) {
  double& held = setting(part, input);
  refuse_non_finite(value);
  engine_->activity().expect_whole_step();
  if (held == value) return;
  held = value;
  engine_->settings_changed();
}

double Stepper::input(int part, int input) const { return setting(part, input); }

void Stepper::set_component(int part, std::shared_ptr<const Component> component) {
  const auto parts = system().parts();
  if (part < 0 || at(part) >= parts.size()) {
    throw std::out_of_range(fmt::format("there is no part {} of {}", part, parts.size()));
  }
  if (own_system_ == nullptr) {
    throw std::logic_error(
        "the system is somebody else's: a stepper exchanges parts of a system that it has taken "
        "over, as in Stepper(std::move(system), options)");
  }
  const Acting acting(engine_->activity(), Activity::Kind::change);
  const std::shared_ptr<const Component> present = parts[at(part)].component;
  std::string defect = component == nullptr ? "there is none" : std::string();
  if (defect.empty()) defect = exchange_defect(*present, *component);
  if (defect.empty() && component->port_hamiltonian() == nullptr) {
    defect = "it is opaque, and the account of its energy would not close";
  }
  if (defect.empty()) {
    const Issues issues = component->check_initial_state(state(part).data());
    if (!issues.empty()) defect = "it cannot be in this state: " + issues.front().what;
  }
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument(fmt::format(
        "the component cannot take the place of part \"{}\": {}", parts[at(part)].name, why));
  };
  if (!defect.empty()) refuse(defect);
  const double* const x = state(part).data();
  const double more_J =
      component->port_hamiltonian()->storage(x) - present->port_hamiltonian()->storage(x);
  if (!std::isfinite(more_J)) refuse("its stored energy is not finite in this state");
  if (start_check_ != nullptr) start_check_->part_changes(part);
  exchange_component(*own_system_, part, component);
  try {
    engine_->component_changed(part, more_J);
  } catch (const std::exception& error) {
    exchange_component(*own_system_, part, present);
    engine_->component_restored(part);
    if (dynamic_cast<const std::invalid_argument*>(&error) != nullptr) refuse(error.what());
    throw;
  }
  identity_.reset();
  const StartsAtOdds notes = starts_at_odds();
  if (start_check_ == nullptr || have_other_feedthrough(*present, *component)) {
    start_check_ = StartCheck::made(*engine_, options_);
  }
  if (start_check_ == nullptr) return;
  start_check_->take_notes(notes);
  start_check_->part_has_changed(part);
}

}  // namespace portwave
