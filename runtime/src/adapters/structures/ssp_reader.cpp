#include "adapters/structures/ssp_reader.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "adapters/files/xml_file.hpp"
#include "adapters/structures/own_notes.hpp"
#include "adapters/structures/ssp_levels.hpp"
#include "adapters/structures/ssp_packages.hpp"
#include "adapters/structures/ssp_shape.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::structures {

using namespace files;
namespace {

constexpr int kMostDepth = 64;  // of systems within systems

/// A description, and what its paths and units are relative to.
struct Description {
  const StructureFiles& files;
  std::string base;  ///< folder of the description within the files, with a slash; or empty
  const XmlFile& file;
  Units units;

  /// What `find` of the files takes for a source: those that are relative are so to the description.
  std::string uri_of(const std::string& source) const {
    if (const std::string own(proxied_file(source)); !own.empty()) return uri_of(own);
    const bool is_relative = !source.starts_with('/') && source.find("://") == std::string::npos;
    return is_relative && !source.empty() ? base + source : source;
  }
};

class SspReader {
 public:
  SspReader(const StructureFiles& files, const std::filesystem::path& outermost, Issues& issues,
            std::vector<std::shared_ptr<const void>>& unpacked)
      : files_(files), issues_(issues), packages_(files, outermost, unpacked) {}

  Structure read() {
    const std::filesystem::path main = files_.folder() / files_.main();
    const SspPackages::Reading is_read(packages_, main);
    const XmlFile& file = packages_.xml(main, files_.main());
    Description description{files_, "", file, {}};
    const pugi::xml_node root = open(description);
    out_.name = attribute(root, "name");
    out_.description = attribute(root, "description");
    read_experiment(child(root, "DefaultExperiment"), description);
    read_own(root, description, check_whole_note, out_.own);
    levels_.systems.emplace_back();
    read_system(child(root, "System"), description, 0, 0);
    connect_levels(levels_, out_, issues_);
    take_noted_bonds(out_, file.place(root), issues_);
    return std::move(out_);
  }

 private:
  ReadingOf reading(const Description& description) {
    return {description.file, issues_, out_.notes};
  }

  /// The outermost element, its version and units. Errors: ConfigError.
  pugi::xml_node open(Description& description) {
    const pugi::xml_node root = description.file.root();
    if (local_name(root) != "SystemStructureDescription") {
      throw ConfigError(
          "", fmt::format("{} holds no SystemStructureDescription", description.file.name()));
    }
    const std::string version = attribute(root, "version");
    if (!version.starts_with("1.0") && !version.starts_with("2.0")) {
      reading(description)
          .fail(root, fmt::format("the version of the description must be 1.0 or 2.0, got {}",
                                  in_quotes(version)));
    }
    if (!child(root, "System")) reading(description).fail(root, "there is no <System>");
    if (shaped_.insert(&description.file).second) check_shape(reading(description));
    read_units(child(root, "Units"), reading(description), description.units);
    return root;
  }

  void read_experiment(pugi::xml_node at, const Description& description) {
    const ReadingOf own = reading(description);
    if (at.attribute("startTime")) out_.start_s = own.number(at, "startTime", 0.0);
    if (at.attribute("stopTime")) out_.stop_s = own.number(at, "stopTime", 0.0);
    for (const pugi::xml_node annotation : annotations(at, "com.opensimulationplatform")) {
      const pugi::xml_node algorithm = child(child(annotation, "Algorithm"), "FixedStepAlgorithm");
      if (!algorithm.attribute("baseStepSize")) continue;
      const double step_s = own.number(algorithm, "baseStepSize", 1.0);
      if (!(step_s > 0.0)) {
        own.fail(algorithm, fmt::format("baseStepSize must be above 0, got {}", step_s));
      } else {
        out_.step_s = step_s;
      }
    }
  }

  /// What portwave has noted of an element: JSON, in the annotation or in an element in it.
  void read_own(pugi::xml_node at, const Description& description,
                void (*check)(const Json&, const Complain&), Json& own) {
    for (const pugi::xml_node annotation : annotations(at, kOwnAnnotation)) {
      const pugi::xml_node note = child(annotation, "Note");
      Json read = parse_note((note ? note : annotation).text().get());
      bool is_sound = read.is_object();
      const auto complain = [&](std::string what) {
        is_sound = false;
        reading(description).fail(annotation, std::move(what));
      };
      if (is_sound) {
        check(read, complain);
      } else {
        complain(
            fmt::format("an annotation of the type {} must hold an object of JSON, nested not "
                        "more than 64 deep",
                        kOwnAnnotation));
      }
      if (is_sound) own = std::move(read);
    }
  }

