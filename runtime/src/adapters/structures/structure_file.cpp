// System structures as scenarios: from the file to the text.

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "adapters/structures/osp_reader.hpp"
#include "adapters/structures/power_bonds.hpp"
#include "adapters/structures/ssp_reader.hpp"
#include "adapters/structures/structure_scenario.hpp"
#include "portwave/runtime/adapters/structure.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave {
namespace structures {
namespace {

constexpr const char* kNeedsPermission =
    "a system structure names FMUs, which are code that may do all that this program may, and are "
    "loaded only if the program was told to.\n"
    "If you trust them, give --allow-plugins; in C++ Plugins::allowed, in Python "
    "allow_plugins=True, in C portwave_options.allow_plugins";

/// Ports that portwave has noted of an element come before those that its FMU declares.
void take_own_ports(Element& element) {
  const auto noted = element.own.find("ports");
  if (noted == element.own.end() || !noted->is_array()) return;
  std::vector<fmi::DeclaredPort> ports;
  for (const Json& own : *noted) {
    if (!own.is_object()) continue;
    const auto text = [&own](const char* key) {
      const auto found = own.find(key);
      return found != own.end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    ports.push_back({.name = text("name"),
                     .effort = text("effort"),
                     .flow = text("flow"),
                     .counts_outward = text("power") == "out",
                     .says_direction = true});
  }
  ports.insert(ports.end(), element.ports.begin(), element.ports.end());
  element.ports = std::move(ports);
}

/// The paths under which a scenario names the FMUs.
class FmuPaths {
 public:
  explicit FmuPaths(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::string of(const Element& element) {
    const std::string file = element.fmu->file().string();
    if (const auto known = by_file_.find(file); known != by_file_.end()) return known->second;
    std::string path = file;
    if (!folder_.empty()) {
      const std::filesystem::path name = element.file.filename();
      path = name.string();
      for (int n = 2; !taken_.insert(path).second; ++n) {
        path = fmt::format("{}_{}{}", name.stem().string(), n, name.extension().string());
      }
    }
    by_file_.emplace(file, path);
    all.push_back({path, element.fmu->file()});
    return path;
  }

  std::vector<StructureScenario::Fmu> all;

 private:
  std::filesystem::path folder_;
  std::map<std::string, std::string> by_file_;
  std::set<std::string> taken_;
};

/// Files that were unpacked, and FMUs that are open, as long as the scenario is read.
struct Kept {
  std::vector<std::shared_ptr<const void>> unpacked;
  std::vector<std::shared_ptr<const fmi::Fmu>> fmus;
};

}  // namespace
}  // namespace structures

bool is_structure_file(const std::filesystem::path& file) {
  const std::filesystem::path extension = file.extension();
  if (extension == ".ssp" || extension == ".ssd") return true;
  if (extension != ".xml") return false;
  std::ifstream in(file, std::ios::binary);
  std::array<char, 4096> begin{};
  in.read(begin.data(), begin.size());
  const std::string_view text(begin.data(), static_cast<std::size_t>(in.gcount()));
  return text.find("<OspSystemStructure") != std::string_view::npos ||
         text.find(":OspSystemStructure") != std::string_view::npos;
}

StructureScenario read_structure(const std::filesystem::path& file, const StructureOptions& options,
                                 const std::filesystem::path& folder) {
  using namespace structures;
  Issues issues;
  auto kept = std::make_shared<Kept>();
  const auto files = std::make_shared<const StructureFiles>(file);
  kept->unpacked.push_back(files);
  const bool is_osp = file.extension() == ".xml";
  Structure structure =
      is_osp ? read_osp(*files, issues) : read_ssp(*files, file, issues, kept->unpacked);
  if (structure.elements.empty() && issues.empty()) {
    issues.push_back({"", "there is no component in it"});
  }
  if (!options.may_run_fmus && !structure.elements.empty()) {
    issues.push_back({"", kNeedsPermission});
  }
  throw_if_any(std::move(issues));
  issues.clear();
  if (structure.name.empty() || is_osp) structure.name = file.stem().string();
  for (Element& element : structure.elements) {
    take_own_ports(element);
    kept->fmus.push_back(element.fmu);
  }
  if (options.step_s > 0.0 || options.duration_s > 0.0) {
    if (structure.own.contains("scenario")) structure.own["scenario"].erase("time");
  }
  if (options.step_s > 0.0) structure.step_s = options.step_s;
  if (options.duration_s > 0.0) {
    structure.stop_s = structure.start_s.value_or(0.0) + options.duration_s;
  }
  const double step_s = step_of(structure);
  std::vector<Bond> bonds;
  if (options.finds_bonds) {
    bonds = find_bonds(structure, {options.process, step_s}, issues);
  }
  FmuPaths paths(folder);
  const Json scenario = scenario_of(
      structure, bonds, step_s,
      {options.process, [&paths](const Element& own) { return paths.of(own); }}, issues);
  throw_if_any(std::move(issues));
  StructureScenario out;
  out.text = scenario.dump(2) + "\n";
  out.fmus = std::move(paths.all);
  out.notes = std::move(structure.notes);
  out.files = std::move(kept);
  return out;
}

}  // namespace portwave
