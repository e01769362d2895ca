// Work and precision: 1024 blocks of five masses (m = 0.3 kg, k = 50 N/m everywhere, r = 0.1 N s/m,
// free ends), at rest but for the middle mass of every block, displaced by 0.05 to 0.1 m; to t = 2
// s. Error: ‖x − x*‖₂/‖x*‖₂ of the whole state (q, v), x* the Taylor series of the exact flow.
//
// The engine takes h = 2⁻⁶ … 2⁻¹¹ and the smallest K that has the midpoint rule's own error; beside
// it, at each of these errors, stands the fastest run of every SUNDIALS family that is at least as
// accurate, and the monolithic midpoint rule. Times are those of the integration alone, from t = 0
// to the end, one thread each; setting up is left out on both sides.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "chain_system.hpp"
#include "peers/midpoint.hpp"
#include "peers/ode.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"
#include "report.hpp"

namespace {

using namespace portwave::bench;
using portwave::Stepper;
using portwave::System;

constexpr std::size_t kBlocks = 1024;
constexpr double kEnd = 2.0;
constexpr int kExponents[] = {6, 7, 8, 9, 10, 11};
constexpr int kGoalExponent = 9;

struct State {
  std::vector<double> q, v;
};

Chain plucked_chain() {
  Chain chain = equal_chain(kBlocks);
  std::fill(chain.q.begin(), chain.q.end(), 0.0);
  for (std::size_t b = 0; b < kBlocks; ++b) {
    chain.q[b * kMasses + kMasses / 2] = 0.05 + 0.05 * evenly(b, 2);
  }
  return chain;
}

/// x(t) by Taylor series, the time cut into pieces of at most ω h = 0.5: 30 terms reach round-off.
State exact(const Chain& chain, int pieces) {
  State x{chain.q, chain.v};
  const double h = kEnd / pieces;
  const std::size_t n = chain.masses();
  State term = x, next = x;
  for (int piece = 0; piece < pieces; ++piece) {
    term = x;
    for (int order = 1; order <= 30; ++order) {
      const double scale = h / order;
      for (std::size_t i = 0; i < n; ++i) {
        const Block& block = chain.block_of(i);
        double force = -block.damping_Ns_per_m * term.v[i];
        if (i > 0) force -= chain.spring_after(i - 1) * (term.q[i] - term.q[i - 1]);
        if (i + 1 < n) force += chain.spring_after(i) * (term.q[i + 1] - term.q[i]);
        next.q[i] = scale * term.v[i];
        next.v[i] = scale * force / block.mass_kg;
      }
      std::swap(term, next);
      for (std::size_t i = 0; i < n; ++i) {
        x.q[i] += term.q[i];
        x.v[i] += term.v[i];
      }
    }
  }
  return x;
}

double error_of(const State& x, const State& expected) {
  double difference = 0.0, size = 0.0;
  for (std::size_t i = 0; i < x.q.size(); ++i) {
    difference += std::pow(x.q[i] - expected.q[i], 2) + std::pow(x.v[i] - expected.v[i], 2);
    size += std::pow(expected.q[i], 2) + std::pow(expected.v[i], 2);
  }
  return std::sqrt(difference / size);
}

/// A way to the end time: how to prepare it (untimed) and then take it. Seconds of the latter.
struct Way {
  std::string name;
  std::function<double(State& end)> go;
  double error = HUGE_VAL;
  double seconds = HUGE_VAL;
};

Way measured(Way way, const State& expected) {
  State end{expected.q, expected.v};
  way.seconds = way.go(end);
  way.error = error_of(end, expected);
  if (!std::isfinite(way.error)) way.error = HUGE_VAL;
  return way;
}

Way midpoint(const Chain& chain, int exponent) {
  const double h = std::ldexp(1.0, -exponent);
  return {.name = fmt::format("monolithic midpoint h=2^-{}", exponent),
          .go = [&chain, h](State& end) {
            const auto peer = block_tridiagonal(chain, h);
            const double seconds = timed([&peer] { peer->step(); })(std::llround(kEnd / h));
            peer->read(end.q, end.v);
            return seconds;
          }};
}

Way engine(const System& system, const Chain& chain, int exponent, int iterations) {
  const double h = std::ldexp(1.0, -exponent);
  return {.name = fmt::format("engine h=2^-{} K={}", exponent, iterations),
          .go = [&system, &chain, h, iterations](State& end) {
            Stepper stepper(system, chain_options(chain, h, iterations));
            const double seconds = timed([&stepper] { stepper.step(); })(std::llround(kEnd / h));
            read_engine(stepper, end.q, end.v);
            return seconds;
          }};
}

Way ode(std::string name, std::unique_ptr<OdePeer> made) {
  const std::shared_ptr<OdePeer> peer = std::move(made);  // std::function copies what it calls
  return {.name = std::move(name), .go = [peer](State& end) {
            const double seconds = peer->solve();
            peer->read(end.q, end.v);
            return seconds;
          }};
}

/// The engine at this h with the smallest K whose error is the midpoint rule's to a percent.
Way cheapest_engine(const System& system, const Chain& chain, int exponent, double midpoint_error,
                    const State& expected) {
  for (const int iterations : {1, 2, 3, 4, 5, 6, 8, 12, 20, 40, 80}) {
    Way way = measured(engine(system, chain, exponent, iterations), expected);
    if (way.error <= 1.01 * midpoint_error) return way;
  }
  throw std::runtime_error(fmt::format("no K has the midpoint rule's error at h=2^-{}", exponent));
}

struct Family {
  std::string name;
  std::optional<double> goal;
  std::vector<Way> sweep;
};

std::vector<Family> sundials(const Chain& chain, const State& expected) {
  Family bdf{"cvode_bdf", 10, {}}, erk{"arkode_erk", 2, {}}, adams{"cvode_adams", {}, {}};
  const auto add = [&expected](Family& family, Way way) {
    family.sweep.push_back(measured(std::move(way), expected));
    const Way& done = family.sweep.back();
    fmt::print(stderr, "  {:44} {:10.3e} {:12.3f}\n", done.name, done.error, 1e3 * done.seconds);
  };
  fmt::print(stderr, "  {:44} {:>10} {:>12}\n", "sweep", "error", "ms");
  for (int i = 4; i <= 27; ++i) {
    const double tolerance = std::pow(10.0, -0.25 * i);
    add(bdf,
        ode(fmt::format("cvode_bdf tol={:.1e}", tolerance), cvode_bdf(chain, kEnd, tolerance)));
    add(adams,
        ode(fmt::format("cvode_adams tol={:.1e}", tolerance), cvode_adams(chain, kEnd, tolerance)));
    for (const ErkTable& table : erk_tables()) {
      add(erk, ode(fmt::format("arkode_erk {} tol={:.1e}", table.name, tolerance),
                   arkode_erk(chain, kEnd, tolerance, table.number)));
    }
  }
  return {std::move(bdf), std::move(erk), std::move(adams)};
}

/// Nothing is timed against a peer whose answers are not the exact ones in the limit.
void check_answers(const Chain& chain, const State& expected, const std::vector<Family>& families) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw std::runtime_error(std::string("answers disagree: ") + what);
  };
  require(error_of(exact(chain, 256), expected) <= 1e-11, "the Taylor series with itself");
  Chain wrong = chain;
  wrong.blocks[kBlocks / 2].mass_kg *= 1.0 + 1e-3;
  require(error_of(exact(wrong, 128), expected) > 1e-6, "a wrong chain should have shown");
  const double ratio =
      measured(midpoint(chain, 8), expected).error / measured(midpoint(chain, 9), expected).error;
  require(std::abs(ratio - 4.0) < 0.3, "the midpoint rule is not of second order");
  for (const Family& family : families) {
    double best = HUGE_VAL;
    for (const Way& way : family.sweep) best = std::min(best, way.error);
    require(best <= 1e-4, "a SUNDIALS peer does not converge");
  }
}

