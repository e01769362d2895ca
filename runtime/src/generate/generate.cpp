#include "portwave/runtime/generate/generate.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "portwave/coupling/impedance/tuning.hpp"
#include "portwave/coupling/method/number_range.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/catalogue/chain.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "scenario/reader/limits.hpp"
#include "scenario/settings/settings.hpp"

namespace portwave {
namespace {

double step_of(const Network& network, const GenerateOptions& options) {
  return options.step_s.value_or(std::holds_alternative<network::Grid>(network) ? 1e-2 : 1e-3);
}

/// Masses of the block that is larger than the others.
double heavy_masses(const network::Imbalanced& network) {
  return std::round(network.factor * network.masses);
}

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

namespace {

constexpr int kMovingParts = 10;  // every tenth part starts moving
/// Of the smallest matched impedance: with it the port maps of all kinds are firmly nonexpansive;
/// with 1.25 they are not.
constexpr double kImpedanceShare = 0.8;

ChainParameters block_parameters(int masses) {
  return {.masses = masses,
          .mass_kg = 0.3,
          .stiffness_N_per_m = 50.0,
          .damping_Ns_per_m = 0.1,
          .coupling_stiffness_N_per_m = 50.0};
}

DuffingNodeParameters node_parameters() {
  return {.mass_kg = 8.0,
          .stiffness_N_per_m = 100.0,
          .cubic_stiffness_N_per_m3 = 8000.0,
          .coupling_stiffness_N_per_m = 120.0,
          .coupling_damping_Ns_per_m = 0.05};
}

// SplitMix64 by Steele, Lea and Flood (2014): integers only, so that it is the same everywhere.
std::uint64_t mixed(std::uint64_t z) {
  z += 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

/// A number in [-1, 1) in millionths, by seed, block and parameter.
double deviation(std::uint64_t seed, int block, int parameter) {
  const std::uint64_t hash = mixed(mixed(mixed(seed) + static_cast<std::uint64_t>(block)) +
                                   static_cast<unsigned>(parameter));
  return (static_cast<double>(hash % 2'000'000U) - 1e6) * 1e-6;
}

ChainParameters varied(const network::Chain& chain, int block) {
  ChainParameters p = block_parameters(chain.masses);
  int parameter = 0;
  for (double* value :
       {&p.mass_kg, &p.stiffness_N_per_m, &p.coupling_stiffness_N_per_m, &p.damping_Ns_per_m}) {
    *value *= 1.0 + chain.vary * deviation(chain.seed, block, parameter++);
  }
  return p;
}

std::string block_name(int number) { return fmt::format("b{}", number + 1); }
std::string node_name(int row, int column) { return fmt::format("n{}_{}", row + 1, column + 1); }

/// What a kind of network is made of, and how it is told.
struct Plan {
  std::string name;
  std::string description;
  double step_s = 1e-3;
  std::vector<double> impedances;  ///< matched ones of a part, at `step_s`
};

/// The text of a scenario file, in the order in which it is written.
class ScenarioText {
 public:
  ScenarioText(const Plan& plan, const GenerateOptions& options) {
    text_ = fmt::format(
        "{{\n  \"name\": \"{}\",\n  \"description\": \"{}\",\n"
        "  \"time\": {{\"step_s\": {}, \"end_s\": {}}},\n",
        plan.name, plan.description, plan.step_s, options.duration_s);
  }

  void begin_list(std::string_view key) {
    text_ += fmt::format("  \"{}\": [\n", key);
    is_first_ = true;
  }
  void end_list() { text_ += "\n  ],\n"; }

  void block(int number, const ChainParameters& p) {
    begin_line();
    fmt::format_to(std::back_inserter(text_),
                   R"({{"name": "{}", "type": "mass_spring_damper_chain", "parameters": )"
                   R"({{"masses": {}, "mass_kg": {:.6g}, "stiffness_N_per_m": {:.6g}, )"
                   R"("damping_Ns_per_m": {:.6g}, "coupling_stiffness_N_per_m": {:.6g}}}{}}})",
                   block_name(number), p.masses, p.mass_kg, p.stiffness_N_per_m, p.damping_Ns_per_m,
                   p.coupling_stiffness_N_per_m, motion(number, "v1"));
  }
  void node(int number, const std::string& name, const DuffingNodeParameters& p) {
    begin_line();
    fmt::format_to(std::back_inserter(text_),
                   R"({{"name": "{}", "type": "duffing_node", "parameters": {{"mass_kg": {}, )"
                   R"("stiffness_N_per_m": {}, "cubic_stiffness_N_per_m3": {}, )"
                   R"("coupling_stiffness_N_per_m": {}, "coupling_damping_Ns_per_m": {}}}{}}})",
                   name, p.mass_kg, p.stiffness_N_per_m, p.cubic_stiffness_N_per_m3,
                   p.coupling_stiffness_N_per_m, p.coupling_damping_Ns_per_m, motion(number, "v"));
  }
  void couple(std::string_view kind, const std::vector<std::string>& ports) {
    begin_line();
    fmt::format_to(std::back_inserter(text_), R"({{"kind": "{}", "ports": ["{}"]}})", kind,
                   fmt::join(ports, "\", \""));
  }

  std::string finish(int iterations, double impedance,
                     const std::vector<std::string>& observed) && {
    text_ += fmt::format(
        "  \"method\": {{\"kind\": \"douglas-rachford\", \"iterations\": {}, "
        "\"impedance\": {{\"kind\": \"uniform\", \"value\": {}}}}},\n"
        "  \"outputs\": {{\"observe\": [\"{}\"], \"every\": 1}}\n}}\n",
        iterations, impedance, fmt::join(observed, "\", \""));
    return std::move(text_);
  }

 private:
  void begin_line() {
    text_ += is_first_ ? "    " : ",\n    ";
    is_first_ = false;
    constexpr std::size_t kReserve = 4096;  // for the last lines
    if (text_.size() < scenario_limits::kFileBytes - kReserve) return;
    throw ConfigError("", fmt::format("the scenario file would be larger than {} MiB, the most "
                                      "that can be read; make the network smaller",
                                      scenario_limits::kFileBytes >> 20));
  }

  // At rest unless it is this part's turn. Velocities stretch no spring, as positions would.
  static std::string motion(int number, std::string_view state) {
    if (number % kMovingParts != 0) return {};
    return fmt::format(R"(, "initial_state": {{"{}": 1}})", state);
  }

  std::string text_;
  bool is_first_ = true;
};

/// The first, middle and last of `count` parts.
std::vector<int> samples(int count) {
  std::vector<int> numbers = {0, count / 2, count - 1};
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::vector<std::string> observed_blocks(int count) {
  std::vector<std::string> observed;
  for (const int number : samples(count)) observed.push_back(block_name(number) + ".q1");
  return observed;
}

// Blocks in a line, the spring of each joined to the mass of the next.
void join_blocks(ScenarioText& text, int count, bool closed) {
  text.begin_list("couplings");
  for (int i = 0; i + 1 < count; ++i) {
    text.couple("connection", {block_name(i) + ".right", block_name(i + 1) + ".left"});
  }
  if (closed) {
    text.couple("connection", {block_name(count - 1) + ".right", block_name(0) + ".left"});
  } else {
    text.couple("free", {block_name(0) + ".left"});
    text.couple("free", {block_name(count - 1) + ".right"});
  }
  text.end_list();
}

std::vector<double> block_impedances(int masses, double step_s) {
  return matched_impedances(*mass_spring_damper_chain(block_parameters(masses)), step_s);
}

Plan plan_of(const network::Chain& chain, double step_s) {
  const std::string_view kind = chain.closed ? "ring" : "chain";
  std::string description = fmt::format(
      "A {} of {} blocks of {} masses, each ending in the spring that joins it to the next.", kind,
      chain.blocks, chain.masses);
  if (chain.vary > 0.0) {
    description += fmt::format(" Their parameters differ by up to {:g} %, seed {}.",
                               100.0 * chain.vary, chain.seed);
  }
  Plan plan{fmt::format("{}_{}", kind, chain.blocks), std::move(description), step_s,
            block_impedances(chain.masses, step_s)};
  for (double& impedance : plan.impedances) impedance *= 1.0 - chain.vary;
  return plan;
}

std::vector<std::string> write(const network::Chain& chain, ScenarioText& text) {
  text.begin_list("subsystems");
  const ChainParameters equal = block_parameters(chain.masses);
  for (int i = 0; i < chain.blocks; ++i) text.block(i, chain.vary > 0.0 ? varied(chain, i) : equal);
  text.end_list();
  join_blocks(text, chain.blocks, chain.closed);
  return observed_blocks(chain.blocks);
}

Plan plan_of(const network::Grid& grid, double step_s) {
  return {fmt::format("grid_{}x{}", grid.rows, grid.columns),
          fmt::format("A grid of {} rows and {} columns of Duffing masses joined by springs.",
                      grid.rows, grid.columns),
          step_s, matched_impedances(*duffing_node(node_parameters()), step_s)};
}

std::vector<std::string> write(const network::Grid& grid, ScenarioText& text) {
  const DuffingNodeParameters parameters = node_parameters();
  text.begin_list("subsystems");
  for (int row = 0; row < grid.rows; ++row) {
    for (int column = 0; column < grid.columns; ++column) {
      text.node(row * grid.columns + column, node_name(row, column), parameters);
    }
  }
  text.end_list();
  text.begin_list("couplings");
  for (int row = 0; row < grid.rows; ++row) {
    for (int column = 0; column < grid.columns; ++column) {
      const std::string name = node_name(row, column);
      if (column + 1 < grid.columns) {
        text.couple("connection", {name + ".east", node_name(row, column + 1) + ".west"});
      } else {
        text.couple("free", {name + ".east"});
      }
      if (row + 1 < grid.rows) {
        text.couple("connection", {name + ".south", node_name(row + 1, column) + ".north"});
      } else {
        text.couple("free", {name + ".south"});
      }
      if (column == 0) text.couple("free", {name + ".west"});
      if (row == 0) text.couple("free", {name + ".north"});
    }
  }
  text.end_list();
  std::vector<std::string> observed;
  for (const int number : samples(grid.rows * grid.columns)) {
    observed.push_back(node_name(number / grid.columns, number % grid.columns) + ".q");
  }
  return observed;
}

Plan plan_of(const network::Star& star, double step_s) {
  return {fmt::format("star_{}", star.limbs),
          fmt::format("{} limbs of {} masses, their springs meeting in one rigid hub without mass.",
                      star.limbs, star.masses),
          step_s, block_impedances(star.masses, step_s)};
}

std::vector<std::string> write(const network::Star& star, ScenarioText& text) {
  const ChainParameters limb = block_parameters(star.masses);
  text.begin_list("subsystems");
  for (int i = 0; i < star.limbs; ++i) text.block(i, limb);
  text.end_list();
  std::vector<std::string> hub;
  hub.reserve(static_cast<std::size_t>(star.limbs));
  for (int i = 0; i < star.limbs; ++i) hub.push_back(block_name(i) + ".right");
  text.begin_list("couplings");
  text.couple("common_flow", hub);
  for (int i = 0; i < star.limbs; ++i) text.couple("free", {block_name(i) + ".left"});
  text.end_list();
  return observed_blocks(star.limbs);
}

Plan plan_of(const network::Imbalanced& network, double step_s) {
  return {fmt::format("imbalanced_{}", network.parts),
          fmt::format("A chain of {} blocks, {} of {} masses and the middle one of {}.",
                      network.parts, network.parts - 1, network.masses, heavy_masses(network)),
          step_s, block_impedances(network.masses, step_s)};
}

std::vector<std::string> write(const network::Imbalanced& network, ScenarioText& text) {
  const int heavy = network.parts / 2;
  text.begin_list("subsystems");
  for (int i = 0; i < network.parts; ++i) {
    const int masses = i == heavy ? static_cast<int>(heavy_masses(network)) : network.masses;
    text.block(i, block_parameters(masses));
  }
  text.end_list();
  join_blocks(text, network.parts, false);
  return observed_blocks(network.parts);
}

double impedance_of(const Plan& plan, const GenerateOptions& options) {
  if (options.impedance_Ns_per_m) return *options.impedance_Ns_per_m;
  const double smallest = *std::min_element(plan.impedances.begin(), plan.impedances.end());
  return std::stod(fmt::format("{:.3g}", kImpedanceShare * smallest));
}

}  // namespace

std::string generate_scenario(const Network& network, const GenerateOptions& options) {
  throw_if_any(check_network(network, options));
  return std::visit(
      [&](const auto& kind) {
        const Plan plan = plan_of(kind, step_of(network, options));
        ScenarioText text(plan, options);
        const std::vector<std::string> observed = write(kind, text);
        return std::move(text).finish(options.iterations, impedance_of(plan, options), observed);
      },
      network);
}

}  // namespace portwave
