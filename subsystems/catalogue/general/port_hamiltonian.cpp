#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "catalogue/matrix_parameters.hpp"
#include "catalogue/part_types.hpp"
#include "catalogue/unit_check.hpp"
#include "expressions/expression_part.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave {
namespace {
namespace port_hamiltonian_part {

using States = std::vector<StateVariable>;
using Constants = std::vector<NamedNumber>;

/// Reads expressions of the states and constants of a part; appends what it finds.
class PhysicsReader {
 public:
  PhysicsReader(const Signature& signature, const Parameters& parameters, Issues& issues)
      : parameters_(parameters),
        issues_(issues),
        physics_(signature.state_size()),
        n_(signature.state_size()),
        m_(signature.wave_size() + signature.input_size()) {
    for (int i = 0; i < n_; ++i) {
      add_name(fmt::format("/states/{}/name", i),
               signature.states[static_cast<std::size_t>(i)].name, physics_.graph.variable(i));
    }
    for (const NamedNumber& constant : value_of<Constants>(parameters, "constants")) {
      add_name("/constants/" + escape_key(constant.name), constant.name,
               physics_.graph.number(constant.value));
    }
  }

  /// Units, after `read`.
  Issues check_units(const Signature& signature) const {
    Issues issues = check_unit_names(signature);
    append(issues, "", check_matrix_units(signature, plain_J_, plain_G_));
    return issues;
  }

  ExpressionPhysics read() {
    physics_.energy = node_of("/energy", value_of<std::string>(parameters_, "energy"));
    physics_.J = matrix("J", n_, n_, &plain_J_);
    physics_.R = matrix("R", n_, n_);
    physics_.G = matrix("G", n_, m_, &plain_G_);
    physics_.P = matrix("P", n_, m_);
    physics_.S = matrix("S", m_, m_);
    physics_.N = matrix("N", m_, m_);
    return std::move(physics_);
  }

 private:
  void add_name(std::string where, const std::string& name, ExpressionGraph::Node value) {
    if (!Expression::is_name(name)) {
      issues_.push_back({std::move(where), fmt::format("{} is no name in expressions: use letters, "
                                                       "digits and _, not a digit first",
                                                       in_quotes(name))});
    } else if (Expression::is_reserved(name)) {
      issues_.push_back(
          {std::move(where),
           fmt::format("{} has a meaning of its own in expressions; take another name",
                       in_quotes(name))});
    } else if (std::ranges::find(names_, name) != names_.end()) {
      issues_.push_back({std::move(where),
                         fmt::format("the name {} is already taken by a state", in_quotes(name))});
    } else {
      names_.push_back(name);
      values_.push_back(value);
    }
  }

  ExpressionGraph::Node node_of(const std::string& where, const std::string& text) {
    try {
      return physics_.graph.add(Expression::parse(text, names_), values_);
    } catch (const ConfigError& error) {
      append(issues_, where, error.issues());
      return physics_.graph.number(0.0);
    }
  }

  /// `plain`, or null: gets the entries that are numbers.
  ExpressionPhysics::Entries matrix(std::string_view name, int rows, int columns,
                                    std::vector<PlainEntry>* plain = nullptr) {
    ExpressionPhysics::Entries entries;
    const ParameterValue& value = parameters_.find(name)->second;
    const auto* const texts = std::get_if<ExpressionRows>(&value);
    if (texts == nullptr) {
      const SparseMatrix numbers = MatrixReader(parameters_, issues_).read(name, rows, columns);
      for (int j = 0; j < numbers.outerSize(); ++j) {
        for (SparseMatrix::InnerIterator it(numbers, j); it; ++it) {
          if (it.value() == 0.0) continue;
          entries.push_back({static_cast<int>(it.row()), j, physics_.graph.number(it.value())});
          if (plain != nullptr) plain->push_back({static_cast<int>(it.row()), j, it.value()});
        }
      }
      return entries;
    }
    const int given_columns = static_cast<int>(texts->front().size());
    const bool fits = std::ssize(*texts) == rows && given_columns == columns;
    if (!fits) {
      issues_.push_back(
          {fmt::format("/{}", name),
           fmt::format("must be {}×{}, got {}×{}", rows, columns, texts->size(), given_columns)});
    }
    for (std::size_t i = 0; i < texts->size(); ++i) {
      for (std::size_t j = 0; j < (*texts)[i].size(); ++j) {
        const auto node = node_of(fmt::format("/{}/{}/{}", name, i, j), (*texts)[i][j]);
        if (!fits || physics_.graph.is_zero(node)) continue;
        entries.push_back({static_cast<int>(i), static_cast<int>(j), node});
        const auto number = plain_number((*texts)[i][j]);
        if (plain != nullptr && number) {
          plain->push_back({static_cast<int>(i), static_cast<int>(j), *number});
        }
      }
    }
    return entries;
  }

