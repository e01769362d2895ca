#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace portwave {

/// Names for a message: "\"a\", \"b\"", of more than `most` the first and ", ... (30 in all)".
std::string few_of(const std::vector<std::string>& names, std::size_t most = 12);

}  // namespace portwave
