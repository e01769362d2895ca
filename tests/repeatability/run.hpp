#pragma once

// Runs of one case in many ways: executors, threads, grains, ranks, ensembles. All are to give the same
// bits, in what they commit and in what they count.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "portwave/runtime/step/stepper.hpp"

namespace portwave::repeatability {

struct Case {
  std::string family;
  std::uint64_t seed = 0;
  std::shared_ptr<const System> system;
  StepperOptions options = {.start = Start::as_given,
                            .method = WaveCoupling{}};  ///< states are drawn at random
  int steps = 0;                                        ///< at most, attempts that fail included
  double end_s = 0.0;                                   ///< of steps that choose their size
  bool sets_inputs = false;                             ///< settable inputs are set now and then
  std::string what;                                     ///< the method in a few words
};

/// Random: a network, a method, a budget, stages, the guard, steps of one size, at most `most_steps`, or
/// steps that choose theirs.
Case make_case(const std::string& family, std::uint64_t seed, int most_steps = 400);
/// The same network by kicks and drifts or Taylor series; nothing where they refuse it.
std::optional<Case> make_explicit_case(const std::string& family, std::uint64_t seed,
                                       int most_steps);

struct Way {
  ExecutorKind executor = ExecutorKind::serial;
  int threads = 1;
  Grain grain = {};
  int ranks = 1;        ///< threads of this process
  unsigned jitter = 0;  ///< of their messages
  /// Steps between two looks at states and waves, and from a look on everything is looked at.
  int look_every = 1;
};

std::string to_string(const Way& way);

/// All that must be the same.
struct Record {
  std::string failed;                  ///< why steps were not made
  std::vector<std::uint64_t> digests;  ///< of states and waves, at each look
  std::vector<int> iterations;         ///< by step
  std::vector<double> counts;          ///< of the run
  int threads = 1;                     ///< it had; not to be compared
  std::int64_t rescues = 0, rejected_trials = 0, guard_uses = 0, rejected_steps = 0;
  double numerical_dissipation_J = 0.0;
};

Record run(const Case& of, const Way& way);

/// The first thing in which they differ; empty: nothing.
std::string difference(const Record& expected, const Record& found);

/// The replicas of an ensemble against steppers of their own: what differs; empty: nothing. `lanes`:
/// whether they were in lanes.
std::string ensemble_difference(const Case& of, int threads, bool* lanes = nullptr);

}  // namespace portwave::repeatability
