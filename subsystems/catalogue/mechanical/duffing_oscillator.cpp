#include <vector>

#include "catalogue/duffing_batch.hpp"
#include "catalogue/part_types.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/core/staged_lanes.hpp"
#include "portwave/subsystems/nonlinear/quartic_storage.hpp"

namespace portwave {
namespace {
namespace oscillator_part {

enum State { kPosition, kVelocity, kElongation, kStates };

Signature duffing_signature() {
  return {"duffing_oscillator",
          {{"q1", "m"}, {"v1", "m/s"}, {"delta", "m"}},
          {{"coupling", Causality::flow_in, Domain::translation, 1}},
          {{"force", "N"}}};
}

Structure duffing_structure(const DuffingOscillatorParameters& p) {
  Structure s = Structure::zero(kStates, 2);
  const double m = p.mass_kg, c12 = p.coupling_damping_Ns_per_m;
  s.J.insert(kPosition, kVelocity) = 1.0 / m;
  s.J.insert(kVelocity, kPosition) = -1.0 / m;
  s.J.insert(kVelocity, kElongation) = 1.0 / m;
  s.J.insert(kElongation, kVelocity) = -1.0 / m;
  s.R.insert(kVelocity, kVelocity) = (p.damping_Ns_per_m + c12) / (m * m);
  s.G.insert(kElongation, 0) = 1.0;
  s.G.insert(kVelocity, 1) = 1.0 / m;
  s.P.insert(kVelocity, 0) = -c12 / m;
  s.S.insert(0, 0) = c12;
  return s;
}

class DuffingOscillator final : public Subsystem, public QuarticStorage, public StagedLanes {
 public:
  explicit DuffingOscillator(const DuffingOscillatorParameters& p)
      : Subsystem(duffing_signature()), p_(p), structure_(duffing_structure(p)) {
    throw_if_any(validate(structure_, kStates, 2,
                          {.allow_active = p.allow_active, .names = variable_names(signature())}));
  }

  double storage(const double* x) const override {
    const double q = x[kPosition], v = x[kVelocity], d = x[kElongation];
    return 0.5 * (p_.mass_kg * v * v + p_.stiffness_N_per_m * q * q +
                  0.5 * p_.cubic_stiffness_N_per_m3 * (q * q) * (q * q) +
                  p_.coupling_stiffness_N_per_m * d * d);
  }
  void gradient(const double* x, double* g) const override { discrete_gradient(x, x, g); }
  void discrete_gradient(const double* x, const double* y, double* g) const override {
    const double q0 = x[kPosition], q = y[kPosition];
    g[kPosition] = p_.stiffness_N_per_m * 0.5 * (q0 + q) +
                   0.25 * p_.cubic_stiffness_N_per_m3 * (q0 + q) * (q0 * q0 + q * q);
    g[kVelocity] = p_.mass_kg * 0.5 * (x[kVelocity] + y[kVelocity]);
    g[kElongation] = p_.coupling_stiffness_N_per_m * 0.5 * (x[kElongation] + y[kElongation]);
  }
  void discrete_gradient_jacobian(const double* x, const double* y,
                                  std::vector<Eigen::Triplet<double>>& jacobian) const override {
    const double q0 = x[kPosition], q = y[kPosition];
    jacobian.emplace_back(kPosition, kPosition,
                          0.5 * p_.stiffness_N_per_m + 0.25 * p_.cubic_stiffness_N_per_m3 *
                                                           (q0 * q0 + 2.0 * q0 * q + 3.0 * q * q));
    jacobian.emplace_back(kVelocity, kVelocity, 0.5 * p_.mass_kg);
    jacobian.emplace_back(kElongation, kElongation, 0.5 * p_.coupling_stiffness_N_per_m);
  }
  bool hessian(const double* x, std::vector<Eigen::Triplet<double>>& hessian) const override {
    const double q = x[kPosition];
    hessian.emplace_back(kPosition, kPosition,
                         p_.stiffness_N_per_m + 3.0 * p_.cubic_stiffness_N_per_m3 * q * q);
    hessian.emplace_back(kVelocity, kVelocity, p_.mass_kg);
    hessian.emplace_back(kElongation, kElongation, p_.coupling_stiffness_N_per_m);
    return true;
  }
  std::vector<QuarticTerm> quartic_terms() const override {
    return {{kPosition, p_.cubic_stiffness_N_per_m3}};
  }
  const Structure& structure() const override { return structure_; }
  bool is_active() const override { return p_.allow_active; }
  std::string batch_key() const override { return "duffing_oscillator"; }
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override {
    return make_duffing_batch(DuffingPorts::one_spring, parameters_of(parts));
  }
  std::unique_ptr<StepBatch> make_staged_batch(std::span<const Component* const> parts,
                                               int stages) const override {
    return make_staged_duffing_batch(DuffingPorts::one_spring, stages, parameters_of(parts));
  }
  std::unique_ptr<StepBatch> make_lanes(std::span<const Component* const> parts,
                                        const StageRule& stages) const override {
    if (stages.count > 1 || stages.conserved != 0) return nullptr;
    return make_duffing_batch(DuffingPorts::one_spring, parameters_of(parts), 2.0 * stages.damping);
  }

