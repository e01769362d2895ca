#include <set>
#include <utility>

#include <fmt/format.h>

#include "catalogue/matrix_parameters.hpp"
#include "catalogue/part_types.hpp"
#include "portwave/subsystems/descriptor/second_order.hpp"

namespace portwave {
namespace {

std::vector<std::string> names_of(const std::vector<StateVariable>& coordinates) {
  std::vector<std::string> names;
  names.reserve(coordinates.size());
  for (const StateVariable& coordinate : coordinates) names.push_back(coordinate.name);
  return names;
}

/// "q_rate" beside "q" would be both a coordinate and the rate of one.
void check_rates(const std::vector<StateVariable>& coordinates, Issues& issues) {
  std::set<std::string_view> names;
  for (const StateVariable& coordinate : coordinates) names.insert(coordinate.name);
  for (std::size_t i = 0; i < coordinates.size(); ++i) {
    const std::string rate = coordinates[i].name + "_rate";
    if (!names.contains(rate)) continue;
    issues.push_back({fmt::format("/coordinates/{}/name", i),
                      fmt::format("its rate has the name of the coordinate \"{}\"", rate)});
  }
}

std::unique_ptr<Subsystem> build_second_order_system(const Parameters& parameters) {
  const auto& coordinates = value_of<std::vector<StateVariable>>(parameters, "coordinates");
  Signature signature{"second_order_system", second_order_states(coordinates),
                      value_of<std::vector<Port>>(parameters, "ports"),
                      value_of<std::vector<ExternalInput>>(parameters, "inputs")};
  const int n = static_cast<int>(coordinates.size());
  const int m = signature.wave_size() + signature.input_size();
  DescriptorPortHamiltonian::Options options;
  options.allow_active = allows_active(parameters);
  options.storage = step_map_storage(value_of<std::string>(parameters, "step_maps"));

  Issues issues;
  check_rates(coordinates, issues);
  MatrixReader reader(parameters, issues);
  SecondOrderForm form{.M = reader.read("M", n, n),
                       .D = reader.read("D", n, n),
                       .K = reader.read("K", n, n),
                       .B = reader.read("B", n, m)};
  throw_if_any(std::move(issues));
  throw_if_any(
      validate(form, n, m, {.allow_active = options.allow_active, .names = names_of(coordinates)}));
  if (n >= kFactoredForm) {
    return make_second_order_part(std::move(signature), std::move(form), std::move(options));
  }
  return std::make_unique<DescriptorPortHamiltonian>(std::move(signature), descriptor_form(form),
                                                     std::move(options));
}

}  // namespace

PartType second_order_system_type() {
  using States = std::vector<StateVariable>;
  using Ports = std::vector<Port>;
  using Inputs = std::vector<ExternalInput>;
  PartType type;
  type.name = "second_order_system";
  type.group = "general";
  type.summary = "Any linear structure, given by its matrices of mass, damping and stiffness.";
  type.equations =
      "H(q, v) = v^T M v / 2 + q^T K q / 2,  v = q'\n"
      "M q'' + D q' + K q = B u,  y = B^T q'\n"
      "u: the inputs of the scalar ports, then the external inputs; K may be singular";
  type.parameters = {
      list_parameter<States>("coordinates", ParameterKind::states,
                             "names and units of the n entries of q; the states are these and "
                             "their rates \"<name>_rate\""),
      list_parameter<Ports>("ports", ParameterKind::ports, "the power ports"),
      list_parameter<Inputs>("inputs", ParameterKind::inputs, "external inputs", Inputs{}),
      required_matrix("M", "n×n, symmetric, positive definite"),
      list_parameter<MatrixEntries>(
          "D", ParameterKind::matrix,
          "n×n, D + D^T positive semidefinite, the skew part gyroscopic; zero if absent",
          MatrixEntries{}),
      required_matrix("K", "n×n, symmetric, positive semidefinite"),
      required_matrix("B", "n×m"),
      step_maps_choice(),
  };
  type.build = build_second_order_system;
  // A free bar of two linear finite elements with consistent masses: 1 kg and 30 N/m each.
  type.example = {
      {"coordinates", States{{"u1", "m"}, {"u2", "m"}, {"u3", "m"}}},
      {"ports", Ports{{"left", Causality::effort_in, Domain::translation, 1},
                      {"right", Causality::effort_in, Domain::translation, 1}}},
      {"inputs", Inputs{{"force", "N"}}},
      {"M",
       MatrixRows{{1.0 / 3, 1.0 / 6, 0.0}, {1.0 / 6, 2.0 / 3, 1.0 / 6}, {0.0, 1.0 / 6, 1.0 / 3}}},
      {"D", MatrixRows{{0.3, -0.3, 0.0}, {-0.3, 0.6, -0.3}, {0.0, -0.3, 0.3}}},
      {"K", MatrixRows{{30.0, -30.0, 0.0}, {-30.0, 60.0, -30.0}, {0.0, -30.0, 30.0}}},
      {"B", MatrixRows{{1.0, 0.0, 0.0}, {0.0, 0.0, 1.0}, {0.0, 1.0, 0.0}}},
  };
  return type;
}

}  // namespace portwave
