#include "portwave/runtime/report/live.hpp"

#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "output/summary/network_json.hpp"
#include "portwave/runtime/output/summary.hpp"
#include "report/advice.hpp"
#include "report/network_drawing.hpp"
#include "report/run_curves.hpp"
#include "report/run_folder.hpp"
#include "report/run_page.hpp"

namespace portwave {
namespace {

constexpr double kNotKnownYet = std::numeric_limits<double>::quiet_NaN();

const std::vector<std::string>& ledger_columns() {
  static const std::vector<std::string> kNames = {"step",
                                                  "time_s",
                                                  "stored_J",
                                                  "supplied_J",
                                                  "dissipated_J",
                                                  "mismatch_J",
                                                  "impact_J",
                                                  "tank_J",
                                                  "max_passivity_residual_J",
                                                  "iterations",
                                                  "guard_alpha",
                                                  "guard_withheld_J",
                                                  "guard_tolerated_J",
                                                  "residual",
                                                  "step_s",
                                                  "slack_s"};
  return kNames;
}

/// With what damped steps took.
double lost_J(const EnergyTotals& totals) {
  return totals.dissipated_J + totals.numerical_dissipation_J;
}

std::vector<std::string> quantity_columns(const std::vector<Quantity>& quantities) {
  std::vector<std::string> names = {"time_s"};
  for (const Quantity& one : quantities) names.push_back(one.label);
  return names;
}

}  // namespace

LiveFacts live_facts(const Stepper& stepper, const StepReport& report) {
  const Certificate& certificate = stepper.certificate();
  LiveFacts out = {.step = stepper.step_index(),
                   .time_s = stepper.time_s(),
                   .step_s = report.step_s,
                   .has_ledger = stepper.keeps_ledger(),
                   .stored_J = report.energy.stored_J,
                   .tank_J = report.energy.tank_J,
                   .totals = stepper.energy(),
                   .passivity_residual_J = report.energy.max_passivity_residual_J,
                   .iterations = stepper.iterations().total,
                   .windows = stepper.iterations().windows,
                   .residual = report.residual,
                   .alpha = report.energy.alpha,
                   .missed = certificate.missed.steps,
                   .status = certificate.status};
  if (const WaveView* const waves = stepper.waves()) {
    if (waves->guard() != nullptr) out.guard = *waves->guard();
  }
  if (stepper.deadline()) out.slack_s = report.slack_s;
  int worst = certificate.missed.steps > 0 ? certificate.missed.part : -1;
  if (worst < 0) worst = certificate.worst_passivity_part;
  if (worst >= 0) out.worst_part = stepper.name_of_part(worst);
  return out;
}

struct LiveReport::Impl {
  Impl(const Stepper& stepper, std::string name, double until_s, std::vector<Quantity> given)
      : title(std::move(name)),
        start_s(stepper.start_s()),
        end_s(until_s),
        quantities(std::move(given)),
        network(nlohmann::json::parse(network_json(stepper.system(), quantities))),
        curves(quantity_columns(quantities)),
        ledger(ledger_columns()) {
    if (quantities.size() > report::TrajectoryCurves::kMostQuantities) {
      quantities.resize(report::TrajectoryCurves::kMostQuantities);
    }
    for (const Quantity& one : quantities) units[one.label] = one.unit;
    row.resize(1 + quantities.size());
  }

  report::Page page_now() const;

