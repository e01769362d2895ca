#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <Eigen/Core>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/signal.hpp"

namespace PORTWAVE_EXPORT portwave {

/// When a block is sampled.
struct SampleTime {
  double time_s = 0.0;
  double period_s = 0.0;   ///< from one sample of the block to the next
  std::int64_t index = 0;  ///< samples of the block before this one
};

/// A discrete-time block of a signal graph: an element of a controller, a reference, a filter.
///
/// At each of its samples, y = output(t, u, x) and then x⁺ = update(t, u, y, x), with inputs u,
/// outputs y and state x. Between samples its outputs are held. Immutable, so that one block may serve
/// several graphs; the stepper of the graph keeps the state. Neither function allocates. An exception of
/// theirs ends the step before it has begun.
class Block {
 public:
  struct Shape {
    int inputs = 1;
    int outputs = 1;
    int states = 0;
    /// Outputs depend on the inputs of the same sample. Loops of such blocks are algebraic.
    bool feeds_through = true;
  };

  /// `digest`: a number that stands for its kind and options; 0: its contents are unknown.
  explicit Block(Shape shape, std::uint64_t digest = 0) : shape_(shape), digest_(digest) {}
  virtual ~Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  const Shape& shape() const { return shape_; }
  /// Equal for blocks that behave the same, whatever their initial state.
  std::uint64_t digest() const { return digest_; }
  /// The state before the first sample; zero unless overridden.
  virtual void start(std::span<double> /*x*/) const {}
  /// Its one state is its output, and whoever runs the graph may set it (Stepper::set_input).
  virtual bool is_settable() const { return false; }
  /// A block without feedthrough must not read `u`.
  virtual void output(const SampleTime& when, std::span<const double> u, std::span<const double> x,
                      std::span<double> y) const = 0;
  virtual void update(const SampleTime& /*when*/, std::span<const double> /*u*/,
                      std::span<const double> /*y*/, std::span<double> /*x*/) const {}
  /// Both at once, y and x⁺ from x, for blocks that compute them together. Replaces the two calls where the
  /// block feeds through.
  virtual void sample(const SampleTime& when, std::span<const double> u, std::span<double> y,
                      std::span<double> x) const {
    output(when, u, x, y);
    update(when, u, y, x);
  }

