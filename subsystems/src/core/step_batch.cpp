#include <algorithm>
#include <cmath>
#include <exception>

#include "base/workspace.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"

namespace portwave {

std::string_view to_string(StepFault fault) {
  switch (fault) {
    case StepFault::none:
      return "none";
    case StepFault::not_converged:
      return "not_converged";
    case StepFault::not_finite:
      return "not_finite";
    case StepFault::threw:
      return "threw";
    case StepFault::at_odds:
      return "at_odds";
    case StepFault::too_inaccurate:
      return "too_inaccurate";
  }
  return "unknown";
}

void EnergyColumns::set(int lane, const StepEnergy& energy) const {
  change_J[lane] = energy.change_J;
  external_supply_J[lane] = energy.external_supply_J;
  dissipated_J[lane] = energy.dissipated_J;
  if (numerical_dissipation_J != nullptr) {
    numerical_dissipation_J[lane] = energy.numerical_dissipation_J;
  }
}

StepEnergy EnergyColumns::at(int lane) const {
  const double* const numerical = numerical_dissipation_J;
  return {change_J[lane], external_supply_J[lane], dissipated_J[lane],
          numerical != nullptr ? numerical[lane] : 0.0};
}

EnergyColumns EnergyColumns::from(int lane) const {
  if (!wanted()) return {};
  double* const numerical = numerical_dissipation_J;
  return {change_J + lane, external_supply_J + lane, dissipated_J + lane,
          numerical != nullptr ? numerical + lane : nullptr};
}

double StepBatch::scatter_cost_ns() const { return 1.0 + 0.3 * wave_size() * wave_size(); }
double StepBatch::advance_cost_ns() const {
  return 2.0 + 0.1 * state_size() * (state_size() + 2.0 * wave_size());
}

namespace {

bool all_finite(const double* values, int count) {
  return std::all_of(values, values + count, [](double v) { return std::isfinite(v); });
}

}  // namespace

int stages_of(const StepBatch& batch) {
  const StageMotion* const motion = batch.stage_motion();
  return motion == nullptr ? 1 : motion->stages();
}

void stage_increments(const StepBatch& batch, LaneRange lanes, const double* record,
                      const double* a, const double* next, double* out) {
  if (const StageMotion* const motion = batch.stage_motion(); motion != nullptr) {
    return motion->stage_increments(lanes, record, a, next, out);
  }
  const int n = batch.state_size();
  detail::Workspace room(static_cast<std::size_t>(2 * n));
  double* const before = room.data();
  double* const after = before + n;
  for (int l = lanes.first; l < lanes.last; ++l) {
    batch.get_state(l, record, before);
    batch.get_state(l, next, after);
    for (int i = 0; i < n; ++i) out[i * batch.stride() + l] = after[i] - before[i];
  }
}

LanewiseBatch::LanewiseBatch(int lanes, int state_size, int wave_size, int input_size, int extra)
    : StepBatch(lanes, state_size, wave_size, input_size),
      extra_(static_cast<std::size_t>(extra)),
      lane_size_(static_cast<std::size_t>(state_size + input_size + 2 * wave_size + extra)) {}

std::size_t LanewiseBatch::record_size() const {
  return lane_size_ * static_cast<std::size_t>(lanes());
}

void LanewiseBatch::set_state(int lane, const double* x, double* record) const {
  double* own = record + static_cast<std::size_t>(lane) * lane_size_;
  std::copy(x, x + state_size(), own);
}

void LanewiseBatch::get_state(int lane, const double* record, double* x) const {
  const double* own = record + static_cast<std::size_t>(lane) * lane_size_;
  std::copy(own, own + state_size(), x);
}

LanewiseBatch::Lane LanewiseBatch::lane_of(int lane, double* record) const {
  double* own = record + static_cast<std::size_t>(lane) * lane_size_;
  return {own, own + state_size(), own + lane_size_ - extra_};
}

void LanewiseBatch::freeze(LaneRange lanes, double* record, const double* input) const {
  const auto q = static_cast<std::size_t>(input_size());
  for (int l = lanes.first; l < lanes.last; ++l) {
    double* own_input = record + static_cast<std::size_t>(l) * lane_size_ + state_size();
    if (input == nullptr) {
      std::fill(own_input, own_input + q, 0.0);
    } else {
      std::copy(input + static_cast<std::size_t>(l) * q,
                input + (static_cast<std::size_t>(l) + 1) * q, own_input);
    }
    try {
      freeze_lane(l, lane_of(l, record));
    } catch (const std::exception& error) {
      throw LaneException(l, error.what());
    } catch (...) {
      throw LaneException(l, "an exception that is no std::exception");
    }
  }
}

/// solve(lane, frozen, a, b) with the lane's waves side by side.
template <class Solve>
LaneStatus LanewiseBatch::for_lanes(LaneRange lanes, double* record, const double* a, double* b,
                                    const Solve& solve) const {
  const int p = wave_size();
  const bool adjacent = stride() == 1 || p == 1;
  for (int l = lanes.first; l < lanes.last; ++l) {
    const Lane frozen = lane_of(l, record);
    double* own_a = record + static_cast<std::size_t>(l) * lane_size_ + state_size() + input_size();
    double* own_b = own_a + p;
    const double* lane_a = adjacent ? a + l : own_a;
    double* lane_b = adjacent ? b + l : own_b;
    if (!adjacent) {
      for (int j = 0; j < p; ++j) own_a[j] = a[j * stride() + l];
    }
    StepFault fault = StepFault::none;
    try {
      fault = solve(l, frozen, lane_a, lane_b);
    } catch (const std::exception& error) {
      throw LaneException(l, error.what());
    } catch (...) {
      throw LaneException(l, "an exception that is no std::exception");
    }
    if (fault != StepFault::none) {
      if (adjacent) std::copy(lane_a, lane_a + p, own_a);  // for failed_solve
      return {l, fault};
    }
    if (!adjacent) {
      for (int j = 0; j < p; ++j) b[j * stride() + l] = own_b[j];
    }
  }
  return {};
}

LaneStatus LanewiseBatch::scatter(LaneRange lanes, double* record, const double* a,
                                  double* b) const {
  return for_lanes(lanes, record, a, b,
                   [&](int l, const Lane& frozen, const double* lane_a, double* lane_b) {
                     return scatter_lane(l, frozen, lane_a, lane_b);
                   });
}

/// With a copy of the lane's scratch.
FailedSolve LanewiseBatch::failed_solve(int lane, const double* record) const {
  const double* const own = state_of(lane, record);
  const int n = state_size(), q = input_size(), p = wave_size();
  FailedSolve out;
  out.state.assign(own, own + n);
  out.inputs.assign(own + n, own + n + q);
  out.waves.assign(own + n + q, own + n + q + p);
  std::vector<double> scratch(own, own + lane_size_);
  const Lane frozen{out.state.data(), out.inputs.data(), scratch.data() + (lane_size_ - extra_)};
  out.residual = residual_of_lane(lane, frozen, out.waves.data());
  return out;
}

LaneStatus LanewiseBatch::inexact_scatter(LaneRange lanes, double* record, const double* a,
                                          double* b) const {
  return for_lanes(lanes, record, a, b,
                   [&](int l, const Lane& frozen, const double* lane_a, double* lane_b) {
                     return inexact_scatter_lane(l, frozen, lane_a, lane_b);
                   });
}

LaneStatus LanewiseBatch::advance(LaneRange lanes, double* record, const double* a, double* next,
                                  double* b, const EnergyColumns& energy) const {
  LaneStatus status = for_lanes(
      lanes, record, a, b, [&](int l, const Lane& frozen, const double* lane_a, double* lane_b) {
        StepEnergy own;
        double* x_next = next + static_cast<std::size_t>(l) * lane_size_;
        StepFault fault = advance_lane(l, frozen, lane_a, x_next, lane_b, own);
        if (energy.wanted()) energy.set(l, own);
        if (fault == StepFault::none &&
            !(all_finite(x_next, state_size()) && all_finite(lane_b, wave_size()))) {
          fault = StepFault::not_finite;
        }
        return fault;
      });
  if (status.ok()) freeze(lanes, next, nullptr);
  return status;
}

}  // namespace portwave
