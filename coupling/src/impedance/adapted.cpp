// Impedances by a sweep from the leaves of a tree to its root, as the adaptors of a wave digital
// filter are matched. The nodes of the tree are parts and junctions, its edges scalar ports.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include <Eigen/Dense>

#include "impedance/impedance_rules.hpp"
#include "impedance/response_tools.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

using Matrix = Eigen::MatrixXd;

/// Parts, then junctions; an edge is a scalar port. One-port junctions are no nodes: they are ideal
/// ends, and absorbed into their part.
class PortGraph {
 public:
  explicit PortGraph(const PortMatches& matches)
      : matches_(matches), parts_(static_cast<int>(matches.system().parts().size())) {
    tree_.assign(matches.system().scalar_ports().size(), false);
  }

  const System& system() const { return matches_.system(); }
  int nodes() const { return parts_ + static_cast<int>(system().junctions().size()); }
  bool is_part(int node) const { return node < parts_; }
  const Junction& junction(int node) const { return system().junctions()[at(node - parts_)]; }
  int ports_of_part(int part) const {
    return static_cast<int>(matches_.responses().of(part).rows());
  }
  bool is_nonlinear(int node) const {
    return is_part(node) && !system().parts()[at(node)].component->capabilities().linear;
  }
  int other(int node, int port) const {
    return is_part(node) ? parts_ + matches_.junction_of(port)
                         : system().scalar_ports()[at(port)].part;
  }
  template <class Visit>
  void for_edges(int node, const Visit& visit) const {
    if (is_part(node)) {
      const int first = system().first_scalar_port(node);
      for (int port = first; port < first + ports_of_part(node); ++port) {
        if (!matches_.is_end(port)) visit(port);
      }
    } else if (junction(node).waves.size() > 1) {
      for (const int port : junction(node).waves) visit(port);
    }
  }

  /// The component of `start`, breadth first, over all edges (which makes the spanning tree) or
  /// those of the tree.
  struct Sweep {
    std::vector<int> order;
    std::vector<int> upward;  ///< by position in `order`: the edge towards the start, −1 there
  };
  Sweep sweep(int start, std::vector<int>& mark, int stamp, bool spanning) {
    Sweep out{{start}, {-1}};
    mark[at(start)] = stamp;
    for (std::size_t i = 0; i < out.order.size(); ++i) {
      const int node = out.order[i];
      for_edges(node, [&](int port) {
        const int next = other(node, port);
        if (mark[at(next)] == stamp || (!spanning && !tree_[at(port)])) return;
        mark[at(next)] = stamp;
        if (spanning) tree_[at(port)] = true;
        out.order.push_back(next);
        out.upward.push_back(port);
      });
    }
    return out;
  }

 private:
  const PortMatches& matches_;
  int parts_;
  std::vector<bool> tree_;
};

class AdaptedSweep {
 public:
  explicit AdaptedSweep(const PortMatches& matches)
      : matches_(matches), graph_(matches), gamma_(leaf_impedances(matches)) {}

  std::vector<double> adapted() {
    const int nodes = graph_.nodes();
    std::vector<bool> done(at(nodes), false);
    mark_.assign(at(nodes), -1);
    distance_.assign(at(nodes), 0);
    for (int node = 0; node < nodes; ++node) {
      if (done[at(node)] || (!graph_.is_part(node) && graph_.junction(node).waves.size() == 1)) {
        continue;
      }
      const PortGraph::Sweep found = graph_.sweep(node, mark_, stamp_++, true);
      for (const int member : found.order) done[at(member)] = true;
      const int root = choose_root(found.order);
      const PortGraph::Sweep tree = graph_.sweep(root, mark_, stamp_++, false);
      for (std::size_t i = tree.order.size(); i-- > 1;) adapt(tree.order[i], tree.upward[i]);
    }
    match_ends(matches_, gamma_);
    return std::move(gamma_);
  }

 private:
  /// Waves go from the leaves to the root and back, so the root is a node in the middle. A
  /// nonlinear part is preferred there if that costs little: at the root nothing needs to be
  /// adapted to it.
  int choose_root(const std::vector<int>& members) {
    constexpr int kNonlinearBonus = 2;
    std::vector<int> eccentricity(members.size(), 0);
    int far = farthest(members.front(), nullptr, members);
    far = farthest(far, &eccentricity, members);
    farthest(far, &eccentricity, members);
    std::size_t best = 0;
    const auto score = [&](std::size_t i) {
      return eccentricity[i] - (graph_.is_nonlinear(members[i]) ? kNonlinearBonus : 0);
    };
    for (std::size_t i = 1; i < members.size(); ++i) {
      if (score(i) != score(best) ? score(i) < score(best)
                                  : degree(members[i]) > degree(members[best])) {
        best = i;
      }
    }
    return members[best];
  }

