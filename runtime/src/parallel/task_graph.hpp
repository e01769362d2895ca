#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "parallel/channel.hpp"
#include "parallel/task.hpp"

namespace portwave {

/// The tasks of a system and the channels between them.
class TaskGraph {
 public:
  TaskGraph(const WaveDiscretisation& waves, const Partition& partition);

  int size() const { return static_cast<int>(tasks_.size()); }
  Task& task(int i) { return *tasks_[static_cast<std::size_t>(i)]; }
  const Task& task(int i) const { return *tasks_[static_cast<std::size_t>(i)]; }
  std::size_t bytes() const;
  /// A channel from one task to another. The order of links does not depend on the machine.
  struct Link {
    int from = 0, to = 0;
    Channel* channel = nullptr;
    std::vector<int> offsets;  ///< of the waves in a message, in a wave array of the whole system
  };
  std::span<const Link> links() const { return links_; }
  /// Takes over the junctions and step maps of `waves` as they are now. `bind` must follow.
  void compile();
  /// Makes all tasks ready for steps with these arrays.
  void bind(const StepArrays& s) {
    for (const auto& task : tasks_) task->bind(s, numbers_);
  }
  /// Whether a task is bound as a small island, which keeps places of coefficients.
  bool keeps_places() const {
    return std::ranges::any_of(tasks_, [](const auto& task) { return task->keeps_places(); });
  }

 private:
  friend class TaskBuilder;

  const WaveDiscretisation& waves_;
  std::vector<std::unique_ptr<Task>> tasks_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<Link> links_;
  std::vector<int> numbers_;  // scratch of `compile` and `bind`: −1 for every offset
};

}  // namespace portwave