  std::map<std::string, SystemConnector> read_connectors(pugi::xml_node at,
                                                         const Description& description) {
    std::map<std::string, SystemConnector> out;
    const ReadingOf own = reading(description);
    for (const pugi::xml_node connector : children(child(at, "Connectors"), "Connector")) {
      SystemConnector read{.kind = attribute(connector, "kind"),
                           .where = description.file.place(connector)};
      const std::string name = own.required(connector, "name");
      read.unit = read_type_unit(connector, own, description.units, read.unit_name);
      if (child(connector, "Dimension")) {
        own.fail(connector, fmt::format("the connector {} is an array: give each of its elements a "
                                        "connector",
                                        in_quotes(name)));
      }
      if (!out.emplace(name, std::move(read)).second) {
        own.fail(connector, fmt::format("there are two connectors {}", in_quotes(name)));
      }
    }
    return out;
  }

  /// Reads the inside of level `number`, which is there already.
  void read_system(pugi::xml_node at, const Description& description, std::size_t number,
                   int depth) {
    const ReadingOf own = reading(description);
    if (depth > kMostDepth) {
      return own.fail(at, fmt::format("systems are nested more than {} deep", kMostDepth));
    }
    levels_.systems[number].where = description.file.place(at);
    levels_.systems[number].connectors = read_connectors(at, description);
    for (const pugi::xml_node annotation : annotations(at, "org.openmodelica")) {
      const pugi::xml_node master = annotation.find_node([](pugi::xml_node node) {
        return local_name(node) == "FixedStepMaster" && node.attribute("stepSize");
      });
      const double step_s = own.number(master, "stepSize", 0.0);
      if (step_s > 0.0 && (!out_.step_s || step_s < *out_.step_s)) out_.step_s = step_s;
    }
    for (const pugi::xml_node dictionary :
         children(child(at, "SignalDictionaries"), "SignalDictionary")) {
      read_dictionary(dictionary, description, number);
    }
    for (const pugi::xml_node element : children(child(at, "Elements"))) {
      read_element(element, description, number, depth);
    }
    for (const pugi::xml_node connection : children(child(at, "Connections"), "Connection")) {
      read_connection(connection, description, number);
    }
    // Those of outer systems come later, and go before.
    for (const NamedParameter& parameter : bindings_of(at, description, nullptr)) {
      if (!apply(number, parameter.name, parameter.value)) ignore(parameter, number);
    }
  }

  void ignore(const NamedParameter& parameter, std::size_t level) {
    const std::string& path = levels_.systems[level].path;
    out_.notes.push_back(
        {parameter.value.where,
         fmt::format("there is no {} {}: its value is left out",
                     path.empty() ? "variable" : fmt::format("variable of {}", in_quotes(path)),
                     in_quotes(parameter.name))});
  }

  /// Sets a parameter by its hierarchical name, in all places that have it.
  bool apply(std::size_t number, const std::string& name, const ParameterValue& value) {
    Level& level = levels_.systems[number];
    bool is_found = level.connectors.contains(name);
    if (is_found) level.values.insert_or_assign(name, value);
    for (const auto& [member, node] : level.members) {
      if (!name.starts_with(member + ".")) continue;
      const std::string rest = name.substr(member.size() + 1);
      if (node.of == Node::Of::system) is_found = apply(node.index, rest, value) || is_found;
      if (node.of == Node::Of::component) is_found = set(node.index, rest, value) || is_found;
    }
    return is_found;
  }

  bool set(std::size_t index, const std::string& name, const ParameterValue& value) {
    Element& element = out_.elements[index];
    if (element.fmu == nullptr) return true;
    const fmi::Variable* const variable = element.find(name);
    if (variable == nullptr) return false;
    if (auto own = value_for(value, element, *variable, issues_, out_.notes)) {
      element.start.insert_or_assign(name, *std::move(own));
    }
    return true;
  }

