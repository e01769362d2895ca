#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "portwave/coupling/waves/wave_discretisation.hpp"

namespace portwave {
namespace {

std::size_t own_count(const System& system) {
  return system.slice() != nullptr ? static_cast<std::size_t>(system.slice()->own_parts)
                                   : system.parts().size();
}

/// Parts outside a slice come after those of their island.
std::vector<int> with_outside(const System& system, std::vector<int> order) {
  const auto count = static_cast<int>(system.parts().size());
  if (order.size() == system.parts().size()) return order;
  for (int part = static_cast<int>(order.size()); part < count; ++part) order.push_back(part);
  std::stable_sort(order.begin(), order.end(), [&](int i, int j) {
    return system.island_of_part(i) < system.island_of_part(j);
  });
  return order;
}

/// Parts and junctions as a bipartite graph, both directions compressed. Those outside a slice are left
/// out.
class CouplingGraph {
 public:
  explicit CouplingGraph(const System& system) : system_(system), parts_(own_count(system)) {
    begin_.assign(parts_ + 1, 0);
    for (const Junction& junction : system.junctions()) {
      for (const int port : junction.waves) {
        if (part_at(port) < parts_) ++begin_[part_at(port) + 1];
      }
    }
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    junction_.resize(static_cast<std::size_t>(begin_.back()));
    std::vector<int> fill(begin_.begin(), begin_.end() - 1);
    for (std::size_t j = 0; j < system.junctions().size(); ++j) {
      for (const int port : system.junctions()[j].waves) {
        if (part_at(port) >= parts_) continue;
        junction_[static_cast<std::size_t>(fill[part_at(port)]++)] = static_cast<int>(j);
      }
    }
  }

  std::size_t part_at(int scalar_port) const {
    return static_cast<std::size_t>(
        system_.scalar_ports()[static_cast<std::size_t>(scalar_port)].part);
  }

  /// Breadth first from `start`: every part it reaches, appended. `seen` and `seen_junction` are
  /// marked with `mark`.
  void walk(int start, int mark, std::vector<int>& seen, std::vector<int>& seen_junction,
            std::vector<int>& out) const {
    std::size_t next = out.size();
    seen[static_cast<std::size_t>(start)] = mark;
    out.push_back(start);
    for (; next < out.size(); ++next) {
      const auto part = static_cast<std::size_t>(out[next]);
      for (int e = begin_[part]; e < begin_[part + 1]; ++e) {
        const auto j = static_cast<std::size_t>(junction_[static_cast<std::size_t>(e)]);
        if (seen_junction[j] == mark) continue;
        seen_junction[j] = mark;
        for (const int port : system_.junctions()[j].waves) {
          const std::size_t other = part_at(port);
          if (other >= parts_ || seen[other] == mark) continue;
          seen[other] = mark;
          out.push_back(static_cast<int>(other));
        }
      }
    }
  }

  /// Σ over junctions of (largest − smallest position).
  std::int64_t stretch(const std::vector<int>& position) const {
    std::int64_t sum = 0;
    for (const Junction& junction : system_.junctions()) {
      int low = std::numeric_limits<int>::max(), high = -1;
      for (const int port : junction.waves) {
        if (part_at(port) >= parts_) continue;
        low = std::min(low, position[part_at(port)]);
        high = std::max(high, position[part_at(port)]);
      }
      if (high >= 0) sum += high - low;
    }
    return sum;
  }

 private:
  const System& system_;
  std::size_t parts_;
  std::vector<int> begin_;
  std::vector<int> junction_;
};

std::vector<int> positions_in(const std::vector<int>& order) {
  std::vector<int> position(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    position[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  }
  return position;
}

}  // namespace

std::vector<int> locality_order(const System& system) {
  const std::size_t count = own_count(system);
  std::vector<int> given(count);
  std::iota(given.begin(), given.end(), 0);
  std::stable_sort(given.begin(), given.end(), [&](int i, int j) {
    return system.island_of_part(i) < system.island_of_part(j);
  });
  const CouplingGraph graph(system);
  std::vector<int> walked, probe;
  std::vector<int> seen(count, 0), seen_junction(system.junctions().size(), 0);
  int mark = 0, island = -1;
  for (const int part : given) {  // the first part of every island
    if (system.island_of_part(part) == island) continue;
    island = system.island_of_part(part);
    probe.clear();
    graph.walk(part, ++mark, seen, seen_junction, probe);
    graph.walk(probe.back(), ++mark, seen, seen_junction, walked);
  }
  // Within a slice not all of an island need be reached.
  const bool is_walk_better = walked.size() == count && graph.stretch(positions_in(walked)) <
                                                            graph.stretch(positions_in(given));
  return with_outside(system, is_walk_better ? std::move(walked) : std::move(given));
}

}  // namespace portwave
