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

 private:
  int offset(int junction, int position) const;
  bool follows(int previous, int next) const;
  double reflection_value(int junction, int k) const;
  void add_run(std::span<const int> junctions, bool contiguous, CompiledJunctions& out) const;

  const Interconnection& coupling_;
  std::span<const int> renumbering_;
};

}  // namespace portwave