  std::string title;
  double start_s, end_s;
  std::vector<Quantity> quantities;
  nlohmann::json network;
  std::map<std::string, std::string> units;
  mutable std::mutex mutex;  // of what follows
  report::TrajectoryCurves curves;
  report::LedgerCurves ledger;
  std::vector<double> row;
  LiveFacts last;
  double wall_s = 0.0;
  std::optional<nlohmann::json> summary;
  std::atomic<std::int64_t> version = 0;
  std::atomic<bool> ended = false;
};

LiveReport::LiveReport(const Stepper& stepper, std::string title, double end_s,
                       std::vector<Quantity> quantities)
    : impl_(std::make_unique<Impl>(stepper, std::move(title), end_s, std::move(quantities))) {}

LiveReport::~LiveReport() = default;

void LiveReport::sample(const Stepper& stepper, const LiveFacts& facts, double wall_s) {
  const std::unique_lock lock(impl_->mutex, std::try_to_lock);
  if (!lock) return;
  impl_->row[0] = facts.time_s;
  for (std::size_t i = 0; i < impl_->quantities.size(); ++i) {
    impl_->row[1 + i] = observe(stepper, impl_->quantities[i]);
  }
  impl_->curves.add(impl_->row);
  // Energy added since the last sample; the first sample stands for everything before it.
  const LiveFacts& before = impl_->last;
  const bool knows = facts.has_ledger;
  const auto energy = [knows](double value) { return knows ? value : kNotKnownYet; };
  const auto withheld = [](const LiveFacts& of) { return of.guard ? of.guard->withheld_J : 0.0; };
  if (impl_->ledger.rows() == 0) {
    const double start[] = {0.0,
                            impl_->start_s,
                            energy(facts.totals.initial_J),
                            0.0,
                            0.0,
                            0.0,
                            0.0,
                            energy(facts.totals.initial_tank_J),
                            0.0,
                            0.0,
                            1.0,
                            0.0,
                            0.0,
                            0.0,
                            0.0,
                            kNotKnownYet};
    impl_->ledger.add(start);
  }
  const double numbers[] = {static_cast<double>(facts.step),
                            facts.time_s,
                            energy(facts.stored_J),
                            energy(facts.totals.supplied_J - before.totals.supplied_J),
                            energy(lost_J(facts.totals) - lost_J(before.totals)),
                            energy(facts.totals.mismatch_J - before.totals.mismatch_J),
                            energy(facts.totals.impact_J - before.totals.impact_J),
                            energy(facts.tank_J),
                            energy(facts.passivity_residual_J),
                            static_cast<double>(facts.iterations - before.iterations),
                            facts.alpha,
                            withheld(facts) - withheld(before),
                            facts.totals.tolerated_J - before.totals.tolerated_J,
                            facts.residual,
                            facts.step_s,
                            facts.slack_s.value_or(kNotKnownYet)};
  impl_->ledger.add(numbers);
  impl_->last = facts;
  impl_->wall_s = wall_s;
  ++impl_->version;
}

void LiveReport::end(const RunSummary& summary) {
  const std::scoped_lock lock(impl_->mutex);
  impl_->summary = nlohmann::json::parse(summary_json(summary).dump());
  impl_->ended = true;
  ++impl_->version;
}

report::Page LiveReport::Impl::page_now() const {
  std::unique_lock lock(mutex);
  const report::TrajectoryCurves own_curves = curves;
  const report::LedgerCurves own_ledger = ledger;
  const LiveFacts facts = last;
  const double wall = wall_s;
  const std::optional<nlohmann::json> own_summary = summary;
  lock.unlock();

  report::Page page = {.title = title, .ended = own_summary.has_value()};
  if (own_summary) {
    page.subtitle = "The run has ended; this page is no longer updated.";
    page.verdict = report::verdict_of(*own_summary);
    page.facts = report::facts_of({{}, *own_summary, network, units});
    page.advice = report::advice_for(*own_summary);
  } else {
    page.subtitle = "The run is in progress. The charts show samples; the results have all rows.";
    const double done_s = facts.time_s - start_s;
    const double rate = wall > 0.0 ? static_cast<double>(facts.step) / wall : 0.0;
    page.facts = {{"Simulated time", fmt::format("{:.6g} of {:g} s", facts.time_s, end_s)},
                  {"Steps", fmt::format("{}", facts.step)},
                  {"Steps per second", fmt::format("{:.3g}", rate)},
                  {"Times real time", fmt::format("{:.3g}", wall > 0.0 ? done_s / wall : 0.0)}};
    if (facts.has_ledger) {
      page.facts.emplace_back("Stored energy", fmt::format("{:.6g} J", facts.stored_J));
      page.facts.emplace_back("Certificate so far", std::string(to_string(facts.status)));
    }
    if (facts.guard) {
      page.facts.emplace_back("Guard", facts.guard->steps == 0
                                           ? "never had to act"
                                           : fmt::format("acted in {} steps", facts.guard->steps));
    }
    if (!facts.worst_part.empty()) page.facts.emplace_back("Worst part", facts.worst_part);
  }
  page.sections.push_back({.title = "Trajectories", .charts = own_curves.charts(units)});
  if (own_ledger.rows() > 0) {
    page.sections.push_back(own_ledger.energy());
    page.sections.push_back(own_ledger.coupling());
    page.sections.push_back(own_ledger.steps());
  }
  if (auto drawn = report::draw_network(network, {})) {
    drawn->note.clear();
    page.sections.push_back({.title = "Network", .network = std::move(drawn)});
  }
  return page;
}

std::string LiveReport::page(const std::string& events) const {
  report::Page page = impl_->page_now();
  if (!page.ended) page.events = events;
  return report::page_html(page);
}

std::string LiveReport::news() const { return report::page_json(impl_->page_now()); }

std::int64_t LiveReport::version() const { return impl_->version; }

bool LiveReport::has_ended() const { return impl_->ended; }

}  // namespace portwave
