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

/// What the exchange between tasks is made of, as shipped. `tests/wave_exchange` has another such
/// policy: there every access is a step of an explored program, and runs the same code.
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
/// Everything that one task tells another in the course of an iteration goes through channels; a
/// channel within a process is inlined and consists of one store and one load per message. This is
/// where a neighbour in another process is to be joined. Its channel stays as it is, in both
/// processes, and a transport takes the place of the missing task:
///   - in the sender's process the transport is the reader. It waits until a message has
///     `arrived` and sends its waves and number;
///   - in the receiver's process the transport is the writer. It puts what comes in into `waves`
///     and calls `publish`.
/// Neither task notices. Two slots suffice as before: a message that comes back says that the one
/// before it has been read, by the transport as well. (docs/decisions/0030-channel.md)
template <class Atomics>
class BasicChannel {
 public:
  explicit BasicChannel(typename Atomics::Slots slots) : slots_(std::move(slots)) {}

  /// The waves of a message: for the writer before `publish` of it, for the reader once it has
  /// arrived and until it sends its own next message.
  auto waves(std::uint64_t number) { return slots_.waves(number % 2); }
  auto waves(std::uint64_t number) const { return slots_.waves(number % 2); }
  /// A message: write(waves(number)), then it is published.
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

/// Whether a message has arrived from all neighbours. `inbound`: a range of things with a pointer
/// `channel`.
template <class Inbound>
bool all_arrived(const Inbound& inbound, std::uint64_t number) {
  for (const auto& in : inbound) {
    if (!in.channel->arrived(number)) return false;
  }
  return true;
}

/// An iteration of a task, in the order that the exchange needs. What neighbours wait for is solved
/// and sent before the rest. A failure is noted before anything that depends on it is sent.
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
