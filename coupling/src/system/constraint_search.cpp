#include "system/constraint_search.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"
#include "portwave/subsystems/matrices/sparse_rank.hpp"

namespace portwave {

StructureThere::StructureThere(const Subsystem& part, std::span<const double> x) {
  if (part.constant_structure()) {
    constant_ = &part.structure();
    return;
  }
  own_ = part.structure();
  part.structure_at(x.data(), *own_);
}

const DescriptorPortHamiltonian* descriptor_of(const Part& part) {
  const Subsystem* const physics = part.port_hamiltonian();
  if (physics == nullptr || physics->linear_form().E == nullptr) return nullptr;
  return dynamic_cast<const DescriptorPortHamiltonian*>(physics);
}

namespace {

/// Calls `visit(row, column, value)` for the entries of M between ports.
template <class Visit>
void for_ports(const SparseMatrix& M, int ports, const Visit& visit) {
  for (int j = 0; j < ports; ++j) {
    for (SparseMatrix::InnerIterator it(M, j); it && it.row() < ports; ++it) {
      visit(static_cast<int>(it.row()), j, it.value());
    }
  }
}

int port_count_of(const Part& part) { return part.component->signature().wave_size(); }

}  // namespace

PortBranch branch_of(const System& system, int part, int port, const InputOf& input) {
  const Subsystem& physics = *system.parts()[at(part)].port_hamiltonian();
  if (!input) return PortBranch::by_law;
  std::vector<double> external(at(physics.signature().input_size()));
  for (int j = 0; j < static_cast<int>(external.size()); ++j) external[at(j)] = input(part, j);
  return physics.port_branch(port, external.data());
}

VaryingPart::VaryingPart(int part, const Subsystem& physics, const Structure& there)
    : part_(part), scratch_(there) {
  for (const SparseMatrix* M : {&there.S, &there.N}) {
    for_ports(*M, physics.signature().wave_size(),
              [&](int, int, double value) { was_zero_.push_back(value == 0.0 ? 1 : 0); });
  }
}

bool VaryingPart::has_changed(const Subsystem& physics, std::span<const double> x) const {
  physics.structure_at(x.data(), scratch_);
  std::size_t place = 0;
  bool changed = false;
  for (const SparseMatrix* M : {&scratch_.S, &scratch_.N}) {
    for_ports(*M, physics.signature().wave_size(), [&](int, int, double value) {
      changed = changed || place >= was_zero_.size() || (value == 0.0) != (was_zero_[place] != 0);
      ++place;
    });
  }
  return changed;
}

namespace {

class Search {
 public:
  Search(const System& system, const StateOf& state, const InputOf& input)
      : system_(system), state_(state), input_(input), effort_in_(system.scalar_ports().size()) {}

  FoundConstraints search() {
    find_seeds();
    if (seed_junctions_.empty() && seed_parts_.empty()) return std::move(found_);
    connect();
    for (const int junction : seed_junctions_) grow_from_junction(junction);
    for (const int part : seed_parts_) {
      for (int j = 0; j < port_count_of(system_.parts()[at(part)]); ++j) {
        grow_from_junction(junction_of_port_[at(system_.first_scalar_port(part) + j)]);
      }
    }
    assemble();
    translate(null_vectors(rows_, columns_, entries_));
    return std::move(found_);
  }

 private:
  /// A part as the equations of ports see it.
  struct Local {
    /// y = … + D u + C w and, of descriptor parts, 0 = … + B u + A w.
    std::vector<std::vector<std::pair<int, double>>> D;  // by port
    SparseMatrix C, B, A;
    int first_column = 0, first_row = 0;
    bool has_outputs = false;
    bool is_descriptor = false;
  };

  // Where ties may be. With every port's output given by the states, u = K y with a skew K follows from
  // the joints, or not: such a joint is a seed. Symmetric feedthrough keeps that so, for I − K S has an
  // inverse for every S ⪰ 0; skew feedthrough may undo it, and so may algebraic equations.
  void find_seeds() {
    for (int i = 0; i < static_cast<int>(system_.parts().size()); ++i) {
      const Part& part = system_.parts()[at(i)];
      int scalar = system_.first_scalar_port(i);
      for (const Port& port : part.component->signature().ports) {
        for (int c = 0; c < port.dimension; ++c, ++scalar) {
          effort_in_[at(scalar)] = port.causality == Causality::effort_in ? 1 : 0;
        }
      }
      if (may_tie(part)) seed_parts_.push_back(i);
      note_branches(i);
    }
    const auto junctions = system_.junctions();
    for (int j = 0; j < static_cast<int>(junctions.size()); ++j) {
      if (!is_loose_end(junctions[at(j)]) && !determines_inputs(junctions[at(j)])) {
        seed_junctions_.push_back(j);
      }
    }
  }

