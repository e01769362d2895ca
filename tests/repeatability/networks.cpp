#include "repeatability/networks.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/catalogue/chain.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"
#include "support/systems/descriptor_parts.hpp"

namespace portwave::repeatability {
namespace {

/// A part that the general Newton batch steps, several in a batch.
class ByNewton final : public Component {
 public:
  explicit ByNewton(std::unique_ptr<Subsystem> part)
      : Component(part->signature()), part_(std::move(part)) {}
  Capabilities capabilities() const override { return part_->capabilities(); }
  const Subsystem* port_hamiltonian() const override { return part_.get(); }
  std::string batch_key() const override { return "by_newton"; }
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override {
    std::vector<const Subsystem*> physics;
    for (const Component* part : parts) physics.push_back(part->port_hamiltonian());
    return make_newton_batch(physics);
  }

 private:
  std::unique_ptr<Subsystem> part_;
};

/// A spring between its port and the ground that cannot be stretched to `reach_m`: a gradient asked for
/// beyond throws. q' = f, e = k q/(1 − (q/reach)²) + c f.
std::unique_ptr<Subsystem> walled_spring(double stiffness, double reach, double damping) {
  Hamiltonian H;
  H.value = [=](const double* x) {
    const double share = x[0] / reach;
    if (!(std::abs(share) < 1.0)) throw std::domain_error("beyond its reach");
    return -0.5 * stiffness * reach * reach * std::log1p(-share * share);
  };
  H.gradient = [=](const double* x, double* g) {
    const double share = x[0] / reach;
    if (!(std::abs(share) < 1.0)) throw std::domain_error("beyond its reach");
    g[0] = stiffness * x[0] / (1.0 - share * share);
  };
  Structure s = Structure::zero(1, 1);
  s.G.insert(0, 0) = 1.0;
  s.S.insert(0, 0) = damping;
  NonlinearPortHamiltonian::Options options;
  options.discrete_gradient = DiscreteGradient::mean_value;
  options.check_derivatives = false;
  return std::make_unique<NonlinearPortHamiltonian>(
      Signature{
          "walled_spring", {{"q", "m"}}, {{"end", Causality::flow_in, Domain::translation, 1}}, {}},
      std::move(s), std::move(H), options);
}

/// How nodes of a grid are drawn.
struct Nodes {
  double spread = 2.0;  ///< of masses, and of springs
  double least_cubic = 10.0, most_cubic = 5e4;
  double amplitude = 0.9;
  double shocks = 0.1;     ///< share of nodes that are struck now and then
  double by_newton = 0.0;  ///< share of nodes that the general solver steps
  double linear = 0.0;     ///< share of nodes without a cubic spring
};

DuffingNodeParameters random_node(Random& random, const Nodes& nodes) {
  DuffingNodeParameters p;
  p.mass_kg = random.logarithmic(0.8, 0.8 * nodes.spread);
  p.stiffness_N_per_m = random.logarithmic(10.0, 10.0 * nodes.spread);
  p.cubic_stiffness_N_per_m3 =
      random.chance(nodes.linear) ? 0.0 : random.logarithmic(nodes.least_cubic, nodes.most_cubic);
  p.damping_Ns_per_m = random.uniform(0.0, 0.1);
  p.coupling_stiffness_N_per_m = random.logarithmic(20.0, 20.0 * nodes.spread);
  p.coupling_damping_Ns_per_m = 0.05;
  return p;
}

SystemBuilder::PartOptions random_start(Random& random, const Nodes& nodes) {
  const double a = nodes.amplitude;
  SystemBuilder::PartOptions options;
  options.initial_state = {random.uniform(-a, a), random.uniform(-a, a),
                           random.uniform(-0.5 * a, 0.5 * a), random.uniform(-0.5 * a, 0.5 * a)};
  return options;
}

/// A force that comes and goes abruptly.
Signal shocks(Random& random) {
  std::vector<Signal::Knot> knots = {{0.0, 0.0}};
  double time_s = 0.0;
  const int count = random.integer(1, 4);
  for (int i = 0; i < count; ++i) {
    const double force = random.uniform(-1.0, 1.0) * random.logarithmic(10.0, 3000.0);
    time_s += random.uniform(0.05, 1.0);
    const double end_s = time_s + random.uniform(0.01, 0.1);
    for (const Signal::Knot& knot : {Signal::Knot{time_s, 0.0}, Signal::Knot{time_s + 1e-7, force},
                                     Signal::Knot{end_s, force}, Signal::Knot{end_s + 1e-7, 0.0}}) {
      knots.push_back(knot);
    }
    time_s = end_s;
  }
  return Signal::piecewise_linear(std::move(knots));
}

/// Nodes "<name>_<row>_<column>", their ends free in the west and north and held in the east and south.
/// `at_north` closes a port in the north.
template <class AtNorth>
void add_grid(SystemBuilder& builder, Random& random, const std::string& name, int rows,
              int columns, const Nodes& nodes, const AtNorth& at_north) {
  const auto node = [&](int i, int j) { return fmt::format("{}_{}_{}", name, i, j); };
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      SystemBuilder::PartOptions options = random_start(random, nodes);
      if (random.chance(nodes.shocks)) {
        options.inputs = {{"force", shocks(random)}};
      } else if (random.chance(0.1)) {
        options.inputs = {{"force", Signal::sine_product(random.uniform(1.0, 20.0),
                                                         {{random.uniform(0.2, 3.0), 0.1}})}};
      }
      std::unique_ptr<Subsystem> part = duffing_node(random_node(random, nodes));
      if (random.chance(nodes.by_newton)) {
        builder.add(node(i, j), std::make_shared<const ByNewton>(std::move(part)),
                    std::move(options));
      } else {
        builder.add(node(i, j), std::move(part), std::move(options));
      }
    }
  }
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      if (j + 1 < columns) {
        builder.connect(node(i, j) + ".east", node(i, j + 1) + ".west");
      } else {
        builder.join(joint::Fixed{}, {node(i, j) + ".east"});
      }
      if (i + 1 < rows) {
        builder.connect(node(i, j) + ".south", node(i + 1, j) + ".north");
      } else {
        builder.join(joint::Fixed{}, {node(i, j) + ".south"});
      }
      if (j == 0) builder.join(joint::Free{}, {node(i, j) + ".west"});
      if (i == 0) at_north(node(i, j) + ".north");
    }
  }
}

