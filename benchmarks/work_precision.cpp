// Work and precision: what an answer of a given accuracy costs. Chains of 1024 five-mass blocks,
// equal and different, a grid of 10 000 Duffing oscillators, the Duffing–linear pair, and a driven
// circuit of 1024 LC cells, from t = 0 to the end, beside SUNDIALS.
//
// Error: ‖x − x*‖₂/‖x*‖₂ at the end, of all positions and velocities (currents and voltages). x* is
// extrapolated to order 12 from right-hand sides that share no code with the engine; the chain's
// is checked against a Taylor series, and every contender's answers are checked before a row is
// printed.
//
// A contender has a knob: a number of equal steps, or a tolerance. A coarse sweep finds how error
// and time depend on it. Then, for each accuracy, the contenders that look the fastest are set as
// coarsely as the accuracy allows, and the fastest of each family run again in turns. All by the
// processor time of one thread, of the integration alone: setting up is left out on both sides.
//
// An argument restricts the systems: a part of their names.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "peers/sundials_ode.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"
#include "precision_reference.hpp"
#include "precision_runs.hpp"
#include "precision_systems.hpp"
#include "report.hpp"

namespace {

using namespace portwave::bench;
using portwave::Stepper;

constexpr int kFirstExponent = 3, kLastExponent = 10;  // accuracies 1e-3 … 1e-10
/// Families of our own: methods without waves, waves with equal steps and with steps that choose their size.
const std::string kExplicit = "by_explicit_steps", kWaves = "by_waves", kChosen = "by_chosen_steps";
const std::vector<std::string> kOwn = {kExplicit, kWaves, kChosen};

/// What a run came to.
struct Sample {
  double knob;
  double error = HUGE_VAL, seconds = HUGE_VAL;
  bool too_slow = false;
};

/// A way to the end time. The knob counts: the larger by one, the more precise by a power of two in
/// the number of steps, or of ten in the tolerance.
struct Contender {
  std::string family, name;
  std::function<std::unique_ptr<Run>(double knob)> make;
  std::function<std::string(double knob)> setting;
  /// Of a peer: the same with nothing but the library as it is installed.
  std::function<std::unique_ptr<Run>(double knob)> make_as_installed = {};
  double fewest_steps = 0.0;  ///< of equal steps, of which there are this · 2^knob
  std::vector<Sample> coarse = {};
};

long steps_at(double fewest, double knob) { return std::lround(fewest * std::exp2(knob)); }

/// Equal steps of waves. With several stages the grid does not converge in 16 or 32 within the limit of a run.
double fewest_by_waves(const Problem& problem, int stages) {
  return !problem.linear && stages > 1 ? 64.0 : 16.0;
}

Contender engine(const Problem& problem, int stages, double tolerance) {
  const double fewest = fewest_by_waves(problem, stages);
  const auto steps_of = [fewest](double knob) { return steps_at(fewest, knob); };
  const auto make = [&problem, steps_of, stages, tolerance](double knob) -> std::unique_ptr<Run> {
    const long steps = steps_of(knob);
    portwave::StepperOptions options;
    options.step_s = problem.end_s / static_cast<double>(steps);
    options.certify = portwave::Certify::energy;
    options.method = portwave::CouplingMethod::automatic(tolerance);
    options.method.waves().stages = stages;
    if (!problem.linear) options.method.waves().start = portwave::InnerStart::extrapolated;
    return std::make_unique<EngineRun>(problem, options, steps);
  };
  return {.family = kWaves,
          .name = fmt::format("waves, s={}", stages),
          .make = make,
          .setting =
              [&problem, steps_of, tolerance](double knob) {
                return fmt::format("h={:.3g} s, tolerance {:.0e}",
                                   problem.end_s / static_cast<double>(steps_of(knob)), tolerance);
              },
          .fewest_steps = fewest};
}

/// Kicks and drifts or Taylor series, which need far fewer steps than waves.
Contender explicit_engine(const Problem& problem, portwave::SplittingKind kind, int order) {
  constexpr double kFewest = 8.0;
  const auto steps_of = [](double knob) { return steps_at(kFewest, knob); };
  const auto make = [&problem, steps_of, kind, order](double knob) -> std::unique_ptr<Run> {
    const long steps = steps_of(knob);
    portwave::StepperOptions options;
    options.step_s = problem.end_s / static_cast<double>(steps);
    options.certify = portwave::Certify::energy;
    options.method = portwave::Splitting{.kind = kind, .order = order};
    return std::make_unique<EngineRun>(problem, options, steps);
  };
  return {.family = kExplicit,
          .name = fmt::format("{} of order {}", to_string(kind), order),
          .make = make,
          .setting = [steps_of](double knob) { return fmt::format("{} steps", steps_of(knob)); },
          .fewest_steps = kFewest};
}

/// Steps that choose their size.
Contender adaptive_engine(const Problem& problem, int stages) {
  const auto tolerance_of = [](double knob) { return std::pow(10.0, -1.0 - knob); };
  const auto make = [&problem, stages, tolerance_of](double knob) -> std::unique_ptr<Run> {
    portwave::StepperOptions options;
    options.step_s = problem.end_s / fewest_by_waves(problem, stages);
    options.certify = portwave::Certify::energy;
    options.method = portwave::CouplingMethod::automatic();
    options.method.waves().stages = stages;
    options.sizes = portwave::StepSizes{.tolerance = std::max(tolerance_of(knob), 1e-13)};
    return std::make_unique<EngineRun>(problem, options, 0);
  };
  return {.family = kChosen,
          .name = fmt::format("waves, s={}", stages),
          .make = make,
          .setting = [tolerance_of](double knob) {
            return fmt::format("tolerance {:.1e}", tolerance_of(knob));
          }};
}

std::vector<Contender> engines(const Problem& problem) {
  const std::vector<double> tolerances =
      problem.linear ? std::vector{1e-10} : std::vector{1e-6, 1e-9, 1e-12};
  std::vector<Contender> all;
  for (const int stages : {1, 2, 3}) {
    for (const double tolerance : tolerances) all.push_back(engine(problem, stages, tolerance));
    all.push_back(adaptive_engine(problem, stages));
  }
  for (const int order : {4, 6}) {
    all.push_back(explicit_engine(problem, portwave::SplittingKind::kick_drift, order));
  }
  for (const int order : {12, 16, 24}) {
    if (!problem.linear) break;
    all.push_back(explicit_engine(problem, portwave::SplittingKind::taylor, order));
  }
  return all;
}

/// The two layouts of a problem for peers.
struct Odes {
  std::unique_ptr<Ode> apart, interleaved;
};

using MakePeer = std::function<std::unique_ptr<OdeSolver>(const Ode&, double end_s, Precision)>;

using Precise = std::function<Precision(double knob)>;

Contender peer(const Problem& problem, const Ode& ode, std::string family, std::string name,
               const MakePeer& make, const Precise& precise) {
  const auto made = [&ode, &problem, make, precise](bool library_loops) {
    return [=, &ode, &problem](double knob) -> std::unique_ptr<Run> {
      Precision precision = precise(knob);
      precision.library_loops = library_loops;
      return std::make_unique<PeerRun>(ode, make(ode, problem.end_s, precision));
    };
  };
  return {.family = std::move(family),
          .name = std::move(name),
          .make = made(false),
          .setting =
              [precise](double knob) {
                const Precision p = precise(knob);
                return p.steps > 0 ? fmt::format("{} equal steps", p.steps)
                                   : fmt::format("atol={:.1e}", p.absolute);
              },
          .make_as_installed = made(true),
          .fewest_steps = static_cast<double>(precise(0.0).steps)};
}

/// Absolute tolerances only: they weigh the variables as the error that is asked for does, and do
/// at least as well here as mixtures with relative ones.
Precise by_tolerance(const Ode& ode) {
  return [&ode](double knob) {
    return Precision{.absolute = std::pow(10.0, -2.0 - knob) * ode.scale()};
  };
}
Precise by_equal_steps(const Problem& problem) {
  return [fewest = static_cast<double>(problem.fewest_steps)](double knob) {
    return Precision{.steps = steps_at(fewest, knob)};
  };
}

std::vector<Contender> sundials(const Problem& problem, const Odes& odes) {
  std::vector<Contender> all;
  const auto multistep = [&](Multistep family, StageSolver solver, const char* name) {
    const Ode& ode = solver == StageSolver::fixed_point ? *odes.apart : *odes.interleaved;
    const auto make = [=](const Ode& o, double end_s, const Precision& precision) {
      return cvode(o, end_s, family, solver, precision);
    };
    all.push_back(peer(problem, ode, family == Multistep::adams ? "cvode_adams" : "cvode_bdf", name,
                       make, by_tolerance(ode)));
  };
  std::vector<std::pair<StageSolver, std::string>> newton = {{StageSolver::klu, "KLU"}};
  if (problem.narrow_band) newton.insert(newton.begin(), {StageSolver::band, "band"});
  multistep(Multistep::adams, StageSolver::fixed_point, "fixed point");
  for (const auto& [solver, name] : newton) {
    multistep(Multistep::adams, solver, name.c_str());
    multistep(Multistep::bdf, solver, name.c_str());
  }
  for (const Table& table : explicit_tables()) {
    const auto make = [table](const Ode& o, double end_s, const Precision& precision) {
      return arkode_erk(o, end_s, table, precision);
    };
    const auto add = [&](const Precise& precise) {
      all.push_back(peer(problem, *odes.apart, "arkode_erk", table.name, make, precise));
    };
    if (table.has_embedding) add(by_tolerance(*odes.apart));
    add(by_equal_steps(problem));
  }
  for (const Table& table : diagonally_implicit_tables()) {
    const auto& [solver, name] = newton.front();
    const auto make = [table, solver = solver](const Ode& o, double end_s,
                                               const Precision& precision) {
      return arkode_dirk(o, end_s, table, solver, precision);
    };
    all.push_back(peer(problem, *odes.interleaved, "arkode_dirk", table.name + " " + name, make,
                       by_tolerance(*odes.interleaved)));
  }
  return all;
}

double solve_timed(Run& run) {
  run.restart();
  return processor_timed([&run] { run.solve(); })(1);
}

Sample sampled(const Contender& contender, double knob, const std::vector<double>& expected) {
  Sample sample{.knob = knob};
  try {
    const auto run = contender.make(knob);
    sample.seconds = solve_timed(*run);
    sample.error = relative_error(run->state(), expected);
    if (sample.seconds < 0.02) sample.seconds = std::min(sample.seconds, solve_timed(*run));
  } catch (const TooSlow&) {
    sample.too_slow = true;
  } catch (const std::exception&) {  // solvers refuse some tolerances and steps
    sample.error = HUGE_VAL;
  }
  return sample;
}

/// Coarse to fine until the last accuracy is met, or the next run would take too long.
void sweep(Contender& contender, const std::vector<double>& expected) {
  constexpr double kLastKnob = 14.0;
  const double last = std::pow(10.0, -kLastExponent);
  for (double knob = 0.0; knob <= kLastKnob; knob += 1.0) {
    const Sample sample = sampled(contender, knob, expected);
    contender.coarse.push_back(sample);
    if (sample.error <= last || sample.too_slow) return;
    const auto& all = contender.coarse;
    const double grows = all.size() < 2 ? 1.0 : sample.seconds / all[all.size() - 2].seconds;
    if (std::isfinite(sample.seconds) && sample.seconds * std::max(1.0, grows) > kMostSeconds) {
      return;
    }
  }
}

/// Where a coarse sweep puts an accuracy, between the two runs around it.
std::optional<Sample> interpolated(const Contender& contender, double accuracy) {
  const auto& coarse = contender.coarse;
  const auto after = std::ranges::find_if(
      coarse, [accuracy](const Sample& sample) { return sample.error <= accuracy; });
  if (after == coarse.end()) return std::nullopt;
  if (after == coarse.begin() || !std::isfinite(std::prev(after)->error)) return *after;
  const Sample &a = *std::prev(after), &b = *after;
  const double share = std::log(a.error / accuracy) / std::log(a.error / b.error);
  return Sample{.knob = a.knob + share * (b.knob - a.knob),
                .error = accuracy,
                .seconds = a.seconds * std::pow(b.seconds / a.seconds, share)};
}

/// A run that has the accuracy, as coarse as can be found.
struct Candidate {
  const Contender* contender;
  Sample sample;
};

/// Errors do not follow tolerances smoothly: from the interpolated knob on, the first that will do. Of equal steps, then,
/// as few as will do.
Candidate refined(const Contender& contender, const Sample& guess, double accuracy,
                  const std::vector<double>& expected) {
  constexpr int kMostTries = 4;
  for (const double more : {0.01, 0.04, 0.1, 0.2, 0.35}) {
    Sample sample = sampled(contender, guess.knob + more, expected);
    if (sample.error > accuracy) continue;
    const double fewest = contender.fewest_steps;
    for (int k = 0; fewest > 0.0 && k < kMostTries; ++k) {
      const auto steps = steps_at(fewest, sample.knob);
      const auto less = static_cast<double>(steps - std::max(1L, steps / 100));
      const Sample fewer = sampled(contender, std::log2(less / fewest), expected);
      if (!(fewer.error <= accuracy)) break;
      sample = fewer;
    }
    return {&contender, sample};
  }
  return {&contender, *std::ranges::find_if(contender.coarse, [accuracy](const Sample& sample) {
            return sample.error <= accuracy;
          })};
}

/// The fastest of a family at this accuracy.
std::optional<Candidate> fastest(const std::vector<Contender>& contenders,
                                 const std::string& family, double accuracy,
                                 const std::vector<double>& expected) {
  std::vector<Candidate> guesses;
  for (const Contender& contender : contenders) {
    if (contender.family != family) continue;
    if (const auto guess = interpolated(contender, accuracy)) {
      guesses.push_back({&contender, *guess});
    }
  }
  const auto seconds = [](const Candidate& candidate) { return candidate.sample.seconds; };
  std::ranges::sort(guesses, {}, seconds);
  std::optional<Candidate> best;
  constexpr double kWorthATry = 1.3;
  constexpr std::size_t kMostTries = 4;
  for (std::size_t i = 0; i < std::min(guesses.size(), kMostTries); ++i) {
    if (seconds(guesses[i]) > kWorthATry * seconds(guesses[0])) break;
    const Candidate found = refined(*guesses[i].contender, guesses[i].sample, accuracy, expected);
    if (!best || seconds(found) < seconds(*best)) best = found;
  }
  return best;
}

std::string described(const Candidate& candidate) {
  return candidate.contender->name + ", " + candidate.contender->setting(candidate.sample.knob);
}

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("answers disagree: " + what);
}