  /// An open port gives no flow whatever its effort, as its causality says; a shorted one takes every flow, and
  /// gives no effort.
  void note_branches(int number) {
    const Subsystem* const physics = system_.parts()[at(number)].port_hamiltonian();
    if (physics == nullptr || !physics->has_vertical_laws()) return;
    for (int j = 0; j < physics->signature().wave_size(); ++j) {
      const PortBranch branch = branch_of(system_, number, j, input_);
      if (branch == PortBranch::by_law) continue;
      found_.switched.push_back({number, j, branch});
      char& takes_effort = effort_in_[at(system_.first_scalar_port(number) + j)];
      if (branch == PortBranch::shorted) takes_effort = takes_effort != 0 ? 0 : 1;
    }
  }

  static bool may_tie(const Part& part) {
    const Subsystem* const physics = part.port_hamiltonian();
    if (physics == nullptr) return false;
    const SparseMatrix& N = physics->structure().N;
    bool ties = false;
    if (N.nonZeros() > 0) {
      for_ports(N, port_count_of(part), [&](int, int, double value) { ties |= value != 0.0; });
    }
    const auto* const descriptor = descriptor_of(part);
    return ties || (descriptor != nullptr && descriptor->analysis().algebraic > 0);
  }

  /// Of a slice: what another rank joins.
  bool is_loose_end(const Junction& junction) const {
    return system_.slice() != nullptr && junction.waves.size() == 1 &&
           !system_.slice()->is_own(system_.scalar_ports()[at(junction.waves.front())].part);
  }

  /// Of a slice: the states of parts elsewhere are not.
  bool is_known(int part) const {
    return system_.slice() == nullptr || system_.slice()->is_own(part);
  }

  bool determines_inputs(const Junction& junction) {
    const DiracStructure& d = junction.dirac;
    const auto k = junction.waves.size();
    const auto input = [&](int row, std::size_t port) {
      return (effort_in_[at(junction.waves[port])] != 0 ? d.E : d.F)(row, static_cast<int>(port));
    };
    if (k == 1) return input(0, 0) != 0.0;
    if (k == 2) {
      const double one = input(0, 0) * input(1, 1), other = input(0, 1) * input(1, 0);
      return std::abs(one - other) > 1e-12 * (std::abs(one) + std::abs(other));
    }
    std::uint64_t causality = 0;
    for (const int port : junction.waves) causality = 2 * causality + at(effort_in_[at(port)]);
    const auto determine = [&] {
      Eigen::MatrixXd M(k, k);
      for (std::size_t j = 0; j < k; ++j) {
        for (std::size_t i = 0; i < k; ++i) {
          M(static_cast<int>(i), static_cast<int>(j)) = input(static_cast<int>(i), j);
        }
      }
      return SparseRank(M.sparseView(0.0, 0.0)).is_regular();
    };
    if (k > 64) return determine();
    const auto [known, is_new] = known_.try_emplace({junction.shared.get(), causality}, false);
    if (is_new) known->second = determine();
    return known->second;
  }

  void connect() {
    junction_of_port_.assign(effort_in_.size(), -1);
    const auto junctions = system_.junctions();
    for (int j = 0; j < static_cast<int>(junctions.size()); ++j) {
      for (const int port : junctions[at(j)].waves) junction_of_port_[at(port)] = j;
    }
    is_reached_.assign(junctions.size(), 0);
  }

  Local& local(int part) {
    const auto [place, is_new] = locals_.try_emplace(part);
    if (is_new) make_local(part, place->second);
    return place->second;
  }

