#include "portwave/runtime/study/scaling.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "step/stepper_options.hpp"
#include "step/waves/interface_solvers.hpp"
#include "study/energy_meter.hpp"
#include "study/machine_probe.hpp"
#include "study/scaling_model.hpp"
#include "study/scaling_subject.hpp"

namespace portwave {
namespace {

constexpr int kCurve = 32;
constexpr std::int64_t kMostSettling = 500;

bool is_plain(ExecutorKind executor) {
  return executor == ExecutorKind::automatic || executor == ExecutorKind::serial;
}

/// Whose tasks a configuration runs.
ExecutorKind tasks_of(ExecutorKind executor) {
  return executor == ExecutorKind::automatic ? ExecutorKind::async : executor;
}

/// A network and all configurations it is measured in.
struct Network {
  Network(const Scenario& given, const ScalingOptions& options, const std::vector<int>& threads,
          int cores)
      : scenario(given), costs(std::make_unique<NetworkCosts>(given, options.grain)) {
    serial = subject_of(given, ExecutorKind::serial, options.grain, 1);
    const auto parts = static_cast<int>(given.system.parts().size());
    // About as many tasks as the most threads have.
    const int most = std::max(*std::ranges::max_element(options.threads), 2);
    cut = options.grain.kind == Grain::Kind::automatic
              ? Grain::of_parts(std::max(parts / (2 * most), 1))
              : options.grain;
    for (const ExecutorKind executor : options.executors) {
      const ExecutorKind tasks = tasks_of(executor);
      if (parts > 1 && tasks != ExecutorKind::serial && !alone.contains(tasks)) {
        alone.emplace(tasks, subject_of(given, tasks, cut, 1));
        if (std::min(cores, cores_of_process(0)) > 1 && costs->waves() != nullptr) {
          apart.emplace(tasks, subject_of(given, tasks, options.grain, 2));
        }
      }
      for (const int count : threads) {
        if (count > cores || (count == 1 && is_plain(executor))) continue;
        others.emplace(std::pair(executor, count),
                       subject_of(given, executor, options.grain, count));
      }
    }
  }

  static std::unique_ptr<Subject> subject_of(const Scenario& given, ExecutorKind executor,
                                             Grain grain, int threads) {
    return std::make_unique<Subject>(given, Subject::settings(given, executor, grain, threads));
  }

  void collect(std::vector<Subject*>& subjects) const {
    subjects.push_back(serial.get());
    for (const auto& [tasks, subject] : alone) subjects.push_back(subject.get());
    for (const auto& [tasks, subject] : apart) subjects.push_back(subject.get());
    for (const auto& [key, subject] : others) subjects.push_back(subject.get());
  }

  void check_results() const {
    std::vector<Subject*> subjects;
    collect(subjects);
    for (const Subject* subject : subjects) {
      if (equal_states(serial->stepper(), subject->stepper())) continue;
      throw std::runtime_error(
          fmt::format("results on {} threads ({}) differ from those on one thread",
                      subject->threads(), subject->stepper().execution()));
    }
  }

  const Subject* subject_for(ExecutorKind executor, int threads) const {
    const auto found = others.find({executor, threads});
    if (found != others.end()) return found->second.get();
    return threads == 1 ? serial.get() : nullptr;
  }