void add_grid(SystemBuilder& builder, Random& random, const std::string& name, int rows,
              int columns, const Nodes& nodes) {
  add_grid(builder, random, name, rows, columns, nodes,
           [&](const std::string& port) { builder.join(joint::Free{}, {port}); });
}

/// Duffing nodes that differ by two decades, at large amplitudes, some of which are struck.
void add_struck_grid(SystemBuilder& builder, Random& random, int rows, int columns) {
  Nodes nodes;
  nodes.spread = 100.0;
  nodes.least_cubic = 800.0;
  nodes.most_cubic = 8e4;
  nodes.amplitude = 1.5;
  nodes.shocks = 0.2;
  add_grid(builder, random, "n", rows, columns, nodes);
}

void struck(SystemBuilder& builder, Random& random, Traits& /*traits*/) {
  add_struck_grid(builder, random, random.integer(6, 10), random.integer(6, 10));
}

void grid(SystemBuilder& builder, Random& random, Traits& /*traits*/) {
  Nodes nodes;
  nodes.spread = random.logarithmic(1.5, 100.0);
  nodes.amplitude = random.logarithmic(0.1, 3.0);
  nodes.most_cubic = random.logarithmic(100.0, 1e5);
  nodes.shocks = random.uniform(0.0, 0.3);
  add_grid(builder, random, "n", random.integer(3, 9), random.integer(3, 9), nodes);
}

/// Several of them, small and large ones, so that some islands are cut into tasks and others share one.
void grids(SystemBuilder& builder, Random& random, Traits& /*traits*/) {
  const int count = random.integer(2, 5);
  for (int i = 0; i < count; ++i) {
    Nodes nodes;
    nodes.spread = random.logarithmic(1.5, 100.0);
    nodes.amplitude = random.logarithmic(0.05, 1.2);
    nodes.linear = random.chance(0.3) ? 1.0 : 0.2;
    const bool is_large = i < 2 && random.chance(0.6);
    add_grid(builder, random, "g" + std::to_string(i),
             is_large ? random.integer(8, 9) : random.integer(1, 4),
             is_large ? random.integer(8, 9) : random.integer(1, 4), nodes);
  }
}

/// Small islands only, some of whose nodes the general solver steps.
void pairs(SystemBuilder& builder, Random& random, Traits& /*traits*/) {
  const int count = random.integer(3, 25);
  for (int i = 0; i < count; ++i) {
    Nodes nodes;
    nodes.amplitude = random.logarithmic(0.05, 1.2);
    nodes.by_newton = random.chance(0.5) ? 0.5 : 0.0;
    add_grid(builder, random, "p" + std::to_string(i), random.integer(1, 2), random.integer(1, 3),
             nodes);
  }
}

