#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace portwave::scenario_file {

/// A value that is no JSON number but was meant as one.
struct BadNumber {
  std::size_t end = 0;  ///< of the empty string that stands in for it
  std::string problem;
};

/// Puts "" in the place of every bad number, so that one pass of the parser gets beyond them all;
/// the text keeps its length and lines. Of more than can be listed, only the first are named.
std::vector<BadNumber> blank_bad_numbers(std::string& text);

}  // namespace portwave::scenario_file
