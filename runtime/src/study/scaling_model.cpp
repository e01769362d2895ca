#include "study/scaling_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <set>

#include "parallel/clock.hpp"
#include "parallel/runner.hpp"
#include "parallel/task_graph.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "step/stepper_options.hpp"
#include "study/machine_probe.hpp"

namespace portwave {
namespace {

void multiply(std::vector<double>& values, double factor) {
  for (double& value : values) value *= factor;
}

WaveDiscretisation discretise(const Scenario& scenario, const Grain& grain) {
  return {scenario.system, scenario.options.step_s,
          impedance_by_port(scenario.system, scenario.options.method.waves()), grouping_for(grain)};
}

/// Cache lines of the largest message of each task, at least one: waves of its lanes at the border.
std::vector<double> message_lines(const WaveDiscretisation& waves, const Partition& partition) {
  constexpr double kWavesOfLine = 8.0;
  std::vector<int> task_of_part(waves.slots().size(), 0);
  for (std::size_t t = 0; t < partition.tasks.size(); ++t) {
    for (const BatchRange& range : partition.tasks[t].ranges) {
      const std::vector<int>& parts = waves.batch(range.batch).parts;
      for (int lane = range.lanes.first; lane < range.lanes.last; ++lane) {
        task_of_part[at(parts[at(lane)])] = static_cast<int>(t);
      }
    }
  }
  std::vector<std::map<int, double>> sent(partition.tasks.size());
  const Interconnection& coupling = waves.interconnection();
  for (int j = 0; j < coupling.size(); ++j) {
    for (const int from : coupling.waves(j)) {
      const int own = task_of_part[at(waves.part_of_wave(from))];
      std::set<int> others;
      for (const int to : coupling.waves(j)) {
        others.insert(task_of_part[at(waves.part_of_wave(to))]);
      }
      for (const int other : others) {
        if (other != own) sent[at(own)][other] += 1.0;
      }
    }
  }
  std::vector<double> lines;
  for (const std::map<int, double>& messages : sent) {
    double largest = 1.0;
    for (const auto& [to, count] : messages) {
      largest = std::max(largest, std::ceil((count + 1.0) / kWavesOfLine));
    }
    lines.push_back(largest);
  }
  return lines;
}

bool runs_serially(ExecutorKind executor, int threads) {
  return executor == ExecutorKind::serial || (executor == ExecutorKind::automatic && threads == 1);
}

}  // namespace

void scale_costs(LaneCosts& costs, const Partition& whole, int iterations, double iterate_s,
                 double commit_s) {
  const double solves_s = 1e-9 * whole.iteration_cost_ns * iterations;
  if (solves_s > 0.0) multiply(costs.scatter_ns, iterate_s / solves_s);
  const double advances_s = 1e-9 * whole.commit_cost_ns;
  if (advances_s > 0.0) multiply(costs.advance_ns, commit_s / advances_s);
}

StepModel step_model(const WaveDiscretisation& waves, const LaneCosts& costs,
                     const Partition& partition, int iterations) {
  const TaskGraph graph(waves, partition);
  StepModel model;
  model.iterations = iterations;
  for (int t = 0; t < graph.size(); ++t) {
    double iterate = 0.0, commit = 0.0;
    for (const BatchRange& range : partition.tasks[static_cast<std::size_t>(t)].ranges) {
      const double lanes = range.lanes.last - range.lanes.first;
      iterate += lanes * costs.scatter_ns[static_cast<std::size_t>(range.batch)];
      commit += lanes * costs.advance_ns[static_cast<std::size_t>(range.batch)];
    }
    model.iterate_ns.push_back(iterate);
    model.commit_ns.push_back(commit);
    const auto neighbours = graph.task(t).neighbours();
    model.neighbours.emplace_back(neighbours.begin(), neighbours.end());
  }
  return model;
}

NetworkCosts::NetworkCosts(const Scenario& scenario, const Grain& grain) : stepped_(scenario) {
  if (!scenario.options.method.couples_by_waves()) return;
  waves_.emplace(discretise(stepped_.get(), grain));
  costs_ = measured_costs(*waves_, waves_->initial_record().data());
}

NetworkCosts::Share NetworkCosts::measured_share(int threads) const {
  constexpr int kRounds = 12;
  constexpr double kMost_s = 0.1;
  const WaveDiscretisation& waves = *waves_;
  AlignedVector record = waves.initial_record(), next(record);
  AlignedVector a(static_cast<std::size_t>(waves.wave_size()), 0.0), b(a);
  PhaseStatus failure;
  Share least{std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  double lanes = 0.0;
  const auto for_share = [&](const auto& act) {
    lanes = 0.0;
    for (int i = 0; i < static_cast<int>(waves.batches().size()); ++i) {
      const BatchSlot& slot = waves.batch(i);
      if (!slot.capabilities.repeatable) continue;
      const int group = slot.batch->lane_group(), all = slot.batch->lanes();
      const int own = std::min((all / threads + group) / group * group, all);
      lanes += own;
      act(i, LaneRange{0, own});
    }
  };
  const auto solve = [&] {
    for_share([&](int i, LaneRange own) {
      (void)waves.scatter(i, own, record.data(), a.data(), b.data(), failure);
    });
  };
  // As in a step: solves again and again, then the commit.
  const auto begin = Clock::now();
  for (int round = 0; round < kRounds && seconds(Clock::now() - begin) < kMost_s; ++round) {
    solve();
    const auto start = Clock::now();
    solve();
    const auto middle = Clock::now();
    for_share([&](int i, LaneRange own) {
      (void)waves.advance(i, own, record.data(), a.data(), next.data(), b.data(), {}, failure);
    });
    if (lanes == 0.0) continue;
    least.solve = std::min(least.solve, seconds(middle - start) / lanes);
    least.commit = std::min(least.commit, seconds(Clock::now() - middle) / lanes);
  }
  return least;
}

NetworkCosts::Share NetworkCosts::share(int threads) const {
  // Less than this and all data are close in any case.
  constexpr std::size_t kSmall = std::size_t{256} << 10;
  if (!waves_ || threads == 1 || waves_->record_size() * sizeof(double) < kSmall) return {};
  // Measured at powers of two, none above the one before: fewer data do not take longer.
  shares_.try_emplace(1);
  Share low, high;
  const double place = std::log2(static_cast<double>(threads));
  const int first = static_cast<int>(std::floor(place));
  for (int power = 1; power <= first + 1; ++power) {
    low = high;
    const int count = 1 << power;
    if (!shares_.contains(count)) {
      const Share whole = measured_share(1), own = measured_share(count);
      const auto ratio = [](double x, double y) { return y > 0.0 && x < y ? x / y : 1.0; };
      const Share before = shares_.at(count / 2);
      shares_[count] = {std::min(ratio(own.solve, whole.solve), before.solve),
                        std::min(ratio(own.commit, whole.commit), before.commit)};
    }
    high = shares_.at(count);
  }
  const double way = place - first;
  return {low.solve + way * (high.solve - low.solve),
          low.commit + way * (high.commit - low.commit)};
}

std::vector<KernelRoof> NetworkCosts::kernels() const {
  std::vector<KernelRoof> out;
  if (!waves_) return out;
  for (std::size_t i = 0; i < waves_->batches().size(); ++i) {
    const BatchSlot& slot = waves_->batches()[i];
    const int ports = slot.batch->wave_size(), lanes = slot.batch->lanes();
    if (slot.affine == nullptr || ports == 0) continue;
    std::vector<double> first(static_cast<std::size_t>(ports * ports)), own(first);
    slot.affine->affine_matrix(0, first.data());
    bool is_shared = true;
    for (int lane = 1; lane < lanes && is_shared; ++lane) {
      slot.affine->affine_matrix(lane, own.data());
      is_shared = std::memcmp(own.data(), first.data(), own.size() * sizeof(double)) == 0;
    }
    const double p = ports;
    KernelRoof roof;
    roof.size = static_cast<std::int64_t>(scenario().system.parts().size());
    roof.type = waves_->system()
                    .parts()[static_cast<std::size_t>(slot.parts.front())]
                    .component->signature()
                    .type;
    roof.parts = lanes;
    roof.ports = ports;
    roof.flop = 2.0 * p * p + 2.0 * p;
    roof.bytes = sizeof(double) * (3.0 * p + (is_shared ? 0.0 : p * p + p));
    roof.solve_s = 1e-9 * costs_.scatter_ns[i];
    roof.stream_B_per_s = measured_stream_B_per_s(static_cast<std::size_t>(roof.bytes * lanes));
    out.push_back(std::move(roof));
  }
  return out;
}

bool KernelRoof::is_memory_bound(double peak_flop_per_s) const {
  return intensity() * stream_B_per_s < peak_flop_per_s;
}

double KernelRoof::roof(double peak_flop_per_s) const {
  return std::min(intensity() * stream_B_per_s, peak_flop_per_s);
}

ScalingPredictor::ScalingPredictor(const NetworkCosts& costs, const ScalingOptions& options,
                                   const ScalingModel& measured)
    : network_(costs),
      options_(options),
      measured_(measured),
      budget_(iterations_of(costs.scenario().options.method)),
      waits_(has_tolerance(costs.scenario().options.method)) {
  if (costs.waves() == nullptr) model_blocks(costs.scenario().system);
}

void ScalingPredictor::model_blocks(const System& system) {
  blocks_.iterations = 1;
  double states = 0.0;
  for (const Part& part : system.parts()) {
    const double own = part.component->signature().state_size();
    if (own == 0.0) continue;
    blocks_.iterate_ns.push_back(own);
    states += own;
  }
  // Parts, unless the method shares blocks of rows.
  if (measured_.blocks != std::ssize(blocks_.iterate_ns)) {
    const int blocks = std::max(measured_.blocks, 1);
    blocks_.iterate_ns.assign(static_cast<std::size_t>(blocks), states / blocks);
  }
  multiply(blocks_.iterate_ns, 1e9 * measured_.iterate_s / std::max(states, 1.0));
  blocks_.commit_ns.assign(blocks_.iterate_ns.size(), 0.0);
  blocks_.neighbours.resize(blocks_.iterate_ns.size());
}

StepModel ScalingPredictor::model_for(int threads) const {
  if (network_.waves() == nullptr) return blocks_;
  const WaveDiscretisation& waves = *network_.waves();
  const int iterations = std::max(static_cast<int>(std::round(measured_.iterations)), 0);
  LaneCosts costs = network_.lanes();
  const NetworkCosts::Share share = network_.share(threads);
  scale_costs(costs, whole_island_groups(waves, costs), iterations,
              share.solve * measured_.iterate_s, share.commit * measured_.commit_s);
  // The program cuts by the costs that it measures.
  const Partition partition =
      make_partition(waves, network_.lanes(), options_.grain, threads, budget_);
  StepModel model = step_model(waves, costs, partition, iterations);
  model.phase_ns = measured_.phase_ns;
  for (const double lines : message_lines(waves, partition)) {
    // The first line of the message, and the word by which the task is claimed, at which idle threads look; then
    // the other lines, at once, and as many that are taken back for the answer.
    const double others =
        lines > 1.0 ? measured_.message_ns + 2.0 * (lines - 1.0) * measured_.line_ns : 0.0;
    model.message_ns.push_back(message_factor_ * (2.0 * measured_.message_ns + others));
  }
  if (waits_) {
    for (const Partition::Task& task : partition.tasks)
      model.waits_with.push_back(task.island_group);
  }
  return model;
}

ScalingRow ScalingPredictor::partition_of(int threads) const {
  ScalingRow row;
  row.threads = threads;
  if (runs_serially(measured_.executor, threads)) return row;
  const StepModel model = model_for(threads);
  row.tasks = static_cast<int>(model.iterate_ns.size());
  row.imbalance = imbalance(model, threads);
  return row;
}

double ScalingPredictor::step_s(const StepModel& model, int threads) const {
  // Loops are shared by all threads, also by those that have no task.
  double out = measured_.one_thread_s + 1e-9 * makespan_ns(model, threads) +
               measured_.shared_s * network_.share(threads).commit / threads;
  if (threads > 1) {
    out += 1e-9 * measured_.start_ns * (1.0 + measured_.recommits + measured_.shared_loops);
    out += apart_s_ * (threads - 1) / threads;
  }
  return out;
}

void ScalingPredictor::learn(const StepTimes& on_two, bool solves) {
  constexpr int kTwo = 2;
  constexpr int kHalvings = 40;
  message_factor_ = 1.0;
  apart_s_ = 0.0;
  StepModel model = model_for(kTwo);
  // The inner iteration alone: its tasks, and what one thread does between them.
  StepModel inner = model;
  inner.commit_ns.assign(inner.commit_ns.size(), 0.0);
  const std::vector<double> messages = model.message_ns;
  const auto with_factor = [&](StepModel& own, double factor) -> StepModel& {
    for (std::size_t t = 0; t < messages.size(); ++t) own.message_ns[t] = factor * messages[t];
    return own;
  };
  const double between_s = std::max(measured_.serial_phases.iterate_s - measured_.iterate_s, 0.0);
  const double shared_s = solves ? std::min(measured_.shared_s, between_s) : 0.0;
  const double tasks_ns = 1e9 * (on_two.iterate_s - (between_s - shared_s) - shared_s / kTwo);
  const auto falls_short = [&](double factor) {
    return makespan_ns(with_factor(inner, factor), kTwo) < tasks_ns;
  };
  // Without neighbours on the other core there is nothing to learn of messages.
  const bool has_messages =
      makespan_ns(with_factor(inner, 1.0), kTwo) > makespan_ns(with_factor(inner, 0.0), kTwo);
  double low = has_messages ? 0.0 : 1.0, high = 1.0;
  while (has_messages && falls_short(high) && high < 1e6) high *= 2.0;
  for (int n = 0; n < kHalvings; ++n) {
    const double middle = 0.5 * (low + high);
    (falls_short(middle) ? low : high) = middle;
  }
  message_factor_ = high;
  const double all_s = on_two.begin_s + on_two.iterate_s + on_two.commit_s;
  const double more_s = all_s - step_s(with_factor(model, high), kTwo);
  apart_s_ = std::max(more_s, 0.0) * kTwo / (kTwo - 1);
}

ScalingModel ScalingPredictor::model() const {
  ScalingModel out = measured_;
  out.message_ns *= message_factor_;
  out.line_ns *= message_factor_;
  out.lines = out.line_ns > 0.0 ? 1e9 * apart_s_ / out.line_ns : 0.0;
  return out;
}

ScalingRow ScalingPredictor::predict(int threads) const {
  ScalingRow row;
  row.size = measured_.size;
  row.threads = threads;
  row.executor = measured_.executor;
  row.predicted = true;
  row.step_s = row.predicted_step_s = measured_.serial_step_s;
  row.execution = "predicted: serial";
  row.fell_back = threads > 1;
  if (runs_serially(measured_.executor, threads)) return row;
  const StepModel model = model_for(threads);
  const auto tasks = static_cast<int>(model.iterate_ns.size());
  const double step_s = this->step_s(model, threads);
  if (measured_.executor == ExecutorKind::automatic &&
      (tasks == 1 || step_s >= measured_.serial_step_s)) {
    return row;
  }
  row.step_s = row.predicted_step_s = step_s;
  row.tasks = tasks;
  row.imbalance = imbalance(model, threads);
  row.execution = "predicted";
  row.fell_back = false;
  return row;
}

}  // namespace portwave
