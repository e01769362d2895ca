#include "rank_study/rank_predictor.hpp"

#include <algorithm>
#include <cstddef>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

/// The same step with other things to agree upon.
void agree(const Agreement& agreement, bool is_cut, RankStepModel& model) {
  model.is_judged = agreement.is_judged && is_cut;
  if (agreement.has_ledger) return;
  for (RankWork& rank : model.ranks) rank.step_bytes = 0;
}

bool is_cut(const RankStepModel& model) {
  return std::ranges::any_of(model.ranks, [](const RankWork& r) { return !r.messages.empty(); });
}

/// The most that any rank of `model` does in each respect.
RankWork busiest(const RankStepModel& model) {
  RankWork most;
  for (const RankWork& rank : model.ranks) {
    if (rank.edge_s + rank.core_s > most.edge_s + most.core_s) {
      most.edge_s = rank.edge_s;
      most.core_s = rank.core_s;
    }
    most.commit_s = std::max(most.commit_s, rank.commit_s);
    most.note_bytes = std::max(most.note_bytes, rank.note_bytes);
    most.evaluation_bytes = std::max(most.evaluation_bytes, rank.evaluation_bytes);
    most.step_bytes = std::max(most.step_bytes, rank.step_bytes);
    if (rank.messages.size() > most.messages.size()) most.messages = rank.messages;
  }
  return most;
}

/// Ranks in a ring, each like `rank`, its neighbours being the nearest ones.
std::vector<RankWork> ring_of(const RankWork& rank, int count) {
  std::vector<RankWork> ring(at(count), rank);
  for (int r = 0; r < count; ++r) {
    std::vector<RankWork::Message>& messages = ring[at(r)].messages;
    messages.resize(std::min(messages.size(), at(count - 1)));
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const int distance = static_cast<int>(i) / 2 + 1;
      messages[i].to = (r + (i % 2 == 0 ? distance : count - distance)) % count;
    }
  }
  return ring;
}

}  // namespace

RankPredictor::RankPredictor(const MeasuredNetwork& measured, const Interconnect& network)
    : network_(network), memory_bytes_(measured.memory_bytes) {
  if (measured.with_ledger) with_.emplace(*measured.scenario, *measured.with_ledger);
  if (measured.without) without_.emplace(*measured.scenario, *measured.without);
  own_.has_ledger = measured.keeps_ledger;
  own_.is_judged = layout_for(own_).measured().is_judged;
  parts_ = layout_for(own_).deal(1, 1).parts;
}

const RankLayout& RankPredictor::layout_for(const Agreement& agreement) const {
  return agreement.has_ledger || !without_ ? *with_ : *without_;
}

RankScalingRow RankPredictor::row_of(const RankStepModel& model, int threads) const {
  RankScalingRow row;
  row.size = model.parts();
  row.ranks = static_cast<int>(model.ranks.size());
  row.threads = threads;
  row.predicted = true;
  row.execution = "predicted";
  row.prediction = rank_step_time(model, network_);
  row.simulated_s = simulate_ranks(model, network_);
  row.step_s = row.prediction.total_s();
  for (const RankWork& rank : model.ranks) {
    double bytes = 0.0;
    for (const RankWork::Message& message : rank.messages)
      bytes += static_cast<double>(message.bytes);
    row.message_bytes = std::max(row.message_bytes, bytes * (model.iterations + 1));
    row.neighbours = std::max(row.neighbours, static_cast<int>(rank.messages.size()));
    if (row.ranks > 1) row.gathered_bytes += static_cast<double>(rank.note_bytes);
  }
  const auto evaluation = static_cast<double>(model.evaluation_bytes());
  const auto step = static_cast<double>(model.step_bytes());
  row.gathered_bytes += rounds_of(row.ranks) * (model.iterations * evaluation + step);
  return row;
}

RankScalingRow RankPredictor::strong(int ranks, int threads, const Agreement& agreement) const {
  RankLayout::Dealt dealt = layout_for(agreement).deal(ranks, threads);
  agree(agreement, is_cut(dealt.model), dealt.model);
  RankScalingRow row = row_of(dealt.model, threads);
  row.size = dealt.parts;
  row.tasks = dealt.tasks;
  row.memory_bytes = memory_bytes_;
  return row;
}

RankScalingRow RankPredictor::weak(int ranks, int threads, int like,
                                   const Agreement& agreement) const {
  const RankLayout& layout = layout_for(agreement);
  const RankLayout::Dealt dealt = layout.deal(like, threads);
  RankStepModel model = dealt.model;
  RankWork rank = busiest(model);
  // Ranks in the middle have neighbours on all sides; where there are few, nobody is in the middle.
  constexpr int kEnoughForAMiddle = 4;
  if (like < kEnoughForAMiddle) {
    const RankWork middle = busiest(layout.deal(kEnoughForAMiddle, threads).model);
    rank.messages = middle.messages;
    rank.evaluation_bytes = middle.evaluation_bytes;
    rank.step_bytes = middle.step_bytes;
  }
  rank.parts = (dealt.parts + like - 1) / like;
  model.ranks = ring_of(rank, ranks);
  const double more = static_cast<double>(model.parts()) / static_cast<double>(dealt.parts);
  if (model.is_driven) model.begin_s *= more;  // else it is clocks
  if (layout.islands() > 1) model.common_s *= more;
  model.order_bytes = static_cast<std::int64_t>(static_cast<double>(model.order_bytes) * more);
  agree(agreement, is_cut(model), model);
  RankScalingRow row = row_of(model, threads);
  row.tasks = dealt.tasks / like * ranks;
  row.memory_bytes = memory_bytes_ * more;
  return row;
}

}  // namespace portwave
