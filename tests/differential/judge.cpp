#include "differential/judge.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <fmt/format.h>

namespace portwave::differential {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
/// Below this, numbers are near the end of their range, and what is relative means nothing.
constexpr double kTiny = 1e-280;

struct Excess {
  double ratio = 0.0;
  std::size_t step = 0;
  Eigen::Index entry = -1;

  void take(double error, double allowed, std::size_t n, Eigen::Index k) {
    const double r = error / allowed;
    if (r > ratio || !(error == error))
      *this = {error == error ? r : std::numeric_limits<double>::infinity(), n, k};
  }
};

Excess compare(const std::vector<LongVector>& a, const std::vector<LongVector>& b,
               const Vector& allowed, std::size_t from) {
  Excess excess;
  for (std::size_t n = from; n < std::min(a.size(), b.size()); ++n) {
    for (Eigen::Index k = 0; k < allowed.size(); ++k) {
      excess.take(static_cast<double>(std::abs(a[n][k] - b[n][k])), allowed[k], n, k);
    }
  }
  return excess;
}

class Judge {
 public:
  Judge(const Network& network, const Expectation& expectation, const EngineRun& run,
        const Tolerances& tolerances)
      : network_(network), expectation_(expectation), run_(run), tolerances_(tolerances) {}

  std::vector<Finding> findings;

  void look_at_trajectory() {
    const auto against = [&](Defect defect, const char* what, const std::vector<LongVector>& is,
                             const std::vector<LongVector>& should, const Vector& allowed,
                             const Vector& scale, std::size_t from) {
      const Excess excess = compare(is, should, allowed, from);
      if (!(excess.ratio > 1.0)) return;
      add(defect,
          fmt::format("{} {} in row {}: {:.10g}, should be {:.10g}; error {:.1e} of its scale, "
                      "{:.1e} of what is allowed",
                      what, excess.entry, excess.step,
                      static_cast<double>(is[excess.step][excess.entry]),
                      static_cast<double>(should[excess.step][excess.entry]),
                      excess.ratio * allowed[excess.entry] / scale[excess.entry], excess.ratio));
    };
    const Course& course = expectation_.course;
    against(Defect::state, "state", run_.course.x, course.x, expectation_.state_tolerance,
            expectation_.state_scale, 0);
    against(Defect::port, "effort", run_.course.e, course.e, expectation_.effort_tolerance,
            expectation_.effort_scale, 1);
    against(Defect::port, "flow", run_.course.f, course.f, expectation_.flow_tolerance,
            expectation_.flow_scale, 1);
  }

  /// Every part: change = supplied + through its ports − dissipated. Every island: H ≤ H₀ + supply.
  void look_at_energies(const Account& account) {
    const std::size_t islands = expectation_.island_energy.size();
    Excess balance, created;
    double worst_balance = 0.0, worst_created = 0.0;
    std::vector<long double> surplus(islands, 0.0L);  // H − H₀ − supply
    std::vector<double> terms(islands, 0.0), share(islands, 0.0);
    for (std::size_t n = 0; n < account.steps.size(); ++n) {
      std::vector<double> size(islands, 0.0);
      for (std::size_t i = 0; i < network_.parts.size(); ++i) {
        const PartEnergies& p = account.steps[n][i];
        size[island(i)] +=
            static_cast<double>(std::abs(p.stored) + std::abs(p.change)) + p.exchanged + p.waves;
      }
      for (std::size_t i = 0; i < network_.parts.size(); ++i) {
        const PartEnergies& p = account.steps[n][i];
        const auto k = island(i);
        const auto defect =
            static_cast<double>(p.change - p.supplied - p.through_ports + p.dissipated);
        const double allowed = tolerances_.energy_terms * kEpsilon * (p.terms + p.of_forces) +
                               tolerances_.balance_share * size[k] + kTiny;
        const double before = balance.ratio;
        balance.take(std::abs(defect), allowed, n, static_cast<Eigen::Index>(i));
        if (balance.ratio > before) worst_balance = defect;
        surplus[k] += p.change - p.supplied;
        terms[k] += p.terms + p.of_forces;
      }
      for (std::size_t k = 0; k < islands; ++k) {
        share[k] = std::max(share[k], size[k]);
        const double allowed = tolerances_.energy_terms * kEpsilon * terms[k] +
                               tolerances_.energy_share * share[k] + kTiny;
        const double before = created.ratio;
        created.take(static_cast<double>(std::max(surplus[k], 0.0L)), allowed, n,
                     static_cast<Eigen::Index>(k));
        if (created.ratio > before) worst_created = static_cast<double>(surplus[k]);
      }
    }
    if (balance.ratio > 1.0) {
      add(Defect::balance,
          fmt::format(
              "part {} in step {}: the energies are off by {:.2e} J, {:.1e} of what is allowed",
              balance.entry, balance.step, worst_balance, balance.ratio));
    }
    if (created.ratio > 1.0 && !network_.active) {
      add(Defect::created,
          fmt::format(
              "island {} in step {}: H exceeds H0 + supply by {:.2e} J, {:.1e} of what is allowed",
              created.entry, created.step, worst_created, created.ratio));
    }
  }