  int degree(int node) const {
    int count = 0;
    graph_.for_edges(node, [&](int) { ++count; });
    return count;
  }

  /// The node farthest from `start` in the tree; raises `eccentricity`, by place in `members`.
  int farthest(int start, std::vector<int>* eccentricity, const std::vector<int>& members) {
    const PortGraph::Sweep sweep = graph_.sweep(start, mark_, stamp_++, false);
    distance_[at(start)] = 0;
    for (std::size_t i = 1; i < sweep.order.size(); ++i) {
      const int node = sweep.order[i];
      distance_[at(node)] = distance_[at(graph_.other(node, sweep.upward[i]))] + 1;
    }
    if (eccentricity != nullptr) {
      for (std::size_t i = 0; i < members.size(); ++i) {
        (*eccentricity)[i] = std::max((*eccentricity)[i], distance_[at(members[i])]);
      }
    }
    return sweep.order.back();
  }

  void adapt(int node, int upward) {
    const double seen =
        graph_.is_part(node) ? into_part(node, upward) : into_junction(node, upward);
    if (is_impedance(seen)) gamma_[at(upward)] = seen;
  }

  double into_junction(int node, int upward) const {
    const Junction& junction = graph_.junction(node);
    std::vector<double> impedance;
    int own = 0;
    for (const int port : junction.waves) {
      if (port == upward) own = static_cast<int>(impedance.size());
      impedance.push_back(gamma_[at(port)]);
    }
    return seen_impedance(junction.dirac, impedance, own);
  }

  /// What a port of a part sees when the others are closed.
  double into_part(int part, int own) const {
    const System& system = matches_.system();
    const Matrix& M = matches_.responses().of(part);
    if (M.rows() == 2) return into_part_of_two(part, own);
    const std::vector<Causality> causality =
        scalar_causalities(system.parts()[at(part)].component->signature());
    const int first = system.first_scalar_port(part);
    std::vector<Eigen::Index> closed;
    std::vector<double> inverse;
    for (int j = 0; j < M.rows(); ++j) {
      const int port = first + j;
      if (port == own) continue;
      const std::optional<double> closes = closing_of(port, causality[at(j)], M(j, j));
      if (!closes) continue;
      inverse.push_back(*closes);
      closed.push_back(j);
    }
    const double seen = closed_response(M, {own - first}, closed, inverse)(0, 0);
    if (!is_resolved(seen, M(own - first, own - first))) return 0.0;  // rigid, or free
    return match_of(seen, causality[at(own - first)]);
  }

  /// The same where there is one other.
  double into_part_of_two(int part, int own) const {
    const System& system = matches_.system();
    const Matrix& M = matches_.responses().of(part);
    const int first = system.first_scalar_port(part), open = own - first, other = 1 - open;
    Causality causality[2];
    for_scalar_ports(system.parts()[at(part)].component->signature(),
                     [&](int j, Causality value) { causality[j] = value; });
    double seen = M(open, open);
    if (const auto closes = closing_of(first + other, causality[other], M(other, other))) {
      // As lu_solve of one row has it.
      seen -= M(open, other) * (M(other, open) * (1.0 / (M(other, other) + *closes)));
    }
    if (!is_resolved(seen, M(open, open))) return 0.0;
    return match_of(seen, causality[open]);
  }
  /// 1/g of what closes a port; empty where the port is as good as open. `response`: its own.
  std::optional<double> closing_of(int port, Causality causality, double response) const {
    if (!matches_.is_end(port)) return closing(gamma_[at(port)], causality);
    const DiracStructure& end = graph_.system().junctions()[at(matches_.junction_of(port))].dirac;
    const bool holds_effort = end.E(0, 0) != 0.0;
    const bool holds_input = holds_effort == (causality == Causality::effort_in);
    if (holds_input || response == 0.0) return std::nullopt;
    return 0.0;
  }

  const PortMatches& matches_;
  PortGraph graph_;
  std::vector<double> gamma_;
  std::vector<int> mark_;
  std::vector<int> distance_;
  int stamp_ = 0;
};

}  // namespace

std::vector<double> adapted_impedances(const PortMatches& matches) {
  return AdaptedSweep(matches).adapted();
}

}  // namespace portwave
