#include "ranks/rank_peers.hpp"

#include <cstddef>
#include <cstdint>

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
  bytes_.clear();
  for (const std::size_t count : counts) bytes_.push_back(count * sizeof(double));
  ranks_.gather(std::as_bytes(own), bytes_, std::as_writable_bytes(all));
}

std::unique_ptr<NetworkPeers::Messages> RankPeers::connect(std::span<const Neighbour> neighbours) {
  std::vector<Ranks::Neighbour> all;
  for (const Neighbour& own : neighbours) all.push_back({own.rank, own.sent, own.received});
  return std::make_unique<NumberedMessages>(ranks_.connect(all));
}

}  // namespace portwave
