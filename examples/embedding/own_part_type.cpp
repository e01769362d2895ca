// A type of part of this program's own, used in a scenario. See docs/tutorial/your-own-part.md.

#include <cstdio>
#include <memory>
#include <string>

#include <portwave/extend/part_type.hpp>
#include <portwave/portwave.hpp>

/// A tank of area A with a pipe at its bottom: H(V) = ρg V²/(2A), the port is the pressure e at the
/// end of the pipe and the volume flow f into it.
portwave::PartType water_tank_type() {
  portwave::ParameterInfo area;
  area.name = "area_m2";
  area.unit = "m^2";
  area.summary = "area A of the surface";
  area.minimum = 0.0;
  area.minimum_excluded = true;

  portwave::PartType type;
  type.name = "water_tank";
  type.summary = "Open tank of water with a pipe at its bottom.";
  type.equations = "H(V) = rho g V^2/(2 A)\nV' = f,  e = rho g V/A";
  type.parameters = {area};
  type.example = {{"area_m2", 0.5}};
  type.build = [](const portwave::Parameters& parameters) -> std::unique_ptr<portwave::Component> {
    const double area_m2 = std::get<double>(parameters.at("area_m2"));
    portwave::Signature signature;
    signature.type = "water_tank";
    signature.states = {{"volume", "m^3"}};
    signature.ports = {{"pipe", portwave::Causality::flow_in, portwave::Domain::hydraulic, 1}};
    portwave::Structure structure = portwave::Structure::zero(/*states=*/1, /*inputs=*/1);
    structure.G.insert(0, 0) = 1.0;
    portwave::SparseMatrix Q(1, 1);
    Q.insert(0, 0) = 1000.0 * 9.81 / area_m2;
    return std::make_unique<portwave::LinearPortHamiltonian>(
        std::move(signature), std::move(structure), std::move(Q),
        portwave::LinearPortHamiltonian::Options{});
  };
  return type;
}

/// A piston of 0.1 m² in the pipe pushes a mass on a spring: force = 0.1 m² · pressure.
const std::string scenario_text = R"({
  "name": "tank and piston",
  "time": {"step_s": 0.01, "end_s": 20},
  "subsystems": [
    {"name": "tank", "type": "water_tank", "parameters": {"area_m2": 0.5},
     "initial_state": {"volume": 0.02}},
    {"name": "piston", "type": "linear_oscillator",
     "parameters": {"mass_kg": 20, "stiffness_N_per_m": 100, "damping_Ns_per_m": 15}}
  ],
  "couplings": [
    {"kind": "transformer", "ratio": 10, "ports": ["tank.pipe", "piston.coupling"]}
  ],
  "method": {"kind": "auto"}
})";

int main() {
  portwave::Catalogue::add(water_tank_type());
  for (const portwave::PartType& type : portwave::catalogue()) {
    std::printf("%-28s %s\n", type.name.c_str(), type.summary.c_str());
  }
  try {
    const portwave::Scenario scenario = portwave::parse_scenario(scenario_text, "tank.json", ".");
    portwave::Stepper stepper(scenario.system, scenario.options);
    const double start_J = stepper.energy().initial_J;
    stepper.step(scenario.steps);
    std::printf("after %.0f s: %.5f m^3 in the tank, piston at %+.5f m, H %.3f J of %.3f J\n",
                stepper.time_s(), stepper.state("tank")[0], stepper.state("piston")[0],
                stepper.energy().final_J, start_J);
    return stepper.energy().final_J < start_J ? 0 : 1;
  } catch (const portwave::ScenarioError& error) {
    std::fputs(error.report().c_str(), stderr);
    return 1;
  }
}
