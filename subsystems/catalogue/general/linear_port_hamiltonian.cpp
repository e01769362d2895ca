#include <utility>

#include "catalogue/matrix_parameters.hpp"
#include "catalogue/part_types.hpp"
#include "catalogue/unit_check.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave {
namespace {

std::unique_ptr<Subsystem> build_linear_port_hamiltonian(const Parameters& parameters) {
  Signature signature{"linear_port_hamiltonian",
                      value_of<std::vector<StateVariable>>(parameters, "states"),
                      value_of<std::vector<Port>>(parameters, "ports"),
                      value_of<std::vector<ExternalInput>>(parameters, "inputs")};
  const int n = signature.state_size();
  const int m = signature.wave_size() + signature.input_size();
  LinearPortHamiltonian::Options options;
  options.allow_active = allows_active(parameters);
  options.storage = step_map_storage(value_of<std::string>(parameters, "step_maps"));

  Issues issues = check_unit_names(signature);
  MatrixReader reader(parameters, issues);
  Structure structure{.J = reader.read("J", n, n),
                      .R = reader.read("R", n, n),
                      .G = reader.read("G", n, m),
                      .P = reader.read("P", n, m),
                      .S = reader.read("S", m, m),
                      .N = reader.read("N", m, m)};
  SparseMatrix Q = reader.read("Q", n, n);
  if (!issues.empty()) {
    // The defects of the matrices that do fit; definiteness needs all of them, so it waits.
    append(issues, "", validate(structure, n, m, {.allow_active = true}));
    append(issues, "", validate_storage(Q, n, variable_names(signature)));
    throw ConfigError(std::move(issues));
  }
  return std::make_unique<LinearPortHamiltonian>(std::move(signature), std::move(structure),
                                                 std::move(Q), std::move(options));
}

ParameterInfo optional_matrix(std::string name, std::string summary) {
  return list_parameter<MatrixEntries>(std::move(name), ParameterKind::matrix,
                                       std::move(summary) + "; zero if absent", MatrixEntries{});
}

}  // namespace

PartType linear_port_hamiltonian_type() {
  using States = std::vector<StateVariable>;
  using Ports = std::vector<Port>;
  using Inputs = std::vector<ExternalInput>;
  PartType type;
  type.name = "linear_port_hamiltonian";
  type.group = "general";
  type.summary = "Any linear port-Hamiltonian part, given by its matrices.";
  type.equations =
      "H(x) = x^T Q x / 2\n"
      "x' = (J - R) Q x + (G - P) u,  y = (G + P)^T Q x + (S + N) u\n"
      "u: the inputs of the scalar ports, then the external inputs";
  type.parameters = {
      list_parameter<States>("states", ParameterKind::states, "names and units of the n states"),
      list_parameter<Ports>("ports", ParameterKind::ports, "the power ports"),
      list_parameter<Inputs>("inputs", ParameterKind::inputs, "external inputs", Inputs{}),
      required_matrix("J", "n×n, skew"),
      optional_matrix("R", "n×n, symmetric, [R P; P^T S] positive semidefinite"),
      required_matrix("G", "n×m"),
      optional_matrix("P", "n×m"),
      optional_matrix("S", "m×m, symmetric"),
      optional_matrix("N", "m×m, skew"),
      required_matrix("Q", "n×n, symmetric, positive semidefinite"),
      step_maps_choice(),
  };
  type.build = build_linear_port_hamiltonian;
  // A DC motor: inductance 0.5 H, resistance 1 ohm, inertia 0.1 kg m², friction 0.05, constant 0.2.
  type.example = {
      {"states", States{{"flux", "Wb"}, {"momentum", "kg m^2/s"}}},
      {"ports", Ports{{"terminals", Causality::effort_in, Domain::electrical, 1},
                      {"shaft", Causality::effort_in, Domain::rotation, 1}}},
      {"inputs", Inputs{{"load", "N m"}}},
      {"J", MatrixRows{{0.0, -0.2}, {0.2, 0.0}}},
      {"R", MatrixRows{{1.0, 0.0}, {0.0, 0.05}}},
      {"G", MatrixRows{{1.0, 0.0, 0.0}, {0.0, 1.0, 1.0}}},
      {"Q", MatrixEntries{{0, 0, 2.0}, {1, 1, 10.0}}},
  };
  return type;
}

}  // namespace portwave
