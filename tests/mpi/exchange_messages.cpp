// Ranks that send their neighbours messages of all sizes, over connections that come and go while others
// are in use. Each looks at every number it gets. Ends with 1 where one is wrong; --break: one is.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "portwave/mpi/mpi_ranks.hpp"

namespace {

using portwave::NeighbourMessages;
using portwave::Ranks;

/// What `from` tells `to` at place i of a message of a connection.
double told(int from, int to, int connection, std::uint64_t number, std::size_t i) {
  return std::sin(1.0 + from + 10.0 * to + 100.0 * connection + 7.0 * static_cast<double>(number)) +
         static_cast<double>(i);
}

struct Connection {
  std::vector<Ranks::Neighbour> neighbours;
  std::unique_ptr<NeighbourMessages> messages;
  int number = 0;
};

/// Sizes that both ends know: by the pair, from 0 doubles to more than fits into the memory they share.
std::size_t size_of(int from, int to, int connection) {
  std::minstd_rand random(static_cast<unsigned>(1 + from + 37 * to + 1000 * connection));
  random.discard(10);
  constexpr std::size_t kSizes[] = {0, 1, 2, 7, 8, 50, 300, 3000};
  return kSizes[random() % std::size(kSizes)];
}

class Test {
 public:
  Test(Ranks& ranks, bool is_broken) : ranks_(ranks), is_broken_(is_broken) {}

  void connect(int number) {
    Connection& own = open_.emplace_back();
    own.number = number;
    for (int other = 0; other < ranks_.size(); ++other) {
      // A ring in every other connection, else everyone.
      const int apart = std::abs(other - ranks_.rank());
      const bool is_neighbour = apart == 1 || apart == ranks_.size() - 1;
      if (apart == 0 || (number % 2 == 0 && !is_neighbour)) continue;
      own.neighbours.push_back(
          {other, size_of(ranks_.rank(), other, number), size_of(other, ranks_.rank(), number)});
    }
    own.messages = ranks_.connect(own.neighbours, 2 + number % 3);
  }
  /// Messages one after another; not all numbers are used.
  void exchange_all() {
    for (Connection& own : open_) {
      for (std::uint64_t number = 3; number < 20; number += 1 + number % 3) exchange(own, number);
    }
  }
  void disconnect_first() { open_.pop_front(); }
  std::size_t open() const { return open_.size(); }
  std::int64_t wrong() const { return wrong_; }
  std::int64_t seen() const { return seen_; }

 private:
  void exchange(Connection& own, std::uint64_t number) {
    const int rank = ranks_.rank();
    for (std::size_t n = 0; n < own.neighbours.size(); ++n) {
      const std::span<double> to = own.messages->outgoing(static_cast<int>(n), number);
      for (std::size_t i = 0; i < to.size(); ++i) {
        to[i] = told(rank, own.neighbours[n].rank, own.number, number, i);
      }
      if (is_broken_ && rank == 0 && own.number == 5 && number == 7 && !to.empty()) to[0] += 1e-9;
    }
    own.messages->send(number);
    own.messages->receive(number);
    for (std::size_t n = 0; n < own.neighbours.size(); ++n) {
      const std::span<const double> from = own.messages->incoming(static_cast<int>(n), number);
      if (from.size() != own.neighbours[n].received) ++wrong_;
      for (std::size_t i = 0; i < from.size(); ++i) {
        ++seen_;
        if (from[i] != told(own.neighbours[n].rank, rank, own.number, number, i)) ++wrong_;
      }
    }
    own.messages->release(number);
  }

  Ranks& ranks_;
  bool is_broken_;
  std::deque<Connection> open_;
  std::int64_t wrong_ = 0, seen_ = 0;
};

}  // namespace

int main(int count, char** arguments) {
  const bool is_broken = count > 1 && std::string_view(arguments[1]) == "--break";
  const std::shared_ptr<Ranks> ranks = portwave::mpi_ranks();
  int exit_code = 0;
  {
    Test test(*ranks, is_broken);
    constexpr int kConnections = 60;
    constexpr std::size_t kOpen = 4;
    for (int number = 0; number < kConnections; ++number) {
      test.connect(number);
      test.exchange_all();
      // Each at its own time: who is first must not disturb who is still at it.
      if (test.open() > kOpen) test.disconnect_first();
    }
    std::int64_t wrong = 0, seen = 0;
    for (const std::int64_t own : gather_values(*ranks, test.wrong())) wrong += own;
    for (const std::int64_t own : gather_values(*ranks, test.seen())) seen += own;
    if (ranks->rank() == 0) {
      std::printf("%lld numbers, %lld wrong\n", static_cast<long long>(seen),
                  static_cast<long long>(wrong));
    }
    exit_code = wrong == 0 && seen > 0 ? 0 : 1;
  }
  ranks->end(exit_code);
  return exit_code;
}