void newton_grid(SystemBuilder& builder, Random& random, Traits& /*traits*/) {
  Nodes nodes;
  nodes.amplitude = random.logarithmic(0.1, 1.0);
  nodes.most_cubic = 1e4;
  nodes.by_newton = random.uniform(0.3, 1.0);
  add_grid(builder, random, "n", random.integer(2, 5), random.integer(2, 6), nodes);
}

/// A line that rubs, and runs into things.
void brakes(SystemBuilder& builder, Random& random, Traits& /*traits*/) {
  const int lines = random.integer(1, 3);
  for (int line = 0; line < lines; ++line) {
    Nodes nodes;
    nodes.amplitude = random.logarithmic(0.1, 1.0);
    nodes.linear = 0.7;
    const std::string name = "l" + std::to_string(line);
    int number = 0;
    add_grid(builder, random, name, 1, random.integer(3, 30), nodes, [&](const std::string& port) {
      const std::string own = fmt::format("{}_e{}", name, number++);
      const int kind = random.integer(0, 3);
      if (kind == 0) return static_cast<void>(builder.join(joint::Free{}, {port}));
      if (kind == 1) {
        builder.add(own, make_part("coulomb_damper",
                                   {{"friction_N", random.uniform(1.0, 20.0)},
                                    {"creep_speed_m_per_s", random.logarithmic(1e-5, 1e-1)}}));
        return static_cast<void>(builder.connect(own + ".end", port));
      }
      builder.add(own, make_part("contact", {{"force_N", random.uniform(10.0, 1000.0)},
                                             {"compression_m", 0.01},
                                             {"damping_s_per_m", random.uniform(0.0, 1.0)},
                                             {"gap_m", random.uniform(0.0, 0.2)}}));
      static_cast<void>(builder.connect(own + ".face", port));
    });
  }
}

/// Lines with springs that a trial may overstretch; beside one another, so that they share a task.
void walls(SystemBuilder& builder, Random& random, Traits& /*traits*/) {
  const int lines = random.integer(1, 4);
  for (int line = 0; line < lines; ++line) {
    Nodes nodes;
    nodes.amplitude = random.logarithmic(0.05, 0.7);
    nodes.by_newton = random.chance(0.5) ? 0.4 : 0.0;
    const std::string name = "w" + std::to_string(line);
    int number = 0;
    add_grid(builder, random, name, 1, random.integer(2, 12), nodes, [&](const std::string& port) {
      if (random.chance(0.4)) {
        return static_cast<void>(builder.join(joint::Free{}, {port}));
      }
      const std::string own = fmt::format("{}_s{}", name, number++);
      const double reach = random.logarithmic(0.2, 3.0);
      builder.add(
          own, walled_spring(random.logarithmic(10.0, 1e3), reach, random.logarithmic(0.1, 30.0)),
          {.initial_state = {random.uniform(-0.7, 0.7) * reach}});
      static_cast<void>(builder.connect(own + ".end", port));
    });
  }
}

/// A ladder of saturating inductors, capacitors, resistors and diodes.
void circuit(SystemBuilder& builder, Random& random, Traits& /*traits*/) {
  const int ladders = random.integer(1, 2);
  for (int k = 0; k < ladders; ++k) {
    const int cells = random.integer(2, 12);
    const auto name = [&](const char* what, int i) { return fmt::format("{}{}_{}", what, k, i); };
    for (int i = 0; i < cells; ++i) {
      builder.add(
          name("L", i),
          make_part("saturating_inductor", {{"inductance_H", random.logarithmic(1e-3, 1e-1)},
                                            {"saturation_flux_Vs", random.logarithmic(1e-3, 1e-1)},
                                            {"resistance_ohm", random.uniform(0.0, 0.5)}}),
          {.initial_state = {random.uniform(-0.02, 0.02)}});
      builder.add(name("C", i),
                  make_part("capacitor", {{"capacitance_F", random.logarithmic(1e-4, 1e-2)}}),
                  {.initial_state = {random.uniform(-10.0, 10.0)}});
      builder.add(name("T", i), make_part("electrical_transformer", {{"ratio", 1.0}}));
      std::vector<std::string> node = {name("C", i) + ".terminals", name("T", i) + ".secondary"};
      if (random.chance(0.4)) {
        builder.add(name("D", i),
                    make_part("diode", {{"saturation_current_A", random.logarithmic(1e-9, 1e-4)},
                                        {"emission_coefficient", 2.0}}));
        node.push_back(name("D", i) + ".terminals");
      }
      if (random.chance(0.4)) {
        builder.add(name("R", i),
                    make_part("resistor", {{"resistance_ohm", random.logarithmic(0.1, 100.0)}}));
        node.push_back(name("R", i) + ".terminals");
      }
      if (i + 1 < cells) {
        builder.add(name("U", i), make_part("electrical_transformer", {{"ratio", 1.0}}));
        node.push_back(name("U", i) + ".primary");
      }
      builder.join(joint::CommonEffort{}, node);
      std::vector<std::string> loop = {name("L", i) + ".terminals", name("T", i) + ".primary"};
      if (i > 0) loop.push_back(name("U", i - 1) + ".secondary");
      builder.join(joint::CommonFlow{}, loop);
    }
  }
}

