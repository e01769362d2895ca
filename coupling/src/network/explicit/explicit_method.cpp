#include "portwave/coupling/network/explicit_method.hpp"

#include <utility>

#include "network/explicit/explicit_stepper.hpp"

namespace portwave {

ExplicitMethod::ExplicitMethod() = default;
ExplicitMethod::~ExplicitMethod() = default;
void ExplicitMethod::set_stepper(std::unique_ptr<ExplicitStepper> stepper) {
  stepper_ = std::move(stepper);
}
NetworkStep ExplicitMethod::step(const ForEach& each) {
  forget_states_within();
  return stepper_->step(each);
}
const StepClock& ExplicitMethod::clock() const { return stepper_->clock(); }
std::span<const double> ExplicitMethod::state() const { return stepper_->state(); }
std::span<const double> ExplicitMethod::previous_state() const {
  return stepper_->previous_state();
}
double ExplicitMethod::storage(int block) const { return stepper_->storage(block); }
double ExplicitMethod::shared_cost_ns() const { return stepper_->cost_ns(); }
int ExplicitMethod::tasks() const { return stepper_->tasks(); }
std::size_t ExplicitMethod::bytes() const { return stepper_->bytes(); }
std::string ExplicitMethod::remarks() const { return stepper_->remarks(); }
void ExplicitMethod::archive(StateArchive& archive) {
  stepper_->archive(archive);
  forget_states_within();
}
bool ExplicitMethod::set_step(double step_s) {
  stepper_->set_step(step_s);
  return true;
}

bool ExplicitMethod::set_state(std::span<const double> x) {
  forget_states_within();
  stepper_->set_state(x);
  return true;
}

void ExplicitMethod::halve_once_more() { stepper_->halve_once_more(); }
std::int64_t ExplicitMethod::halved_steps() const { return stepper_->halved_steps(); }
int ExplicitMethod::part_astray(bool by_all) const { return stepper_->part_astray(by_all); }

void ExplicitMethod::take_over(ExplicitMethod& before, int part, double more_J) {
  forget_states_within();
  stepper_->take_over(*before.stepper_, part, more_J);
}

bool ExplicitMethod::share_among(NetworkPeers& peers) { return stepper_->share_among(peers); }
void ExplicitMethod::fetch() { stepper_->fetch(); }

bool ExplicitMethod::attempt(double step_s, const ForEach& each) {
  forget_states_within();
  return stepper_->attempt(step_s, each);
}
std::string ExplicitMethod::obstacle() const { return stepper_->obstacle(); }
NetworkStep ExplicitMethod::commit(double end_s) {
  forget_states_within();
  return stepper_->commit(end_s);
}
void ExplicitMethod::measure(std::span<const double> start, std::span<Energies> by_block) {
  stepper_->measure(start, by_block);
}
std::span<const double> ExplicitMethod::attempted() const { return stepper_->attempted(); }
void ExplicitMethod::archive_trials(StateArchive& archive) { stepper_->archive_trials(archive); }

}  // namespace portwave
