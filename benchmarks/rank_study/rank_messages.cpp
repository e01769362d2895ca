// α and β of the network between two ranks.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <vector>

#include "rank_study/rank_scaling.hpp"
#include "study/scaling_subject.hpp"

namespace portwave {
namespace {

/// Doubles of a message, and how often it goes there and back.
struct Size {
  std::size_t doubles;
  int rounds;
};
constexpr Size kSizes[] = {{1, 200}, {16, 200}, {128, 200}, {1024, 100}, {8192, 50}, {65536, 20}};

/// The times of round trips [s], as measured by rank 0.
std::vector<double> round_trips_s(Ranks& pair, Size size) {
  const Ranks::Neighbour other{1 - pair.rank(), size.doubles, size.doubles};
  const auto messages = pair.connect(std::span(&other, 1));
  std::vector<double> times_s;
  for (int n = 0; n < size.rounds; ++n) {
    const auto number = static_cast<std::uint64_t>(n);
    const auto start = Subject::Clock::now();
    const auto send = [&] {
      std::ranges::fill(messages->outgoing(0, number), 1.0);
      messages->send(number);
    };
    if (pair.rank() == 0) send();
    messages->receive(number);
    messages->release(number);
    if (pair.rank() == 1) send();
    times_s.push_back(std::chrono::duration<double>(Subject::Clock::now() - start).count());
  }
  // Neither rank closes the connection while the other still uses it.
  gather_values(pair, 0);
  return times_s;
}

}  // namespace

std::vector<RankScalingStudy::Message> measure_messages(Ranks& ranks) {
  std::vector<RankScalingStudy::Message> messages;
  if (const std::shared_ptr<Ranks> pair = ranks.first(2)) {
    for (const Size& size : kSizes) {
      // A low quantile: the time of the messages, without the other work of the machines.
      const double round_s = quantile(round_trips_s(*pair, size), 0.1);
      messages.push_back({static_cast<std::int64_t>(8 * size.doubles), 0.5 * round_s});
    }
  }
  ranks.rest();
  if (ranks.rank() != 0) messages.clear();
  return messages;
}

Interconnect fitted(const std::vector<RankScalingStudy::Message>& messages) {
  // Least squares of α/t + (n/β)/t − 1.
  double aa = 0.0, ab = 0.0, bb = 0.0, a = 0.0, b = 0.0;
  for (const RankScalingStudy::Message& message : messages) {
    const double one = 1.0 / message.time_s;
    const double bytes = static_cast<double>(message.bytes) / message.time_s;
    aa += one * one;
    ab += one * bytes;
    bb += bytes * bytes;
    a += one;
    b += bytes;
  }
  const double determinant = aa * bb - ab * ab;
  if (messages.size() < 2 || !(determinant > 1e-12 * aa * bb)) {
    throw std::invalid_argument("two sizes of messages are needed at least");
  }
  constexpr double kFastest_s_per_B = 1e-15;
  const double per_byte_s = std::max((aa * b - ab * a) / determinant, kFastest_s_per_B);
  return {std::max((a - ab * per_byte_s) / aa, 0.0), 1.0 / per_byte_s};
}

}  // namespace portwave
