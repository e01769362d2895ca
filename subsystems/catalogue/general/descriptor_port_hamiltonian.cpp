#include <utility>

#include "catalogue/matrix_parameters.hpp"
#include "catalogue/part_types.hpp"
#include "catalogue/unit_check.hpp"
#include "portwave/subsystems/descriptor/descriptor_part.hpp"

namespace portwave {
namespace {

/// Q without entries would be singular, so it stands for the identity.
bool is_absent(const ParameterValue& matrix) {
  const auto* const entries = std::get_if<MatrixEntries>(&matrix);
  return entries != nullptr && entries->empty();
}

std::unique_ptr<Subsystem> build_descriptor_port_hamiltonian(const Parameters& parameters) {
  Signature signature{"descriptor_port_hamiltonian",
                      value_of<std::vector<StateVariable>>(parameters, "states"),
                      value_of<std::vector<Port>>(parameters, "ports"),
                      value_of<std::vector<ExternalInput>>(parameters, "inputs")};
  const int n = signature.state_size();
  const int m = signature.wave_size() + signature.input_size();
  DescriptorPortHamiltonian::Options options;
  options.allow_active = allows_active(parameters);
  options.storage = step_map_storage(value_of<std::string>(parameters, "step_maps"));

  Issues issues = check_unit_names(signature);
  MatrixReader reader(parameters, issues);
  DescriptorForm form{.E = reader.read("E", n, n),
                      .J = reader.read("J", n, n),
                      .R = reader.read("R", n, n),
                      .Q = SparseMatrix(n, n),
                      .B = reader.read("B", n, m)};
  if (is_absent(parameters.find("Q")->second)) {
    form.Q.setIdentity();
  } else {
    form.Q = reader.read("Q", n, n);
  }
  if (!issues.empty()) {
    // The defects of the matrices that do fit; those of all together need them all, so they wait.
    Structure structure = Structure::zero(n, m);
    structure.J = form.J;
    structure.R = form.R;
    append(issues, "", validate(structure, n, m, {.allow_active = true}));
    throw ConfigError(std::move(issues));
  }
  return std::make_unique<DescriptorPortHamiltonian>(std::move(signature), std::move(form),
                                                     std::move(options));
}

}  // namespace

PartType descriptor_port_hamiltonian_type() {
  using States = std::vector<StateVariable>;
  using Ports = std::vector<Port>;
  using Inputs = std::vector<ExternalInput>;
  const auto optional_matrix = [](std::string name, std::string summary) {
    return list_parameter<MatrixEntries>(std::move(name), ParameterKind::matrix, std::move(summary),
                                         MatrixEntries{});
  };
  PartType type;
  type.name = "descriptor_port_hamiltonian";
  type.group = "general";
  type.summary =
      "Any linear port-Hamiltonian part with algebraic equations, given by its matrices.";
  type.equations =
      "H(x) = x^T Q^T E x / 2\n"
      "d/dt (E x) = (J - R) Q x + B u,  y = B^T Q x\n"
      "u: the inputs of the scalar ports, then the external inputs; E may be singular, index <= 2";
  type.parameters = {
      list_parameter<States>("states", ParameterKind::states, "names and units of the n states"),
      list_parameter<Ports>("ports", ParameterKind::ports, "the power ports"),
      list_parameter<Inputs>("inputs", ParameterKind::inputs, "external inputs", Inputs{}),
      required_matrix("E", "n×n, E^T Q symmetric, positive semidefinite"),
      required_matrix("J", "n×n, skew"),
      optional_matrix("R", "n×n, symmetric, positive semidefinite; zero if absent"),
      required_matrix("B", "n×m"),
      optional_matrix("Q", "n×n, regular unless E is; the identity if absent"),
      step_maps_choice(),
  };
  type.build = build_descriptor_port_hamiltonian;
  // Two nodes with conductances 2 S between them and 0.5 S to ground at each, a capacitor of 0.25 F
  // at the second one alone, and the terminal at the first one.
  type.example = {
      {"states", States{{"u1", "V"}, {"u2", "V"}}},
      {"ports", Ports{{"terminal", Causality::flow_in, Domain::electrical, 1}}},
      {"inputs", Inputs{{"source", "A"}}},
      {"E", MatrixRows{{0.0, 0.0}, {0.0, 0.25}}},
      {"J", MatrixRows{{0.0, 0.0}, {0.0, 0.0}}},
      {"R", MatrixRows{{2.5, -2.0}, {-2.0, 2.5}}},
      {"B", MatrixRows{{1.0, 0.0}, {0.0, 1.0}}},
  };
  return type;
}

}  // namespace portwave
