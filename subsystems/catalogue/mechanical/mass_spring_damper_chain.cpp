#include <string>
#include <utility>

#include "catalogue/part_types.hpp"
#include "portwave/subsystems/catalogue/chain.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"

namespace portwave {
namespace {

constexpr int kMostMasses = 1'000'000;

ChainEnd end_of(const std::string& name) {
  return name == "spring" ? ChainEnd::spring : ChainEnd::mass;
}

std::string name_of(ChainEnd end) { return end == ChainEnd::spring ? "spring" : "mass"; }

ChainParameters chain_parameters(const Parameters& p) {
  return {.masses = value_of<int>(p, "masses"),
          .mass_kg = number_of(p, "mass_kg"),
          .stiffness_N_per_m = number_of(p, "stiffness_N_per_m"),
          .damping_Ns_per_m = number_of(p, "damping_Ns_per_m"),
          .internal_damping_Ns_per_m = number_of(p, "internal_damping_Ns_per_m"),
          .ground_stiffness_N_per_m = number_of(p, "ground_stiffness_N_per_m"),
          .coupling_stiffness_N_per_m = number_of(p, "coupling_stiffness_N_per_m"),
          .coupling_damping_Ns_per_m = number_of(p, "coupling_damping_Ns_per_m"),
          .left_end = end_of(value_of<std::string>(p, "left_end")),
          .right_end = end_of(value_of<std::string>(p, "right_end")),
          .allow_active = allows_active(p)};
}

Parameters to_map(const ChainParameters& p) {
  return {{"masses", p.masses},
          {"mass_kg", p.mass_kg},
          {"stiffness_N_per_m", p.stiffness_N_per_m},
          {"damping_Ns_per_m", p.damping_Ns_per_m},
          {"internal_damping_Ns_per_m", p.internal_damping_Ns_per_m},
          {"ground_stiffness_N_per_m", p.ground_stiffness_N_per_m},
          {"coupling_stiffness_N_per_m", p.coupling_stiffness_N_per_m},
          {"coupling_damping_Ns_per_m", p.coupling_damping_Ns_per_m},
          {"left_end", name_of(p.left_end)},
          {"right_end", name_of(p.right_end)}};
}

/// Gathers the matrices of a chain as triplets. Masses count from 0; the columns of G, P and S are
/// the two ports, then the forces on the masses.
class ChainMatrices {
 public:
  explicit ChainMatrices(const ChainParameters& p)
      : p_(p),
        states_(2 * p.masses + (p.left_end == ChainEnd::spring ? 1 : 0) +
                (p.right_end == ChainEnd::spring ? 1 : 0)),
        inputs_(2 + p.masses) {
    for (int mass = 0; mass < p.masses; ++mass) add_mass(mass);
    for (int mass = 0; mass + 1 < p.masses; ++mass) add_bond(mass);
    int elongation = 2 * p.masses;
    add_end(0, p.left_end, 0, elongation);
    if (p.left_end == ChainEnd::spring) ++elongation;
    add_end(1, p.right_end, p.masses - 1, elongation);
  }

  Structure structure() const {
    Structure s = Structure::zero(states_, inputs_);
    s.J.setFromTriplets(J_.begin(), J_.end());
    s.R.setFromTriplets(R_.begin(), R_.end());
    s.G.setFromTriplets(G_.begin(), G_.end());
    s.P.setFromTriplets(P_.begin(), P_.end());
    s.S.setFromTriplets(S_.begin(), S_.end());
    return s;
  }
  SparseMatrix Q() const { return sparse_matrix(states_, states_, Q_); }

 private:
  static int position(int mass) { return 2 * mass; }
  static int velocity(int mass) { return 2 * mass + 1; }

  void add_mass(int mass) {
    const double m = p_.mass_kg;
    J_.emplace_back(position(mass), velocity(mass), 1.0 / m);
    J_.emplace_back(velocity(mass), position(mass), -1.0 / m);
    R_.emplace_back(velocity(mass), velocity(mass), p_.damping_Ns_per_m / (m * m));
    Q_.emplace_back(velocity(mass), velocity(mass), m);
    Q_.emplace_back(position(mass), position(mass), p_.ground_stiffness_N_per_m);
    G_.emplace_back(velocity(mass), 2 + mass, 1.0 / m);
  }

  // Spring and damper between a mass and the next one.
  void add_bond(int mass) {
    const double k = p_.stiffness_N_per_m;
    const double c = p_.internal_damping_Ns_per_m / (p_.mass_kg * p_.mass_kg);
    add_difference(Q_, position(mass), position(mass + 1), k);
    if (c != 0.0) add_difference(R_, velocity(mass), velocity(mass + 1), c);
  }

  static void add_difference(SparseEntries& entries, int i, int j, double weight) {
    entries.emplace_back(i, i, weight);
    entries.emplace_back(j, j, weight);
    entries.emplace_back(i, j, -weight);
    entries.emplace_back(j, i, -weight);
  }

  void add_end(int port, ChainEnd end, int mass, int elongation) {
    const double m = p_.mass_kg;
    if (end == ChainEnd::mass) {
      G_.emplace_back(velocity(mass), port, -1.0 / m);
      return;
    }
    // δ' = u − v,  e = k_c δ + c_c (u − v), the mass being pulled by e.
    const double c = p_.coupling_damping_Ns_per_m;
    J_.emplace_back(elongation, velocity(mass), -1.0 / m);
    J_.emplace_back(velocity(mass), elongation, 1.0 / m);
    Q_.emplace_back(elongation, elongation, p_.coupling_stiffness_N_per_m);
    G_.emplace_back(elongation, port, 1.0);
    if (c == 0.0) return;
    R_.emplace_back(velocity(mass), velocity(mass), c / (m * m));
    P_.emplace_back(velocity(mass), port, -c / m);
    S_.emplace_back(port, port, c);
  }

