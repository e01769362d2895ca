#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "repeatability/run.hpp"

namespace portwave::repeatability {

/// What a sweep has covered.
struct Coverage {
  std::int64_t cases = 0, refused = 0, runs = 0, steps = 0;
  std::int64_t with_rescues = 0, with_rejected_trials = 0, with_guard = 0, with_rejected_steps = 0,
               with_failures = 0, damped = 0, on_threads = 0, on_ranks = 0, in_lanes = 0;

  void add(const Coverage& other);
  std::string text() const;
};

/// How much a case is tried.
struct Effort {
  int ways = 4;           ///< on threads, beside the serial run
  int rank_ways = 1;      ///< on ranks
  bool ensembles = true;  ///< and as one
  bool is_told = false;   ///< each case is printed
  int most_steps = 400;
};

/// Runs the case of a family and a seed in some ways. What differed, a line each; empty: nothing.
std::string try_case(const std::string& family, std::uint64_t seed, const Effort& effort,
                     Coverage& coverage);

/// Two systems of one size that a step longer takes apart: the comparison can fail.
bool notices_one_bit(const std::string& family, std::uint64_t seed);

}  // namespace portwave::repeatability