  void read_element(pugi::xml_node at, const Description& description, std::size_t level,
                    int depth) {
    const ReadingOf own = reading(description);
    const std::string name = own.required(at, "name");
    const std::string_view kind = local_name(at);
    if (out_.elements.size() + levels_.systems.size() >= kMostElements) {
      throw ConfigError("", fmt::format("there are more than {} elements", kMostElements));
    }
    if (levels_.systems[level].members.contains(name)) {
      return own.fail(at, fmt::format("there are two elements {}", in_quotes(name)));
    }
    if (kind == "System") {
      read_system(at, description, add_level(level, name), depth + 1);
    } else if (kind == "SignalDictionaryReference") {
      if (const auto dictionary = dictionary_named(level, attribute(at, "dictionary"))) {
        levels_.systems[level].members.emplace(name, Node{Node::Of::dictionary, *dictionary, {}});
      } else {
        own.fail(at, fmt::format("there is no signal dictionary {}",
                                 in_quotes(attribute(at, "dictionary"))));
      }
    } else if (kind == "Component") {
      read_component(at, name, description, level, depth);
    } else {
      own.fail(at, fmt::format("the element <{}> is not known: Component, System and "
                               "SignalDictionaryReference are",
                               printable(at.name())));
    }
  }

  std::size_t add_level(std::size_t outer, const std::string& name) {
    const std::string& path = levels_.systems[outer].path;
    const std::size_t number = levels_.systems.size();
    Level level{.outer = outer, .path = path.empty() ? name : path + "." + name};
    levels_.systems.push_back(std::move(level));
    levels_.systems[outer].members.emplace(name, Node{Node::Of::system, number, {}});
    return number;
  }

  std::optional<std::size_t> dictionary_named(std::size_t level, const std::string& name) const {
    for (;;) {
      const Level& own = levels_.systems[level];
      const auto found = own.dictionaries.find(name);
      if (found != own.dictionaries.end()) return found->second;
      if (own.outer == level) return std::nullopt;
      level = own.outer;
    }
  }

  void read_component(pugi::xml_node at, const std::string& name, const Description& description,
                      std::size_t level, int depth) {
    const ReadingOf own = reading(description);
    std::string type = attribute(at, "type");
    if (type.empty()) type = "application/x-fmu-sharedlibrary";
    const std::string source = attribute(at, "source");
    const bool is_fmu = type == "application/x-fmu-sharedlibrary";
    const bool is_description = type == "application/x-ssp-definition";
    const bool is_package = type == "application/x-ssp-package";
    if (!is_fmu && !is_description && !is_package) {
      return own.fail(at, fmt::format("the component {} is of the type {}: FMUs "
                                      "(application/x-fmu-sharedlibrary) and system structures are "
                                      "taken",
                                      in_quotes(name), in_quotes(type)));
    }
    if (!at.attribute("source")) {
      return own.fail(at, fmt::format("the component {} has no source: nothing implements it",
                                      in_quotes(name)));
    }
    if (attribute(at, "implementation") == "ModelExchange") {
      out_.notes.push_back({description.file.place(at),
                            in_quotes(name) + " wants ModelExchange: its co-simulation is taken"});
    }
    std::string refusal;
    const auto file = description.files.find(description.uri_of(source), refusal);
    if (!file) return own.fail(at, fmt::format("the source of {} {}", in_quotes(name), refusal));
    if (!is_fmu) return read_inner(at, name, *file, is_package, description, level, depth);
    const std::string& path = levels_.systems[level].path;
    Element element{.name = path.empty() ? name : path + "." + name,
                    .source = source,
                    .where = description.file.place(at),
                    .file = *file};
    open_element(element, issues_);
    read_own(at, description, check_element_note, element.own);
    if (const auto own_step = element.own.find("step_s");
        own_step != element.own.end() && own_step->is_number()) {
      element.step_s = own_step->get<double>();
    }
    for (const pugi::xml_node annotation : annotations(at, "com.opensimulationplatform")) {
      element.step_s = own.number(child(annotation, "StepSizeHint"), "value", element.step_s);
    }
    const std::size_t index = out_.elements.size();
    out_.elements.push_back(std::move(element));
    levels_.components.push_back(read_connectors(at, description));
    levels_.systems[level].members.emplace(name, Node{Node::Of::component, index, {}});
    check_connectors(index);
    for (const NamedParameter& parameter : bindings_of(at, description, &*file)) {
      if (set(index, parameter.name, parameter.value)) continue;
      out_.notes.push_back(
          {parameter.value.where,
           fmt::format("{} has no variable {}: its value is left out",
                       in_quotes(out_.elements[index].name), in_quotes(parameter.name))});
    }
  }

