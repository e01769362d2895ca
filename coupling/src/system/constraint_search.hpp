#pragma once

#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <Eigen/SparseCore>

#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/descriptor/descriptor_part.hpp"

namespace portwave {

/// Places and values ≠ 0, by increasing place.
using SparseVector = std::vector<std::pair<int, double>>;

/// Of a sparse matrix M: bases of nᵀM = 0 and Mv = 0.
struct NullVectors {
  std::vector<SparseVector> left, right;
};

/// Equal places of `entries` add up. Rows and columns with one entry are eliminated first, in time
/// proportional to the entries; a sparse rank-revealing factorisation has what is left, which of networks
/// is little or nothing.
NullVectors null_vectors(int rows, int columns, const std::vector<Eigen::Triplet<double>>& entries);

using StateOf = std::function<std::span<const double>(int part)>;
/// An external input; empty: those that choose branches are not known.
using InputOf = std::function<double(int part, int input)>;

/// The branch of a port of a part with vertical laws.
PortBranch branch_of(const System& system, int part, int port, const InputOf& input);

/// A part's structure at a state, kept where it depends on that.
class StructureThere {
 public:
  StructureThere(const Subsystem& part, std::span<const double> x);
  const Structure& get() const { return own_ ? *own_ : *constant_; }

 private:
  const Structure* constant_ = nullptr;
  std::optional<Structure> own_;
};

/// Null where it has no algebraic equations and none that E makes of a kind of its own.
const DescriptorPortHamiltonian* descriptor_of(const Part& part);

/// What a left null vector of the port equations makes of outputs, or a right one of inputs.
struct PortTerm {
  int port;  ///< scalar port
  double weight;
};
/// The same of an algebraic equation of a descriptor part (column of AlgebraicPart::equations), or of an
/// algebraic unknown (column of its kernel).
struct AlgebraicTerm {
  int part;
  int number;
  double weight;
};

struct FoundConstraint {
  std::vector<int> junctions;  ///< the largest weight first
  std::vector<PortTerm> ports;
  std::vector<AlgebraicTerm> equations;
};
struct FoundImpulse {
  std::vector<PortTerm> ports;
  std::vector<AlgebraicTerm> unknowns;
};

/// A part whose feedthrough between its ports depends on its state, and where it was not 0.
class VaryingPart {
 public:
  VaryingPart(int part, const Subsystem& physics, const Structure& there);
  int part() const { return part_; }
  /// Whether there is any.
  bool is_one() const { return !was_zero_.empty(); }
  /// Does not allocate.
  bool has_changed(const Subsystem& physics, std::span<const double> x) const;

 private:
  int part_;
  std::vector<char> was_zero_;
  mutable Structure scratch_;
};

/// A port that its part's external inputs open or short, and its branch.
struct SwitchedPort {
  int part;
  int port;  ///< of the part's scalar ports
  PortBranch branch;
};

struct FoundConstraints {
  std::vector<FoundConstraint> constraints;
  std::vector<FoundImpulse> impulses;
  std::vector<VaryingPart> varying;
  std::vector<SwitchedPort> switched;
};

/// Null vectors of the port equations of a system: see StateConstraints.
FoundConstraints find_constraints(const System& system, const StateOf& state, const InputOf& input);

}  // namespace portwave
