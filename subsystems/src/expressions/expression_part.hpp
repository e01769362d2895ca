#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "expressions/split_energy.hpp"
#include "nonlinear/structure_slopes.hpp"
#include "portwave/subsystems/base/expression_graph.hpp"
#include "portwave/subsystems/base/expression_tape.hpp"
#include "portwave/subsystems/nonlinear/bent_storage.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"

namespace portwave {

/// The physics of a part as nodes of one graph, whose variables are the states.
struct ExpressionPhysics {
  struct Entry {
    int row, column;
    ExpressionGraph::Node value;
  };
  using Entries = std::vector<Entry>;

  explicit ExpressionPhysics(int states) : graph(states), energy(graph.number(0.0)) {}

  std::array<Entries*, 6> matrices() { return {&J, &R, &G, &P, &S, &N}; }

  ExpressionGraph graph;
  ExpressionGraph::Node energy;
  Entries J, R, G, P, S, N;  ///< of each place at most one; none where zero
};

/// Entries of J and N that are not opposite, of R and S that are not equal, `where` being "/J/0/1": as expressions,
/// or else at states about the start, within `size` of it. Numbers alone are left to `validate`.
Issues check_symmetry(const ExpressionPhysics& physics, const std::vector<StateVariable>& states,
                      const std::vector<double>& start, const std::vector<double>& size);

/// y = … + φ(u) at a scalar port; beyond |u| = reach as straight lines.
class ExpressionLaw {
 public:
  /// φ(u), with the names of constants and their values. Errors: ConfigError, `where` being empty: what
  /// `Expression` reports; a law that is not 0 at 0, decreases or is not finite within the reach.
  ExpressionLaw(const std::string& text, const std::vector<std::string>& names,
                const std::vector<double>& constants, double reach);

  bool is_zero() const { return is_zero_; }
  PortLawValue operator()(double u) const;

 private:
  PortLawValue within(double u) const;
  void check(const std::string& text) const;

  ExpressionTape tape_;  // φ and φ′
  double reach_;
  bool is_zero_;
};

/// A part whose H, structure and laws are expressions. Its derivatives are exact; its discrete gradient is the mean
/// value of SplitEnergy, or of another kind where options say so. Parts with that mean value, constant structure and
/// no laws are solved in lanes (make_expression_batch).
class ExpressionPart final : public NonlinearPortHamiltonian,
                             public StructureSlopes,
                             public BentStorage {
 public:
  /// As a LinearPortHamiltonian where it is one: H = ½xᵀQx ≥ 0, constant structure, no laws. `laws`: none, or
  /// one for each scalar port. Of `options` what is derived from H is set here, but for the discrete gradient.
  /// Errors: ConfigError, `where` being "/energy", "/J", "/characteristics", …
  static std::unique_ptr<Subsystem> make(Signature signature, ExpressionPhysics physics,
                                         std::vector<ExpressionLaw> laws, Options options);

  const std::vector<int>& bent_states() const override { return split_.bent(); }
  void discrete_gradient(const double* x, const double* x_next, double* g) const override;
  void discrete_gradient_jacobian(const double* x, const double* x_next,
                                  std::vector<Eigen::Triplet<double>>& jacobian) const override;
  void add_gradient_terms(const double* x, const double* x_next, const double* g,
                          double* terms) const override;
  std::string batch_key() const override;
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override;
  bool hessian(const double* x, std::vector<Eigen::Triplet<double>>& hessian) const override;
  bool is_smooth() const override;
  /// At least what H adds up at the default state, unless it is a polynomial, whose mean gradient takes no values of H.
  double storage_terms() const override { return terms_J_; }
  bool structure_depends_on(int state) const override;
  bool has_structure_slopes() const override;
  void structure_slopes(const double* x, const double* g, const double* u,
                        double* slopes) const override;
  bool has_port_laws() const override { return has_laws_; }
  PortLawValue port_law(int scalar_port, double u) const override {
    return laws_[static_cast<std::size_t>(scalar_port)](u);
  }

 private:
  struct Programs;
  ExpressionPart(Signature signature, Structure structure,
                 const std::shared_ptr<const Programs>& programs, std::vector<ExpressionLaw> laws,
                 Options options);

  bool is_mean() const { return options().discrete_gradient == DiscreteGradient::mean_value; }

  struct BentStep;
  template <class Take>
  void with_mean(const double* x, const double* x_next, Take take) const;

  std::shared_ptr<const Programs> programs_;
  std::vector<ExpressionLaw> laws_;
  bool has_laws_;
  double terms_J_;
  SplitEnergy split_;
  std::string key_;
};

}  // namespace portwave
