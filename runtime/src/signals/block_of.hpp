#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "portwave/runtime/signals/block.hpp"
#include "portwave/subsystems/base/error.hpp"

namespace portwave::block {

struct NoUpdate {
  void operator()(const SampleTime&, std::span<const double>, std::span<const double>,
                  std::span<double>) const {}
};

/// A block whose functions are given as function objects:
///   output(when, u, x, y), update(when, u, y, x).
template <class Output, class Update>
class BlockOf final : public Block {
 public:
  BlockOf(Shape shape, std::vector<double> start, Output output, Update update)
      : Block(shape),
        start_(std::move(start)),
        output_(std::move(output)),
        update_(std::move(update)) {}

  void start(std::span<double> x) const override { std::ranges::copy(start_, x.begin()); }
  void output(const SampleTime& when, std::span<const double> u, std::span<const double> x,
              std::span<double> y) const override {
    output_(when, u, x, y);
  }
  void update(const SampleTime& when, std::span<const double> u, std::span<const double> y,
              std::span<double> x) const override {
    update_(when, u, y, x);
  }

 private:
  std::vector<double> start_;
  Output output_;
  Update update_;
};

/// As many states as `start` has numbers.
template <class Output, class Update = NoUpdate>
Handle block_of(Block::Shape shape, std::vector<double> start, Output output, Update update = {}) {
  shape.states = static_cast<int>(start.size());
  return std::make_shared<BlockOf<Output, Update>>(shape, std::move(start), std::move(output),
                                                   std::move(update));
}

/// y = f(u) of one input.
template <class Function>
Handle function_of_one(Function function) {
  return block_of({}, {},
                  [function](const SampleTime&, std::span<const double> u, std::span<const double>,
                             std::span<double> y) { y[0] = function(u[0]); });
}

/// y = f(t) of no input.
template <class Function>
Handle function_of_time(Function function) {
  return block_of(
      {.inputs = 0, .feeds_through = false}, {},
      [function](const SampleTime& when, std::span<const double>, std::span<const double>,
                 std::span<double> y) { y[0] = function(when.time_s); });
}

/// Collects what is wrong with options.
class OptionCheck {
 public:
  OptionCheck& finite(std::string where, double value);
  OptionCheck& positive(std::string where, double value);
  OptionCheck& not_negative(std::string where, double value);
  OptionCheck& within(std::string where, double value, double least, double most);
  /// A bound: any number but NaN, and the lower not above the upper.
  OptionCheck& bounds(double minimum, double maximum);
  OptionCheck& expect(bool good, std::string where, std::string what);
  void done() { throw_if_any(std::move(issues_)); }

 private:
  Issues issues_;
};

}  // namespace portwave::block