 private:
  Shape shape_;
  std::uint64_t digest_;
};

/// The blocks of portwave, made from options. Errors: ConfigError with every defect, `where` being
/// the name of the option, such as "/minimum".
namespace block {

using Handle = std::shared_ptr<const Block>;

// Sources: no input. The reference of a loop, or a drive. An edge that falls on a sample up to
// rounding, or within 1e-9 of the time to the next one, belongs to it: pulses of 50 ms every 100 ms
// have five samples each at 10 ms, however late they come.

/// y = signal(t): constants, sines, tables, chirps, noise (see Signal), sampled.
Handle source(Signal signal);
/// Its value halfway to the next sample: what is held from sample to sample is then exact to second order.
Handle held_source(Signal signal);

/// y is what Stepper::set_input has set it to; `initial` before that. It acts where blocks that take it are sampled.
Handle settable(double initial = 0.0);

struct Step {
  double time_s = 0.0;
  double before = 0.0;
  double after = 1.0;
};
/// `before` until `time_s`, then `after`.
Handle step(const Step& options);

struct Ramp {
  double start_s = 0.0;
  double slope_per_s = 1.0;
  double end_s = 0.0;  ///< ≥ start_s; 0: it does not end
  double offset = 0.0;
};
/// `offset` until `start_s`, then rising by `slope_per_s` until `end_s`.
Handle ramp(const Ramp& options);

struct Pulse {
  double amplitude = 1.0;
  double period_s = 1.0;  ///< > 0
  double width_s = 0.5;   ///< 0 to period_s
  double delay_s = 0.0;   ///< delay of the first pulse
  double offset = 0.0;
};
/// `offset`, and `offset + amplitude` for `width_s` in every period from `delay_s` on.
Handle pulse(const Pulse& options);

struct Waypoint {
  double time_s = 0.0;
  double value = 0.0;
};
enum class TrajectoryShape {
  linear,   ///< constant rate between waypoints
  cubic,    ///< from rest to rest, continuous rate
  quintic,  ///< from rest to rest, continuous rate and second derivative (least jerk)
};
/// A reference trajectory through waypoints with increasing times, at rest before the first and
/// after the last. Outputs: its value and its rate.
Handle trajectory(std::vector<Waypoint> waypoints, TrajectoryShape shape);

// Operations.

/// y = factor u + offset
Handle gain(double factor, double offset = 0.0);
/// y = Σ weightᵢ uᵢ
Handle sum(std::vector<double> weights);
/// y = Π uᵢ
Handle product(int inputs);
/// u within [minimum, maximum].
Handle saturation(double minimum, double maximum);

struct RateLimit {
  double rising_per_s = 1.0;   ///< > 0
  double falling_per_s = 1.0;  ///< > 0, the largest fall
};
/// u, as fast as the limits let y follow it; y = u at the first sample.
Handle rate_limit(const RateLimit& options);

/// u delayed by this many samples, `initial` before that. Breaks algebraic loops.
Handle delay(int samples, double initial = 0.0);

struct Integrator {
  double initial = 0.0;
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
};
/// y⁺ = y + T u, kept within the bounds (forward Euler; breaks algebraic loops).
Handle integrator(const Integrator& options);

/// u′ by backward differences, smoothed with the time constant `filter_s` ≥ 0; 0 at the first
/// sample.
Handle derivative(double filter_s);

/// Linear between the knots, constant beyond them; knots in increasing order of their arguments.
Handle lookup(std::vector<Signal::Knot> knots);

struct Switch {
  double on_above = 0.0;
  double off_below = 0.0;  ///< ≤ on_above: between them the output keeps its value (hysteresis)
  double on = 1.0;
  double off = 0.0;
  bool initially_on = false;
};
/// `on` once u > on_above, `off` once u < off_below.
Handle hysteresis(const Switch& options);

/// Inputs c, u₁, u₂: u₁ where c > threshold, else u₂.
Handle selector(double threshold);

/// y = expression(t, u₁, u₂, …), in t [s] and the names of the inputs, such as
/// "target - 0.5*sin(2*pi*t)*angle" (see Expression). Errors: ConfigError; names must be those of
/// variables, each once, and neither "t" nor that of a function.
Handle expression(std::string_view text, const std::vector<std::string>& names);

// Controllers.

struct Pid {
  double proportional = 0.0;
  double integral = 0.0;    ///< [1/s]
  double derivative = 0.0;  ///< [s]
  /// Time constant of the filter of the derivative, ≥ 0.
  double derivative_filter_s = 0.0;
  /// Share of the setpoint in the proportional part, 0 to 1.
  double setpoint_weight = 1.0;
  /// Share of the setpoint in the derivative part: 0 differentiates the measurement alone.
  double derivative_setpoint_weight = 0.0;
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  /// Anti-windup by back-calculation: how fast the integral gives way while the output is at a
  /// bound, > 0; 0: one sample.
  double tracking_s = 0.0;
  double initial_integral = 0.0;  ///< the output that the integral part starts with
};
/// Inputs: setpoint r, measurement m. With e = r − m,
///   v = P(βr − m) + I + D,  y = v within its bounds,
///   I⁺ = I + K_i T e + (T/T_t)(y − v),  D by backward differences with a filter.
/// Source   Åström & Hägglund, Advanced PID Control (2006), 3 and 13.
Handle pid(const Pid& options);

struct StateSpace {
  Eigen::MatrixXd A, B, C, D;          ///< n×n, n×m, p×n, p×m; D empty: zero
  Eigen::VectorXd initial_state = {};  ///< empty: zero
};
/// x⁺ = Ax + Bu, y = Cx + Du from one sample to the next. Breaks algebraic loops where D = 0.
Handle state_space(StateSpace options);

// A block of your own.

/// y = function(t, u, y): any code; `function` writes the outputs. It is called once per sample, by
/// the stepping thread, and may keep a state of its own, which then is that of one run.
Handle callback(
    int inputs, int outputs,
    std::function<void(const SampleTime&, std::span<const double> u, std::span<double> y)>
        function);
/// (y, x⁺) = function(t, u, x): `function` writes the outputs, and the next state over `x`, which
/// starts as `initial_state`. The stepper holds the state: snapshots contain it, clones have their own. A
/// failed sample is repeated from the same x. Errors: ConfigError, also where the initial state is not
/// finite.
Handle callback(int inputs, int outputs, std::vector<double> initial_state,
                std::function<void(const SampleTime&, std::span<const double> u,
                                   std::span<double> y, std::span<double> x)>
                    function);

}  // namespace block
}  // namespace portwave
