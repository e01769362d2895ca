#include "portwave/subsystems/stages/staged_part.hpp"

#include <typeinfo>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/stage_layout.hpp"
#include "linear/linear_batches.hpp"
#include "nonlinear/contact_spring.hpp"
#include "nonlinear/damped_physics.hpp"
#include "nonlinear/friction_contact.hpp"
#include "nonlinear/stribeck_friction.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/core/staged_lanes.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/descriptor/descriptor_part.hpp"
#include "portwave/subsystems/nonlinear/ideal_switch.hpp"
#include "stages/staged_batches.hpp"

namespace portwave {
namespace {

enum class StageSolver { dense_maps, sparse_factors, frictions, friction_contacts, newton };

StageSolver solver_of(const Subsystem& part) {
  if (const auto* const own = dynamic_cast<const LinearPortHamiltonian*>(&part)) {
    return own->uses_sparse_step_maps() ? StageSolver::sparse_factors : StageSolver::dense_maps;
  }
  if (dynamic_cast<const StribeckFriction*>(&part) != nullptr) return StageSolver::frictions;
  if (dynamic_cast<const FrictionContact*>(&part) != nullptr) return StageSolver::friction_contacts;
  const bool is_descriptor = dynamic_cast<const DescriptorPortHamiltonian*>(&part) != nullptr;
  return is_descriptor ? StageSolver::sparse_factors : StageSolver::newton;
}

/// Numbers in the maps of all substeps of a linear part; with more it is solved as others are.
constexpr double kMostMapEntries = 1e6;

StageSolver solver_of(const Subsystem& part, int stages, int substeps) {
  const StageSolver own = solver_of(part);
  if (own != StageSolver::dense_maps || substeps == 1) return own;
  const Signature& s = part.signature();
  const double rows = static_cast<double>(substeps) * stages * s.state_size();
  const double inputs = s.wave_size() + static_cast<double>(substeps) * s.input_size();
  return rows * (s.state_size() + stages * inputs) <= kMostMapEntries ? own : StageSolver::newton;
}

constexpr const char* kPrescribed =
    "has index 2, and an external input acts on its hidden constraint: its order would be "
    "2 with two stages and 4 with three";

class StagedPart final : public Component {
 public:
  StagedPart(std::shared_ptr<const Component> part, const StageRule& rule, int substeps)
      : Component(staged_signature(part->signature(), rule.count, substeps)),
        part_(std::move(part)),
        stages_(rule),
        substeps_(substeps) {}

  const Subsystem& physics() const { return *part_->port_hamiltonian(); }

  /// What has no step maps is solved as if it were not linear.
  Capabilities capabilities() const override {
    Capabilities out = part_->capabilities();
    const bool has_maps = solver_of(physics(), stages_.count, substeps_) != StageSolver::newton;
    out.linear = out.linear && (substeps_ == 1 || has_maps);
    return out;
  }
  const Subsystem* port_hamiltonian() const override { return part_->port_hamiltonian(); }
  const StageRule& stage_rule() const override { return stages_; }
  int substeps() const override { return substeps_; }
  bool is_active() const override { return part_->is_active(); }
  std::vector<double> default_state() const override { return part_->default_state(); }
  std::vector<double> typical_state() const override { return part_->typical_state(); }
  Issues check_initial_state(const double* x) const override {
    return part_->check_initial_state(x);
  }

  std::string batch_key() const override {
    std::string own = part_->batch_key();
    if (own.empty()) return own;
    const Component& part = *part_;
    own += fmt::format("@{}*{}/{}", stages_.count, substeps_, typeid(part).name());
    if (stages_ != gauss_stages(stages_.count)) {
      own += fmt::format("~{}/{:a}/{:x}", static_cast<int>(stages_.nodes), stages_.damping,
                         stages_.conserved);
    }
    return own;
  }
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override {
    if (dynamic_cast<const IdealSwitch*>(&physics()) != nullptr) {
      return make_ideal_switch_batch(port_hamiltonian_parts(parts), stages_);
    }
    // Parts of one key are of one class, and have one rule.
    if (substeps_ == 1 && (stages_.count > 1 || stages_.is_damped())) {
      std::vector<const Component*> own;
      own.reserve(parts.size());
      for (const Component* part : parts) {
        own.push_back(dynamic_cast<const StagedPart*>(part)->part_.get());
      }
      const auto* const lanes = dynamic_cast<const StagedLanes*>(part_.get());
      auto batch = stages_ == gauss_stages(stages_.count)
                       ? part_->make_staged_batch(own, stages_.count)
                   : lanes != nullptr ? lanes->make_lanes(own, stages_)
                                      : nullptr;
      if (batch != nullptr) return batch;
    }
    switch (solver_of(physics(), stages_.count, substeps_)) {
      case StageSolver::dense_maps:
        return make_dense_linear_batch(parts);
      case StageSolver::sparse_factors:
        return make_staged_linear_batch(parts, stages_);
      case StageSolver::frictions:
        return make_stribeck_batch(port_hamiltonian_parts(parts), stages_);
      case StageSolver::friction_contacts:  // one stage
        return make_friction_contact_batch(port_hamiltonian_parts(parts), stages_);
      case StageSolver::newton:
        break;
    }
    const std::vector<const Subsystem*> own = port_hamiltonian_parts(parts);
    if (substeps_ > 1) return make_substepped_newton_batch(own, stages_, substeps_);
    if (stages_.count > 1) return make_staged_newton_batch(own, stages_);
    std::vector<StageRule> rules;  // one batch may have parts that are damped for a step
    for (const Component* part : parts) rules.push_back(part->stage_rule());
    if (dynamic_cast<const ContactSpring*>(own[0]) != nullptr)
      return make_contact_batch(own, rules);
    return make_damped_newton_batch(own, std::move(rules), newton_options_of(*own[0]));
  }

