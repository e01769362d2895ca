#include "scenario/scenario_names.hpp"

#include <cstddef>
#include <vector>

#include "output/observable.hpp"

namespace portwave::scenario_file {
namespace {

std::vector<std::string> port_paths(const System& system) {
  std::vector<std::string> paths;
  for (const Part& part : system.parts()) {
    for (const Port& port : part.component->signature().ports) {
      paths.push_back(part.name + "." + port.name);
    }
  }
  return paths;
}

}  // namespace

bool Names::is_missing(const std::string& path) const {
  if (is_complete_) return false;
  for (std::size_t end = path.find('.');; end = path.find('.', end + 1)) {
    if (missing_.contains(path.substr(0, end))) return true;
    if (end == std::string::npos) break;
  }
  const std::size_t last = path.rfind('.');  // a termination's ports are "part.port.resistor"
  return last != std::string::npos && system_.find_port(path.substr(0, last)).first >= 0;
}

NameSearch& Names::parts() {
  if (!parts_) parts_.emplace(names_of_parts(system_));
  return *parts_;
}

NameSearch& Names::ports() {
  if (!ports_) ports_.emplace(port_paths(system_));
  return *ports_;
}

}  // namespace portwave::scenario_file
