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
#include "portwave/subsystems/linear/linear_part.hpp"
#include "signals/signal_run.hpp"
#include "step/event_watch.hpp"
#include "step/states/exchanges.hpp"
#include "step/states/start_check.hpp"
#include "step/step_engine.hpp"

namespace portwave {
namespace {

/// Whether M is t·N with t > 0, entry by entry.
bool is_multiple(const SparseMatrix& M, const SparseMatrix& N) {
  constexpr double kRounding = 1e-12;
  double t = 0.0;
  for (int j = 0; j < M.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(M, j); it; ++it) {
      const double other = N.coeff(it.row(), j);
      if ((it.value() == 0.0) != (other == 0.0)) return false;
      if (other == 0.0) continue;
      const double own = it.value() / other;
      if (t == 0.0) t = own;
      if (!(t > 0.0) || std::abs(own - t) > kRounding * t) return false;
    }
  }
  return M.nonZeros() == N.nonZeros();
}

/// Whether M and N are diagonal, with positive entries at the same places.
bool are_like_diagonals(const SparseMatrix& M, const SparseMatrix& N) {
  for (const auto& [own, other] : {std::pair{&M, &N}, std::pair{&N, &M}}) {
    for (int j = 0; j < own->outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(*own, j); it; ++it) {
        if (it.value() == 0.0) continue;
        if (it.row() != j || it.value() < 0.0 || !(other->coeff(j, j) > 0.0)) return false;
      }
    }
  }
  return true;
}

/// Whether the constraints that joints put on states may be others. They are null vectors of the equations of
/// joints, which are lossless, and of what feeds through parts: of passive resistances, whose sum with what
/// is lossless is singular just where both are, so that their values do not matter.
bool have_other_feedthrough(const Component& a, const Component& b) {
  const Subsystem *const x = a.port_hamiltonian(), *const y = b.port_hamiltonian();
  if (x == nullptr || y == nullptr) return false;
  if (x->has_port_laws() != y->has_port_laws() || !x->constant_structure() ||
      x->linear_form().E != nullptr) {
    return true;
  }
  const SparseMatrix &S = x->structure().S, &T = y->structure().S;
  if (SparseMatrix(x->structure().N - y->structure().N).squaredNorm() != 0.0) return true;
  if (SparseMatrix(S - T).squaredNorm() == 0.0) return false;
  return x->is_active() || y->is_active() || !(is_multiple(S, T) || are_like_diagonals(S, T));
}

/// The states in which a part has with `next` the momenta, charges and flux linkages, Qx, that it has with `present` in
/// the states x. Empty where that is x: elongations are such themselves, and do not depend on a stiffness.
std::vector<double> states_that_keep_momenta(const Component& present, const Component& next,
                                             std::span<const double> x) {
  constexpr double kRounding = 1e-10;
  const auto* const before = dynamic_cast<const LinearPortHamiltonian*>(present.port_hamiltonian());
  const auto* const after = dynamic_cast<const LinearPortHamiltonian*>(next.port_hamiltonian());
  if (before == nullptr || after == nullptr || before->linear_form().E != nullptr) return {};
  // In momenta z, with x = Tz, J = T J₀ Tᵀ and G = T G₀. Where T⁺ = D T the ratios of entries tell D: of rows of ports
  // D, of couplings DᵢDⱼ.
  const SparseMatrix &G = before->structure().G, &H = after->structure().G;
  const SparseMatrix &J = before->structure().J, &K = after->structure().J;
  if (G.nonZeros() != H.nonZeros() || J.nonZeros() != K.nonZeros()) return {};
  std::vector<double> ratio(x.size(), 0.0);  // 0: not known
  for (Eigen::Index j = 0; j < G.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(G, j); it; ++it) {
      if (it.value() != 0.0)
        ratio[static_cast<std::size_t>(it.row())] = H.coeff(it.row(), j) / it.value();
    }
  }
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (Eigen::Index j = 0; j < J.outerSize(); ++j) {
      const double known = ratio[static_cast<std::size_t>(j)];
      if (known == 0.0) continue;
      for (SparseMatrix::InnerIterator it(J, j); it; ++it) {
        double& own = ratio[static_cast<std::size_t>(it.row())];
        if (own != 0.0 || it.value() == 0.0) continue;
        own = K.coeff(it.row(), j) / (it.value() * known);
        goes_on = own != 0.0 || goes_on;
      }
    }
  }
  std::ranges::replace(ratio, 0.0, 1.0);
  const auto is_same = [](double own) { return std::abs(own - 1.0) <= kRounding; };
  if (std::ranges::all_of(ratio, is_same)) return {};
  // A state that is no momentum, but has another ratio, is left to itself.
  for (Eigen::Index j = 0; j < before->Q().outerSize(); ++j) {
    if (is_same(ratio[static_cast<std::size_t>(j)])) continue;
    for (SparseMatrix::InnerIterator it(before->Q(), j); it; ++it) {
      const double kept = after->Q().coeff(it.row(), j) * ratio[static_cast<std::size_t>(j)];
      if (!(std::abs(kept - it.value()) <= kRounding * std::abs(it.value()))) return {};
    }
  }
  std::vector<double> out(x.begin(), x.end());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] *= ratio[i];
  return out;
}

