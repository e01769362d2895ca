#pragma once

#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/base/error.hpp"

namespace portwave::scenario_file {

using Json = nlohmann::ordered_json;

/// A scenario file as JSON, and what is wrong with it as JSON.
struct Document {
  Json root;
  Issues issues;
  bool readable = false;          ///< false: `root` means nothing
  std::set<std::string> settled;  ///< places whose defect is in `issues` and is not reported again
};

/// Parses strictly: UTF-8, no duplicate keys, no NaN, numbers that fit a double, bounded nesting.
/// Where a value alone is at fault, the rest is still read.
Document parse_document(std::string text);

/// Replaces the values that the command line sets. A pointer's last key may be new, all before it
/// must exist.
void apply_overrides(Document& document, const std::vector<Override>& overrides);

/// Orders issues by their place in the document.
void sort_by_place(Issues& issues, const Json& root);

/// A value that is no JSON number but was meant as one.
struct BadNumber {
  std::size_t end = 0;  ///< of the empty string that stands in for it
  std::string problem;
};

/// Puts "" in the place of every bad number, so that one pass of the parser gets beyond them all;
/// the text keeps its length and lines. Of more than can be listed, only the first are named.
std::vector<BadNumber> blank_bad_numbers(std::string& text);

}  // namespace portwave::scenario_file
