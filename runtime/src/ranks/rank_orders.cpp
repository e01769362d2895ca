#include "ranks/rank_orders.hpp"

#include <algorithm>
#include <cstring>

namespace portwave {

void RankOrders::send(const RankOrder& order) {
  message_.resize(sizeof(RankOrder) + settings_.size_bytes());
  std::memcpy(message_.data(), &order, sizeof(RankOrder));
  std::ranges::copy(std::as_bytes(settings_), message_.begin() + sizeof(RankOrder));
  ranks_.broadcast(message_);
}

RankOrder RankOrders::receive() {
  message_.resize(sizeof(RankOrder) + settings_.size_bytes());
  ranks_.broadcast(message_);
  RankOrder order;
  std::memcpy(&order, message_.data(), sizeof(RankOrder));
  std::copy(message_.begin() + sizeof(RankOrder), message_.end(),
            std::as_writable_bytes(settings_).begin());
  return order;
}

}  // namespace portwave