  void make_local(int number, Local& own) {
    const Part& part = system_.parts()[at(number)];
    const int p = port_count_of(part);
    own.D.resize(at(p));
    const Subsystem* const physics = part.port_hamiltonian();
    if (physics == nullptr) {
      for (int j = 0; j < p; ++j) own.D[at(j)].emplace_back(j, 1.0);
      return;
    }
    if (physics->has_vertical_laws()) {  // a diode may carry either branch: it ties nothing
      for (int j = 0; j < p; ++j) {
        if (branch_of(system_, number, j, input_) == PortBranch::by_law) {
          own.D[at(j)].emplace_back(j, 1.0);
        }
      }
      return;
    }
    const StructureThere structure(*physics, state_(number));
    const Structure& there = structure.get();
    own.has_outputs = !physics->constant_structure() || there.G.nonZeros() > 0 ||
                      there.P.nonZeros() > 0 || there.inputs() > p;
    // Of a resistance only S ⪰ 0 and its kernel matter: a switch that leaks beside a diode that conducts would, with their
    // conductances, be a short circuit to rounding.
    double resistance = 0.0;
    for_ports(there.S, p,
              [&](int, int, double value) { resistance = std::max(resistance, std::abs(value)); });
    for (const SparseMatrix* M : {&there.S, &there.N}) {
      const double unit = M == &there.S ? resistance : 1.0;
      for_ports(*M, p, [&](int row, int column, double value) {
        if (value != 0.0) own.D[at(row)].emplace_back(column, value / unit);
      });
    }
    for (int j = 0; physics->has_port_laws() && j < p; ++j) own.D[at(j)].emplace_back(j, 1.0);
    if (!physics->constant_structure()) {
      VaryingPart varying(number, *physics, there);
      if (varying.is_one()) found_.varying.push_back(std::move(varying));
    }
    const auto* const descriptor = descriptor_of(part);
    if (descriptor == nullptr || descriptor->analysis().algebraic == 0) return;
    own.is_descriptor = true;
    const DescriptorForm& form = descriptor->form();
    const SparseMatrix& V = descriptor->algebraic().kernel();
    const SparseMatrix Zt = descriptor->algebraic().equations().transpose();
    const SparseMatrix ports = form.B.leftCols(p);
    own.A = clean_product(clean_product(Zt, descriptor_rate(form.J, form.R, form.Q)), V);
    own.B = clean_product(Zt, ports);
    own.C = clean_product(SparseMatrix(ports.transpose()), clean_product(form.Q, V));
  }

  /// All joints that depend on one another algebraically, from one of them on.
  void grow_from_junction(int seed) {
    if (seed < 0 || is_reached_[at(seed)] != 0) return;
    std::vector<int> reached{seed}, parts;
    is_reached_[at(seed)] = 1;
    bool is_whole = true;
    const auto reach_port = [&](int port) {
      const int junction = junction_of_port_[at(port)];
      if (junction < 0 || is_reached_[at(junction)] != 0) return;
      is_reached_[at(junction)] = 1;
      reached.push_back(junction);
    };
    for (std::size_t i = 0; i < reached.size(); ++i) {
      const Junction& junction = system_.junctions()[at(reached[i])];
      is_whole = is_whole && !is_loose_end(junction);
      for (const int port : junction.waves) {
        const int part = system_.scalar_ports()[at(port)].part;
        const int first = system_.first_scalar_port(part);
        is_whole = is_whole && is_known(part);
        const Local& own = local(part);
        if (own.is_descriptor) {
          for (std::size_t j = 0; j < own.D.size(); ++j) reach_port(first + static_cast<int>(j));
          parts.push_back(part);
          continue;
        }
        for (const auto& [other, value] : own.D[at(port - first)]) reach_port(first + other);
        for (std::size_t j = 0; j < own.D.size(); ++j) {
          const auto sees = [&](const auto& entry) { return entry.first == port - first; };
          if (std::ranges::any_of(own.D[j], sees)) reach_port(first + static_cast<int>(j));
        }
      }
    }
    if (!is_whole) return;
    junctions_.insert(junctions_.end(), reached.begin(), reached.end());
    std::ranges::sort(parts);
    parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
    descriptors_.insert(descriptors_.end(), parts.begin(), parts.end());
  }

  void assemble() {
    column_of_port_.assign(effort_in_.size(), -1);
    for (const int j : junctions_) {
      for (const int port : system_.junctions()[at(j)].waves) {
        column_of_port_[at(port)] = columns_++;
        ports_.push_back(port);
      }
      row_of_junction_.push_back(rows_);
      rows_ += system_.junctions()[at(j)].dirac.size();
    }
    equations_from_ = rows_;
    unknowns_from_ = columns_;
    for (const int part : descriptors_) {
      Local& own = local(part);
      own.first_row = rows_;
      own.first_column = columns_;
      rows_ += static_cast<int>(own.A.rows());
      columns_ += static_cast<int>(own.A.cols());
      const int first = system_.first_scalar_port(part);
      append_block(own.A, own.first_row, own.first_column, entries_);
      for (int j = 0; j < own.B.outerSize(); ++j) {
        for (SparseMatrix::InnerIterator it(own.B, j); it; ++it) {
          entries_.emplace_back(own.first_row + static_cast<int>(it.row()),
                                column_of_port_[at(first + j)], it.value());
        }
      }
      own.C = SparseMatrix(own.C.transpose());  // columns are ports
    }
    for (std::size_t i = 0; i < junctions_.size(); ++i) {
      add_joint(system_.junctions()[at(junctions_[i])], row_of_junction_[i]);
    }
  }

