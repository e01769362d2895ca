#include "rank_study/rank_scaling.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"
#include "rank_study/rank_entrants.hpp"
#include "rank_study/rank_predictor.hpp"
#include "step/stepper_options.hpp"
#include "study/scaling_subject.hpp"

namespace portwave {
namespace {

constexpr int kMostRanks = 10'000;

/// A network on one thread of rank 0.
std::unique_ptr<Subject> on_one_thread(const Scenario& scenario, const RankScalingOptions& options,
                                       Certify certify) {
  StepperOptions settings = Subject::settings(scenario, ExecutorKind::serial, options.grain, 1);
  settings.certify = certify;
  return std::make_unique<Subject>(scenario, settings);
}

MeasuredStep measured_step(const Subject& subject) {
  MeasuredStep step;
  step.times = subject.phases();
  step.iterations = subject.stepper().iterations().per_step();
  step.take_method_of(subject.stepper());
  return step;
}

/// A network of the study, on one thread of rank 0: as given, and once more with or without the ledger.
struct RankNetwork {
  RankNetwork(const Scenario& given, const RankScalingOptions& options, bool is_leading)
      : scenario(&given) {
    if (!is_leading) return;
    own = on_one_thread(given, options, given.options.certify);
    keeps_ledger = own->stepper().keeps_ledger();
    other = on_one_thread(given, options, keeps_ledger ? Certify::none : Certify::energy);
    // A guard keeps the ledger whatever is certified.
    if (other->stepper().keeps_ledger() == keeps_ledger) other.reset();
  }

  MeasuredNetwork measured() const {
    MeasuredNetwork network;
    network.scenario = scenario;
    network.keeps_ledger = keeps_ledger;
    (keeps_ledger ? network.with_ledger : network.without) = measured_step(*own);
    if (other) (keeps_ledger ? network.without : network.with_ledger) = measured_step(*other);
    network.memory_bytes = static_cast<double>(own->stepper().overhead_bytes());
    return network;
  }

  const Scenario* scenario;
  std::unique_ptr<Subject> own, other;
  bool keeps_ledger = false;
};

void check(const RankScalingOptions& options, const std::vector<int>& ranks) {
  Issues issues;
  if (options.repetitions < 1) issues.push_back({"/repetitions", "must be >= 1"});
  if (options.steps < 0) issues.push_back({"/steps", "must be >= 0"});
  if (ranks.empty()) issues.push_back({"/ranks", "needs at least one number"});
  if (options.threads.empty()) issues.push_back({"/threads", "needs at least one number"});
  for (const int count : ranks) {
    if (count >= 1 && count <= kMostRanks) continue;
    issues.push_back({"/ranks", fmt::format("must be in 1 to {}, got {}", kMostRanks, count)});
  }
  for (const int count : options.threads) {
    if (count >= 1 && count <= kMaxThreads) continue;
    issues.push_back({"/threads", fmt::format("must be in 1 to {}, got {}", kMaxThreads, count)});
  }
  if (options.network) {
    const auto& [latency_s, bandwidth] = *options.network;
    if (!(latency_s >= 0.0) || !std::isfinite(latency_s)) {
      issues.push_back({"/latency_s", "must be finite and >= 0"});
    }
    if (!(bandwidth > 0.0)) issues.push_back({"/bandwidth_B_per_s", "must be > 0"});
  }
  throw_if_any(std::move(issues));
}

/// A requested row: a network with a number of ranks and threads, and the entrant that measures it. One
/// thread of one rank is measured by the network itself.
struct Asked {
  std::size_t network;
  int ranks, threads;
  std::optional<std::size_t> entrant = {};

  bool is_plain() const { return ranks == 1 && threads == 1; }
};

/// All measured configurations, and the loop over their measurements.
class Measurement {
 public:
  Measurement(std::vector<const Scenario*> scenarios, std::vector<Asked> asked,
              const RankScalingOptions& options, const PhaseCallback& listener)
      : options_(options), listener_(listener), asked_(std::move(asked)), entrants_(options) {
    tell(listener, {"preparing the configurations"});
    entrants_.together([&] {
      for (const Scenario* scenario : scenarios) {
        refuse_without_waves(scenario->options.method);
        networks_.emplace_back(*scenario, options, entrants_.is_leading());
      }
    });
    for (Asked& one : asked_) {
      if (one.ranks > entrants_.started() || one.is_plain()) continue;
      one.entrant = entrants_.add(*scenarios[one.network], one.ranks, one.threads);
    }
  }

  RankEntrants& entrants() { return entrants_; }
  /// The subject that measured a row; null if it is predicted.
  const Subject* subject_of(const Asked& one) const {
    if (one.is_plain()) return networks_[one.network].own.get();
    return one.entrant ? &entrants_.subject(*one.entrant) : nullptr;
  }
  const std::vector<Asked>& asked() const { return asked_; }
  const std::vector<RankNetwork>& networks() const { return networks_; }

