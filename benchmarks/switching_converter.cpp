// A chain of 10 to 1000 switching converters (peers/converter.hpp) beside ngspice, where that is installed, at equal
// accuracy and at equal resolution. Error: the larger of those of the coils' currents and of the outputs' voltages,
// ‖x − x*‖₂/‖x*‖₂ at the end; x* by a solver written for them.
//
// Two times of ngspice: that of its process, which reads the netlist, beside one in which the network is built and
// stepped, both by the processor; and what it calls its analysis, beside the steps alone, both by the clock.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "links.hpp"
#include "peers/converter.hpp"
#include "peers/spice.hpp"
#include "portwave/coupling/system/system.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/parts.hpp"
#include "precision_reference.hpp"
#include "report.hpp"

namespace {

using namespace portwave::bench;
namespace parts = portwave::parts;
using portwave::StageKind;
using portwave::Stepper;

constexpr std::array kSizes = {std::size_t{10}, std::size_t{100}, std::size_t{1000}};
const std::vector<int> kExponents = {2, 3};
constexpr double kSlack = 2.0;  ///< by which larger networks may miss the accuracy of the smallest

/// The joints of a cell: nodes "source", "x" and "out"; branches in the order of `cell_ports`.
portwave::joint::Kernel cell_graph(int links) {
  enum { source, rectifier, freewheel, coil, capacitor, load };
  const int n = 6 + links;
  portwave::joint::Kernel graph{Eigen::MatrixXd::Zero(n, n), Eigen::MatrixXd::Zero(n, n)};
  int row = 0;
  graph.F(row, source) = graph.F(row, rectifier) = 1.0;  // Kirchhoff's currents
  ++row;
  graph.F(row, rectifier) = graph.F(row, freewheel) = -1.0;
  graph.F(row, coil) = 1.0;
  ++row;
  graph.F(row, coil) = -1.0;
  for (int branch = capacitor; branch < n; ++branch) graph.F(row, branch) = 1.0;
  ++row;
  graph.E(row, source) = 1.0;  // and his voltages
  graph.E(row, rectifier) = -1.0;
  graph.E(row, freewheel) = 1.0;
  ++row;
  graph.E(row, freewheel) = graph.E(row, coil) = graph.E(row, capacitor) = 1.0;
  for (int branch = load; branch < n; ++branch) {
    ++row;
    graph.E(row, capacitor) = -1.0;
    graph.E(row, branch) = 1.0;
  }
  return graph;
}

/// Parts of a cell: source, two diodes, coil, capacitor, load; then the links.
portwave::System converters(const ConverterParameters& p) {
  portwave::SystemBuilder builder;
  const parts::DiodeParameters diode{.saturation_current_A = p.saturation_A,
                                     .emission_coefficient = p.emission,
                                     .thermal_voltage_V = p.thermal_V,
                                     .leakage_S = p.leakage_S};
  for (std::size_t i = 0; i < p.cells; ++i) {
    const auto name = [i](const char* what) { return what + std::to_string(i); };
    std::vector<portwave::Signal::Knot> knots;
    for (const auto& [t, v] : p.corners(i)) knots.push_back({t, v});
    builder.add(name("source"), parts::effort_source({.domain = "electrical"}),
                {.inputs = {{"effort", portwave::Signal::piecewise_linear(knots)}}});
    builder.add(name("rectifier"), parts::diode(diode));
    builder.add(name("freewheel"), parts::diode(diode));
    builder.add(name("coil"), parts::inductor({.inductance_H = p.inductance_H}));
    builder.add(name("capacitor"), parts::capacitor({.capacitance_F = p.capacitance_F}));
    builder.add(name("load"),
                parts::resistor({.resistance_ohm = p.load_ohm(i), .gives = "current"}));
  }
  for (std::size_t i = 0; i + 1 < p.cells; ++i) {
    builder.add("link" + std::to_string(i), link(p.link_ohm));
  }
  for (std::size_t i = 0; i < p.cells; ++i) {
    const auto name = [i](const char* what) { return what + std::to_string(i); };
    std::vector<std::string> ports = {
        name("source") + ".port",         name("rectifier") + ".terminals",
        name("freewheel") + ".terminals", name("coil") + ".terminals",
        name("capacitor") + ".terminals", name("load") + ".terminals"};
    if (i > 0) ports.push_back("link" + std::to_string(i - 1) + ".b");
    if (i + 1 < p.cells) ports.push_back("link" + std::to_string(i) + ".a");
    builder.join(cell_graph(static_cast<int>(ports.size()) - 6), ports);
  }
  return builder.build();
}

struct EngineSettings {
  StageKind integrator = StageKind::damped;
  int stages = 1;
  double step_s = 50e-9;

