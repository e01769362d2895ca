#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "portwave/runtime/ranks/ranks.hpp"

namespace portwave {

/// What rank 0 tells all others to do together with it.
struct RankOrder {
  enum Kind {
    step,
    step_towards,
    fetch,
    fetch_energies,
    settings_changed,
    take_state,
    prepare_terms,
    read_terms,
    tell,
    release,
    end
  };
  Kind kind = end;
  /// Of `step` the size, of `step_towards` the limit, of `take_state` and `tell` the bytes, of
  /// For `prepare_terms` their number, for `read_terms` the set.
  double value = 0.0;
};

/// How orders get from rank 0 to the others. While all ranks carry one out, its parts need no orders of
/// their own, because every rank reaches them by itself.
class RankOrders {
 public:
  /// `settings`: of settable inputs. Only the program of rank 0 changes them; they go with every order.
  RankOrders(Ranks& ranks, std::span<double> settings) : ranks_(ranks), settings_(settings) {}

  Ranks& ranks() const { return ranks_; }
  /// From now on rank 0 gives orders.
  void begin() { leads_ = ranks_.rank() == 0; }
  /// The others wait for an order of this rank.
  bool is_leading() const { return leads_ && depth_ == 0; }
  void send_if_leading(const RankOrder& order) {
    if (is_leading()) send(order);
  }
  void send(const RankOrder& order);
  /// On other ranks than 0: waits for the next one.
  RankOrder receive();

  /// All ranks are carrying out one order, from here to `leave`.
  void enter() { ++depth_; }
  void leave() { --depth_; }
  class Common {
   public:
    explicit Common(RankOrders& orders) : orders_(orders) { orders_.enter(); }
    ~Common() { orders_.leave(); }
    Common(const Common&) = delete;
    Common& operator=(const Common&) = delete;

   private:
    RankOrders& orders_;
  };

 private:
  Ranks& ranks_;
  std::span<double> settings_;
  bool leads_ = false;
  int depth_ = 0;  // of what all ranks are at
  std::vector<std::byte> message_;
};

inline void RankOrders::send(const RankOrder& order) {
  message_.resize(sizeof(RankOrder) + settings_.size_bytes());
  std::memcpy(message_.data(), &order, sizeof(RankOrder));
  std::ranges::copy(std::as_bytes(settings_), message_.begin() + sizeof(RankOrder));
  ranks_.broadcast(message_);
}

inline RankOrder RankOrders::receive() {
  message_.resize(sizeof(RankOrder) + settings_.size_bytes());
  ranks_.broadcast(message_);
  RankOrder order;
  std::memcpy(&order, message_.data(), sizeof(RankOrder));
  std::copy(message_.begin() + sizeof(RankOrder), message_.end(),
            std::as_writable_bytes(settings_).begin());
  return order;
}

}  // namespace portwave