  /// On rank 0. Returns the steps of one measurement.
  std::int64_t run() {
    tell(listener_, {"warming up"});
    std::vector<Subject*> alone;
    for (const RankNetwork& network : networks_) {
      alone.push_back(network.own.get());
      if (network.other) alone.push_back(network.other.get());
    }
    double slowest_s = 1e-9;
    for (const RankNetwork& network : networks_) {
      slowest_s = std::max(slowest_s, network.own->warm(kFirstSteps));
    }
    const std::size_t count = alone.size() + entrants_.size();
    const auto with = [&](std::size_t i, const std::function<void(Subject&)>& act) {
      if (i < alone.size()) {
        act(*alone[i]);
      } else {
        entrants_.with(i - alone.size(), act);
      }
    };
    for (std::size_t i = 0; i < count; ++i) {
      with(i, [](Subject& subject) {
        if (subject.stepper().step_index() == 0) subject.warm(kFirstSteps);
      });
    }
    const auto [steps, warming] = measured_steps(options_.steps, slowest_s);
    for (int r = 0; r < options_.repetitions; ++r) {
      // Each repetition begins with another one, so that none always has the same place.
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t done = at(r) * count + i;
        tell(listener_, {"taking measurement", static_cast<std::int64_t>(done) + 1,
                         static_cast<std::int64_t>(count) * options_.repetitions});
        with((i + at(r)) % count, [warming = warming, steps = steps](Subject& subject) {
          subject.warm(warming);
          subject.measure(steps);
        });
      }
    }
    check_results();
    return steps;
  }

 private:
  void check_results() {
    for (const Asked& one : asked_) {
      if (!one.entrant) continue;
      const Stepper& serial = networks_[one.network].own->stepper();
      entrants_.with(*one.entrant, [&](Subject& subject) {
        if (equal_states(serial, subject.stepper())) return;
        throw std::runtime_error(fmt::format(
            "the results of {} ranks of {} threads ({}) differ from those of one thread: this is "
            "a defect of portwave",
            one.ranks, one.threads, subject.stepper().execution()));
      });
    }
  }

  const RankScalingOptions& options_;
  const PhaseCallback& listener_;
  std::vector<Asked> asked_;
  std::vector<RankNetwork> networks_;
  RankEntrants entrants_;
};

/// Takes the measurements. Returns true on rank 0, which goes on alone; the others are done.
bool has_led(Measurement& measurement, RankScalingStudy& study) {
  RankEntrants& entrants = measurement.entrants();
  if (!entrants.is_leading()) {
    entrants.follow();
    return false;
  }
  entrants.lead();
  study.steps = measurement.run();
  return true;
}

RankScalingStudy begin_study(const RankScalingOptions& options, const std::string& name,
                             bool weak) {
  RankScalingStudy study;
  study.weak = weak;
  study.name = name;
  study.cores = cores_of_process(options.cores);
  study.started = options.world == nullptr ? 1 : options.world->size();
  study.repetitions = options.repetitions;
  study.network_source = "assumed";
  if (options.network) {
    study.network = *options.network;
    study.network_source = "given";
  } else if (study.started > 1) {
    study.messages = measure_messages(*options.world);
    if (!study.messages.empty()) study.network = fitted(study.messages);
    study.network_source = "measured";
  }
  return study;
}

RankScalingRow row_of(const Asked& asked, Measurement& measurement,
                      const RankPredictor& predictor) {
  RankScalingRow row = predictor.strong(asked.ranks, asked.threads, predictor.own());
  const Subject* const measured = measurement.subject_of(asked);
  if (measured == nullptr) return row;
  const Subject& subject = *measured;
  row.predicted = false;
  row.oversubscribed = measurement.entrants().is_oversubscribed(asked.ranks, asked.threads);
  row.step_s = subject.step_s();
  row.spread = subject.spread();
  row.fastest_s = subject.fastest_s();
  row.slowest_s = subject.slowest_s();
  row.tasks = subject.stepper().tasks();
  row.execution = subject.stepper().execution();
  return row;
}

/// 1, 2, 4, … and the most.
std::vector<int> ranks_of_curve() {
  std::vector<int> ranks;
  for (int count = 1; count < kMostRanks; count *= 2) ranks.push_back(count);
  ranks.push_back(kMostRanks);
  return ranks;
}

struct NamedAgreement {
  std::string name;
  Agreement agreement;
};

std::vector<NamedAgreement> agreements_of(const RankPredictor& predictor) {
  std::vector<NamedAgreement> all;
  if (predictor.can_do_without_ledger()) {
    all.push_back({"fixed budget, no ledger", {}});
    all.push_back({"tolerance, no ledger", {.is_judged = true}});
  }
  all.push_back({"fixed budget, ledger", {.has_ledger = true}});
  all.push_back({"tolerance, ledger", {.has_ledger = true, .is_judged = true}});
  return all;
}

void compare(std::vector<RankScalingRow>& curve, bool weak) {
  for (RankScalingRow& row : curve) {
    const double cores = row.ranks * row.threads, first = curve.front().step_s;
    row.efficiency = weak ? first / row.step_s : first / row.step_s / cores;
    row.speed_up = cores * row.efficiency;
  }
}

/// Rows by `predict(ranks, agreement)`, for the study as it is and for other protocols.
template <class Predict>
void add_curves(const RankPredictor& predictor, std::int64_t most_ranks, const Predict& predict,
                RankScalingStudy& study) {
  const auto curve_of = [&](const Agreement& agreement) {
    std::vector<RankScalingRow> curve;
    for (const int ranks : ranks_of_curve()) {
      if (ranks <= most_ranks) curve.push_back(predict(ranks, agreement));
    }
    compare(curve, study.weak);
    return curve;
  };
  study.curve = curve_of(predictor.own());
  for (NamedAgreement& named : agreements_of(predictor)) {
    study.protocols.push_back({std::move(named.name), curve_of(named.agreement)});
  }
}

void note_measured(const RankNetwork& network, const RankPredictor& predictor,
                   RankScalingStudy& study) {
  study.serial_step_s = network.own->step_s();
  study.iterations = network.own->stepper().iterations().per_step();
  study.begin_s = network.own->phases().begin_s;
  study.ledger_s = predictor.ledger_s();
}

}  // namespace

