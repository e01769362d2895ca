#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "portwave/coupling/network/network_peers.hpp"
#include "portwave/runtime/ranks/ranks.hpp"

namespace portwave {

/// Ranks as a method without waves sees them.
class RankPeers final : public NetworkPeers {
 public:
  /// `before_fetch`: called where the state of the whole is about to be fetched.
  RankPeers(Ranks& ranks, std::function<void()> before_fetch)
      : ranks_(ranks), before_fetch_(std::move(before_fetch)) {}

  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  void gather(std::span<const double> own, std::span<const std::size_t> counts,
              std::span<double> all) override;
  std::unique_ptr<Messages> connect(std::span<const Neighbour> neighbours) override {
    return connect(neighbours, Carries::waves);
  }
  void about_to_fetch() override { before_fetch_(); }

 private:
  /// Gathers of few numbers that come again in every step, as messages from each to each.
  struct Repeated {
    std::vector<std::size_t> counts;
    std::unique_ptr<Messages> messages;
  };
  std::unique_ptr<Messages> connect(std::span<const Neighbour> neighbours, Carries carries);
  Messages* repeated(std::span<const std::size_t> counts, std::size_t sum);

  Ranks& ranks_;
  std::function<void()> before_fetch_;
  std::vector<std::size_t> bytes_;
  std::vector<Repeated> repeated_;
};

}  // namespace portwave
