#include <utility>

#include <fmt/format.h>

#include "part_types.hpp"
#include "portwave/subsystems/linear_part.hpp"

namespace portwave {
namespace {

/// Turns given matrices into sparse ones of the shape that the part needs; a matrix that does not
/// fit is reported and replaced by zero.
class MatrixReader {
 public:
  MatrixReader(const Parameters& parameters, Issues& issues)
      : parameters_(parameters), issues_(issues) {}

  SparseMatrix read(std::string_view name, int rows, int columns) {
    const ParameterValue& value = parameters_.find(name)->second;
    SparseMatrix matrix(rows, columns);
    const std::vector<Eigen::Triplet<double>> entries =
        std::holds_alternative<MatrixEntries>(value)
            ? from_entries(name, std::get<MatrixEntries>(value), rows, columns)
            : from_rows(name, std::get<MatrixRows>(value), rows, columns);
    matrix.setFromTriplets(entries.begin(), entries.end());
    return matrix;
  }

 private:
  using Triplets = std::vector<Eigen::Triplet<double>>;

  Triplets from_entries(std::string_view name, const MatrixEntries& given, int rows, int columns) {
    Triplets entries;
    for (std::size_t i = 0; i < given.size(); ++i) {
      const MatrixEntry& entry = given[i];
      if (entry.row < rows && entry.column < columns) {
        entries.emplace_back(entry.row, entry.column, entry.value);
        continue;
      }
      issues_.push_back({fmt::format("/{}/{}", name, i),
                         fmt::format("({},{}) is outside the matrix, which is {}×{}", entry.row,
                                     entry.column, rows, columns)});
    }
    return entries;
  }

  Triplets from_rows(std::string_view name, const MatrixRows& given, int rows, int columns) {
    const std::size_t given_columns = given.empty() ? 0 : given.front().size();
    const bool is_empty = given.empty() && (rows == 0 || columns == 0);  // [] is n×0 too
    const bool fits = is_empty || (given.size() == static_cast<std::size_t>(rows) &&
                                   given_columns == static_cast<std::size_t>(columns));
    if (!fits) {
      issues_.push_back(
          {fmt::format("/{}", name), fmt::format("must be {}×{} ({}), got {}×{}", rows, columns,
                                                 shape(name), given.size(), given_columns)});
      return {};
    }
    Triplets entries;
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j) {
        if (given[i][j] != 0.0) entries.emplace_back(i, j, given[i][j]);
      }
    }
    return entries;
  }

  static std::string_view shape(std::string_view name) {
    if (name == "G" || name == "P") return "states × scalar ports and inputs";
    if (name == "S" || name == "N") return "scalar ports and inputs, square";
    return "states, square";
  }

  const Parameters& parameters_;
  Issues& issues_;
};

StepMapStorage storage_of(const std::string& name) {
  if (name == "dense") return StepMapStorage::dense;
  return name == "sparse" ? StepMapStorage::sparse : StepMapStorage::automatic;
}

std::unique_ptr<Subsystem> build(const Parameters& parameters) {
  Signature signature{"linear_port_hamiltonian",
                      value_of<std::vector<StateVariable>>(parameters, "states"),
                      value_of<std::vector<Port>>(parameters, "ports"),
                      value_of<std::vector<InputChannel>>(parameters, "inputs")};
  const int n = signature.state_size();
  const int m = signature.wave_size() + signature.input_size();
  LinearPortHamiltonian::Options options;
  options.allow_active = allows_active(parameters);
  options.storage = storage_of(value_of<std::string>(parameters, "step_maps"));

  Issues issues;
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

template <class List>
ParameterInfo list(std::string name, ParameterKind kind, std::string summary,
                   std::optional<List> by_default = {}) {
  ParameterInfo info;
  info.name = std::move(name);
  info.kind = kind;
  info.summary = std::move(summary);
  if (by_default) info.default_value = std::move(*by_default);
  return info;
}

ParameterInfo required_matrix(std::string name, std::string summary) {
  return list<MatrixEntries>(std::move(name), ParameterKind::matrix, std::move(summary));
}

ParameterInfo optional_matrix(std::string name, std::string summary) {
  return list<MatrixEntries>(std::move(name), ParameterKind::matrix,
                             std::move(summary) + "; zero if absent", MatrixEntries{});
}

ParameterInfo step_maps_choice() {
  ParameterInfo info;
  info.name = "step_maps";
  info.kind = ParameterKind::choice;
  info.summary = "where the step maps are kept; automatic: dense up to 64 states, sparse beyond";
  info.choices = {"automatic", "dense", "sparse"};
  info.default_value = std::string("automatic");
  return info;
}

}  // namespace

PartType linear_port_hamiltonian_type() {
  using States = std::vector<StateVariable>;
  using Ports = std::vector<Port>;
  using Inputs = std::vector<InputChannel>;
  PartType type;
  type.name = "linear_port_hamiltonian";
  type.summary = "Any linear port-Hamiltonian part, given by its matrices.";
  type.equations =
      "H(x) = x^T Q x / 2\n"
      "x' = (J - R) Q x + (G - P) u,  y = (G + P)^T Q x + (S + N) u\n"
      "u: the inputs of the scalar ports, then the external inputs";
  type.parameters = {
      list<States>("states", ParameterKind::states, "names and units of the n states"),
      list<Ports>("ports", ParameterKind::ports, "the power ports"),
      list<Inputs>("inputs", ParameterKind::inputs, "external inputs", Inputs{}),
      required_matrix("J", "n×n, skew"),
      optional_matrix("R", "n×n, symmetric, [R P; P^T S] positive semidefinite"),
      required_matrix("G", "n×m"),
      optional_matrix("P", "n×m"),
      optional_matrix("S", "m×m, symmetric"),
      optional_matrix("N", "m×m, skew"),
      required_matrix("Q", "n×n, symmetric, positive semidefinite"),
      step_maps_choice(),
  };
  type.build = build;
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
