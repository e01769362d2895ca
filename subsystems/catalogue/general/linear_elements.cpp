#include "catalogue/general/linear_elements.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "portwave/subsystems/matrices/sparse_entries.hpp"

namespace portwave {
namespace {

constexpr int kMostCells = 1'000'000;
constexpr int kMostPorts = 1'000;
constexpr std::array kDomains = {Domain::translation, Domain::rotation,  Domain::electrical,
                                 Domain::magnetic,    Domain::hydraulic, Domain::thermal,
                                 Domain::generic};

}  // namespace

LinearPartBuilder::Input LinearPartBuilder::port(std::string name, Causality causality,
                                                 Domain domain) {
  signature_.ports.push_back({std::move(name), causality, domain, 1});
  return {static_cast<int>(signature_.ports.size()) - 1};
}

LinearPartBuilder::Input LinearPartBuilder::input(std::string name, std::string unit) {
  signature_.inputs.push_back({std::move(name), std::move(unit)});
  return {static_cast<int>(signature_.ports.size() + signature_.inputs.size()) - 1};
}

LinearPartBuilder::State LinearPartBuilder::displacement(std::string name, std::string unit,
                                                         double weight) {
  const State state{signature_.state_size()};
  signature_.states.push_back({std::move(name), std::move(unit)});
  scales_.push_back(1.0);
  if (weight != 0.0) Q_.emplace_back(state.index, state.index, weight);
  return state;
}

LinearPartBuilder::State LinearPartBuilder::velocity(std::string name, std::string unit,
                                                     double inertia) {
  const State state = displacement(std::move(name), std::move(unit), inertia);
  scales_.back() = inertia;
  return state;
}

void LinearPartBuilder::exchange(State to, State from, double factor) {
  const double entry = factor / (scales_[static_cast<std::size_t>(to.index)] *
                                 scales_[static_cast<std::size_t>(from.index)]);
  J_.emplace_back(to.index, from.index, entry);
  J_.emplace_back(from.index, to.index, -entry);
}

void LinearPartBuilder::drive(State to, Input from, double factor) {
  G_.emplace_back(to.index, from.index, factor / scales_[static_cast<std::size_t>(to.index)]);
}

void LinearPartBuilder::pass(Input to, Input from, double factor) {
  N_.emplace_back(to.index, from.index, factor);
  N_.emplace_back(from.index, to.index, -factor);
}

// [R P; Pᵀ S] gains resistance a aᵀ, a being the coefficients of the terms.
void LinearPartBuilder::dissipate(double resistance, std::initializer_list<Term> terms) {
  if (resistance == 0.0) return;
  const auto coefficient = [this](const Term& term) {
    return term.is_input ? term.factor
                         : term.factor / scales_[static_cast<std::size_t>(term.index)];
  };
  for (const Term& row : terms) {
    for (const Term& column : terms) {
      const double entry = resistance * (coefficient(row) * coefficient(column));
      if (row.is_input && column.is_input) S_.emplace_back(row.index, column.index, entry);
      if (row.is_input) continue;
      (column.is_input ? P_ : R_).emplace_back(row.index, column.index, entry);
    }
  }
}

std::unique_ptr<Subsystem> LinearPartBuilder::build(bool allow_active) && {
  const int n = signature_.state_size();
  const int m = signature_.wave_size() + signature_.input_size();
  Structure structure{.J = sparse_matrix(n, n, J_),
                      .R = sparse_matrix(n, n, R_),
                      .G = sparse_matrix(n, m, G_),
                      .P = sparse_matrix(n, m, P_),
                      .S = sparse_matrix(m, m, S_),
                      .N = sparse_matrix(m, m, N_)};
  LinearPortHamiltonian::Options options;
  options.allow_active = allow_active;
  return std::make_unique<LinearPortHamiltonian>(std::move(signature_), std::move(structure),
                                                 sparse_matrix(n, n, Q_), std::move(options));
}

std::unique_ptr<Subsystem> lossless_two_port(std::string type, Port first, Port second, double gain,
                                             bool allow_active) {
  LinearPartBuilder part(std::move(type));
  const auto one = part.port(std::move(first.name), first.causality, first.domain);
  const auto other = part.port(std::move(second.name), second.causality, second.domain);
  part.pass(one, other, gain);
  return std::move(part).build(allow_active);
}

std::unique_ptr<Subsystem> make_body(const Body& body, bool allow_active) {
  LinearPartBuilder part(body.type);
  std::vector<LinearPartBuilder::Input> ports;
  for (int i = 1; i <= body.ports; ++i) {
    ports.push_back(part.port(body.ports == 1 ? body.port : body.port + "_" + std::to_string(i),
                              Causality::effort_in, body.domain));
  }
  const auto force = part.input(body.force, body.force_unit);
  const auto position = part.displacement(body.position, body.position_unit, 0.0);
  const auto velocity = part.velocity(body.velocity, body.velocity_unit, body.inertia);
  part.exchange(position, velocity, 1.0);
  part.dissipate(body.damping, {{velocity, 1.0}});
  for (const auto port : ports) part.drive(velocity, port, -1.0);
  part.drive(velocity, force, 1.0);
  return std::move(part).build(allow_active);
}

std::unique_ptr<Subsystem> make_link(const Link& link, bool allow_active) {
  LinearPartBuilder part(link.type);
  const auto left = part.port("left", Causality::flow_in, link.domain);
  const auto right = part.port("right", Causality::flow_in, link.domain);
  if (!link.elongation.empty()) {
    const auto elongation =
        part.displacement(link.elongation, link.elongation_unit, link.stiffness);
    part.drive(elongation, left, -1.0);
    part.drive(elongation, right, 1.0);
  }
  part.dissipate(link.damping, {{left, -1.0}, {right, 1.0}});
  return std::move(part).build(allow_active);
}

ParameterInfo signed_ratio(std::string name, std::string unit, std::string summary) {
  ParameterInfo info;
  info.name = std::move(name);
  info.unit = std::move(unit);
  info.summary = std::move(summary);
  return info;
}

double nonzero(const Parameters& parameters, std::string_view name) {
  const double value = number_of(parameters, name);
  if (value == 0.0) throw ConfigError("/" + std::string(name), "must not be 0, got 0");
  return value;
}

ParameterInfo cell_count(std::string name, std::string summary) {
  ParameterInfo info = non_negative_number(std::move(name), "", std::move(summary));
  info.kind = ParameterKind::integer;
  info.minimum = 1.0;
  info.maximum = kMostCells;
  return info;
}

ParameterInfo required_damper(std::string name, std::string unit, std::string summary) {
  ParameterInfo info = damper(std::move(name), std::move(unit), std::move(summary));
  info.default_value.reset();
  return info;
}

ParameterInfo with_default(ParameterInfo info, ParameterValue value) {
  info.default_value = std::move(value);
  return info;
}

ParameterInfo domain_choice() {
  ParameterInfo info;
  info.name = "domain";
  info.kind = ParameterKind::choice;
  info.summary = "what the port carries";
  for (const Domain domain : kDomains) info.choices.emplace_back(to_string(domain));
  return info;
}

Domain domain_of(const Parameters& parameters) {
  const std::string& name = value_of<std::string>(parameters, "domain");
  return *std::find_if(kDomains.begin(), kDomains.end(),
                       [&](Domain domain) { return to_string(domain) == name; });
}

ParameterInfo port_count() {
  ParameterInfo info = with_default(
      cell_count("ports",
                 "number of ports, one for each part that acts on it; the ports of more "
                 "than one are numbered from _1"),
      1);
  info.maximum = kMostPorts;
  return info;
}

}  // namespace portwave
