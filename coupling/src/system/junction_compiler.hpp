#pragma once

#include <span>
#include <vector>

#include "portwave/coupling/system/interconnection.hpp"

namespace portwave {

/// Turns junctions into CompiledJunctions: those of one form, arity and sign are sorted by their
/// first offset; stretches whose offsets follow one another become contiguous runs, the rest one
/// indexed run per kind.
class JunctionCompiler {
 public:
  JunctionCompiler(const Interconnection& coupling, std::span<const int> renumbering)
      : coupling_(coupling), renumbering_(renumbering) {}

  CompiledJunctions compile(std::span<const int> junctions) const;
  /// Writes the weights as they are now into what was compiled of these junctions before. False, and
  /// nothing is written, where it was compiled of others, or one has another form or sign.
  /// Allocates nothing.
  bool refresh(CompiledJunctions& compiled, std::span<const int> junctions) const;

 private:
  int renumbered(int offset) const {
    return renumbering_.empty() ? offset : renumbering_[static_cast<std::size_t>(offset)];
  }
  int offset(int junction, int position) const;
  bool follows(int previous, int next) const;
  /// In the order of their first offsets.
  void sort(std::vector<int>& junctions) const;
  double reflection_value(int junction, int k) const;
  void add_run(std::span<const int> junctions, bool contiguous, CompiledJunctions& out) const;
  /// Sets the values and loops of a run, for which there is room.
  void weigh(JunctionRun& run, std::span<const int> junctions, AlignedVector& values) const;

  const Interconnection& coupling_;
  std::span<const int> renumbering_;
};

}  // namespace portwave
