#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <Eigen/Core>
#include <Eigen/LU>

#include "portwave/subsystems/descriptor/condensed_form.hpp"
#include "portwave/subsystems/matrices/symmetric_product.hpp"
#include "waves/interface_equation.hpp"

namespace portwave {

/// The condensed form of a part that takes its steps by it; null for others.
const CondensedForm* condensed_form_of(const Part& part);

/// The interface equation of an island with condensed parts, (I − PD) x = r, by their Schur complements Σ.
///
/// Where ports of such parts, each on a coordinate of its own, have one velocity (common flow), P = I −
/// 2nnᵀ with n_j = √(γ_j/Γ). Then f_j = r_j/√(2γ_j h) + c, c one unknown for each junction, and Σ e_j =
/// Σ √(γ_j/2h) r_j, so that with e = Σ f
///   (Σ_i Rᵢᵀ Σᵢ Rᵢ) c = right-hand side:
/// the assembled Schur complements, symmetric and positive definite, factorised by Cholesky. Coordinates
/// that only other ports act on are unknowns as well. The other ports of the island have an unknown each,
/// x_j or e_j/s_j, eliminated last as a small dense system, shifted by 1e-14 as in InterfaceEquation.
/// Cost     solve: two products with each Σ, one pass forth and back through the factors, the square of
///          the number of other ports.
class CondensedEquation {
 public:
  using PartMatrix = InterfaceEquation::PartMatrix;

  /// Most ports that are not of the first kind.
  static constexpr int kMostOthers = 600;

  /// Null where no part of the island is condensed, or too many ports are not of the first kind.
  static std::unique_ptr<CondensedEquation> of(const System& system, const IslandNetworks& networks,
                                               int island);

  /// Parts with ports that are not condensed: those whose D is asked for.
  std::span<const int> other_parts() const { return other_parts_; }
  /// `impedance`: by scalar port of the system. `shift`: of the rows of other ports. Errors: false where a
  /// number is not finite. Allocates.
  bool factorise(const Interconnection& coupling, std::span<const double> impedance, double step_s,
                 const PartMatrix& D, double shift = InterfaceEquation::kShift);
  std::size_t entries() const;
  /// As InterfaceEquation::solve; loops over parts may be shared by threads.
  void solve(const double* gap, double* change, const ForEach& each = {});
  std::size_t bytes() const;

 private:
  /// A port on a coordinate of its own in a common flow.
  struct Inner {
    int local;  ///< its place in the island's ports
    int place;  ///< in the boundary of its part
  };
  struct Member {
    int part;
    const CondensedForm* form;
    std::vector<Inner> inner;
    std::vector<int> unknown;  ///< by place in the boundary
    std::shared_ptr<const CondensedStep> step;
    SymmetricProduct sparse;          ///< Σ, where the part has no interior
    Eigen::VectorXd velocity, force;  ///< by place
    Eigen::VectorXd scratch;          ///< of `sparse`
  };
  /// A port of another kind.
  struct Other {
    int local;
    int member = -1;  ///< −1: of a part that is not condensed
    int column = 0;   ///< among the condensed ones
  };

  CondensedEquation(const System& system, const IslandNetworks& networks, int island);
  bool number_unknowns();
  void take_impedances(std::span<const double> impedance, double step_s);
  SparseMatrix assembled() const;
  bool factorise_unknowns(double step_s);
  bool factorise_others(const Interconnection& coupling, const PartMatrix& D, double shift);
  void multiply(Member& member) const;
  void solve_unknowns(double* x);

  const System& system_;
  const IslandNetwork& network_;
  const std::vector<int>& local_;
  std::vector<Member> members_;
  std::vector<int> other_parts_, other_junctions_;
  std::vector<Other> others_;
  std::vector<int> other_at_;  ///< by local port: in others_, or −1
  int unknowns_ = 0, condensed_others_ = 0;
  double step_s_ = 0.0;
  std::vector<double> gamma_, s_;  ///< by local port
  CondensedFactors factors_;
  SparseMatrix acting_;       ///< B_o: unknowns × condensed others
  Eigen::MatrixXd answers_;   ///< Z⁻¹B_o
  Eigen::MatrixXd of_flows_;  ///< others × condensed others: what f adds to their rows
  Eigen::PartialPivLU<Eigen::MatrixXd> small_;
  Eigen::VectorXd c_, work_, scratch_, z_, rows_, flows_, forces_;
};

}  // namespace portwave
