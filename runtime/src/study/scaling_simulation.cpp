#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <stdexcept>
#include <utility>

#include "portwave/runtime/study/scaling.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

/// Phases 0 … K − 1 are the iterations, K is the commit.
class Simulation {
 public:
  Simulation(const StepModel& model, int workers)
      : model_(model),
        workers_(at(std::max(workers, 1))),
        idle_(std::max(workers, 1)),
        tasks_(model.iterate_ns.size()) {
    for (std::size_t t = 0; t < tasks_.size(); ++t) ready_.push({0, static_cast<int>(t)});
    if (model.waits_with.empty()) return;
    const int groups = 1 + *std::max_element(model.waits_with.begin(), model.waits_with.end());
    groups_.resize(at(groups));
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      groups_[at(model.waits_with[t])].members.push_back(static_cast<int>(t));
    }
  }

  double run() {
    for (;;) {
      while (idle_ > 0 && !ready_.empty()) start();
      if (running_.empty()) break;
      now_ = running_.top().first;
      while (!running_.empty() && running_.top().first == now_) {
        const int task = running_.top().second;
        running_.pop();
        ++idle_;
        finish(task);
      }
    }
    for (const Task& task : tasks_) {
      if (task.done <= model_.iterations) {
        throw std::invalid_argument("the neighbours of the step model are not mutual");
      }
    }
    return now_;
  }

 private:
  struct Task {
    int done = 0;       ///< phases; neighbours are never more than one apart
    int ahead = 0;      ///< neighbours that have done one more
    int waiting = 0;    ///< neighbours that have not done as many
    bool held = false;  ///< its group has not done as many
  };
  struct Group {
    std::vector<int> members;
    int arrived = 0;
  };

  void start() {
    const auto [phase, task] = ready_.top();
    ready_.pop();
    --idle_;
    const bool is_commit = phase == model_.iterations;
    const double work = is_commit ? model_.commit_ns[at(task)] : model_.iterate_ns[at(task)];
    const double aside = model_.neighbours[at(task)].empty() ? 0.0 : model_.phase_ns;
    running_.push({now_ + work + aside + messages_ns(task), task});
  }

  /// Reading the messages that come from other cores.
  double messages_ns(int task) const {
    if (model_.message_ns.empty()) return 0.0;
    const auto worker = [&](int t) { return at(t) * workers_ / tasks_.size(); };
    double sum = 0.0;
    for (const int n : model_.neighbours[at(task)]) {
      if (worker(n) != worker(task)) sum += model_.message_ns[at(n)];
    }
    return sum;
  }

  void finish(int index) {
    Task& task = tasks_[at(index)];
    ++task.done;
    if (task.done > model_.iterations) return;  // committed: nobody waits for that
    const std::vector<int>& neighbours = model_.neighbours[at(index)];
    task.waiting = static_cast<int>(neighbours.size()) - task.ahead;
    task.ahead = 0;
    for (const int n : neighbours) {
      Task& neighbour = tasks_[at(n)];
      if (neighbour.done == task.done) {
        if (--neighbour.waiting == 0) release(n);
      } else {
        ++neighbour.ahead;
      }
    }
    if (!groups_.empty()) {
      task.held = true;
      Group& group = groups_[at(model_.waits_with[at(index)])];
      if (++group.arrived == static_cast<int>(group.members.size())) {
        group.arrived = 0;
        for (const int member : group.members) {
          tasks_[at(member)].held = false;
          // A member with neighbours to wait for is released by the last of them.
          if (member != index) release(member);
        }
      }
    }
    release(index);
  }

  void release(int index) {
    const Task& task = tasks_[at(index)];
    if (task.waiting == 0 && !task.held) ready_.push({task.done, index});
  }

  using Ready = std::pair<int, int>;       // phase, task
  using Running = std::pair<double, int>;  // end, task
  template <class T>
  using Least = std::priority_queue<T, std::vector<T>, std::greater<>>;

  const StepModel& model_;
  std::size_t workers_;
  int idle_;
  std::vector<Task> tasks_;
  std::vector<Group> groups_;
  Least<Ready> ready_;
  Least<Running> running_;
  double now_ = 0.0;
};

double cost_of(const StepModel& model, std::size_t task) {
  return model.iterations * model.iterate_ns[task] + model.commit_ns[task];
}

}  // namespace

double work_ns(const StepModel& model) {
  double sum = 0.0;
  for (std::size_t t = 0; t < model.iterate_ns.size(); ++t) sum += cost_of(model, t);
  return sum;
}

double makespan_ns(const StepModel& model, int workers) { return Simulation(model, workers).run(); }

double imbalance(const StepModel& model, int workers) {
  const std::size_t count = model.iterate_ns.size();
  const auto shares = static_cast<std::size_t>(std::max(workers, 1));
  double largest = 0.0;
  for (std::size_t w = 0; w < shares; ++w) {
    double share = 0.0;
    for (std::size_t t = count * w / shares; t < count * (w + 1) / shares; ++t) {
      share += cost_of(model, t);
    }
    largest = std::max(largest, share);
  }
  const double mean = work_ns(model) / static_cast<double>(shares);
  return mean > 0.0 ? largest / mean : 1.0;
}

}  // namespace portwave
