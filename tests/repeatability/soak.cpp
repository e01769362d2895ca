// Runs random networks in many ways, which are all to give the same bits, and prints what does not.
//   portwave_repeatability_soak [--family NAME] [--seed FIRST] [--cases N] [--minutes M] [--ways N]
//     [--rank-ways N] [--no-ensembles] [--tell]
// N cases of each family of the seeds from FIRST on, or until so many minutes are over. A case that takes
// longer than five minutes is named, and ends the program: ranks may wait for one another for ever.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <oneapi/tbb/global_control.h>

#include "repeatability/networks.hpp"
#include "repeatability/sweep.hpp"

namespace {

using namespace portwave::repeatability;
using Clock = std::chrono::steady_clock;

struct Arguments {
  std::string family;
  std::uint64_t seed = 0;
  int cases = 10;
  double minutes = 0.0;
  Effort effort;
};

Arguments read(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    if (key == "--no-ensembles") {
      arguments.effort.ensembles = false;
      continue;
    }
    if (key == "--tell") {
      arguments.effort.is_told = true;
      continue;
    }
    const char* const value = i + 1 < argc ? argv[++i] : "";
    if (key == "--family") {
      arguments.family = value;
    } else if (key == "--seed") {
      arguments.seed = std::strtoull(value, nullptr, 10);
    } else if (key == "--cases") {
      arguments.cases = std::atoi(value);
    } else if (key == "--minutes") {
      arguments.minutes = std::atof(value);
    } else if (key == "--ways") {
      arguments.effort.ways = std::atoi(value);
    } else if (key == "--rank-ways") {
      arguments.effort.rank_ways = std::atoi(value);
    } else {
      fmt::print(stderr,
                 "usage: {} [--family NAME] [--seed FIRST] [--cases N] [--minutes M] [--ways N] "
                 "[--rank-ways N] [--no-ensembles] [--tell]\n",
                 argv[0]);
      std::exit(2);
    }
  }
  return arguments;
}

/// Ends the program where a case does not end.
class Watchdog {
 public:
  Watchdog() : thread_([this] { watch(); }) {}
  ~Watchdog() {
    over_ = true;
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  void begin(int family, std::uint64_t seed) {
    family_ = family;
    seed_ = seed;
    since_s_ = now_s();
  }

 private:
  static std::int64_t now_s() {
    return std::chrono::duration_cast<std::chrono::seconds>(Clock::now().time_since_epoch())
        .count();
  }
  void watch() {
    constexpr std::int64_t kLongest_s = 300;
    while (!over_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      if (now_s() - since_s_ < kLongest_s) continue;
      fmt::print("{} {}: does not end\n", families()[static_cast<std::size_t>(family_)],
                 seed_.load());
      std::fflush(stdout);
      std::_Exit(1);
    }
  }

  std::atomic<bool> over_ = false;
  std::atomic<int> family_ = 0;
  std::atomic<std::uint64_t> seed_ = 0;
  std::atomic<std::int64_t> since_s_ = now_s();
  std::thread thread_;
};

int run(const Arguments& arguments) {
  const tbb::global_control allowed(tbb::global_control::max_allowed_parallelism, 8);
  Watchdog watchdog;
  const auto start = Clock::now();
  const auto is_over = [&](int done) {
    if (arguments.minutes <= 0.0) return done >= arguments.cases;
    return std::chrono::duration<double>(Clock::now() - start).count() > 60.0 * arguments.minutes;
  };
  std::vector<Coverage> by_family(families().size());
  int wrong = 0;
  for (int done = 0; !is_over(done); ++done) {
    for (std::size_t i = 0; i < by_family.size() && !(arguments.minutes > 0.0 && is_over(done));
         ++i) {
      const std::string& family = families()[i];
      if (!arguments.family.empty() && family != arguments.family) continue;
      const std::uint64_t seed = arguments.seed + static_cast<std::uint64_t>(done);
      watchdog.begin(static_cast<int>(i), seed);
      std::string told;
      try {
        told = try_case(family, seed, arguments.effort, by_family[i]);
      } catch (const std::exception& error) {
        told = fmt::format("{} {}: {}\n", family, seed, error.what());
      }
      if (told.empty()) continue;
      ++wrong;
      fmt::print("{}", told);
      std::fflush(stdout);
    }
  }
  Coverage all;
  for (std::size_t i = 0; i < by_family.size(); ++i) {
    if (by_family[i].cases == 0) continue;
    fmt::print("{}: {}\n", families()[i], by_family[i].text());
    all.add(by_family[i]);
  }
  fmt::print("all: {}\n{} cases are wrong\n", all.text(), wrong);
  return wrong > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(read(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