  std::string text() const {
    return fmt::format("{}, {} stage{}, steps of {:.3g} ns", to_string(integrator), stages,
                       stages == 1 ? "" : "s", 1e9 * step_s);
  }
};

/// Times and answer of a run, on either side.
struct Outcome {
  double process_s = 0.0;  ///< processor time with reading or building the network
  double steps_s = 0.0;    ///< of the steps, by the clock
  std::vector<double> state;
};

double processor_s() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Outcome run_engine(const ConverterParameters& p, const EngineSettings& settings) {
  const double begin_s = processor_s();
  portwave::StepperOptions options;
  options.step_s = settings.step_s;
  options.method = portwave::WaveCoupling::automatic_with_stages(settings.stages);
  options.method.waves().integrator = settings.integrator;
  Stepper stepper(converters(p), options);
  const auto start = std::chrono::steady_clock::now();
  stepper.step(std::lround(p.end_s() / settings.step_s));
  Outcome out;
  out.steps_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  out.process_s = processor_s() - begin_s;
  for (const int part : {3, 4}) {
    for (std::size_t i = 0; i < p.cells; ++i) {
      out.state.push_back(stepper.state(static_cast<int>(6 * i) + part)[0]);
    }
  }
  return out;
}

Outcome run_ngspice(const ConverterParameters& p, const SpiceSettings& settings) {
  const SpiceResult result = run_spice(p, settings);
  return {.process_s = result.processor_s, .steps_s = result.analysis_s, .state = result.state};
}

/// The larger of the relative errors of currents and voltages.
double error_of(const std::vector<double>& state, const std::vector<double>& expected) {
  const auto half = [](const std::vector<double>& x, bool second) {
    const auto middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
    return second ? std::vector<double>(middle, x.end()) : std::vector<double>(x.begin(), middle);
  };
  return std::max(relative_error(half(state, false), half(expected, false)),
                  relative_error(half(state, true), half(expected, true)));
}

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("answers disagree: " + what);
}

std::vector<double> reference(const ConverterParameters& p) {
  const double step_s = p.cells >= 1000 ? 5e-9 : 2.5e-9;
  const std::vector<double> expected = converter_reference(p, step_s);
  const double off = error_of(converter_reference(p, 4.0 * step_s), expected);
  fmt::print(stderr, "{} cells: with steps four times as long the reference is off by {:.1e}\n",
             p.cells, off);
  require(off <= 2e-4, "the reference");
  require(off > 1e-6, "a control with long steps should have shown");
  return expected;
}

template <class Settings>
struct Choice {
  Settings settings;
  double error = 0.0;
  Outcome outcome;
};

/// The fastest settings that reach an accuracy.
template <class Settings>
std::optional<Choice<Settings>> fastest(const std::vector<Choice<Settings>>& all, double accuracy) {
  std::optional<Choice<Settings>> best;
  for (const auto& choice : all) {
    if (choice.error > accuracy) continue;
    if (!best || choice.outcome.steps_s < best->outcome.steps_s) best = choice;
  }
  return best;
}

template <class Settings, class Run>
void try_out(std::vector<Choice<Settings>>& into, const Settings& settings, Run run,
             const std::vector<double>& expected) {
  try {
    Outcome outcome = run(settings);
    const double error = error_of(outcome.state, expected);
    fmt::print(stderr, "  {:48} error {:8.1e} {:9.2f} ms, process {:9.2f} ms\n", settings.text(),
               error, 1e3 * outcome.steps_s, 1e3 * outcome.process_s);
    into.push_back({settings, error, std::move(outcome)});
  } catch (const std::exception& failure) {
    fmt::print(stderr, "  {:48} {}\n", settings.text(), failure.what());
  }
}

