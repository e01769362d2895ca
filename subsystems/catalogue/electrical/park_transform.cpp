#include <cmath>
#include <utility>

#include "catalogue/part_types.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {
namespace {

/// A rotation between voltages and currents in a frame that turns and those in one that stands. It
/// is orthogonal at every angle, so no step gains or loses energy in it, whatever angle it takes.
class ParkTransform final : public Subsystem {
 public:
  explicit ParkTransform(double pole_pairs)
      : Subsystem(Signature{"park_transform",
                            {{"angle", "rad"}},
                            {{"d", Causality::flow_in, Domain::electrical, 1},
                             {"q", Causality::flow_in, Domain::electrical, 1},
                             {"alpha", Causality::effort_in, Domain::electrical, 1},
                             {"beta", Causality::effort_in, Domain::electrical, 1},
                             {"shaft", Causality::flow_in, Domain::rotation, 1}},
                            {}}),
        structure_(Structure::zero(1, 5)) {
    structure_.G.insert(0, 4) = pole_pairs;
    for (int rotor = 0; rotor < 2; ++rotor) {
      for (int stator = 2; stator < 4; ++stator) {
        structure_.N.insert(rotor, stator) = 0.0;
        structure_.N.insert(stator, rotor) = 0.0;
      }
    }
    const double start = 0.0;
    rotate(&start, structure_);
  }

  std::vector<double> typical_state() const override { return {1.0}; }
  double storage(const double*) const override { return 0.0; }
  void gradient(const double*, double* g) const override { g[0] = 0.0; }
  void discrete_gradient(const double*, const double*, double* g) const override { g[0] = 0.0; }
  void discrete_gradient_jacobian(const double*, const double*,
                                  std::vector<Eigen::Triplet<double>>&) const override {}
  bool hessian(const double*, std::vector<Eigen::Triplet<double>>&) const override { return true; }
  bool constant_structure() const override { return false; }
  const Structure& structure() const override { return structure_; }
  void structure_at(const double* x_mid, Structure& out) const override { rotate(x_mid, out); }

 private:
  /// e_dq = A e_ab and f_ab = -A^T f_dq, A the rotation by minus the angle.
  static void rotate(const double* x, Structure& s) {
    const double c = std::cos(x[0]), d = std::sin(x[0]);
    const double A[2][2] = {{c, d}, {-d, c}};
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 2; ++j) {
        s.N.coeffRef(i, 2 + j) = A[i][j];
        s.N.coeffRef(2 + j, i) = -A[i][j];
      }
    }
  }

  Structure structure_;
};

}  // namespace

PartType park_transform_type() {
  PartType type;
  type.name = "park_transform";
  type.group = "transducers";
  type.summary =
      "Park's transformation: windings seen from the rotor (d, q) and from the stator (alpha, "
      "beta).";
  type.equations =
      "angle' = n f_shaft,  e_shaft = 0\n"
      "[e_d; e_q] = A [e_alpha; e_beta],  [f_alpha; f_beta] = -A^T [f_d; f_q]\n"
      "A = [cos angle, sin angle; -sin angle, cos angle]: power invariant, no energy\n"
      "d and q go to a synchronous_machine, alpha and beta to voltages; shaft to the machine's "
      "shaft.";
  ParameterInfo pairs = positive_number("pole_pairs", "", "pairs of poles n of the machine");
  pairs.kind = ParameterKind::integer;
  pairs.minimum = 1.0;
  pairs.minimum_excluded = false;
  pairs.maximum = 1000.0;
  type.parameters = {std::move(pairs)};
  type.build = [](const Parameters& p) -> std::unique_ptr<Component> {
    return std::make_unique<ParkTransform>(value_of<int>(p, "pole_pairs"));
  };
  type.example = {{"pole_pairs", 2}};
  return type;
}

}  // namespace portwave
