#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "portwave/runtime/signals/block.hpp"
#include "portwave/subsystems/base/digest.hpp"
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
  BlockOf(Shape shape, std::uint64_t digest, std::vector<double> start, Output output,
          Update update)
      : Block(shape, digest),
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

/// What a block is: its kind and the options that its functions depend on.
class Mark {
 public:
  Mark(std::string_view kind, std::initializer_list<double> options) {
    digest_.add(kind);
    for (const double option : options) digest_.add(option);
  }
  /// Of functions of somebody else.
  static Mark nobody_knows() { return {}; }
  Mark& add(std::uint64_t digest) {
    digest_.add(digest);
    return *this;
  }
  template <class Numbers>
  Mark& add_all(const Numbers& numbers) {
    for (const double number : numbers) digest_.add(number);
    return *this;
  }
  std::uint64_t value() const { return is_known_ ? digest_.value() : 0; }

 private:
  Mark() : is_known_(false) {}

  Digest digest_;
  bool is_known_ = true;
};

/// As many states as `start` has numbers.
template <class Output, class Update = NoUpdate>
Handle block_of(const Mark& mark, Block::Shape shape, std::vector<double> start, Output output,
                Update update = {}) {
  shape.states = static_cast<int>(start.size());
  return std::make_shared<BlockOf<Output, Update>>(shape, mark.value(), std::move(start),
                                                   std::move(output), std::move(update));
}

/// y = f(u) of one input.
template <class Function>
Handle function_of_one(const Mark& mark, Function function) {
  return block_of(mark, {}, {},
                  [function](const SampleTime&, std::span<const double> u, std::span<const double>,
                             std::span<double> y) { y[0] = function(u[0]); });
}

/// y = f(t) of no input.
template <class Function>
Handle function_of_time(const Mark& mark, Function function) {
  return block_of(
      mark, {.inputs = 0, .feeds_through = false}, {},
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
