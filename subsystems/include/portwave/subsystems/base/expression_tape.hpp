#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "portwave/subsystems/base/expression_graph.hpp"
#include "portwave/subsystems/base/tape_program.hpp"

namespace portwave {

/// The program that evaluates nodes of an ExpressionGraph, each common operation once.
/// Each lane has the bits that it has alone. Sines, cosines and exponentials are ours, to an ulp or two and with the
/// same bits on every instruction set; other functions, and these of large numbers, are those of the C library.
/// Threads: immutable. Cost: one pass over the operations, each for all lanes; no allocation.
class ExpressionTape {
 public:
  ExpressionTape() = default;
  /// Errors: ConfigError for more operations than it can hold.
  ExpressionTape(const ExpressionGraph& graph, std::span<const ExpressionGraph::Node> results);

  int variables() const { return variables_; }
  int results() const { return static_cast<int>(results_.size()); }
  int operations() const { return static_cast<int>(steps_.size()); }
  /// Doubles of scratch for so many lanes.
  int scratch_size(int lanes) const { return registers_ * lanes; }

  /// Equal for tapes that do the same.
  std::string bytes() const;

  /// Values of all results, written to `out`. Value i of lane l is at [i·lanes + l], in x and out alike.
  void operator()(const double* x, double* out) const;
  /// The same for 1 or 8 lanes, with scratch of the caller.
  template <int lanes>
  void run(const double* x, double* out, double* scratch) const;
  /// For kernels, as long as this lives.
  TapeProgram program() const;

 private:
  int variables_ = 0;
  int registers_ = 0;            // variables, constants, temporaries
  std::vector<double> numbers_;  // that of registers from variables_ on
  std::vector<TapeProgram::Step> steps_;
  std::vector<std::uint16_t> results_;
};

}  // namespace portwave
