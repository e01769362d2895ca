#include "differential/topology.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <Eigen/Dense>

namespace portwave::differential {
namespace {

/// Junctions as lists of part numbers; the ports of a part are numbered as they occur.
using Groups = std::vector<std::vector<int>>;

Groups random_groups(Random& random, const NetworkSpec& spec) {
  Groups groups;
  const int islands = std::min(spec.islands, spec.parts);
  const int shape = random.integer(0, 2);  // random tree, row, star
  for (int i = islands; i < spec.parts; ++i) {
    const int island = i % islands;
    const int members = (i - island) / islands;  // earlier parts of the island: island + k·islands
    const int k = shape == 0 ? random.integer(0, members - 1) : shape == 1 ? members - 1 : 0;
    const int parent = island + k * islands;
    // A junction of the parent takes one more part, or there is a new one.
    std::vector<std::size_t> open;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (std::find(groups[g].begin(), groups[g].end(), parent) != groups[g].end())
        open.push_back(g);
    }
    if (!open.empty() && random.chance(0.35)) {
      groups[open[static_cast<std::size_t>(random.integer(0, static_cast<int>(open.size()) - 1))]]
          .push_back(i);
    } else {
      groups.push_back({parent, i});
    }
  }
  for (int l = 0; l < spec.loops; ++l) {
    const int island = random.integer(0, islands - 1);
    std::vector<int> members;
    for (int i = island; i < spec.parts; i += islands) members.push_back(i);
    if (members.size() < 2) continue;
    const int size = std::min<int>(static_cast<int>(members.size()), random.chance(0.7) ? 2 : 3);
    std::vector<int> group;
    while (static_cast<int>(group.size()) < size) {
      const int i = members[static_cast<std::size_t>(
          random.integer(0, static_cast<int>(members.size()) - 1))];
      if (std::find(group.begin(), group.end(), i) == group.end()) group.push_back(i);
    }
    groups.push_back(std::move(group));
  }
  std::vector<bool> has_port(static_cast<std::size_t>(spec.parts), false);
  for (const auto& group : groups) {
    for (const int i : group) has_port[static_cast<std::size_t>(i)] = true;
  }
  for (int i = 0; i < spec.parts; ++i) {
    if (!has_port[static_cast<std::size_t>(i)] || random.chance(spec.ends)) groups.push_back({i});
  }
  return groups;
}

JointData random_joint(Random& random, const Network& network, const NetworkSpec& spec,
                       std::vector<PortRef> ports) {
  JointData joint;
  joint.ports = ports;
  const auto k = static_cast<int>(ports.size());
  const double pick = random.uniform(0.0, 1.0);
  if (k == 1) {
    joint.kind = pick < 0.35  ? JointKind::free
                 : pick < 0.6 ? JointKind::fixed
                              : JointKind::resistive;
    joint.value = random.chance(0.1) ? 0.0 : random.logarithmic(1e-2, 1e2);
    return joint;
  }
  if (spec.plain_joints || pick < 0.5) {
    joint.kind = k == 2 && pick < 0.35 ? JointKind::connection
                 : random.chance(0.5)  ? JointKind::common_effort
                                       : JointKind::common_flow;
    return joint;
  }
  if (k == 2 && pick < 0.75) {
    joint.kind = pick < 0.65 ? JointKind::transformer : JointKind::gyrator;
    joint.value = (random.chance(0.5) ? 1.0 : -1.0) * random.logarithmic(0.1, 10.0);
    return joint;
  }
  if (pick < 0.88) {
    joint.kind = JointKind::skew_gain;
    joint.first = random.skew(k);
    return joint;
  }
  return random_kernel(random, network, std::move(ports));
}

}  // namespace

JointData random_kernel(Random& random, const Network& network, std::vector<PortRef> ports) {
  JointData joint;
  joint.kind = JointKind::skew_gain;
  joint.ports = std::move(ports);
  const auto k = static_cast<int>(joint.ports.size());
  joint.first = random.skew(k);
  Matrix E, F;
  kernel_of(network, joint, E, F);
  const Matrix mix = random.matrix(k, k) + 2.0 * Matrix::Identity(k, k);
  joint.kind = JointKind::kernel;
  joint.first = mix * E;
  joint.second = mix * F;
  return joint;
}

