#include <cmath>
#include <utility>

#include <Eigen/Core>
#include <fmt/format.h>

#include "signals/block_of.hpp"

namespace portwave::block {
namespace {

/// The state of a PID controller, and what one sample of it comes to.
struct PidSample {
  enum State { kIntegral, kSlope, kLastArgument, kStates };

  double argument;   ///< what the derivative is taken of
  double slope;      ///< its filtered derivative
  double unbounded;  ///< the output before it is kept within the bounds

  PidSample(const Pid& p, const SampleTime& when, std::span<const double> u,
            std::span<const double> x)
      : argument(p.derivative_setpoint_weight * u[0] - u[1]), slope(0.0) {
    if (when.index > 0) {
      slope = (p.derivative_filter_s * x[kSlope] + argument - x[kLastArgument]) /
              (p.derivative_filter_s + when.period_s);
    }
    unbounded =
        p.proportional * (p.setpoint_weight * u[0] - u[1]) + x[kIntegral] + p.derivative * slope;
  }
};

}  // namespace

Handle pid(const Pid& p) {
  OptionCheck()
      .finite("/proportional", p.proportional)
      .finite("/integral", p.integral)
      .finite("/derivative", p.derivative)
      .not_negative("/derivative_filter_s", p.derivative_filter_s)
      .within("/setpoint_weight", p.setpoint_weight, 0.0, 1.0)
      .within("/derivative_setpoint_weight", p.derivative_setpoint_weight, 0.0, 1.0)
      .bounds(p.minimum, p.maximum)
      .not_negative("/tracking_s", p.tracking_s)
      .finite("/initial_integral", p.initial_integral)
      .done();
  const Mark mark(
      "pid", {p.proportional, p.integral, p.derivative, p.derivative_filter_s, p.setpoint_weight,
              p.derivative_setpoint_weight, p.minimum, p.maximum, p.tracking_s});
  return block_of(
      mark, {.inputs = 2}, {p.initial_integral, 0.0, 0.0},
      [p](const SampleTime& when, std::span<const double> u, std::span<const double> x,
          std::span<double> y) {
        const PidSample now(p, when, u, x);
        y[0] = std::min(std::max(now.unbounded, p.minimum), p.maximum);
      },
      [p](const SampleTime& when, std::span<const double> u, std::span<const double> y,
          std::span<double> x) {
        const PidSample now(p, when, u, x);
        const double tracking_s = p.tracking_s > 0.0 ? p.tracking_s : when.period_s;
        // Beyond one sample it would overshoot what it makes good.
        const double share = std::min(1.0, when.period_s / tracking_s);
        x[PidSample::kIntegral] += p.integral * when.period_s * (u[0] - u[1]) +
                                   (p.integral == 0.0 ? 0.0 : share * (y[0] - now.unbounded));
        x[PidSample::kSlope] = now.slope;
        x[PidSample::kLastArgument] = now.argument;
      });
}

Handle state_space(StateSpace s) {
  const Eigen::Index n = s.A.rows(), m = s.B.cols(), p = s.C.rows();
  if (s.D.size() == 0) s.D.setZero(p, m);
  if (s.initial_state.size() == 0) s.initial_state.setZero(n);
  OptionCheck check;
  const auto shape = [&](const char* where, const Eigen::MatrixXd& matrix, Eigen::Index rows,
                         Eigen::Index columns, const char* what) {
    check.expect(matrix.rows() == rows && matrix.cols() == columns, where,
                 fmt::format("must be {}x{} ({}), got {}x{}", rows, columns, what, matrix.rows(),
                             matrix.cols()));
    check.expect(matrix.allFinite(), where, "must be finite");
  };
  shape("/A", s.A, n, n, "states by states");
  shape("/B", s.B, n, m, "states by inputs");
  shape("/C", s.C, p, n, "outputs by states");
  shape("/D", s.D, p, m, "outputs by inputs");
  shape("/initial_state", s.initial_state, n, 1, "one number per state");
  check.expect(p >= 1, "/C", "needs at least one output");
  check.expect(m >= 1, "/B", "needs at least one input");
  check.done();

  using Map = Eigen::Map<const Eigen::VectorXd>;
  const auto vector = [](std::span<const double> v) { return Map(v.data(), std::ssize(v)); };
  const bool feeds_through = (s.D.array() != 0.0).any();
  std::vector<double> start(s.initial_state.begin(), s.initial_state.end());
  start.resize(2 * static_cast<std::size_t>(n), 0.0);  // and as much scratch: the state before
  const Block::Shape outer{.inputs = static_cast<int>(m),
                           .outputs = static_cast<int>(p),
                           .feeds_through = feeds_through};
  Mark mark("state_space", {static_cast<double>(n)});
  for (const Eigen::MatrixXd* matrix : {&s.A, &s.B, &s.C, &s.D}) mark.add_all(matrix->reshaped());
  return block_of(
      mark, outer, std::move(start),
      [s, n, vector, feeds_through](const SampleTime&, std::span<const double> u,
                                    std::span<const double> x, std::span<double> y) {
        Eigen::Map<Eigen::VectorXd> out(y.data(), std::ssize(y));
        out.noalias() = s.C * Map(x.data(), n);
        if (feeds_through) out.noalias() += s.D * vector(u);
      },
      [s, n, vector](const SampleTime&, std::span<const double> u, std::span<const double>,
                     std::span<double> x) {
        Eigen::Map<Eigen::VectorXd> next(x.data(), n), before(x.data() + n, n);
        before = next;
        next.noalias() = s.A * before;
        next.noalias() += s.B * vector(u);
      });
}

namespace {

OptionCheck check_callback(int inputs, int outputs, bool has_function) {
  OptionCheck check;
  check.expect(inputs >= 0, "/inputs", fmt::format("must be >= 0, got {}", inputs))
      .expect(outputs >= 1, "/outputs", fmt::format("must be >= 1, got {}", outputs))
      .expect(has_function, "/callback", "must hold a function");
  return check;
}

/// One function that gives outputs and the next state.
class StatefulCallback final : public Block {
 public:
  using Function = std::function<void(const SampleTime&, std::span<const double>, std::span<double>,
                                      std::span<double>)>;