  const Scenario& scenario;
  std::unique_ptr<NetworkCosts> costs;
  std::unique_ptr<Subject> serial;
  Grain cut;
  std::map<ExecutorKind, std::unique_ptr<Subject>>
      alone;  ///< tasks on one thread: what cutting costs
  std::map<ExecutorKind, std::unique_ptr<Subject>>
      apart;  ///< on two threads: what these cost one another
  std::map<std::pair<ExecutorKind, int>, std::unique_ptr<Subject>> others;
};

/// Measures all networks in turn, over and over. Returns the steps of one measurement.
std::int64_t measure(std::vector<Network>& networks, const ScalingOptions& options,
                     EnergyMeter* meter, const PhaseCallback& listener) {
  tell(listener, {"warming up"});
  std::vector<Subject*> subjects;
  for (Network& network : networks) network.collect(subjects);
  for (Subject* subject : subjects) subject->warm(kSettlingSteps);
  // Of some more steps, which all make.
  const auto slowest_step_s = [&] {
    double slowest_s = 1e-9;
    for (const Network& network : networks) {
      slowest_s = std::max(slowest_s, network.serial->warm(kFirstSteps));
    }
    for (Subject* subject : subjects) {
      if (subject->stepper().step_index() < subjects.front()->stepper().step_index()) {
        subject->warm(kFirstSteps);
      }
    }
    return slowest_s;
  };
  double slowest_s = slowest_step_s();
  if (options.steps == 0) {  // until a guard that acts in the first steps does so no more
    const std::int64_t more = measured_steps(0, slowest_s).steps;
    for (Subject* subject : subjects) subject->warm(std::min(more, kMostSettling));
    slowest_s = slowest_step_s();
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
      subject.measure(steps, meter);
    }
  }
  for (const Network& network : networks) network.check_results();
  return steps;
}

/// The sums of `after` beyond those of `before`, of the same run.
Profile since(const Profile& before, Profile after) {
  after.sampled -= before.sampled;
  after.step_s -= before.step_s;
  after.tasks_s -= before.tasks_s;
  after.shared_s -= before.shared_s;
  after.shared_loops -= before.shared_loops;
  for (std::size_t w = 0; w < after.workers.size(); ++w) {
    ProfileWorker& own = after.workers[w];
    const ProfileWorker& earlier = before.workers[w];
    own.iterate_s -= earlier.iterate_s;
    own.exchange_s -= earlier.exchange_s;
    own.commit_s -= earlier.commit_s;
    own.waiting_s -= earlier.waiting_s;
  }
  for (ProfileTask& task : after.tasks) {
    for (const ProfileTask& earlier : before.tasks) {
      if (earlier.number == task.number) task.events -= earlier.events;
    }
  }
  return after;
}

Stepper following(const Scenario& scenario, Grain grain, ExecutorKind executor, int threads) {
  StepperOptions options = scenario.options;
  options.executor = executor;
  options.grain = grain;
  options.threads = threads;
  options.time = {};
  options.profile.emplace();
  go_past_ends(options);
  return {scenario.system, options};
}

/// A few steps with tasks followed, after those that settle.
Profile followed(const Scenario& scenario, const ScalingOptions& options, ExecutorKind executor,
                 int threads, std::int64_t steps) {
  Stepper stepper = following(scenario, options.grain, executor, threads);
  stepper.step(kSettlingSteps);
  const Profile before = stepper.profile();
  stepper.step(steps);
  return since(before, stepper.profile());
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
void explain(const Scenario& scenario, const ScalingOptions& options, ExecutorKind executor,
             std::int64_t steps, std::span<ScalingRow> rows, const PhaseCallback& listener) {
  constexpr std::int64_t kMostFollowed = 300;
  const bool has_tasks = scenario.options.method.couples_by_waves() &&
                         tasks_of(executor) == ExecutorKind::async && !scenario.options.sizes;
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

/// What becomes of a step on one thread, the mean of some steps.
struct Shares {
  double step_s = 0.0;
  double iterate_s = 0.0, commit_s = 0.0, shared_s = 0.0, shared_loops = 0.0, recommits = 0.0;
  bool solves =
      false;  ///< interface equations, between the tasks; loops are those of the solves then
};

Shares shares_in(const Profile& profile) {
  const auto steps = static_cast<double>(profile.sampled);
  if (!(steps > 0.0) || profile.workers.empty()) return {};
  const ProfileWorker& worker = profile.workers.front();
  Shares out{.step_s = profile.step_s / steps,
             .iterate_s = (worker.iterate_s + worker.exchange_s) / steps,
             .commit_s = worker.commit_s / steps,
             .shared_s = profile.shared_s / steps,
             .shared_loops = static_cast<double>(profile.shared_loops) / steps};
  for (const ProfileTask& task : profile.tasks) {
    if (task.number >= 0) continue;
    // Of the serial executor: an iteration, a commit, and those that the guard asks for again.
    out.recommits = std::max(out.recommits, static_cast<double>(task.events) / steps - 2.0);
  }
  return out;
}

/// Over the steps that were measured, in as many stretches; of these the one that was disturbed the least.
Shares shares_of(const Network& network, const ScalingOptions& options, std::int64_t steps) {
  const Stepper& measured = network.serial->stepper();
  // Where islands solve their interface equation, one thread does so between the tasks. The serial executor, and a
  // task that is alone, have that among what they do.
  const bool solves = measured.method().method.couples_by_waves() &&
                      InterfaceSolvers::are_needed(measured.method().method.waves());
  Stepper stepper = following(network.scenario, solves ? network.cut : options.grain,
                              solves ? ExecutorKind::async : ExecutorKind::serial, 1);
  stepper.step(std::max<std::int64_t>(measured.step_index() - options.repetitions * steps, 1));
  Shares least;
  Profile before = stepper.profile();
  for (int r = 0; r < options.repetitions; ++r) {
    stepper.step(steps);
    Profile after = stepper.profile();
    Shares shares = shares_in(since(before, after));
    shares.solves = solves;
    if (shares.step_s > 0.0 && (least.step_s == 0.0 || shares.step_s < least.step_s)) {
      least = shares;
    }
    before = std::move(after);
  }
  return least;
}

void take_shares(const Shares& shares, ScalingModel& model) {
  if (!(shares.step_s > 0.0)) {  // a method without waves: its ledger is one thread's
    model.iterate_s = model.serial_phases.iterate_s;
    model.one_thread_s = std::max(model.serial_step_s - model.iterate_s, 0.0);
    return;
  }
  const double scale = model.serial_step_s / shares.step_s;  // clocks are read in between
  model.iterate_s = scale * shares.iterate_s;
  model.commit_s = scale * shares.commit_s;
  model.shared_s = scale * shares.shared_s;
  model.shared_loops = shares.shared_loops;
  model.recommits = shares.recommits;
  model.one_thread_s =
      std::max(model.serial_step_s - model.iterate_s - model.commit_s - model.shared_s, 0.0);
}

ScalingModel model_of(const Network& network, ExecutorKind executor, const Shares& shares,
                      const HandOver& hand_over) {
  ScalingModel model;
  model.size = static_cast<std::int64_t>(network.scenario.system.parts().size());
  model.executor = executor;
  const Subject& serial = *network.serial;
  model.serial_step_s = serial.step_s();
  model.serial_phases = serial.phases();
  model.iterations = serial.stepper().iterations().per_step();
  model.message_ns = hand_over.message_ns;
  model.line_ns = hand_over.line_ns;
  model.start_ns = hand_over.start_ns;
  take_shares(shares, model);
  const auto found = network.alone.find(tasks_of(executor));
  if (found == network.alone.end() || found->second->stepper().tasks() == 1) return model;
  const double tasks = found->second->stepper().tasks();
  if (network.costs->waves() == nullptr) model.blocks = static_cast<int>(tasks);
  // Of undisturbed steps: a difference of medians would be mostly noise.
  const double cut_s = found->second->undisturbed_s() - serial.undisturbed_s();
  model.phase_ns = std::max(1e9 * cut_s / (tasks * (model.iterations + 1.0)), 0.0);
  return model;
}

/// The model of a network and executor, and what predicts with it.
struct Basis {
  ScalingModel model;
  ScalingPredictor predictor;
};

Basis basis_of(const Network& network, const ScalingOptions& options, ExecutorKind executor,
               const Shares& shares, const HandOver& hand_over) {
  const ScalingModel model = model_of(network, executor, shares, hand_over);
  ScalingPredictor predictor(*network.costs, options, model);
  const auto found = network.apart.find(tasks_of(executor));
  if (found == network.apart.end()) return {model, predictor};
  const Subject& two = *found->second;
  if (two.stepper().execution().starts_with("serial")) return {model, predictor};
  // As long, beside a step on one thread, as in the repetitions, and divided as in the medians.
  const StepTimes phases = two.phases();
  const double step_s = model.serial_step_s * ratio(two, *network.serial);
  const double scale = step_s / (phases.begin_s + phases.iterate_s + phases.commit_s);
  predictor.learn({scale * phases.begin_s, scale * phases.iterate_s, scale * phases.commit_s},
                  shares.solves);
  return {predictor.model(), predictor};
}

std::optional<bool> fell_back(const Stepper& stepper, int threads) {
  const std::string& what = stepper.execution();
  if (threads == 1) return false;
  if (what.starts_with("serial or async")) return std::nullopt;
  return what.starts_with("serial");
}

ScalingRow row_of(const Network& network, const ScalingPredictor& predictor, ExecutorKind executor,
                  int threads) {
  ScalingRow row = predictor.predict(threads);
  const Subject* const subject = network.subject_for(executor, threads);
  if (subject != nullptr) {
    const Stepper& stepper = subject->stepper();
    const ScalingRow cut = predictor.partition_of(threads);
    row.predicted = false;
    row.step_s = subject->step_s();
    row.spread = subject->spread();
    row.fastest_s = subject->fastest_s();
    row.slowest_s = subject->slowest_s();
    row.energy_per_step_J = subject->energy_J();
    row.phases = subject->phases();
    row.execution = stepper.execution();
    row.fell_back = fell_back(stepper, threads);
    row.tasks = stepper.tasks();
    row.imbalance = row.fell_back.value_or(false) ? 1.0 : cut.imbalance;
  }
  return row;
}

/// Predicts the time in the repetitions in which the row was measured, where one thread without tasks took
/// `speed_up` times as long: what the machine did meanwhile is no fault of the model.
void predict_beside(ScalingRow& row, double speed_up, const ScalingModel& model) {
  row.predicted_step_s *= speed_up * row.step_s / model.serial_step_s;
}

void check(const ScalingOptions& options) {
  Issues issues;
  if (options.repetitions < 1) issues.push_back({"/repetitions", "must be >= 1"});
  if (options.steps < 0) issues.push_back({"/steps", "must be >= 0"});
  if (options.executors.empty()) issues.push_back({"/executors", "needs at least one executor"});
  for (const int threads : options.threads) {
    if (threads < 1 || threads > kMaxThreads) {
      issues.push_back(
          {"/threads", fmt::format("must be in 1 to {}, got {}", kMaxThreads, threads)});
    }
  }
  throw_if_any(std::move(issues));
}

void add_curve(const ScalingPredictor& predictor, const ScalingModel& model,
               std::vector<ScalingRow>& curve) {
  for (int threads = 1; threads <= kCurve; ++threads) {
    ScalingRow row = predictor.predict(threads);
    row.speed_up = model.serial_step_s / row.step_s;
    row.efficiency = row.speed_up / threads;
    curve.push_back(std::move(row));
  }
}

void add_kernels(const Network& network, ScalingStudy& study) {
  for (KernelRoof& roof : network.costs->kernels()) study.kernels.push_back(std::move(roof));
}

/// Where a row has a sister on one thread with its share of the parts.
void find_weak_efficiencies(std::vector<ScalingRow>& rows) {
  for (ScalingRow& row : rows) {
    for (const ScalingRow& first : rows) {
      const std::int64_t beyond = row.size - first.size * row.threads;
      const bool is_sister = first.threads == 1 && first.executor == row.executor &&
                             beyond > -row.threads && beyond < row.threads;
      if (is_sister) row.weak_efficiency = first.step_s / row.step_s;
    }
  }
}

/// A study that has begun, and what it measures with.
struct Begun {
  Begun(const ScalingOptions& options, const std::string& name, bool weak)
      : meter(options.energy_counters) {
    study.weak = weak;
    study.name = name;
    study.cores = cores_of_process(options.cores);
    study.repetitions = options.repetitions;
    study.energy_note = meter.note();
    study.peak_flop_per_s = measured_peak_flop_per_s();
    if (cores_of_process(0) > 1) hand_over = measured_hand_over();
  }

  EnergyMeter* counters() { return meter.is_there() ? &meter : nullptr; }

  ScalingStudy study;
  EnergyMeter meter;
  HandOver hand_over;
};

void study_network(const Scenario& scenario, const ScalingOptions& options,
                   const std::vector<int>& threads, const PhaseCallback& listener, Begun& begun) {
  ScalingStudy& study = begun.study;
  tell(listener, {"preparing the configurations"});
  std::vector<Network> networks;
  networks.emplace_back(scenario, options, threads, study.cores);
  const std::int64_t steps = measure(networks, options, begun.counters(), listener);
  if (study.steps == 0) study.steps = steps;
  tell(listener, {"predicting other numbers of threads"});
  const Network& network = networks.front();
  const Shares shares = shares_of(network, options, steps);
  for (const ExecutorKind executor : options.executors) {
    const auto [model, predictor] = basis_of(network, options, executor, shares, begun.hand_over);
    const std::size_t before = study.rows.size();
    for (const int count : threads) {
      study.rows.push_back(row_of(network, predictor, executor, count));
      ScalingRow& row = study.rows.back();
      const Subject* const subject = network.subject_for(executor, count);
      row.speed_up =
          subject != nullptr ? ratio(*network.serial, *subject) : model.serial_step_s / row.step_s;
      if (subject != nullptr) predict_beside(row, row.speed_up, model);
      row.efficiency = row.speed_up / count;
    }
    explain(scenario, options, executor, steps, std::span(study.rows).subspan(before), listener);
    add_curve(predictor, model, study.curve);
    study.models.push_back(model);
  }
  add_kernels(network, study);
}

}  // namespace

ScalingStudy study_strong_scaling(std::span<const Scenario> scenarios,
                                  const ScalingOptions& options, const PhaseCallback& listener) {
  if (scenarios.empty()) throw ConfigError("/sizes", "needs at least one network");
  check(options);
  std::set<int> counts(options.threads.begin(), options.threads.end());
  counts.insert(1);
  Begun begun(options, scenarios.front().name, /*weak=*/false);
  for (const Scenario& scenario : scenarios) {
    study_network(scenario, options, {counts.begin(), counts.end()}, listener, begun);
  }
  find_weak_efficiencies(begun.study.rows);
  return std::move(begun.study);
}

ScalingStudy study_strong_scaling(const Scenario& scenario, const ScalingOptions& options,
                                  const PhaseCallback& listener) {
  return study_strong_scaling(std::span(&scenario, 1), options, listener);
}

ScalingStudy study_weak_scaling(const std::vector<SizedScenario>& scenarios,
                                const ScalingOptions& given, const PhaseCallback& listener) {
  if (scenarios.empty()) throw ConfigError("/sizes", "needs at least one network");
  ScalingOptions options = given;
  options.threads.clear();
  for (const SizedScenario& sized : scenarios) options.threads.push_back(sized.threads);
  check(options);
  Begun begun(options, scenarios.front().scenario.name, /*weak=*/true);
  ScalingStudy& study = begun.study;
  std::vector<Network> networks;
  networks.reserve(scenarios.size());
  for (const SizedScenario& sized : scenarios) {
    tell(listener, {"preparing network", static_cast<std::int64_t>(networks.size()) + 1,
                    static_cast<std::int64_t>(scenarios.size())});
    networks.emplace_back(sized.scenario, options, std::vector<int>{sized.threads}, study.cores);
  }
  study.steps = measure(networks, options, begun.counters(), listener);
  tell(listener, {"predicting other numbers of threads"});

  std::vector<Shares> shares;
  for (const Network& network : networks) {
    shares.push_back(shares_of(network, options, study.steps));
    add_kernels(network, study);
  }
  for (const ExecutorKind executor : options.executors) {
    const std::size_t before = study.rows.size();
    for (std::size_t i = 0; i < networks.size(); ++i) {
      const auto [model, predictor] =
          basis_of(networks[i], options, executor, shares[i], begun.hand_over);
      study.models.push_back(model);
      const int threads = scenarios[i].threads;
      study.rows.push_back(row_of(networks[i], predictor, executor, threads));
      ScalingRow& row = study.rows.back();
      const Subject* const first =
          networks.front().subject_for(executor, scenarios.front().threads);
      const Subject* const own = networks[i].subject_for(executor, threads);
      row.efficiency = first != nullptr && own != nullptr ? ratio(*first, *own)
                                                          : study.rows[before].step_s / row.step_s;
      if (own != nullptr) predict_beside(row, ratio(*networks[i].serial, *own), model);
      row.weak_efficiency = row.efficiency;
      row.speed_up = row.threads * row.efficiency;
      if (i + 1 == networks.size()) add_curve(predictor, model, study.curve);
      explain(scenarios[i].scenario, options, executor, study.steps,
              std::span(study.rows).subspan(before + i, 1), listener);
    }
  }
  return std::move(study);
}

}  // namespace portwave
