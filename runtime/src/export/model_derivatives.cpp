// Derivatives of a communication step, by the step itself.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "export/model_run.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::exported {
namespace {

/// Relative lengths of the differences, the longest first: what is linear is exact by it, and what is not agrees
/// by a shorter one. Of parameters, which must not change sign, those from kLongestOfParameters.
constexpr double kLengths[] = {1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6};
constexpr double kLongestOfParameters = 0.1;
constexpr double kAgrees = 1e-9;  ///< of both orders: shorter ones would add rounding
constexpr double kRight = 1e-3;   ///< so far may the best ones differ
constexpr double kRounding = 64.0 * std::numeric_limits<double>::epsilon();
/// So much of an output may differ from step to step by where iterations end. What moves it less is no kink.
constexpr double kIterations = 1e-9;

/// The best estimate so far of one derivative.
struct Estimate {
  double value = 0.0;
  double error = std::numeric_limits<double>::infinity();
  double unseen = 0.0;  ///< what differences of this length do not see
  /// By how much slopes on both sides differ: at the longest length, and the least of all.
  double first_bend = -1.0, least_bend = 0.0, first_unseen = 0.0;
  bool is_right() const { return error <= std::max(kRight * std::abs(value), unseen); }
  /// A bend that does not go as differences shrink.
  bool is_kink() const {
    return first_bend > std::max(kRight * std::abs(value), first_unseen) &&
           least_bend > 0.5 * first_bend;
  }
};

/// Takes in the values at −2, −1, 0, 1 and 2 lengths. True: both orders agree, and there is no bend to speak of.
bool improve(Estimate& own, double length, const double (&f)[5]) {
  const double near = f[3] - f[1], far = f[4] - f[0];
  const double second = near / (2.0 * length), fourth = (8.0 * near - far) / (12.0 * length);
  const double size =
      std::max({std::abs(f[0]), std::abs(f[1]), std::abs(f[2]), std::abs(f[3]), std::abs(f[4])});
  const double rounding = kRounding * size / length, unseen = kIterations * size / length;
  const double apart = std::abs(fourth - second),
               bend = std::abs(f[3] - 2.0 * f[2] + f[1]) / length;
  if (own.first_bend < 0.0) {
    own.first_bend = own.least_bend = bend;
    own.first_unseen = unseen;
  }
  own.least_bend = std::min(own.least_bend, bend);
  if (apart + rounding < own.error) {
    own.value = fourth;
    own.error = apart + rounding;
    own.unseen = unseen;
  }
  return apart <= std::max(kAgrees * std::abs(fourth), rounding) &&
         bend <= std::max(kRight * std::abs(fourth), unseen);
}

}  // namespace

std::optional<std::vector<double>> ModelRun::taken_otherwise(const LastStep& step,
                                                             std::span<const std::size_t> unknowns,
                                                             std::span<const std::size_t> knowns,
                                                             const std::vector<double>& values) {
  try {
    restore(step.before);
    for (std::size_t k = 0; k < knowns.size(); ++k) set_value(knowns[k], values[k]);
    take_step(step.from_s, step.size_s, step.is_whole);
    std::vector<double> out;
    for (const std::size_t own : unknowns) out.push_back(value(own));
    return out;
  } catch (const Refusal&) {
  } catch (const StepError&) {
  } catch (const ConfigError&) {
  }
  return std::nullopt;
}

