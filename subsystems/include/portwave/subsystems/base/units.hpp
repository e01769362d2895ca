#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace portwave {

/// A unit of measurement: a factor times powers of base units.
struct Unit {
  double factor = 1.0;             ///< to SI units
  std::array<int, 6> powers = {};  ///< of m, kg, s, A, K, mol
  int angle = 0;                   ///< power of rad, which counts for nothing beside a plain number
  bool counts_turns = false;       ///< Hz: turns, not radians, in a second
};

/// A product of units and their powers, such as "N m/rad", "kg m^2/s", "km/h" or "rpm": blanks and *
/// multiply, / divides by the next factor. "" is a plain number. Empty if a name in it is not known.
std::optional<Unit> parse_unit(std::string_view text);
/// The known name that is nearest to the first unknown one in the text; empty: none is near.
std::string nearest_unit(std::string_view text);
/// `unit` times a power of another.
Unit product(const Unit& unit, const Unit& by, int power = 1);

/// How values in one unit become those in another.
struct UnitRelation {
  bool is_same_dimension = true;
  double factor = 1.0;  ///< of the values
  bool converts() const { return is_same_dimension && factor == 1.0; }
};
UnitRelation relation(const Unit& from, const Unit& to);

}  // namespace portwave
