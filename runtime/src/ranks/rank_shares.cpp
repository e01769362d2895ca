#include "ranks/rank_shares.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave {

RankShares::RankShares(const WaveDiscretisation& waves, const RankCut& cut,
                       std::shared_ptr<Ranks> ranks)
    : waves_(waves),
      slice_(waves.system().slice()),
      ranks_(std::move(ranks)),
      rank_of_task_(cut.rank_of_task),
      rank_of_entry_(at(waves.entry_count()), kEvery),
      runs_(at(ranks_->size())),
      bytes_(runs_.size()) {
  Issues issues;
  for (std::size_t t = 0; t < cut.partition.tasks.size(); ++t) {
    const int rank = rank_of_task_[t];
    const auto& ranges = cut.partition.tasks[t].ranges;
    if (is_own(static_cast<int>(t))) {
      own_tasks_.push_back(static_cast<int>(t));
      own_ranges_.insert(own_ranges_.end(), ranges.begin(), ranges.end());
    }
    if (rank == kEvery) continue;
    for (const BatchRange& range : ranges) {
      const BatchSlot& batch = waves.batch(range.batch);
      if (ranks_->size() > 1 && slice_ == nullptr && batch.batch->record_size() > 0 &&
          batch.batch->record_regions().empty()) {
        const int part = batch.parts[at(range.lanes.first)];
        issues.push_back(
            {fmt::format("/subsystems/{}", part),
             fmt::format(
                 "subsystem {} keeps its state elsewhere than in its record, so that no other "
                 "rank can be told of it: run it in one process",
                 in_quotes(waves.system().parts()[at(part)].name))});
      }
      if (slice_ == nullptr) add_range(rank, range);
    }
  }
  throw_if_any(std::move(issues));
}

void RankShares::add_range(int rank, const BatchRange& range) {
  const BatchSlot& batch = waves_.batch(range.batch);
  const auto add = [&](Array::Kind kind, std::size_t begin, std::size_t count) {
    if (count == 0) return;
    Runs& runs = runs_[at(rank)];
    runs.doubles[kind] += count;
    std::vector<Run>& list = runs.of[kind];
    if (!list.empty() && list.back().begin + list.back().count == begin) {
      list.back().count += count;
    } else {
      list.push_back({begin, count});
    }
  };
  const auto first = at(range.lanes.first), count = at(range.lanes.last) - first;
  add(Array::entries, at(batch.entry) + first, count);
  std::fill_n(rank_of_entry_.begin() + batch.entry + range.lanes.first, count, rank);
  for (int j = 0; j < batch.batch->wave_size(); ++j) {
    add(Array::waves, at(batch.wave + j * batch.batch->stride()) + first, count);
  }
  const int group = batch.batch->lane_group();
  const auto first_group = at(range.lanes.first / group);
  const auto groups = at((range.lanes.last + group - 1) / group) - first_group;
  for (const RecordRegion& region : batch.batch->record_regions()) {
    add(Array::record, batch.record + region.begin + first_group * region.doubles,
        groups * region.doubles);
  }
}

PhaseStatus RankShares::merged(PhaseStatus own) {
  struct Head {
    int part;
    StepFault fault;
    std::size_t detail_bytes;
  };
  const auto heads =
      gather_values(*ranks_, Head{number_of(own.part), own.fault, own.detail.size()});
  if (std::ranges::all_of(heads, [](const Head& h) { return h.fault == StepFault::none; }))
    return {};
  std::vector<std::size_t> bytes;
  for (const Head& head : heads) bytes.push_back(head.detail_bytes);
  const auto texts = share(std::span<const Array>(), std::as_bytes(std::span(own.detail)), bytes);
  const char* text = reinterpret_cast<const char*>(texts.data());
  PhaseStatus lowest;
  for (const Head& head : heads) {
    lowest.merge({head.part, head.fault, std::string(text, head.detail_bytes)});
    text += head.detail_bytes;
  }
  return lowest;
}

std::span<const std::byte> RankShares::share(std::span<const Array> arrays,
                                             std::span<const std::byte> note,
                                             std::span<const std::size_t> notes) {
  std::size_t all = 0;
  for (std::size_t r = 0; r < bytes_.size(); ++r) {
    bytes_[r] = notes.empty() ? 0 : notes[r];
    for (const Array& array : arrays) bytes_[r] += runs_[r].doubles[array.kind] * sizeof(double);
    all += bytes_[r];
  }
  received_.resize(all);
  sent_.resize(bytes_[at(rank())]);
  std::byte* to = sent_.data();
  const auto copy = [](const void* from, std::size_t bytes, void* into) {
    if (bytes > 0) std::memcpy(into, from, bytes);
    return bytes;
  };
  to += copy(note.data(), note.size(), to);
  for (const Array& array : arrays) {
    for (const Run& run : runs_[at(rank())].of[array.kind]) {
      to += copy(array.data + run.begin, run.count * sizeof(double), to);
    }
  }
  ranks_->gather(sent_, bytes_, received_);
  notes_.clear();
  const std::byte* from = received_.data();
  for (std::size_t r = 0; r < bytes_.size(); ++r) {
    const std::size_t own_note = notes.empty() ? 0 : notes[r];
    notes_.insert(notes_.end(), from, from + own_note);
    const std::byte* const end = from + bytes_[r];
    from += own_note;
    for (const Array& array : arrays) {
      if (r == at(rank())) break;
      for (const Run& run : runs_[r].of[array.kind]) {
        from += copy(from, run.count * sizeof(double), array.data + run.begin);
      }
    }
    from = end;
  }
  return notes_;
}

}  // namespace portwave
