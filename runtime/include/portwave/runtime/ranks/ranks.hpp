#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The messages of ranks disagree, or one of the ranks is gone.
class RankError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Doubles that neighbouring ranks send one another repeatedly, in messages that are numbered through the
/// whole run. Sizes never change. `slots` messages, by default two, may be under way: message n takes the
/// place of message n − slots, which must have been released.
class NeighbourMessages {
 public:
  virtual ~NeighbourMessages() = default;
  /// The buffer for message `number` to neighbour i; waits until it is free.
  virtual std::span<double> outgoing(int i, std::uint64_t number) = 0;
  /// Sends it to all neighbours, and returns at once.
  virtual void send(std::uint64_t number) = 0;
  /// Waits until message `number` of all neighbours has arrived.
  virtual void receive(std::uint64_t number) = 0;
  /// Whether message `number` of neighbour i has arrived, without waiting; not to be called again once true.
  /// `now` is the message for which it is wanted: a transport that is late on purpose uses it.
  virtual bool arrived(int i, std::uint64_t number, std::uint64_t now) = 0;
  /// A `now` that accepts every message that has arrived.
  static constexpr std::uint64_t kWhatever = UINT64_MAX;
  virtual std::span<const double> incoming(int i, std::uint64_t number) = 0;
  /// Message `number` of all neighbours, or of one, has been read.
  virtual void release(std::uint64_t number) = 0;
  virtual void release(int i, std::uint64_t number) = 0;
};

/// Contents of messages: waves from neighbour to neighbour, or data that all ranks need.
enum class Carries { waves, sums };

/// Counts of the data that ranks have sent since the start.
struct RankTraffic {
  std::int64_t messages = 0;  ///< of waves
  std::int64_t message_bytes = 0;
  std::int64_t sum_messages = 0;  ///< of sums
  std::int64_t sum_bytes = 0;
  std::int64_t gathers = 0;         ///< Ranks::gather
  std::int64_t gathered_bytes = 0;  ///< sent by this rank

  void count_message(Carries carries, std::size_t doubles) {
    const auto bytes = static_cast<std::int64_t>(doubles * sizeof(double));
    ++(carries == Carries::waves ? messages : sum_messages);
    (carries == Carries::waves ? message_bytes : sum_bytes) += bytes;
  }
};

/// Processes that step one system together (docs/guides/cluster.md). Every rank makes a Stepper of the
/// same system with the same options. Rank 0 then uses its own like any other; all others call
/// RankedStepper::follow. One thread of a rank calls, and all ranks make the calls below in the same order.
/// Errors of all functions: RankError.
class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual int rank() const = 0;  ///< number of this process, from 0
  virtual int size() const = 0;

  /// Sends `own` to every rank, and receives theirs, `bytes[r]` of rank r, one after another, into `all`. All
  /// ranks call it.
  virtual void gather(std::span<const std::byte> own, std::span<const std::size_t> bytes,
                      std::span<std::byte> all) = 0;

  /// Sends the data of rank 0 to all.
  virtual void broadcast(std::span<std::byte> bytes) = 0;

  struct Neighbour {
    int rank = 0;
    std::size_t sent = 0, received = 0;  ///< doubles in a message
  };
  /// All ranks call it; neighbours name each other. The result must not outlive this object. There may be
  /// several at a time.
  virtual std::unique_ptr<NeighbourMessages> connect(std::span<const Neighbour> neighbours,
                                                     int slots = 2,
                                                     Carries carries = Carries::waves) = 0;

  /// The first `count` ranks as a group of their own, under the same numbers; 1 ≤ count ≤ size(). All ranks
  /// call it; null on those outside the group. The result must not outlive this object.
  virtual std::shared_ptr<Ranks> first(int count) = 0;

  /// Waits until all ranks have called it, and leaves the cores to others meanwhile, at the price of some
  /// milliseconds.
  virtual void rest() = 0;

  virtual RankTraffic traffic() const = 0;

  /// This rank ends with that exit code. Waits some seconds for the others to end too; if they do not,
  /// something failed here alone, and all are ended.
  virtual void end([[maybe_unused]] int exit_code) {}
};

/// Exchanges one value per rank: `own` of rank r is entry r. All ranks call it.
template <class Value>
std::vector<Value> gather_values(Ranks& ranks, const Value& own) {
  std::vector<Value> all(static_cast<std::size_t>(ranks.size()));
  const std::vector<std::size_t> bytes(all.size(), sizeof(Value));
  ranks.gather(std::as_bytes(std::span(&own, 1)), bytes, std::as_writable_bytes(std::span(all)));
  return all;
}

}  // namespace portwave
