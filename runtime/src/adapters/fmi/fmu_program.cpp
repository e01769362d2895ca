#include "adapters/fmi/fmu_program.hpp"

#include <utility>
#include <variant>

#include "adapters/fmi/fmu_remote.hpp"

namespace portwave::fmi {

std::unique_ptr<Instance> start_instance(const std::shared_ptr<const Fmu>& fmu,
                                         const std::string& name, std::span<const StartValue> start,
                                         double start_s, const Isolation& isolation) {
  InstanceOrigin origin = {.file = fmu->file().filename().string(),
                           .name = name,
                           .token = fmu->description().token,
                           .resources = fmu->resources(),
                           .keeps = fmu};
  std::unique_ptr<Instance> instance =
      isolation.in_a_process
          ? instantiate_in_a_process(*fmu, std::move(origin), isolation.time_limit_s)
          : instantiate(fmu->functions(), std::move(origin));
  for (const StartValue& own : start) {
    if (const auto* const text = std::get_if<std::string>(&own.value)) {
      instance->set_text(own.variable->reference, *text);
    } else {
      const Variable* const one[] = {own.variable};
      instance->set(VariableList(one), &std::get<double>(own.value));
    }
  }
  instance->initialise(start_s);
  return instance;
}

Program::Program(const std::shared_ptr<const Fmu>& fmu, const std::string& name,
                 std::span<const StartValue> start, double start_s, const Isolation& isolation)
    : instance_(start_instance(fmu, name, start, start_s, isolation)) {
  initial_.time_s = start_s;
  if (fmu->description().saves_state) save(initial_, start_s);
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

void Program::release(SavedState& state) {
  instance_->release(state.handle);
  state.generation = 0;
}

}  // namespace portwave::fmi
