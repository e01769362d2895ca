#include "repeatability/run.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "portwave/coupling/impedance/tuning.hpp"
#include "portwave/coupling/system/derived_systems.hpp"
#include "portwave/runtime/ensemble/ensemble.hpp"
#include "portwave/runtime/ranks/ranked_stepper.hpp"
#include "portwave/runtime/ranks/thread_ranks.hpp"
#include "repeatability/networks.hpp"

namespace portwave::repeatability {
namespace {

constexpr std::uint64_t kBegin = 1469598103934665603ULL;

std::uint64_t digest(std::uint64_t own, double value) {
  return (own ^ std::bit_cast<std::uint64_t>(value)) * 1099511628211ULL;
}

std::uint64_t digest_of(const Stepper& stepper) {
  std::uint64_t own = kBegin;
  const int parts = static_cast<int>(stepper.system().parts().size());
  for (int part = 0; part < parts; ++part) {
    for (const double value : stepper.state(part)) own = digest(own, value);
  }
  const WaveView* const waves = stepper.waves();
  if (waves == nullptr) return own;
  for (int j = 0; j < static_cast<int>(stepper.system().scalar_ports().size()); ++j) {
    own = digest(digest(own, waves->incident(j)), waves->outgoing(j));
  }
  return own;
}

double number(std::int64_t count) { return static_cast<double>(count); }

void count(const Stepper& stepper, Record& out) {
  const IterationStatistics& own = stepper.iterations();
  out.rescues = own.rescues;
  out.rejected_trials = own.rejected_trials;
  out.counts = {number(stepper.step_index()),
                stepper.time_s(),
                number(own.total),
                number(own.max),
                number(own.rescues),
                number(own.rejected_trials),
                number(own.linearisations),
                number(own.not_converged)};
  for (const std::int64_t reason : own.reasons) out.counts.push_back(number(reason));
  const auto add = [&](std::initializer_list<double> more) {
    out.counts.insert(out.counts.end(), more);
  };
  const Certificate& c = stepper.certificate();
  add({number(static_cast<int>(c.status)), c.max_passivity_residual_J,
       number(c.worst_passivity_part), number(c.worst_passivity_step), number(c.missed.steps),
       number(c.missed.step), number(c.missed.part), c.missed.residual, c.missed.gap_J,
       c.missed.part_gap_J, c.max_augmented_residual_J.value_or(-1.0),
       c.max_fejer_residual_J.value_or(-1.0), c.min_fne_margin.value_or(-1.0),
       c.min_nonexpansiveness_margin.value_or(-1.0), number(c.steps_without_fixed_point)});
  if (stepper.keeps_ledger()) {
    const EnergyTotals& e = stepper.energy();
    add({e.final_J, e.max_J, e.supplied_J, e.dissipated_J, e.numerical_dissipation_J, e.mismatch_J,
         e.tank_J});
    out.numerical_dissipation_J = e.numerical_dissipation_J;
  }
  if (const WaveView* const waves = stepper.waves(); waves != nullptr) {
    add({number(waves->tuning().changes), number(waves->tuning().failures),
         waves->tuning().rescattered_J});
    if (const GuardStatistics* const guard = waves->guard(); guard != nullptr) {
      out.guard_uses = guard->uses;
      add({number(guard->steps), number(guard->uses), number(guard->trials), guard->min_alpha,
           guard->withheld_J});
    }
  }
  if (const StepSizeStatistics* const sizes = stepper.step_sizes(); sizes != nullptr) {
    out.rejected_steps = sizes->rejected;
    add({number(sizes->rejected), number(sizes->rejected_for_coupling), number(sizes->comparisons),
         number(sizes->shortened), number(sizes->changes), sizes->smallest_s, sizes->largest_s});
  }
}

/// A step that fails is made again, of half the size where that can be, up to so many times.
constexpr int kMostFailures = 3;

std::optional<StepReport> next_step(Stepper& stepper, const Case& of, bool halved) {
  if (of.options.sizes) return stepper.step_if_before(of.end_s);
  if (halved) return stepper.step_by(0.5 * of.options.step_s);
  return stepper.step();
}

/// Every 40 ms of simulated time.
void set_inputs(Stepper& stepper) {
  const double number = std::floor(stepper.time_s() / 0.04);
  std::vector<double> values(stepper.system().settable_inputs().size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = 5.0 * std::sin(number + static_cast<double>(i));
  }
  stepper.set_inputs(values);
}

Record steps_of(Stepper& stepper, const Case& of, int look_every) {
  Record out;
  int failures = 0;
  bool halved = false;
  for (int n = 0; n < of.steps; ++n) {
    if (of.sets_inputs) set_inputs(stepper);
    try {
      const std::optional<StepReport> report = next_step(stepper, of, halved);
      if (!report) break;
      halved = false;
      out.iterations.push_back(report->iterations);
    } catch (const StepError& error) {
      out.failed += std::string(error.what()) + "\n";
      halved = stepper.waves() != nullptr && !of.options.sizes;
      if (!halved || ++failures > kMostFailures) break;
    }
    if ((n + 1) % look_every == 0) out.digests.push_back(digest_of(stepper));
  }
  count(stepper, out);
  out.digests.push_back(digest_of(stepper));
  return out;
}

Record run_on_ranks(const Case& of, const Way& way, const StepperOptions& options) {
  Record out;
  const auto body = [&](const std::shared_ptr<Ranks>& ranks) {
    StepperOptions own = options;
    own.ranks = ranks;
    Stepper stepper(*of.system, own);
    if (ranks->rank() != 0) return RankedStepper(stepper).follow();
    out = steps_of(stepper, of, way.look_every);
  };
  run_thread_ranks(way.ranks, body, {.lateness = {}, .seed = way.jitter});
  return out;
}

/// A case's method.
void choose_method(Random& random, const Traits& traits, Case& out) {
  CouplingMethod& method = out.options.method;
  const double tolerance = random.one_of<double>({1e-4, 1e-6, 1e-8, 1e-10, 1e-12});
  switch (random.integer(0, 4)) {
    case 0:
    case 1:
      method = CouplingMethod::automatic(tolerance);
      if (random.chance(0.3)) method.waves().iterations = random.integer(1, 30);
      break;
    case 2:
      method.waves() = WaveCoupling::of_kind(WaveUpdate::interface);
      method.waves().tolerance = tolerance;
      break;
    default: {
      WaveCoupling& m = method.waves();
      const bool reflects = random.chance(0.5);
      m.kind = reflects ? WaveUpdate::peaceman_rachford : WaveUpdate::douglas_rachford;
      m.relaxation = reflects ? random.uniform(0.5, 1.0) : random.uniform(0.8, 1.3);
      m.iterations = random.one_of<int>({0, 1, 3, 10, 25, 25, 60, 60});
      m.tolerance = random.chance(0.1) ? 0.0 : tolerance;
      m.tolerance_per_part = random.chance(0.2);
      m.acceleration = random.chance(0.4) ? random.integer(1, 5) : 0;
      m.rescue_after = random.one_of<int>({0, 2, 5, 8, 12});
      if (random.chance(0.4)) {
        m.impedance_kind = random.one_of<ImpedanceKind>(
            {ImpedanceKind::matched, ImpedanceKind::leaf, ImpedanceKind::automatic});
      } else {
        m.impedance = {random.logarithmic(0.3, 300.0)};
      }
    }
  }
  WaveCoupling& m = method.waves();
  m.stages = random.integer(1, traits.most_stages);
  m.guard = random.chance(0.6);
  if (random.chance(0.5)) m.tank.initial_J = random.chance(0.5) ? 0.0 : 1.0;
  if (m.iterations > 0 && random.chance(0.2)) m.start = InnerStart::extrapolated;
  out.what = fmt::format("{}, K {}, tolerance {:g}{}, memory {}, rescue after {}, {} stages{}{}",
                         to_string(m.kind), m.iterations, m.tolerance,
                         m.tolerance_per_part ? " per part" : "", m.acceleration, m.rescue_after,
                         m.stages, m.guard ? ", guard" : "",
                         m.start == InnerStart::extrapolated ? ", extrapolated" : "");
}

/// For some, damped stages: numbers of their own, so that all else is as without them. Not for large networks, whose
/// damped Duffing parts leave their lanes for the general solver.
void choose_integrator(Case& out) {
  Random random(out.seed, "integrator of " + out.family);
  if (!random.chance(0.4) || out.system->parts().size() > 60) return;
  out.options.method.waves().integrator = StageKind::damped;
  out.what += ", damped";
}

/// One that couples without waves.
void choose_network_method(Random& random, Case& out) {
  CouplingMethod& method = out.options.method;
  switch (random.integer(0, 3)) {
    case 0:
      method = CouplingMethod::of_kind(SplittingKind::strang);
      break;
    case 1:
      method = CouplingMethod::of_kind(IterationKind::jacobi);
      break;
    case 2:
      method = CouplingMethod::of_kind(IterationKind::gauss_seidel);
      break;
    default:
      method = CouplingMethod::of_kind(IterationKind::lions_mercier);
  }
  if (auto* const dynamic = method.as<DynamicIteration>(); dynamic != nullptr) {
    dynamic->iterations = random.integer(1, 60);
    dynamic->tolerance = random.chance(0.5) ? 1e-8 : 0.0;
    dynamic->window_steps = random.integer(1, 5);
  }
  out.options.step_s = std::min(out.options.step_s, 5e-3);
  out.what =
      fmt::format("{}, h {:.2e} s, {} parts, {} islands", name_of(method), out.options.step_s,
                  out.system->parts().size(), out.system->island_count());
}

}  // namespace

Case make_case(const std::string& family, std::uint64_t seed, int most_steps) {
  Case out;
  out.family = family;
  out.seed = seed;
  Traits traits;
  out.system = std::make_shared<const System>(make_network(family, seed, &traits));
  Random random(seed, "method of " + family);
  out.options.executor = ExecutorKind::serial;
  out.options.step_s = random.logarithmic(1e-3, 3e-2);
  out.steps = std::min(random.integer(100, 400), most_steps);
  if (traits.is_linear && random.chance(0.4)) {
    choose_network_method(random, out);
    return out;
  }
  choose_method(random, traits, out);
  choose_integrator(out);
  const int kind = random.integer(0, 9);
  if (kind == 0) out.options.certify = Certify::none;
  if (kind == 1) {  // repeats the inner iteration of every step
    out.options.certify = Certify::full;
    out.steps = std::min(40, most_steps);
  }
  if (out.options.method.waves().iterations >= 8 && random.chance(0.25)) {
    out.options.sizes.emplace().tolerance = random.logarithmic(1e-7, 1e-3);
    out.options.sizes->smallest_s = 1e-4 * out.options.step_s;
    out.end_s = std::min(random.integer(20, 60), most_steps / 4) * out.options.step_s;
    out.what += fmt::format(", chosen steps to {:.1e}", out.options.sizes->tolerance);
  }
  out.what += fmt::format(", h {:.2e} s, {} parts, {} islands", out.options.step_s, traits.parts,
                          out.system->island_count());
  return out;
}

std::optional<Case> make_explicit_case(const std::string& family, std::uint64_t seed,
                                       int most_steps) {
  Case out;
  out.family = family;
  out.seed = seed;
  Traits traits;
  out.system = std::make_shared<const System>(make_network(family, seed, &traits));
  Random random(seed, "explicit steps of " + family);
  const bool is_series = traits.is_linear && random.chance(0.6);
  out.options.method =
      is_series ? Splitting{.kind = SplittingKind::taylor, .order = 2 * random.integer(2, 12)}
                : Splitting{.kind = SplittingKind::kick_drift, .order = 2 * random.integer(2, 3)};
  out.options.executor = ExecutorKind::serial;
  out.options.step_s = random.logarithmic(1e-3, 1e-1);
  out.steps = std::min(random.integer(100, 400), most_steps);
  if (random.chance(0.4)) {
    out.options.sizes.emplace().tolerance = random.logarithmic(1e-9, 1e-3);
    out.options.sizes->smallest_s = 1e-5 * out.options.step_s;
    out.end_s = 20.0 * out.options.step_s;
  }
  out.what = fmt::format("{} of order {}{}, h {:.2e} s, {} parts, {} islands",
                         name_of(out.options.method), order_of(out.options.method.splitting()),
                         out.options.sizes ? ", chosen steps" : "", out.options.step_s,
                         traits.parts, out.system->island_count());
  try {
    const Stepper refusing(*out.system, out.options);
  } catch (const ConfigError&) {
    return std::nullopt;
  }
  return out;
}

std::string to_string(const Way& way) {
  std::string out = fmt::format("{}, {} threads, grain {}", portwave::to_string(way.executor),
                                way.threads, portwave::to_string(way.grain));
  if (way.ranks > 1) out += fmt::format(", {} ranks", way.ranks);
  return out + (way.look_every > 1 ? fmt::format(", a look every {} steps", way.look_every) : "");
}

Record run(const Case& of, const Way& way) {
  StepperOptions options = of.options;
  options.executor = way.executor;
  options.threads = way.threads;
  options.grain = way.grain;
  if (way.ranks > 1) return run_on_ranks(of, way, options);
  Stepper stepper(*of.system, options);
  Record out = steps_of(stepper, of, way.look_every);
  out.threads = stepper.threads();
  return out;
}

std::string difference(const Record& expected, const Record& found) {
  if (expected.failed != found.failed) {
    return fmt::format("it failed otherwise: \"{}\" and \"{}\"", expected.failed, found.failed);
  }
  const auto first = [](const auto& a, const auto& b, const auto& same) {
    const auto [i, j] = std::mismatch(a.begin(), a.end(), b.begin(), b.end(), same);
    return i == a.end() && j == b.end() ? std::ptrdiff_t{-1} : i - a.begin();
  };
  if (const auto n = first(expected.iterations, found.iterations, std::equal_to{}); n >= 0) {
    return fmt::format("other iterations from step {} on", n);
  }
  if (const auto n = first(expected.digests, found.digests, std::equal_to{}); n >= 0) {
    return fmt::format("other states or waves from look {} on", n);
  }
  const auto same_bits = [](double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  };
  if (const auto n = first(expected.counts, found.counts, same_bits); n >= 0) {
    const auto at = static_cast<std::size_t>(n);
    const bool is_there = at < expected.counts.size() && at < found.counts.size();
    return fmt::format(
        "another count number {}{}", n,
        is_there ? fmt::format(": {:.17g} and {:.17g}", expected.counts[at], found.counts[at])
                 : "");
  }
  return {};
}

std::string ensemble_difference(const Case& of, int threads, bool* lanes) {
  constexpr int kReplicas = 5;
  Ensemble ensemble(*of.system, kReplicas, of.options,
                    {.threads = threads, .arena = {}, .chunk = 3});
  if (lanes != nullptr) *lanes = ensemble.in_lanes();
  std::vector<double> common;
  for (const Part& part : of.system->parts()) {
    common.insert(common.end(), part.initial_state.begin(), part.initial_state.end());
  }
  std::vector<std::vector<double>> starts(kReplicas, common);
  for (int i = 0; i < kReplicas; ++i) {
    for (double& value : starts[static_cast<std::size_t>(i)]) value *= 1.0 - 0.2 * i;
    ensemble.set_state(i, starts[static_cast<std::size_t>(i)]);
  }
  ensemble.reset();
  ensemble.step(of.steps);
  for (int i = 0; i < kReplicas; ++i) {
    const System* const one[] = {of.system.get()};
    const System own = gathered_system(one, starts[static_cast<std::size_t>(i)].data());
    Stepper alone(own, ensemble.options_of(i));
    std::string failed;
    try {
      alone.step(of.steps);
    } catch (const StepError& error) {
      failed = fmt::format("replica {}: {}", i, error.what());
    }
    const ReplicaStatus status = ensemble.status(i);
    if (status.error != failed) {
      return fmt::format("replica {}: \"{}\" and \"{}\"", i, failed, status.error);
    }
    if (!failed.empty()) continue;
    std::vector<double> state(common.size()), expected;
    ensemble.get_state(i, state);
    for (int part = 0; part < static_cast<int>(own.parts().size()); ++part) {
      const auto x = alone.state(part);
      expected.insert(expected.end(), x.begin(), x.end());
    }
    if (std::memcmp(state.data(), expected.data(), state.size() * sizeof(double)) != 0) {
      return fmt::format("replica {}: another state", i);
    }
    const IterationStatistics& counted = alone.iterations();
    if (status.iterations != counted.total || status.not_converged != counted.not_converged) {
      return fmt::format("replica {}: {} iterations, {} not converged, and {}, {}", i,
                         counted.total, counted.not_converged, status.iterations,
                         status.not_converged);
    }
  }
  return {};
}

}  // namespace portwave::repeatability
