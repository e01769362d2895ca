#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "choices.hpp"

namespace portwave::weak_memory {

enum class Order : std::uint8_t { relaxed, acquire, release, acq_rel };

constexpr bool acquires(Order o) { return o == Order::acquire || o == Order::acq_rel; }
constexpr bool releases(Order o) { return o == Order::release || o == Order::acq_rel; }

/// The memory of C++20 as a machine of views.
///
/// An atomic location holds its modification order, a list of messages. A thread has a view: per
/// location the oldest message that it may still read, and what it knows of the plain cells.
///   load     reads any message from its view on; acquire takes over the view in the message.
///   store    goes anywhere behind its view, but not between a read-modify-write and what that
///            read; a release store carries the thread's view, a relaxed one carries nothing.
///   RMW      reads a message that no RMW follows yet and goes right behind it; it carries on the
///            view of the message (the release sequence of C++20), with its own if it releases.
/// There are no fences, no seq_cst, and no load sees a store that comes later in the interleaving
/// (no cycle of program order and reads-from: RC11 instead of the letter of the standard).
///
/// A plain cell holds one value. Its race detector remembers the last write and each thread's last
/// read since; a view says which of these happened before. An access not ordered behind the write,
/// or a write not ordered behind all reads, is a data race.
///
/// States are kept canonical: messages no thread can read any more are dropped, and what every
/// thread knows is not told apart.
class Memory {
 public:
  static constexpr int kAtomics = 20;
  static constexpr int kKnowledge = 128;  ///< at least cells × (1 + threads)

  Memory() = default;
  Memory(int threads, int cells, const std::vector<int>& initial_values);

  int load(int thread, int location, Order order, Choices& choices);
  void store(int thread, int location, int value, Order order, Choices& choices);

  /// Replaces the value v it reads by update(v) and returns v.
  template <class Update>
  int exchange(int thread, int location, Order order, Update&& update, Choices& choices) {
    const int i = choose_unbound(thread, location, choices);
    const int seen = message(location, i).value;
    replace(thread, location, i, update(seen), order);
    return seen;
  }
  /// Replaces the value it reads, and returns, if that is `expected`. Strong; relaxed on failure.
  /// can_exchange: it may succeed.
  int exchange_if(int thread, int location, int expected, int desired, Order order,
                  Choices& choices);
  bool can_exchange(int thread, int location, int expected) const;

  int read(int thread, int cell, const char* name);
  void write(int thread, int cell, int value, const char* name);

  void make_canonical();
  void append_to(std::vector<std::uint8_t>& key) const;

 private:
  struct Knowledge {
    std::array<std::uint32_t, kKnowledge / 32> words{};
    bool has(int bit) const { return words[bit / 32] >> (bit % 32) & 1; }
    void set(int bit) { words[bit / 32] |= std::uint32_t(1) << (bit % 32); }
    void clear(int bit) { words[bit / 32] &= ~(std::uint32_t(1) << (bit % 32)); }
    void join(const Knowledge& other) {
      for (std::size_t i = 0; i < words.size(); ++i) words[i] |= other.words[i];
    }
  };
  struct View {
    std::array<std::uint8_t, kAtomics> oldest{};
    Knowledge known;
    void join(const View& other) {
      for (int i = 0; i < kAtomics; ++i) oldest[i] = std::max(oldest[i], other.oldest[i]);
      known.join(other.known);
    }
  };
  struct Message {
    std::uint8_t value = 0;
    bool follows_read = false;  ///< an RMW, bound to the message before it
    View carried;
  };
  struct Cell {
    std::uint8_t value = 0;
    std::uint8_t readers = 0;  ///< since the last write, one bit per thread
  };

  int size(int location) const { return begin_[location + 1] - begin_[location]; }
  Message& message(int location, int i) { return messages_[begin_[location] + i]; }
  const Message& message(int location, int i) const { return messages_[begin_[location] + i]; }
  bool bound(int location, int i) const {  ///< message i is followed by the RMW that read it
    return i + 1 < size(location) && message(location, i + 1).follows_read;
  }
  int choose_unbound(int thread, int location, Choices& choices);
  void take(int thread, int location, int i, Order order);
  void replace(int thread, int location, int i, int value, Order order);
  void insert(int thread, int location, int i, Message added);
  int written(int cell) const { return cell * (1 + int(views_.size())); }
  int read_by(int cell, int thread) const { return written(cell) + 1 + thread; }
  void forget(int bit);

  std::vector<View> views_;
  std::vector<Cell> cells_;
  std::vector<Message> messages_;  ///< location by location
  std::array<std::uint16_t, kAtomics + 1> begin_{};
  int locations_ = 0;
};

}  // namespace portwave::weak_memory
