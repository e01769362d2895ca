#pragma once

// How a benchmark program measures and what it says.
//
// A program prints one JSON object per line on stdout, its rows; talk goes to stderr:
//   {"name", "ours_us", "reference_us", "sense", "ratio", "spread", "goal", "holds", "note",
//    "processes"}
//   sense      "at least": ratio = reference / ours, a speed-up, wanted ≥ goal
//              "at most":  ratio = ours / reference, an overhead, wanted ≤ goal
//   spread     interquartile range of the ratio over its median, within this process
//   goal       null: printed, no goal; then holds is null too
//   processes  how often `./dev bench` repeats the program, to take medians over processes
// A row with a "unit" is a quantity of its own: "ratio" is its value, "ours_us" and "reference_us"
// are null. It exits with 1, and prints no row, when its answers are wrong.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace portwave::bench {

enum class Sense { at_least, at_most };

/// Order statistic at `fraction` of the way up (0.5: the median); NaN when empty.
inline double quantile(std::vector<double> values, double fraction) {
  if (values.empty()) return std::nan("");
  const auto place = static_cast<std::ptrdiff_t>(fraction * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + place, values.end());
  return values[static_cast<std::size_t>(place)];
}

/// Seconds that this many calls in a row took.
using Timer = std::function<double(std::int64_t calls)>;

/// Times calls of `call`; the loop is compiled with it.
template <class Call>
Timer timed(Call call) {
  return [call](std::int64_t calls) mutable {
    const auto start = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < calls; ++i) call();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
}

/// The same after 800 µs of calls, in which threads that have fallen asleep can come back.
template <class Call>
Timer warmed(Call call) {
  return [call, inner = timed(call)](std::int64_t calls) mutable {
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < std::chrono::microseconds(800)) call();
    return inner(calls);
  };
}

/// The same in processor time of this thread: for contenders that run on no other thread, on
/// machines that others keep busy.
template <class Call>
Timer processor_timed(Call call) {
  return [call](std::int64_t calls) mutable {
    const auto now = [] {
      timespec time{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    };
    const double start = now();
    for (std::int64_t i = 0; i < calls; ++i) call();
    return now() - start;
  };
}

/// Times per call of several contenders that took turns.
class Contest {
 public:
  explicit Contest(std::vector<std::vector<double>> seconds) : seconds_(std::move(seconds)) {}

  /// By round.
  const std::vector<double>& seconds(std::size_t contender) const { return seconds_[contender]; }
  double median_us(std::size_t contender) const { return quantile(seconds_[contender], 0.5) * 1e6; }
  /// time(a) / time(b), one value per round.
  std::vector<double> ratios(std::size_t a, std::size_t b) const {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < seconds_[a].size(); ++i) {
      ratios.push_back(seconds_[a][i] / seconds_[b][i]);
    }
    return ratios;
  }

 private:
  std::vector<std::vector<double>> seconds_;  // [contender][round]
};

struct Turns {
  int rounds = 31;
  double turn_s = 4e-3;  ///< about how long one turn of one contender lasts
};

/// Lets the contenders take turns, so that a noisy machine slows them alike. Every round starts one
/// contender later, so that none always follows the same neighbour.
inline Contest take_turns(const std::vector<Timer>& contenders, Turns turns = {}) {
  std::vector<std::int64_t> calls;
  for (const Timer& contender : contenders) {
    const double first_s = contender(1);  // warms up
    const double second_s = first_s < turns.turn_s ? contender(1) : first_s;
    calls.push_back(std::max<std::int64_t>(
        1, static_cast<std::int64_t>(turns.turn_s / std::max(second_s, 1e-8))));
  }
  std::vector<std::vector<double>> seconds(contenders.size());
  for (int round = 0; round < turns.rounds; ++round) {
    for (std::size_t turn = 0; turn < contenders.size(); ++turn) {
      const std::size_t c = (turn + static_cast<std::size_t>(round)) % contenders.size();
      seconds[c].push_back(contenders[c](calls[c]) / static_cast<double>(calls[c]));
    }
  }
  return Contest(std::move(seconds));
}

/// What a row says beside its times. Text holds no quotes, backslashes or control characters.
struct RowText {
  std::string name;
  Sense sense = Sense::at_least;
  std::optional<double> goal = std::nullopt;
  std::string note = {};
};

/// A program's voice on stdout.
class Report {
 public:
  /// `processes`: how often the whole program wants to be run for medians over processes.
  Report(std::string program, int processes)
      : program_(std::move(program)), processes_(processes) {}

  /// True when the command line only asks for names, as Google Benchmark's programs understand it.
  /// A program of rows has one name: its own.
  bool only_lists(int argc, char** argv) const {
    for (int i = 1; i < argc; ++i) {
      if (!std::string_view(argv[i]).starts_with("--benchmark_list_tests")) continue;
      fmt::print("{}\n", program_);
      return true;
    }
    return false;
  }

  void add(const RowText& text, const Contest& contest, std::size_t ours,
           std::size_t reference) const {
    print(text,
          text.sense == Sense::at_most ? contest.ratios(ours, reference)
                                       : contest.ratios(reference, ours),
          fmt::format(R"("ours_us": {:.5g}, "reference_us": {:.5g})", contest.median_us(ours),
                      contest.median_us(reference)));
  }

  /// A quantity that is no ratio of two times, or one that was made from more than two: its
  /// samples.
  void add(const RowText& text, const std::vector<double>& samples, const std::string& unit) const {
    print(text, samples,
          fmt::format(R"("ours_us": null, "reference_us": null, "unit": "{}")", unit));
  }

 private:
  void print(const RowText& text, const std::vector<double>& samples,
             const std::string& fields) const {
    const bool at_most = text.sense == Sense::at_most;
    const double value = quantile(samples, 0.5);
    const double spread =
        value == 0.0 ? 0.0 : std::abs((quantile(samples, 0.75) - quantile(samples, 0.25)) / value);
    std::string goal = "null", holds = "null";
    if (text.goal) {
      goal = fmt::format("{}", *text.goal);
      holds = (at_most ? value <= *text.goal : value >= *text.goal) ? "true" : "false";
    }
    fmt::print(R"({{"name": "{}", {}, "sense": "{}", "ratio": {:.4g}, "spread": {:.2g}, )"
               R"("goal": {}, "holds": {}, "note": "{}", "processes": {}}})"
               "\n",
               text.name, fields, at_most ? "at most" : "at least", value, spread, goal, holds,
               text.note, processes_);
    std::fflush(stdout);
  }

  std::string program_;
  int processes_;
};

}  // namespace portwave::bench
