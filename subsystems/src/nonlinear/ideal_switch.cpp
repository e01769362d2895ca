#include "portwave/subsystems/nonlinear/ideal_switch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/core/lane_exchange.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

namespace portwave {
namespace {

/// A record has the inputs of all stages, and the branch of the step, lane by lane.
class IdealSwitchBatch final : public StepBatch, public StageMotion, public LaneExchange {
 public:
  IdealSwitchBatch(int lanes, IdealSwitch::Rule rule, const StageRule& stages)
      : StepBatch(lanes, 0, stages.count, rule == IdealSwitch::Rule::controlled ? stages.count : 0),
        stages_(stages) {}

  const StageMotion* stage_motion() const override { return this; }
  int stages() const override { return stages_.count; }
  /// There are no states.
  void stage_increments(LaneRange /*range*/, const double* /*record*/, const double* /*a*/,
                        const double* /*next*/, double* /*out*/) const override {}

  double scatter_cost_ns() const override { return 2.0 * wave_size(); }
  double advance_cost_ns() const override { return scatter_cost_ns(); }

  /// Neither the step size nor an impedance matters: a wave comes back as it is, or with another sign.
  void prepare(double /*step_s*/, const double* /*impedance*/) override {}
  bool exchange(int /*lane*/, StepBatch& one, const double* /*impedance*/) override {
    const auto* const other = dynamic_cast<const IdealSwitchBatch*>(&one);
    return other != nullptr && other->input_size() == input_size() && other->stages_ == stages_;
  }

  std::size_t record_size() const override { return is_controlled() ? at(stride()) : 0; }
  std::vector<RecordRegion> record_regions() const override {
    return {is_controlled() ? RecordRegion{0, at(lane_group())} : RecordRegion{}};
  }
  void set_state(int lane, const double* /*x*/, double* record) const override {
    if (is_controlled()) record[lane] = kOpen;
  }
  void get_state(int /*lane*/, const double* /*record*/, double* /*x*/) const override {}
  void freeze(LaneRange range, double* record, const double* input) const override {
    for (int l = range.first; is_controlled() && l < range.last; ++l) {
      record[l] = input == nullptr ? kOpen : branch(input + l * input_size());
    }
  }

  LaneStatus scatter(LaneRange range, double* record, const double* a, double* b) const override {
    int bad = -1;
    for (int j = 0; j < wave_size(); ++j) {
      const double* const in = a + j * stride();
      double* const out = b + j * stride();
      for (int l = range.first; l < range.last; ++l) {
        out[l] = is_controlled() ? record[l] * in[l] : -std::abs(in[l]);
        if (!std::isfinite(out[l]) && (bad < 0 || l < bad)) bad = l;
      }
    }
    if (bad >= 0) return {bad, StepFault::not_finite};
    return {};
  }
  LaneStatus advance(LaneRange range, double* record, const double* a, double* next, double* b,
                     const EnergyColumns& energy) const override {
    for (int l = range.first; l < range.last; ++l) {
      if (energy.wanted()) energy.set(l, {});
      if (is_controlled()) next[l] = kOpen;  // an input of 0, until it is frozen with another
    }
    return scatter(range, record, a, b);
  }

 private:
  static constexpr double kOpen = 1.0, kShorted = -1.0;  // b = a, b = −a

  bool is_controlled() const { return input_size() > 0; }

  /// By the mean over the step. Inputs of several stages are √bᵢ times those of the part.
  double branch(const double* input) const {
    if (wave_size() == 1) return IdealSwitch::is_closed(input[0]) ? kShorted : kOpen;
    double mean = 0.0;
    for (int i = 0; i < wave_size(); ++i) mean += std::sqrt(stages_.b[at(i)]) * input[i];
    constexpr double kRounding = 1e-12;
    return IdealSwitch::is_closed(mean + kRounding) ? kShorted : kOpen;
  }

  const StageRule stages_;
};

}  // namespace

IdealSwitch::IdealSwitch(Signature signature, Rule rule)
    : Subsystem(std::move(signature)), rule_(rule) {
  const Signature& own = this->signature();
  const std::size_t inputs = rule_ == Rule::controlled ? 1 : 0;
  Issues issues;
  if (!own.states.empty()) issues.push_back({"/states", "must be empty"});
  if (own.inputs.size() != inputs) {
    issues.push_back({"/inputs", inputs == 1 ? "must be the one that closes it" : "must be empty"});
  }
  if (own.ports.size() != 1 || own.wave_size() != 1 ||
      own.ports[0].causality != Causality::effort_in) {
    issues.push_back({"/ports", "must be a single one that takes an effort"});
  }
  throw_if_any(std::move(issues));
  structure_ = Structure::zero(0, 1 + static_cast<int>(inputs));
}

PortBranch IdealSwitch::port_branch(int /*scalar_port*/, const double* external) const {
  if (rule_ == Rule::one_way) return PortBranch::by_law;
  return external != nullptr && is_closed(external[0]) ? PortBranch::shorted : PortBranch::open;
}

PortLawPoint IdealSwitch::port_law_point(int scalar_port, double k, double beta, double r,
                                         const double* external) const {
  PortBranch branch = port_branch(scalar_port, external);
  if (branch == PortBranch::by_law) branch = r > 0.0 ? PortBranch::shorted : PortBranch::open;
  if (branch == PortBranch::open) return {.u = r / k, .y = 0.0, .slope = 0.0};
  return {.u = 0.0, .y = r / beta, .slope = std::numeric_limits<double>::infinity()};
}

std::string IdealSwitch::batch_key() const {
  return rule_ == Rule::controlled ? "ideal_switch/controlled" : "ideal_switch/one_way";
}

std::unique_ptr<StepBatch> IdealSwitch::make_batch(std::span<const Component* const> parts) const {
  return make_ideal_switch_batch(port_hamiltonian_parts(parts), gauss_stages(1));
}

std::unique_ptr<StepBatch> make_ideal_switch_batch(std::span<const Subsystem* const> parts,
                                                   const StageRule& stages) {
  const auto& first = dynamic_cast<const IdealSwitch&>(*parts[0]);
  return std::make_unique<IdealSwitchBatch>(static_cast<int>(parts.size()), first.rule(), stages);
}

}  // namespace portwave
