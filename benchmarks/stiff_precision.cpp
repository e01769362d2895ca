// Stiff decays: what an answer of a given accuracy costs with damped steps, beside CVODE's BDF with a band LU or KLU. A
// heat rod of 10 000 cells and a network of 10 000 capacitors and coils whose time constants spread over six powers of
// ten (stiff_systems.hpp), both from a start that all modes share in.
//
// Error: ‖x − x*‖₂/‖x*‖₂ at the end. x* of the rod is in closed form; that of the network is CVODE's with a tolerance
// far below, and compared with ARKODE's. Times are those of one thread's processor, of the integration alone; rows
// "with set-up" count the making of solvers and steppers too.
//
// An argument restricts the systems: a part of their names.

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <ctime>
#include <functional>
#include <memory>
#include <numbers>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "peers/stiff_ode.hpp"
#include "peers/sundials_ode.hpp"
#include "precision_reference.hpp"
#include "report.hpp"
#include "stiff_systems.hpp"

namespace {

using namespace portwave::bench;
using portwave::StageKind;
using portwave::Stepper;
using portwave::System;

constexpr double kMostSeconds = 2.0;  // a finer run of the engine would take longer
const std::vector<int> kExponents = {3, 5};

/// A way to cut a system into parts, and its state in the order of the Ode.
struct Cut {
  std::string name;
  System system;
  std::function<std::vector<double>(const Stepper&)> read;
};

struct Problem {
  std::string name;
  double end_s;
  std::unique_ptr<Ode> ode;
  std::vector<Cut> cuts;
  StageSolver peer;
  std::function<std::vector<double>()> exact = {};
};

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("answers disagree: " + what);
}

double processor_s() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// T at the end, by the modes that are left of the start and of the heat's onset: T = a mean that rises, a profile that
/// swings with the heat, one that the mean heat makes, and those modes.
std::vector<double> rod_in_closed_form(const RodParameters& p, double end_s) {
  using Complex = std::complex<double>;
  const std::size_t n = p.cells;
  const double share = 1.0 / static_cast<double>(n), pi = std::numbers::pi;
  const double rate = 1.0 / (p.capacity_J_per_K * p.resistance_K_per_W);
  const double heat = p.heat_W / p.capacity_J_per_K, omega = 2.0 * pi * p.heat_Hz;
  std::vector<double> still(n, 0.0);  // rises as a whole with heat/n
  for (std::size_t i = 0; i + 1 < n; ++i) {
    still[i + 1] = still[i] - heat / rate * (1.0 - static_cast<double>(i + 1) * share);
  }
  std::vector<Complex> swing(n), upper(n);  // of heat·exp(iωt), by elimination
  Complex rest = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    const bool end = i == 0 || i + 1 == n;
    const Complex diagonal = Complex(rate * (end ? 1.0 : 2.0), omega);
    const Complex pivot = i == 0 ? diagonal : diagonal - rate * upper[i - 1];
    rest = ((i == 0 ? Complex(heat) : Complex(0.0)) + (i == 0 ? 0.0 : rate) * rest) / pivot;
    swing[i] = rest;
    upper[i] = rate / pivot;
  }
  for (std::size_t i = n - 1; i-- > 0;) swing[i] += upper[i] * swing[i + 1];
  std::vector<double> left(n), out(n);
  for (std::size_t i = 0; i < n; ++i) {
    left[i] = p.initial_K(i) - still[i] - swing[i].imag();
    out[i] =
        still[i] + heat * share * end_s + (swing[i] * std::exp(Complex(0.0, omega * end_s))).imag();
  }
  for (std::size_t k = 0; k < n; ++k) {
    const double angle = pi * static_cast<double>(k) * share, half = std::sin(0.5 * angle);
    const double decay = std::exp(-4.0 * rate * half * half * end_s);
    if (decay < 1e-18) break;
    double amount = 0.0;
    const auto mode = [angle](std::size_t i) {
      return std::cos(angle * (static_cast<double>(i) + 0.5));
    };
    for (std::size_t i = 0; i < n; ++i) amount += left[i] * mode(i);
    amount *= (k == 0 ? 1.0 : 2.0) * share * decay;
    for (std::size_t i = 0; i < n; ++i) out[i] += amount * mode(i);
  }
  return out;
}

