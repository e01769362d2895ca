#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

namespace portwave {

/// An external input u(t): a pure function of time. Copies share what describes it.
/// Evaluation does not allocate. A callback may be called from the stepping thread only.
class Signal {
 public:
  struct Sine {
    double frequency_Hz = 1.0;
    double phase_rad = 0.0;
  };
  struct Knot {
    double time_s = 0.0;
    double value = 0.0;
  };

  /// u(t) = 0
  Signal() = default;
  /// u(t) = value. Errors: ConfigError when it is not finite.
  static Signal constant(double value);
  /// u(t) = offset + amplitude · Π_k sin(2π frequency_k t + phase_k)
  /// Errors: ConfigError when `sines` is empty or a number is not finite.
  static Signal sine_product(double amplitude, std::vector<Sine> sines, double offset = 0.0);
  /// Linear between the knots, constant before the first and after the last.
  /// Errors: ConfigError unless there is a knot, times increase strictly and all is finite.
  static Signal piecewise_linear(std::vector<Knot> knots);
  /// u(t) = function(t). Errors: ConfigError when `function` is empty.
  static Signal callback(std::function<double(double)> function);

  double operator()(double time_s) const;
  /// The first time after `after_s` at which it is known to have a kink or to jump: the knots of a
  /// table. Infinite where there is none, and for callbacks, of which nothing is known.
  double next_kink(double after_s) const;
  /// The highest frequency in it [Hz], where it is a product of sines: the sum of theirs. 0 for all
  /// others.
  double highest_frequency_Hz() const;

 private:
  struct Constant {
    double value = 0.0;
  };
  struct SineProduct {
    double amplitude;
    double offset;
    std::vector<Sine> sines;
  };
  struct Table {
    std::vector<Knot> knots;
  };
  using Callback = std::function<double(double)>;
  using Kind = std::variant<Constant, SineProduct, Table, Callback>;

  explicit Signal(Kind kind) : kind_(std::make_shared<const Kind>(std::move(kind))) {}
  std::shared_ptr<const Kind> kind_;  ///< null: u(t) = 0
};

}  // namespace portwave
