#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "portwave/runtime/signals/block.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/core/signal.hpp"
#include "signals/block_of.hpp"
#include "signals/table_span.hpp"

namespace portwave::block {

/// A function of time as a block.
class SourceBlock final : public Block {
 public:
  /// `ahead`: of the period, from the sample to the time of its value.
  SourceBlock(const char* kind, Signal signal, double ahead)
      : Block({.inputs = 0, .outputs = 1, .feeds_through = false},
              Mark(kind, {}).add(signal.digest()).value()),
        signal_(std::move(signal)),
        ahead_(ahead) {}

  const Signal& signal() const { return signal_; }
  bool is_held() const { return ahead_ == 0.5; }
  void start(std::span<double> /*x*/) const override {}
  void output(const SampleTime& when, std::span<const double> /*u*/, std::span<const double> /*x*/,
              std::span<double> y) const override {
    y[0] = signal_.at_sample(when.time_s + ahead_ * when.period_s, when.period_s);
  }

 private:
  Signal signal_;
  double ahead_;
};

OptionCheck& OptionCheck::expect(bool good, std::string where, std::string what) {
  if (!good) issues_.push_back({std::move(where), std::move(what)});
  return *this;
}
OptionCheck& OptionCheck::finite(std::string where, double value) {
  return expect(std::isfinite(value), std::move(where),
                fmt::format("must be finite, got {}", shown_number(value)));
}
OptionCheck& OptionCheck::positive(std::string where, double value) {
  return expect(value > 0.0 && std::isfinite(value), std::move(where),
                fmt::format("must be finite and > 0, got {}", shown_number(value)));
}
OptionCheck& OptionCheck::not_negative(std::string where, double value) {
  return expect(value >= 0.0 && std::isfinite(value), std::move(where),
                fmt::format("must be finite and >= 0, got {}", shown_number(value)));
}
OptionCheck& OptionCheck::within(std::string where, double value, double least, double most) {
  return expect(value >= least && value <= most, std::move(where),
                fmt::format("must be in [{}, {}], got {}", least, most, shown_number(value)));
}
OptionCheck& OptionCheck::bounds(double minimum, double maximum) {
  expect(!std::isnan(minimum), "/minimum", "must be a number");
  expect(!std::isnan(maximum), "/maximum", "must be a number");
  return expect(!(minimum > maximum), "/minimum",
                fmt::format("must not exceed the maximum {}, got {}", maximum, minimum));
}

namespace {

/// An edge that a sample would see only because its time was rounded up, or miss because it was
/// rounded down, belongs to it: multiples of a step, of a period and decimal numbers differ in their
/// last digits where they mean the same instant. `of`: the largest number in the time of the edge.
/// Beyond rounding, an edge within a billionth of the time to the next sample is that sample's too.
double edge_tolerance(const SampleTime& when, double of) {
  constexpr double kRoundOff = 4.0 * std::numeric_limits<double>::epsilon();
  return std::max(1e-9 * when.period_s, kRoundOff * (std::abs(when.time_s) + std::abs(of)));
}

/// y = f(sample) of no input.
template <class Function>
Handle function_of_sample(const Mark& mark, Function function) {
  return block_of(
      mark, {.inputs = 0, .feeds_through = false}, {},
      [function](const SampleTime& when, std::span<const double>, std::span<const double>,
                 std::span<double> y) { y[0] = function(when); });
}

/// Whether a pulse is on. Both edges of one that is no wider than the tolerance belong to the same
/// sample, which sees it.
bool is_on(const Pulse& pulse, const SampleTime& when) {
  const double tolerance = edge_tolerance(when, pulse.delay_s);
  const double since = when.time_s - pulse.delay_s;
  if (since < -tolerance) return false;
  if (pulse.width_s >= pulse.period_s) return true;
  const double phase = since - pulse.period_s * std::floor((since + tolerance) / pulse.period_s);
  return phase <= tolerance ? pulse.width_s > 0.0 : phase < pulse.width_s - tolerance;
}

}  // namespace

Handle source(Signal signal) {
  return std::make_shared<SourceBlock>("source", std::move(signal), 0.0);
}

Handle settable(double initial) {
  OptionCheck().finite("/initial", initial).done();
  class Settable final : public Block {
   public:
    explicit Settable(double start)
        : Block({.inputs = 0, .outputs = 1, .states = 1, .feeds_through = false},
                Mark("settable", {}).value()),
          start_(start) {}
    bool is_settable() const override { return true; }
    void start(std::span<double> x) const override { x[0] = start_; }
    void output(const SampleTime& /*when*/, std::span<const double> /*u*/,
                std::span<const double> x, std::span<double> y) const override {
      y[0] = x[0];
    }

   private:
    double start_;
  };
  return std::make_shared<Settable>(initial);
}

Handle held_source(Signal signal) {
  return std::make_shared<SourceBlock>("held source", std::move(signal), 0.5);
}

Handle step(const Step& options) {
  OptionCheck()
      .finite("/time_s", options.time_s)
      .finite("/before", options.before)
      .finite("/after", options.after)
      .done();
  return function_of_sample(
      {"step", {options.time_s, options.before, options.after}}, [options](const SampleTime& when) {
        const double until_s = options.time_s - edge_tolerance(when, options.time_s);
        return when.time_s < until_s ? options.before : options.after;
      });
}

Handle ramp(const Ramp& options) {
  OptionCheck check;
  check.finite("/start_s", options.start_s)
      .finite("/slope_per_s", options.slope_per_s)
      .finite("/end_s", options.end_s)
      .finite("/offset", options.offset)
      .expect(
          options.end_s == 0.0 || options.end_s >= options.start_s, "/end_s",
          fmt::format("must not be before start_s = {}, got {}", options.start_s, options.end_s))
      .done();
  const Mark mark("ramp", {options.start_s, options.slope_per_s, options.end_s, options.offset});
  return function_of_time(mark, [options](double t) {
    const double until = options.end_s == 0.0 ? t : std::min(t, options.end_s);
    return options.offset + options.slope_per_s * std::max(0.0, until - options.start_s);
  });
}

Handle pulse(const Pulse& options) {
  OptionCheck check;
  check.finite("/amplitude", options.amplitude)
      .positive("/period_s", options.period_s)
      .finite("/delay_s", options.delay_s)
      .finite("/offset", options.offset);
  if (options.period_s > 0.0) check.within("/width_s", options.width_s, 0.0, options.period_s);
  check.done();
  const Mark mark("pulse", {options.amplitude, options.period_s, options.width_s, options.delay_s,
                            options.offset});
  return function_of_sample(mark, [options](const SampleTime& when) {
    return options.offset + (is_on(options, when) ? options.amplitude : 0.0);
  });
}

namespace {

/// Value and rate between two waypoints, s from 0 to 1.
struct ShapePoint {
  double value;
  double rate;  // by s
};

ShapePoint shape_at(TrajectoryShape shape, double s) {
  switch (shape) {
    case TrajectoryShape::linear:
      return {s, 1.0};
    case TrajectoryShape::cubic:
      return {s * s * (3.0 - 2.0 * s), 6.0 * s * (1.0 - s)};
    case TrajectoryShape::quintic:
      break;
  }
  const double r = s * (1.0 - s);
  return {s * s * s * (10.0 + s * (6.0 * s - 15.0)), 30.0 * r * r};
}

}  // namespace

Handle trajectory(std::vector<Waypoint> waypoints, TrajectoryShape shape) {
  OptionCheck check;
  check.expect(!waypoints.empty(), "/waypoints", "needs at least one waypoint");
  check.expect(shape >= TrajectoryShape::linear && shape <= TrajectoryShape::quintic, "/shape",
               "is not one of the enumerators");
  for (std::size_t i = 0; i < waypoints.size(); ++i) {
    check.finite(fmt::format("/waypoints/{}/0", i), waypoints[i].time_s)
        .finite(fmt::format("/waypoints/{}/1", i), waypoints[i].value);
    if (i == 0) continue;
    check.expect(waypoints[i].time_s > waypoints[i - 1].time_s, fmt::format("/waypoints/{}/0", i),
                 fmt::format("times must increase: {} follows {}", waypoints[i].time_s,
                             waypoints[i - 1].time_s));
  }
  check.done();
  Mark mark("trajectory", {static_cast<double>(shape)});
  for (const Waypoint& own : waypoints) mark.add_all(std::initializer_list{own.time_s, own.value});
  const auto output = [points = std::move(waypoints), shape](
                          const SampleTime& when, std::span<const double>, std::span<const double>,
                          std::span<double> y) {
    // The rate jumps at waypoints.
    const double reached_s = when.time_s + edge_tolerance(when, when.time_s);
    const auto after = std::ranges::upper_bound(points, reached_s, {}, &Waypoint::time_s);
    y[1] = 0.0;
    if (after == points.begin()) {
      y[0] = points.front().value;
    } else if (after == points.end()) {
      y[0] = points.back().value;
    } else {
      const Waypoint& from = *(after - 1);
      const double length_s = after->time_s - from.time_s;
      const double rise = after->value - from.value;
      const ShapePoint at = shape_at(shape, std::max(0.0, when.time_s - from.time_s) / length_s);
      y[0] = from.value + rise * at.value;
      y[1] = rise / length_s * at.rate;
    }
  };
  return block_of(mark, {.inputs = 0, .outputs = 2, .feeds_through = false}, {}, output);
}

}  // namespace portwave::block

