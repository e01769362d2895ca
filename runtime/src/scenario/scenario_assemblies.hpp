#pragma once

#include <string>
#include <vector>

#include "scenario/scenario_document.hpp"

namespace portwave::scenario_file {

/// A scenario without assemblies, counts and indexed couplings, made of one with them.
struct ExpandedDocument {
  Json root;
  Issues issues;  ///< places are those of the given document
  /// Where an element of an expanded list comes from.
  struct Source {
    std::string where;  ///< JSON pointer into the given document
    std::string use;    ///< such as "leg_3/knee", where one entry stands for several; else empty
  };
  std::vector<Source> subsystems, couplings, blocks;

  /// Puts issues of `root` in their places in the given document, one for all uses of an entry.
  void place(Issues& found) const;
};

/// True where there is something to expand.
bool has_assemblies(const Json& root);
ExpandedDocument expand_assemblies(const Json& root);

}  // namespace portwave::scenario_file
