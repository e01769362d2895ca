#pragma once

#include <span>
#include <utility>

#include "portwave/runtime/signals/block.hpp"
#include "portwave/subsystems/core/signal.hpp"
#include "signals/block_of.hpp"

namespace portwave::block {

/// A function of time as a block.
class SourceBlock final : public Block {
 public:
  explicit SourceBlock(Signal signal)
      : Block({.inputs = 0, .outputs = 1, .feeds_through = false},
              Mark("source", {}).add(signal.digest()).value()),
        signal_(std::move(signal)) {}

  const Signal& signal() const { return signal_; }
  void start(std::span<double> /*x*/) const override {}
  void output(const SampleTime& when, std::span<const double> /*u*/, std::span<const double> /*x*/,
              std::span<double> y) const override {
    y[0] = signal_.at_sample(when.time_s, when.period_s);
  }

 private:
  Signal signal_;
};

}  // namespace portwave::block