  void look_at_ledger(const Account& account) {
    long double change = 0.0L, initial = 0.0L, size = 0.0L;
    double initial_terms = 0.0, terms = 0.0;
    for (std::size_t i = 0; i < account.initial.size(); ++i) {
      initial += account.initial[i];
      size += std::abs(account.initial[i]);
      initial_terms += account.initial_terms[i];
    }
    Excess stored, supplied, dissipated;
    stored.take(std::abs(run_.stored[0] - static_cast<double>(initial)),
                tolerances_.energy_terms * kEpsilon * initial_terms + kTiny, 0, 0);
    for (std::size_t n = 0; n < account.steps.size(); ++n) {
      long double now = 0.0L, in = 0.0L, out = account.end_dissipated[n];
      double moved = 0.0, own = 0.0;
      for (const PartEnergies& p : account.steps[n]) {
        change += p.change;
        now += std::abs(p.stored);
        in += p.supplied;
        out += p.dissipated;
        moved += p.exchanged + p.waves;
        own += p.terms;
      }
      own += static_cast<double>(std::abs(account.end_dissipated[n]));
      terms += own;
      size = std::max(size, now);
      const double share = tolerances_.energy_share * (static_cast<double>(now) + moved);
      // Stored energy is compared by its change since the start.
      stored.take(std::abs(run_.stored[n + 1] - run_.stored[0] - static_cast<double>(change)),
                  tolerances_.energy_terms * kEpsilon * (terms + static_cast<double>(size)) +
                      4.0 * kEpsilon * std::abs(run_.stored[0]) + kTiny,
                  n + 1, 0);
      const double allowed = tolerances_.energy_terms * kEpsilon * own + share + kTiny;
      supplied.take(std::abs(run_.supplied[n] - static_cast<double>(in)), allowed, n, 0);
      // A square of efforts that may themselves be small differences.
      dissipated.take(std::abs(run_.dissipated[n] - static_cast<double>(out)), 8.0 * allowed, n, 0);
    }
    for (const auto& [excess, what] :
         {std::pair{stored, "stored"}, {supplied, "supplied"}, {dissipated, "dissipated"}}) {
      if (!(excess.ratio > 1.0)) continue;
      add(Defect::ledger, fmt::format("{} energy of row {} is off by {:.1e} of what is allowed",
                                      what, excess.step, excess.ratio));
    }
  }

  /// Active parts that visibly created energy must be noticed; passive networks must not be
  /// accused.
  void look_at_verdict(const Account& account) {
    if (!network_.active) {
      if (run_.status == "violated") add(Defect::verdict, "passive, but violated");
      if (run_.status == "conditional") add(Defect::conditional, "passive, but conditional");
      return;
    }
    const double worst = created_share(account);
    if (worst > tolerances_.creation && run_.status != "violated") {
      add(Defect::control, fmt::format("a part created {:.1e} of what it stores and moves, but {}",
                                       worst, run_.status));
    }
  }