  StatefulCallback(Shape shape, std::vector<double> start, Function function)
      : Block(shape), start_(std::move(start)), function_(std::move(function)) {}

  void start(std::span<double> x) const override { std::ranges::copy(start_, x.begin()); }
  void sample(const SampleTime& when, std::span<const double> u, std::span<double> y,
              std::span<double> x) const override {
    function_(when, u, y, x);
  }
  // For those who want one of the two; a signal graph samples.
  void output(const SampleTime& when, std::span<const double> u, std::span<const double> x,
              std::span<double> y) const override {
    std::vector<double> next(x.begin(), x.end());
    function_(when, u, y, next);
  }
  void update(const SampleTime& when, std::span<const double> u, std::span<const double> y,
              std::span<double> x) const override {
    std::vector<double> again(y.begin(), y.end());
    function_(when, u, again, x);
  }

 private:
  std::vector<double> start_;
  Function function_;
};

}  // namespace

Handle callback(
    int inputs, int outputs,
    std::function<void(const SampleTime&, std::span<const double>, std::span<double>)> function) {
  check_callback(inputs, outputs, static_cast<bool>(function)).done();
  return block_of(Mark::nobody_knows(),
                  {.inputs = inputs, .outputs = outputs, .feeds_through = inputs > 0}, {},
                  [function = std::move(function)](
                      const SampleTime& when, std::span<const double> u, std::span<const double>,
                      std::span<double> y) { function(when, u, y); });
}

Handle callback(int inputs, int outputs, std::vector<double> initial_state,
                StatefulCallback::Function function) {
  check_callback(inputs, outputs, static_cast<bool>(function))
      .expect(std::ranges::all_of(initial_state, [](double x) { return std::isfinite(x); }),
              "/initial_state", "must be finite")
      .done();
  const Block::Shape shape{
      .inputs = inputs, .outputs = outputs, .states = static_cast<int>(initial_state.size())};
  return std::make_shared<StatefulCallback>(shape, std::move(initial_state), std::move(function));
}

}  // namespace portwave::block