void add_random_network(Random& random, const NetworkSpec& spec, Network& network) {
  const Groups groups = random_groups(random, spec);
  std::vector<int> ports(static_cast<std::size_t>(spec.parts), 0);
  const int first = static_cast<int>(network.parts.size());
  std::vector<std::vector<PortRef>> refs;
  for (const auto& group : groups) {
    refs.emplace_back();
    for (const int i : group)
      refs.back().push_back({first + i, ports[static_cast<std::size_t>(i)]++});
  }
  const int islands = std::min(spec.islands, spec.parts);
  for (int i = 0; i < spec.parts; ++i) {
    PartSpec part;
    part.ports = ports[static_cast<std::size_t>(i)];
    // Fewer states than ports make responses of low rank: now and then, with feedthrough.
    part.states = random.integer(1, spec.max_states);
    part.feedthrough = random.chance(spec.feedthrough);
    if (part.states < part.ports && !(part.feedthrough && random.chance(0.5))) {
      part.states = part.ports + random.integer(0, 1);
    }
    part.drives = random.chance(spec.driven) || (spec.at_rest && i < islands) ? 1 : 0;
    part.stiffness =
        random.power_of_two(-0.5 * spec.stiffness_decades, 0.5 * spec.stiffness_decades);
    part.gain = random.power_of_two(-0.25 * spec.gain_decades, 0.25 * spec.gain_decades);
    part.damping =
        random.chance(spec.lossless) && !part.feedthrough ? 0.0 : random.power_of_two(-4, 0.5);
    part.singular_Q = random.chance(spec.singular_Q) && part.states > part.ports + 1;
    part.at_rest = spec.at_rest;
    if (random.chance(spec.descriptors)) {
      part.states = std::max(part.states, 2);
      part.feedthrough = false;
      network.parts.push_back(descriptor_part(random, part, random.chance(0.5)));
    } else {
      network.parts.push_back(random_part(random, part));
    }
  }
  for (auto& group : refs) {
    network.joints.push_back(random_joint(random, network, spec, std::move(group)));
  }
}

void choose_step(Random& random, Network& network, double smallest, double largest) {
  double fastest = 0.0;
  for (const PartData& part : network.parts) fastest = std::max(fastest, fastest_rate(part));
  if (!(fastest > 0.0)) fastest = 1.0;
  network.step_s = random.logarithmic(smallest, largest) / fastest;
}

void choose_drives(Random& random, Network& network) {
  const double h = network.step_s;
  for (PartData& part : network.parts) {
    for (Drive& drive : part.drives) {
      drive.amplitude = (random.chance(0.5) ? 1.0 : -1.0) * random.logarithmic(0.1, 10.0);
      switch (random.integer(0, 2)) {
        case 0:
          drive.kind = Drive::Kind::constant;
          break;
        case 1:
          drive.kind = Drive::Kind::harmonic;
          drive.frequency_Hz = 1.0 / (h * random.logarithmic(20.0, 200.0));
          drive.phase_rad = random.uniform(0.0, 6.0);
          break;
        default:
          drive.kind = Drive::Kind::step;
          const int n = random.integer(0, std::max(1, network.steps / 2));
          drive.from_s = h * n;
          drive.until_s = h * (n + 0.25);
      }
    }
  }
}

bool make_active(Random& random, Network& network, double rate) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < network.parts.size(); ++i) {
    if (!network.parts[i].descriptor) order.push_back(i);
  }
  if (order.empty()) return false;
  PartData& part = network.parts[order[static_cast<std::size_t>(
      random.integer(0, static_cast<int>(order.size()) - 1))]];
  Eigen::Index k = 0;
  if (!(part.Q.diagonal().maxCoeff(&k) > 0.0)) return false;
  part.R.row(k).setZero();
  part.R.col(k).setZero();
  part.P.row(k).setZero();
  const double run = network.step_s * network.steps;
  part.R(k, k) = -std::min(rate / run, 0.2 / network.step_s) / part.Q(k, k);
  part.active = network.active = true;
  return true;
}

}  // namespace portwave::differential
