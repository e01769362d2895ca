#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Processes (ranks) that step one network together. Each has the whole network, and steps its share. One thread of
/// each calls, and all make the calls below in the same order.
class NetworkPeers {
 public:
  virtual ~NetworkPeers() = default;
  virtual int rank() const = 0;  ///< of this process, from 0
  virtual int size() const = 0;

  /// Sends `own` to all, and receives theirs, `counts[r]` numbers of rank r, one after another, into `all`.
  virtual void gather(std::span<const double> own, std::span<const std::size_t> counts,
                      std::span<double> all) = 0;

  struct Neighbour {
    int rank = 0;
    std::size_t sent = 0, received = 0;  ///< numbers in a message
  };
  /// Messages to and from neighbours, of sizes that never change: fill `outgoing`, `send`, `receive`, read `incoming`,
  /// `release`.
  class Messages {
   public:
    virtual ~Messages() = default;
    virtual std::span<double> outgoing(int neighbour) = 0;
    virtual void send() = 0;
    virtual void receive() = 0;
    virtual std::span<const double> incoming(int neighbour) = 0;
    virtual void release() = 0;
  };
  /// Neighbours name each other. The result must not outlive this object.
  virtual std::unique_ptr<Messages> connect(std::span<const Neighbour> neighbours) = 0;

  /// The state of the whole is about to be fetched: where one rank leads, and is asked alone, it tells the others,
  /// which then call ExplicitMethod::fetch.
  virtual void about_to_fetch() {}
};

}  // namespace portwave