/// Blocks of masses and springs, some driven, among them one that differs.
void chain(SystemBuilder& builder, Random& random, Traits& traits) {
  traits.is_linear = true;
  const int lines = random.integer(1, 3);
  const bool is_damped = random.chance(0.5);  // then two parts share dampers
  for (int line = 0; line < lines; ++line) {
    const int blocks = random.integer(2, 30);
    const auto name = [&](int i) { return fmt::format("c{}_{}", line, i); };
    const int usual = random.integer(1, 4);
    for (int i = 0; i < blocks; ++i) {
      const int masses = random.chance(0.2) ? random.integer(1, 8) : usual;
      const bool is_last = i + 1 == blocks;
      std::vector<double> x(static_cast<std::size_t>(2 * masses + (is_last ? 0 : 1)));
      for (double& value : x) value = random.uniform(-0.2, 0.2);
      SystemBuilder::PartOptions options;
      options.initial_state = std::move(x);
      if (random.chance(0.3)) {
        options.inputs = {
            {fmt::format("force_{}", random.integer(1, masses)),
             Signal::sine_product(random.uniform(0.5, 5.0), {{random.uniform(0.2, 3.0), 0.2}})}};
      }
      builder.add(name(i),
                  mass_spring_damper_chain(
                      {.masses = masses,
                       .mass_kg = random.uniform(0.2, 2.0),
                       .stiffness_N_per_m = random.uniform(10.0, 200.0),
                       .damping_Ns_per_m = random.uniform(0.0, 0.2),
                       .coupling_stiffness_N_per_m = random.uniform(20.0, 100.0),
                       .coupling_damping_Ns_per_m = is_damped ? random.uniform(0.0, 0.1) : 0.0,
                       .right_end = is_last ? ChainEnd::mass : ChainEnd::spring}),
                  std::move(options));
    }
    for (int i = 0; i + 1 < blocks; ++i) {
      builder.connect(name(i) + ".right", name(i + 1) + ".left");
    }
    builder.join(joint::Free{}, {name(0) + ".left"});
    builder.join(joint::Free{}, {name(blocks - 1) + ".right"});
  }
}

struct Family {
  std::string name;
  void (*add)(SystemBuilder&, Random&, Traits&);
};

const std::vector<Family>& all() {
  static const std::vector<Family> kAll = {
      {"grid", grid},   {"struck", struck},      {"grids", grids},
      {"pairs", pairs}, {"newton", newton_grid}, {"brakes", brakes},
      {"walls", walls}, {"circuit", circuit},    {"chain", chain}};
  return kAll;
}

}  // namespace

Random::Random(std::uint64_t seed, std::string_view purpose) : state_(1469598103934665603ULL) {
  for (const char c : purpose) {
    state_ = (state_ ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  }
  state_ ^= seed * 0x9E3779B97F4A7C15ULL;
  bits();
}

std::uint64_t Random::bits() {
  std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

double Random::uniform(double from, double to) {
  return from + (to - from) * (static_cast<double>(bits() >> 11) * 0x1p-53);
}

double Random::logarithmic(double from, double to) {
  return std::exp(uniform(std::log(from), std::log(to)));
}

int Random::integer(int from, int to) {
  return from + static_cast<int>(bits() % static_cast<std::uint64_t>(to - from + 1));
}

const std::vector<std::string>& families() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const Family& family : all()) names.push_back(family.name);
    return names;
  }();
  return kNames;
}