  static std::optional<double> plain_number(std::string_view text) {
    double value = 0.0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
    return value;
  }

  const Parameters& parameters_;
  Issues& issues_;
  ExpressionPhysics physics_;
  int n_, m_;
  std::vector<std::string> names_;
  std::vector<ExpressionGraph::Node> values_;
  std::vector<PlainEntry> plain_J_, plain_G_;
};

std::vector<ExpressionLaw> read_laws(const Signature& signature, const Parameters& parameters,
                                     Issues& issues) {
  const auto& texts = value_of<std::vector<std::string>>(parameters, "characteristics");
  if (texts.empty()) return {};
  if (std::ssize(texts) != signature.wave_size()) {
    issues.push_back(
        {"/characteristics",
         fmt::format("must have one expression for each of the {} scalar ports, got {}",
                     signature.wave_size(), texts.size())});
    return {};
  }
  std::vector<std::string> names;
  std::vector<double> values;
  for (const NamedNumber& constant : value_of<Constants>(parameters, "constants")) {
    if (!Expression::is_name(constant.name)) continue;  // reported elsewhere
    if (constant.name == "u") {
      issues.push_back({"/constants/u", "\"u\" is the input of a port in characteristics"});
      return {};
    }
    names.push_back(constant.name);
    values.push_back(constant.value);
  }
  std::vector<ExpressionLaw> laws;
  for (std::size_t j = 0; j < texts.size(); ++j) {
    try {
      laws.emplace_back(texts[j], names, values, number_of(parameters, "characteristic_range"));
    } catch (const ConfigError& error) {
      append(issues, fmt::format("/characteristics/{}", j), error.issues());
    }
  }
  return laws;
}

/// Given for every state, or for none.
std::vector<double> state_numbers(const Parameters& parameters, std::string_view name, int states,
                                  Issues& issues) {
  const auto& numbers = value_of<std::vector<double>>(parameters, name);
  if (numbers.empty() || std::ssize(numbers) == states) return numbers;
  issues.push_back(
      {fmt::format("/{}", name),
       fmt::format("must have {} numbers, one for each state, got {}", states, numbers.size())});
  return {};
}

constexpr std::array kGradients = {DiscreteGradient::mean_value, DiscreteGradient::gonzalez,
                                   DiscreteGradient::itoh_abe};

DiscreteGradient gradient_of(const Parameters& parameters) {
  const auto& name = value_of<std::string>(parameters, "discrete_gradient");
  return *std::ranges::find_if(kGradients,
                               [&](DiscreteGradient kind) { return to_string(kind) == name; });
}

ParameterInfo gradient_choice() {
  ParameterInfo info;
  info.name = "discrete_gradient";
  info.kind = ParameterKind::choice;
  info.summary =
      "dH/dx over a step, under which energy balances: its mean along the step, that in the middle "
      "with a correction, or by differences state by state";
  for (const DiscreteGradient kind : kGradients) info.choices.emplace_back(to_string(kind));
  info.default_value = info.choices.front();
  return info;
}

std::unique_ptr<Subsystem> build_port_hamiltonian(const Parameters& parameters) {
  Signature signature{"port_hamiltonian", value_of<States>(parameters, "states"),
                      value_of<std::vector<Port>>(parameters, "ports"),
                      value_of<std::vector<ExternalInput>>(parameters, "inputs")};
  const int n = signature.state_size();
  Issues issues;
  NonlinearPortHamiltonian::Options options;
  options.allow_active = allows_active(parameters);
  options.discrete_gradient = gradient_of(parameters);
  options.default_state = state_numbers(parameters, "default_state", n, issues);
  options.typical_state = state_numbers(parameters, "typical_state", n, issues);
  PhysicsReader reader(signature, parameters, issues);
  ExpressionPhysics physics = reader.read();
  append(issues, "", reader.check_units(signature));
  std::vector<ExpressionLaw> laws = read_laws(signature, parameters, issues);
  std::vector<double> start = options.default_state, size = options.typical_state;
  start.resize(static_cast<std::size_t>(n), 0.0);
  size.resize(static_cast<std::size_t>(n), 1.0);
  append(issues, "", check_symmetry(physics, signature.states, start, size));
  throw_if_any(std::move(issues));
  return ExpressionPart::make(std::move(signature), std::move(physics), std::move(laws),
                              std::move(options));
}

ParameterInfo matrix_of_expressions(std::string name, std::string summary) {
  return list_parameter<MatrixEntries>(std::move(name), ParameterKind::expression_matrix,
                                       std::move(summary) + "; zero if absent", MatrixEntries{});
}

}  // namespace port_hamiltonian_part
}  // namespace