  /// Connectors are variables of the FMU, in units of the same kind.
  void check_connectors(std::size_t index) {
    const Element& element = out_.elements[index];
    if (element.fmu == nullptr) return;
    for (const auto& [name, connector] : levels_.components[index]) {
      const fmi::Variable* const variable = element.find(name);
      if (variable == nullptr) {
        std::vector<std::string> names;
        for (const auto& own : element.fmu->description().variables) names.push_back(own.name);
        issues_.push_back(
            {connector.where,
             fmt::format("{} has no variable {} for the connector.{}", in_quotes(element.name),
                         in_quotes(name), did_you_mean(name, names))});
        continue;
      }
      const auto unit = unit_of(*element.fmu, *variable);
      Expression as_said{.unit = connector.unit};
      const bool is_alike = !unit || convert(as_said, *unit);
      if (is_alike && as_said.is_converted) {
        out_.notes.push_back(
            {connector.where,
             fmt::format("the connector {} of {} is in {}, and the FMU's variable in {}: the FMU's "
                         "unit counts",
                         in_quotes(name), in_quotes(element.name),
                         shown(connector.unit, connector.unit_name), shown(unit, variable->unit))});
      }
      if (!is_alike) {
        issues_.push_back(
            {connector.where,
             fmt::format("the connector {} of {} is in {}, and the FMU's variable in {}",
                         in_quotes(name), in_quotes(element.name),
                         shown(connector.unit, connector.unit_name), shown(unit, variable->unit))});
      }
    }
  }

  /// A component that is a structure itself is a system, whose bindings come last.
  void read_inner(pugi::xml_node at, const std::string& name, const std::filesystem::path& file,
                  bool is_package, const Description& outer, std::size_t level, int depth) {
    if (depth > kMostDepth) {
      return reading(outer).fail(at,
                                 fmt::format("systems are nested more than {} deep", kMostDepth));
    }
    try {
      const StructureFiles& files = is_package ? packages_.package(file) : outer.files;
      const std::filesystem::path main = is_package ? files.folder() / files.main() : file;
      std::string base;
      if (!is_package) {
        base = file.lexically_relative(outer.files.folder()).parent_path().string();
        if (!base.empty()) base += '/';
      }
      const SspPackages::Reading is_read(packages_, main);
      Description description{files, base, packages_.xml(main, attribute(at, "source")), {}};
      const pugi::xml_node root = open(description);
      const std::size_t number = add_level(level, name);
      read_system(child(root, "System"), description, number, depth + 1);
      for (const NamedParameter& parameter : bindings_of(at, outer, nullptr)) {
        if (!apply(number, parameter.name, parameter.value)) ignore(parameter, number);
      }
    } catch (const ConfigError& error) {
      for (const Issue& issue : error.issues()) {
        reading(outer).fail(at, fmt::format("{}: {} {}", in_quotes(name),
                                            in_quotes(attribute(at, "source")), issue.what));
      }
    }
  }

  /// A file of XML that an attribute names: beside the description, or in the FMU.
  std::unique_ptr<XmlFile> named_file(pugi::xml_node at, const Description& description,
                                      const std::filesystem::path* component) {
    const std::string source = attribute(at, "source");
    std::string refusal;
    try {
      if (attribute(at, "sourceBase") == "component") {
        if (component == nullptr) {
          refusal = in_quotes(source) + " is in a component, and there is none here";
        } else {
          std::string text = files::Archive(*component).content(source);
          if (!text.empty()) return std::make_unique<XmlFile>(source, std::move(text));
          refusal = in_quotes(source) + " is not in the FMU";
        }
      } else if (const auto file = description.files.find(description.uri_of(source), refusal)) {
        return std::make_unique<XmlFile>(source, StructureFiles::text_of(*file));
      }
    } catch (const ConfigError& error) {
      for (const Issue& issue : error.issues()) reading(description).fail(at, issue.what);
      return nullptr;
    }
    reading(description).fail(at, fmt::format("the source {}", refusal));
    return nullptr;
  }

