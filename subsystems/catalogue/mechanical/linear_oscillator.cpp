#include "catalogue/part_types.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave {
namespace {

LinearOscillatorParameters linear_oscillator_parameters(const Parameters& parameters) {
  return {.mass_kg = number_of(parameters, "mass_kg"),
          .stiffness_N_per_m = number_of(parameters, "stiffness_N_per_m"),
          .damping_Ns_per_m = number_of(parameters, "damping_Ns_per_m"),
          .allow_active = allows_active(parameters)};
}

/// Of parameters that are valid.
std::unique_ptr<Subsystem> build_linear_oscillator(const LinearOscillatorParameters& parameters) {
  enum State { kPosition, kVelocity, kStates };
  enum Input { kCoupling, kForce, kInputs };
  const double m = parameters.mass_kg;
  Structure structure = Structure::zero(kStates, kInputs);
  structure.J.insert(kPosition, kVelocity) = 1.0 / m;
  structure.J.insert(kVelocity, kPosition) = -1.0 / m;
  structure.R.insert(kVelocity, kVelocity) = parameters.damping_Ns_per_m / (m * m);
  structure.G.insert(kVelocity, kCoupling) = -1.0 / m;
  structure.G.insert(kVelocity, kForce) = 1.0 / m;
  SparseMatrix Q(kStates, kStates);
  Q.insert(kPosition, kPosition) = parameters.stiffness_N_per_m;
  Q.insert(kVelocity, kVelocity) = m;

  Signature signature{"linear_oscillator",
                      {{"q2", "m"}, {"v2", "m/s"}},
                      {{"coupling", Causality::effort_in, Domain::translation, 1}},
                      {{"force", "N"}}};
  LinearPortHamiltonian::Options options;
  options.allow_active = parameters.allow_active;
  return std::make_unique<LinearPortHamiltonian>(std::move(signature), std::move(structure),
                                                 std::move(Q), std::move(options));
}

}  // namespace

std::unique_ptr<Subsystem> linear_oscillator(const LinearOscillatorParameters& parameters) {
  static const PartType type = linear_oscillator_type();
  require_valid(type,
                {{"mass_kg", parameters.mass_kg},
                 {"stiffness_N_per_m", parameters.stiffness_N_per_m},
                 {"damping_Ns_per_m", parameters.damping_Ns_per_m}},
                parameters.allow_active);
  return build_linear_oscillator(parameters);
}

PartType linear_oscillator_type() {
  PartType type;
  type.name = "linear_oscillator";
  type.group = "translation";
  type.summary = "Mass on a spring and damper; the port acts on the mass.";
  type.equations =
      "H(q,v) = m v^2/2 + k q^2/2\n"
      "q' = v,  m v' = -k q - c v - e + F,  f = -v";
  type.parameters = {
      positive_number("mass_kg", "kg", "mass m"),
      non_negative_number("stiffness_N_per_m", "N/m", "stiffness k of the spring to ground"),
      damper("damping_Ns_per_m", "N s/m", "damper c to ground"),
  };
  type.build = [](const Parameters& parameters) {
    return build_linear_oscillator(linear_oscillator_parameters(parameters));
  };
  type.example = {{"mass_kg", 4.0}, {"stiffness_N_per_m", 50.0}, {"damping_Ns_per_m", 0.1}};
  return type;
}

}  // namespace portwave
