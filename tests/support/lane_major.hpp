#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave::testing {

/// A batch with its record, called with states, waves and impedances lane by lane: a test may lay
/// them out as it thinks of them. Arrays begin at lane 0, whatever the range.
class LaneMajor {
 public:
  explicit LaneMajor(std::unique_ptr<StepBatch> batch)
      : batch_(std::move(batch)),
        record_(batch_->record_size()),
        next_(record_.size()),
        a_(wave_count(), 0.0),
        b_(wave_count(), 0.0) {
    for (AlignedVector& column : columns_)
      column.resize(static_cast<std::size_t>(batch_->stride()));
  }

  StepBatch& batch() { return *batch_; }
  int lanes() const { return batch_->lanes(); }
  const double* record() const { return record_.data(); }

  void prepare(double step_s, const double* impedance) {
    AlignedVector gamma(wave_count(), 1.0);
    for_waves({0, lanes()}, [&](std::size_t offset, std::size_t lane_major) {
      gamma[offset] = impedance[lane_major];
    });
    batch_->prepare(step_s, gamma.data());
  }

  void freeze(LaneRange range, const double* x, const double* input) {
    for (int l = range.first; l < range.last; ++l) {
      batch_->set_state(l, x + l * batch_->state_size(), record_.data());
    }
    batch_->freeze(range, record_.data(), input);
  }

  LaneStatus scatter(LaneRange range, const double* a, double* b) {
    take(range, a);
    const LaneStatus status = batch_->scatter(range, record_.data(), a_.data(), b_.data());
    give(range, b);
    return status;
  }

  LaneStatus inexact_scatter(LaneRange range, const double* a, double* b) {
    take(range, a);
    const LaneStatus status = batch_->inexact_scatter(range, record_.data(), a_.data(), b_.data());
    give(range, b);
    return status;
  }

  LaneStatus advance(LaneRange range, const double* a, double* x_next, double* b,
                     StepEnergy* energy) {
    take(range, a);
    EnergyColumns columns;
    if (energy != nullptr) {
      columns = {columns_[0].data(), columns_[1].data(), columns_[2].data()};
    }
    const LaneStatus status =
        batch_->advance(range, record_.data(), a_.data(), next_.data(), b_.data(), columns);
    give(range, b);
    for (int l = range.first; l < range.last; ++l) {
      batch_->get_state(l, next_.data(), x_next + l * batch_->state_size());
      if (energy != nullptr) energy[l] = columns.at(l);
    }
    return status;
  }

  /// The state that the last `advance` wrote becomes the frozen one, as a stepper does it.
  void swap_records() { record_.swap(next_); }

 private:
  std::size_t wave_count() const { return static_cast<std::size_t>(batch_->wave_count()); }

  template <class Act>
  void for_waves(LaneRange range, const Act& act) const {
    for (int l = range.first; l < range.last; ++l) {
      for (int j = 0; j < batch_->wave_size(); ++j) {
        act(static_cast<std::size_t>(j * batch_->stride() + l),
            static_cast<std::size_t>(l * batch_->wave_size() + j));
      }
    }
  }
  void take(LaneRange range, const double* a) {
    for_waves(range,
              [&](std::size_t offset, std::size_t lane_major) { a_[offset] = a[lane_major]; });
  }
  void give(LaneRange range, double* b) const {
    for_waves(range,
              [&](std::size_t offset, std::size_t lane_major) { b[lane_major] = b_[offset]; });
  }

  std::unique_ptr<StepBatch> batch_;
  AlignedVector record_, next_, a_, b_;
  AlignedVector columns_[3];
};

/// A part's own batch of one.
inline LaneMajor batch_of_one(const Component& part) {
  const Component* parts[] = {&part};
  return LaneMajor(part.make_batch(parts));
}

}  // namespace portwave::testing
