#include "step/waves/wave_start.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include <Eigen/Core>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "portwave/subsystems/core/port.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"

namespace portwave {

AlignedVector initial_waves(const WaveDiscretisation& waves, const WaveCoupling& method) {
  AlignedVector out(static_cast<std::size_t>(waves.wave_size()), 0.0);
  const std::vector<double>& by_port = method.initial_waves;
  for (std::size_t j = 0; j < by_port.size(); ++j) {
    out[static_cast<std::size_t>(waves.wave_of_port(static_cast<int>(j)))] = by_port[j];
  }
  return out;
}

// As WaveTransform has it wave by wave, in the same order of operations.
void rescatter(const WaveDiscretisation& waves, std::span<const double> old, double old_step_s,
               std::span<double> a, std::span<double> b) {
  constexpr Eigen::Index kBlock = 64;
  using Values = Eigen::Array<double, Eigen::Dynamic, 1, Eigen::ColMajor, kBlock, 1>;
  const double step_s = waves.step_s();
  const auto size = static_cast<Eigen::Index>(old.size());
  for (Eigen::Index first = 0; first < size; first += kBlock) {
    const Eigen::Index count = std::min(kBlock, size - first);
    const Eigen::Map<const Eigen::ArrayXd> before(old.data() + first, count);
    const Eigen::Map<const Eigen::ArrayXd> gamma(waves.impedance().data() + first, count);
    Eigen::Map<Eigen::ArrayXd> incident(a.data() + first, count), outgoing(b.data() + first, count);
    const bool same_step = old_step_s == step_s;
    if (same_step && (before == gamma).all()) continue;
    const Values old_scale = (2.0 * before / old_step_s).sqrt();
    const Values scale = (2.0 * gamma / step_s).sqrt();
    const Values effort = 0.5 * old_scale * (incident + outgoing);
    const Values across = gamma * (0.5 * old_scale / before * (incident - outgoing));
    const Values new_incident = (effort + across) / scale, new_outgoing = (effort - across) / scale;
    if (same_step) {  // waves that keep their impedance keep their bits
      incident = (before == gamma).select(incident, new_incident);
      outgoing = (before == gamma).select(outgoing, new_outgoing);
    } else {
      incident = new_incident;
      outgoing = new_outgoing;
    }
  }
}

double half_square(const WaveDiscretisation& waves, std::span<const double> wave) {
  const auto add = [&](double& sum, int part) {
    const PartSlot& slot = waves.slot(part);
    const int ports = waves.batch(slot.batch).batch->wave_size();
    for (int j = 0; j < ports; ++j) {
      const double own = wave[static_cast<std::size_t>(slot.wave + j * slot.stride)];
      sum += own * own;
    }
  };
  return 0.5 * waves.reduction().fold_all(0.0, add);
}

ExtrapolatedStart::ExtrapolatedStart(const WaveDiscretisation& waves, const StagedRun& run)
    : waves_(waves), stages_(run.stages()), rule_(run.rule()) {
  const int ports = static_cast<int>(run.given().scalar_ports().size());
  for (int port = 0; port < ports; ++port) {
    if (run.is_idle(port)) continue;
    for (int i = 0; i < stages_; ++i) wave_.push_back(waves.wave_of_port(run.port(port, i)));
  }
  for (int i = 0; i < stages_; ++i) weight_.push_back(run.weight(i));
  for (Step* step : {&last_, &before_}) {
    step->effort.resize(wave_.size(), 0.0);
    step->flow.resize(wave_.size(), 0.0);
  }
}

void ExtrapolatedStart::observe(const double* a, const double* b, double step_s) {
  std::swap(last_, before_);
  last_.step_s = step_s;
  for (std::size_t k = 0; k < wave_.size(); ++k) {
    const auto wave = static_cast<std::size_t>(wave_[k]);
    const EffortFlow port =
        WaveTransform(waves_.impedance()[wave], step_s).to_effort_flow({a[wave], b[wave]});
    const double weight = weight_[k % at(stages_)];
    last_.effort[k] = port.effort / weight;
    last_.flow[k] = port.flow / weight;
  }
  known_steps_ = std::min(known_steps_ + 1, 2);
}

bool ExtrapolatedStart::form(double* b) const {
  if (known_steps_ < needed_steps()) return false;
  const double h = waves_.step_s();
  const auto outgoing = [&](std::size_t k, double effort, double flow) {
    const auto wave = static_cast<std::size_t>(wave_[k]);
    const double weight = weight_[k % at(stages_)];
    b[wave] = WaveTransform(waves_.impedance()[wave], h)
                  .to_waves({weight * effort, weight * flow})
                  .outgoing;
  };
  if (stages_ == 1) {  // through the middles of the last two steps
    const double on = (h + last_.step_s) / (last_.step_s + before_.step_s);
    for (std::size_t k = 0; k < wave_.size(); ++k) {
      outgoing(k, last_.effort[k] + on * (last_.effort[k] - before_.effort[k]),
               last_.flow[k] + on * (last_.flow[k] - before_.flow[k]));
    }
    return true;
  }
  const StageRule& rule = rule_;
  std::array<std::array<double, kMostStages>, kMostStages> share{};  // of stage j at stage i
  for (int i = 0; i < stages_; ++i) {
    for (int j = 0; j < stages_; ++j) {
      share[at(i)][at(j)] = rule.lagrange(j, 1.0 + rule.c[at(i)] * h / last_.step_s);
    }
  }
  for (std::size_t first = 0; first < wave_.size(); first += at(stages_)) {
    for (std::size_t i = 0; i < at(stages_); ++i) {
      double effort = 0.0, flow = 0.0;
      for (std::size_t j = 0; j < at(stages_); ++j) {
        effort += share[i][j] * last_.effort[first + j];
        flow += share[i][j] * last_.flow[first + j];
      }
      outgoing(first + i, effort, flow);
    }
  }
  return true;
}

void ExtrapolatedStart::archive(StateArchive& archive) {
  for (Step* step : {&last_, &before_}) {
    archive.array(step->effort);
    archive.array(step->flow);
    archive.value(step->step_s);
  }
  archive.value(known_steps_);
  archive.expect(known_steps_ >= 0 && known_steps_ <= 2, "the number of steps that are known");
  const Step* const known[] = {&last_, &before_};
  for (int i = 0; i < known_steps_; ++i) {
    const Step& step = *known[i];
    archive.expect(step.step_s > 0.0 && std::isfinite(step.step_s), "the size of an earlier step");
    archive.expect_finite(step.effort, "an effort of an earlier step");
    archive.expect_finite(step.flow, "a flow of an earlier step");
  }
}

std::size_t ExtrapolatedStart::bytes() const {
  return wave_.capacity() * sizeof(int) + 4 * last_.effort.capacity() * sizeof(double);
}

}  // namespace portwave
