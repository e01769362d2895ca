#include "parallel/step_profiler.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace portwave {
namespace {

std::int64_t nanoseconds(Clock::time_point time) { return time.time_since_epoch().count(); }

void add_to(ProfileTask& task, ProfileEvent::Kind kind, double time_s) {
  ++task.events;
  if (kind == ProfileEvent::Kind::iterate) task.iterate_s += time_s;
  if (kind == ProfileEvent::Kind::exchange) task.exchange_s += time_s;
  if (kind == ProfileEvent::Kind::commit) task.commit_s += time_s;
}

void describe(ProfileTask& task, const WaveDiscretisation& waves, const Partition::Task& cut) {
  for (const BatchRange& range : cut.ranges) {
    const std::vector<int>& parts = waves.batch(range.batch).parts;
    task.parts += range.lanes.last - range.lanes.first;
    if (!task.first_part.empty()) continue;
    const int first = parts[static_cast<std::size_t>(range.lanes.first)];
    task.first_part = waves.system().parts()[static_cast<std::size_t>(first)].name;
  }
}

}  // namespace

double Profile::working_s() const {
  double sum = 0.0;
  for (const ProfileWorker& worker : workers) sum += worker.working_s();
  return sum;
}

double Profile::waiting_s() const {
  double sum = 0.0;
  for (const ProfileWorker& worker : workers) sum += worker.waiting_s;
  return sum;
}

double Profile::imbalance() const {
  double largest = 0.0;
  for (const ProfileWorker& worker : workers) largest = std::max(largest, worker.working_s());
  const double mean = workers.empty() ? 0.0 : working_s() / static_cast<double>(workers.size());
  return mean > 0.0 ? largest / mean : 1.0;
}

StepProfiler::StepProfiler(ProfileOptions options, int workers) : options_(options) {
  options_.most_events = std::max<std::size_t>(options_.most_events, 1000);
  if (workers > 0) trace_ = std::make_unique<StepTrace>(workers);
  if (trace_) sums_.workers.resize(static_cast<std::size_t>(trace_->workers()));
}

void StepProfiler::begin(std::int64_t step) {
  if (trace_ && is_sampled(step)) trace_->begin();
}

void StepProfiler::keep(const ProfileEvent& event) { sums_.events.push_back(event); }

void StepProfiler::thin() {
  every_ *= 2;
  std::erase_if(sums_.events,
                [this](const ProfileEvent& event) { return !is_sampled(event.step); });
}

void StepProfiler::take_tasks(std::int64_t step, const Times& times) {
  trace_->end();
  const double span_s = seconds(times.end - times.ready);
  const std::int64_t ready_ns = nanoseconds(times.ready);
  std::int64_t last_ns = ready_ns;
  for (int w = 0; w < trace_->workers(); ++w) {
    ProfileWorker& worker = sums_.workers[static_cast<std::size_t>(w)];
    double working_s = 0.0;
    for (const StepTrace::Event& event : trace_->events(w)) {
      const double time_s = 1e-9 * static_cast<double>(event.end_ns - event.begin_ns);
      working_s += time_s;
      last_ns = std::max(last_ns, event.end_ns);
      if (event.kind == ProfileEvent::Kind::iterate) worker.iterate_s += time_s;
      if (event.kind == ProfileEvent::Kind::exchange) worker.exchange_s += time_s;
      if (event.kind == ProfileEvent::Kind::commit) worker.commit_s += time_s;
      ProfileTask& task = tasks_[event.task];
      task.number = event.task;
      add_to(task, event.kind, time_s);
      keep({1e-9 * static_cast<double>(event.begin_ns - origin_ns_),
            1e-9 * static_cast<double>(event.end_ns - origin_ns_), step, w, event.task,
            event.kind});
    }
    worker.waiting_s += std::max(0.0, span_s - working_s);
    sums_.dropped_events += trace_->dropped(w);
  }
  sums_.tasks_s += 1e-9 * static_cast<double>(last_ns - ready_ns);
}

void StepProfiler::end(std::int64_t step, const Times& times, int iterations) {
  ++sums_.steps;
  if (is_sampled(step)) {
    ++sums_.sampled;
    sums_.iterations += iterations;
  } else {
    ++others_;
  }
  take(step, times);
}

void StepProfiler::end_piece(std::int64_t step, const Times& times) { take(step, times); }

void StepProfiler::take(std::int64_t step, const Times& times) {
  const double step_s = seconds(times.end - times.start);
  const double before_s = is_after_step_ ? seconds(times.start - last_end_) : 0.0;
  last_end_ = times.end;
  is_after_step_ = true;
  if (!is_sampled(step)) {
    other_s_ += step_s;
    return;
  }
  if (!std::exchange(has_origin_, true)) origin_ns_ = nanoseconds(times.start);
  sums_.step_s += step_s;
  sums_.between_s += before_s;
  sums_.begin_s += seconds(times.ready - times.start);
  sums_.inner_s += seconds(times.inner_end - times.ready);
  sums_.ledger_s += seconds(times.end - times.inner_end);
  const auto since = [this](Clock::time_point time) {
    return 1e-9 * static_cast<double>(nanoseconds(time) - origin_ns_);
  };
  using Kind = ProfileEvent::Kind;
  keep({since(times.start), since(times.ready), step, 0, 0, Kind::begin});
  keep({since(times.ready), since(times.inner_end), step, 0, 0, Kind::inner});
  keep({since(times.inner_end), since(times.end), step, 0, 0, Kind::ledger});
  if (trace_) take_tasks(step, times);
  while (sums_.events.size() > options_.most_events) thin();
  // What was done here is no time between steps.
  last_end_ = Clock::now();
}

Profile StepProfiler::profile(const WaveDiscretisation* waves, const LaneCosts* costs,
                              const Partition* tasks, const Partition* serial) const {
  Profile out = sums_;
  out.shared_s = loops_.sum_s;
  out.shared_loops = loops_.count;
  if (others_ > 0) out.other_step_s = other_s_ / static_cast<double>(others_);
  for (const auto& [number, task] : tasks_) {
    out.tasks.push_back(task);
    const Partition* const of = number < 0 ? serial : tasks;
    const auto index = static_cast<std::size_t>(number < 0 ? -1 - number : number);
    if (waves != nullptr && of != nullptr && index < of->tasks.size()) {
      describe(out.tasks.back(), *waves, of->tasks[index]);
    }
  }
  std::ranges::stable_sort(
      out.tasks, [](const ProfileTask& a, const ProfileTask& b) { return a.all_s() > b.all_s(); });
  if (waves == nullptr || costs == nullptr) return out;
  for (std::size_t i = 0; i < waves->batches().size(); ++i) {
    const std::vector<int>& parts = waves->batches()[i].parts;
    const auto count = static_cast<double>(parts.size());
    const Part& first = waves->system().parts()[static_cast<std::size_t>(parts.front())];
    out.batches.push_back({first.component->signature().type, static_cast<int>(parts.size()),
                           1e-9 * count * costs->scatter_ns[i],
                           1e-9 * count * costs->advance_ns[i]});
  }
  return out;
}

}  // namespace portwave
