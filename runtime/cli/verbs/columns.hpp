#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace portwave::cli {

/// Rows of text as columns, two blanks apart, each row indented.
std::string aligned(const std::vector<std::vector<std::string>>& rows);
/// The same after a blank line and a title; nothing where there are no rows.
std::string section(std::string_view title, const std::vector<std::vector<std::string>>& rows);

}  // namespace portwave::cli
