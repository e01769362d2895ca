#include "portwave/runtime/study/scaling.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "study/scaling_model.hpp"
#include "study/scaling_subject.hpp"

namespace portwave {
namespace {

constexpr int kCurve = 32;

/// A network and all configurations it is measured in.
struct Network {
  Network(const Scenario& given, const ScalingOptions& options, const std::vector<int>& threads,
          int cores)
      : scenario(given),
        is_plain(options.executor == ExecutorKind::automatic ||
                 options.executor == ExecutorKind::serial) {
    serial = subject_of(given, ExecutorKind::serial, options.grain, 1);
    const auto parts = static_cast<int>(given.system.parts().size());
    if (parts > 1 && options.executor != ExecutorKind::serial) {
      // As many tasks as 32 threads would like.
      const Grain grain = options.grain.kind == Grain::Kind::automatic
                              ? Grain::of_parts(std::max(parts / (4 * kCurve), 1))
                              : options.grain;
      alone = subject_of(given, ExecutorKind::async, grain, 1);
    }
    for (const int count : threads) {
      if (count > cores || (count == 1 && is_plain)) continue;
      others.push_back(subject_of(given, options.executor, options.grain, count));
    }
  }

  static std::unique_ptr<Subject> subject_of(const Scenario& given, ExecutorKind executor,
                                             Grain grain, int threads) {
    return std::make_unique<Subject>(given, Subject::settings(given, executor, grain, threads));
  }

  void collect(std::vector<Subject*>& subjects) {
    subjects.push_back(serial.get());
    if (alone) subjects.push_back(alone.get());
    for (const auto& other : others) subjects.push_back(other.get());
  }

  void check_results() const {
    const auto check = [&](const Subject& subject) {
      if (equal_states(serial->stepper(), subject.stepper())) return;
      throw std::runtime_error(
          fmt::format("the results of {} threads ({}) are not those of one thread: this is a "
                      "defect of portwave",
                      subject.threads(), subject.stepper().execution()));
    };
    if (alone) check(*alone);
    for (const auto& other : others) check(*other);
  }

  ScalingModel model() const {
    ScalingModel model;
    model.size = static_cast<std::int64_t>(scenario.system.parts().size());
    model.serial_step_s = serial->step_s();
    model.serial_phases = serial->phases();
    model.iterations = serial->stepper().iterations().per_step();
    if (!alone || alone->stepper().tasks() == 1) return model;
    const double tasks = alone->stepper().tasks();
    const double cut_s = paired(alone->steps_s(), serial->steps_s(),
                                [](double cut, double whole) { return cut - whole; });
    model.phase_ns = std::max(1e9 * cut_s / (tasks * (model.iterations + 1.0)), 0.0);
    // Cut into tasks, the commit is counted from the beginning of the last one: commit = shared /
    // tasks + tail, where it is shared + tail for one thread without tasks.
    const double tail_s =
        paired(alone->commits_s(), serial->commits_s(),
               [&](double last, double all) { return (tasks * last - all) / (tasks - 1.0); });
    model.commit_tail_s = std::clamp(tail_s, 0.0, model.serial_phases.commit_s);
    return model;
  }

  const Subject* subject_for(int threads) const {
    for (const auto& other : others) {
      if (other->threads() == threads) return other.get();
    }
    return threads == 1 ? serial.get() : nullptr;
  }