bool is_sampled_before_every_step(int signal, const SignalRun& signals,
                                  const StepperOptions& options) {
  const auto has = [signal](const SignalGraph::Node& own) {
    return own.first_output <= signal && signal < own.first_output + own.outputs;
  };
  const auto node = std::ranges::find_if(signals.graph().nodes(), has);
  return node != signals.graph().nodes().end() && node->every == 1 &&
         options.signals_every_s <= 1.5 * options.step_s;
}

/// Whether a value changes by a few per cent at most.
bool is_little(double now, double before) {
  return std::abs(now - before) <= 0.05 * std::max(std::abs(now), std::abs(before));
}

/// `slot`: of a settable input.
void refuse_non_finite(const System& system, int slot, double value) {
  if (std::isfinite(value)) return;
  throw std::invalid_argument(fmt::format(
      "the input {} must be finite, got {}",
      in_quotes(system.input_label(system.settable_inputs()[at(slot)])), shown_number(value)));
}

/// What to do about the name of an input that is not among the settable ones; empty where nothing has the name.
std::string text_of_other(const System& system, std::string_view path) {
  const std::size_t dot = std::min(path.rfind('.'), path.size());
  const std::string_view name = path.substr(std::min(dot + 1, path.size()));
  for (const Part& part : system.parts()) {
    if (part.name != path.substr(0, dot)) continue;
    const Signature& signature = part.component->signature();
    if (std::ranges::any_of(signature.inputs, [&](const auto& own) { return own.name == name; })) {
      return fmt::format(
          " It is an input that is not settable: say so before the system is built, \"inputs\": "
          "{{\"{}\": \"settable\"}}, or Signal::settable()",
          name);
    }
    if (std::ranges::any_of(signature.states, [&](const auto& own) { return own.name == name; })) {
      return " It is a state: set_states changes states";
    }
  }
  return {};
}

}  // namespace

InputSlot Stepper::find_input(std::string_view path) const {
  const auto inputs = system().settable_inputs();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    names.push_back(system().input_label(inputs[i]));
    if (names.back() == path) return {static_cast<int>(i)};
  }
  const std::span<const int> signals =
      signals_ == nullptr ? std::span<const int>() : signals_->settable();
  for (std::size_t k = 0; k < signals.size(); ++k) {
    names.push_back(signals_->graph().nodes()[at(signals[k])].name);
    if (names.back() == path) return {static_cast<int>(inputs.size() + k)};
  }
  std::string what = fmt::format("no settable input is named {}.", in_quotes(path));
  if (const std::string other = text_of_other(system(), path); !other.empty()) {
    throw std::out_of_range(what + other);
  }
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

int Stepper::signal_of(InputSlot input) const {
  const int k = input.slot - static_cast<int>(system().settable_inputs().size());
  return signals_ != nullptr && k < std::ssize(signals_->settable()) ? k : -1;
}

