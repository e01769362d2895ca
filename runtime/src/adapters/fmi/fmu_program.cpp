#include "adapters/fmi/fmu_program.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "adapters/fmi/process/fmu_remote.hpp"
#include "portwave/subsystems/base/digest.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::fmi {

namespace {

/// What the FMU offers is used.
InstanceUses uses_of(const ModelDescription& model, const Shown& shown) {
  InstanceUses out;
  out.events = model.has_event_mode;
  out.any_step = model.takes_any_step;
  out.early_return = (model.has_event_mode || model.might_return_early) && model.takes_any_step;
  out.intermediate = model.provides_intermediate;
  if (out.events || out.early_return || out.intermediate) out.watched = shown.watched;
  if (!out.events) return out;
  out.clocked = shown.clocked;
  for (std::size_t i = 0; i < model.clocks.size(); ++i) {
    const Clock& own = model.clocks[i];
    if (!own.is_periodic_input() && !own.is_triggered_output()) continue;
    out.clocks.push_back({.name = own.name,
                          .reference = own.reference,
                          .bit = ClockMask{1} << i,
                          .is_output = own.is_triggered_output(),
                          .asks_interval = own.variability == "fixed",
                          .interval_s = own.interval_s.value_or(0.0),
                          .shift_s = own.shift_s});
  }
  return out;
}

/// Start values of numbers as a list, and their values.
VariableList list_of(const StartValue& own, const double*& values) {
  VariableList out;
  if (const auto* const array = std::get_if<NumberArray>(&own.value)) {
    out.add_all(*own.variable, array->values.size());
    values = array->values.data();
  } else {
    out.add(*own.variable);
    values = &std::get<double>(own.value);
  }
  return out;
}

}  // namespace

std::unique_ptr<Instance> start_instance(const std::shared_ptr<const Fmu>& fmu,
                                         const std::string& name, std::span<const StartValue> start,
                                         double start_s, const Isolation& isolation,
                                         const Shown& shown) {
  InstanceOrigin origin = {.file = fmu->file().filename().string(),
                           .name = name,
                           .token = fmu->description().token,
                           .resources = fmu->resources(),
                           .uses = uses_of(fmu->description(), shown),
                           .keeps = fmu};
  std::unique_ptr<Instance> instance =
      isolation.in_a_process
          ? instantiate_in_a_process(*fmu, std::move(origin), isolation.time_limit_s)
          : instantiate(fmu->functions(), std::move(origin));
  const auto is_structural = [](const StartValue& own) {
    return own.variable->role == Role::structural_parameter;
  };
  VariableList sizes;
  std::vector<double> values;
  for (const StartValue& own : start) {
    if (!is_structural(own)) continue;
    sizes.add(*own.variable);
    values.push_back(std::get<double>(own.value));
  }
  if (!sizes.empty()) instance->configure(sizes, values.data());
  for (const StartValue& own : start) {
    if (is_structural(own)) continue;
    if (const auto* const text = std::get_if<std::string>(&own.value)) {
      instance->set_text(own.variable->reference, *text);
    } else {
      const double* numbers = nullptr;
      const VariableList list = list_of(own, numbers);
      instance->set(list, numbers);
    }
  }
  instance->initialise(start_s);
  return instance;
}

Program::Program(const std::shared_ptr<const Fmu>& fmu, const std::string& name,
                 std::span<const StartValue> start, double start_s, const Isolation& isolation,
                 const Shown& shown, bool saves)
    : instance_(start_instance(fmu, name, start, start_s, isolation, shown)) {
  initial_.time_s = start_s;
  if (saves) save(initial_, start_s);
  instance_->finish();
}

Program::~Program() { instance_->release(initial_.handle); }

void Program::save(SavedState& state, double time_s) {
  // Not over the older state: there are FMUs that then keep that one.
  instance_->release(state.handle);
  instance_->save(state.handle);
  state.generation = at_ = ++newest_;
  state.time_s = time_s;
}

void Program::restore(const SavedState& state) {
  if (at_ == state.generation) return;
  at_ = 0;
  instance_->restore(state.handle);
  at_ = state.generation;
}

void Program::step(double time_s, double step_s) {
  at_ = 0;
  instance_->step(time_s, step_s);
}

namespace {

/// When a state is, before the bytes of the program, and of which FMU it is.
struct StateHead {
  std::uint64_t fmu;
  double time_s, since_s, step_s;
  std::int64_t steps;
};

std::uint64_t digest_of(const ModelDescription& model) {
  Digest out;
  out.add(static_cast<std::uint64_t>(model.version));
  out.add(std::string_view(model.name));
  out.add(std::string_view(model.token));
  return out.value();
}

}  // namespace

std::vector<std::byte> Program::to_bytes(const SavedState& state, const Fmu& fmu) {
  const StateHead head = {digest_of(fmu.description()), state.time_s, state.since_s, state.step_s,
                          state.steps};
  const std::vector<std::byte> own = instance_->to_bytes(state.handle);
  std::vector<std::byte> out(sizeof(head) + own.size());
  std::memcpy(out.data(), &head, sizeof(head));
  std::ranges::copy(own, out.begin() + sizeof(head));
  return out;
}

void Program::adopt(SavedState& state, std::span<const std::byte> bytes, const Fmu& fmu) {
  StateHead head = {};
  if (bytes.size() >= sizeof(head)) std::memcpy(&head, bytes.data(), sizeof(head));
  if (head.fmu != digest_of(fmu.description())) {
    throw FmuFault(
        fmt::format("it was another FMU than {}", in_quotes(fmu.file().filename().string())));
  }
  const StateHandle own = instance_->from_bytes(bytes.subspan(sizeof(head)));
  instance_->release(state.handle);
  state = {.handle = own,
           .generation = ++newest_,
           .time_s = head.time_s,
           .since_s = head.since_s,
           .step_s = head.step_s,
           .steps = head.steps};
}

void Program::release(SavedState& state) {
  instance_->release(state.handle);
  state.generation = 0;
}

}  // namespace portwave::fmi
