#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "differential/engine_run.hpp"

namespace portwave::differential {
namespace {

using Json = nlohmann::ordered_json;

Json rows_of(const Matrix& m) {
  Json rows = Json::array();
  for (Eigen::Index i = 0; i < m.rows(); ++i) {
    Json row = Json::array();
    for (Eigen::Index j = 0; j < m.cols(); ++j) row.push_back(m(i, j));
    rows.push_back(std::move(row));
  }
  return rows;
}

Json drive_of(const Drive& drive) {
  switch (drive.kind) {
    case Drive::Kind::none:
      break;
    case Drive::Kind::constant:
      return {{"kind", "constant"}, {"value", drive.amplitude}};
    case Drive::Kind::harmonic:
      return {
          {"kind", "sine_product"},
          {"amplitude", drive.amplitude},
          {"sines",
           Json::array({{{"frequency_Hz", drive.frequency_Hz}, {"phase_rad", drive.phase_rad}}})}};
    case Drive::Kind::step:
      return {{"kind", "table"},
              {"knots", Json::array({Json::array({drive.from_s, 0.0}),
                                     Json::array({drive.until_s, drive.amplitude})})}};
  }
  return {{"kind", "constant"}, {"value", 0.0}};
}

Json part_of(const PartData& part, const std::string& name, Json& observe) {
  Json parameters, states = Json::array(), ports = Json::array(), inputs = Json::array(), drives;
  for (int k = 0; k < part.states(); ++k) {
    states.push_back({{"name", fmt::format("x{}", k)}, {"unit", "-"}});
    observe.push_back(fmt::format("{}.x{}", name, k));
  }
  for (int j = 0; j < part.ports(); ++j) {
    const bool effort_in = part.effort_in[static_cast<std::size_t>(j)];
    ports.push_back(
        {{"name", fmt::format("p{}", j)}, {"causality", effort_in ? "effort_in" : "flow_in"}});
    for (const char* quantity : {"effort", "flow"}) {
      observe.push_back(fmt::format("{}.p{}.{}", name, j, quantity));
    }
  }
  for (std::size_t k = 0; k < part.drives.size(); ++k) {
    inputs.push_back({{"name", fmt::format("u{}", k)}, {"unit", "-"}});
    drives[fmt::format("u{}", k)] = drive_of(part.drives[k]);
  }
  parameters["states"] = std::move(states);
  parameters["ports"] = std::move(ports);
  if (!inputs.empty()) parameters["inputs"] = std::move(inputs);
  if (part.descriptor) parameters["E"] = rows_of(part.E);
  for (const auto& [key, matrix] : std::initializer_list<std::pair<const char*, const Matrix*>>{
           {"J", &part.J},
           {"R", &part.R},
           {"Q", &part.Q},
           {part.descriptor ? "B" : "G", &part.G},
           {"P", &part.P},
           {"S", &part.S},
           {"N", &part.N}}) {
    if (part.descriptor && (*key == 'P' || *key == 'S' || *key == 'N')) continue;
    parameters[key] = rows_of(*matrix);
  }
  Json result = {
      {"name", name},
      {"type", part.descriptor ? "descriptor_port_hamiltonian" : "linear_port_hamiltonian"},
      {"parameters", std::move(parameters)},
      {"initial_state",
       std::vector<double>(part.start.data(), part.start.data() + part.start.size())}};
  if (part.active) result["allow_active"] = true;
  if (!drives.is_null()) result["inputs"] = std::move(drives);
  return result;
}

Json joint_of(const JointData& joint) {
  Json ports = Json::array();
  for (const PortRef& port : joint.ports)
    ports.push_back(fmt::format("s{}.p{}", port.part, port.port));
  static const char* const names[] = {"connection", "common_effort", "common_flow", "transformer",
                                      "gyrator",    "skew_gain",     "kernel",      "free",
                                      "fixed",      "resistive"};
  Json result = {{"kind", names[static_cast<int>(joint.kind)]}, {"ports", std::move(ports)}};
  switch (joint.kind) {
    case JointKind::transformer:
    case JointKind::gyrator:
      result["ratio"] = joint.value;
      break;
    case JointKind::resistive:
      result["resistance"] = joint.value;
      break;
    case JointKind::skew_gain:
      result["gain"] = rows_of(joint.first);
      break;
    case JointKind::kernel:
      result["E"] = rows_of(joint.first);
      result["F"] = rows_of(joint.second);
      break;
    default:
      break;
  }
  return result;
}

}  // namespace

Json scenario_of(const Network& network) {
  Json observe = Json::array(), parts = Json::array(), joints = Json::array();
  for (std::size_t i = 0; i < network.parts.size(); ++i) {
    parts.push_back(part_of(network.parts[i], fmt::format("s{}", i), observe));
  }
  for (const JointData& joint : network.joints) joints.push_back(joint_of(joint));
  return {{"name", fmt::format("{}_{}", network.family, network.seed)},
          {"time", {{"step_s", network.step_s}, {"steps", network.steps}, {"start", "as_given"}}},
          {"subsystems", std::move(parts)},
          {"couplings", std::move(joints)},
          {"method", {{"kind", "auto"}, {"integrator", "gauss"}}},
          {"outputs", {{"observe", std::move(observe)}}}};
}

}  // namespace portwave::differential
