#include "portwave/runtime/scenario/block_kinds.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "portwave/runtime/adapters/fmu.hpp"
#include "portwave/subsystems/base/digest.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "scenario/files/foreign_code.hpp"
#include "scenario/parts/sources.hpp"

namespace portwave {
namespace {

using Field = BlockField;
constexpr double kUnbounded = std::numeric_limits<double>::infinity();

Field signal(std::string name, std::string summary) {
  return {.name = std::move(name), .kind = Field::Kind::signal, .summary = std::move(summary)};
}
Field signals(std::string name, std::string summary) {
  return {.name = std::move(name), .kind = Field::Kind::signals, .summary = std::move(summary)};
}
Field required(std::string name, std::string unit, std::string summary) {
  return {.name = std::move(name), .unit = std::move(unit), .summary = std::move(summary)};
}
Field optional(std::string name, std::string unit, double otherwise, std::string summary) {
  return {.name = std::move(name),
          .unit = std::move(unit),
          .summary = std::move(summary),
          .required = false,
          .default_number = otherwise};
}
Field lower_bound(std::string summary) {
  return optional("minimum", "", -kUnbounded, std::move(summary));
}
Field upper_bound(std::string summary) {
  return optional("maximum", "", kUnbounded, std::move(summary));
}
Field in_range(NumberRange range, Field field) {
  field.range = range;
  return field;
}
Field positive(Field field) { return in_range(NumberRange::positive(), std::move(field)); }
Field non_negative(Field field) { return in_range(NumberRange::non_negative(), std::move(field)); }
Field share(Field field) { return in_range({.minimum = 0.0, .maximum = 1.0}, std::move(field)); }
Field of_kind(Field::Kind kind, Field field) {
  field.kind = kind;
  return field;
}
Field matrix(std::string name, bool is_required, std::string summary) {
  return {.name = std::move(name),
          .kind = Field::Kind::matrix,
          .summary = std::move(summary),
          .required = is_required};
}

std::vector<BlockKind> source_kinds() {
  return {
      {"settable",
       "what the program sets, or the importer of an FMU",
       {optional("initial", "", 0.0, "value until it is set")},
       [](const BlockValues& v, int) { return block::settable(v.number("initial")); }},
      {"step",
       "one value until a time, then another",
       {required("time_s", "s", "when it changes"), optional("before", "", 0.0, "value until then"),
        optional("after", "", 1.0, "value from then on")},
       [](const BlockValues& v, int) {
         return block::step({v.number("time_s"), v.number("before"), v.number("after")});
       }},
      {"ramp",
       "rises or falls at a constant rate",
       {required("slope_per_s", "1/s", "the rate"), optional("start_s", "s", 0.0, "when it begins"),
        optional("end_s", "s", 0.0, "when it ends; 0: it does not"),
        optional("offset", "", 0.0, "value before")},
       [](const BlockValues& v, int) {
         return block::ramp(
             {v.number("start_s"), v.number("slope_per_s"), v.number("end_s"), v.number("offset")});
       }},
      {"pulse",
       "a train of rectangular pulses",
       {required("amplitude", "", "height of a pulse"),
        positive(required("period_s", "s", "period of the train")),
        non_negative(required("width_s", "s", "width of a pulse, at most the period")),
        optional("delay_s", "s", 0.0, "delay of the first pulse"),
        optional("offset", "", 0.0, "value between pulses")},
       [](const BlockValues& v, int) {
         return block::pulse({v.number("amplitude"), v.number("period_s"), v.number("width_s"),
                              v.number("delay_s"), v.number("offset")});
       }},
      {"trajectory",
       "a reference through waypoints; [0] is its value, [1] its rate",
       {of_kind(Field::Kind::pairs, required("waypoints", "", "[time_s, value], times increasing")),
        {.name = "shape",
         .kind = Field::Kind::choice,
         .summary =
             "between waypoints: from rest to rest with least jerk, from rest to rest, or at "
             "constant rate",
         .required = false,
         .choices = {"quintic", "cubic", "linear"}}},
       [](const BlockValues& v, int) {
         std::vector<block::Waypoint> points;
         for (const Signal::Knot& knot : v.pairs("waypoints")) {
           points.push_back({knot.time_s, knot.value});
         }
         const std::string& shape = v.text("shape");
         return block::trajectory(std::move(points),
                                  shape == "linear"  ? block::TrajectoryShape::linear
                                  : shape == "cubic" ? block::TrajectoryShape::cubic
                                                     : block::TrajectoryShape::quintic);
       }},
  };
}

std::vector<BlockKind> operation_kinds() {
  return {
      {"gain",
       "factor times the signal plus offset",
       {signal("signal", "input"), required("factor", "", "factor"),
        optional("offset", "", 0.0, "offset")},
       [](const BlockValues& v, int) {
         return block::gain(v.number("factor"), v.number("offset"));
       }},
      {"sum",
       "weighted sum of signals",
       {signals("signals", "inputs"),
        {.name = "weights",
         .kind = Field::Kind::numbers,
         .summary = "one per signal, such as [1, -1]; 1 unless given",
         .required = false}},
       [](const BlockValues& v, int inputs) {
         std::vector<double> weights = v.numbers("weights");
         if (weights.empty()) weights.assign(static_cast<std::size_t>(inputs), 1.0);
         if (std::ssize(weights) != inputs) {
           throw ConfigError("/weights", fmt::format("needs one number per signal: {}, got {}",
                                                     inputs, weights.size()));
         }
         return block::sum(std::move(weights));
       }},
      {"product",
       "product of signals",
       {signals("signals", "factors")},
       [](const BlockValues&, int inputs) { return block::product(inputs); }},
      {"expression",
       "arithmetic of signals and the time t, such as \"2*u1 - sin(t)\"",
       {{.name = "expression",
         .kind = Field::Kind::text,
         .summary = "in t [s] and the names of the signals"},
        {.name = "signals",
         .kind = Field::Kind::named_signals,
         .summary = "inputs by name, such as {\"x\": \"m.q2\"}; in an array they are u1, u2, ...",
         .required = false}},
       [](const BlockValues& v, int) {
         try {
           return block::expression(v.text("expression"), v.names("signals"));
         } catch (const ConfigError& error) {
           Issues issues = error.issues();
           for (Issue& issue : issues) {
             if (issue.where == "/inputs") issue.where = "/signals";
           }
           throw ConfigError(std::move(issues));
         }
       }},
      {"saturation",
       "the signal kept within bounds",
       {signal("signal", "input"), lower_bound("lower bound"), upper_bound("upper bound")},
       [](const BlockValues& v, int) {
         return block::saturation(v.number("minimum"), v.number("maximum"));
       }},
      {"rate_limit",
       "follows the signal no faster than allowed",
       {signal("signal", "input"), positive(required("rising_per_s", "1/s", "fastest rise")),
        positive(required("falling_per_s", "1/s", "fastest fall"))},
       [](const BlockValues& v, int) {
         return block::rate_limit({v.number("rising_per_s"), v.number("falling_per_s")});
       }},
      {"delay",
       "the signal some samples ago; breaks algebraic loops",
       {signal("signal", "input"),
        in_range({.minimum = 1.0},
                 of_kind(Field::Kind::integer, optional("samples", "", 1.0, "number of samples"))),
        optional("initial", "", 0.0, "value until then")},
       [](const BlockValues& v, int) {
         return block::delay(v.integer("samples"), v.number("initial"));
       }},
      {"integrator",
       "integral of the signal over time; breaks algebraic loops",
       {signal("signal", "input"), optional("initial", "", 0.0, "value at the start"),
        lower_bound("lower bound"), upper_bound("upper bound")},
       [](const BlockValues& v, int) {
         return block::integrator({v.number("initial"), v.number("minimum"), v.number("maximum")});
       }},
      {"derivative",
       "rate of change of the signal, smoothed",
       {signal("signal", "input"),
        non_negative(optional("filter_s", "s", 0.0, "time constant of the smoothing"))},
       [](const BlockValues& v, int) { return block::derivative(v.number("filter_s")); }},
      {"lookup",
       "a function of the signal, linear between its points",
       {signal("signal", "input"),
        of_kind(Field::Kind::pairs, required("points", "", "[x, y], x increasing"))},
       [](const BlockValues& v, int) { return block::lookup(v.pairs("points")); }},
      {"switch",
       "on above a threshold, off below another: hysteresis",
       {signal("signal", "input"), required("on_above", "", "threshold"),
        required("off_below", "", "threshold, not above the other"),
        optional("on", "", 1.0, "output when on"), optional("off", "", 0.0, "output when off"),
        of_kind(Field::Kind::boolean, optional("initially_on", "", 0.0, "at the start"))},
       [](const BlockValues& v, int) {
         return block::hysteresis({v.number("on_above"), v.number("off_below"), v.number("on"),
                                   v.number("off"), v.flag("initially_on")});
       }},
      {"selector",
       "one of two signals",
       {signal("condition", "signal that decides"),
        signal("if_above", "output where the condition is above the threshold"),
        signal("otherwise", "output elsewhere"), optional("threshold", "", 0.5, "threshold")},
       [](const BlockValues& v, int) { return block::selector(v.number("threshold")); }},
  };
}

std::vector<BlockKind> controller_kinds() {
  return {
      {"pid",
       "PID controller with anti-windup and a filtered derivative",
       {signal("setpoint", "target of the measurement"),
        signal("measurement", "controlled quantity"), optional("proportional", "", 0.0, "gain P"),
        optional("integral", "1/s", 0.0, "gain of the integral"),
        optional("derivative", "s", 0.0, "gain of the derivative"),
        non_negative(optional("derivative_filter_s", "s", 0.0, "time constant of its filter")),
        share(
            optional("setpoint_weight", "", 1.0, "share of the setpoint in the proportional part")),
        share(optional("derivative_setpoint_weight", "", 0.0, "the same in the derivative part")),
        lower_bound("lower bound of the output"), upper_bound("upper bound of the output"),
        non_negative(optional("tracking_s", "s", 0.0,
                              "how fast the integral gives way at a bound; 0: in one sample")),
        optional("initial_integral", "", 0.0, "output that the integral part starts with")},
       [](const BlockValues& v, int) {
         block::Pid p;
         p.proportional = v.number("proportional");
         p.integral = v.number("integral");
         p.derivative = v.number("derivative");
         p.derivative_filter_s = v.number("derivative_filter_s");
         p.setpoint_weight = v.number("setpoint_weight");
         p.derivative_setpoint_weight = v.number("derivative_setpoint_weight");
         p.minimum = v.number("minimum");
         p.maximum = v.number("maximum");
         p.tracking_s = v.number("tracking_s");
         p.initial_integral = v.number("initial_integral");
         return block::pid(p);
       }},
      {"state_space",
       "x+ = A x + B u, y = C x + D u from sample to sample; one output per row of C",
       {signals("signals", "inputs u"),
        matrix("A", true, "n x n"),
        matrix("B", true, "n x inputs"),
        matrix("C", true, "outputs x n"),
        matrix("D", false, "outputs x inputs; absent: zero"),
        {.name = "initial_state",
         .kind = Field::Kind::numbers,
         .summary = "x at the start; absent: zero",
         .required = false}},
       [](const BlockValues& v, int inputs) {
         const std::vector<double>& start = v.numbers("initial_state");
         block::StateSpace s{v.matrix("A"), v.matrix("B"), v.matrix("C"), v.matrix("D"),
                             Eigen::Map<const Eigen::VectorXd>(start.data(), std::ssize(start))};
         block::Handle made = block::state_space(std::move(s));
         if (made->shape().inputs != inputs) {
           throw ConfigError("/B", fmt::format("has {} columns, but there are {} signals",
                                               made->shape().inputs, inputs));
         }
         return made;
       }},
  };
}

block::Handle make_fmu(const BlockValues& v, int /*inputs*/) {
  std::string refusal;
  const auto file = scenario_file::ForeignCode::allowed_file(v.text("path"), refusal);
  if (!file) throw ConfigError("/path", refusal);
  FmuBlockOptions options;
  options.file = *file;
  options.inputs = v.names("signals");
  options.outputs = v.names("outputs");
  options.start = v.named_values("start");
  options.start_s = scenario_file::ForeignCode::current()->start_s;
  options.process = v.flag("process");
  if (const double limit_s = v.number("time_limit_s"); std::isfinite(limit_s)) {
    if (!options.process) {
      throw ConfigError("/time_limit_s",
                        "needs \"process\": true: calls in this process cannot be ended");
    }
    options.time_limit_s = limit_s;
  }
  return make_fmu_block(options);
}

std::vector<BlockKind> foreign_kinds() {
  return {
      {"fmu",
       "an FMU without power ports, stepped from sample to sample; its inputs act one sample later",
       {{.name = "path",
         .kind = Field::Kind::text,
         .summary = "file of the FMU; loaded only with --allow-plugins"},
        {.name = "signals",
         .kind = Field::Kind::named_signals,
         .summary = "signals by the inputs of the FMU, such as {\"u\": \"m.q2\"}",
         .required = false},
        {.name = "outputs",
         .kind = Field::Kind::texts,
         .summary =
             "variables that the outputs of the block are; absent: all outputs that are numbers",
         .required = false},
        {.name = "start",
         .kind = Field::Kind::named_values,
         .summary = "start values by variable, each in its own unit",
         .required = false},
        {.name = "process",
         .kind = Field::Kind::boolean,
         .summary = "it runs in a process of its own, whose crash or hang ends the run at the last "
                    "committed state",
         .required = false},
        {.name = "time_limit_s",
         .kind = Field::Kind::number,
         .unit = "s",
         .summary = "in a process: how long a call of one of its functions may take; absent: 10",
         .required = false,
         .default_number = std::numeric_limits<double>::infinity(),
         .range = NumberRange::positive()}},
       &make_fmu},
  };
}

}  // namespace

namespace {

struct AddToDigest {
  Digest& digest;

