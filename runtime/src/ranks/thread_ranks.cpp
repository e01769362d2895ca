#include "portwave/runtime/ranks/thread_ranks.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <map>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "portwave/runtime/parallel/executor_kind.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

struct World {
  World(int count, const ThreadRanksOptions& its_options)
      : size(count), options(its_options), given(at(count)) {}
  int size;
  ThreadRanksOptions options;
  std::mutex mutex;
  std::condition_variable changed;
  // Of the collective call in progress.
  std::vector<std::span<const std::byte>> given;
  int arrived = 0, left = 0;
  std::uint64_t round = 0;
  /// Messages that nobody has taken, by connection, sender and receiver, and by number.
  std::map<std::array<int, 3>, std::map<std::uint64_t, std::vector<double>>> mail;
  std::vector<std::shared_ptr<World>> parts;  ///< in the order of the calls of `first`
};

class ThreadRank final : public Ranks {
 public:
  ThreadRank(std::shared_ptr<World> world, int rank)
      : world_(std::move(world)),
        rank_(rank),
        random_(world_->options.seed + 17U * static_cast<unsigned>(rank)) {}

  int rank() const override { return rank_; }
  int size() const override { return world_->size; }
  RankTraffic traffic() const override { return traffic_; }

  void gather(std::span<const std::byte> own, std::span<const std::size_t> bytes,
              std::span<std::byte> all) override {
    ++traffic_.gathers;
    traffic_.gathered_bytes += static_cast<std::int64_t>(own.size());
    if (own.size() != bytes[at(rank_)]) throw RankError("sizes differ");
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
  std::unique_ptr<NeighbourMessages> connect(std::span<const Neighbour> neighbours, int slots,
                                             Carries carries) override {
    return std::make_unique<Messages>(*this, connections_++, neighbours, slots, carries);
  }
  std::shared_ptr<Ranks> first(int count) override {
    const std::lock_guard lock(world_->mutex);
    if (splits_ == world_->parts.size()) {
      world_->parts.push_back(std::make_shared<World>(count, world_->options));
    }
    const auto& part = world_->parts[splits_++];
    if (part->size != count) throw RankError("counts differ");
    return rank_ < count ? std::make_shared<ThreadRank>(part, rank_) : nullptr;
  }
  void rest() override {
    collect({}, [] {});
  }

 private:
  /// All ranks give something, then all take, then all may go on.
  void collect(std::span<const std::byte> own, const std::function<void()>& take) {
    pause();
    std::unique_lock lock(world_->mutex);
    World& w = *world_;
    const std::uint64_t round = w.round;
    w.given[at(rank_)] = own;
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
  void pause() {
    if (world_->options.seed == 0) return;
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 50));
  }

  class Messages final : public NeighbourMessages {
   public:
    Messages(ThreadRank& rank, int connection, std::span<const Neighbour> neighbours, int slots,
             Carries carries)
        : rank_(rank),
          connection_(connection),
          carries_(carries),
          neighbours_(neighbours.begin(), neighbours.end()),
          slots_(at(slots)) {
      for (const Neighbour& own : neighbours) {
        out_.emplace_back(own.sent);
        in_.emplace_back(slots_, std::vector<double>(own.received));
      }
    }
    std::span<double> outgoing(int i, std::uint64_t) override { return out_[at(i)]; }
    void send(std::uint64_t number) override {
      rank_.pause();
      const std::lock_guard lock(rank_.world_->mutex);
      for (std::size_t i = 0; i < neighbours_.size(); ++i) {
        rank_.traffic_.count_message(carries_, out_[i].size());
        rank_.world_->mail[{connection_, rank_.rank_, neighbours_[i].rank}][number] = out_[i];
      }
      rank_.world_->changed.notify_all();
    }
    void receive(std::uint64_t number) override {
      std::unique_lock lock(rank_.world_->mutex);
      for (int i = 0; i < static_cast<int>(neighbours_.size()); ++i) {
        rank_.world_->changed.wait(lock, [&] { return take(i, number); });
      }
    }
    bool arrived(int i, std::uint64_t number, std::uint64_t now) override {
      const auto& lateness = rank_.world_->options.lateness;
      const bool is_due = lateness == nullptr || now == kWhatever ||
                          now >= number + static_cast<std::uint64_t>(lateness(
                                              neighbours_[at(i)].rank, rank_.rank_, number));
      if (!is_due) return false;
      std::unique_lock lock(rank_.world_->mutex);
      if (lateness == nullptr) return take(i, number);
      // Then it has come: what is due does not depend on who is faster.
      rank_.world_->changed.wait(lock, [&] { return take(i, number); });
      return true;
    }
    std::span<const double> incoming(int i, std::uint64_t number) override {
      return in_[at(i)][number % slots_];
    }
    void release(std::uint64_t) override {}
    void release(int, std::uint64_t) override {}

   private:
    bool take(int i, std::uint64_t number) {
      auto& mail = rank_.world_->mail[{connection_, neighbours_[at(i)].rank, rank_.rank_}];
      const auto found = mail.find(number);
      if (found == mail.end()) return false;
      std::vector<double>& in = in_[at(i)][number % slots_];
      if (found->second.size() != in.size()) throw RankError("sizes differ");
      in = std::move(found->second);
      mail.erase(found);
      return true;
    }

    ThreadRank& rank_;
    int connection_;
    Carries carries_;
    std::vector<Neighbour> neighbours_;
    std::size_t slots_;
    std::vector<std::vector<double>> out_;
    std::vector<std::vector<std::vector<double>>> in_;  // by neighbour and slot
  };

  std::shared_ptr<World> world_;
  int rank_;
  std::mt19937 random_;
  RankTraffic traffic_;
  int connections_ = 0;
  std::size_t splits_ = 0;
};

}  // namespace

void run_thread_ranks(int size, const std::function<void(const std::shared_ptr<Ranks>&)>& body,
                      const ThreadRanksOptions& options) {
  if (size < 1 || size > kMaxThreads) {
    throw std::invalid_argument(fmt::format("there are 1 to {} ranks, got {}", kMaxThreads, size));
  }
  const auto world = std::make_shared<World>(size, options);
  std::vector<std::exception_ptr> failures(at(size));
  std::vector<std::thread> threads;
  threads.reserve(at(size));
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(std::make_shared<ThreadRank>(world, rank));
      } catch (...) {
        failures[at(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure != nullptr) std::rethrow_exception(failure);
  }
}

}  // namespace portwave