  const Scenario& scenario;
  bool is_plain;
  std::unique_ptr<Subject> serial;
  std::unique_ptr<Subject> alone;  ///< tasks on one thread: what cutting a step costs
  std::vector<std::unique_ptr<Subject>> others;
};

/// Measures all networks in turn, over and over. Returns the steps of one measurement.
std::int64_t measure(std::vector<Network>& networks, const ScalingOptions& options,
                     const PhaseCallback& listener) {
  tell(listener, {"warming up"});
  std::vector<Subject*> subjects;
  for (Network& network : networks) network.collect(subjects);
  double slowest_s = 1e-9;
  for (const Network& network : networks) {
    slowest_s = std::max(slowest_s, network.serial->warm(kFirstSteps));
  }
  for (Subject* subject : subjects) {
    if (subject->stepper().step_index() == 0) subject->warm(kFirstSteps);
  }
  const auto [steps, warming] = measured_steps(options.steps, slowest_s);
  for (int r = 0; r < options.repetitions; ++r) {
    // Each begins in turn, so that no place in the order is anybody's.
    for (std::size_t i = 0; i < subjects.size(); ++i) {
      const auto done = static_cast<std::size_t>(r) * subjects.size() + i;
      tell(listener, {"taking measurement", static_cast<std::int64_t>(done) + 1,
                      static_cast<std::int64_t>(subjects.size()) * options.repetitions});
      Subject& subject = *subjects[(i + static_cast<std::size_t>(r)) % subjects.size()];
      subject.warm(warming);
      subject.measure(steps);
    }
  }
  for (const Network& network : networks) network.check_results();
  return steps;
}

/// A few steps with tasks followed.
Profile followed(const Scenario& scenario, const ScalingOptions& options, ExecutorKind executor,
                 int threads, std::int64_t steps) {
  StepperOptions own = scenario.options;
  own.executor = executor;
  own.grain = options.grain;
  own.threads = threads;
  own.time = {};
  own.profile.emplace();
  Stepper stepper(scenario.system, own);
  stepper.step(steps);
  return stepper.profile();
}

/// `alone`: of one thread.
ScalingLoss loss_of(const Profile& profile, const Profile& alone, int threads) {
  const auto steps = static_cast<double>(std::max<std::int64_t>(profile.sampled, 1));
  const auto steps_alone = static_cast<double>(std::max<std::int64_t>(alone.sampled, 1));
  const double step_s = profile.step_s / steps, tasks_s = profile.tasks_s / steps;
  const double all_s = threads * step_s;
  if (!(all_s > 0.0)) return {};
  return {(threads - 1) * (step_s - tasks_s) / all_s,
          (threads * tasks_s - profile.working_s() / steps) / all_s,
          (profile.working_s() / steps - alone.working_s() / steps_alone) / all_s,
          profile.imbalance(), profile.sampled};
}

/// Why rows of more than one thread are not as efficient as one.
void explain(const Scenario& scenario, const ScalingOptions& options, std::int64_t steps,
             std::span<ScalingRow> rows, const PhaseCallback& listener) {
  constexpr std::int64_t kMostFollowed = 300;
  const bool has_tasks = scenario.options.method.couples_by_waves() &&
                         options.executor != ExecutorKind::serial && !scenario.options.sizes;
  if (!has_tasks) return;
  const std::int64_t count = std::min(steps, kMostFollowed);
  std::optional<Profile> alone;
  for (ScalingRow& row : rows) {
    if (row.predicted || row.threads < 2) continue;
    if (!alone) tell(listener, {"following tasks"});
    if (!alone) alone = followed(scenario, options, ExecutorKind::serial, 1, count);
    const Profile own = followed(scenario, options, ExecutorKind::async, row.threads, count);
    row.loss = loss_of(own, *alone, row.threads);
  }
}

std::optional<bool> fell_back(const Stepper& stepper, int threads) {
  const std::string& what = stepper.execution();
  if (threads == 1) return false;
  if (what.starts_with("serial or async")) return std::nullopt;
  return what.starts_with("serial");
}

ScalingRow row_of(const Network& network, const ScalingPredictor& predictor, int threads) {
  const ScalingRow predicted = predictor.predict(threads);
  ScalingRow row = predicted;
  const Subject* const subject = network.subject_for(threads);
  if (subject != nullptr) {
    const Stepper& stepper = subject->stepper();
    const ScalingRow cut = predictor.partition_of(threads);
    row.predicted = false;
    row.step_s = subject->step_s();
    row.spread = subject->spread();
    row.fastest_s = subject->fastest_s();
    row.slowest_s = subject->slowest_s();
    row.phases = subject->phases();
    row.execution = stepper.execution();
    row.fell_back = fell_back(stepper, threads);
    row.tasks = stepper.tasks();
    row.imbalance = row.fell_back.value_or(false) ? 1.0 : cut.imbalance;
  }
  return row;
}

void check(const ScalingOptions& options) {
  Issues issues;
  if (options.repetitions < 1) issues.push_back({"/repetitions", "must be >= 1"});
  if (options.steps < 0) issues.push_back({"/steps", "must be >= 0"});
  for (const int threads : options.threads) {
    if (threads < 1 || threads > kMaxThreads) {
      issues.push_back(
          {"/threads", fmt::format("must be in 1 to {}, got {}", kMaxThreads, threads)});
    }
  }
  throw_if_any(std::move(issues));
}

std::vector<ScalingRow> curve_of(const ScalingPredictor& predictor, const ScalingModel& model) {
  std::vector<ScalingRow> curve;
  for (int threads = 1; threads <= kCurve; ++threads) {
    ScalingRow row = predictor.predict(threads);
    row.speed_up = model.serial_step_s / row.step_s;
    row.efficiency = row.speed_up / threads;
    curve.push_back(std::move(row));
  }
  return curve;
}

ScalingStudy begin_study(const ScalingOptions& options, const std::string& name, bool weak) {
  ScalingStudy study;
  study.weak = weak;
  study.name = name;
  study.cores = cores_of_process(options.cores);
  study.repetitions = options.repetitions;
  return study;
}

}  // namespace

ScalingStudy study_strong_scaling(const Scenario& scenario, const ScalingOptions& options,
                                  const PhaseCallback& listener) {
  check(options);
  tell(listener, {"preparing the configurations"});
  ScalingStudy study = begin_study(options, scenario.name, /*weak=*/false);
  std::set<int> threads(options.threads.begin(), options.threads.end());
  threads.insert(1);
  std::vector<Network> networks;
  networks.emplace_back(scenario, options, std::vector<int>(threads.begin(), threads.end()),
                        study.cores);
  study.steps = measure(networks, options, listener);
  tell(listener, {"predicting other numbers of threads"});

  const Network& network = networks.front();
  const ScalingModel model = network.model();
  const ScalingPredictor predictor(scenario, options, model);
  for (const int count : threads) {
    study.rows.push_back(row_of(network, predictor, count));
    ScalingRow& row = study.rows.back();
    const Subject* const subject = network.subject_for(count);
    row.speed_up =
        subject != nullptr ? ratio(*network.serial, *subject) : model.serial_step_s / row.step_s;
    row.efficiency = row.speed_up / count;
  }
  explain(scenario, options, study.steps, study.rows, listener);
  study.curve = curve_of(predictor, model);
  study.models.push_back(model);
  return study;
}

ScalingStudy study_weak_scaling(const std::vector<SizedScenario>& scenarios,
                                const ScalingOptions& given, const PhaseCallback& listener) {
  if (scenarios.empty()) throw ConfigError("/sizes", "needs at least one network");
  ScalingOptions options = given;
  options.threads.clear();
  for (const SizedScenario& sized : scenarios) options.threads.push_back(sized.threads);
  check(options);
  ScalingStudy study = begin_study(options, scenarios.front().scenario.name, /*weak=*/true);
  std::vector<Network> networks;
  networks.reserve(scenarios.size());
  for (const SizedScenario& sized : scenarios) {
    tell(listener, {"preparing network", static_cast<std::int64_t>(networks.size()) + 1,
                    static_cast<std::int64_t>(scenarios.size())});
    networks.emplace_back(sized.scenario, options, std::vector<int>{sized.threads}, study.cores);
  }
  study.steps = measure(networks, options, listener);
  tell(listener, {"predicting other numbers of threads"});

  for (std::size_t i = 0; i < networks.size(); ++i) {
    const ScalingModel model = networks[i].model();
    const ScalingPredictor predictor(scenarios[i].scenario, options, model);
    study.models.push_back(model);
    study.rows.push_back(row_of(networks[i], predictor, scenarios[i].threads));
    ScalingRow& row = study.rows.back();
    const Subject* const first = networks.front().subject_for(scenarios.front().threads);
    const Subject* const own = networks[i].subject_for(scenarios[i].threads);
    row.efficiency = first != nullptr && own != nullptr ? ratio(*first, *own)
                                                        : study.rows.front().step_s / row.step_s;
    row.speed_up = row.threads * row.efficiency;
    if (i + 1 == networks.size()) study.curve = curve_of(predictor, model);
  }
  for (std::size_t i = 0; i < networks.size(); ++i) {
    explain(scenarios[i].scenario, options, study.steps, std::span(study.rows).subspan(i, 1),
            listener);
  }
  return study;
}

}  // namespace portwave
