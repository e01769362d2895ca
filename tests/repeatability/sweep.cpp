#include "repeatability/sweep.hpp"

#include <cmath>

#include <fmt/format.h>

#include "portwave/subsystems/base/error.hpp"
#include "repeatability/networks.hpp"

namespace portwave::repeatability {
namespace {

Way random_way(Random& random) {
  Way way;
  way.executor =
      random.one_of<ExecutorKind>({ExecutorKind::async, ExecutorKind::async, ExecutorKind::graph,
                                   ExecutorKind::automatic, ExecutorKind::serial});
  way.threads = random.one_of<int>({1, 2, 2, 4});
  way.grain = random.one_of<Grain>({Grain::automatic(), Grain::per_part(), Grain::of_parts(4),
                                    Grain::of_parts(8), Grain::of_parts(24)});
  return way;
}

Way random_rank_way(Random& random) {
  Way way;
  way.executor = ExecutorKind::automatic;
  way.ranks = random.integer(2, 4);
  way.threads = random.integer(1, 2);
  way.grain = random.one_of<Grain>({Grain::automatic(), Grain::of_parts(4), Grain::of_parts(8)});
  way.jitter = random.chance(0.2) ? 7U : 0U;
  way.look_every = random.one_of<int>({1, 40, 1000});
  return way;
}

}  // namespace

void Coverage::add(const Coverage& other) {
  cases += other.cases;
  refused += other.refused;
  runs += other.runs;
  steps += other.steps;
  with_rescues += other.with_rescues;
  with_rejected_trials += other.with_rejected_trials;
  with_guard += other.with_guard;
  with_rejected_steps += other.with_rejected_steps;
  with_failures += other.with_failures;
  damped += other.damped;
  on_threads += other.on_threads;
  on_ranks += other.on_ranks;
  in_lanes += other.in_lanes;
}

std::string Coverage::text() const {
  return fmt::format(
      "{} cases in {} runs, {} steps ({} more refused); of the cases {} with rescues, {} with "
      "rejected trials, {} in which the guard acts, {} with rejected steps, {} with failures, {} "
      "damped; {} "
      "runs on threads, {} on ranks, {} ensembles in lanes",
      cases, runs, steps, refused, with_rescues, with_rejected_trials, with_guard,
      with_rejected_steps, with_failures, damped, on_threads, on_ranks, in_lanes);
}

std::string try_case(const std::string& family, std::uint64_t seed, const Effort& effort,
                     Coverage& coverage) {
  Case own;
  Record expected;
  try {
    own = make_case(family, seed, effort.most_steps);
    expected = run(own, {});
  } catch (const ConfigError&) {  // no such method for such a network
    ++coverage.refused;
    return {};
  }
  Random random(seed, "ways of " + family);
  ++coverage.cases;
  coverage.with_rescues += expected.rescues > 0 ? 1 : 0;
  coverage.with_rejected_trials += expected.rejected_trials > 0 ? 1 : 0;
  coverage.with_guard += expected.guard_uses > 0 ? 1 : 0;
  coverage.with_rejected_steps += expected.rejected_steps > 0 ? 1 : 0;
  coverage.with_failures += expected.failed.empty() ? 0 : 1;
  coverage.damped += expected.numerical_dissipation_J > 0.0 ? 1 : 0;
  if (effort.is_told) {
    fmt::print("{} {}: {}\n  {} steps, {} rescues{}{}\n", family, seed, own.what,
               expected.iterations.size(), expected.rescues, expected.failed.empty() ? "" : "; ",
               expected.failed);
  }
  std::string told;
  const auto tell = [&](const std::string& way, const std::string& what) {
    if (what.empty()) return;
    told += fmt::format("{} {}: {}\n  {}\n  {}\n", family, seed, what, way, own.what);
  };
  const auto try_way = [&](const Way& way) {
    Way serial;
    serial.look_every = way.look_every;
    const Record& looked_at = way.look_every == 1 ? expected : run(own, serial);
    const Record found = run(own, way);
    ++coverage.runs;
    coverage.on_threads += found.threads > 1 ? 1 : 0;
    coverage.steps += static_cast<std::int64_t>(found.iterations.size());
    tell(to_string(way), difference(looked_at, found));
  };
  for (int i = 0; i < effort.ways; ++i) try_way(random_way(random));
  for (int i = 0; own.options.method.couples_by_waves() && i < effort.rank_ways; ++i) {
    ++coverage.on_ranks;
    try_way(random_rank_way(random));
  }
  if (effort.ensembles && !own.options.sizes && own.options.certify != Certify::full) {
    bool in_lanes = false;
    tell("as an ensemble", ensemble_difference(own, random.integer(1, 2), &in_lanes));
    coverage.in_lanes += in_lanes ? 1 : 0;
  }
  return told;
}

bool notices_one_bit(const std::string& family, std::uint64_t seed) {
  Case own = make_case(family, seed, 40);
  own.options.method = WaveCoupling{};
  own.options.sizes.reset();
  Case other = own;
  other.options.step_s = std::nextafter(own.options.step_s, 1.0);
  return !difference(run(own, {}), run(other, {})).empty();
}

}  // namespace portwave::repeatability