/// x(end), after a look at whether it can be one.
std::vector<double> reference(const Problem& problem, const Odes& odes) {
  const auto at = [&](const Ode& ode, int steps) {
    return extrapolated(ode, problem.end_s, steps);
  };
  const std::vector<double> fine = at(*odes.apart, 2 * problem.reference_steps);
  std::vector<double> expected = problem.exact ? problem.exact() : fine;
  const auto check = [&](const std::vector<double>& other, const char* what) {
    const double error = relative_error(other, expected);
    fmt::print(stderr, "  reference {:40} {:8.1e}\n", what, error);
    require(error <= problem.rounding, problem.name + ", " + what);
  };
  if (problem.exact) check(fine, "by another method");
  check(at(*odes.apart, problem.reference_steps), "with half as many steps");
  check(at(*odes.interleaved, 2 * problem.reference_steps), "in the other layout");
  require(relative_error(at(*odes.apart, problem.reference_steps / 16), expected) > 1e-12,
          "a control with few steps should have shown");
  return expected;
}

/// Two integrators that have nothing in common must come to the reference as closely as the last
/// accuracy asks for, and every contender must come near it, or be too slow for that.
void check_answers(const std::vector<Contender>& contenders) {
  std::map<std::string, double> best;
  for (const Contender& contender : contenders) {
    double nearest = HUGE_VAL;
    for (const Sample& sample : contender.coarse) nearest = std::min(nearest, sample.error);
    const Sample& last = contender.coarse.back();
    const bool slow = last.too_slow || last.seconds > 0.1 * kMostSeconds;
    require(nearest <= 1e-2 || slow, contender.family + " " + contender.name);
    double& of_family = best.try_emplace(contender.family, HUGE_VAL).first->second;
    of_family = std::min(of_family, nearest);
  }
  const double last = std::pow(10.0, -kLastExponent);
  require(best["arkode_erk"] <= last && best["cvode_adams"] <= last, "SUNDIALS and the reference");
}

