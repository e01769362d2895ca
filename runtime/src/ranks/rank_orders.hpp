#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "portwave/runtime/ranks/ranks.hpp"

namespace portwave {

/// An order of rank 0: all ranks carry it out together.
struct RankOrder {
  enum Kind {
    step,
    step_towards,
    fetch,
    fetch_energies,
    settings_changed,
    take_state,
    take_jump,
    prepare_terms,
    read_terms,
    tell,
    release,
    end
  };
  Kind kind = end;
  /// For `step` the size, for `step_towards` the limit, for `take_state`, `take_jump` and `tell` the number of bytes, for
  /// `prepare_terms` the number of terms, for `read_terms` the set.
  double value = 0.0;
};

/// Sends orders from rank 0 to the others. Within an order no further ones are sent, because every rank
/// reaches the same calls by itself.
class RankOrders {
 public:
  /// `settings`: of settable inputs. Only the program of rank 0 changes them; they go with every order.
  RankOrders(Ranks& ranks, std::span<double> settings) : ranks_(ranks), settings_(settings) {}

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
  int depth_ = 0;  // orders that all ranks are carrying out, one within the other
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
