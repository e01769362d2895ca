#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "generate/network_sizes.hpp"
#include "portwave/coupling/method/number_range.hpp"
#include "portwave/runtime/generate/generate.hpp"
#include "portwave/subsystems/base/shown_number.hpp"
#include "scenario/reader/limits.hpp"
#include "scenario/settings/settings.hpp"

namespace portwave {
namespace {

constexpr int kMostParts = 1'000'000;

/// Collects what is wrong with the numbers of one network.
class NetworkCheck {
 public:
  void operator()(const network::Chain& chain) {
    count("/blocks", chain.blocks, chain.closed ? 2 : 1, kMostParts);
    count("/masses", chain.masses, 1, scenario_limits::kInteger);
    number("/vary", chain.vary, {.minimum = 0.0, .maximum = 1.0, .maximum_excluded = true});
    states("/blocks", 1.0 * chain.blocks * (2.0 * chain.masses + 1.0));
  }

  void operator()(const network::Grid& grid) {
    count("/rows", grid.rows, 1, kMostParts);
    count("/columns", grid.columns, 1, kMostParts);
    constexpr std::int64_t kMostNodes = scenario_limits::kScalarPorts / 4;
    const std::int64_t nodes = std::int64_t{1} * grid.rows * grid.columns;
    if (is_sound() && nodes > kMostNodes) {
      add("/rows", fmt::format("rows × columns must be at most {}, got {}", kMostNodes, nodes));
    }
  }

  void operator()(const network::Star& star) {
    count("/limbs", star.limbs, 2, scenario_limits::kCouplingPorts);
    count("/masses", star.masses, 1, scenario_limits::kInteger);
    states("/limbs", 1.0 * star.limbs * (2.0 * star.masses + 1.0));
  }

  void operator()(const network::Imbalanced& network) {
    count("/parts", network.parts, 2, kMostParts);
    count("/masses", network.masses, 1, scenario_limits::kInteger);
    number("/factor", network.factor, {.minimum = 1.0});
    const double heavy = heavy_masses(network);
    if (is_sound() && heavy > scenario_limits::kInteger) {
      add("/factor", fmt::format("factor × masses must be at most {}, got {}",
                                 scenario_limits::kInteger, heavy));
    }
    states("/parts", (network.parts - 1) * (2.0 * network.masses + 1.0) + 2.0 * heavy + 1.0);
  }

  void options(const GenerateOptions& options, double step_s) {
    const bool has_step = number("/step", step_s, NumberRange::positive());
    const bool has_end = number("/duration", options.duration_s, NumberRange::positive());
    if (has_step && has_end) steps(options.duration_s, step_s);
    count("/iterations", options.iterations, 0, scenario_limits::kIterations);
    if (options.impedance_Ns_per_m) {
      number("/impedance", *options.impedance_Ns_per_m, NumberRange::positive());
    }
  }

  Issues take() { return std::move(issues_); }

 private:
  bool is_sound() const { return issues_.empty(); }
  void add(std::string where, std::string what) {
    issues_.push_back({std::move(where), std::move(what)});
  }

  void count(const char* where, int value, int least, int most) {
    if (value >= least && value <= most) return;
    add(where, fmt::format("must be an integer from {} to {}, got {}", least, most, value));
  }

  bool number(const char* where, double value, const NumberRange& range) {
    if (range.contains(value)) return true;
    add(where, fmt::format("must be {}, got {}", range.describe(), shown_number(value)));
    return false;
  }

  void steps(double duration_s, double step_s) {
    if (duration_s / step_s > static_cast<double>(scenario_limits::kSteps)) {
      add("/duration", fmt::format("{} s in steps of {} s are more than {} steps", duration_s,
                                   step_s, scenario_limits::kSteps));
    } else if (!scenario_file::whole_steps(duration_s, step_s)) {
      add("/duration",
          fmt::format("must be a whole number of steps of {} s, got {}", step_s, duration_s));
    }
  }

  void states(const char* where, double states) {
    if (!is_sound() || states <= static_cast<double>(scenario_limits::kStates)) return;
    add(where, fmt::format("the network must have at most {} states, got {}",
                           scenario_limits::kStates, states));
  }

  Issues issues_;
};

}  // namespace

Issues check_network(const Network& network, const GenerateOptions& options) {
  NetworkCheck check;
  std::visit(check, network);
  check.options(options, step_of(network, options));
  return check.take();
}

}  // namespace portwave