/// All states, part by part.
std::vector<double> all_states(const Stepper& stepper) {
  std::vector<double> out;
  for (int part = 0; part < static_cast<int>(stepper.system().parts().size()); ++part) {
    const auto x = stepper.state(part);
    out.insert(out.end(), x.begin(), x.end());
  }
  return out;
}

Problem rod_problem() {
  const RodParameters p;
  constexpr double kEnd = 0.1;
  std::vector<Cut> cuts;
  for (const std::size_t cells : {p.cells, std::size_t{100}, std::size_t{20}}) {
    const std::size_t sections = p.cells / cells;
    cuts.push_back({sections == 1 ? "one part" : fmt::format("{} parts", sections),
                    rod_system(p, cells), all_states});
  }
  return {.name = "rod",
          .end_s = kEnd,
          .ode = rod_ode(p),
          .cuts = std::move(cuts),
          .peer = StageSolver::band,
          .exact = [p] { return rod_in_closed_form(p, kEnd); }};
}

Problem mesh_problem() {
  const MeshParameters p;
  std::vector<Cut> cuts;
  cuts.push_back({"one part", mesh_as_one_part(p), all_states});
  cuts.push_back({"netlist", mesh_as_netlist(p), all_states});
  return {.name = "mesh",
          .end_s = 0.02125,  // at a peak of the source
          .ode = mesh_ode(p),
          .cuts = std::move(cuts),
          .peer = StageSolver::klu};
}

/// What a run came to.
struct Sample {
  double knob = 0.0;
  double error = HUGE_VAL, run_s = HUGE_VAL, all_s = HUGE_VAL;
};

/// A way to the end. The larger the knob, the finer; by 1: half the step, or a tenth of the tolerance.
struct Contender {
  std::string family, name;
  /// A run that can be repeated: sets up where asked, then runs. Null state: too slow.
  struct Run {
    std::function<void()> set_up, solve;
    std::function<std::vector<double>()> state;
  };
  std::function<Run(double knob)> make;
  std::function<std::string(double knob)> setting;
  double most_s = kMostSeconds;  ///< no finer run after one that took longer
  std::vector<Sample> coarse = {};
};

constexpr double kFewestSteps = 8.0;

Contender engine(const Problem& problem, const Cut& cut, int stages, StageKind integrator) {
  const auto steps_of = [](double knob) { return std::lround(kFewestSteps * std::exp2(knob)); };
  const auto make = [&problem, &cut, stages, integrator, steps_of](double knob) {
    const long steps = steps_of(knob);
    portwave::StepperOptions options;
    options.step_s = problem.end_s / static_cast<double>(steps);
    options.method = portwave::WaveCoupling::automatic_with_stages(stages);
    options.method.waves().integrator = integrator;
    const auto stepper = std::make_shared<std::unique_ptr<Stepper>>();
    return Contender::Run{
        .set_up = [=, &cut] { *stepper = std::make_unique<Stepper>(cut.system, options); },
        .solve =
            [=] {
              const double start_s = processor_s();
              for (long n = 0; n < steps; ++n) {
                (*stepper)->step();
                if (processor_s() - start_s > 3.0 * kMostSeconds) {
                  throw std::runtime_error("too slow");
                }
              }
            },
        .state = [=, &cut] { return cut.read(**stepper); }};
  };
  return {.family =
              fmt::format("{}, {} stage{}", to_string(integrator), stages, stages == 1 ? "" : "s"),
          .name = cut.name,
          .make = make,
          .setting = [&problem, steps_of](double knob) {
            return fmt::format("h={:.3g} s", problem.end_s / static_cast<double>(steps_of(knob)));
          }};
}

