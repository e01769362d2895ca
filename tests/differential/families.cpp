#include "differential/families.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <utility>

#include "differential/parts.hpp"
#include "differential/random.hpp"
#include "differential/topology.hpp"
#include "differential/units.hpp"

namespace portwave::differential {
namespace {

NetworkSpec usual(Random& random) {
  NetworkSpec spec;
  spec.parts = random.integer(1, random.chance(0.5) ? 4 : 12);
  spec.driven = random.chance(0.5) ? 0.0 : 0.4;
  spec.descriptors = random.chance(0.3) ? 0.3 : 0.0;
  spec.plain_joints = random.chance(0.3);
  return spec;
}

/// Three in ten are written in other units.
void maybe_change_units(Random& random, Network& network) {
  if (!random.chance(0.3)) return;
  change_units(random, network, random.power_of_two(-9.0, 9.0), random.uniform(0.0, 9.0), false);
}

void finish(Random& random, Network& network, double smallest, double largest, int steps) {
  network.steps = steps;
  choose_step(random, network, smallest, largest);
  choose_drives(random, network);
}

void trees(Random& random, Network& network) {
  add_random_network(random, usual(random), network);
  finish(random, network, 1e-4, 1e2, random.integer(20, 100));
}

void loops(Random& random, Network& network) {
  NetworkSpec spec = usual(random);
  spec.parts = std::max(spec.parts, 2);
  spec.loops = random.integer(1, 1 + spec.parts / 2);
  add_random_network(random, spec, network);
  finish(random, network, 1e-4, 1e2, random.integer(20, 100));
}

void islands(Random& random, Network& network) {
  NetworkSpec spec = usual(random);
  spec.parts = random.integer(3, 12);
  spec.islands = random.integer(2, 4);
  spec.loops = random.integer(0, 2);
  spec.stiffness_decades = random.uniform(0.0, 4.0);
  add_random_network(random, spec, network);
  finish(random, network, 1e-4, 1e2, random.integer(20, 60));
}

void descriptors(Random& random, Network& network) {
  NetworkSpec spec = usual(random);
  spec.descriptors = random.uniform(0.5, 1.0);
  spec.loops = random.integer(0, 1);
  spec.max_states = 5;
  add_random_network(random, spec, network);
  finish(random, network, 1e-4, 1e2, random.integer(20, 60));
}

void spread(Random& random, Network& network) {
  NetworkSpec spec = usual(random);
  spec.stiffness_decades = random.uniform(0.0, 8.0);
  spec.gain_decades = random.uniform(0.0, 8.0);
  spec.loops = random.chance(0.3) ? random.integer(1, 2) : 0;
  add_random_network(random, spec, network);
  finish(random, network, 1e-3, 1e4, random.integer(20, 60));
}

void units(Random& random, Network& network) {
  NetworkSpec spec = usual(random);
  spec.loops = random.chance(0.3) ? 1 : 0;
  add_random_network(random, spec, network);
  finish(random, network, 1e-4, 1e2, random.integer(20, 60));
  change_units(random, network, random.power_of_two(-9.0, 9.0), random.uniform(0.0, 9.0),
               random.chance(0.5));
}

void large_steps(Random& random, Network& network) {
  NetworkSpec spec = usual(random);
  spec.loops = random.chance(0.3) ? 1 : 0;
  spec.stiffness_decades = random.chance(0.5) ? 0.0 : random.uniform(0.0, 3.0);
  add_random_network(random, spec, network);
  finish(random, network, 1.0, 1e8, random.integer(20, 100));
}

void from_rest(Random& random, Network& network) {
  NetworkSpec spec = usual(random);
  spec.at_rest = true;
  spec.driven = 0.4;
  spec.loops = random.chance(0.3) ? 1 : 0;
  spec.stiffness_decades = random.uniform(0.0, 4.0);
  add_random_network(random, spec, network);
  finish(random, network, 1e-4, 1e2, random.integer(20, 100));
  maybe_change_units(random, network);
}

/// Springs with a free end that inputs move, alone or before other springs.
void free_ends(Random& random, Network& network) {
  const int springs = random.integer(1, 3);
  for (int i = 0; i < springs; ++i) {
    PartData part = PartData::zero(1, 1 + (i > 0 ? 1 : 0), 1);
    part.Q(0, 0) = random.logarithmic(1e-3, 1e6);
    part.G.setOnes();
    part.effort_in.assign(part.effort_in.size(), false);
    if (random.chance(0.3)) part.S(0, 0) = random.logarithmic(1e-4, 1.0) * part.Q(0, 0);
    network.parts.push_back(part);
    network.joints.push_back({JointKind::free, {{i, 0}}, 0.0, {}, {}});
  }
  // The others are joined to the last spring's second port by a mass.
  for (int i = 1; i < springs; ++i) {
    PartData mass = PartData::zero(1, 1, 0);
    mass.Q(0, 0) = random.logarithmic(1e-2, 1e2);
    mass.G(0, 0) = 1.0;
    network.parts.push_back(mass);
    network.joints.push_back({JointKind::connection,
                              {{i, 1}, {static_cast<int>(network.parts.size()) - 1, 0}},
                              0.0,
                              {},
                              {}});
  }
  finish(random, network, 1e-3, 10.0, random.integer(10, 60));
  for (PartData& part : network.parts) {
    for (Drive& drive : part.drives) {
      drive.kind = Drive::Kind::constant;
      drive.amplitude = random.logarithmic(1e-3, 1e3);
    }
  }
  if (random.chance(0.5)) {
    for (PartData& part : network.parts) part.start = 1e-3 * random.matrix(part.states(), 1).col(0);
  }
  maybe_change_units(random, network);
}

/// Blocks of a chain, joined by springs; ends free.
void make_chain(Random& random, Network& network, int blocks, double decades, int fewest_masses) {
  const double mass = random.logarithmic(0.1, 10.0), stiffness = random.power_of_two(0.0, 4.0);
  for (int i = 0; i < blocks; ++i) {
    BlockSpec block;
    block.masses = random.integer(fewest_masses, 4);
    block.mass = mass;
    block.stiffness = stiffness * random.power_of_two(-0.5 * decades, 0.5 * decades);
    block.spring = i + 1 < blocks ? block.stiffness : 0.0;
    network.parts.push_back(chain_block(block));
    if (i > 0) network.joints.push_back({JointKind::connection, {{i - 1, 1}, {i, 0}}, 0.0, {}, {}});
  }
  network.joints.push_back({JointKind::free, {{0, 0}}, 0.0, {}, {}});
  network.joints.push_back({JointKind::free, {{blocks - 1, 1}}, 0.0, {}, {}});
}

/// All masses of a chain are moved and pushed alike.
void move_chain(Network& network, double offset, double velocity) {
  for (PartData& part : network.parts) {
    const int m = part.states() / 2;
    for (int i = 0; i < m; ++i) {
      part.start[i] += offset;
      part.start[m + i] += velocity / part.Q(m + i, m + i);
    }
  }
}

void displace_one(Random& random, Network& network, double elongation) {
  PartData& part = network.parts[static_cast<std::size_t>(
      random.integer(0, static_cast<int>(network.parts.size()) - 1))];
  part.start[random.integer(0, part.states() / 2 - 1)] += elongation;
}

void coasting(Random& random, Network& network) {
  make_chain(random, network, random.integer(1, 5), random.chance(0.5) ? 0.0 : 4.0, 1);
  finish(random, network, 1e-3, 3.0, random.chance(0.2) ? 2000 : random.integer(50, 300));
  const double velocity = random.logarithmic(1e-2, 1e3);
  // It travels up to 1e7 elongations within the run.
  const double travel = velocity * network.step_s * network.steps;
  move_chain(network, 0.0, velocity);
  displace_one(random, network, random.chance(0.2) ? 0.0 : travel * random.logarithmic(1e-7, 1.0));
  maybe_change_units(random, network);
}

void far_away(Random& random, Network& network) {
  make_chain(random, network, random.integer(1, 5), random.chance(0.5) ? 0.0 : 4.0, 2);
  const double elongation = random.logarithmic(1e-4, 1.0);
  displace_one(random, network, elongation);
  move_chain(network, elongation * random.logarithmic(1.0, 1e8), 0.0);
  finish(random, network, 1e-3, 3.0, random.chance(0.2) ? 2000 : random.integer(50, 300));
  maybe_change_units(random, network);
}

void elements(Random& random, Network& network) {
  ElementSpec spec;
  spec.beam = random.chance(0.5);
  spec.length = random.power_of_two(-1.0, 1.0);
  spec.rigidity = random.logarithmic(1.0, 1e6);
  spec.density = random.logarithmic(0.1, 10.0);
  spec.damping = random.chance(0.3) ? random.logarithmic(1e-8, 1e-5) : 0.0;
  const int pieces = random.integer(1, 4), dofs = spec.beam ? 2 : 1;
  const bool clamped = random.chance(0.3);
  for (int i = 0; i < pieces; ++i) {
    spec.elements = random.integer(1, spec.beam ? 2 : 3);
    network.parts.push_back(element_piece(spec));
    for (int d = 0; d < dofs; ++d) {
      if (i == 0) {
        network.joints.push_back(
            {clamped ? JointKind::fixed : JointKind::free, {{0, d}}, 0.0, {}, {}});
      } else {
        network.joints.push_back(
            {JointKind::common_flow, {{i - 1, dofs + d}, {i, d}}, 0.0, {}, {}});
      }
      if (i + 1 == pieces) {
        network.joints.push_back({JointKind::free, {{i, dofs + d}}, 0.0, {}, {}});
      }
    }
  }
  const double elongation = random.logarithmic(1e-4, 1e-1);
  const double offset = clamped ? 0.0 : elongation * random.logarithmic(1.0, 1e8);
  for (PartData& part : network.parts) {
    const int N = part.states() / 2;
    for (int k = 0; k < N; k += dofs) part.start[k] = offset;
  }
  // A deflection of one node; where pieces meet, of both.
  PartData& last = network.parts.back();
  last.start[last.states() / 2 - dofs] += elongation;
  finish(random, network, 1e-2, random.chance(0.3) ? 1e3 : 10.0,
         random.chance(0.1) ? 2000 : random.integer(30, 200));
  maybe_change_units(random, network);
}

/// Everything is damped: states become denormal, and zero.
void decay(Random& random, Network& network) {
  NetworkSpec spec = usual(random);
  spec.parts = random.integer(1, 3);
  spec.driven = spec.lossless = spec.singular_Q = 0.0;
  spec.feedthrough = 0.3;
  spec.max_states = 2;
  add_random_network(random, spec, network);
  for (PartData& part : network.parts) {
    part.R +=
        (part.R.norm() + part.J.norm() + 1.0) * Matrix::Identity(part.states(), part.states());
  }
  finish(random, network, 0.5, 2.0, random.integer(400, 1500));
}

void large_trees(Random& random, Network& network) {
  NetworkSpec spec;
  spec.parts = random.integer(40, random.chance(0.2) ? 200 : 80);
  spec.driven = 0.05;
  spec.max_states = 4;
  spec.plain_joints = random.chance(0.5);
  spec.stiffness_decades = random.uniform(0.0, 5.0);
  add_random_network(random, spec, network);
  finish(random, network, 1e-2, 1e3, 10);
}

void kernels(Random& random, Network& network) {
  NetworkSpec spec = usual(random);
  spec.parts = random.integer(2, 5);
  spec.ends = 0.0;
  spec.loops = random.integer(0, 2);
  add_random_network(random, spec, network);
  for (JointData& joint : network.joints) {
    if (joint.ports.size() > 1) joint = random_kernel(random, network, joint.ports);
  }
  finish(random, network, 1e-3, 1e2, random.integer(20, 60));
  if (random.chance(0.3)) change_units(random, network, 1.0, random.uniform(0.0, 9.0), false);
}

void long_runs(Random& random, Network& network) {
  NetworkSpec spec = usual(random);
  spec.parts = random.integer(1, 3);
  spec.max_states = 3;
  spec.loops = random.chance(0.3) ? 1 : 0;
  add_random_network(random, spec, network);
  finish(random, network, 1e-2, 1e1, 2000);
}

/// Masses on a grid, each at a junction of its own with the springs to its neighbours.
void grids(Random& random, Network& network) {
  const int rows = random.integer(2, 6), columns = random.integer(2, 6);
  const double decades = random.chance(0.5) ? 0.0 : random.uniform(0.0, 5.0);
  std::vector<std::vector<PortRef>> node(static_cast<std::size_t>(rows * columns));
  for (int k = 0; k < rows * columns; ++k) {
    PartData mass = PartData::zero(1, 1, 0);
    mass.Q(0, 0) = 1.0 / random.logarithmic(0.5, 2.0);
    mass.G(0, 0) = 1.0;
    mass.start[0] = random.chance(0.3) ? random.uniform(-1.0, 1.0) : 0.0;
    network.parts.push_back(mass);
    node[static_cast<std::size_t>(k)].push_back({k, 0});
  }
  const auto spring = [&](int a, int b) {
    PartData part = PartData::zero(1, 2, 0);
    part.Q(0, 0) = random.power_of_two(-0.5 * decades, 0.5 * decades);
    part.G << 1.0, -1.0;
    part.effort_in = {false, false};
    // Without it both ends have one response between them.
    if (random.chance(0.5)) part.S(0, 0) = part.S(1, 1) = 0.01 * part.Q(0, 0);
    if (part.S(0, 0) > 0.0) part.S(0, 1) = part.S(1, 0) = -0.01 * part.Q(0, 0);
    const int number = static_cast<int>(network.parts.size());
    network.parts.push_back(part);
    node[static_cast<std::size_t>(a)].push_back({number, 0});
    node[static_cast<std::size_t>(b)].push_back({number, 1});
  };
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      if (j + 1 < columns) spring(i * columns + j, i * columns + j + 1);
      if (i + 1 < rows) spring(i * columns + j, (i + 1) * columns + j);
    }
  }
  for (auto& ports : node) {
    network.joints.push_back({JointKind::common_flow, std::move(ports), 0.0, {}, {}});
  }
  // Springs and masses have no rate by themselves.
  network.steps = 20;
  network.step_s = random.logarithmic(1e-3, 10.0);
}