const std::vector<std::string> kPeers = {"arkode_erk", "cvode_adams", "cvode_bdf", "arkode_dirk"};

/// The fastest of every family in turns, at one accuracy.
class Duel {
 public:
  Duel(const Problem& problem, int exponent) : problem_(problem), exponent_(exponent) {}

  void add(const std::string& name, const std::optional<Candidate>& candidate) {
    if (!candidate) return;
    add(name, *candidate, candidate->contender->make(candidate->sample.knob));
  }
  /// The fastest of the peers once more, with the library as it is installed.
  void add_as_installed() {
    const Candidate* fastest = nullptr;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (is_own(i)) continue;
      const Candidate& peer = candidates_[i];
      if (fastest == nullptr || peer.sample.seconds < fastest->sample.seconds) fastest = &peer;
    }
    if (fastest == nullptr) return;
    const Candidate peer = *fastest;
    add(kAsInstalled, peer, peer.contender->make_as_installed(peer.sample.knob));
  }

  void hold() {
    double round_s = 0.0;
    std::vector<Timer> timers;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      round_s += candidates_[i].sample.seconds;
      timers.emplace_back([&run = *runs_[i]](std::int64_t calls) {
        double seconds = 0.0;
        for (std::int64_t call = 0; call < calls; ++call) seconds += solve_timed(run);
        return seconds;
      });
    }
    const int rounds = std::clamp(static_cast<int>(2.0 / round_s), 3, 15);
    contest_.emplace(take_turns(timers, {.rounds = rounds, .turn_s = 2e-3}));
  }

  /// The fastest of our own beside every family of peers, and beside the best peer, which has the goal; the other
  /// families of our own beside the best peer.
  void report(const Report& report) const {
    const std::optional<std::size_t> best =
        fastest_of([this](std::size_t i) { return is_peer(i); });
    const std::optional<std::size_t> own = fastest_of([this](std::size_t i) { return is_own(i); });
    if (!best) return;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (is_own(i)) {
        row(report, names_[i], i, *best, {});
      } else {
        row(report, names_[i], own, i, {});
      }
    }
    const auto goal = problem_.goals.find(exponent_);
    row(report, "best", own, *best,
        goal == problem_.goals.end() ? std::nullopt : std::optional(goal->second));
    talk(*best);
  }

 private:
  static inline const std::string kAsInstalled = "best_as_installed";

  void add(const std::string& name, const Candidate& candidate, std::unique_ptr<Run> run) {
    names_.push_back(name);
    candidates_.push_back(candidate);
    runs_.push_back(std::move(run));
  }
  bool is_own(std::size_t i) const { return std::ranges::find(kOwn, names_[i]) != kOwn.end(); }
  bool is_peer(std::size_t i) const { return !is_own(i) && names_[i] != kAsInstalled; }
  template <class Belongs>
  std::optional<std::size_t> fastest_of(const Belongs& belongs) const {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (!belongs(i)) continue;
      if (!best || contest_->median_us(i) < contest_->median_us(*best)) best = i;
    }
    return best;
  }

  void row(const Report& report, const std::string& name, std::optional<std::size_t> own,
           std::size_t peer, std::optional<double> goal) const {
    RowText text{.name = fmt::format("work_precision/{}/1e-{}/{}", problem_.name, exponent_, name),
                 .sense = Sense::at_least,
                 .goal = goal,
                 .note = described(candidates_[peer])};
    if (own) {
      text.note = fmt::format("{}; engine: {}; peer: {}", to_string(portwave::instruction_set()),
                              described(candidates_[*own]), text.note);
      report.add(text, *contest_, *own, peer);
      return;
    }
    text.note = "engine not run: too slow; peer: " + text.note;
    if (goal) report.add(text, std::vector{0.0}, "times as fast");
  }

  /// A line of the table for people, for each family of our own.
  void talk(std::size_t best) const {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (!is_own(i)) continue;
      fmt::print(stderr,
                 "  1e-{:<4} {:18} {:10.3f} {:<46} {:10.3f} {:<50} {:6.2f} ({:.2f} as installed)\n",
                 exponent_, names_[i], 1e-3 * contest_->median_us(i), described(candidates_[i]),
                 1e-3 * contest_->median_us(best),
                 candidates_[best].contender->family + " " + described(candidates_[best]),
                 quantile(contest_->ratios(best, i), 0.5),
                 quantile(contest_->ratios(names_.size() - 1, i), 0.5));
    }
  }

  const Problem& problem_;
  int exponent_;
  std::vector<std::string> names_;
  std::vector<Candidate> candidates_;
  std::vector<std::unique_ptr<Run>> runs_;
  std::optional<Contest> contest_;
};