 private:
  static std::vector<DuffingOscillatorParameters> parameters_of(
      std::span<const Component* const> parts) {
    std::vector<DuffingOscillatorParameters> parameters;
    for (const Component* part : parts) {
      parameters.push_back(dynamic_cast<const DuffingOscillator*>(part)->p_);
    }
    return parameters;
  }

  DuffingOscillatorParameters p_;
  Structure structure_;
};

}  // namespace oscillator_part
}  // namespace

std::unique_ptr<Subsystem> duffing_oscillator(const DuffingOscillatorParameters& p) {
  static const PartType type = duffing_oscillator_type();
  require_valid(type,
                {{"mass_kg", p.mass_kg},
                 {"stiffness_N_per_m", p.stiffness_N_per_m},
                 {"cubic_stiffness_N_per_m3", p.cubic_stiffness_N_per_m3},
                 {"damping_Ns_per_m", p.damping_Ns_per_m},
                 {"coupling_stiffness_N_per_m", p.coupling_stiffness_N_per_m},
                 {"coupling_damping_Ns_per_m", p.coupling_damping_Ns_per_m}},
                p.allow_active);
  return std::make_unique<oscillator_part::DuffingOscillator>(p);
}

PartType duffing_oscillator_type() {
  const auto optional = [](ParameterInfo info) {
    info.default_value = 0.0;
    return info;
  };
  PartType type;
  type.name = "duffing_oscillator";
  type.group = "translation";
  type.summary = "Mass on a hardening spring, with a coupling spring whose free end is the port.";
  type.equations =
      "H(q,v,d) = m v^2/2 + k1 q^2/2 + k3 q^4/4 + k12 d^2/2\n"
      "q' = v,  d' = u - v,  m v' = -k1 q - k3 q^3 - c1 v + e + F,  e = k12 d + c12 (u - v)";
  type.parameters = {
      positive_number("mass_kg", "kg", "mass m"),
      non_negative_number("stiffness_N_per_m", "N/m", "stiffness k1 of the spring to ground"),
      optional(non_negative_number("cubic_stiffness_N_per_m3", "N/m^3", "its hardening k3")),
      damper("damping_Ns_per_m", "N s/m", "damper c1 to ground"),
      optional(non_negative_number("coupling_stiffness_N_per_m", "N/m",
                                   "stiffness k12 of the coupling spring")),
      damper("coupling_damping_Ns_per_m", "N s/m", "damper c12 beside the coupling spring"),
  };
  type.build = [](const Parameters& parameters) {
    DuffingOscillatorParameters p;
    p.mass_kg = number_of(parameters, "mass_kg");
    p.stiffness_N_per_m = number_of(parameters, "stiffness_N_per_m");
    p.cubic_stiffness_N_per_m3 = number_of(parameters, "cubic_stiffness_N_per_m3");
    p.damping_Ns_per_m = number_of(parameters, "damping_Ns_per_m");
    p.coupling_stiffness_N_per_m = number_of(parameters, "coupling_stiffness_N_per_m");
    p.coupling_damping_Ns_per_m = number_of(parameters, "coupling_damping_Ns_per_m");
    p.allow_active = allows_active(parameters);
    return std::make_unique<oscillator_part::DuffingOscillator>(p);
  };
  type.example = {{"mass_kg", 8.0},
                  {"stiffness_N_per_m", 100.0},
                  {"cubic_stiffness_N_per_m3", 8000.0},
                  {"damping_Ns_per_m", 0.1},
                  {"coupling_stiffness_N_per_m", 120.0},
                  {"coupling_damping_Ns_per_m", 0.05}};
  return type;
}

}  // namespace portwave
