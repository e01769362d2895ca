#include "portwave/subsystems/base/units.hpp"

#include <charconv>
#include <cmath>
#include <numbers>

#include "portwave/subsystems/base/name_search.hpp"

namespace portwave {
namespace {

struct NamedUnit {
  std::string_view name;
  Unit unit;
  bool takes_prefix = false;
};

//                      m  kg  s  A  K  mol
constexpr NamedUnit kUnits[] = {
    {"", {}, false},
    {"1", {}, false},
    {"%", {0.01, {}, 0, false}, false},
    {"m", {1.0, {1, 0, 0, 0, 0}, 0, false}, true},
    {"g", {1e-3, {0, 1, 0, 0, 0}, 0, false}, true},
    {"s", {1.0, {0, 0, 1, 0, 0}, 0, false}, true},
    {"A", {1.0, {0, 0, 0, 1, 0}, 0, false}, true},
    {"K", {1.0, {0, 0, 0, 0, 1}, 0, false}, true},
    {"mol", {1.0, {0, 0, 0, 0, 0, 1}, 0, false}, true},
    {"rad", {1.0, {}, 1, false}, true},
    {"deg", {std::numbers::pi / 180.0, {}, 1, false}, false},
    {"rev", {2.0 * std::numbers::pi, {}, 1, false}, false},
    {"rpm", {2.0 * std::numbers::pi / 60.0, {0, 0, -1, 0, 0}, 1, false}, false},
    {"Hz", {1.0, {0, 0, -1, 0, 0}, 0, true}, true},
    {"min", {60.0, {0, 0, 1, 0, 0}, 0, false}, false},
    {"h", {3600.0, {0, 0, 1, 0, 0}, 0, false}, false},
    {"t", {1e3, {0, 1, 0, 0, 0}, 0, false}, false},
    {"l", {1e-3, {3, 0, 0, 0, 0}, 0, false}, true},
    {"L", {1e-3, {3, 0, 0, 0, 0}, 0, false}, true},
    {"N", {1.0, {1, 1, -2, 0, 0}, 0, false}, true},
    {"Nm", {1.0, {2, 1, -2, 0, 0}, 0, false}, true},
    {"J", {1.0, {2, 1, -2, 0, 0}, 0, false}, true},
    {"Wh", {3600.0, {2, 1, -2, 0, 0}, 0, false}, true},
    {"W", {1.0, {2, 1, -3, 0, 0}, 0, false}, true},
    {"Pa", {1.0, {-1, 1, -2, 0, 0}, 0, false}, true},
    {"bar", {1e5, {-1, 1, -2, 0, 0}, 0, false}, true},
    {"V", {1.0, {2, 1, -3, -1, 0}, 0, false}, true},
    {"C", {1.0, {0, 0, 1, 1, 0}, 0, false}, true},
    {"F", {1.0, {-2, -1, 4, 2, 0}, 0, false}, true},
    {"H", {1.0, {2, 1, -2, -2, 0}, 0, false}, true},
    {"ohm", {1.0, {2, 1, -3, -2, 0}, 0, false}, true},
    {"S", {1.0, {-2, -1, 3, 2, 0}, 0, false}, true},
    {"Wb", {1.0, {2, 1, -2, -1, 0}, 0, false}, true},
    {"T", {1.0, {0, 1, -2, -1, 0}, 0, false}, true},
};

struct Prefix {
  std::string_view name;
  double factor;
};
constexpr Prefix kPrefixes[] = {{"p", 1e-12}, {"n", 1e-9}, {"u", 1e-6}, {"µ", 1e-6},
                                {"m", 1e-3},  {"c", 1e-2}, {"d", 0.1},  {"h", 100.0},
                                {"k", 1e3},   {"M", 1e6},  {"G", 1e9}};

std::optional<Unit> named_unit(std::string_view name) {
  for (const NamedUnit& own : kUnits) {
    if (own.name == name) return own.unit;
  }
  for (const Prefix& prefix : kPrefixes) {
    if (!name.starts_with(prefix.name)) continue;
    for (const NamedUnit& own : kUnits) {
      if (!own.takes_prefix || own.name != name.substr(prefix.name.size())) continue;
      Unit out = own.unit;
      out.factor *= prefix.factor;
      return out;
    }
  }
  return std::nullopt;
}

void multiply(Unit& into, const Unit& by, int power) {
  into.factor *= std::pow(by.factor, power);
  for (std::size_t i = 0; i < into.powers.size(); ++i) into.powers[i] += power * by.powers[i];
  into.angle += power * by.angle;
  into.counts_turns = into.counts_turns || by.counts_turns;
}

/// "m^2" with the sign of what stands before it.
bool take_factor(std::string_view text, int sign, Unit& into) {
  int power = 1;
  if (const std::size_t hat = text.find('^'); hat != std::string_view::npos) {
    const std::string_view number = text.substr(hat + 1);
    const auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), power);
    if (error != std::errc{} || stop != number.data() + number.size() || std::abs(power) > 12) {
      return false;
    }
    text = text.substr(0, hat);
  }
  const std::optional<Unit> unit = named_unit(text);
  if (!unit) return false;
  multiply(into, *unit, sign * power);
  return true;
}

/// The product as far as its factors are known; `unknown`: the first that is not.
std::optional<Unit> read_unit(std::string_view text, std::string_view& unknown) {
  Unit out;
  int sign = 1;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ' ';
    if (c != ' ' && c != '*' && c != '/') continue;
    if (i > begin) {
      unknown = text.substr(begin, i - begin);
      if (!take_factor(unknown, sign, out)) return std::nullopt;
      sign = 1;
    }
    if (c == '/') sign = -1;
    begin = i + 1;
  }
  unknown = {};
  if (sign < 0) return std::nullopt;  // nothing follows
  return out;
}

}  // namespace

std::optional<Unit> parse_unit(std::string_view text) {
  std::string_view unknown;
  return read_unit(text, unknown);
}

std::string nearest_unit(std::string_view text) {
  std::string_view unknown;
  if (read_unit(text, unknown) || unknown.empty()) return {};
  std::vector<std::string> names = {"kg"};
  for (const NamedUnit& own : kUnits) {
    if (own.name.size() > 1) names.emplace_back(own.name);
  }
  return NameSearch(std::move(names)).nearest(unknown.substr(0, unknown.find('^')));
}

Unit product(const Unit& unit, const Unit& by, int power) {
  Unit out = unit;
  multiply(out, by, power);
  return out;
}

UnitRelation relation(const Unit& from, const Unit& to) {
  if (from.powers != to.powers) return {.is_same_dimension = false};
  double factor = from.factor / to.factor;
  if (from.counts_turns != to.counts_turns && (from.angle != 0 || to.angle != 0)) {
    factor *= from.counts_turns ? 2.0 * std::numbers::pi : 0.5 / std::numbers::pi;
  }
  if (std::abs(factor - 1.0) <= 1e-12) factor = 1.0;
  return {.is_same_dimension = true, .factor = factor};
}

}  // namespace portwave
