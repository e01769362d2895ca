#include "ranks/term_gather.hpp"

#include <utility>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {

std::vector<int> ranks_of_parts(const WaveDiscretisation& waves, const Partition& partition,
                                std::span<const int> ranks_of_tasks) {
  std::vector<int> out(waves.slots().size(), 0);
  for (std::size_t t = 0; t < partition.tasks.size(); ++t) {
    if (ranks_of_tasks[t] < 0) continue;  // every rank's
    for (const BatchRange& range : partition.tasks[t].ranges) {
      const std::vector<int>& parts = waves.batch(range.batch).parts;
      for (int lane = range.lanes.first; lane < range.lanes.last; ++lane) {
        out[at(parts[at(lane)])] = ranks_of_tasks[t];
      }
    }
  }
  return out;
}

TermGather::TermGather(std::vector<QuantityTerm> terms, std::span<const int> ranks_of_terms,
                       Ranks& ranks)
    : terms_(std::move(terms)), of_rank_(at(ranks.size())), rank_(ranks.rank()) {
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    of_rank_[at(ranks_of_terms[i])].push_back(static_cast<int>(i));
  }
  std::vector<Ranks::Neighbour> neighbours;
  for (int r = 1; r < ranks.size(); ++r) {
    const std::size_t count = of_rank_[at(r)].size();
    if (count == 0) continue;
    if (rank_ == 0) {
      senders_.push_back(r);
      neighbours.push_back({.rank = r, .sent = 0, .received = count});
    } else if (rank_ == r) {
      neighbours.push_back({.rank = 0, .sent = count, .received = 0});
    }
  }
  messages_ = ranks.connect(neighbours, 2, Carries::sums);
}

void TermGather::gather(const Read& read, std::span<double> values) {
  const std::vector<int>& own = of_rank_[at(rank_)];
  const std::uint64_t number = number_++;
  if (rank_ != 0) {
    if (own.empty()) return;
    const std::span<double> to = messages_->outgoing(0, number);
    for (std::size_t i = 0; i < own.size(); ++i) to[i] = read(terms_[at(own[i])]);
  }
  // Of rank 0 the others get an empty message.
  for (int n = 0; n < static_cast<int>(senders_.size()); ++n) {
    static_cast<void>(messages_->outgoing(n, number));
  }
  messages_->send(number);
  for (const int i : own) {
    if (rank_ == 0) values[at(i)] = read(terms_[at(i)]);
  }
  messages_->receive(number);
  for (int n = 0; n < static_cast<int>(senders_.size()); ++n) {
    const std::vector<int>& theirs = of_rank_[at(senders_[at(n)])];
    const std::span<const double> from = messages_->incoming(n, number);
    for (std::size_t i = 0; i < theirs.size(); ++i) values[at(theirs[i])] = from[i];
  }
  messages_->release(number);
}

}  // namespace portwave