  const ChainParameters& p_;
  int states_;
  int inputs_;
  SparseEntries J_, R_, G_, P_, S_, Q_;
};

Signature make_chain_signature(const ChainParameters& p) {
  const auto causality = [](ChainEnd end) {
    return end == ChainEnd::spring ? Causality::flow_in : Causality::effort_in;
  };
  Signature signature;
  signature.type = "mass_spring_damper_chain";
  for (int i = 1; i <= p.masses; ++i) {
    signature.states.push_back({"q" + std::to_string(i), "m"});
    signature.states.push_back({"v" + std::to_string(i), "m/s"});
    signature.inputs.push_back({"force_" + std::to_string(i), "N"});
  }
  if (p.left_end == ChainEnd::spring) signature.states.push_back({"left_elongation", "m"});
  if (p.right_end == ChainEnd::spring) signature.states.push_back({"right_elongation", "m"});
  signature.ports = {{"left", causality(p.left_end), Domain::translation, 1},
                     {"right", causality(p.right_end), Domain::translation, 1}};
  return signature;
}

/// One signature for chains of a shape that are built one after the other.
std::shared_ptr<const Signature> chain_signature(const ChainParameters& p) {
  struct Latest {
    int masses = 0;
    ChainEnd left_end = ChainEnd::mass;
    ChainEnd right_end = ChainEnd::mass;
    std::weak_ptr<const Signature> signature;
  };
  static thread_local Latest latest;
  const bool fits =
      latest.masses == p.masses && latest.left_end == p.left_end && latest.right_end == p.right_end;
  std::shared_ptr<const Signature> signature = fits ? latest.signature.lock() : nullptr;
  if (signature == nullptr) {
    signature = std::make_shared<const Signature>(make_chain_signature(p));
    latest = {p.masses, p.left_end, p.right_end, signature};
  }
  return signature;
}

/// Of parameters that are checked.
std::unique_ptr<Subsystem> build_mass_spring_damper_chain(const ChainParameters& p) {
  const ChainMatrices matrices(p);
  LinearPortHamiltonian::Options options;
  options.allow_active = p.allow_active;
  return std::make_unique<LinearPortHamiltonian>(chain_signature(p), matrices.structure(),
                                                 matrices.Q(), std::move(options));
}

ParameterInfo end_choice(std::string name, const std::string& side, ChainEnd by_default) {
  ParameterInfo info;
  info.name = std::move(name);
  info.kind = ParameterKind::choice;
  info.summary = "what the " + side + " port acts on: the end mass, or a spring on it";
  info.choices = {"mass", "spring"};
  info.default_value = name_of(by_default);
  return info;
}

ParameterInfo optional(ParameterInfo info, double by_default) {
  info.default_value = by_default;
  return info;
}

}  // namespace

std::unique_ptr<Subsystem> mass_spring_damper_chain(const ChainParameters& parameters) {
  static const PartType type = mass_spring_damper_chain_type();
  require_valid(type, to_map(parameters), parameters.allow_active);
  return build_mass_spring_damper_chain(parameters);
}

PartType mass_spring_damper_chain_type() {
  const ChainParameters defaults;
  PartType type;
  type.name = "mass_spring_damper_chain";
  type.group = "translation";
  type.summary = "A line of equal masses joined by springs and dampers, with a port at either end.";
  type.equations =
      "H = sum m v_i^2/2 + sum k (q_{i+1} - q_i)^2/2 + sum k_g q_i^2/2\n"
      "    + k_c (d_left^2 + d_right^2)/2\n"
      "mass end:   f = -v, the mass feels -e\n"
      "spring end: d' = f - v, e = k_c d + c_c (f - v), the mass feels e";
  ParameterInfo masses = positive_number("masses", "", "number of masses");
  masses.kind = ParameterKind::integer;
  masses.minimum = 1.0;
  masses.minimum_excluded = false;
  masses.maximum = kMostMasses;
  type.parameters = {
      std::move(masses),
      positive_number("mass_kg", "kg", "each mass m"),
      non_negative_number("stiffness_N_per_m", "N/m", "springs k between neighbours"),
      damper("damping_Ns_per_m", "N s/m", "damper from each mass to ground"),
      damper("internal_damping_Ns_per_m", "N s/m", "damper beside each spring between neighbours"),
      optional(non_negative_number("ground_stiffness_N_per_m", "N/m",
                                   "spring k_g from each mass to ground"),
               defaults.ground_stiffness_N_per_m),
      optional(non_negative_number("coupling_stiffness_N_per_m", "N/m",
                                   "springs k_c of the spring ends"),
               defaults.coupling_stiffness_N_per_m),
      damper("coupling_damping_Ns_per_m", "N s/m", "dampers c_c beside the springs of spring ends"),
      end_choice("left_end", "left", defaults.left_end),
      end_choice("right_end", "right", defaults.right_end),
  };
  type.build = [](const Parameters& parameters) {
    return build_mass_spring_damper_chain(chain_parameters(parameters));
  };
  type.example = {{"masses", 3},
                  {"mass_kg", 2.0},
                  {"stiffness_N_per_m", 30.0},
                  {"damping_Ns_per_m", 0.1},
                  {"internal_damping_Ns_per_m", 0.2},
                  {"ground_stiffness_N_per_m", 5.0},
                  {"coupling_stiffness_N_per_m", 40.0},
                  {"coupling_damping_Ns_per_m", 0.3}};
  return type;
}

}  // namespace portwave
