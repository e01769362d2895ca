#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "scenario/scenario_limits.hpp"
#include "scenario/scenario_text.hpp"
#include "scenario/scenario_values.hpp"
#include "scenario/schema_tools.hpp"

namespace portwave::scenario_file {
namespace {

/// Keys of the object that belong to others.
using Also = std::vector<std::string_view>;

Also keys_with(std::initializer_list<std::string_view> own, const Also& also) {
  Also keys(own);
  keys.insert(keys.end(), also.begin(), also.end());
  return keys;
}

// The number under `key`, or `otherwise` if the key is absent.
std::optional<double> read_optional_number(const ObjectReader& object, std::string_view key,
                                           double otherwise) {
  const std::optional<Node> found = object.find(key);
  return found ? found->number() : otherwise;
}

std::optional<Signal> read_constant(const Node& node, const Also& also) {
  const ObjectReader object(node, keys_with({"kind", "value"}, also));
  const std::optional<Node> value_node = object.require("value");
  const auto value = value_node ? value_node->number() : std::nullopt;
  if (!value) return std::nullopt;
  return Signal::constant(*value);
}

std::optional<Signal::Sine> read_sine(const Node& node) {
  const ObjectReader object(node, {"frequency_Hz", "phase_rad"});
  const std::optional<Node> frequency_node = object.require("frequency_Hz");
  const auto frequency = frequency_node ? frequency_node->number() : std::nullopt;
  const auto phase = read_optional_number(object, "phase_rad", 0.0);
  if (!frequency || !phase) return std::nullopt;
  return Signal::Sine{*frequency, *phase};
}

std::optional<std::vector<Signal::Sine>> read_sines(const Node& node) {
  if (!node.json().is_array() || node.size() == 0) {
    node.fail_expected("an array of at least one sine");
    return std::nullopt;
  }
  std::vector<Signal::Sine> sines;
  for (std::size_t i = 0; i < node.size(); ++i) {
    const Node element = node.at(i);
    if (const auto sine = read_sine(element)) sines.push_back(*sine);
  }
  if (sines.size() != node.size()) return std::nullopt;
  return sines;
}

std::optional<Signal> read_sine_product(const Node& node, const Also& also) {
  const ObjectReader object(node, keys_with({"kind", "amplitude", "offset", "sines"}, also));
  const std::optional<Node> amplitude_node = object.require("amplitude");
  const std::optional<Node> sines_node = object.require("sines");
  const auto amplitude = amplitude_node ? amplitude_node->number() : std::nullopt;
  const auto offset = read_optional_number(object, "offset", 0.0);
  auto sines = sines_node ? read_sines(*sines_node) : std::nullopt;
  if (!amplitude || !offset || !sines) return std::nullopt;
  return Signal::sine_product(*amplitude, *std::move(sines), *offset);
}

std::optional<Signal::Knot> read_knot(const Node& node) {
  const auto pair = node.json().is_array() && node.size() == 2 ? read_numbers(node) : std::nullopt;
  if (pair) return Signal::Knot{(*pair)[0], (*pair)[1]};
  if (!node.json().is_array() || node.size() != 2) node.fail_expected("a knot [time_s, value]");
  return std::nullopt;
}

std::optional<Signal> read_knots(const Node& node) {
  if (!node.json().is_array() || node.size() == 0) {
    node.fail_expected("an array of at least one knot [time_s, value]");
    return std::nullopt;
  }
  std::vector<Signal::Knot> knots;
  bool is_sound = true;
  for (std::size_t i = 0; i < node.size(); ++i) {
    const Node element = node.at(i);
    const auto knot = read_knot(element);
    is_sound = is_sound && knot;
    if (!knot) continue;
    if (std::string defect = knot_defect(knots, knot->time_s); !defect.empty()) {
      element.fail(std::move(defect));
      is_sound = false;
    }
    knots.push_back(*knot);
  }
  if (!is_sound) return std::nullopt;
  return Signal::piecewise_linear(std::move(knots));
}

std::optional<Signal> read_table_file(const Node& node, const std::filesystem::path& folder) {
  const auto name = node.text();
  if (!name) return std::nullopt;
  const FileText file = read_text_file(folder / *name);
  if (!file.ok()) {
    node.fail(fmt::format("the table {} {}", in_quotes(*name), file.problem));
    return std::nullopt;
  }
  std::vector<std::string> defects;
  std::vector<Signal::Knot> knots = parse_table(file.text, defects);
  for (const std::string& defect : defects) {
    node.fail(fmt::format("the table {}{}", in_quotes(*name), defect));
  }
  if (!defects.empty()) return std::nullopt;
  return Signal::piecewise_linear(std::move(knots));
}

std::optional<Signal> read_table(const Node& node, const std::filesystem::path& folder,
                                 const Also& also) {
  const ObjectReader object(node, keys_with({"kind", "file", "knots"}, also));
  const std::optional<Node> file = object.find("file");
  const std::optional<Node> knots = object.find("knots");
  if (file.has_value() == knots.has_value()) {
    node.fail(fmt::format("a table must have either \"file\" or \"knots\", got {}",
                          file ? "both" : "neither"));
    return std::nullopt;
  }
  return file ? read_table_file(*file, folder) : read_knots(*knots);
}

// A number that must be there, within `range`.
std::optional<double> required_number(const ObjectReader& object, std::string_view key,
                                      const NumberRange& range = {}) {
  const std::optional<Node> found = object.require(key);
  return found ? found->number(range) : std::nullopt;
}

std::optional<Signal> read_chirp(const Node& node, const Also& also) {
  const ObjectReader object(node, keys_with({"kind", "amplitude", "from_Hz", "to_Hz", "duration_s",
                                             "phase_rad", "offset"},
                                            also));
  const auto amplitude = required_number(object, "amplitude");
  const auto from = required_number(object, "from_Hz");
  const auto to = required_number(object, "to_Hz");
  const auto duration = required_number(object, "duration_s", NumberRange::positive());
  const auto phase = read_optional_number(object, "phase_rad", 0.0);
  const auto offset = read_optional_number(object, "offset", 0.0);
  if (!amplitude || !from || !to || !duration || !phase || !offset) return std::nullopt;
  return Signal::chirp({*amplitude, *from, *to, *duration, *phase, *offset});
}

std::optional<Signal> read_noise(const Node& node, const Also& also) {
  const ObjectReader object(
      node, keys_with({"kind", "standard_deviation", "interval_s", "seed", "mean"}, also));
  const auto deviation = required_number(object, "standard_deviation", NumberRange::non_negative());
  const auto interval = required_number(object, "interval_s", NumberRange::positive());
  const auto mean = read_optional_number(object, "mean", 0.0);
  std::optional<std::int64_t> seed = 1;
  if (const auto given = object.find("seed")) seed = given->integer(0, scenario_limits::kInteger);
  if (!deviation || !interval || !mean || !seed) return std::nullopt;
  return Signal::noise({*deviation, *interval, static_cast<std::uint64_t>(*seed), *mean});
}

std::optional<Signal> read_expression(const Node& node, const Also& also) {
  const ObjectReader object(node, keys_with({"kind", "expression"}, also));
  const std::optional<Node> text_node = object.require("expression");
  const auto text = text_node ? text_node->text() : std::nullopt;
  if (!text) return std::nullopt;
  try {
    return Signal::expression(*text);
  } catch (const ConfigError& error) {
    for (const Issue& issue : error.issues()) text_node->fail(issue.what);
  }
  return std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

bool read_finite(std::string_view text, double& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end && std::isfinite(value);
}

// A line "time_s,value".
std::optional<Signal::Knot> parse_row(std::string_view line) {
  const std::size_t comma = line.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  Signal::Knot knot;
  if (!read_finite(trimmed(line.substr(0, comma)), knot.time_s)) return std::nullopt;
  if (!read_finite(trimmed(line.substr(comma + 1)), knot.value)) return std::nullopt;
  return knot;
}

bool is_header(std::string_view line) {
  const std::size_t comma = line.find(',');
  return comma != std::string_view::npos && trimmed(line.substr(0, comma)) == "time_s" &&
         line.find(',', comma + 1) == std::string_view::npos;
}

}  // namespace

std::vector<Signal::Knot> parse_table(const std::string& text, std::vector<std::string>& defects) {
  constexpr std::size_t kMostDefects = 10;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::string_view rest = text;
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  std::vector<Signal::Knot> knots;
  for (int number = 1; !rest.empty() && defects.size() < kMostDefects; ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty() || (number == 1 && is_header(line))) continue;
    const std::optional<Signal::Knot> knot = parse_row(line);
    if (!knot) {
      defects.push_back(
          fmt::format(", line {}: must be two finite numbers \"time_s,value\", got {}", number,
                      in_quotes(line)));
    } else if (const std::string defect = knot_defect(knots, knot->time_s); !defect.empty()) {
      defects.push_back(fmt::format(", line {}: {}", number, defect));
    }
    if (knot) knots.push_back(*knot);
  }
  if (knots.empty() && defects.empty()) defects.emplace_back(" has no rows \"time_s,value\"");
  return knots;
}

const std::vector<std::string>& signal_kinds() {
  static const std::vector<std::string> kinds = [] {
    std::vector<std::string> names;
    for (const SignalKindSchema& schema : signal_kind_schemas()) names.push_back(schema.kind);
    return names;
  }();
  return kinds;
}

std::optional<Signal> read_signal(const Node& node, const std::filesystem::path& folder,
                                  const std::vector<std::string_view>& also) {
  const auto kind = read_kind(node, signal_kinds());
  if (!kind) return std::nullopt;
  if (*kind == "constant") return read_constant(node, also);
  if (*kind == "sine_product") return read_sine_product(node, also);
  if (*kind == "chirp") return read_chirp(node, also);
  if (*kind == "noise") return read_noise(node, also);
  if (*kind == "expression") return read_expression(node, also);
  return read_table(node, folder, also);
}

}  // namespace portwave::scenario_file
