#include "adapters/structures/ssp_shape.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"

namespace portwave::structures {

using namespace files;
namespace {

constexpr std::string_view kStandard = "http://ssp-standard.org/";
constexpr std::size_t kMostStrays = 100;  // that are told of a file

using Words = std::vector<std::string_view>;

struct Shape {
  Words children, attributes;
  bool holds_anything = false;
};

Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The elements of SSP 2.0, which has all of 1.0, by name: their children and their attributes.
std::map<std::string_view, Shape> shapes() {
  const Words base = {"id", "description"};
  const Words top = base + Words{"version",   "name",    "author",         "fileversion",
                                 "copyright", "license", "generationTool", "generationDateAndTime"};
  const Words more = {"MetaData", "Signature", "Annotations"};
  const Words types = {"Real",   "Float64", "Float32", "Integer", "Int8",        "UInt8",
                       "Int16",  "UInt16",  "Int32",   "UInt32",  "Int64",       "UInt64",
                       "String", "Boolean", "Binary",  "Clock",   "Enumeration", "Dimension"};
  const Words changes = {"LinearTransformation", "BooleanMappingTransformation",
                         "IntegerMappingTransformation", "EnumerationMappingTransformation"};
  const Words element = more + Words{"Connectors", "ElementGeometry", "ParameterBindings"};
  const Words named = base + Words{"name"};
  const Words file = base + Words{"type", "source", "sourceBase"};
  const Words corners = {"x1", "y1", "x2", "y2"};
  std::map<std::string_view, Shape> out = {
      {"SystemStructureDescription",
       {more + Words{"System", "Enumerations", "Units", "DefaultExperiment"}, top}},
      {"System",
       {element + Words{"Elements", "Connections", "SignalDictionaries", "SystemGeometry",
                        "GraphicalElements"},
        named}},
      {"Component", {element, named + Words{"type", "source", "implementation"}}},
      {"SignalDictionaryReference", {element, named + Words{"dictionary"}}},
      {"Elements", {{}, {}, true}},  // the reader names those that it does not know
      {"Connections", {{"Connection"}, {}}},
      {"Connection",
       {changes + Words{"ConnectionGeometry", "Annotations"},
        base + Words{"startElement", "startConnector", "startIndices", "endElement", "endConnector",
                     "endIndices", "suppressUnitConversion"}}},
      {"ConnectionGeometry", {{}, {"pointsX", "pointsY"}}},
      {"SignalDictionaries", {{"SignalDictionary"}, {}}},
      {"SignalDictionary",
       {more + Words{"SignalDictionary", "DictionaryEntry", "Enumerations", "Units"}, top + file}},
      {"DictionaryEntry", {types + Words{"Annotations"}, named}},
      {"SystemGeometry", {{}, corners}},
      {"ElementGeometry",
       {{},
        corners +
            Words{"rotation", "iconSource", "iconRotation", "iconFlip", "iconFixedAspectRatio"}}},
      {"GraphicalElements", {{"Note"}, {}}},
      {"Note", {{}, corners + Words{"text"}}},
      {"Connectors", {{"Connector"}, {}}},
      {"Connector", {types + Words{"ConnectorGeometry", "Annotations"}, named + Words{"kind"}}},
      {"ConnectorGeometry", {{}, {"x", "y", "systemInnerX", "systemInnerY"}}},
      {"Clock",
       {{},
        {"name", "intervalVariability", "intervalDecimal", "shiftDecimal", "supportsFraction",
         "resolution", "intervalCounter", "shiftCounter", "priority"}}},
      {"Dimension", {{}, {"size", "sizeConnector"}}},
      {"ParameterBindings", {{"ParameterBinding"}, {}}},
      {"ParameterBinding",
       {more + Words{"ParameterValues", "ParameterMapping"}, file + Words{"prefix"}}},
      {"ParameterValues", {{"ParameterSet"}, {}}},
      {"ParameterMapping", {more + Words{"ParameterMapping", "MappingEntry"}, top + file}},
      {"MappingEntry",
       {changes + Words{"Annotations"},
        base + Words{"source", "target", "suppressUnitConversion"}}},
      {"ParameterSet", {more + Words{"Parameters", "Enumerations", "Units"}, top}},
      {"Parameters", {{"Parameter"}, {}}},
      {"Parameter", {types + Words{"Annotations"}, named}},
      {"Value", {{}, {"value"}}},
      {"LinearTransformation", {{}, {"factor", "offset"}}},
      {"MapEntry", {{}, {"source", "target"}}},
      {"Enumerations", {{"Enumeration"}, {}}},
      {"Item", {{}, {"name", "value"}}},
      {"Units", {{"Unit"}, {}}},
      {"Unit", {{"BaseUnit", "Annotations"}, named}},
      {"BaseUnit", {{}, {"kg", "m", "s", "A", "K", "mol", "cd", "rad", "factor", "offset"}}},
      {"DefaultExperiment", {{"Annotations"}, {"startTime", "stopTime"}}},
      {"Annotations", {{"Annotation"}, {}}},
      {"MetaData", {{"Content", "Signature"}, file + Words{"kind"}}},
      {"Signature", {{"Content"}, file + Words{"role"}}},
  };
  for (const std::string_view kind : changes) {
    if (kind != "LinearTransformation") out[kind] = {{"MapEntry"}, {}};
  }
  for (const std::string_view kind : types) {
    if (kind != "Clock" && kind != "Dimension") out[kind] = {{}, {"value", "unit"}};
  }
  out["Enumeration"] = {{"Item", "Annotations", "Value"}, named + Words{"value"}};
  out["Binary"] = {{"Value"}, {"mime-type", "value"}};
  out["String"] = {{"Value"}, {"value"}};
  return out;
}

/// Prefixes of namespaces that hold at an element.
using Scope = std::map<std::string, std::string, std::less<>>;

class ShapeChecker {
 public:
  explicit ShapeChecker(const ReadingOf& reading) : reading_(reading), shapes_(shapes()) {}