/// Blocks that were sampled at this very time are sampled again.
void Stepper::set_signal(int k, double value) {
  if (!std::isfinite(value)) {
    const SignalGraph::Node& node = signals_->graph().nodes()[at(signals_->settable()[at(k)])];
    throw std::invalid_argument(fmt::format("the signal {} must be finite, got {}",
                                            in_quotes(node.name), shown_number(value)));
  }
  engine_->activity().expect_whole_step();
  if (signals_->setting(k) == value) return;
  const bool again = sampled_ >= 0 && signals_->sampled_s() == time_s();
  signals_->set(k, value, again);
  if (!again) return;
  --sampled_;
  sample_signals();
}

void Stepper::set_input(InputSlot input, double value) {
  if (const int k = signal_of(input); k >= 0) return set_signal(k, value);
  const std::span<double> held = settings();
  if (input.slot < 0 || at(input.slot) >= held.size()) {
    throw std::out_of_range(fmt::format("the system has {} settable inputs, and none of number {}",
                                        held.size(), input.slot));
  }
  refuse_non_finite(system(), input.slot, value);
  engine_->activity().expect_whole_step();
  if (held[at(input.slot)] == value) return;
  held[at(input.slot)] = value;
  engine_->settings_changed();
}

double Stepper::input(InputSlot input) const {
  if (const int k = signal_of(input); k >= 0) return signals_->setting(k);
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
  for (std::size_t i = 0; i < values.size(); ++i) {
    refuse_non_finite(system(), static_cast<int>(i), values[i]);
  }
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
  refuse_non_finite(system(), system().find_setting(part, input), value);
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
  exchange(part, component);
}

void Stepper::exchange(int part, const std::shared_ptr<const Component>& component) {
  const auto parts = system().parts();
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
  try {
    put_component(part, component, more_J);
  } catch (const std::invalid_argument& error) {
    refuse(error.what());
  }
  note_exchange(part, present);
  if (start_check_ != nullptr) start_check_->part_has_changed(part);
}

void Stepper::put_component(int part, const std::shared_ptr<const Component>& component,
                            double more_J) {
  const std::shared_ptr<const Component> present = system().parts()[at(part)].component;
  exchange_component(*own_system_, part, component);
  try {
    engine_->component_changed(part, more_J);
  } catch (...) {
    exchange_component(*own_system_, part, present);
    engine_->component_restored(part);
    throw;
  }
  if (!have_other_feedthrough(*present, *component)) return;
  const std::unique_ptr<StartCheck> before = std::move(start_check_);
  start_check_ = StartCheck::made(*engine_, options_);
  if (start_check_ == nullptr) return;
  if (before != nullptr) start_check_->take_notes(*before);
  start_check_->joints_have_changed(
      fmt::format("part {} has changed", in_quotes(system().parts()[at(part)].name)));
}

