#include "ranks/rank_peers.hpp"

#include <algorithm>
#include <cstdint>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

class NumberedMessages final : public NetworkPeers::Messages {
 public:
  explicit NumberedMessages(std::unique_ptr<NeighbourMessages> messages)
      : messages_(std::move(messages)) {}
  std::span<double> outgoing(int neighbour) override {
    return messages_->outgoing(neighbour, number_);
  }
  void send() override { messages_->send(number_); }
  void receive() override { messages_->receive(number_); }
  std::span<const double> incoming(int neighbour) override {
    return messages_->incoming(neighbour, number_);
  }
  void release() override { messages_->release(number_++); }

 private:
  std::unique_ptr<NeighbourMessages> messages_;
  std::uint64_t number_ = 0;
};

}  // namespace

void RankPeers::gather(std::span<const double> own, std::span<const std::size_t> counts,
                       std::span<double> all) {
  if (Messages* const messages = repeated(counts, all.size())) {
    const auto others = ranks_.size() - 1;
    for (int n = 0; n < others; ++n) std::ranges::copy(own, messages->outgoing(n).begin());
    messages->send();
    messages->receive();
    auto to = all.begin();
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      const std::span<const double> from =
          rank == ranks_.rank() ? own : messages->incoming(rank < ranks_.rank() ? rank : rank - 1);
      to = std::ranges::copy(from, to).out;
    }
    messages->release();
    return;
  }
  bytes_.clear();
  for (const std::size_t count : counts) bytes_.push_back(count * sizeof(double));
  ranks_.gather(std::as_bytes(own), bytes_, std::as_writable_bytes(all));
}

/// Null where messages from each to each would be too many or too long, or are of too many sizes.
NetworkPeers::Messages* RankPeers::repeated(std::span<const std::size_t> counts, std::size_t sum) {
  constexpr std::size_t kLongest = 1 << 13, kMost = 8;
  constexpr int kMostRanks = 8;
  if (sum > kLongest || ranks_.size() > kMostRanks) return nullptr;
  for (const Repeated& known : repeated_) {
    if (std::ranges::equal(known.counts, counts)) return known.messages.get();
  }
  if (repeated_.size() == kMost) return nullptr;
  std::vector<Neighbour> others;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    if (rank == ranks_.rank()) continue;
    others.push_back({rank, counts[at(ranks_.rank())], counts[at(rank)]});
  }
  repeated_.push_back({{counts.begin(), counts.end()}, connect(others, Carries::sums)});
  return repeated_.back().messages.get();
}

std::unique_ptr<NetworkPeers::Messages> RankPeers::connect(std::span<const Neighbour> neighbours,
                                                           Carries carries) {
  std::vector<Ranks::Neighbour> all;
  for (const Neighbour& own : neighbours) all.push_back({own.rank, own.sent, own.received});
  return std::make_unique<NumberedMessages>(ranks_.connect(all, 2, carries));
}

}  // namespace portwave
