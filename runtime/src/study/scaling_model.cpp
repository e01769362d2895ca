#include "study/scaling_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "parallel/runner.hpp"
#include "parallel/task_graph.hpp"
#include "step/stepper_options.hpp"

namespace portwave {
namespace {

void multiply(std::vector<double>& values, double factor) {
  for (double& value : values) value *= factor;
}

WaveDiscretisation discretise(const Scenario& scenario, const Grain& grain) {
  return {scenario.system, scenario.options.step_s,
          impedance_by_port(scenario.system, scenario.options.method.waves()), grouping_for(grain)};
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

ScalingPredictor::ScalingPredictor(const Scenario& scenario, const ScalingOptions& options,
                                   const ScalingModel& measured)
    : stepped_(scenario),
      options_(options),
      measured_(measured),
      budget_(iterations_of(scenario.options.method)),
      waits_(has_tolerance(scenario.options.method)) {
  if (scenario.options.method.couples_by_waves()) {
    waves_.emplace(discretise(stepped_.get(), options.grain));
    model_waves();
  } else {
    model_blocks(scenario.system);
  }
}

void ScalingPredictor::model_waves() {
  costs_ = measured_costs(*waves_, waves_->initial_record().data());
  scale_costs(costs_, whole_island_groups(*waves_, costs_),
              std::max(static_cast<int>(std::round(measured_.iterations)), 0),
              measured_.serial_phases.iterate_s,
              measured_.serial_phases.commit_s - measured_.commit_tail_s);
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
  multiply(blocks_.iterate_ns, 1e9 * measured_.serial_phases.iterate_s / std::max(states, 1.0));
  blocks_.commit_ns.assign(blocks_.iterate_ns.size(), 0.0);
  blocks_.neighbours.resize(blocks_.iterate_ns.size());
}

StepModel ScalingPredictor::model_for(int threads) const {
  if (!waves_) return blocks_;
  const Partition partition = make_partition(*waves_, costs_, options_.grain, threads, budget_);
  StepModel model = step_model(*waves_, costs_, partition,
                               static_cast<int>(std::max(std::round(measured_.iterations), 0.0)));
  model.phase_ns = measured_.phase_ns;
  if (waits_) {
    for (const Partition::Task& task : partition.tasks)
      model.waits_with.push_back(task.island_group);
  }
  return model;
}

ScalingRow ScalingPredictor::partition_of(int threads) const {
  ScalingRow row;
  row.threads = threads;
  if (runs_serially(options_.executor, threads)) return row;
  const StepModel model = model_for(threads);
  row.tasks = static_cast<int>(model.iterate_ns.size());
  row.imbalance = imbalance(model, threads);
  return row;
}

ScalingRow ScalingPredictor::predict(int threads) const {
  ScalingRow row;
  row.size = measured_.size;
  row.threads = threads;
  row.predicted = true;
  row.step_s = row.predicted_step_s = measured_.serial_step_s;
  row.execution = "predicted: serial";
  row.fell_back = threads > 1;
  if (runs_serially(options_.executor, threads)) return row;
  const StepModel model = model_for(threads);
  const StepTimes& serial = measured_.serial_phases;
  // Between steps and in reading clocks.
  const double rest_s =
      std::max(measured_.serial_step_s - serial.begin_s - serial.iterate_s - serial.commit_s, 0.0);
  const double step_s =
      serial.begin_s + rest_s + measured_.commit_tail_s + 1e-9 * makespan_ns(model, threads);
  const auto tasks = static_cast<int>(model.iterate_ns.size());
  if (options_.executor == ExecutorKind::automatic &&
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
