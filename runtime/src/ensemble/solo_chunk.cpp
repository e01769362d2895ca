#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "ensemble/chunks.hpp"
#include "portwave/coupling/system/derived_systems.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave {

SoloChunk::SoloChunk(System system, const StepperOptions& options)
    : given_(std::move(system)),
      options_(options),
      is_driven_(given_.settable_inputs().size(), false) {
  if (options.signals == nullptr) return;
  for (const SignalGraph::Actuator& actuator : options.signals->actuators()) {
    is_driven_[at(actuator.slot)] = true;
  }
}

void SoloChunk::begin(const double* states) {
  const System* const one[] = {&given_};
  status_ = {};
  steps_ = 0;
  stepper_.reset();
  system_.emplace(gathered_system(one, states));
  try {
    for (const Part& part : system_->parts()) {
      std::string defect = not_finite(part, part.initial_state);
      if (defect.empty()) {
        const Issues issues = part.component->check_initial_state(part.initial_state.data());
        if (issues.empty()) continue;
        defect = issues.front().what;
      }
      status_.failed = true;
      status_.part = part.name;
      status_.fault = StepFault::not_finite;
      status_.error =
          fmt::format("part {} cannot start from this state: {}", in_quotes(part.name), defect);
      return;
    }
    stepper_.emplace(*system_, options_);
  } catch (const std::exception& error) {
    status_.failed = true;
    status_.error = error.what();
  }
}

void SoloChunk::step(const double* settings) {
  if (status_.failed) return;
  try {
    for (std::size_t slot = 0; slot < is_driven_.size(); ++slot) {
      if (is_driven_[slot]) continue;  // its controller has set it
      if (!std::isfinite(settings[slot])) {
        const System::SettableInput& input = given_.settable_inputs()[slot];
        throw StepError(
            given_.parts()[at(input.part)].name, stepper_->step_index(), -1, 0,
            StepFault::not_finite,
            fmt::format("settable input {} is not finite: {}", in_quotes(given_.input_label(input)),
                        shown_number(settings[slot])));
      }
      stepper_->set_input(InputSlot{static_cast<int>(slot)}, settings[slot]);
    }
    ++steps_;
    if (stepper_->step_sizes() != nullptr) {
      stepper_->run_until(static_cast<double>(steps_) * options_.step_s);
    } else {
      stepper_->step();
    }
  } catch (const StepError& error) {
    status_ = status(0);
    status_.failed = true;
    status_.error = error.what();
    status_.part = error.part();
    status_.fault = error.fault();
    status_.steps = error.step();
  } catch (const std::exception& error) {
    status_ = status(0);
    status_.failed = true;
    status_.fault = StepFault::not_finite;
    status_.error = error.what();
  }
}

void SoloChunk::read_states(double* out, std::size_t /*distance*/) const {
  for (std::size_t part = 0; part < given_.parts().size(); ++part) {
    const std::size_t size = given_.parts()[part].initial_state.size();
    if (status_.failed) {
      std::fill_n(out, size, std::numeric_limits<double>::quiet_NaN());
    } else {
      std::ranges::copy(stepper_->state(static_cast<int>(part)), out);
    }
    out += size;
  }
}

ReplicaStatus SoloChunk::status(int /*replica*/) const {
  ReplicaStatus out = status_;
  if (out.failed || !stepper_) return out;
  const IterationStatistics& own = stepper_->iterations();
  out.steps = own.steps;
  out.iterations = own.total;
  out.max_iterations = own.max;
  out.not_converged = own.not_converged;
  const WaveView* const waves = stepper_->waves();
  if (waves != nullptr && waves->guard() != nullptr) out.guard = *waves->guard();
  return out;
}

Certificate SoloChunk::certificate(int /*replica*/) const {
  return stepper_ ? stepper_->certificate() : Certificate{};
}

EnergyTotals SoloChunk::energy(int /*replica*/) const {
  return stepper_ && stepper_->keeps_ledger() ? stepper_->energy() : EnergyTotals{};
}

}  // namespace portwave