  void operator()(double number) const { digest.add(number); }
  void operator()(const std::string& text) const { digest.add(text); }
  void operator()(const NumberArray& array) const {
    for (const std::size_t own : array.shape) digest.add(static_cast<double>(own));
    (*this)(array.values);
  }
  void operator()(const Signal::Knot& knot) const {
    digest.add(knot.time_s);
    digest.add(knot.value);
  }
  void operator()(const Eigen::MatrixXd& matrix) const {
    digest.add(static_cast<int>(matrix.rows()));
    for (const double entry : matrix.reshaped()) digest.add(entry);
  }
  void operator()(const BlockValues::NamedValues& values) const {
    digest.add(static_cast<double>(values.size()));
    for (const auto& [name, value] : values) {
      digest.add(name);
      std::visit([this](const auto& own) { (*this)(own); }, value);
    }
  }
  template <class T>
  void operator()(const std::vector<T>& list) const {
    digest.add(static_cast<double>(list.size()));
    for (const T& own : list) (*this)(own);
  }
};

}  // namespace

std::uint64_t BlockValues::digest() const {
  Digest digest;
  for (const auto& [name, value] : values_) {
    digest.add(name);
    std::visit(AddToDigest{digest}, value);
  }
  return digest.value();
}

namespace {

struct AllKinds {
  std::vector<BlockKind> kinds;
  std::size_t own = 0;  // the first so many are portwave's
};

AllKinds& all_kinds() {
  static AllKinds all = [] {
    AllKinds out{source_kinds()};
    for (BlockKind& kind : operation_kinds()) out.kinds.push_back(std::move(kind));
    for (BlockKind& kind : controller_kinds()) out.kinds.push_back(std::move(kind));
    for (BlockKind& kind : foreign_kinds()) out.kinds.push_back(std::move(kind));
    out.own = out.kinds.size();
    return out;
  }();
  return all;
}

}  // namespace

const std::vector<BlockKind>& block_kinds() { return all_kinds().kinds; }

void add_block_kind(BlockKind kind) {
  AllKinds& all = all_kinds();
  const auto known = std::ranges::find(all.kinds, kind.name, &BlockKind::name);
  Issues issues;
  if (kind.name.empty()) issues.push_back({"/name", "is empty"});
  if (known - all.kinds.begin() < static_cast<std::ptrdiff_t>(all.own) || kind.name == "sensor" ||
      scenario_file::find_source_kind(kind.name) != nullptr) {
    issues.push_back({"/name", fmt::format("there is a kind {} already", in_quotes(kind.name))});
  }
  if (!kind.make) issues.push_back({"/make", "must hold a function"});
  std::set<std::string_view> keys = {"name", "kind", "every", "count", ""};
  for (std::size_t i = 0; i < kind.fields.size(); ++i) {
    if (keys.insert(kind.fields[i].name).second) continue;
    issues.push_back(
        {fmt::format("/fields/{}", i), fmt::format("the key {} cannot be used, or is there twice",
                                                   in_quotes(kind.fields[i].name))});
  }
  throw_if_any(std::move(issues));
  if (known == all.kinds.end()) {
    all.kinds.push_back(std::move(kind));
  } else {
    *known = std::move(kind);
  }
}

}  // namespace portwave