 private:
  std::shared_ptr<const Component> part_;
  StageRule stages_;
  int substeps_;
};

std::string defect_of_stages(const Component& part, int stages) {
  const Subsystem* const physics = part.port_hamiltonian();
  if (physics == nullptr) return "is opaque: it shows no equations that stages could be made of";
  if (part.stages() != 1 || part.substeps() != 1 || part.stage_rule().is_damped()) {
    return "has stages already";
  }
  if (const auto* const own = dynamic_cast<const DescriptorPortHamiltonian*>(physics)) {
    return own->prescribes() && stages > 1 ? kPrescribed : std::string();
  }
  if (physics->linear_form().E != nullptr) {
    return "is a descriptor part of a kind that is not known here";
  }
  if (stages > 1 && solver_of(*physics) == StageSolver::friction_contacts) {
    return "has friction by the normal force of a step, which is that of one stage: take one";
  }
  const int states = part.signature().state_size();
  if (solver_of(*physics) != StageSolver::sparse_factors && states > kMostStagedStates) {
    return fmt::format(
        "has {} states, and stages that are solved densely are for parts of up to {}: cut it",
        states, kMostStagedStates);
  }
  return {};
}

}  // namespace

std::string staging_defect(const Component& part) { return defect_of_stages(part, kMostStages); }

std::string damping_defect(const Component& part, int stages) {
  return defect_of_stages(part, stages);
}

bool can_damp_single_states(const Component& part) {
  const Subsystem* const physics = part.port_hamiltonian();
  if (physics == nullptr || part.signature().state_size() > kMostMasked) return false;
  const StageSolver solver = solver_of(*physics);
  return solver == StageSolver::dense_maps || solver == StageSolver::newton;
}

std::string substepping_defect(const Component& part) {
  if (std::string defect = staging_defect(part); !defect.empty()) return defect;
  if (part.port_hamiltonian()->linear_form().E != nullptr) {
    return "is a descriptor part, which takes one step at a time";
  }
  if (!part.port_hamiltonian()->is_smooth()) {
    return "has a stiffness that jumps, which takes one step at a time";
  }
  if (part.port_hamiltonian()->has_port_laws()) {
    return "has a nonlinear resistance at its ports, which takes one step at a time";
  }
  if (solver_of(*part.port_hamiltonian()) == StageSolver::sparse_factors) {
    return fmt::format(
        "is linear with {} states and sparse step maps, which are for one step at a time: cut it",
        part.signature().state_size());
  }
  return {};
}

std::shared_ptr<const Component> staged_part(std::shared_ptr<const Component> part,
                                             const StageRule& rule, int substeps) {
  Issues issues;
  if (substeps < 1 || substeps > kMostPartSubsteps) {
    issues.push_back(
        {"/substeps", fmt::format("must be 1 to {}, got {}", kMostPartSubsteps, substeps)});
  }
  std::string defect = defect_of_stages(*part, rule.count);
  if (defect.empty() && substeps > 1) defect = substepping_defect(*part);
  if (!defect.empty()) {
    issues.push_back(
        {"", fmt::format("a part of type {} {}", in_quotes(part->signature().type), defect)});
  }
  throw_if_any(std::move(issues));
  return std::make_shared<const StagedPart>(std::move(part), rule, substeps);
}

std::shared_ptr<const Component> staged_part(std::shared_ptr<const Component> part, int stages,
                                             int substeps) {
  if (stages < 1 || stages > kMostStages) {
    throw ConfigError("/stages", fmt::format("must be 1 to {}, got {}", kMostStages, stages));
  }
  return staged_part(std::move(part), gauss_stages(stages), substeps);
}

}  // namespace portwave
