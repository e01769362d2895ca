#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "portwave/runtime/execution/ranks.hpp"

namespace portwave::testing {

/// Ranks that are threads of one process, and a transport that delivers messages as late as it likes.
class ThreadRanks {
 public:
  /// Runs body(ranks) as every rank and returns when all are done. `seed`: of random delays; 0: none.
  static void run(int size, const std::function<void(const std::shared_ptr<Ranks>&)>& body,
                  unsigned seed = 0) {
    auto world = std::make_shared<World>(size, seed);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] { body(std::make_shared<Rank>(world, rank)); });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  using Mail = std::deque<std::vector<double>>;

  struct World {
    World(int count, unsigned seed_of_delays)
        : size(count), seed(seed_of_delays), given(static_cast<std::size_t>(count)) {}
    int size;
    unsigned seed;
    std::mutex mutex;
    std::condition_variable changed;
    // Of the collective call in progress.
    std::vector<std::span<const std::byte>> given;
    int arrived = 0, left = 0;
    std::uint64_t round = 0;
    std::map<std::pair<int, int>, Mail> mail;   // by sender and receiver
    std::vector<std::shared_ptr<World>> parts;  // in the order of the calls of `first`
  };

  class Rank final : public Ranks {
   public:
    Rank(std::shared_ptr<World> world, int rank)
        : world_(std::move(world)),
          rank_(rank),
          random_(world_->seed + 17U * static_cast<unsigned>(rank)) {}

    int rank() const override { return rank_; }
    int size() const override { return world_->size; }
    RankTraffic traffic() const override { return traffic_; }

    void gather(std::span<const std::byte> own, std::span<const std::size_t> bytes,
                std::span<std::byte> all) override {
      ++traffic_.gathers;
      traffic_.gathered_bytes += static_cast<std::int64_t>(own.size());
      if (own.size() != bytes[static_cast<std::size_t>(rank_)]) throw RankError("sizes differ");
      collect(own, [&] {
        std::byte* to = all.data();
        for (std::size_t r = 0; r < world_->given.size(); ++r) {
          if (world_->given[r].size() != bytes[r]) throw RankError("sizes differ");
          to = std::ranges::copy(world_->given[r], to).out;
        }
      });
    }
    void broadcast(std::span<std::byte> bytes) override {
      collect(bytes, [&] {
        if (world_->given[0].size() != bytes.size()) throw RankError("sizes differ");
        if (rank_ != 0) std::ranges::copy(world_->given[0], bytes.begin());
      });
    }
    std::unique_ptr<NeighbourMessages> connect(std::span<const Neighbour> neighbours) override {
      return std::make_unique<Messages>(*this, neighbours);
    }
    std::shared_ptr<Ranks> first(int count) override {
      const std::lock_guard lock(world_->mutex);
      if (called_ == world_->parts.size()) {
        world_->parts.push_back(std::make_shared<World>(count, world_->seed));
      }
      const auto& part = world_->parts[called_++];
      if (part->size != count) throw RankError("counts differ");
      return rank_ < count ? std::make_shared<Rank>(part, rank_) : nullptr;
    }
    void rest() override {
      collect({}, [] {});
    }

   private:
    /// All ranks give something, then all take, then all may go on.
    void collect(std::span<const std::byte> own, const std::function<void()>& take) {
      delay();
      std::unique_lock lock(world_->mutex);
      World& w = *world_;
      const std::uint64_t round = w.round;
      w.given[static_cast<std::size_t>(rank_)] = own;
      if (++w.arrived == w.size) w.changed.notify_all();
      w.changed.wait(lock, [&] { return w.arrived == w.size; });
      take();
      if (++w.left == w.size) {
        w.arrived = w.left = 0;
        ++w.round;
        w.changed.notify_all();
      }
      w.changed.wait(lock, [&] { return w.round != round; });
    }
    void delay() {
      if (world_->seed == 0) return;
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % 50));
    }

    class Messages final : public NeighbourMessages {
     public:
      Messages(Rank& rank, std::span<const Neighbour> neighbours)
          : rank_(rank), neighbours_(neighbours.begin(), neighbours.end()) {
        for (const Neighbour& own : neighbours) {
          out_.emplace_back(own.sent);
          in_.emplace_back(own.received);
        }
      }
      std::span<double> outgoing(int i, std::uint64_t) override {
        return out_[static_cast<std::size_t>(i)];
      }
      void send(std::uint64_t) override {
        rank_.delay();
        const std::lock_guard lock(rank_.world_->mutex);
        for (std::size_t i = 0; i < neighbours_.size(); ++i) {
          ++rank_.traffic_.messages;
          rank_.traffic_.message_bytes += static_cast<std::int64_t>(8 * out_[i].size());
          rank_.world_->mail[{rank_.rank_, neighbours_[i].rank}].push_back(out_[i]);
        }
        rank_.world_->changed.notify_all();
      }
      void receive(std::uint64_t) override {
        std::unique_lock lock(rank_.world_->mutex);
        for (std::size_t i = 0; i < neighbours_.size(); ++i) {
          Mail& mail = rank_.world_->mail[{neighbours_[i].rank, rank_.rank_}];
          rank_.world_->changed.wait(lock, [&] { return !mail.empty(); });
          if (mail.front().size() != in_[i].size()) throw RankError("sizes differ");
          in_[i] = std::move(mail.front());
          mail.pop_front();
        }
      }
      std::span<const double> incoming(int i, std::uint64_t) override {
        return in_[static_cast<std::size_t>(i)];
      }
      void release(std::uint64_t) override {}

     private:
      Rank& rank_;
      std::vector<Neighbour> neighbours_;
      std::vector<std::vector<double>> out_, in_;
    };

    std::shared_ptr<World> world_;
    int rank_;
    std::mt19937 random_;
    RankTraffic traffic_;
    std::size_t called_ = 0;  // `first`
  };
};

}  // namespace portwave::testing