Contender cvode_bdf(const Problem& problem, bool library_loops) {
  const auto precision = [&problem, library_loops](double knob) {
    return Precision{.absolute = std::pow(10.0, -1.5 - knob) * problem.ode->scale(),
                     .library_loops = library_loops};
  };
  const auto make = [&problem, precision](double knob) {
    const auto solver = std::make_shared<std::unique_ptr<OdeSolver>>();
    return Contender::Run{
        .set_up =
            [=, &problem] {
              *solver =
                  cvode(*problem.ode, problem.end_s, Multistep::bdf, problem.peer, precision(knob));
              (*solver)->restart();
            },
        .solve = [=] { (*solver)->solve(); },
        .state = [=, &problem] { return problem.ode->physical((*solver)->state()); }};
  };
  return {
      .family = library_loops ? "CVODE BDF as installed" : "CVODE BDF",
      .name = problem.peer == StageSolver::band ? "band" : "KLU",
      .make = make,
      .setting =
          [precision](double knob) { return fmt::format("atol={:.1e}", precision(knob).absolute); },
      .most_s = 8.0 * kMostSeconds};
}

Sample sampled(const Contender& contender, double knob, const std::vector<double>& expected) {
  Sample sample{.knob = knob};
  try {
    const auto run = contender.make(knob);
    const double set_up_s = processor_timed(run.set_up)(1);
    sample.run_s = processor_timed(run.solve)(1);
    sample.all_s = set_up_s + sample.run_s;
    sample.error = relative_error(run.state(), expected);
  } catch (const std::exception& error) {
    fmt::print(stderr, "  {} {}, {}: {}\n", contender.family, contender.name,
               contender.setting(knob), error.what());
  }
  return sample;
}

void sweep(Contender& contender, const std::vector<double>& expected) {
  for (double knob = 0.0; knob <= 14.0; knob += 0.5) {
    const Sample sample = sampled(contender, knob, expected);
    contender.coarse.push_back(sample);
    fmt::print(stderr, "  {:24} {:10} {:16} error {:8.1e} run {:9.2f} ms, with set-up {:9.2f} ms\n",
               contender.family, contender.name, contender.setting(knob), sample.error,
               1e3 * sample.run_s, 1e3 * sample.all_s);
    if (sample.error <= std::pow(10.0, -kExponents.back()) ||
        sample.run_s > 0.6 * contender.most_s) {
      return;
    }
  }
}

struct Candidate {
  const Contender* contender;
  Sample sample;
  std::string text() const {
    return fmt::format("{} {}, {}", contender->family, contender->name,
                       contender->setting(sample.knob));
  }
};

/// The fastest contender of a family that reaches an accuracy, by the time of its run or with its set-up.
std::optional<Candidate> fastest(const std::vector<Contender>& contenders,
                                 const std::string& family, double accuracy, double Sample::*time) {
  std::optional<Candidate> best;
  for (const Contender& contender : contenders) {
    if (contender.family != family) continue;
    const auto found = std::ranges::find_if(
        contender.coarse, [accuracy](const Sample& sample) { return sample.error <= accuracy; });
    if (found == contender.coarse.end()) continue;
    if (!best || (*found).*time < best->sample.*time) best = Candidate{&contender, *found};
  }
  return best;
}

const std::string kPeer = "CVODE BDF";