  /// The content of an element, or of the file that its source names: a root element of that name.
  template <class Use>
  void use_content(pugi::xml_node at, pugi::xml_node content, const char* name,
                   const Description& description, const std::filesystem::path* component,
                   const Use& use) {
    if (at.attribute("source")) {
      const auto file = named_file(at, description, component);
      if (file == nullptr) return;
      if (local_name(file->root()) != name) {
        return reading(description)
            .fail(at, fmt::format("{} holds no {}", in_quotes(file->name()), name));
      }
      const ReadingOf own{*file, issues_, out_.notes};
      check_shape(own);
      return use(file->root(), own);
    }
    const pugi::xml_node own = child(content, name);
    if (!own) {
      return reading(description)
          .fail(at, fmt::format("has neither a source nor a <{}> in it", name));
    }
    use(own, reading(description));
  }

  std::vector<NamedParameter> bindings_of(pugi::xml_node at, const Description& description,
                                          const std::filesystem::path* component) {
    std::vector<NamedParameter> all;
    for (const pugi::xml_node binding :
         children(child(at, "ParameterBindings"), "ParameterBinding")) {
      const std::string type = attribute(binding, "type");
      if (!type.empty() && type != "application/x-ssp-parameter-set") {
        reading(description)
            .fail(binding, fmt::format("a parameter binding of the type {} is not "
                                       "taken",
                                       in_quotes(type)));
        continue;
      }
      std::vector<NamedParameter> own;
      use_content(binding, child(binding, "ParameterValues"), "ParameterSet", description,
                  component, [&](pugi::xml_node set, const ReadingOf& reading) {
                    own = read_parameter_set(set, reading, description.units);
                  });
      const std::string prefix = attribute(binding, "prefix");
      for (NamedParameter& parameter : own) parameter.name = prefix + parameter.name;
      if (const pugi::xml_node mapping = child(binding, "ParameterMapping")) {
        std::vector<NamedParameter> mapped;
        use_content(mapping, mapping, "ParameterMapping", description, component,
                    [&](pugi::xml_node content, const ReadingOf& reading) {
                      mapped = map_parameters(content, reading, own);
                    });
        own = std::move(mapped);
      }
      for (NamedParameter& parameter : own) all.push_back(std::move(parameter));
    }
    return all;
  }

  void read_dictionary(pugi::xml_node at, const Description& description, std::size_t level) {
    const ReadingOf own = reading(description);
    const std::string name = own.required(at, "name");
    Dictionary dictionary{.where = description.file.place(at)};
    use_content(at, at, "SignalDictionary", description, nullptr,
                [&](pugi::xml_node content, const ReadingOf& inner) {
                  Units units = description.units;
                  read_units(child(content, "Units"), inner, units);
                  for (const pugi::xml_node entry : children(content, "DictionaryEntry")) {
                    SystemConnector read{.kind = "inout", .where = inner.file.place(entry)};
                    read.unit = read_type_unit(entry, inner, units, read.unit_name);
                    dictionary.entries.emplace(inner.required(entry, "name"), std::move(read));
                  }
                });
    const std::size_t number = levels_.dictionaries.size();
    levels_.dictionaries.push_back(std::move(dictionary));
    if (!levels_.systems[level].dictionaries.emplace(name, number).second) {
      own.fail(at, fmt::format("there are two signal dictionaries {}", in_quotes(name)));
    }
  }

