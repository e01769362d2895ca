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

/// What ranks told one another disagrees, or one of them is gone.
class RankError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Doubles that neighbouring ranks send one another over and over, in messages that are numbered
/// through the whole run. Sizes never change. `slots` messages, two if nothing else was asked for, may be
/// under way: message n takes the place of message n − slots, which must have been released.
class NeighbourMessages {
 public:
  virtual ~NeighbourMessages() = default;
  /// Where message `number` to neighbour i is to be written; waits until that is free.
  virtual std::span<double> outgoing(int i, std::uint64_t number) = 0;
  /// Sends it to all neighbours, and returns at once.
  virtual void send(std::uint64_t number) = 0;
  /// Waits until message `number` of all neighbours is here.
  virtual void receive(std::uint64_t number) = 0;
  /// Whether message `number` of neighbour i is here, at once; not to be asked again when it was.
  /// `now` is the message that it is wanted for: a transport that is late on purpose goes by it.
  virtual bool arrived(int i, std::uint64_t number, std::uint64_t now) = 0;
  /// As `now`: whatever is here.
  static constexpr std::uint64_t kWhatever = UINT64_MAX;
  virtual std::span<const double> incoming(int i, std::uint64_t number) = 0;
  /// Message `number` of all neighbours, or of one, has been read.
  virtual void release(std::uint64_t number) = 0;
  virtual void release(int i, std::uint64_t number) = 0;
};

/// What messages carry: waves from neighbour to neighbour, or whatever all have to know.
enum class Carries { waves, sums };

/// What ranks have sent since the start.
struct RankTraffic {
  std::int64_t messages = 0;  ///< of waves
  std::int64_t message_bytes = 0;
  std::int64_t sum_messages = 0;  ///< of sums
  std::int64_t sum_bytes = 0;
  std::int64_t gathers = 0;         ///< Ranks::gather
  std::int64_t gathered_bytes = 0;  ///< that this rank gave

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
  virtual int rank() const = 0;  ///< of this process, from 0
  virtual int size() const = 0;

  /// Gives `own` to every rank, and takes what each of them gives, `bytes[r]` of rank r, one after
  /// another into `all`. All ranks call it.
  virtual void gather(std::span<const std::byte> own, std::span<const std::size_t> bytes,
                      std::span<std::byte> all) = 0;

  /// Gives what rank 0 has to all.
  virtual void broadcast(std::span<std::byte> bytes) = 0;

  struct Neighbour {
    int rank = 0;
    std::size_t sent = 0, received = 0;  ///< doubles in a message
  };
  /// All ranks call it; neighbours name each other. What it gives must not outlive this. There may be
  /// several at a time.
  virtual std::unique_ptr<NeighbourMessages> connect(std::span<const Neighbour> neighbours,
                                                     int slots = 2,
                                                     Carries carries = Carries::waves) = 0;

  /// The first `count` ranks as ranks of their own, under the same numbers; 1 ≤ count ≤ size(). All ranks
  /// call it; null on those that are not among them. What it gives must not outlive this.
  virtual std::shared_ptr<Ranks> first(int count) = 0;

  /// Waits until all ranks have come here, and leaves the cores to others meanwhile, at the price of
  /// some milliseconds.
  virtual void rest() = 0;

  virtual RankTraffic traffic() const = 0;

  /// This rank has come to its end, with that exit code. Waits some seconds for the others to do so too;
  /// where they do not, something failed here alone, and all are ended.
  virtual void end([[maybe_unused]] int exit_code) {}
};

/// One rank is told something by each: `own` of rank r is entry r. All ranks call it.
template <class Value>
std::vector<Value> gather_values(Ranks& ranks, const Value& own) {
  std::vector<Value> all(static_cast<std::size_t>(ranks.size()));
  const std::vector<std::size_t> bytes(all.size(), sizeof(Value));
  ranks.gather(std::as_bytes(std::span(&own, 1)), bytes, std::as_writable_bytes(std::span(all)));
  return all;
}

}  // namespace portwave