PartType port_hamiltonian_type() {
  using namespace port_hamiltonian_part;
  using Ports = std::vector<Port>;
  using Inputs = std::vector<ExternalInput>;
  using Numbers = std::vector<double>;
  PartType type;
  type.name = "port_hamiltonian";
  type.group = "general";
  type.summary = "Any port-Hamiltonian part, given by expressions for its energy and its matrices.";
  type.equations =
      "x' = (J(x) - R(x)) dH/dx + (G(x) - P(x)) u,  y = (G + P)^T dH/dx + (S + N) u + phi(u)\n"
      "u: the inputs of the scalar ports, then the external inputs; phi: at the ports alone\n"
      "dissipation [dH/dx; u]^T [R P; P^T S] [dH/dx; u] + sum phi(u) u >= 0";
  ParameterInfo energy;
  energy.name = "energy";
  energy.kind = ParameterKind::expression;
  energy.summary = "H in joules, an expression of the states and the constants";
  energy.default_value = std::string("0");
  ParameterInfo range = positive_number(
      "characteristic_range", "", "|u| up to which characteristics hold; beyond, straight lines");
  range.default_value = 1e6;
  ParameterInfo sizes = list_parameter<Numbers>(
      "typical_state", ParameterKind::numbers,
      "a usual size of each state, in its unit; found from H if absent", Numbers{});
  sizes.minimum = 0.0;
  sizes.minimum_excluded = true;
  type.parameters = {
      list_parameter<States>("states", ParameterKind::states, "names and units of the n states"),
      list_parameter<Ports>("ports", ParameterKind::ports, "the power ports"),
      list_parameter<Inputs>("inputs", ParameterKind::inputs, "external inputs", Inputs{}),
      list_parameter<Constants>("constants", ParameterKind::constants,
                                "numbers that the expressions call by name", Constants{}),
      std::move(energy),
      matrix_of_expressions("J", "n×n, skew"),
      matrix_of_expressions("R", "n×n, symmetric, [R P; P^T S] positive semidefinite"),
      matrix_of_expressions("G", "n×m"),
      matrix_of_expressions("P", "n×m"),
      matrix_of_expressions("S", "m×m, symmetric"),
      matrix_of_expressions("N", "m×m, skew"),
      list_parameter<std::vector<std::string>>(
          "characteristics", ParameterKind::expressions,
          "phi of each scalar port, an expression of its input u and the constants: 0 at u = 0, "
          "not decreasing; "
          "none if absent",
          std::vector<std::string>{}),
      std::move(range),
      list_parameter<Numbers>("default_state", ParameterKind::numbers,
                              "the state to start from where a scenario names none; H must be "
                              "finite there. Zero if absent",
                              Numbers{}),
      std::move(sizes),
      gradient_choice(),
  };
  type.build = build_port_hamiltonian;
  // A pendulum of 1.2 kg, 0.8 m, on a shaft with friction.
  type.example = {
      {"states", States{{"q", "rad"}, {"p", "kg m^2/s"}}},
      {"ports", Ports{{"shaft", Causality::effort_in, Domain::rotation, 1}}},
      {"inputs", Inputs{{"torque", "N m"}}},
      {"constants", Constants{{"m", 1.2}, {"l", 0.8}, {"g", 9.81}, {"c", 0.05}}},
      {"energy", std::string("p^2/(2*m*l^2) + m*g*l*(1 - cos(q))")},
      {"J", MatrixRows{{0.0, 1.0}, {-1.0, 0.0}}},
      {"R", ExpressionRows{{"0", "0"}, {"0", "c"}}},
      {"G", MatrixRows{{0.0, 0.0}, {-1.0, 1.0}}},
  };
  return type;
}

}  // namespace portwave
