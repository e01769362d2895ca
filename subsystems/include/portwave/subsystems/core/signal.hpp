#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/base/expression.hpp"

namespace PORTWAVE_EXPORT portwave {

/// An external input u(t): a pure function of time, or a value that is set between steps. Copies share their
/// description. Evaluation does not allocate. A callback may be called from the stepping thread only.
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
  /// Linear between the knots, constant before the first and after the last. Two knots of equal time are
  /// a jump: at that instant u has the value after it.
  /// Errors: ConfigError unless there is a knot, times do not decrease, no more than two are equal and all
  /// is finite.
  static Signal piecewise_linear(std::vector<Knot> knots);
  /// u(t) = function(t). Errors: ConfigError when `function` is empty.
  static Signal callback(std::function<double(double)> function);
  /// u(t) of an expression in t [s], such as "5*sin(2*pi*t) + (t > 1)". Errors: ConfigError.
  static Signal expression(std::string_view text);
  /// A sine whose frequency goes linearly from `from_Hz` to `to_Hz` within `duration_s` and then
  /// stays: u(t) = offset + amplitude sin(φ(t)), φ(0) = phase_rad, φ′ = 2π times the frequency.
  /// Errors: ConfigError unless all is finite and the duration > 0.
  struct Chirp {
    double amplitude = 1.0;
    double from_Hz = 0.0;
    double to_Hz = 1.0;
    double duration_s = 1.0;
    double phase_rad = 0.0;
    double offset = 0.0;
  };
  static Signal chirp(const Chirp& chirp);
  /// Gaussian noise that is linear between independent values every `interval_s`: band-limited, a
  /// pure function of time and seed, equal on every machine.
  /// Errors: ConfigError unless all is finite, interval_s > 0 and standard_deviation ≥ 0.
  struct Noise {
    double standard_deviation = 1.0;
    double interval_s = 0.01;
    std::uint64_t seed = 1;
    double mean = 0.0;
  };
  static Signal noise(const Noise& noise);
  /// u(t) = ds/dt, the rate of a displacement s: a position, an angle, a charge, a volume. At a point it is the
  /// slope of s, at a kink that after it. A step sees the polynomial whose integral over the step is what s
  /// changes by (see in_step), so that a flow source leads its port exactly to s at the end of every step;
  /// a jump of s within a step is made up for in that step.
  /// Errors: ConfigError when s is settable, which has no rate, or the rate of something itself.
  static Signal rate_of(const Signal& displacement);
  /// A value set between steps (Stepper::set_input), held over each step; `initial` until then. Errors:
  /// ConfigError when that is not finite.
  static Signal settable(double initial = 0.0);

  double operator()(double time_s) const;
  /// The same, a settable input being taken from `set_values`: those of all settable inputs of a
  /// system, by their slots. Without it: its initial value.
  double at(double time_s, std::span<const double> set_values) const {
    const bool is_set = slot_ >= 0 && !set_values.empty();
    return is_set ? set_values[static_cast<std::size_t>(slot_)] : (*this)(time_s);
  }
  /// A point in a step, or in one of its substeps.
  struct StepPlace {
    double time_s = 0.0;    ///< the place: begin_s + tau·length_s
    double begin_s = 0.0;   ///< of the step
    double length_s = 0.0;  ///< of the step
    double tau = 0.5;       ///< the place, as a share of the step
    int stages = 1;         ///< of the step, at most kMostStages
  };
  /// What is added to an input within a step, so that a jump at `time_s` comes at one of its ends instead:
  /// `before` at times before that, `after` from then on.
  struct MovedJump {
    double time_s = 0.0;
    double before = 0.0;
    double after = 0.0;

    double at(double time) const { return time < time_s ? before : after; }
  };
  /// The input as a step sees it at one of its stages: u there. For a table with knots within the step, or an
  /// expression that changes over there, it is p(tau), p being the polynomial through as many stages that is
  /// nearest to u in the mean, so that the mean over the step is right wherever these lie. With more than 4096
  /// of them within a step it is u after all. With `moved`, u is the sum of both.
  ///
  /// An end of a step is the time just before what jumps there: that belongs to the step which begins there.
  ///
  /// A rate u = ds/dt is p(tau) always, its moments being ∫lᵢu = [lᵢs] − ∫lᵢ′s: its mean is exactly what s
  /// changes by over the step, divided by the length of the step, however many knots s has.
  double in_step(const StepPlace& place, std::span<const double> set_values = {},
                 const MovedJump* moved = nullptr) const;
  /// A jump of what `rate_of` is the rate of.
  struct Jump {
    double time_s = 0.0;
    double before = 0.0;
    double after = 0.0;
  };
  /// The first jump of s of a rate ds/dt in (after_s, until_s], as far as it is known: in tables and
  /// expressions.
  std::optional<Jump> displacement_jump(double after_s, double until_s) const;
  /// Whether it is the rate of something.
  bool is_rate() const;
  /// u at a sample instant: an instant that rounding puts just before a jump counts as after it.
  double at_sample(double time_s, double period_s) const;
  /// The times of the first and last knot of a table of several; empty for other signals.
  struct Span {
    double begin_s = 0.0;
    double end_s = 0.0;
  };
  std::optional<Span> table_span() const;
  bool is_settable() const;
  /// Made of a function: see above for who may call it, and when.
  bool is_callback() const;
  /// A number that stands for its kind and description. All callbacks have the same one, since their contents
  /// are unknown, and so have all settable inputs, whatever their initial values.
  std::uint64_t digest() const;
  /// Its slot among the settable inputs of a built system; −1 otherwise.
  int slot() const { return slot_; }
  void set_slot(int slot) { slot_ = slot; }
  /// The first time after `after_s` at which it is known to have a kink or to jump: the knots of a table.
  /// Infinite if there is none, and for callbacks, which are unknown. `next_change` finds those of
  /// expressions.
  double next_kink(double after_s) const;
  /// For an expression: the first time in (after_s, until_s] at which it changes over, as
  /// Expression::first_change. Infinite for all others.
  double next_change(double after_s, double until_s) const;
  /// The expression that it is, of the time; null for all others.
  const Expression* expression() const;
  /// Whether `next_change` may find anything.
  bool can_change_over() const;
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
  struct Settable {
    double initial = 0.0;
  };
  struct Rate {
    std::shared_ptr<const Signal> of;
  };
  using Kind = std::variant<Constant, SineProduct, Table, Callback, Expression, Chirp, Noise,
                            Settable, Rate>;
  struct Cuts;

  explicit Signal(Kind kind) : kind_(std::make_shared<const Kind>(std::move(kind))) {}
  double slope(double time_s) const;
  double just_before(double time_s, double length_s) const;
  Cuts cuts_within(double begin_s, double length_s) const;
  double rate_in_step(const StepPlace& place) const;

  std::shared_ptr<const Kind> kind_;  ///< null: u(t) = 0
  int slot_ = -1;
};

/// The defect of a knot at `time_s` that follows those before; empty if there is none.
std::string knot_defect(std::span<const Signal::Knot> before, double time_s);

}  // namespace portwave
