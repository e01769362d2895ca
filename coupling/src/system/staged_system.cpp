#include "portwave/coupling/system/staged_system.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"

namespace portwave {

bool has_substeps(const System& system) {
  return std::ranges::any_of(system.parts(), [](const Part& part) { return part.substeps > 1; });
}

Issues check_stages(const System& system) {
  Issues issues;
  for (std::size_t i = 0; i < system.parts().size(); ++i) {
    const Part& part = system.parts()[i];
    const std::string defect = staging_defect(*part.component);
    if (defect.empty()) continue;
    issues.push_back(
        {fmt::format("/subsystems/{}", i),
         fmt::format("\"stages\" must be 1: subsystem {} ({}) {}", in_quotes(part.name),
                     printable(part.component->signature().type), defect)});
  }
  return issues;
}

int staged_port(const System& system, int stages, int scalar_port, int stage) {
  const int part = system.scalar_ports()[at(scalar_port)].part;
  const int first = system.first_scalar_port(part);
  const int ports = system.parts()[at(part)].component->signature().wave_size();
  return stages * first + stage * ports + (scalar_port - first);
}

System staged_system(const System& system, int stages) {
  if (stages < 1 || stages > kMostStages) {
    throw ConfigError("/stages", fmt::format("must be 1 to {}, got {}", kMostStages, stages));
  }
  if (stages > 1) throw_if_any(check_stages(system));
  const GaussStages& rule = gauss_stages(stages);
  System out;
  out.settable_inputs_ = system.settable_inputs_;
  std::map<std::pair<const Component*, int>, std::shared_ptr<const Component>> staged;
  for (const Part& part : system.parts_) {
    std::shared_ptr<const Component>& component = staged[{part.component.get(), part.substeps}];
    const bool is_staged = stages > 1 || part.substeps > 1;
    if (component == nullptr) {
      component = is_staged ? staged_part(part.component, stages, part.substeps) : part.component;
    }
    const int number = static_cast<int>(out.parts_.size());
    Part own{part.name, component, part.initial_state, {}, {}, part.is_termination, {}};
    for (int node = 0; node < part.substeps * stages; ++node) {
      const int k = node / stages, i = node % stages;
      for (std::size_t j = 0; j < part.inputs.size(); ++j) {
        const bool driven = part.input_is_driven[j];
        own.inputs.push_back(driven ? part.inputs[j] : Signal());
        own.input_is_driven.push_back(driven);
        if (!is_staged) continue;
        own.input_nodes.push_back({(k + rule.c[at(i)]) / part.substeps - 0.5,
                                   std::sqrt(rule.b[at(i)] / part.substeps),
                                   static_cast<double>(k) / part.substeps - 0.5,
                                   1.0 / part.substeps, rule.c[at(i)], stages});
      }
    }
    out.parts_.push_back(std::move(own));
    out.first_scalar_port_.push_back(static_cast<int>(out.scalar_ports_.size()));
    const std::vector<Port>& ports = component->signature().ports;
    for (std::size_t k = 0; k < ports.size(); ++k) {
      for (int c = 0; c < ports[k].dimension; ++c) {
        out.scalar_ports_.push_back({number, static_cast<int>(k), c});
      }
    }
  }
  for (const Junction& junction : system.junctions_) {
    for (int i = 0; i < stages; ++i) {
      std::vector<int> ports;
      for (const int port : junction.waves) {
        ports.push_back(staged_port(system, stages, port, i));
      }
      out.junctions_.emplace_back(junction.shared, std::move(ports));
    }
  }
  out.island_of_part_ = system.island_of_part_;
  out.island_count_ = system.island_count_;
  out.parts_by_name_ = system.parts_by_name_;
  out.cuts_ = system.cuts_;
  out.slice_ = system.slice_;
  return out;
}

}  // namespace portwave