  void look_at_guard(const EngineRun& unguarded) {
    const Excess excess =
        compare(run_.course.x, unguarded.course.x, expectation_.state_tolerance, 0);
    if (!(excess.ratio > 1.0)) return;
    add(Defect::guard, fmt::format("state {} in row {} differs by {:.1e} of its scale, {:.1e} of "
                                   "what is allowed; alpha {}",
                                   excess.entry, excess.step,
                                   excess.ratio * expectation_.state_tolerance[excess.entry] /
                                       expectation_.state_scale[excess.entry],
                                   excess.ratio, run_.min_alpha));
  }

  void add(Defect defect, std::string text) { findings.push_back({defect, std::move(text)}); }

 private:
  std::size_t island(std::size_t part) const {
    return static_cast<std::size_t>(expectation_.island[part]);
  }

  const Network& network_;
  const Expectation& expectation_;
  const EngineRun& run_;
  const Tolerances& tolerances_;
};

}  // namespace

const char* to_string(Defect defect) {
  static const char* const names[kDefects] = {"refused", "failed",      "missed",  "state",
                                              "port",    "balance",     "created", "ledger",
                                              "verdict", "conditional", "guard",   "control"};
  return names[static_cast<int>(defect)];
}

std::vector<Finding> judge(const Network& network, const Expectation& expectation,
                           const EngineRun& run, const EngineRun* unguarded,
                           const Tolerances& tolerances) {
  if (!run.refused.empty()) return {{Defect::refused, run.refused}};
  Judge judge(network, expectation, run, tolerances);
  if (!run.failed.empty()) judge.add(Defect::failed, run.failed);
  const Account account = account_of(network, run.course);
  judge.look_at_verdict(account);
  if (network.active) return judge.findings;
  if (run.not_converged > 0) {
    judge.add(Defect::missed,
              fmt::format("{} of {} steps missed the tolerance", run.not_converged, network.steps));
  }
  judge.look_at_trajectory();
  judge.look_at_energies(account);
  judge.look_at_ledger(account);
  if (unguarded && unguarded->refused.empty() && run.not_converged == 0 &&
      unguarded->not_converged == 0) {
    judge.look_at_guard(*unguarded);
  }
  return judge.findings;
}

double created_share(const Account& account) {
  double worst = 0.0;
  for (const auto& step : account.steps) {
    for (const PartEnergies& p : step) {
      const double size = static_cast<double>(std::abs(p.stored) + std::abs(p.stored - p.change)) +
                          p.exchanged + p.waves;
      if (!(size > kTiny)) continue;
      const auto excess = static_cast<double>(p.change - p.supplied - p.through_ports);
      const double rounding = kEpsilon * (1e3 * p.terms + 64.0 * p.of_forces);
      worst = std::max(worst, (excess - rounding) / size);
    }
  }
  return worst;
}

double state_error(const Expectation& expectation, const Course& course, const Course& other) {
  return compare(course.x, other.x, expectation.state_tolerance, 0).ratio;
}

Result run_case(const Network& network, const Tolerances& tolerances) {
  Result result;
  const Expectation expectation = expect(network, tolerances);
  if (!expectation.well_posed) {
    result.skipped = true;
    result.why_skipped = expectation.why_not;
    return result;
  }
  result.run = run_engine(network);
  if (network.active || !result.run.refused.empty()) {
    result.findings = judge(network, expectation, result.run, nullptr, tolerances);
    result.visibly_active =
        network.active && result.run.refused.empty() &&
        created_share(account_of(network, result.run.course)) > tolerances.creation;
  } else {
    const EngineRun unguarded = run_engine(network, {.guard = false});
    result.findings = judge(network, expectation, result.run, &unguarded, tolerances);
  }
  return result;
}

}  // namespace portwave::differential
