#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/expression.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "signals/block_of.hpp"

namespace portwave::block {

Handle gain(double factor, double offset) {
  OptionCheck().finite("/factor", factor).finite("/offset", offset).done();
  return function_of_one({"gain", {factor, offset}},
                         [factor, offset](double u) { return factor * u + offset; });
}

Handle sum(std::vector<double> weights) {
  OptionCheck check;
  check.expect(!weights.empty(), "/weights", "needs at least one input");
  for (std::size_t i = 0; i < weights.size(); ++i) {
    check.finite(fmt::format("/weights/{}", i), weights[i]);
  }
  check.done();
  const int inputs = static_cast<int>(weights.size());
  const Mark mark = Mark("sum", {}).add_all(weights);
  return block_of(mark, {.inputs = inputs}, {},
                  [weights = std::move(weights)](const SampleTime&, std::span<const double> u,
                                                 std::span<const double>, std::span<double> y) {
                    y[0] = 0.0;
                    for (std::size_t i = 0; i < weights.size(); ++i) y[0] += weights[i] * u[i];
                  });
}

Handle product(int inputs) {
  OptionCheck().expect(inputs >= 1, "/inputs", "needs at least one input").done();
  return block_of({"product", {}}, {.inputs = inputs}, {},
                  [](const SampleTime&, std::span<const double> u, std::span<const double>,
                     std::span<double> y) {
                    y[0] = 1.0;
                    for (const double factor : u) y[0] *= factor;
                  });
}

Handle saturation(double minimum, double maximum) {
  OptionCheck().bounds(minimum, maximum).done();
  return function_of_one({"saturation", {minimum, maximum}}, [minimum, maximum](double u) {
    return std::min(std::max(u, minimum), maximum);
  });
}

Handle rate_limit(const RateLimit& options) {
  OptionCheck()
      .positive("/rising_per_s", options.rising_per_s)
      .positive("/falling_per_s", options.falling_per_s)
      .done();
  return block_of(
      {"rate_limit", {options.rising_per_s, options.falling_per_s}}, {}, {0.0},
      [options](const SampleTime& when, std::span<const double> u, std::span<const double> x,
                std::span<double> y) {
        y[0] = u[0];
        if (when.index == 0) return;
        y[0] = std::min(y[0], x[0] + options.rising_per_s * when.period_s);
        y[0] = std::max(y[0], x[0] - options.falling_per_s * when.period_s);
      },
      [](const SampleTime&, std::span<const double>, std::span<const double> y,
         std::span<double> x) { x[0] = y[0]; });
}

Handle delay(int samples, double initial) {
  constexpr int kMost = 1'000'000;
  OptionCheck()
      .expect(samples >= 1 && samples <= kMost, "/samples",
              fmt::format("must be in [1, {}], got {}", kMost, samples))
      .finite("/initial", initial)
      .done();
  // A ring: the oldest is read, then overwritten.
  const auto place = [samples](const SampleTime& when) {
    return static_cast<std::size_t>(when.index % samples);
  };
  return block_of(
      {"delay", {static_cast<double>(samples)}}, {.feeds_through = false},
      std::vector<double>(static_cast<std::size_t>(samples), initial),
      [place](const SampleTime& when, std::span<const double>, std::span<const double> x,
              std::span<double> y) { y[0] = x[place(when)]; },
      [place](const SampleTime& when, std::span<const double> u, std::span<const double>,
              std::span<double> x) { x[place(when)] = u[0]; });
}

Handle integrator(const Integrator& options) {
  OptionCheck()
      .finite("/initial", options.initial)
      .bounds(options.minimum, options.maximum)
      .expect(!(options.initial < options.minimum) && !(options.initial > options.maximum),
              "/initial",
              fmt::format("must lie within the bounds [{}, {}], got {}", options.minimum,
                          options.maximum, options.initial))
      .done();
  return block_of(
      {"integrator", {options.minimum, options.maximum}}, {.feeds_through = false},
      {options.initial},
      [](const SampleTime&, std::span<const double>, std::span<const double> x,
         std::span<double> y) { y[0] = x[0]; },
      [options](const SampleTime& when, std::span<const double> u, std::span<const double>,
                std::span<double> x) {
        x[0] = std::min(std::max(x[0] + when.period_s * u[0], options.minimum), options.maximum);
      });
}

Handle derivative(double filter_s) {
  OptionCheck().not_negative("/filter_s", filter_s).done();
  return block_of(
      {"derivative", {filter_s}}, {}, {0.0, 0.0},  // the last input and output
      [filter_s](const SampleTime& when, std::span<const double> u, std::span<const double> x,
                 std::span<double> y) {
        y[0] = 0.0;
        if (when.index == 0) return;
        y[0] = (filter_s * x[1] + u[0] - x[0]) / (filter_s + when.period_s);
      },
      [](const SampleTime&, std::span<const double> u, std::span<const double> y,
         std::span<double> x) {
        x[0] = u[0];
        x[1] = y[0];
      });
}

Handle lookup(std::vector<Signal::Knot> knots) {
  const Signal table = Signal::piecewise_linear(std::move(knots));
  return function_of_one(Mark("lookup", {}).add(table.digest()),
                         [table](double u) { return table(u); });
}

Handle hysteresis(const Switch& options) {
  OptionCheck()
      .finite("/on_above", options.on_above)
      .finite("/off_below", options.off_below)
      .finite("/on", options.on)
      .finite("/off", options.off)
      .expect(
          !(options.off_below > options.on_above), "/off_below",
          fmt::format("must not exceed on_above = {}, got {}", options.on_above, options.off_below))
      .done();
  const auto is_on = [options](double u, double before) {
    if (u > options.on_above) return true;
    if (u < options.off_below) return false;
    return before != 0.0;
  };
  return block_of(
      {"switch", {options.on_above, options.off_below, options.on, options.off}}, {},
      {options.initially_on ? 1.0 : 0.0},
      [is_on, options](const SampleTime&, std::span<const double> u, std::span<const double> x,
                       std::span<double> y) {
        y[0] = is_on(u[0], x[0]) ? options.on : options.off;
      },
      [is_on](const SampleTime&, std::span<const double> u, std::span<const double>,
              std::span<double> x) { x[0] = is_on(u[0], x[0]) ? 1.0 : 0.0; });
}

Handle expression(std::string_view text, const std::vector<std::string>& names) {
  constexpr int kMostInputs = 1000;
  OptionCheck check;
  check.expect(std::ssize(names) <= kMostInputs, "/inputs",
               fmt::format("must be at most {}, got {}", kMostInputs, names.size()));
  check.done();
  std::vector<std::string> variables = {"t"};
  for (const std::string& name : names) {
    check.expect(Expression::is_name(name), "/inputs",
                 fmt::format("a name in an expression has letters, digits and _ and does not begin "
                             "with a digit, got {}",
                             in_quotes(name)));
    check.expect(!Expression::is_reserved(name), "/inputs",
                 fmt::format("{} has a meaning of its own in expressions", in_quotes(name)));
    check.expect(std::ranges::find(variables, name) == variables.end(), "/inputs",
                 fmt::format("the name {} is taken{}", in_quotes(name),
                             name == "t" ? ": t is the time" : ""));
    variables.push_back(name);
  }
  check.done();
  std::optional<Expression> parsed;
  try {
    parsed = Expression::parse(text, variables);
  } catch (const ConfigError& error) {
    Issues issues;
    append(issues, "/expression", error.issues());
    throw ConfigError(std::move(issues));
  }
  const int inputs = static_cast<int>(names.size());
  const Mark mark = Mark("expression", {}).add(parsed->digest());
  return block_of(mark, {.inputs = inputs, .feeds_through = inputs > 0}, {},
                  [own = *std::move(parsed)](const SampleTime& when, std::span<const double> u,
                                             std::span<const double>,
                                             std::span<double> y) { y[0] = own(when.time_s, u); });
}

Handle selector(double threshold) {
  OptionCheck().finite("/threshold", threshold).done();
  return block_of({"selector", {threshold}}, {.inputs = 3}, {},
                  [threshold](const SampleTime&, std::span<const double> u, std::span<const double>,
                              std::span<double> y) { y[0] = u[0] > threshold ? u[1] : u[2]; });
}

}  // namespace portwave::block
