#include <utility>
#include <vector>

#include "catalogue/duffing_batch.hpp"
#include "catalogue/part_types.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/core/staged_lanes.hpp"
#include "portwave/subsystems/nonlinear/quartic_storage.hpp"

namespace portwave {
namespace {
namespace node_part {

enum State { kPosition, kVelocity, kEast, kSouth, kStates };
/// The scalar ports in order, then the external input.
enum Input { kEastPort, kSouthPort, kWestPort, kNorthPort, kForce, kInputs };

Signature node_signature() {
  constexpr Causality kSpring = Causality::flow_in;
  constexpr Causality kMass = Causality::effort_in;
  return {"duffing_node",
          {{"q", "m"}, {"v", "m/s"}, {"delta_east", "m"}, {"delta_south", "m"}},
          {{"east", kSpring, Domain::translation, 1},
           {"south", kSpring, Domain::translation, 1},
           {"west", kMass, Domain::translation, 1},
           {"north", kMass, Domain::translation, 1}},
          {{"force", "N"}}};
}

/// With w = (u_east − v, u_south − v), the coupling dampers take c₁₂|w|² and the ground damper
/// c₁v²: hence R over v, P between v and the spring ports, and S over those.
Structure node_structure(const DuffingNodeParameters& p) {
  Structure s = Structure::zero(kStates, kInputs);
  const double m = p.mass_kg, c12 = p.coupling_damping_Ns_per_m;
  s.J.insert(kPosition, kVelocity) = 1.0 / m;
  s.J.insert(kVelocity, kPosition) = -1.0 / m;
  s.R.insert(kVelocity, kVelocity) = (p.damping_Ns_per_m + 2.0 * c12) / (m * m);
  s.G.insert(kVelocity, kForce) = 1.0 / m;
  for (const auto& [elongation, port] :
       {std::pair{kEast, kEastPort}, std::pair{kSouth, kSouthPort}}) {
    s.J.insert(kVelocity, elongation) = 1.0 / m;
    s.J.insert(elongation, kVelocity) = -1.0 / m;
    s.G.insert(elongation, port) = 1.0;
    s.P.insert(kVelocity, port) = -c12 / m;
    s.S.insert(port, port) = c12;
  }
  for (const Input port : {kWestPort, kNorthPort}) s.G.insert(kVelocity, port) = -1.0 / m;
  return s;
}

class DuffingNode final : public Subsystem, public QuarticStorage, public StagedLanes {
 public:
  explicit DuffingNode(const DuffingNodeParameters& p)
      : Subsystem(node_signature()), p_(p), structure_(node_structure(p)) {
    throw_if_any(validate(structure_, kStates, kInputs,
                          {.allow_active = p.allow_active, .names = variable_names(signature())}));
  }

  double storage(const double* x) const override {
    const double q = x[kPosition], v = x[kVelocity], east = x[kEast], south = x[kSouth];
    return 0.5 * (p_.mass_kg * v * v + p_.stiffness_N_per_m * q * q +
                  0.5 * p_.cubic_stiffness_N_per_m3 * (q * q) * (q * q) +
                  p_.coupling_stiffness_N_per_m * (east * east + south * south));
  }
  void gradient(const double* x, double* g) const override { discrete_gradient(x, x, g); }
  void discrete_gradient(const double* x, const double* y, double* g) const override {
    const double q0 = x[kPosition], q = y[kPosition];
    g[kPosition] = p_.stiffness_N_per_m * 0.5 * (q0 + q) +
                   0.25 * p_.cubic_stiffness_N_per_m3 * (q0 + q) * (q0 * q0 + q * q);
    g[kVelocity] = p_.mass_kg * 0.5 * (x[kVelocity] + y[kVelocity]);
    for (const State elongation : {kEast, kSouth}) {
      g[elongation] = p_.coupling_stiffness_N_per_m * 0.5 * (x[elongation] + y[elongation]);
    }
  }
  void discrete_gradient_jacobian(const double* x, const double* y,
                                  std::vector<Eigen::Triplet<double>>& jacobian) const override {
    const double q0 = x[kPosition], q = y[kPosition];
    jacobian.emplace_back(kPosition, kPosition,
                          0.5 * p_.stiffness_N_per_m + 0.25 * p_.cubic_stiffness_N_per_m3 *
                                                           (q0 * q0 + 2.0 * q0 * q + 3.0 * q * q));
    jacobian.emplace_back(kVelocity, kVelocity, 0.5 * p_.mass_kg);
    for (const State elongation : {kEast, kSouth}) {
      jacobian.emplace_back(elongation, elongation, 0.5 * p_.coupling_stiffness_N_per_m);
    }
  }
  bool hessian(const double* x, std::vector<Eigen::Triplet<double>>& hessian) const override {
    const double q = x[kPosition];
    hessian.emplace_back(kPosition, kPosition,
                         p_.stiffness_N_per_m + 3.0 * p_.cubic_stiffness_N_per_m3 * q * q);
    hessian.emplace_back(kVelocity, kVelocity, p_.mass_kg);
    for (const State elongation : {kEast, kSouth}) {
      hessian.emplace_back(elongation, elongation, p_.coupling_stiffness_N_per_m);
    }
    return true;
  }
  std::vector<QuarticTerm> quartic_terms() const override {
    return {{kPosition, p_.cubic_stiffness_N_per_m3}};
  }
  const Structure& structure() const override { return structure_; }
  bool is_active() const override { return p_.allow_active; }
  std::string batch_key() const override { return "duffing_node"; }
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override {
    return make_duffing_batch(DuffingPorts::two_springs_two_masses, parameters_of(parts));
  }
  std::unique_ptr<StepBatch> make_staged_batch(std::span<const Component* const> parts,
                                               int stages) const override {
    return make_staged_duffing_batch(DuffingPorts::two_springs_two_masses, stages,
                                     parameters_of(parts));
  }
  std::unique_ptr<StepBatch> make_lanes(std::span<const Component* const> parts,
                                        const StageRule& stages) const override {
    if (stages.count > 1 || stages.conserved != 0) return nullptr;
    return make_duffing_batch(DuffingPorts::two_springs_two_masses, parameters_of(parts),
                              2.0 * stages.damping);
  }

