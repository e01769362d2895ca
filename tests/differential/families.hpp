#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "differential/network.hpp"

namespace portwave::differential {

/// The kinds of network that cases are drawn from.
const std::vector<std::string>& families();

/// The case of a family and a seed. One in three is a control: the same network with one negative damper.
Network make_case(const std::string& family, std::uint64_t seed);

}  // namespace portwave::differential
