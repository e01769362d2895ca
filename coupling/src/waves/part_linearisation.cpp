#include "waves/part_linearisation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/core/port_slopes.hpp"

namespace portwave {
namespace {

constexpr double kRelativeStep = 1e-6;

}  // namespace

PartLinearisation::PartLinearisation(const WaveDiscretisation& waves, std::span<const int> parts)
    : waves_(waves) {
  std::size_t size = 0;
  for (const int part : parts) {
    parts_.push_back({part, size});
    const int width = waves.batch(waves.slot(part).batch).batch->wave_size();
    size += at(width) * at(width);
  }
  matrices_.assign(size, 0.0);
  take_affine();
  for (const Own& own : parts_) {
    const PartSlot& slot = waves.slot(own.part);
    const StepBatch& batch = *waves.batch(slot.batch).batch;
    if (waves.batch(slot.batch).affine != nullptr) continue;
    widest_ = std::max(widest_, batch.wave_size());
    nonlinear_.push_back(own.part);
    is_possible_ = is_possible_ && waves.batch(slot.batch).capabilities.linearisable;
    const auto known = std::ranges::find(copies_, slot.batch, &BatchCopy::batch);
    BatchCopy& copy = known != copies_.end() ? *known : copies_.emplace_back();
    copy.batch = slot.batch;
    copy.parts.push_back(own);
  }
  for (BatchCopy& copy : copies_) {
    std::ranges::sort(copy.parts, {}, [&](const Own& own) { return waves.slot(own.part).lane; });
  }
}

void PartLinearisation::take_affine() {
  for (const Own& own : parts_) {
    const PartSlot& slot = waves_.slot(own.part);
    const AffineMap* const affine = waves_.batch(slot.batch).affine;
    if (affine != nullptr) affine->affine_matrix(slot.lane, matrices_.data() + own.matrix);
  }
}

void PartLinearisation::take_affine(int part) {
  const PartSlot& slot = waves_.slot(part);
  const AffineMap* const affine = waves_.batch(slot.batch).affine;
  const auto own = std::ranges::lower_bound(parts_, part, {}, &Own::part);
  if (affine != nullptr) affine->affine_matrix(slot.lane, matrices_.data() + own->matrix);
}

const double* PartLinearisation::of(int part) const {
  // In most islands the numbers follow one another.
  const auto likely = static_cast<std::size_t>(part - parts_.front().part);
  if (likely < parts_.size() && parts_[likely].part == part) {
    return matrices_.data() + parts_[likely].matrix;
  }
  const auto own = std::ranges::lower_bound(parts_, part, {}, &Own::part);
  return matrices_.data() + own->matrix;
}

/// The step of each part: from its own waves or, if they are much smaller, from those of all parts.
void PartLinearisation::set_steps(const double* u, const double* exchanged) {
  constexpr double kMuchSmaller = 1e-2;
  const auto square_of = [&](int number) {
    const PartSlot& part = waves_.slot(number);
    double square = 0.0;
    for (int j = 0; j < waves_.batch(part.batch).batch->wave_size(); ++j) {
      const std::size_t w = at(part.wave + j * part.stride);
      square += std::max(u[w] * u[w], exchanged[w] * exchanged[w]);
    }
    return square;
  };
  double all = 0.0;  // in the order of the parts, however they are batched
  for (const int part : nonlinear_) all += square_of(part);
  const double count = static_cast<double>(std::max<std::size_t>(nonlinear_.size(), 1));
  const double least = kMuchSmaller * std::sqrt(all / count);
  steps_.clear();
  for (const BatchCopy& copy : copies_) {
    for (const Own& own : copy.parts) steps_.push_back(std::sqrt(square_of(own.part)));
  }
  for (double& step : steps_) {
    step = kRelativeStep * std::max(step, least);
    if (!(step > 0.0) || !std::isfinite(step)) step = kRelativeStep;
  }
}

bool PartLinearisation::differentiate(const double* record, const double* u,
                                      const double* exchanged, Accuracy accuracy) {
  set_steps(u, exchanged);
  bool sound = true;
  evaluations_ = 0;
  is_rough_ = false;
  const double* step = steps_.data();
  for (BatchCopy& copy : copies_) {
    const BatchSlot& slot = waves_.batch(copy.batch);
    if (accuracy == Accuracy::rough && take_slopes(copy, record + slot.record, u)) {
      is_rough_ = true;
      evaluations_ = std::max(evaluations_, 1);
      step += copy.parts.size();
      continue;
    }
    evaluations_ = std::max(evaluations_, 2 * slot.batch->wave_size());
    const auto size = at(slot.batch->wave_count());
    copy_record(copy, record + slot.record);
    for (AlignedVector* wave : {&copy.a, &copy.b[0], &copy.b[1]}) wave->assign(size, 0.0);
    for (int j = 0; j < slot.batch->wave_size(); ++j) {
      for (const int side : {0, 1}) {
        std::fill(copy.a.begin(), copy.a.end(), 0.0);
        for (std::size_t i = 0; i < copy.parts.size(); ++i) {
          const PartSlot& part = waves_.slot(copy.parts[i].part);
          for (int k = 0; k < slot.batch->wave_size(); ++k) {
            copy.a[at(part.lane + k * part.stride)] = u[part.wave + k * part.stride];
          }
          copy.a[at(part.lane + j * part.stride)] += side == 0 ? step[i] : -step[i];
        }
        scatter(copy, copy.b[side]);
      }
      sound = take_column(copy, step, j) && sound;
    }
    step += copy.parts.size();
  }
  return sound;
}

/// What the parts of a batch tell; false where one of them does not, or what is no number.
bool PartLinearisation::take_slopes(const BatchCopy& copy, const double* record, const double* u) {
  const StepBatch& batch = *waves_.batch(copy.batch).batch;
  const auto* const slopes = dynamic_cast<const PortSlopes*>(&batch);
  if (slopes == nullptr) return false;
  const std::size_t size = at(batch.wave_size()) * at(batch.wave_size());
  return std::ranges::all_of(copy.parts, [&](const Own& own) {
    double* const D = matrices_.data() + own.matrix;
    const PartSlot& part = waves_.slot(own.part);
    return slopes->port_slopes(part.lane, record, u + part.wave, part.stride, D) &&
           std::all_of(D, D + size, [](double value) { return std::isfinite(value); });
  });
}

/// Copies the lane groups to be solved: other threads may be using the rest.
void PartLinearisation::copy_record(BatchCopy& copy, const double* record) const {
  const StepBatch& batch = *waves_.batch(copy.batch).batch;
  const std::vector<RecordRegion> regions = batch.record_regions();
  if (regions.empty()) {
    copy.record.assign(record, record + batch.record_size());
    return;
  }
  copy.record.resize(batch.record_size(), 0.0);
  for (int last = -1; const Own& own : copy.parts) {
    const int group = waves_.slot(own.part).lane / batch.lane_group();
    if (group == last) continue;
    last = group;
    for (const RecordRegion& region : regions) {
      const std::size_t begin = region.begin + at(group) * region.doubles;
      std::copy_n(record + begin, region.doubles, copy.record.data() + begin);
    }
  }
}

bool PartLinearisation::take_column(const BatchCopy& copy, const double* step, int column) {
  bool sound = true;
  const int width = waves_.batch(copy.batch).batch->wave_size();
  for (std::size_t i = 0; i < copy.parts.size(); ++i) {
    const PartSlot& part = waves_.slot(copy.parts[i].part);
    bool finite = true;
    const auto difference = [&](int row) {
      const std::size_t w = at(part.lane + row * part.stride);
      return (copy.b[0][w] - copy.b[1][w]) / (2.0 * step[i]);
    };
    for (int row = 0; row < width; ++row) finite = finite && std::isfinite(difference(row));
    sound = sound && finite;
    double* D = matrices_.data() + copy.parts[i].matrix;
    for (int row = 0; finite && row < width; ++row) D[row * width + column] = difference(row);
  }
  return sound;
}

/// A failed solve leaves NaN.
void PartLinearisation::scatter(BatchCopy& copy, AlignedVector& out) const {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const StepBatch& batch = *waves_.batch(copy.batch).batch;
  std::fill(out.begin(), out.end(), kNone);
  for (int last = 0; const Own& own : copy.parts) {
    const int lane = waves_.slot(own.part).lane;
    if (lane < last) continue;  // done with the group of an earlier one
    const int first = lane / batch.lane_group() * batch.lane_group();
    last = std::min(first + batch.lane_group(), batch.lanes());
    LaneStatus status;
    try {
      status = batch.scatter({first, last}, copy.record.data(), copy.a.data(), out.data());
    } catch (...) {
      status = {first, StepFault::threw};
    }
    if (status.ok()) continue;
    for (int l = status.lane; l < last; ++l) {  // what was done before it is sound
      for (int j = 0; j < batch.wave_size(); ++j) out[at(l + j * batch.stride())] = kNone;
    }
  }
}

bool PartLinearisation::archive(StateArchive& archive) {
  if (archive.reads() && archive.skip_if_equal<double>(matrices_)) return true;
  archive.array(matrices_);
  return !archive.reads();
}

std::size_t PartLinearisation::bytes() const {
  std::size_t sum =
      parts_.capacity() * sizeof(Own) + (matrices_.capacity() + kept_.capacity()) * sizeof(double);
  for (const BatchCopy& copy : copies_) {
    sum += (copy.record.capacity() + 3 * copy.a.capacity()) * sizeof(double);
  }
  return sum;
}

}  // namespace portwave
