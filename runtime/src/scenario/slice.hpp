#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "portwave/runtime/ranks/ranks.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "scenario/parts/system_draft.hpp"
#include "scenario/reader/document.hpp"
#include "scenario/reader/node.hpp"

namespace portwave::scenario_file {

/// What a rank needs of a scenario file: all of it but the parts and couplings of others.
struct SliceText {
  std::string text;  ///< a scenario in itself
  SlicePlaces places;
};

/// Reads a file piece by piece, several times, so that no more of it is in memory than a rank needs.
/// Errors: ScenarioError.
SliceText read_slice(const std::filesystem::path& file, Ranks& ranks,
                     const PhaseCallback& listener);

/// Where an issue of a slice is in the whole file.
Issue placed_in_whole(Issue issue, const SlicePlaces& places);

/// All that ranks have found, in the order of the ranks and each once. All ranks call it.
Issues gathered_issues(Ranks& ranks, const Issues& own);

/// What is observed of this rank's parts.
class SliceOutputs {
 public:
  /// Takes out of "outputs" what is of parts of others.
  SliceOutputs(Json& root, const SlicePlaces& places);
  /// Notes what is of nobody's. All ranks call it.
  void check(const SlicePlaces& places, Defects& defects) const;

 private:
  struct Label {
    std::size_t place;  ///< in the list of the file
    std::string text;
    bool is_here;
  };
  std::vector<Label> labels_;
};

}  // namespace portwave::scenario_file