/// The fastest of every family in turns, at one accuracy.
void duel(const Report& report, const Problem& problem, const std::vector<Contender>& contenders,
          int exponent, bool with_set_up) {
  const double accuracy = std::pow(10.0, -exponent);
  const auto time = with_set_up ? &Sample::all_s : &Sample::run_s;
  std::vector<Candidate> entrants;
  const auto enter = [&](const std::string& family) {
    const auto found = fastest(contenders, family, accuracy, time);
    if (found) entrants.push_back(*found);
    return found.has_value();
  };
  require(enter(kPeer), problem.name + ", CVODE does not reach the accuracy");
  std::vector<std::string> families;
  for (const Contender& contender : contenders) {
    if (contender.family == kPeer || std::ranges::count(families, contender.family) > 0) continue;
    families.push_back(contender.family);
    enter(contender.family);
  }
  std::vector<Timer> timers;
  double round_s = 0.0;
  for (const Candidate& entrant : entrants) {
    round_s += entrant.sample.all_s;
    const auto run = entrant.contender->make(entrant.sample.knob);
    timers.emplace_back([run, with_set_up](std::int64_t calls) {
      double seconds = 0.0;
      for (std::int64_t call = 0; call < calls; ++call) {
        const double set_up_s = processor_timed(run.set_up)(1);
        seconds += processor_timed(run.solve)(1) + (with_set_up ? set_up_s : 0.0);
      }
      return seconds;
    });
  }
  const int rounds = std::clamp(static_cast<int>(6.0 / round_s), 3, 15);
  const Contest contest = take_turns(timers, {.rounds = rounds, .turn_s = 2e-3});
  for (std::size_t i = 1; i < entrants.size(); ++i) {
    const bool has_goal = entrants[i].contender->family == "damped, 3 stages";
    report.add(
        {.name = fmt::format("stiff_precision/{}/1e-{}/{}{}", problem.name, exponent,
                             entrants[i].contender->family, with_set_up ? ", with set-up" : ""),
         .goal = has_goal ? std::optional(1.0) : std::nullopt,
         .note =
             fmt::format("times as fast as {}; here: {}", entrants[0].text(), entrants[i].text())},
        contest, i, 0);
    fmt::print(stderr, "  1e-{} {:60} {:10.2f} ms beside {:10.2f} ms: {:.2f}\n", exponent,
               entrants[i].text() + (with_set_up ? ", with set-up" : ""),
               1e-3 * contest.median_us(i), 1e-3 * contest.median_us(0),
               quantile(contest.ratios(0, i), 0.5));
  }
}

/// x(end), after a comparison with a solver that shares nothing with it.
std::vector<double> reference(const Problem& problem) {
  const auto solved = [&](std::unique_ptr<OdeSolver> solver) {
    solver->restart();
    solver->solve();
    return problem.ode->physical(solver->state());
  };
  const auto by_cvode = [&](double tolerance) {
    return solved(cvode(*problem.ode, problem.end_s, Multistep::bdf, problem.peer,
                        {.absolute = tolerance * problem.ode->scale()}));
  };
  const std::vector<double> expected = problem.exact ? problem.exact() : by_cvode(1e-10);
  const std::vector<double> other =
      problem.exact
          ? by_cvode(1e-9)
          : solved(arkode_dirk(*problem.ode, problem.end_s, diagonally_implicit_tables().back(),
                               problem.peer, {.absolute = 1e-9 * problem.ode->scale()}));
  const double error = relative_error(other, expected);
  fmt::print(stderr, "  reference, by another method {:8.1e}\n", error);
  require(error <= 1e-7, problem.name + ", the reference");
  require(relative_error(by_cvode(1e-1), expected) > 1e-6,
          "a control with a coarse tolerance should have shown");
  return expected;
}

void compare(const Report& report, const Problem& problem) {
  fmt::print(stderr, "{}\n", problem.name);
  const std::vector<double> expected = reference(problem);
  std::vector<Contender> contenders;
  for (const Cut& cut : problem.cuts) {
    for (int stages = 1; stages <= 3; ++stages) {
      contenders.push_back(engine(problem, cut, stages, StageKind::damped));
    }
    contenders.push_back(engine(problem, cut, 1, StageKind::automatic));
    contenders.push_back(engine(problem, cut, 2, StageKind::gauss));
  }
  contenders.push_back(cvode_bdf(problem, false));
  contenders.push_back(cvode_bdf(problem, true));
  for (Contender& contender : contenders) sweep(contender, expected);
  const auto coarsest = fastest(contenders, "damped, 3 stages", 1e-5, &Sample::run_s);
  require(coarsest.has_value(), problem.name + ", damped steps of three stages");
  for (const int exponent : kExponents) {
    duel(report, problem, contenders, exponent, false);
    duel(report, problem, contenders, exponent, true);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("stiff_precision", 1);
  if (report.only_lists(argc, argv)) return 0;
  const std::string wanted = argc > 1 ? argv[1] : "";
  for (const auto make : {rod_problem, mesh_problem}) {
    const Problem problem = make();
    if (problem.name.find(wanted) != std::string::npos) compare(report, problem);
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "stiff_precision: {}\n", error.what());
  return 1;
}
