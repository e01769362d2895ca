#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include "portwave/coupling/dirac.hpp"

namespace portwave {

/// A Dirac structure over places of the wave vector. Copies share the structure, and so may all
/// junctions of one kind.
struct Junction {
  Junction(DiracStructure structure, std::vector<int> places)
      : Junction(std::make_shared<const DiracStructure>(std::move(structure)), std::move(places)) {}
  Junction(std::shared_ptr<const DiracStructure> structure, std::vector<int> places)
      : shared(std::move(structure)), dirac(*shared), waves(std::move(places)) {}

  std::shared_ptr<const DiracStructure> shared;  ///< not null
  const DiracStructure& dirac;                   ///< *shared
  std::vector<int> waves;  ///< dirac.size() distinct places in the wave vector
};

/// Junctions [first, last) in the order of an Interconnection.
struct JunctionRange {
  int first = 0;
  int last = 0;
};

/// The orthogonal wave coupling a = P b of a whole system, one block per junction, and the
/// resolvent (2I − P)⁻¹ of the Douglas–Rachford iteration.
///
/// Blocks with a closed form keep it: swaps (a connection with equal impedances) and reflections
/// P = ±(2nnᵀ − I) (common-effort and common-flow junctions of any arity, free and fixed ends,
/// connections, transformers); both satisfy P² = I, hence (2I − P)⁻¹ = (2I + P)/3. The others hold a
/// dense block of their own size and its resolvent: (2I + P)/5 where P² = −I, a factorised inverse
/// else. Every place of the wave vector must be in exactly one junction. Different ranges touch
/// different places, so threads may share the work; no call allocates.
class Interconnection {
 public:
  /// `impedance` has one entry per place of the wave vector.
  Interconnection(std::vector<Junction> junctions, std::span<const double> impedance);

  int size() const { return junction_count_; }
  int wave_size() const { return wave_size_; }
  JunctionRange all() const { return {0, junction_count_}; }
  /// Number of places that junctions [first, last) touch: the cost of a range.
  int wave_count(JunctionRange range) const;

  /// a = P b.
  void exchange(JunctionRange range, const double* b, double* a) const;
  /// u += λ((2I − P)⁻¹(2b − u) − b): one Douglas–Rachford update given b = S(u).
  void douglas_rachford(JunctionRange range, double relaxation, const double* b, double* u) const;

  /// The junctions as given to the constructor.
  std::span<const Junction> junctions() const { return junctions_; }
  /// P of the junction at position `index` of the constructor's list, as the hot path applies it.
  Eigen::MatrixXd block(int index) const { return apply_to_basis(index, false); }
  /// (2I − P)⁻¹ of that junction, as the hot path applies it.
  Eigen::MatrixXd resolvent_block(int index) const { return apply_to_basis(index, true); }

  /// How the hot path holds a junction.
  enum class Form { swap, reflection, dense };
  Form form(int index) const { return order_[static_cast<std::size_t>(index)].form; }

 private:
  struct Swap {
    int first;
    int second;
  };
  /// P = sign (2nnᵀ − I) over `count` places from `begin` in reflection_waves_ and normals_.
  struct Reflection {
    int begin;
    int count;
    double sign;
  };
  /// Row-major P, then its resolvent, from `matrix` in dense_values_.
  struct Dense {
    int begin;
    int count;
    int matrix;
  };
  /// Where a junction went.
  struct Order {
    Form form;
    int position;
  };
  struct Ranges {
    JunctionRange swaps, reflections, dense;
  };

  void add(const Junction& junction, std::span<const double> impedance);
  Ranges split(JunctionRange range) const;
  void dense_update(const Dense& d, double relaxation, const double* b, double* u) const;
  Eigen::MatrixXd apply_to_basis(int index, bool resolvent) const;
  JunctionRange position(int index) const;

  int junction_count_ = 0;
  int wave_size_ = 0;
  std::vector<Swap> swaps_;
  std::vector<Reflection> reflections_;
  std::vector<int> reflection_waves_;
  std::vector<double> normals_;
  std::vector<Dense> dense_;
  std::vector<int> dense_waves_;
  std::vector<double> dense_values_;
  std::vector<Order> order_;
  std::vector<Junction> junctions_;
  mutable std::vector<double> gap_;  // work of large dense junctions, each its own stretch
};

}  // namespace portwave