std::vector<Choice<SpiceSettings>> all_of_ngspice(const ConverterParameters& p,
                                                  const std::vector<double>& expected) {
  std::vector<Choice<SpiceSettings>> all;
  for (const char* const method : {"trap", "gear"}) {
    for (const double relative : {5e-2, 1e-2, 1e-3, 1e-4}) {
      for (const double step_s : {400e-9, 200e-9, 100e-9, 50e-9, 20e-9, 10e-9}) {
        try_out(
            all, SpiceSettings{method, relative, step_s},
            [&p](const SpiceSettings& s) { return run_ngspice(p, s); }, expected);
      }
    }
  }
  return all;
}

std::vector<Choice<EngineSettings>> all_of_engine(const ConverterParameters& p,
                                                  const std::vector<double>& expected) {
  std::vector<Choice<EngineSettings>> all;
  for (const auto& [integrator, stages] :
       {std::pair{StageKind::damped, 1}, std::pair{StageKind::damped, 2},
        std::pair{StageKind::automatic, 1}}) {  // which conserves here, because of the coils
    for (const double step_s : {200e-9, 100e-9, 50e-9, 25e-9, 12.5e-9, 6.25e-9}) {
      try_out(
          all, EngineSettings{integrator, stages, step_s},
          [&p](const EngineSettings& s) { return run_engine(p, s); }, expected);
    }
  }
  return all;
}

/// Both in turns, for one size.
void duel(const Report& report, const ConverterParameters& p, const std::string& what,
          const EngineSettings& ours, const SpiceSettings& theirs,
          const std::vector<double>& expected, std::optional<double> accuracy) {
  std::vector<double> process_ratios, step_ratios;
  double our_error = 0.0, their_error = 0.0, ours_s = 0.0, theirs_s = 0.0;
  const int rounds = p.cells >= 1000 ? 3 : 7;
  for (int round = 0; round < rounds; ++round) {
    const Outcome own = run_engine(p, ours), peer = run_ngspice(p, theirs);
    process_ratios.push_back(peer.process_s / own.process_s);
    step_ratios.push_back(peer.steps_s / own.steps_s);
    our_error = error_of(own.state, expected);
    their_error = error_of(peer.state, expected);
    ours_s = own.steps_s;
    theirs_s = peer.steps_s;
  }
  if (accuracy) {
    require(our_error <= kSlack * *accuracy, fmt::format("portwave, {:.1e}", our_error));
    require(their_error <= kSlack * *accuracy, fmt::format("ngspice, {:.1e}", their_error));
  }
  const std::string note = fmt::format("portwave: {}, error {:.1e}; ngspice: {}, error {:.1e}",
                                       ours.text(), our_error, theirs.text(), their_error);
  const std::string name = fmt::format("switching_converter/{} cells/{}", p.cells, what);
  report.add({.name = name + ", steps, times as fast as ngspice", .goal = 1.0, .note = note},
             step_ratios, "times as fast");
  report.add(
      {.name = name + ", with the network, times as fast as ngspice", .goal = 1.0, .note = note},
      process_ratios, "times as fast");
  fmt::print(stderr, "  {}: {:.1f} ms beside {:.1f} ms, {:.2f}\n    {}\n", name, 1e3 * ours_s,
             1e3 * theirs_s, quantile(step_ratios, 0.5), note);
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("switching_converter", 1);
  if (report.only_lists(argc, argv)) return 0;
  if (!has_spice()) {
    fmt::print(stderr, "switching_converter: no ngspice, its rows are left out\n");
    return 0;
  }
  std::vector<Choice<SpiceSettings>> spice;
  std::vector<Choice<EngineSettings>> engine;
  for (const std::size_t cells : kSizes) {
    const ConverterParameters p{.cells = cells};
    const std::vector<double> expected = reference(p);
    if (cells == kSizes.front()) {
      spice = all_of_ngspice(p, expected);
      engine = all_of_engine(p, expected);
    }
    for (const int exponent : kExponents) {
      if (cells >= 1000 && exponent > kExponents.front()) continue;  // minutes
      const double accuracy = std::pow(10.0, -exponent);
      const auto ours = fastest(engine, accuracy);
      const auto theirs = fastest(spice, accuracy);
      require(ours.has_value() && theirs.has_value(), fmt::format("nobody has 1e-{}", exponent));
      duel(report, p, fmt::format("1e-{}", exponent), ours->settings, theirs->settings, expected,
           accuracy);
    }
    duel(report, p, "equal resolution", {}, {}, expected, std::nullopt);
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "switching_converter: {}\n", error.what());
  return 1;
}
