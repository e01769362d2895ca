#include "study/machine_probe.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <thread>

#include "parallel/threads/parallel_for_each.hpp"
#include "portwave/subsystems/base/aligned.hpp"

// The widest vectors there are, chosen when the program starts; and optimised, whatever the rest is. Sanitizers are not
// there yet when that is chosen, and their programs would not start.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define PORTWAVE_WIDEST
#elif defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define PORTWAVE_WIDEST __attribute__((optimize("O3"), target_clones("avx512f", "avx2", "default")))
#else
#define PORTWAVE_WIDEST
#endif

namespace portwave {
namespace {

using ProbeClock = std::chrono::steady_clock;

double ns_since(ProbeClock::time_point start) {
  return std::chrono::duration<double, std::nano>(ProbeClock::now() - start).count();
}

constexpr std::size_t kDoublesOfLine = 8;

/// A message: its number, and what belongs to it.
struct alignas(128) Mailbox {
  std::atomic<std::int64_t> number{0};
  std::array<double, 17 * kDoublesOfLine> words{};

  void send(std::int64_t next, std::size_t lines) {
    for (std::size_t i = 1; i < lines; ++i) words[i * kDoublesOfLine] += 1.0;
    number.store(next, std::memory_order_release);
  }
  /// The writer may have lost its core: then it is to have this one.
  double await(std::int64_t next, std::size_t lines) const {
    constexpr int kPolls = 5000;
    for (int polls = 0; number.load(std::memory_order_acquire) < next; ++polls) {
      if (polls >= kPolls) std::this_thread::yield();
    }
    double sum = 0.0;
    for (std::size_t i = 1; i < lines; ++i) sum += words[i * kDoublesOfLine];
    return sum;
  }
};

/// The least of some samples [ns], as many as a short time allows.
template <class Sample>
double least_ns(const Sample& sample) {
  constexpr double kMost_ns = 2e7;
  constexpr int kSamples = 30;
  double least = std::numeric_limits<double>::infinity();
  const auto begin = ProbeClock::now();
  for (int n = 0; n < kSamples && (n == 0 || ns_since(begin) < kMost_ns); ++n) {
    least = std::min(least, sample());
  }
  return least;
}

/// From one thread to another, half a round trip [ns].
double message_ns(std::size_t lines) {
  constexpr int kTrips = 100;
  constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  Mailbox there, back;
  double sums[2] = {};
  std::thread other([&] {
    for (std::int64_t n = 1;; ++n) {
      sums[1] += there.await(n, lines);
      if (there.number.load(std::memory_order_relaxed) == kEnd) return;
      back.send(n, lines);
    }
  });
  std::int64_t number = 0;
  const double least = least_ns([&] {
    const auto start = ProbeClock::now();
    for (int n = 0; n < kTrips; ++n) {
      there.send(++number, lines);
      sums[0] += back.await(number, lines);
    }
    return 0.5 * ns_since(start) / kTrips;
  });
  there.send(kEnd, lines);
  other.join();
  return least;
}

/// A loop of a body for each of two threads, while both are there, beside the time of one body [ns].
double loop_ns() {
  constexpr int kLoops = 50;
  constexpr double kBody_ns = 2000.0;
  const std::unique_ptr<ForEach> loop = make_team_for_each(2);
  return least_ns([&] {
    const auto start = ProbeClock::now();
    for (int n = 0; n < kLoops; ++n) {
      (*loop)(2, [&](int /*i*/) {
        for (const auto begin = ProbeClock::now(); ns_since(begin) < kBody_ns;) {
        }
      });
    }
    return std::max(ns_since(start) / kLoops - kBody_ns, 0.0);
  });
}

PORTWAVE_WIDEST void triad(double* a, const double* b, const double* c, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) a[i] = b[i] + 0.5 * c[i];
}

constexpr std::size_t kChains = 64;  // sums that do not wait for one another, in all lanes

PORTWAVE_WIDEST void multiply_and_add(double* x, int times) {
  std::array<double, kChains> sum;
  std::copy_n(x, kChains, sum.begin());
  for (int n = 0; n < times; ++n) {
    for (std::size_t i = 0; i < kChains; ++i) sum[i] = sum[i] * 0.999 + 0.001;
  }
  std::copy_n(sum.begin(), kChains, x);
}

}  // namespace

HandOver measured_hand_over() {
  static const HandOver measured = [] {
    constexpr std::size_t kMany = 17;
    HandOver out;
    out.message_ns = message_ns(1);
    out.line_ns = std::max((message_ns(kMany) - out.message_ns) / (kMany - 1), 0.0);
    out.start_ns = loop_ns();
    return out;
  }();
  return measured;
}

double measured_stream_B_per_s(std::size_t bytes) {
  constexpr std::size_t kLeast = std::size_t{16} << 10, kMost = std::size_t{256} << 20;
  const std::size_t count = std::clamp(bytes, kLeast, kMost) / (3 * sizeof(double));
  AlignedVector a(count, 0.0), b(count, 1.0), c(count, 2.0);
  const int times =
      static_cast<int>(std::clamp<std::size_t>((std::size_t{1} << 20) / count, 1, 4096));
  triad(a.data(), b.data(), c.data(), count);
  const double time_ns = least_ns([&] {
    const auto start = ProbeClock::now();
    for (int n = 0; n < times; ++n) triad(a.data(), b.data(), c.data(), count);
    return ns_since(start) / times;
  });
  return 3.0 * sizeof(double) * static_cast<double>(count) / (1e-9 * time_ns);
}

double measured_peak_flop_per_s() {
  static const double measured = [] {
    constexpr int kTimes = 5'000;
    AlignedVector x(kChains, 1.0);
    const double time_ns = least_ns([&] {
      const auto start = ProbeClock::now();
      multiply_and_add(x.data(), kTimes);
      return ns_since(start);
    });
    return 2.0 * kChains * kTimes / (1e-9 * time_ns);
  }();
  return measured;
}

}  // namespace portwave

#undef PORTWAVE_WIDEST
