#include "parallel/task_calls.hpp"

#include <algorithm>
#include <cstddef>

#include "portwave/subsystems/base/index.hpp"

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
  const auto bind_all = [&](const std::vector<TaskSlice>& slices, std::vector<Call>& calls) {
    calls.clear();
    for (const TaskSlice& slice : slices) {
      const BatchSlot& batch = waves_.batch(slice.batch);
      calls.push_back({batch.batch->bind_scatter(slice.lanes, s.record + batch.record,
                                                 s.u + batch.wave, s.b_trial + batch.wave),
                       slice});
    }
  };
  bind_all(shape_.edge, bound.edge);
  bind_all(shape_.core, bound.core);
  bound.commit.clear();
  for (const auto* slices : {&shape_.edge, &shape_.core}) {
    for (const TaskSlice& slice : *slices) {
      const BatchSlot& batch = waves_.batch(slice.batch);
      bound.commit.push_back(
          {batch.batch->bind_advance(slice.lanes, s.record + batch.record, s.a + batch.wave,
                                     s.next + batch.record, s.b_next + batch.wave,
                                     s.columns.from(batch.entry)),
           slice});
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
  const auto is_large = [](const TaskSlice& slice) {
    return slice.lanes.last - slice.lanes.first > SmallIsland::kMostLanes;
  };
  if (std::ranges::any_of(shape_.core, is_large)) return nullptr;  // without a list on the heap
  std::vector<SmallIsland::Lanes> lanes;
  for (const TaskSlice& slice : shape_.core) lanes.push_back({slice.batch, slice.lanes});
  return SmallIsland::of(waves_, lanes, shape_.core_junctions, record, numbers);
}

}  // namespace portwave
