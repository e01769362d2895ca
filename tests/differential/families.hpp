#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "differential/network.hpp"

namespace portwave::differential {

/// The kinds of network that cases are drawn from.
const std::vector<std::string>& families();

/// Families that have something in common: "guard" (what the guard must leave alone), "matrices"
/// (structures, scales and units), "all"; or one by its name. Errors: std::invalid_argument.
std::vector<std::string> families_of_box(const std::string& box);

/// The case of a family and a seed. One in three is a control: the same network with one negative
/// damper.
Network make_case(const std::string& family, std::uint64_t seed);

}  // namespace portwave::differential