 private:
  static std::vector<DuffingOscillatorParameters> parameters_of(
      std::span<const Component* const> parts) {
    std::vector<DuffingOscillatorParameters> parameters;
    for (const Component* part : parts) {
      const DuffingNodeParameters& p = dynamic_cast<const DuffingNode*>(part)->p_;
      parameters.push_back({p.mass_kg, p.stiffness_N_per_m, p.cubic_stiffness_N_per_m3,
                            p.damping_Ns_per_m, p.coupling_stiffness_N_per_m,
                            p.coupling_damping_Ns_per_m, p.allow_active});
    }
    return parameters;
  }

  DuffingNodeParameters p_;
  Structure structure_;
};

DuffingNodeParameters node_parameters(const Parameters& parameters) {
  DuffingNodeParameters p;
  p.mass_kg = number_of(parameters, "mass_kg");
  p.stiffness_N_per_m = number_of(parameters, "stiffness_N_per_m");
  p.cubic_stiffness_N_per_m3 = number_of(parameters, "cubic_stiffness_N_per_m3");
  p.damping_Ns_per_m = number_of(parameters, "damping_Ns_per_m");
  p.coupling_stiffness_N_per_m = number_of(parameters, "coupling_stiffness_N_per_m");
  p.coupling_damping_Ns_per_m = number_of(parameters, "coupling_damping_Ns_per_m");
  p.allow_active = allows_active(parameters);
  return p;
}

}  // namespace node_part
}  // namespace

std::unique_ptr<Subsystem> duffing_node(const DuffingNodeParameters& p) {
  static const PartType type = duffing_node_type();
  require_valid(type,
                {{"mass_kg", p.mass_kg},
                 {"stiffness_N_per_m", p.stiffness_N_per_m},
                 {"cubic_stiffness_N_per_m3", p.cubic_stiffness_N_per_m3},
                 {"damping_Ns_per_m", p.damping_Ns_per_m},
                 {"coupling_stiffness_N_per_m", p.coupling_stiffness_N_per_m},
                 {"coupling_damping_Ns_per_m", p.coupling_damping_Ns_per_m}},
                p.allow_active);
  return std::make_unique<node_part::DuffingNode>(p);
}

PartType duffing_node_type() {
  // The same parameters as the oscillator, with the same ranges and defaults.
  PartType type = duffing_oscillator_type();
  type.name = "duffing_node";
  type.group = "translation";
  type.summary = "Node of a grid: a Duffing mass with springs to the east and south.";
  type.equations =
      "H = m v^2/2 + k1 q^2/2 + k3 q^4/4 + k12 (d_east^2 + d_south^2)/2\n"
      "q' = v,  m v' = -k1 q - k3 q^3 - c1 v + e_east + e_south - e_west - e_north + F\n"
      "east, south: d' = f - v,  e = k12 d + c12 (f - v)\n"
      "west, north: f = -v";
  type.build = [](const Parameters& parameters) -> std::unique_ptr<Subsystem> {
    return std::make_unique<node_part::DuffingNode>(node_part::node_parameters(parameters));
  };
  return type;
}

}  // namespace portwave
