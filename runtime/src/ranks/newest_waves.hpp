#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "portwave/runtime/ranks/ranks.hpp"

namespace portwave {

/// The waves of neighbouring ranks in an asynchronous exchange: the newest that have come. Messages of a
/// step are numbered without a gap; they may come in any order, and one that is older than what is
/// there is dropped (docs/decisions/0054-stale-waves.md).
class NewestWaves {
 public:
  /// `sizes`: doubles of a message, by neighbour. The messages must have slots(max_delay) slots: a
  /// rank may be max_delay + 1 messages ahead of a neighbour that has not taken as many of its own.
  NewestWaves(std::span<const std::size_t> sizes, int max_delay);
  static int slots(int max_delay) { return 2 * max_delay + 2; }

  /// A step begins whose messages are numbered from `first`. waves(i) are to be those before it.
  void begin(std::uint64_t first);
  std::span<double> waves(int i) { return inboxes_[static_cast<std::size_t>(i)].waves; }
  /// Takes what has come up to message `last`, and waits while the waves of some neighbour are older than
  /// number `now` − max_delay.
  void take(NeighbourMessages& messages, std::uint64_t now, std::uint64_t last);
  /// Waits for what is still to come up to message `last`, and drops it.
  void drain(NeighbourMessages& messages, std::uint64_t last);

 private:
  struct Inbox {
    std::vector<double> waves;
    std::uint64_t number = 0;    // of them; first − 1: of before the step
    std::uint64_t open = 0;      // the first message that has not come
    std::vector<char> has_come;  // by slot: of the messages from there on
  };

  char& has_come(Inbox& inbox, std::uint64_t number) const {
    return inbox.has_come[number % inbox.has_come.size()];
  }
  /// Messages that may be asked for: those before must have come, or their slots are not free.
  std::uint64_t end(const Inbox& inbox) const { return inbox.open + inbox.has_come.size(); }
  bool try_take(NeighbourMessages& messages, int i, std::uint64_t number, std::uint64_t now);
  void wait_for(NeighbourMessages& messages, int i, std::uint64_t number);

  std::uint64_t max_delay_;
  std::vector<Inbox> inboxes_;
};

}  // namespace portwave
