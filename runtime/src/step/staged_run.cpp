#include "step/staged_run.hpp"

#include <cmath>
#include <cstddef>
#include <utility>

#include "portwave/coupling/system/derived_systems.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/gauss_stages.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"

namespace portwave {

StagedRun::StagedRun(const System& system, const StepperOptions& options)
    : given_(&system), options_(options), stages_(options.method.waves().stages) {
  if (stages_ == 1 && !has_substeps(system)) return;
  staged_ = std::make_unique<System>(staged_system(system, stages_));
  WaveCoupling& method = options_.method.waves();
  if (method.impedance.size() > 1) method.impedance = at_all_stages(method.impedance);
  if (method.initial_waves.size() != system.scalar_ports().size()) return;  // none, or by stage
  method.initial_waves = at_all_stages(method.initial_waves);
  for (int port = 0; port < static_cast<int>(system.scalar_ports().size()); ++port) {
    for (int i = 0; i < stages_; ++i) method.initial_waves[at(this->port(port, i))] *= weight(i);
  }
}

void StagedRun::component_changed(int part) {
  if (staged_ == nullptr) return;
  const Part& own = given_->parts()[at(part)];
  const bool is_staged = stages_ > 1 || own.substeps > 1;
  left_ = staged_->parts()[at(part)].component;  // batches refer to it until they are made anew
  exchange_component(*staged_, part,
                     is_staged ? staged_part(own.component, stages_, own.substeps) : own.component);
}

void StagedRun::component_restored(int part) {
  if (staged_ != nullptr) exchange_component(*staged_, part, std::move(left_));
}

int StagedRun::port(int scalar_port, int stage) const {
  return stages_ == 1 ? scalar_port : staged_port(*given_, stages_, scalar_port, stage);
}

double StagedRun::weight(int stage) const { return std::sqrt(gauss_stages(stages_).b[at(stage)]); }

std::vector<double> StagedRun::at_all_stages(std::span<const double> by_port) const {
  // Arrays of another length are left to the code that checks them.
  if (stages_ == 1 || by_port.size() != given_->scalar_ports().size()) {
    return {by_port.begin(), by_port.end()};
  }
  std::vector<double> out(stepped().scalar_ports().size());
  for (std::size_t j = 0; j < by_port.size(); ++j) {
    for (int i = 0; i < stages_; ++i) out[at(port(static_cast<int>(j), i))] = by_port[j];
  }
  return out;
}

}  // namespace portwave