  /// One end of a connection. Nothing, and noted, where there is none of that name.
  std::optional<Node> end_of(pugi::xml_node at, const Description& description, std::size_t level,
                             const char* element_key, const char* connector_key) {
    const ReadingOf own = reading(description);
    const Level& system = levels_.systems[level];
    const std::string connector = own.required(at, connector_key);
    if (connector.empty()) return std::nullopt;
    const auto fail_named = [&](const std::string& of,
                                const std::map<std::string, SystemConnector>& all) {
      std::vector<std::string> names;
      for (const auto& [name, ignored] : all) names.push_back(name);
      own.fail(at, fmt::format("{} has no connector {}.{}", of, in_quotes(connector),
                               did_you_mean(connector, names)));
      return std::nullopt;
    };
    if (attribute(at, element_key).empty()) {
      if (system.connectors.contains(connector)) {
        return Node{Node::Of::system, level, connector};
      }
      return fail_named(system.path.empty() ? "the system" : in_quotes(system.path),
                        system.connectors);
    }
    const std::string element = attribute(at, element_key);
    const auto found = system.members.find(element);
    if (found == system.members.end()) {
      std::vector<std::string> names;
      for (const auto& [name, ignored] : system.members) names.push_back(name);
      if (!has_element(at, element)) {
        own.fail(at, fmt::format("there is no element {}.{}", in_quotes(element),
                                 did_you_mean(element, names)));
      }
      return std::nullopt;
    }
    Node node = found->second;
    node.name = connector;
    if (node.of == Node::Of::system &&
        !levels_.systems[node.index].connectors.contains(connector)) {
      return fail_named(in_quotes(element), levels_.systems[node.index].connectors);
    }
    if (node.of == Node::Of::dictionary &&
        !levels_.dictionaries[node.index].entries.contains(connector)) {
      return fail_named("the signal dictionary of " + in_quotes(element),
                        levels_.dictionaries[node.index].entries);
    }
    if (node.of == Node::Of::component) {
      const Element& own_element = out_.elements[node.index];
      if (find_variable(own_element, connector, description.file.place(at), issues_) == nullptr) {
        return std::nullopt;
      }
    }
    return node;
  }

  /// An element that is in the file, but has defects, which are told.
  static bool has_element(pugi::xml_node connection, const std::string& name) {
    const pugi::xml_node elements = child(connection.parent().parent(), "Elements");
    return std::ranges::any_of(children(elements),
                               [&](pugi::xml_node own) { return attribute(own, "name") == name; });
  }

  void read_connection(pugi::xml_node at, const Description& description, std::size_t level) {
    const ReadingOf own = reading(description);
    const auto from = end_of(at, description, level, "startElement", "startConnector");
    const auto to = end_of(at, description, level, "endElement", "endConnector");
    if (at.attribute("startIndices") || at.attribute("endIndices")) {
      return own.fail(at, "connections of elements of arrays are not taken");
    }
    if (!from || !to) return;
    Wire wire{*from, *to, read_transformation(at, own),
              !own.truth(at, "suppressUnitConversion", false), description.file.place(at)};
    // Start and end say no direction: some tools write what takes the value first. What is transformed is the value.
    if (takes_value(*from, level) && gives_value(*to, level)) {
      std::swap(wire.from, wire.to);
    }
    levels_.wires.push_back(std::move(wire));
  }

  std::string kind_of(const Node& node, std::size_t level) const {
    if (node.of == Node::Of::component) {
      const Element& element = out_.elements[node.index];
      const fmi::Variable* const own = element.find(node.name);
      if (own == nullptr) return {};
      return own->role == fmi::Role::input || own->role == fmi::Role::parameter ? "input"
                                                                                : "output";
    }
    if (node.of != Node::Of::system) return {};
    std::string kind = levels_.systems[node.index].connectors.at(node.name).kind;
    if (kind == "parameter") kind = "input";
    if (kind == "calculatedParameter") kind = "output";
    // From within, an input gives the value and an output takes it.
    if (node.index == level && kind == "input") return "output";
    if (node.index == level && kind == "output") return "input";
    return kind;
  }
  bool takes_value(const Node& node, std::size_t level) const {
    return kind_of(node, level) == "input";
  }
  bool gives_value(const Node& node, std::size_t level) const {
    return kind_of(node, level) == "output";
  }

  const StructureFiles& files_;
  Issues& issues_;
  SspPackages packages_;
  std::set<const XmlFile*> shaped_;  // files whose elements stand where they should
  Structure out_;
  Levels levels_;
};

}  // namespace

Structure read_ssp(const StructureFiles& files, const std::filesystem::path& outermost,
                   Issues& issues, std::vector<std::shared_ptr<const void>>& unpacked) {
  return SspReader(files, outermost, issues, unpacked).read();
}

}  // namespace portwave::structures
