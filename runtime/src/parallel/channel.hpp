#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "portwave/subsystems/base/aligned.hpp"

namespace portwave {

/// Memory of a channel within this process: two slots, each beginning a cache line of its own with
/// an epoch, followed by the waves.
class ChannelSlots {
 public:
  explicit ChannelSlots(int waves)
      : slot_size_((static_cast<std::size_t>(waves) + 1 + kLine - 1) / kLine * kLine),
        lines_(2 * slot_size_, 0.0) {
    static_assert(sizeof(std::atomic<std::uint64_t>) == sizeof(double));
    for (std::size_t i = 0; i < 2; ++i) {
      epochs_[i] = new (lines_.data() + i * slot_size_) std::atomic<std::uint64_t>(0);
    }
  }

  std::atomic<std::uint64_t>& epoch(std::size_t slot) const { return *epochs_[slot]; }
  double* waves(std::size_t slot) { return lines_.data() + slot * slot_size_ + 1; }
  const double* waves(std::size_t slot) const { return lines_.data() + slot * slot_size_ + 1; }

 private:
  static constexpr std::size_t kLine = kAlignment / sizeof(double);

  std::size_t slot_size_;
  AlignedVector lines_;
  std::atomic<std::uint64_t>* epochs_[2];
};

/// The atomic and plain variables of the exchange between tasks, as shipped. `tests/wave_exchange` runs the
/// same code with a policy of its own, for which every access is a step of an explored program.
struct StandardAtomics {
  template <class T>
  using Atomic = std::atomic<T>;

  /// A variable that is not atomic: the protocol orders its accesses.
  template <class T>
  class Plain {
   public:
    const T& get() const { return value_; }
    void set(const T& value) { value_ = value; }

   private:
    T value_{};
  };

  using Slots = ChannelSlots;
};

/// Outgoing waves on their way from one task to another, in messages that are numbered through the
/// whole run. One task writes, one reads. The writer may be one message ahead of the reader, which
/// is why there are two slots (docs/concepts/wave-exchange.md).
///
/// Everything that one task tells another in the course of an iteration goes through channels. A channel
/// within a process is inlined and costs one store and one load per message. A neighbour in another process
/// is joined here too: both processes have the channel, and a transport takes the place of the missing task:
///   - in the sender's process the transport is the reader. It waits until a message has
///     `arrived` and sends its waves and number;
///   - in the receiver's process the transport is the writer. It puts what comes in into `waves`
///     and calls `publish`.
/// The tasks need not know of it. Two slots suffice here too: a message that comes back shows that the one
/// before it has been read, also by the transport (docs/decisions/0030-channel.md).
template <class Atomics>
class BasicChannel {
 public:
  explicit BasicChannel(typename Atomics::Slots slots) : slots_(std::move(slots)) {}

  /// The waves of a message. The writer may access them until it publishes the message; the reader, from the
  /// arrival of the message until it sends its own next one.
  auto waves(std::uint64_t number) { return slots_.waves(number % 2); }
  auto waves(std::uint64_t number) const { return slots_.waves(number % 2); }
  /// Sends a message: calls write(waves(number)), then publishes it.
  template <class Write>
  void send(std::uint64_t number, const Write& write) {
    write(waves(number));
    publish(number);
  }
  void publish(std::uint64_t number) {
    slots_.epoch(number % 2).store(number, std::memory_order_release);
  }
  bool arrived(std::uint64_t number) const {
    return slots_.epoch(number % 2).load(std::memory_order_acquire) >= number;
  }

 private:
  typename Atomics::Slots slots_;
};

using Channel = BasicChannel<StandardAtomics>;

/// Whether message `number` has arrived from all neighbours. `inbound`: a range whose elements have a pointer
/// `channel`.
template <class Inbound>
bool all_arrived(const Inbound& inbound, std::uint64_t number) {
  for (const auto& in : inbound) {
    if (!in.channel->arrived(number)) return false;
  }
  return true;
}

/// An iteration of a task, in the order that the exchange needs. The edge, for which neighbours wait, is
/// solved and sent before the core. A failure is noted before anything that depends on it is sent.
/// `solve_edge` and `solve_core` return false when a port solve fails.
template <class SolveEdge, class SolveCore, class NoteFailure, class Send>
void iterate_edge_first(bool has_edge, const SolveEdge& solve_edge, const SolveCore& solve_core,
                        const NoteFailure& note_failure, const Send& send) {
  if (has_edge) {
    if (!solve_edge()) note_failure();
    send();
  }
  if (!solve_core()) note_failure();
}

}  // namespace portwave
