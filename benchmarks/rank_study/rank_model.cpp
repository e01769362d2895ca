#include "rank_study/rank_model.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <queue>
#include <stdexcept>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

/// By rank: when its neighbours' messages are here, all having begun an evaluation together [s]; 0
/// without neighbours.
std::vector<double> arrivals_s(const RankStepModel& model, const Interconnect& network) {
  std::vector<double> arrivals(model.ranks.size(), 0.0);
  for (const RankWork& rank : model.ranks) {
    double bytes = 0.0;
    for (const RankWork::Message& message : rank.messages) {
      bytes += static_cast<double>(message.bytes);
      double& arrival = arrivals[at(message.to)];
      arrival = std::max(arrival, rank.edge_s + network.message_s(bytes));
    }
  }
  return arrivals;
}

double bytes_sent(const RankWork& rank) {
  double bytes = 0.0;
  for (const RankWork::Message& message : rank.messages) {
    bytes += static_cast<double>(message.bytes);
  }
  return bytes;
}

double own_s(const RankWork& rank, int iterations) {
  return iterations * (rank.edge_s + rank.core_s) + rank.commit_s;
}

}  // namespace

std::int64_t RankStepModel::parts() const {
  std::int64_t sum = 0;
  for (const RankWork& rank : ranks) sum += rank.parts;
  return sum;
}

std::int64_t RankStepModel::evaluation_bytes() const {
  std::int64_t most = 0;
  for (const RankWork& rank : ranks) most = std::max(most, rank.evaluation_bytes);
  return is_judged ? most : 0;
}

std::int64_t RankStepModel::step_bytes() const {
  std::int64_t most = 0;
  for (const RankWork& rank : ranks) most = std::max(most, rank.step_bytes);
  return most;
}

int rounds_of(int ranks) {
  return ranks <= 1 ? 0 : static_cast<int>(std::bit_width(static_cast<unsigned>(ranks) - 1U));
}

void check_messages(const RankStepModel& model) {
  const int count = static_cast<int>(model.ranks.size());
  for (int r = 0; r < count; ++r) {
    for (const RankWork::Message& message : model.ranks[at(r)].messages) {
      if (message.to >= 0 && message.to < count && message.to != r) continue;
      throw std::invalid_argument(
          fmt::format("rank {} of {} sends to rank {}", r, count, message.to));
    }
  }
}

double gather_s(double bytes, int ranks, const Interconnect& network) {
  if (ranks <= 1) return 0.0;
  const double received = bytes * (ranks - 1.0) / ranks;
  return rounds_of(ranks) * network.latency_s + received / network.bandwidth_B_per_s;
}

double exchange_s(double bytes, double notes, int ranks, const Interconnect& network) {
  return gather_s(notes, ranks, network) + rounds_of(ranks) * bytes / network.bandwidth_B_per_s;
}

double broadcast_s(double bytes, int ranks, const Interconnect& network) {
  if (ranks <= 1) return 0.0;
  // The longest way down the tree, on which ranks may have sent to others before.
  const int longest = static_cast<int>(std::bit_width(static_cast<unsigned>(ranks))) - 1;
  return longest * network.latency_s + rounds_of(ranks) * bytes / network.bandwidth_B_per_s;
}

double list_schedule_s(std::span<const double> tasks_s, int threads) {
  std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
  for (int i = 0; i < std::max(threads, 1); ++i) free_at.push(0.0);
  double last = 0.0;
  for (const double task_s : tasks_s) {
    const double end = free_at.top() + task_s;
    free_at.pop();
    free_at.push(end);
    last = std::max(last, end);
  }
  return last;
}

RankStepTime rank_step_time(const RankStepModel& model, const Interconnect& network) {
  check_messages(model);
  const int ranks = static_cast<int>(model.ranks.size());
  const std::vector<double> arrival_s = arrivals_s(model, network);
  double own = 0.0, solve = 0.0, slowest = 0.0, commit = 0.0, notes = 0.0, most_sent = 0.0;
  for (std::size_t r = 0; r < model.ranks.size(); ++r) {
    const RankWork& rank = model.ranks[r];
    own += own_s(rank, model.iterations) / ranks;
    solve = std::max(solve, rank.edge_s + rank.core_s);
    slowest = std::max({slowest, rank.edge_s + rank.core_s, arrival_s[r]});
    commit = std::max(commit, rank.commit_s);
    notes += static_cast<double>(rank.note_bytes);
    most_sent = std::max(most_sent, bytes_sent(rank));
  }
  RankStepTime time;
  time.work_s = own;
  time.imbalance_s = std::max(model.iterations * solve + commit - own, 0.0);
  const auto evaluation = static_cast<double>(model.evaluation_bytes());
  const auto step = static_cast<double>(model.step_bytes());
  time.common_s = model.begin_s + model.common_s;
  if (ranks > 1)
    time.common_s += model.copy_s_per_B * rounds_of(ranks) * (model.iterations * evaluation + step);
  // Committed waves travel while everyone gathers, but leave before that.
  time.messages_s = model.iterations * (slowest - solve) + most_sent / network.bandwidth_B_per_s;
  time.gathers_s = broadcast_s(static_cast<double>(model.order_bytes), ranks, network) +
                   exchange_s(step, notes, ranks, network);
  if (model.is_driven) time.gathers_s += gather_s(kStatusBytes * ranks, ranks, network);
  if (model.is_judged) {
    time.gathers_s += model.iterations * exchange_s(evaluation, ranks, ranks, network);
  }
  return time;
}

}  // namespace portwave
