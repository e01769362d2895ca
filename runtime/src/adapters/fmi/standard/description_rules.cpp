#include "adapters/fmi/standard/description_rules.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <sstream>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "adapters/files/xml_file.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::fmi {
namespace {

using pugi::xml_node;

/// What an attribute says. With `s` lists of such, divided by blanks.
enum class Kind { text, real, reals, whole, wholes, count, counts, truth, truths, word, words };

struct AttributeRule {
  std::string_view names;  ///< divided by blanks
  Kind kind = Kind::text;
  std::string_view words = {};  ///< those that there are, of Kind::word and words
  bool required = false;
};

struct ElementRule {
  std::string_view names;  ///< divided by blanks
  std::vector<AttributeRule> attributes = {};
  std::string_view needs = {};  ///< children that must be there
  std::string_view once = {};   ///< children that may be there once
};

constexpr bool kRequired = true;
constexpr std::string_view kVariabilities = "constant fixed tunable discrete continuous";
constexpr std::string_view kInitials = "exact approx calculated";
constexpr std::string_view kDependencies = "dependent constant fixed tunable discrete";
constexpr std::string_view kOnce =
    "ModelExchange CoSimulation ScheduledExecution UnitDefinitions TypeDefinitions LogCategories "
    "DefaultExperiment VendorAnnotations Annotations ModelVariables ModelStructure";

using Rules = std::vector<ElementRule>;

/// What both versions have in common.
Rules common_rules() {
  return {
      {"BaseUnit", {{"kg m s A K mol cd rad", Kind::whole}, {"factor offset", Kind::real}}},
      {"Unit", {{"name", Kind::text, {}, kRequired}}, {}, "BaseUnit"},
      {"DisplayUnit", {{"name", Kind::text, {}, kRequired}, {"factor offset", Kind::real}}},
      {"Category File", {{"name", Kind::text, {}, kRequired}}},
      {"Item", {{"name", Kind::text, {}, kRequired}, {"value", Kind::whole, {}, kRequired}}},
      {"DefaultExperiment", {{"startTime stopTime tolerance stepSize", Kind::real}}},
  };
}

Rules rules_2() {
  Rules out = common_rules();
  const Rules own = {
      {"fmiModelDescription",
       {{"modelName guid", Kind::text, {}, kRequired},
        {"numberOfEventIndicators", Kind::count},
        {"variableNamingConvention", Kind::word, "flat structured"}},
       "ModelVariables ModelStructure",
       kOnce},
      {"CoSimulation ModelExchange",
       {{"modelIdentifier", Kind::text, {}, kRequired},
        {"needsExecutionTool canHandleVariableCommunicationStepSize canInterpolateInputs "
         "canRunAsynchronuously canBeInstantiatedOnlyOncePerProcess "
         "canNotUseMemoryManagementFunctions canGetAndSetFMUstate canSerializeFMUstate "
         "providesDirectionalDerivative completedIntegratorStepNotNeeded",
         Kind::truth},
        {"maxOutputDerivativeOrder", Kind::count}},
       {},
       "SourceFiles"},
      {"SimpleType", {{"name", Kind::text, {}, kRequired}}},
      {"ScalarVariable",
       {{"name", Kind::text, {}, kRequired},
        {"valueReference", Kind::count, {}, kRequired},
        {"causality", Kind::word, "parameter calculatedParameter input output local independent"},
        {"variability", Kind::word, kVariabilities},
        {"initial", Kind::word, kInitials},
        {"canHandleMultipleSetPerTimeInstant", Kind::truth}},
       {},
       "Annotations"},
      {"Real",
       {{"min max nominal start", Kind::real}, {"relativeQuantity unbounded reinit", Kind::truth}}},
      {"Integer Enumeration", {{"min max start", Kind::whole}}},
      {"Boolean", {{"start", Kind::truth}}},
      {"ModelStructure", {}, {}, "Outputs Derivatives InitialUnknowns"},
      {"Unknown",
       {{"index", Kind::count, {}, kRequired},
        {"dependencies", Kind::counts},
        {"dependenciesKind", Kind::words, kDependencies}}},
  };
  out.insert(out.end(), own.begin(), own.end());
  return out;
}

Rules rules_3() {
  const std::vector<AttributeRule> of_variables = {
      {"name", Kind::text, {}, kRequired},
      {"valueReference", Kind::count, {}, kRequired},
      {"causality", Kind::word,
       "structuralParameter parameter calculatedParameter input output local independent "
       "dependent"},
      {"variability", Kind::word, kVariabilities},
      {"initial", Kind::word, kInitials},
      {"canHandleMultipleSetPerTimeInstant intermediateUpdate", Kind::truth},
      {"clocks", Kind::counts},
      {"previous", Kind::count}};
  const auto variable = [&](std::string_view names, std::vector<AttributeRule> more) {
    more.insert(more.begin(), of_variables.begin(), of_variables.end());
    return ElementRule{names, std::move(more)};
  };
  Rules out = common_rules();
  const Rules own = {
      {"fmiModelDescription",
       {{"modelName instantiationToken", Kind::text, {}, kRequired},
        {"variableNamingConvention", Kind::word, "flat structured"}},
       "ModelVariables ModelStructure",
       kOnce},
      {"CoSimulation ModelExchange ScheduledExecution",
       {{"modelIdentifier", Kind::text, {}, kRequired},
        {"needsExecutionTool canBeInstantiatedOnlyOncePerProcess canGetAndSetFMUState "
         "canSerializeFMUState providesDirectionalDerivatives providesAdjointDerivatives "
         "providesPerElementDependencies canHandleVariableCommunicationStepSize "
         "providesIntermediateUpdate mightReturnEarlyFromDoStep "
         "canReturnEarlyAfterIntermediateUpdate hasEventMode providesEvaluateDiscreteStates",
         Kind::truth},
        {"maxOutputDerivativeOrder", Kind::count},
        {"recommendedIntermediateInputSmoothness", Kind::whole},
        {"fixedInternalStepSize", Kind::real}}},
      variable("Float64 Float32", {{"min max nominal", Kind::real},
                                   {"start", Kind::reals},
                                   {"relativeQuantity unbounded reinit", Kind::truth}}),
      variable("Int8 UInt8 Int16 UInt16 Int32 UInt32 Int64 UInt64 Enumeration",
               {{"min max", Kind::whole}, {"start", Kind::wholes}}),
      variable("Boolean", {{"start", Kind::truths}}),
      variable("String Binary", {}),
      variable("Clock", {{"intervalVariability", Kind::word,
                          "constant fixed tunable changing countdown triggered", kRequired},
                         {"intervalDecimal shiftDecimal", Kind::real},
                         {"canBeDeactivated supportsFraction", Kind::truth},
                         {"priority resolution intervalCounter shiftCounter", Kind::count}}),
      {"Float64Type Float32Type",
       {{"name", Kind::text, {}, kRequired},
        {"min max nominal", Kind::real},
        {"relativeQuantity unbounded", Kind::truth}}},
      {"Int8Type UInt8Type Int16Type UInt16Type Int32Type UInt32Type Int64Type UInt64Type "
       "EnumerationType",
       {{"name", Kind::text, {}, kRequired}, {"min max", Kind::whole}}},
      {"BooleanType StringType BinaryType ClockType", {{"name", Kind::text, {}, kRequired}}},
      {"Alias", {{"name", Kind::text, {}, kRequired}}},
      {"Dimension", {{"start valueReference", Kind::count}}},
      {"Output ContinuousStateDerivative ClockedState InitialUnknown EventIndicator",
       {{"valueReference", Kind::count, {}, kRequired},
        {"dependencies", Kind::counts},
        {"dependenciesKind", Kind::words, kDependencies}}},
  };
  out.insert(out.end(), own.begin(), own.end());
  return out;
}

std::vector<std::string_view> words_of(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  std::vector<std::string_view> out;
  for (;;) {
    const std::size_t first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) return out;
    text.remove_prefix(first);
    const std::size_t end = std::min(text.find_first_of(kBlanks), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

bool holds(std::string_view list, std::string_view word) {
  const auto words = words_of(list);
  return std::ranges::find(words, word) != words.end();
}

template <class Number>
bool is_whole(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// What one word of an attribute must be that this one is not; empty: it may be it.
std::string defect_of(const AttributeRule& rule, std::string_view word) {
  switch (rule.kind) {
    case Kind::real:
    case Kind::reals:
      return files::number_in(word) || word == "NaN" ? "" : "a number";
    case Kind::whole:
    case Kind::wholes:
      return is_whole<std::int64_t>(word) || is_whole<std::uint64_t>(word) ? "" : "a whole number";
    case Kind::count:
    case Kind::counts:
      return is_whole<std::uint64_t>(word) ? "" : "a whole number, not below 0";
    case Kind::truth:
    case Kind::truths:
      return files::truth_in(word) ? "" : "true or false";
    case Kind::word:
    case Kind::words:
      return holds(rule.words, word) ? "" : fmt::format("one of: {}", rule.words);
    case Kind::text:
      break;
  }
  return "";
}

bool is_list(Kind kind) {
  return kind == Kind::reals || kind == Kind::wholes || kind == Kind::counts ||
         kind == Kind::truths || kind == Kind::words;
}

class Check {
 public:
  Check(const Rules& rules, const std::function<void(xml_node, const std::string&)>& fail)
      : fail_(fail) {
    for (const ElementRule& rule : rules) {
      for (const std::string_view name : words_of(rule.names)) rules_.emplace_back(name, &rule);
    }
    std::ranges::sort(rules_, {}, &Named::first);
  }

  void look(xml_node element) {
    const auto found =
        std::ranges::lower_bound(rules_, std::string_view(element.name()), {}, &Named::first);
    if (found != rules_.end() && found->first == element.name()) look(element, *found->second);
    for (const xml_node own : element.children()) {
      const std::string_view name = own.name();
      // What tools note for themselves is theirs.
      const bool is_own = name == "Annotations" || name == "VendorAnnotations";
      if (own.type() == pugi::node_element && !is_own) look(own);
    }
  }

 private:
  using Named = std::pair<std::string_view, const ElementRule*>;

  void look(xml_node element, const ElementRule& rule) {
    for (const AttributeRule& own : rule.attributes) {
      for (const std::string_view name : words_of(own.names)) look(element, own, std::string(name));
    }
    for (const std::string_view name : words_of(rule.needs)) {
      if (!element.child(std::string(name).c_str()))
        fail_(element, fmt::format("there is no <{}>", name));
    }
    for (const std::string_view name : words_of(rule.once)) {
      const std::string own(name);
      if (const xml_node second = element.child(own.c_str()).next_sibling(own.c_str()))
        fail_(second, fmt::format("there is another <{}>", name));
    }
  }
  void look(xml_node element, const AttributeRule& rule, const std::string& name) {
    const auto given = element.attribute(name.c_str());
    if (!given) {
      if (rule.required) fail_(element, fmt::format("<{}> has no {}", element.name(), name));
      return;
    }
    const std::string_view value = given.value();
    const auto words = words_of(value);
    if (!is_list(rule.kind) && rule.kind != Kind::text && words.size() != 1) {
      return fail_(element, refusal(element, name, value, defect_of(rule, "?")));
    }
    if (rule.kind == Kind::text) return;
    for (const std::string_view word : words) {
      if (const std::string defect = defect_of(rule, word); !defect.empty())
        return fail_(element, refusal(element, name, value, defect));
    }
  }
  static std::string refusal(xml_node element, const std::string& name, std::string_view value,
                             const std::string& must) {
    constexpr std::size_t kShown = 60;
    return fmt::format("{} of <{}> must be {}, got {}", name, element.name(), must,
                       in_quotes(value.substr(0, kShown)));
  }

  std::vector<Named> rules_;
  const std::function<void(xml_node, const std::string&)>& fail_;
};

}  // namespace

void check_description(xml_node root, Version version,
                       const std::function<void(xml_node, const std::string&)>& fail) {
  static const Rules kRules2 = rules_2(), kRules3 = rules_3();
  Check(version == Version::v2 ? kRules2 : kRules3, fail).look(root);
}

}  // namespace portwave::fmi