namespace portwave {

const Signal* held_function(const SignalGraph& graph,
                            const SignalGraph::ParameterActuator& driven) {
  for (const SignalGraph::Node& node : graph.nodes()) {
    if (node.first_output != driven.signal || node.every != 1) continue;
    const auto* const source = dynamic_cast<const block::SourceBlock*>(node.block.get());
    return source != nullptr && source->is_held() ? &source->signal() : nullptr;
  }
  return nullptr;
}

std::vector<std::string> tables_out_of_reach(const System& system, const SignalGraph* graph,
                                             double start_s, double end_s) {
  std::vector<std::string> notes;
  const auto look_at = [&](const Signal& signal, auto&& name) {
    const std::optional<Signal::Span> span = signal.table_span();
    const bool is_before = span && end_s <= span->begin_s;
    const bool is_after = span && start_s >= span->end_s;
    if (!is_before && !is_after) return;
    notes.push_back(
        fmt::format("the table of {} goes from {:g} s to {:g} s, and the run from {:g} s to {:g} s "
                    "lies wholly {} "
                    "it: there it is {:g} throughout",
                    name(), span->begin_s, span->end_s, start_s, end_s,
                    is_before ? "before" : "after", signal(is_before ? start_s : end_s)));
  };
  for (const Part& part : system.parts()) {
    for (std::size_t i = 0; i < part.inputs.size(); ++i) {
      if (!part.input_is_driven[i]) continue;
      look_at(part.inputs[i], [&] {
        return fmt::format("{} ({})", in_quotes(part.name),
                           printable(part.component->signature().inputs[i].name));
      });
    }
  }
  if (graph == nullptr) return notes;
  for (const SignalGraph::Node& node : graph->nodes()) {
    const auto* const source = dynamic_cast<const block::SourceBlock*>(node.block.get());
    if (source != nullptr) look_at(source->signal(), [&] { return in_quotes(node.name); });
  }
  return notes;
}

}  // namespace portwave