using Maker = std::function<void(Random&, Network&)>;

const std::vector<std::pair<std::string, Maker>>& makers() {
  static const std::vector<std::pair<std::string, Maker>> list = {
      {"trees", trees},
      {"loops", loops},
      {"islands", islands},
      {"descriptors", descriptors},
      {"spread", spread},
      {"units", units},
      {"large_steps", large_steps},
      {"from_rest", from_rest},
      {"free_ends", free_ends},
      {"coasting", coasting},
      {"far_away", far_away},
      {"elements", elements},
      {"decay", decay},
      {"large_trees", large_trees},
      {"grids", grids},
      {"kernels", kernels},
      {"long_runs", long_runs},
  };
  return list;
}

}  // namespace

const std::vector<std::string>& families() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const auto& [name, maker] : makers()) list.push_back(name);
    return list;
  }();
  return names;
}

std::vector<std::string> families_of_box(const std::string& box) {
  if (box == "all") return families();
  if (box == "guard") {
    return {"coasting",    "far_away", "elements", "free_ends", "from_rest",
            "large_steps", "units",    "decay",    "long_runs"};
  }
  if (box == "matrices") {
    return {"trees", "loops",   "islands",     "descriptors", "spread",
            "units", "kernels", "large_trees", "grids"};
  }
  if (std::find(families().begin(), families().end(), box) != families().end()) return {box};
  throw std::invalid_argument("there is no box or family \"" + box + "\"");
}

Network make_case(const std::string& family, std::uint64_t seed) {
  for (const auto& [name, maker] : makers()) {
    if (name != family) continue;
    Network network;
    network.family = family;
    network.seed = seed;
    Random random(family, seed);
    maker(random, network);
    // Controls have few steps: what they create must not overflow.
    if (seed % 10 >= 7) {
      network.steps = std::min(network.steps, 60);
      make_active(random, network, random.logarithmic(0.1, 5.0));
    }
    return network;
  }
  throw std::invalid_argument("there is no family \"" + family + "\"");
}

}  // namespace portwave::differential
