#include "parallel/task_calls.hpp"

#include <algorithm>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"

namespace portwave {

const TaskCalls::Bound& TaskCalls::bind(const StepArrays& s) {
  std::vector<int> numbers(at(waves_.wave_size()), -1);
  return bind(s, alone_, numbers);
}

const TaskCalls::Bound& TaskCalls::bind(const StepArrays& s, bool alone,
                                        std::vector<int>& numbers) {
  alone_ = alone;
  Bound& bound = bound_[bound_[0].record == nullptr ? 0 : 1];
  bound.record = s.record;
  const auto bind_all = [&](const std::vector<BatchRange>& ranges, std::vector<Call>& calls) {
    calls.clear();
    for (const BatchRange& range : ranges) {
      const BatchSlot& batch = waves_.batch(range.batch);
      if (batch.batch->wave_size() == 0) continue;  // only the commit steps it
      Call& call = calls.emplace_back();
      call.range = range;
      if (batch.calls == nullptr) continue;
      call.bound = batch.calls->bind_scatter(range.lanes, s.record + batch.record, s.u + batch.wave,
                                             s.b_trial + batch.wave);
    }
  };
  bind_all(shape_.edge, bound.edge);
  bind_all(shape_.core, bound.core);
  bound.commit.clear();
  for (const auto* ranges : {&shape_.edge, &shape_.core}) {
    for (const BatchRange& range : *ranges) {
      const BatchSlot& batch = waves_.batch(range.batch);
      Call& call = bound.commit.emplace_back();
      call.range = range;
      if (batch.calls == nullptr) continue;
      call.bound = batch.calls->bind_advance(range.lanes, s.record + batch.record, s.a + batch.wave,
                                             s.next + batch.record, s.b_next + batch.wave,
                                             s.columns.from(batch.entry));
    }
  }
  bound.small = alone ? bind_small(s.record, numbers) : nullptr;
  bound.examines_islands = bound.small != nullptr && s.ledger != nullptr &&
                           std::ranges::all_of(shape_.islands, [&](int island) {
                             return s.ledger->prepare_island(island);
                           });
  return bound;
}

std::unique_ptr<SmallIsland> TaskCalls::bind_small(double* record,
                                                   std::vector<int>& numbers) const {
  const auto is_large = [](const BatchRange& range) {
    return range.lanes.last - range.lanes.first > SmallIsland::kMostLanes;
  };
  if (std::ranges::any_of(shape_.core, is_large)) return nullptr;  // without a list on the heap
  std::vector<SmallIsland::Lanes> lanes;
  for (const BatchRange& range : shape_.core) lanes.push_back({range.batch, range.lanes});
  return SmallIsland::of(waves_, lanes, shape_.core_junctions, record, numbers);
}

}  // namespace portwave