/// The fastest of a family that is at least as accurate. The leaders run again, because the single
/// run of the sweep says little on a noisy machine. Null when none is accurate enough.
const Way* fastest_of(const Family& family, double error, State& end) {
  std::vector<const Way*> leaders;
  for (const Way& way : family.sweep) {
    if (way.error <= error) leaders.push_back(&way);
  }
  std::ranges::sort(leaders, {}, &Way::seconds);
  leaders.resize(std::min<std::size_t>(leaders.size(), 3));
  std::vector<double> seconds(leaders.size(), HUGE_VAL);
  for (int repetition = 0; repetition < 2; ++repetition) {
    for (std::size_t i = 0; i < leaders.size(); ++i) {
      seconds[i] = std::min(seconds[i], leaders[i]->go(end));
    }
  }
  if (leaders.empty()) return nullptr;
  return leaders[static_cast<std::size_t>(std::ranges::min_element(seconds) - seconds.begin())];
}

void compare_at(const Report& report, int exponent, const Way& ours, const Way& monolithic,
                const std::vector<Family>& families) {
  State end{std::vector<double>(kBlocks * kMasses), std::vector<double>(kBlocks * kMasses)};
  std::vector<const Way*> ways = {&ours, &monolithic};
  std::vector<RowText> texts;
  const auto text = [&](const std::string& peer, std::optional<double> goal, const Way& way) {
    texts.push_back({.name = fmt::format("chain_to_2s/h=2^-{}/{}", exponent, peer),
                     .sense = Sense::at_least,
                     .goal = exponent == kGoalExponent ? goal : std::nullopt,
                     .note = fmt::format("{}; {} error {:.2e}; {} error {:.2e}",
                                         to_string(portwave::instruction_set()), ours.name,
                                         ours.error, way.name, way.error)});
  };
  text("monolithic", {}, monolithic);
  for (const Family& family : families) {
    const Way* fastest = fastest_of(family, ours.error, end);
    if (fastest == nullptr) {
      fmt::print(stderr, "  {} is nowhere as accurate as h=2^-{}\n", family.name, exponent);
      continue;
    }
    ways.push_back(fastest);
    text(family.name, family.goal, *fastest);
  }

  std::vector<Timer> contenders;
  for (const Way* way : ways) {
    contenders.push_back([way, &end](std::int64_t calls) {
      double seconds = 0.0;
      for (std::int64_t i = 0; i < calls; ++i) seconds += way->go(end);
      return seconds;
    });
  }
  const Contest contest = take_turns(contenders, {.rounds = 5, .turn_s = 1e-2});
  for (std::size_t i = 0; i < ways.size(); ++i) {
    fmt::print(stderr, "  {:44} {:10.3e} {:12.3f}\n", ways[i]->name, ways[i]->error,
               1e-3 * contest.median_us(i));
  }
  for (std::size_t i = 0; i < texts.size(); ++i) report.add(texts[i], contest, 0, i + 1);
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("chain_sundials", 1);
  if (report.only_lists(argc, argv)) return 0;
  const Chain chain = plucked_chain();
  const System system = chain_system(chain);
  const State expected = exact(chain, 128);
  fmt::print(stderr, "chain_sundials: error at t = 2 s, time to get there\n");
  const std::vector<Family> families = sundials(chain, expected);
  check_answers(chain, expected, families);
  fmt::print(stderr, "  {:44} {:>10} {:>12}\n", "fastest at least as accurate", "error", "ms");
  for (const int exponent : kExponents) {
    const Way monolithic = measured(midpoint(chain, exponent), expected);
    const Way ours = cheapest_engine(system, chain, exponent, monolithic.error, expected);
    compare_at(report, exponent, ours, monolithic, families);
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "chain_sundials: {}\n", error.what());
  return 1;
}
