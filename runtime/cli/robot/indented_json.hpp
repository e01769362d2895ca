#pragma once

#include <cstddef>
#include <string>

#include <nlohmann/json.hpp>

namespace portwave::cli {

/// Indented, with what fits in one line in one.
std::string text_of(const nlohmann::ordered_json& value, std::size_t indent = 0);

}  // namespace portwave::cli