std::vector<double> ModelRun::directional_derivative(std::span<const std::size_t> unknowns,
                                                     std::span<const std::size_t> knowns,
                                                     std::span<const double> seed) {
  if (seed.size() != knowns.size()) {
    throw std::invalid_argument(fmt::format(
        "{} knowns need as many numbers of a seed, and there are {}", knowns.size(), seed.size()));
  }
  bool has_parameters = false;
  for (const std::size_t own : unknowns) {
    const Variable& variable = model_.variables.at(own);
    if (variable.is_settable() || variable.kind == Variable::Kind::time) {
      throw std::invalid_argument(
          fmt::format("{} is no output, so that it has no derivative", in_quotes(variable.name)));
    }
  }
  for (const std::size_t own : knowns) {
    const Variable& variable = model_.variables.at(own);
    if (!variable.is_settable()) {
      throw std::invalid_argument(
          fmt::format("there are no derivatives by {}, which is neither input nor parameter",
                      in_quotes(variable.name)));
    }
    has_parameters = has_parameters || variable.kind == Variable::Kind::parameter;
  }
  if (!last_.is_known) {
    throw Refusal(
        "derivatives are those of the last step, and there was none since the start or since a "
        "state was set");
  }
  for (const double own : seed) {
    if (!std::isfinite(own)) throw Refusal("a seed is not finite");
  }
  // One that is named twice moves by the sum of both.
  std::map<std::size_t, double> direction;
  for (std::size_t k = 0; k < knowns.size(); ++k) direction[knowns[k]] += seed[k];
  std::vector<std::size_t> moved;
  // A length of 1 changes no known by more than its own size, or by 1 where it is 0.
  double widest = 0.0;
  for (const auto& [known, share] : direction) {
    const double value = std::abs(last_.before.values[known]);
    moved.push_back(known);
    widest = std::max(widest, std::abs(share) / (value > 0.0 ? value : 1.0));
  }
  std::vector<double> out(unknowns.size(), 0.0);
  if (widest == 0.0 || unknowns.empty()) return out;

  const RunState now = save();
  LastStep step = std::move(last_);
  std::vector<Estimate> estimates(unknowns.size());
  std::vector<double> values(moved.size());
  const auto at = [&](double length) {
    for (std::size_t k = 0; k < moved.size(); ++k)
      values[k] = step.before.values[moved[k]] + length * direction.at(moved[k]);
    return taken_otherwise(step, unknowns, moved, values);
  };
  const auto go_back = [&] {
    restore(now);
    last_ = std::move(step);
  };
  try {
    const auto here = at(0.0);
    for (const double relative : kLengths) {
      if (has_parameters && relative > kLongestOfParameters) continue;
      const double length = relative / widest;
      const auto far_below = at(-2.0 * length), below = at(-length), above = at(length),
                 far_above = at(2.0 * length);
      if (!here || !far_below || !below || !above || !far_above) continue;
      bool all_agree = true;
      for (std::size_t i = 0; i < unknowns.size(); ++i) {
        all_agree &=
            improve(estimates[i], length,
                    {(*far_below)[i], (*below)[i], (*here)[i], (*above)[i], (*far_above)[i]});
      }
      if (all_agree) break;
    }
  } catch (...) {
    go_back();
    throw;
  }
  go_back();
  for (std::size_t i = 0; i < unknowns.size(); ++i) {
    if (!estimates[i].is_right() || estimates[i].is_kink()) {
      throw Refusal(fmt::format(
          "{} has no derivative at the step from {} s, which differences find: it has a kink "
          "there, or the step cannot be taken with other values",
          in_quotes(model_.variables[unknowns[i]].name), last_.from_s));
    }
    out[i] = estimates[i].value;
  }
  return out;
}

std::vector<double> ModelRun::adjoint_derivative(std::span<const std::size_t> unknowns,
                                                 std::span<const std::size_t> knowns,
                                                 std::span<const double> seed) {
  if (seed.size() != unknowns.size()) {
    throw std::invalid_argument(
        fmt::format("{} unknowns need as many numbers of a seed, and there are {}", unknowns.size(),
                    seed.size()));
  }
  std::vector<double> out;
  for (const std::size_t known : knowns) {
    const double one = 1.0;
    const std::vector<double> column = directional_derivative(unknowns, {&known, 1}, {&one, 1});
    double sum = 0.0;
    for (std::size_t i = 0; i < column.size(); ++i) sum += seed[i] * column[i];
    out.push_back(sum);
  }
  return out;
}

}  // namespace portwave::exported