namespace {

/// Of the same matrices as a chain's, with sparse step maps.
std::unique_ptr<Subsystem> sparse_chain(const ChainParameters& parameters) {
  const auto chain = mass_spring_damper_chain(parameters);
  return std::make_unique<LinearPortHamiltonian>(
      chain->signature(), chain->structure(), *chain->linear_form().Q,
      LinearPortHamiltonian::Options{.storage = StepMapStorage::sparse});
}

void add_line(SystemBuilder& builder, Random& random, LineKind kind, const std::string& line,
              int parts, Drive drive, int substeps) {
  const auto name = [&](int i) { return fmt::format("{}{}", line, i); };
  const bool is_chain = kind == LineKind::dense || kind == LineKind::sparse;
  const bool is_descriptor = kind == LineKind::descriptor;
  for (int i = 0; i < parts; ++i) {
    SystemBuilder::PartOptions options;
    options.substeps = substeps;
    const bool is_driven = drive == Drive::all || drive == Drive::settable ||
                           (drive == Drive::first && i == 0) ||
                           (drive == Drive::last && i + 1 == parts);
    const char* const input = is_chain ? "force_1" : is_descriptor ? "source" : "force";
    if (is_driven) {
      options.inputs = {{input, drive == Drive::settable
                                    ? Signal::settable(0.5)
                                    : Signal::sine_product(random.uniform(0.5, 5.0),
                                                           {{random.uniform(0.2, 3.0), 0.2}})}};
    }
    if (is_descriptor) {
      builder.add(name(i), testing::rc_ladder(random.integer(2, 4)), std::move(options));
    } else if (is_chain) {
      const int masses = random.integer(1, 3);
      options.initial_state.assign(static_cast<std::size_t>(2 * masses + 1), 0.0);
      options.initial_state[0] = random.uniform(-0.3, 0.3);
      const ChainParameters parameters{.masses = masses,
                                       .mass_kg = random.uniform(0.5, 1.0),
                                       .stiffness_N_per_m = 60.0,
                                       .damping_Ns_per_m = 0.1,
                                       .coupling_stiffness_N_per_m = 50.0};
      builder.add(
          name(i),
          kind == LineKind::dense ? mass_spring_damper_chain(parameters) : sparse_chain(parameters),
          std::move(options));
    } else {
      const Nodes nodes{.most_cubic = 1e3, .amplitude = 0.3};
      options.initial_state = random_start(random, nodes).initial_state;
      std::unique_ptr<Subsystem> node = duffing_node(random_node(random, nodes));
      if (kind == LineKind::newton) {
        builder.add(name(i), std::make_shared<const ByNewton>(std::move(node)), std::move(options));
      } else {
        builder.add(name(i), std::move(node), std::move(options));
      }
      builder.join(joint::Free{}, {name(i) + ".north"});
      builder.join(joint::Fixed{}, {name(i) + ".south"});
    }
  }
  const std::string left = is_chain || is_descriptor ? ".left" : ".west";
  const std::string right = is_chain || is_descriptor ? ".right" : ".east";
  for (int i = 0; i + 1 < parts; ++i) {
    if (is_descriptor) {
      builder.join(joint::Gyrator{0.8}, {name(i) + right, name(i + 1) + left});
    } else {
      builder.connect(name(i) + right, name(i + 1) + left);
    }
  }
  if (is_descriptor) {
    builder.join(joint::Resistive{1.0}, {name(0) + left});
    builder.join(joint::Resistive{2.0}, {name(parts - 1) + right});
  } else {
    builder.join(joint::Free{}, {name(0) + left});
    builder.join(joint::Fixed{}, {name(parts - 1) + right});
  }
}

}  // namespace

System driven_line(LineKind kind, int parts, Drive drive, int substeps, std::uint64_t seed) {
  Random random(seed);
  SystemBuilder builder;
  if (kind != LineKind::all) {
    add_line(builder, random, kind, "n", parts, drive, substeps);
    return builder.build();
  }
  for (const LineKind own : {LineKind::dense, LineKind::sparse, LineKind::descriptor,
                             LineKind::duffing, LineKind::newton}) {
    add_line(builder, random, own, fmt::format("k{}_", static_cast<int>(own)), parts, drive,
             substeps);
  }
  return builder.build();
}

System struck_grid(int rows, int columns, std::uint64_t seed) {
  Random random(seed);
  SystemBuilder builder;
  add_struck_grid(builder, random, rows, columns);
  return builder.build();
}

System make_network(const std::string& family, std::uint64_t seed, Traits* traits) {
  const auto found = std::ranges::find(all(), family, &Family::name);
  if (found == all().end()) throw std::invalid_argument("no such family: " + family);
  Random random(seed, family);
  SystemBuilder builder;
  Traits own;
  found->add(builder, random, own);
  System system = builder.build();
  own.parts = static_cast<int>(system.parts().size());
  for (const Part& part : system.parts()) {
    if (!staging_defect(*part.component).empty()) own.most_stages = 1;
  }
  if (traits != nullptr) *traits = own;
  return system;
}

}  // namespace portwave::repeatability
