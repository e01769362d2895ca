#include "portwave/subsystems/nonlinear/ideal_switch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/core/lane_exchange.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "portwave/subsystems/nonlinear/switch_steps.hpp"

namespace portwave {
namespace {

/// A record has, lane by lane, the branch of the step, the share of it for which the input asks to be closed, and
/// what there was before (SwitchTimes).
class IdealSwitchBatch final : public StepBatch,
                               public StageMotion,
                               public LaneExchange,
                               public SwitchSteps {
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

  /// An impedance does not matter: a wave comes back as it is, or with another sign.
  void prepare(double step_s, const double* /*impedance*/) override { step_s_ = step_s; }
  bool exchange(int /*lane*/, StepBatch& one, const double* /*impedance*/) override {
    const auto* const other = dynamic_cast<const IdealSwitchBatch*>(&one);
    return other != nullptr && other->input_size() == input_size() && other->stages_ == stages_;
  }

  std::size_t record_size() const override {
    return is_controlled() ? at(kColumns) * at(stride()) : 0;
  }
  std::vector<RecordRegion> record_regions() const override {
    std::vector<RecordRegion> out;
    for (int column = 0; is_controlled() && column < kColumns; ++column) {
      out.push_back({at(column) * at(stride()), at(lane_group())});
    }
    return out.empty() ? std::vector<RecordRegion>{RecordRegion{}} : out;
  }
  void set_state(int lane, const double* /*x*/, double* record) const override {
    if (!is_controlled()) return;
    for (int column = 0; column < kColumns; ++column) value(column, lane, record) = 0.0;
    record[lane] = kOpen;
  }
  void get_state(int /*lane*/, const double* /*record*/, double* /*x*/) const override {}
  void freeze(LaneRange range, double* record, const double* input) const override {
    for (int l = range.first; is_controlled() && l < range.last; ++l) {
      const double share = input == nullptr ? 0.0 : mean(input + l * input_size());
      value(kShare, l, record) = share;
      record[l] = closes_in_step(share, value(kLag, l, record) / step_s_) ? kShorted : kOpen;
    }
  }
  SwitchTimes switch_times(int lane, const double* record) const override {
    if (!is_controlled()) return {};
    return {value(kClosed, lane, record), value(kOpened, lane, record), value(kMoved, lane, record),
            value(kLag, lane, record)};
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
      if (is_controlled()) count(l, record, next);
    }
    return scatter(range, record, a, b);
  }

 private:
  static constexpr double kOpen = 1.0, kShorted = -1.0;  // b = a, b = −a

  bool is_controlled() const { return input_size() > 0; }

  /// Columns of a record, after the branch.
  enum Column { kShare = 1, kLag, kClosed, kOpened, kMoved, kColumns };

  double& value(int column, int lane, double* record) const {
    return record[column * stride() + lane];
  }
  double value(int column, int lane, const double* record) const {
    return record[column * stride() + lane];
  }

  /// Of the step, from 0 to 1. Inputs of several stages are √bᵢ times those of the part.
  double mean(const double* input) const {
    double mean = input[0];
    if (wave_size() > 1) {
      mean = 0.0;
      for (int i = 0; i < wave_size(); ++i) mean += std::sqrt(stages_.b[at(i)]) * input[i];
    }
    return std::isnan(mean) ? 0.0 : std::clamp(mean, 0.0, 1.0);
  }

  /// The next step is open, as with an input of 0, until it is frozen with another.
  void count(int lane, const double* record, double* next) const {
    const double share = value(kShare, lane, record);
    const double given = record[lane] == kShorted ? 1.0 : 0.0;
    const double half_s = 0.5 * step_s_;
    const double lag_s = value(kLag, lane, record) + (share - given) * step_s_;
    const double more_s[] = {share, 1.0 - share, std::abs(share - given)};
    for (const int column : {kClosed, kOpened, kMoved}) {
      value(column, lane, next) = value(column, lane, record) + more_s[column - kClosed] * step_s_;
    }
    value(kLag, lane, next) =
        share == given ? value(kLag, lane, record) : std::clamp(lag_s, -half_s, half_s);
    value(kShare, lane, next) = 0.0;
    next[lane] = kOpen;
  }

  const StageRule stages_;
  double step_s_ = 1.0;
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
