// portwave generate

#include "portwave/runtime/generate/generate.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <ostream>
#include <string>
#include <system_error>
#include <type_traits>

#include <fmt/format.h>

#include <portwave/runtime/output/recorder.hpp>
#include <portwave/subsystems/base/error.hpp>
#include <portwave/subsystems/base/printable.hpp>

#include "line/commands.hpp"
#include "live/status_line.hpp"
#include "verbs/generate.hpp"

namespace portwave::cli {
namespace {

constexpr GenerateOption kMasses = {"--masses", "N", "5", "Masses of each block"};

std::vector<GenerateOption> with_common(std::vector<GenerateOption> own, std::string_view step_s) {
  own.insert(own.end(), {{"--step", "S", step_s, "Macro-step [s]"},
                         {"--duration", "S", "1", "Simulated time [s], a whole number of steps"},
                         {"--iterations", "K", "20", "Inner iterations per step"},
                         {"--impedance", "G", "",
                          "Impedance of all ports [N s/m]; default: chosen from the parts"}});
  return own;
}

std::vector<GenerateKind> make_kinds() {
  const GenerateOption blocks = {"--blocks", "N", "", "Number of blocks"};
  const GenerateOption vary = {"--vary", "F", "0",
                               "Largest relative difference between blocks, below 1"};
  const GenerateOption seed = {"--seed", "N", "1", "Seed of the differences"};
  return {
      {"chain", "Blocks of masses and springs in a line",
       with_common({blocks, kMasses, vary, seed}, "0.001")},
      {"ring", "The chain closed on itself", with_common({blocks, kMasses, vary, seed}, "0.001")},
      {"grid", "Duffing masses joined to their neighbours in two directions",
       with_common(
           {{"--rows", "N", "", "Number of rows"}, {"--columns", "N", "", "Number of columns"}},
           "0.01")},
      {"star", "Limbs of masses and springs on one rigid hub",
       with_common({{"--limbs", "N", "", "Number of limbs, at most 1000"}, kMasses}, "0.001")},
      {"imbalanced", "A chain with one block far larger than the others",
       with_common({{"--parts", "N", "", "Number of blocks"},
                    kMasses,
                    {"--factor", "X", "100", "How many times as large the one block is"}},
                   "0.001")},
  };
}

/// Turns the texts of the command line into numbers and notes those that are none. What has a
/// defect keeps its default, about which there is nothing to say.
class ValueReader {
 public:
  explicit ValueReader(const GenerateArguments& arguments) : given_(arguments.given) {}

  /// The value of a required option.
  template <class Number>
  void require(const std::string& name, Number& value) {
    if (!given_.contains(name)) {
      issues_.push_back({name, "is required"});
    } else {
      read(name, value);
    }
  }

  template <class Number>
  void read(const std::string& name, Number& value) {
    const auto found = given_.find(name);
    if (found == given_.end()) return;
    const std::string& text = found->second;
    Number number = {};
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc() && stop == end) {
      value = number;
    } else {
      issues_.push_back(
          {name, fmt::format("must be {}, got {}", wanted<Number>(error), in_quotes(text))});
    }
  }

  void read(const std::string& name, std::optional<double>& value) {
    if (!given_.contains(name)) return;
    double number = 1.0;
    read(name, number);
    value = number;
  }

  /// Everything wrong with the numbers, by option.
  void check(const Network& network, const GenerateOptions& options) {
    for (const Issue& issue : check_network(network, options)) {
      const std::string name = issue.where.empty() ? "" : "--" + issue.where.substr(1);
      const bool is_known = std::any_of(issues_.begin(), issues_.end(),
                                        [&](const Issue& other) { return other.where == name; });
      if (!is_known) issues_.push_back({name, issue.what});
    }
    throw_if_any(std::move(issues_));
  }

 private:
  template <class Number>
  static const char* wanted(std::errc error) {
    const bool is_beyond = error == std::errc::result_out_of_range;
    if constexpr (std::is_floating_point_v<Number>) {
      return is_beyond ? "a number within range" : "a number";
    } else {
      return is_beyond ? "an integer within range" : "an integer";
    }
  }

  const std::map<std::string, std::string>& given_;
  Issues issues_;
};

Network read_network(const std::string& kind, ValueReader& reader) {
  if (kind == "grid") {
    network::Grid grid;
    reader.require("--rows", grid.rows);
    reader.require("--columns", grid.columns);
    return grid;
  }
  if (kind == "star") {
    network::Star star;
    reader.require("--limbs", star.limbs);
    reader.read("--masses", star.masses);
    return star;
  }
  if (kind == "imbalanced") {
    network::Imbalanced network;
    reader.require("--parts", network.parts);
    reader.read("--masses", network.masses);
    reader.read("--factor", network.factor);
    return network;
  }
  network::Chain chain;
  chain.closed = kind == "ring";
  if (chain.closed) chain.blocks = 2;
  reader.require("--blocks", chain.blocks);
  reader.read("--masses", chain.masses);
  reader.read("--vary", chain.vary);
  reader.read("--seed", chain.seed);
  return chain;
}

}  // namespace

std::span<const GenerateKind> generate_kinds() {
  static const std::vector<GenerateKind> kinds = make_kinds();
  return kinds;
}

int run_command(const GenerateArguments& arguments, std::ostream& out, std::ostream& err) {
  ValueReader reader(arguments);
  const Network network = read_network(arguments.kind, reader);
  GenerateOptions options;
  reader.read("--step", options.step_s);
  reader.read("--duration", options.duration_s);
  reader.read("--iterations", options.iterations);
  reader.read("--impedance", options.impedance_Ns_per_m);
  reader.check(network, options);

  StatusLine status(err, stderr_is_terminal());
  status.show({"generating the network"});
  const std::string text = generate_scenario(network, options);
  if (!arguments.out) {
    out << text;
    return kOk;
  }
  write_file_atomically(*arguments.out, text);
  status.finish();
  err << fmt::format("written to {}\n", arguments.out->string());
  return kOk;
}

}  // namespace portwave::cli