void compare(const Report& report, const Problem& problem) {
  fmt::print(stderr, "{}\n", problem.name);
  const Odes odes{problem.ode(Layout::apart), problem.ode(Layout::interleaved)};
  const std::vector<double> expected = reference(problem, odes);
  std::vector<Contender> contenders = engines(problem);
  std::ranges::move(sundials(problem, odes), std::back_inserter(contenders));
  for (Contender& contender : contenders) {
    sweep(contender, expected);
    const Sample& last = contender.coarse.back();
    fmt::print(stderr, "  {:12} {:36} {:2} runs, last: error {:8.1e} {:10.3f} ms\n",
               contender.family, described({&contender, last}), contender.coarse.size(), last.error,
               1e3 * last.seconds);
  }
  check_answers(contenders);
  for (int exponent = kFirstExponent; exponent <= kLastExponent; ++exponent) {
    const double accuracy = std::pow(10.0, -exponent);
    Duel duel(problem, exponent);
    for (const auto* const families : {&kOwn, &kPeers}) {
      for (const std::string& family : *families) {
        duel.add(family, fastest(contenders, family, accuracy, expected));
      }
    }
    duel.add_as_installed();
    duel.hold();
    duel.report(report);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("work_precision", 1);
  if (report.only_lists(argc, argv)) return 0;
  const std::string wanted = argc > 1 ? argv[1] : "";
  for (const auto& make : problems()) {
    const Problem problem = make();
    if (problem.name.find(wanted) != std::string::npos) compare(report, problem);
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "work_precision: {}\n", error.what());
  return 1;
}