  void add_joint(const Junction& junction, int first_row) {
    const DiracStructure& d = junction.dirac;
    for (int l = 0; l < d.size(); ++l) {
      const int port = junction.waves[at(l)];
      const int part = system_.scalar_ports()[at(port)].part;
      const int first = system_.first_scalar_port(part);
      const bool effort_in = effort_in_[at(port)] != 0;
      const Local& own = local(part);
      for (int i = 0; i < d.size(); ++i) {
        const double of_input = (effort_in ? d.E : d.F)(i, l);
        const double of_output = (effort_in ? d.F : d.E)(i, l);
        if (of_input != 0.0) {
          entries_.emplace_back(first_row + i, column_of_port_[at(port)], of_input);
        }
        if (of_output == 0.0) continue;
        for (const auto& [other, value] : own.D[at(port - first)]) {
          entries_.emplace_back(first_row + i, column_of_port_[at(first + other)],
                                of_output * value);
        }
        if (!own.is_descriptor) continue;
        for (SparseMatrix::InnerIterator it(own.C, port - first); it; ++it) {
          entries_.emplace_back(first_row + i, own.first_column + static_cast<int>(it.row()),
                                of_output * it.value());
        }
      }
    }
  }

  AlgebraicTerm algebraic(int index, double weight, bool is_row) {
    const auto begin = [&](int part) {
      return is_row ? local(part).first_row : local(part).first_column;
    };
    auto found = std::ranges::upper_bound(descriptors_, index, {}, begin);
    const int part = *--found;
    return {part, index - begin(part), weight};
  }

  void translate(const NullVectors& vectors) {
    for (const SparseVector& n : vectors.left) add_constraint(n);
    for (const SparseVector& v : vectors.right) {
      FoundImpulse impulse;
      for (const auto& [column, weight] : v) {
        if (column < unknowns_from_) {
          impulse.ports.push_back({ports_[at(column)], weight});
        } else {
          impulse.unknowns.push_back(algebraic(column, weight, false));
        }
      }
      found_.impulses.push_back(std::move(impulse));
    }
  }

  void add_constraint(const SparseVector& n) {
    FoundConstraint out;
    std::map<int, std::pair<double, double>> of_port;  // sum, and of magnitudes
    std::vector<std::pair<double, int>> joints;
    bool says_something = false;
    for (const auto& [row, weight] : n) {
      if (row >= equations_from_) {
        out.equations.push_back(algebraic(row, weight, true));
        says_something = true;
        continue;
      }
      const auto place = std::ranges::upper_bound(row_of_junction_, row) - 1;
      const int number = junctions_[at(static_cast<int>(place - row_of_junction_.begin()))];
      const Junction& junction = system_.junctions()[at(number)];
      joints.emplace_back(-std::abs(weight), number);
      for (int l = 0; l < junction.dirac.size(); ++l) {
        const int port = junction.waves[at(l)];
        const double own =
            (effort_in_[at(port)] != 0 ? junction.dirac.F : junction.dirac.E)(row - *place, l);
        if (own == 0.0) continue;
        of_port[port].first += weight * own;
        of_port[port].second += std::abs(weight * own);
      }
    }
    for (const auto& [port, sum] : of_port) {
      if (std::abs(sum.first) <= 1e-11 * sum.second) continue;
      const Local& own = local(system_.scalar_ports()[at(port)].part);
      if (!own.has_outputs) continue;
      out.ports.push_back({port, sum.first});
      says_something = true;
    }
    if (!says_something) return;
    std::ranges::sort(joints);
    for (const auto& [size, number] : joints) {
      if (std::ranges::find(out.junctions, number) == out.junctions.end()) {
        out.junctions.push_back(number);
      }
    }
    found_.constraints.push_back(std::move(out));
  }

  const System& system_;
  const StateOf& state_;
  const InputOf& input_;
  std::vector<char> effort_in_;  // by scalar port
  std::map<std::pair<const DiracStructure*, std::uint64_t>, bool> known_;
  std::vector<int> seed_junctions_, seed_parts_;
  std::vector<int> junction_of_port_;
  std::vector<char> is_reached_;  // by junction
  std::unordered_map<int, Local> locals_;
  // The equations: rows are those of joints, then algebraic ones; columns are inputs of ports, then
  // algebraic unknowns.
  std::vector<int> junctions_, row_of_junction_, descriptors_, ports_, column_of_port_;
  int rows_ = 0, columns_ = 0, equations_from_ = 0, unknowns_from_ = 0;
  SparseEntries entries_;
  FoundConstraints found_;
};

}  // namespace

FoundConstraints find_constraints(const System& system, const StateOf& state,
                                  const InputOf& input) {
  return Search(system, state, input).search();
}

}  // namespace portwave