RankScalingStudy study_rank_scaling(const Scenario& scenario, const RankScalingOptions& options,
                                    const PhaseCallback& listener) {
  std::set<int> ranks(options.ranks.begin(), options.ranks.end());
  check(options, {ranks.begin(), ranks.end()});
  std::vector<Asked> asked;
  for (const int count : ranks) {
    for (const int threads : std::set<int>(options.threads.begin(), options.threads.end())) {
      asked.push_back({0, count, threads});
    }
  }
  RankScalingStudy study = begin_study(options, scenario.name, /*weak=*/false);
  Measurement measurement({&scenario}, std::move(asked), options, listener);
  if (!has_led(measurement, study)) return study;
  tell(listener, {"predicting other numbers of ranks"});
  const RankNetwork& network = measurement.networks().front();
  const RankPredictor predictor(network.measured(), study.network);
  note_measured(network, predictor, study);
  for (const Asked& one : measurement.asked()) {
    RankScalingRow& row = study.rows.emplace_back(row_of(one, measurement, predictor));
    const Subject* const subject = measurement.subject_of(one);
    row.speed_up =
        subject != nullptr ? ratio(*network.own, *subject) : study.serial_step_s / row.step_s;
    row.efficiency = row.speed_up / (row.ranks * row.threads);
  }
  const int threads = options.threads.front();
  add_curves(
      predictor, std::max<std::int64_t>(predictor.parts() / threads, 1),
      [&](int count, const Agreement& agreement) {
        return predictor.strong(count, threads, agreement);
      },
      study);
  return study;
}

RankScalingStudy study_weak_rank_scaling(const std::vector<RankedScenario>& scenarios,
                                         const RankScalingOptions& options,
                                         const PhaseCallback& listener) {
  if (scenarios.empty()) throw ConfigError("/sizes", "needs at least one network");
  std::vector<int> ranks;
  std::vector<const Scenario*> networks;
  std::vector<Asked> asked;
  for (const RankedScenario& own : scenarios) {
    asked.push_back({networks.size(), own.ranks, options.threads.empty() ? 1 : options.threads[0]});
    ranks.push_back(own.ranks);
    networks.push_back(&own.scenario);
  }
  check(options, ranks);
  if (options.threads.size() > 1) {
    throw ConfigError("/threads", "weak scaling over ranks takes one number of threads");
  }
  RankScalingStudy study = begin_study(options, scenarios.front().scenario.name, /*weak=*/true);
  Measurement measurement(std::move(networks), std::move(asked), options, listener);
  if (!has_led(measurement, study)) return study;
  tell(listener, {"predicting other numbers of ranks"});
  const Asked& first = measurement.asked().front();
  for (const Asked& one : measurement.asked()) {
    const RankNetwork& network = measurement.networks()[one.network];
    const RankPredictor predictor(network.measured(), study.network);
    RankScalingRow& row = study.rows.emplace_back(row_of(one, measurement, predictor));
    const Subject* const own = measurement.subject_of(one);
    const Subject* const reference = measurement.subject_of(first);
    row.efficiency = own != nullptr && reference != nullptr
                         ? ratio(*reference, *own)
                         : study.rows.front().step_s / row.step_s;
    row.speed_up = row.ranks * row.threads * row.efficiency;
    if (&one != &measurement.asked().back()) continue;
    note_measured(network, predictor, study);
    add_curves(
        predictor, kMostRanks,
        [&](int count, const Agreement& agreement) {
          return predictor.weak(count, one.threads, one.ranks, agreement);
        },
        study);
  }
  return study;
}

}  // namespace portwave
