#include "idle/live_batch.hpp"

#include <algorithm>

#include "base/workspace.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

/// How the last step led to a state.
constexpr double kStepped = 1.0, kDamped = 2.0;

/// (G + P)ᵀg + (S + N)u of a port, by columns: S is symmetric and N skew.
template <class Input>
double row_product(const Structure& s, const double* g, int scalar_port, const Input& input) {
  double y = 0.0;
  for (const SparseMatrix* M : {&s.G, &s.P}) {
    for (SparseMatrix::InnerIterator it(*M, scalar_port); it; ++it) y += it.value() * g[it.row()];
  }
  for (SparseMatrix::InnerIterator it(s.S, scalar_port); it; ++it)
    y += it.value() * input(it.row());
  for (SparseMatrix::InnerIterator it(s.N, scalar_port); it; ++it)
    y -= it.value() * input(it.row());
  return y;
}

}  // namespace

LiveBatch::LiveBatch(std::unique_ptr<StepBatch> own, std::vector<Given> given)
    : StepBatch(own->lanes(), own->state_size(), own->wave_size(), own->input_size()),
      own_(std::move(own)),
      given_(std::move(given)),
      staged_(given_.size()) {}

void LiveBatch::expect(const BatchUse& use) {
  BatchUse own = use;
  own.stage_increments = use.stage_increments || stages() > 1;
  own_->expect(own);
}

void LiveBatch::prepare(double step_s, const double* impedance) {
  own_->prepare(step_s, impedance);
  step_s_ = step_s;
}

std::size_t LiveBatch::kept_size() const {
  return at(1 + state_size() + 2 * input_size() + increments());
}

std::size_t LiveBatch::record_size() const {
  const int group = own_->lane_group();
  const int groups = (lanes() + group - 1) / group;
  return own_->record_size() + at(groups * group) * kept_size();
}

std::vector<RecordRegion> LiveBatch::record_regions() const {
  std::vector<RecordRegion> out = own_->record_regions();
  if (out.empty() && own_->record_size() > 0) return out;
  out.push_back({own_->record_size(), at(own_->lane_group()) * kept_size()});
  return out;
}

void LiveBatch::freeze(LaneRange lanes, double* record, const double* input) const {
  own_->freeze(lanes, record, input);
  const int q = input_size();
  for (int l = lanes.first; q > 0 && l < lanes.last; ++l) {
    double* const coming = kept(l, record) + 1 + state_size() + q;
    if (input == nullptr) {
      std::fill_n(coming, q, 0.0);
    } else {
      std::copy_n(input + static_cast<std::ptrdiff_t>(l) * q, q, coming);
    }
  }
}

/// What belongs to the step is kept whether or not a lane failed: others of the range may stand.
LaneStatus LiveBatch::advance(LaneRange lanes, double* record, const double* a, double* next,
                              double* b, const EnergyColumns& energy) const {
  const LaneStatus status = own_->advance(lanes, record, a, next, b, energy);
  const int n = state_size(), q = input_size();
  for (int l = lanes.first; l < lanes.last; ++l) {
    const double* const from = kept(l, record);
    double* const to = kept(l, next);
    to[0] = given_[at(l)].rule.is_damped() ? kDamped : kStepped;
    own_->get_state(l, record, to + 1);
    std::copy_n(from + 1 + n + q, q, to + 1 + n);
    std::fill_n(to + 1 + n + q, q, 0.0);
  }
  if (increments() > 0) keep_increments(lanes, record, a, next);
  return status;
}

void LiveBatch::keep_increments(LaneRange lanes, const double* record, const double* a,
                                double* next) const {
  const int rows = increments(), before = 1 + state_size() + 2 * input_size();
  detail::Workspace room(at(rows * own_->stride()));
  stage_increments(*own_, lanes, record, a, next, room.data());
  for (int l = lanes.first; l < lanes.last; ++l) {
    double* const to = kept(l, next) + before;
    for (int i = 0; i < rows; ++i) to[i] = room.data()[i * own_->stride() + l];
  }
}