/// Parameters that follow signals, before a step.
void Stepper::drive_parameters() {
  const std::span<const SignalGraph::ParameterActuator> driven =
      signals_->graph().parameter_actuators();
  const auto count = static_cast<int>(driven.size());
  const int stages = engine_->waves() != nullptr ? engine_->waves()->stages() : 0;
  bool has_changed = false;
  bool binds = start_check_ != nullptr && start_check_->are_joints_new();  // by the program
  for (int i = signals_->next_change(0); i < count; i = signals_->next_change(i + 1)) {
    const SignalGraph::ParameterActuator& own = driven[at(i)];
    const std::shared_ptr<const Component> present = system().parts()[at(own.part)].component;
    has_changed = true;
    const bool anew = !options_.sizes && stages == 1 &&
                      is_sampled_before_every_step(own.signal, *signals_, options_);
    binds = binds || !anew || !is_little(signals_->wanted(i), signals_->in_force(i));
    try {
      exchange(own.part, own.with(*present, signals_->wanted(i)));
    } catch (const std::exception& error) {
      const auto* const config = dynamic_cast<const ConfigError*>(&error);
      throw StepError::of_signal(
          signals_->graph().label(own.signal), step_index(), StepFault::threw,
          fmt::format("{}.{} {}", system().parts()[at(own.part)].name, own.parameter,
                      config != nullptr ? config->issues().front().what : error.what()));
    }
    const std::span<const double> x = state(own.part);
    const Component& next = *system().parts()[at(own.part)].component;
    std::vector<double> kept = states_that_keep_momenta(*present, next, x);
    // States at the start belong to the value that is in force then, unless that goes on from the parameter.
    const bool is_start = step_index() == 0 && time_s() == options_.start_s;
    if (is_start && !std::ranges::equal(kept, x, is_little)) kept.clear();
    if (!kept.empty()) {
      const Subsystem& physics = *next.port_hamiltonian();
      engine_->put_state(own.part, kept, physics.storage(kept.data()) - physics.storage(x.data()));
      if (start_check_ != nullptr && start_check_->constraints().ties(own.part)) {
        start_check_->joints_have_changed(fmt::format(
            "{} of {} has changed", own.parameter, in_quotes(system().parts()[at(own.part)].name)));
        binds = true;
      }
    }
    signals_->note_in_force(i);
  }
  // One conserving stage holds a joint in its mean. With a value from the middle of each step that is exact to order 2,
  // also for the states at its ends, which an impulse at its start would bring to that value.
  if (has_changed && !binds && start_check_ != nullptr) start_check_->joints_may_move_on();
}

/// `before`: the component that the part had.
void Stepper::note_exchange(int part, const std::shared_ptr<const Component>& before) {
  const auto original = originals_.try_emplace(part, before).first;
  if (exchanged_ == nullptr || is_exchanged_shared_) {
    exchanged_ = exchanged_ == nullptr ? std::make_shared<Exchanges>()
                                       : std::make_shared<Exchanges>(*exchanged_);
    is_exchanged_shared_ = false;
  }
  const std::shared_ptr<const Component>& present = system().parts()[at(part)].component;
  if (present == original->second) {
    exchanged_->parts.erase(part);
  } else {
    exchanged_->parts.insert_or_assign(part, present);
  }
}

void Stepper::set_states(std::span<const double> states) {
  const auto parts = system().parts();
  std::size_t size = 0;
  for (const Part& part : parts) size += part.initial_state.size();
  if (states.size() != size) {
    throw std::invalid_argument(
        fmt::format("the system has {} states, and {} numbers are given", size, states.size()));
  }
  const Acting acting(engine_->activity(), Activity::Kind::change);
  constexpr int kMostTold = 8;
  std::string defects;
  int count = 0;
  const auto add = [&](const std::string& what) {
    if (++count <= kMostTold) defects += (defects.empty() ? "" : "; ") + what;
  };
  const double* own = states.data();
  for (const Part& part : parts) {
    const Subsystem* const physics = part.port_hamiltonian();
    if (physics == nullptr) {
      throw std::logic_error(fmt::format(
          "part {} is opaque: the account of its energy would not close over other states",
          in_quotes(part.name)));
    }
    bool is_finite = true;
    for (std::size_t k = 0; k < part.initial_state.size(); ++k) {
      if (std::isfinite(own[k])) continue;
      is_finite = false;
      add(fmt::format("part {}: state {} must be finite, got {}", in_quotes(part.name),
                      in_quotes(part.component->signature().states[k].name), shown_number(own[k])));
    }
    if (is_finite) {
      for (const Issue& issue : part.component->check_initial_state(own)) {
        add(fmt::format("part {} cannot be in this state: {}", in_quotes(part.name), issue.what));
      }
      if (!std::isfinite(physics->storage(own))) {
        add(fmt::format("part {}: its stored energy is not finite", in_quotes(part.name)));
      }
    }
    own += part.initial_state.size();
  }
  if (count > kMostTold) defects += fmt::format("; and {} more", count - kMostTold);
  if (count > 0) throw std::invalid_argument(defects);
  engine_->states_changed(states);
  if (events_ != nullptr) events_->restart();
  if (start_check_ != nullptr) start_check_->states_have_changed();
}

}  // namespace portwave
