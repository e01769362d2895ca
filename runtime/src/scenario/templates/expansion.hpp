#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scenario/reader/node.hpp"

namespace portwave::scenario_file {

/// A scenario without assemblies, counts, indexed couplings and computed values, made of one with
/// them; and where its entries come from.
class ExpandedDocument {
 public:
  Json root;
  bool is_whole = true;       ///< false: entries are missing whose defects are noted
  bool is_too_large = false;  ///< it was given up, which is noted
  std::size_t values = 0;     ///< that were made
  Issues notes;               ///< of assemblies that nothing uses

  /// An issue of `root` in its place in the given document; nothing where that place has one, from
  /// another use of the same entry or from the expansion.
  std::optional<Issue> place(Issue issue);

 private:
  friend class Expander;
  /// Where an element of an expanded list comes from.
  struct Source {
    std::string where;  ///< JSON pointer into the given document
    std::string use;    ///< such as "leg_3/knee", where one entry stands for several; else empty
  };
  std::vector<Source> subsystems_, couplings_, blocks_;
  std::map<std::string, std::size_t> told_;  ///< places, and the element that told of them
};

/// True where there is something to expand.
bool has_assemblies(const Json& root);

/// Defects are noted in their places in the given document, one for all uses of an entry.
ExpandedDocument expand_assemblies(const Json& root, Defects& defects);

}  // namespace portwave::scenario_file
