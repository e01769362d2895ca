#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mpi.h>
#include <span>
#include <vector>

namespace portwave {

/// Where messages from a rank to another of the same machine lie: in memory that both see, so that
/// what one writes is what the other reads. Each slot has room for one message, and says whether one is
/// there.
class Inbox {
 public:
  static constexpr std::size_t kLine = 64;  ///< of a cache

  Inbox() = default;
  /// Over memory of `bytes_for`, which begins with a line; `is_new`: it is made ready for both ends.
  Inbox(std::byte* memory, int slots, std::size_t doubles, bool is_new);

  static std::size_t bytes_for(int slots, std::size_t doubles);

  explicit operator bool() const { return memory_ != nullptr; }
  std::span<double> message(std::uint64_t number) const {
    return {reinterpret_cast<double*>(slot(number) + sizeof(Flag)), doubles_};
  }
  bool is_here(std::uint64_t number) const {
    return flag(number).load(std::memory_order_acquire) != 0;
  }
  /// By the sender, who has written it.
  void publish(std::uint64_t number) const { flag(number).store(1, std::memory_order_release); }
  /// By the receiver, who has read it.
  void release(std::uint64_t number) const { flag(number).store(0, std::memory_order_release); }

  /// One of the two ends is done with it.
  void close() const { ends().fetch_sub(1, std::memory_order_acq_rel); }
  bool is_closed() const { return ends().load(std::memory_order_acquire) == 0; }

 private:
  using Flag = std::atomic<std::uint64_t>;
  static_assert(Flag::is_always_lock_free && sizeof(Flag) == sizeof(double));

  static std::size_t slot_bytes(std::size_t doubles) {
    return (sizeof(Flag) + doubles * sizeof(double) + kLine - 1) / kLine * kLine;
  }
  std::byte* slot(std::uint64_t number) const {
    return memory_ + kLine + number % slots_ * slot_bytes_;
  }
  Flag& flag(std::uint64_t number) const { return *reinterpret_cast<Flag*>(slot(number)); }
  Flag& ends() const { return *reinterpret_cast<Flag*>(memory_); }

  std::byte* memory_ = nullptr;
  std::uint64_t slots_ = 0;
  std::size_t doubles_ = 0, slot_bytes_ = 0;
};

/// Memory that the ranks of one machine share (MPI_Win_allocate_shared). Each has a piece of it, of which
/// it makes inboxes for the messages to it. Where there is none, or no more, messages go through MPI.
class NodeMemory {
 public:
  /// All ranks call it. A rank has as many kB as PORTWAVE_SHARED_MEMORY_KB of the environment says, 0 for
  /// none, or 1024; pages that no inbox needs are never touched.
  /// Errors: RankError where that is no number up to 1 048 576.
  explicit NodeMemory(MPI_Comm communicator);
  /// All ranks call it.
  ~NodeMemory();
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  /// For messages from `rank`: where it is in the own piece, −1 if it cannot be had.
  std::int64_t make_inbox(int rank, int slots, std::size_t doubles);
  /// Of `owner`, who has made it there; none where place is −1.
  Inbox inbox(int owner, std::int64_t place, int slots, std::size_t doubles) const;

 private:
  struct Made {
    std::size_t bytes;
    Inbox inbox;
  };
  void forget_closed();

  MPI_Comm node_ = MPI_COMM_NULL;
  MPI_Win window_ = MPI_WIN_NULL;
  std::vector<std::byte*> piece_of_rank_;  // null: on another machine, or none
  int rank_ = 0;
  std::size_t bytes_;
  std::map<std::size_t, Made> made_;  // by place, in the own piece
};

}  // namespace portwave