  /// By a list of what is left to see, since elements may be nested as deep as the file is long.
  void run() {
    left_.push_back({reading_.file.root(), scope_at(reading_.file.root(), nullptr)});
    while (!left_.empty() && strays_ < kMostStrays) {
      const Place at = left_.back();
      left_.pop_back();
      check(at);
    }
  }

 private:
  struct Place {
    pugi::xml_node element;
    std::shared_ptr<const Scope> scope;
  };

  static std::shared_ptr<const Scope> scope_at(pugi::xml_node element,
                                               std::shared_ptr<const Scope> outer) {
    std::shared_ptr<Scope> own;
    for (const pugi::xml_attribute attribute : element.attributes()) {
      const std::string_view name = attribute.name();
      if (name != "xmlns" && !name.starts_with("xmlns:")) continue;
      if (own == nullptr)
        own = outer == nullptr ? std::make_shared<Scope>() : std::make_shared<Scope>(*outer);
      (*own)[name == "xmlns" ? "" : std::string(name.substr(6))] = attribute.value();
    }
    if (own != nullptr) return own;
    return outer == nullptr ? std::make_shared<const Scope>() : outer;
  }

  static bool is_standard(const Place& at) {
    const std::string_view name = at.element.name();
    const std::size_t colon = name.find(':');
    const auto found = at.scope->find(colon == std::string_view::npos ? std::string_view()
                                                                      : name.substr(0, colon));
    return found != at.scope->end() && found->second.starts_with(kStandard);
  }

  void check(const Place& at) {
    const std::string_view name = local_name(at.element);
    const auto shape = shapes_.find(name);
    if (shape == shapes_.end()) return;  // told where it stands; or free, as an annotation
    check_attributes(at.element, shape->second.attributes);
    for (const pugi::xml_node own : children(at.element)) {
      Place place{own, scope_at(own, at.scope)};
      if (!is_standard(place)) continue;
      const Words& allowed = shape->second.children;
      const bool is_allowed = shape->second.holds_anything ||
                              std::ranges::find(allowed, local_name(own)) != allowed.end();
      if (is_allowed) {
        left_.push_back(std::move(place));
      } else {
        tell_stray(own, name, allowed);
      }
    }
  }

  static std::vector<std::string> texts(const Words& words) { return {words.begin(), words.end()}; }

  void tell_stray(pugi::xml_node at, std::string_view outer, const Words& allowed) {
    ++strays_;
    const std::string_view name = local_name(at);
    const std::string guess = did_you_mean(name, texts(allowed));
    const bool is_misplaced = guess.empty() && shapes_.contains(name);
    std::string what =
        fmt::format("<{}> has no place in <{}>.{}", printable(at.name()), outer, guess);
    if (is_misplaced)
      what += allowed.empty() ? "" : fmt::format(" There stand {}", listed(allowed));
    if (is_misplaced || !guess.empty()) return reading_.fail(at, std::move(what));
    reading_.notes.push_back({reading_.file.place(at), what + " It is passed over"});
  }

  static std::string listed(const Words& words) {
    std::string out;
    for (const std::string_view own : words)
      out += fmt::format("{}<{}>", out.empty() ? "" : ", ", own);
    return out;
  }

  void check_attributes(pugi::xml_node at, const Words& allowed) {
    for (const pugi::xml_attribute own : at.attributes()) {
      const std::string_view name = own.name();
      if (name.find(':') != std::string_view::npos || name == "xmlns") continue;
      if (std::ranges::find(allowed, name) != allowed.end()) continue;
      ++strays_;
      const std::string guess = did_you_mean(name, texts(allowed));
      std::string what = fmt::format("<{}> has no attribute {}.{}", printable(at.name()),
                                     in_quotes(std::string(name)), guess);
      if (guess.empty()) {
        reading_.notes.push_back({reading_.file.place(at), what + " It is passed over"});
      } else {
        reading_.fail(at, std::move(what));
      }
    }
  }

  const ReadingOf& reading_;
  const std::map<std::string_view, Shape> shapes_;
  std::vector<Place> left_;
  std::size_t strays_ = 0;
};

}  // namespace

void check_shape(const ReadingOf& reading) { ShapeChecker(reading).run(); }

}  // namespace portwave::structures