bool LiveBatch::exchange(int lane, StepBatch& one, const double* impedance) {
  auto* const lanes = dynamic_cast<LaneExchange*>(own_.get());
  auto* const other = dynamic_cast<LiveBatch*>(&one);
  if (lanes == nullptr || other == nullptr) return false;
  if (!lanes->exchange(lane, *other->own_, impedance)) return false;
  given_[at(lane)] = other->given_.front();
  staged_[at(lane)].reset();
  return true;
}

/// Allocates only where several threads ask at once, or a structure of another size was asked for before.
double LiveBatch::idle_output(int lane, const double* record, int scalar_port, int stage,
                              std::span<const double> inputs) const {
  const double* const own = kept(lane, record);
  if (own[0] == 0.0) return 0.0;
  if (stages() > 1) return output_of_stage(lane, own, scalar_port, stage, inputs);
  const Subsystem& part = *given_[at(lane)].physics;
  const int n = state_size();
  const double* const x = own + 1;
  detail::Workspace room(at(3 * n));
  double *const next = room.data(), *const dx = next + n, *const g = dx + n;
  own_->get_state(lane, record, next);
  for (int i = 0; i < n; ++i) dx[i] = next[i] - x[i];
  const double theta = own[0] == kDamped ? 1.0 : 0.0;
  if (theta > 0.0) {
    part.gradient(next, g);  // ∇̄H + ½hQẋ
  } else {
    part.discrete_gradient(x, next, g);
  }
  if (part.constant_structure()) return output_by(part.structure(), g, own, scalar_port, inputs);
  if (taken_.exchange(true, std::memory_order_acquire)) {
    Structure structure = part.structure();
    damped_structure_over(part, x, dx, step_s_, theta, structure);
    return output_by(structure, g, own, scalar_port, inputs);
  }
  struct Return {
    std::atomic<bool>& taken;
    ~Return() { taken.store(false, std::memory_order_release); }
  } const give_back{taken_};  // also where a callback throws
  structure_ = part.structure();
  damped_structure_over(part, x, dx, step_s_, theta, structure_);
  return output_by(structure_, g, own, scalar_port, inputs);
}

/// The same of the part as StagedPhysics writes it, whose states are (x, δ).
double LiveBatch::output_of_stage(int lane, const double* own, int scalar_port, int stage,
                                  std::span<const double> inputs) const {
  const std::scoped_lock lock(reading_);
  std::unique_ptr<const StagedPhysics>& physics = staged_[at(lane)];
  if (physics == nullptr) {
    const Given& given = given_[at(lane)];
    physics = std::make_unique<const StagedPhysics>(*given.physics, given.rule);
  }
  const StageLayout& layout = physics->layout();
  const int n = layout.n, q = input_size(), rows = n + layout.states();
  detail::Workspace room(at(4 * rows + layout.ports() + layout.inputs()));
  double *const start = room.data(), *const next = start + rows, *const moved = next + rows,
                *const g = moved + rows, *const u = g + rows;
  std::fill(start, next, 0.0);
  std::copy_n(own + 1, n, start);
  std::copy_n(own + 1, n, next);
  std::copy_n(own + 1 + n + 2 * q, layout.states(), next + n);
  for (int i = 0; i < rows; ++i) moved[i] = next[i] - start[i];
  physics->discrete_gradient(start, next, g);
  std::fill_n(u, layout.ports() + layout.inputs(), 0.0);
  for (int j = 0; j < layout.p; ++j) u[layout.port(stage, j)] = inputs[at(j)];
  std::copy_n(own + 1 + n, q, u + layout.ports());
  Structure s = physics->structure();
  if (!physics->constant_structure()) physics->structure_over(start, moved, step_s_, s);
  const std::span<const double> all(u, at(layout.ports() + layout.inputs()));
  return row_product(s, g, layout.port(stage, scalar_port),
                     [&](Eigen::Index j) { return all[at(static_cast<int>(j))]; });
}

/// y = (G + P)ᵀ∇̄H + (S + N)u. Laws of ports add nothing at inputs of 0.
double LiveBatch::output_by(const Structure& s, const double* gradient, const double* past,
                            int scalar_port, std::span<const double> inputs) const {
  const double* const external = past + 1 + state_size();
  return row_product(s, gradient, scalar_port, [&](Eigen::Index j) {
    const auto place = static_cast<std::size_t>(j);
    return place < inputs.size() ? inputs[place] : external[place - inputs.size()];
  });
}

}  // namespace portwave
