#include "scenario/parts/sources.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "scenario/parts/values.hpp"
#include "scenario/reader/key_table.hpp"
#include "scenario/reader/limits.hpp"
#include "scenario/reader/text.hpp"

namespace portwave::scenario_file {
namespace {

struct SineProductKeys {
  double amplitude = 0.0, offset = 0.0;
  std::vector<Signal::Sine> sines;
};

struct TableKeys {
  std::optional<Node> file, knots;
};

struct ConstantKeys {
  double value = 0.0;
};

struct ExpressionKeys {
  std::optional<Node> expression;
};

template <class Keys>
Key<Keys> offset_key(double Keys::*member) {
  return optional_key("offset", "constant that is added", to(member, form::number()), 0);
}

template <class Keys>
Key<Keys> phase_key(double Keys::*member) {
  return optional_key("phase_rad", "phase at t = 0 [rad]", to(member, form::number()), 0);
}

const KeyTable<Signal::Sine>& sine_keys() {
  static const KeyTable<Signal::Sine> keys(
      {required_key("frequency_Hz", "frequency [Hz]",
                    to(&Signal::Sine::frequency_Hz, form::number())),
       phase_key(&Signal::Sine::phase_rad)});
  return keys;
}

std::optional<std::vector<Signal::Sine>> read_sines(const Node& node) {
  if (!node.json().is_array() || node.size() == 0) {
    node.fail_expected("an array of at least one sine");
    return std::nullopt;
  }
  std::vector<Signal::Sine> sines;
  bool is_sound = true;
  for (std::size_t i = 0; i < node.size(); ++i) {
    const Node element = node.at(i);
    is_sound = sine_keys().read(element, sines.emplace_back()) && is_sound;
  }
  if (!is_sound) return std::nullopt;
  return sines;
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

template <class Keys>
using Make = std::optional<Signal> (*)(const Node&, Keys&, const std::filesystem::path& folder);

template <class Keys>
SourceKind source(const std::string& name, std::vector<Key<Keys>> rows, Make<Keys> make,
                  Json rules = Json::object()) {
  rows.insert(rows.begin(), kind_key<Keys>(name));
  const KeyTable<Keys> keys(std::move(rows), std::move(rules));
  Json schema = keys.schema();
  return {name, std::move(schema),
          [keys, make](const Node& node, const std::filesystem::path& folder,
                       const std::vector<std::string_view>& also) -> std::optional<Signal> {
            Keys values;
            if (!keys.read(node, values, also)) return std::nullopt;
            return make(node, values, folder);
          }};
}

SourceKind constant_kind() {
  return source<ConstantKeys>(
      "constant", {required_key("value", "the value", to(&ConstantKeys::value, form::number()))},
      [](const Node&, ConstantKeys& keys, const std::filesystem::path&) {
        return std::optional(Signal::constant(keys.value));
      });
}

SourceKind sine_product_kind() {
  return source<SineProductKeys>(
      "sine_product",
      {required_key("amplitude", "factor of the product",
                    to(&SineProductKeys::amplitude, form::number())),
       offset_key(&SineProductKeys::offset),
       required_key(
           "sines", "factors sin(2 pi f t + phase); one is the usual case",
           to(&SineProductKeys::sines,
              Form<std::vector<Signal::Sine>>{read_sines, list(sine_keys().schema(), 1)}))},
      [](const Node&, SineProductKeys& keys, const std::filesystem::path&) {
        return std::optional(
            Signal::sine_product(keys.amplitude, std::move(keys.sines), keys.offset));
      });
}

SourceKind table_kind() {
  const Json knot = {{"type", "array"}, {"items", number()}, {"minItems", 2}, {"maxItems", 2}};
  return source<TableKeys>(
      "table",
      {optional_key("file", "CSV file of two columns, time_s and value, beside this file",
                    later(&TableKeys::file, text())),
       optional_key("knots", "[time_s, value] with increasing times",
                    later(&TableKeys::knots, list(knot, 1)))},
      [](const Node& node, TableKeys& keys,
         const std::filesystem::path& folder) -> std::optional<Signal> {
        if (keys.file.has_value() == keys.knots.has_value()) {
          node.fail(fmt::format("a table must have either \"file\" or \"knots\", got {}",
                                keys.file ? "both" : "neither"));
          return std::nullopt;
        }
        return keys.file ? read_table_file(*keys.file, folder) : read_knots(*keys.knots);
      },
      {{"oneOf", Json::array({{{"required", Json::array({"file"})}},
                              {{"required", Json::array({"knots"})}}})}});
}

SourceKind chirp_kind() {
  using Chirp = Signal::Chirp;
  return source<Chirp>(
      "chirp",
      {required_key("amplitude", "amplitude of the sine", to(&Chirp::amplitude, form::number())),
       required_key("from_Hz", "frequency at t = 0 [Hz]", to(&Chirp::from_Hz, form::number())),
       required_key("to_Hz", "frequency from duration_s on [Hz]",
                    to(&Chirp::to_Hz, form::number())),
       required_key("duration_s", "time in which the frequency changes [s]",
                    to(&Chirp::duration_s, form::number(NumberRange::positive()))),
       phase_key(&Chirp::phase_rad), offset_key(&Chirp::offset)},
      [](const Node&, Chirp& keys, const std::filesystem::path&) {
        return std::optional(Signal::chirp(keys));
      });
}

SourceKind noise_kind() {
  using Noise = Signal::Noise;
  return source<Noise>(
      "noise",
      {required_key("standard_deviation", "standard deviation of the Gaussian values",
                    to(&Noise::standard_deviation, form::number(NumberRange::non_negative()))),
       required_key("interval_s", "time between independent values [s]",
                    to(&Noise::interval_s, form::number(NumberRange::positive()))),
       optional_key("seed", "the same seed gives the same values",
                    to(&Noise::seed, form::integer(0, scenario_limits::kInteger)), 1),
       optional_key("mean", "mean of the values", to(&Noise::mean, form::number()), 0)},
      [](const Node&, Noise& keys, const std::filesystem::path&) {
        return std::optional(Signal::noise(keys));
      });
}

SourceKind expression_kind() {
  return source<ExpressionKeys>(
      "expression",
      {required_key("expression", "in t [s], such as \"5*sin(2*pi*t)\"",
                    later(&ExpressionKeys::expression, text()))},
      [](const Node&, ExpressionKeys& keys, const std::filesystem::path&) -> std::optional<Signal> {
        return keys.expression->text() ? read_short(*keys.expression) : std::nullopt;
      });
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

const std::vector<SourceKind>& source_kinds() {
  static const std::vector<SourceKind> kinds = {constant_kind(), sine_product_kind(),
                                                table_kind(),    chirp_kind(),
                                                noise_kind(),    expression_kind()};
  return kinds;
}

std::optional<Signal> read_short(const Node& node, std::string_view hint) {
  if (node.json().is_number()) {
    const auto value = node.number();
    return value ? std::optional(Signal::constant(*value)) : std::nullopt;
  }
  try {
    return Signal::expression(node.text().value_or("0"));
  } catch (const ConfigError& error) {
    for (const Issue& issue : error.issues()) node.fail(issue.what + std::string(hint));
  }
  return std::nullopt;
}

const SourceKind* find_source_kind(std::string_view name) {
  const auto found = std::ranges::find(source_kinds(), name, &SourceKind::name);
  return found == source_kinds().end() ? nullptr : &*found;
}

}  // namespace portwave::scenario_file
