#include "adapters/fmi/fmu_program.hpp"

namespace portwave::fmi {

Program::Program(const std::shared_ptr<const Fmu>& fmu, const std::string& name,
                 std::span<const StartValue> start, double start_s)
    : instance_(Instance::create(fmu, name, start, start_s)) {
  initial_.time_s = start_s;
  if (fmu->description().saves_state) save(initial_, start_s);
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
