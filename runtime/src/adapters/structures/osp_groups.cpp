#include "adapters/structures/osp_groups.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "adapters/files/xml_file.hpp"
#include "adapters/structures/structure_files.hpp"

namespace portwave::structures {

using namespace files;
namespace {

constexpr int kMostGroupDepth = 100;

void gather(pugi::xml_node group, std::vector<std::string>& variables, int depth) {
  if (depth > kMostGroupDepth)
    throw ConfigError("", "OspModelDescription.xml nests groups too deeply");
  for (const pugi::xml_node own : children(group)) {
    if (local_name(own) == "Variable") {
      variables.push_back(attribute(own, "ref"));
    } else {
      gather(own, variables, depth + 1);
    }
  }
}

class Groups {
 public:
  explicit Groups(Element& element) : element_(element) {}

  void read(pugi::xml_node list, int depth = 0) {
    for (const pugi::xml_node group : children(list)) {
      const std::string name = attribute(group, "name");
      if (local_name(group) == "Variable" || name.empty()) continue;
      std::vector<std::string> variables;
      gather(group, variables, depth);
      all.emplace(name, std::move(variables));
      add_ports(group, name);
      read(group, depth + 1);
    }
  }

  VariableGroups all;

 private:
  void add_ports(pugi::xml_node group, const std::string& name) {
    for (const fmi::OspPort& kind : fmi::kOspPorts) {
      if (local_name(group) != kind.port) continue;
      std::vector<std::string> efforts, flows;
      gather(child(group, kind.effort), efforts, 0);
      gather(child(group, kind.flow), flows, 0);
      if (efforts.size() != flows.size()) continue;
      for (std::size_t i = 0; i < efforts.size(); ++i) {
        const bool is_known = std::ranges::any_of(element_.ports, [&](const auto& own) {
          return own.effort == efforts[i] && own.flow == flows[i];
        });
        if (is_known) continue;
        element_.ports.push_back(
            {efforts.size() == 1 ? name : fmt::format("{}_{}", name, i + 1), efforts[i], flows[i]});
      }
    }
  }

  Element& element_;
};

}  // namespace

VariableGroups read_groups(Element& element, const std::filesystem::path& structure_folder) {
  if (element.fmu == nullptr) return {};
  std::string text = fmi::osp_description(files::Archive(element.file));
  const std::string name = element.fmu->description().name + "_OspModelDescription.xml";
  const bool is_plain = name.find('/') == std::string::npos;
  for (const std::filesystem::path& folder : {element.file.parent_path(), structure_folder}) {
    std::error_code error;
    if (!text.empty() || !is_plain || !std::filesystem::is_regular_file(folder / name, error)) {
      continue;
    }
    text = StructureFiles::text_of(folder / name);
  }
  if (text.empty()) return {};
  const XmlFile file("OspModelDescription.xml of " + element.source, std::move(text));
  Groups groups(element);
  groups.read(child(file.root(), "VariableGroups"));
  return std::move(groups.all);
}

}  // namespace portwave::structures
