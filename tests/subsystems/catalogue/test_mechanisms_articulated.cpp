// Trees of rigid bodies: against Lagrange's equations of other coordinates, solved elsewhere
// (tests/agreement/articulated_reference.py), against the catalogue's other mechanisms, and their laws.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "nonlinear/gradients_side_by_side.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/idle/idle_ports.hpp"
#include "support/free_motion.hpp"

namespace portwave::test_mechanisms_articulated {
namespace {

using Numbers = std::vector<double>;
using Texts = std::vector<std::string>;

std::shared_ptr<const Component> part_of(Parameters parameters) {
  return make_part("articulated", std::move(parameters));
}

double distance(const Numbers& a, const Numbers& b) {
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return a.size() == b.size() ? largest : std::numeric_limits<double>::infinity();
}

/// A tree and its motion from one state to another.
struct Reference {
  Parameters parameters;
  double time_s;
  Numbers start, end;
};

/// Turns, slides along a skew axis, turns again; a second limb on the first body.
Reference crane() {
  return {{{"joints", Texts{"revolute", "prismatic", "revolute", "revolute"}},
           {"parents", Numbers{0, 1, 2, 1}},
           {"places_m", MatrixRows{{0, 0, 0.5}, {0.3, 0.1, 0}, {-0.2, 0, 0.2}, {0, -0.3, 0}}},
           {"turns_rad", MatrixRows{{0.2, 0, 0}, {0, 0.4, 0}, {0, 0, 1}, {0, 0, 0}}},
           {"axes", MatrixRows{{0, 1, 1}, {1, 1, 0}, {1, 0, 0}, {0, 1, 0}}},
           {"masses_kg", Numbers{3, 1, 2, 0.8}},
           {"centres_m", MatrixRows{{0, 0.1, 0}, {0.1, 0, 0.2}, {0.1, 0, 0.1}, {0, 0, -0.3}}},
           {"inertias_kgm2", MatrixRows{{1, 0.1, 0, 1.5, 0, 2},
                                        {0.1, 0, 0, 0.2, 0, 0.15},
                                        {0.3, 0.02, 0, 0.2, 0, 0.4},
                                        {0.02, 0, 0.001, 0.02, 0, 0.01}}},
           {"damping", Numbers{0.3, 0.5, 0.1, 0}}},
          1.0,
          {0.4, 0.2, -0.5, 0.7, 1.34138398972645, -0.463161006900436, 0.357292648894203,
           -0.0605427915634097},
          {1.04384237487148, 1.15938394783884, 1.88477524525646, -0.515259364092553,
           4.97379752224012, 7.30845677081316, 1.45422752850927, 0.400439518807029}};
}

/// Two bodies on ball joints.
Reference balls() {
  return {{{"joints", Texts{"spherical", "spherical"}},
           {"places_m", MatrixRows{{0, 0, 1}, {0, 0, -0.8}}},
           {"turns_rad", MatrixRows{{0, 0, 0}, {0.3, 0, 0}}},
           {"masses_kg", Numbers{2, 1}},
           {"centres_m", MatrixRows{{0, 0.1, -0.4}, {0.05, 0, -0.3}}},
           {"inertias_kgm2",
            MatrixRows{{0.2, 0, 0.01, 0.25, 0, 0.05}, {0.06, 0, 0, 0.05, 0.004, 0.02}}}},
          0.8,
          {0.967184147320475, 0.126116507086485, -0.210078648366929, 0.0672042655833245,
           0.956937406927354, 0.228948642746032, 0.132430547390797, -0.119647266269122,
           0.735041759061517, 1.04561514934439, 0.161275858615648, 0.0413521550883734,
           0.237870375385805, 0.0088729281515851},
          {0.888322769412, -0.198728451839983, 0.175397427643127, 0.375000536199153,
           0.693976480747616, -0.0181511916761282, 0.201719576977207, -0.690924301695944,
           -1.75186018270979, 1.51209127598189, 0.240338619250071, -0.328794409272561,
           -0.267660888889978, -0.0682504589586286}};
}

/// A free body with two arms.
Reference satellite() {
  return {
      {{"joints", Texts{"free", "revolute", "revolute"}},
       {"parents", Numbers{0, 1, 1}},
       {"places_m", MatrixRows{{0, 0, 0}, {0.3, 0, 0.1}, {-0.3, 0.1, 0}}},
       {"turns_rad", MatrixRows{{0, 0, 0}, {0, 0.5, 0}, {0, 0, 0}}},
       {"axes", MatrixRows{{0, 0, 1}, {0, 1, 0}, {0, 1, 1}}},
       {"masses_kg", Numbers{4, 1, 1.5}},
       {"centres_m", MatrixRows{{0.05, 0, 0.1}, {0.2, 0, 0}, {-0.2, 0, 0.1}}},
       {"inertias_kgm2", MatrixRows{{0.4, 0, 0.02, 0.5, 0, 0.3},
                                    {0.01, 0, 0, 0.04, 0, 0.04},
                                    {0.02, 0, 0, 0.05, 0, 0.05}}}},
      0.8,
      {0.1, -0.2, 0.3, 0.967184147320475, 0.0672042655833245, -0.165338757994931, 0.180835579917408,
       0.5, -0.6, 2.0318296115846, 0.74934839303115, -1.4089830993212, 0.304068834552565,
       0.279800992945714, -0.879029999927082, 0.123834937601436, -0.257459408493852},
      {0.324229045212837, -0.120750527774382, -3.03194871026915, 0.935995306283811,
       0.333804936486697, -0.041779546824419, -0.103641306721466, 1.53353582075342,
       -1.32553424063342, 2.0318296115846, 0.749348393031149, -52.4209830993212, -1.22758234037184,
       -1.248271709738, 0.124278392545371, -0.501269589239267, -0.418351748064427}};
}

double error_of(const Reference& known, int stages, int steps) {
  return distance(testing::move_freely(part_of(known.parameters), stages, known.time_s / steps,
                                       steps, known.start),
                  known.end);
}

TEST(Articulated, MovesAsLagrangeSays) {
  for (const Reference& known : {crane(), balls(), satellite()}) {
    EXPECT_LE(error_of(known, 3, 100), 1e-9);
    // A control: a hundred thousandth of the weight changes more than that.
    Reference lighter = known;
    lighter.parameters["gravity_m_per_s2"] = 9.81 * (1.0 - 1e-5);
    EXPECT_GT(error_of(lighter, 3, 100), 1e-7);
  }
}

/// Of eight states near the start, each moved by its own share of the way to the end.
struct SideBySide {
  int states;
  Numbers x, g;

  SideBySide(const Reference& known, const GradientsSideBySide& part)
      : states(static_cast<int>(known.start.size())),
        x(known.start.size() * kLaneGroup),
        g(x.size()) {
    for (int i = 0; i < states; ++i) {
      for (int l = 0; l < kLaneGroup; ++l) {
        const double way = known.end[at(i)] - known.start[at(i)];
        x[at(i * kLaneGroup + l)] = known.start[at(i)] + 0.1 * std::sin(1.0 + l + i) * way;
      }
    }
    part.gradients(x.data(), g.data());
  }
  Numbers state(int lane) const { return lane_of(x, lane); }
  Numbers gradient(int lane) const { return lane_of(g, lane); }
  Numbers lane_of(const Numbers& all, int lane) const {
    Numbers out;
    for (int i = 0; i < states; ++i) out.push_back(all[at(i * kLaneGroup + lane)]);
    return out;
  }
};

TEST(Articulated, HasTheSameGradientsSideBySide) {
  for (const Reference& known : {crane(), balls(), satellite()}) {
    const auto part = part_of(known.parameters);
    const Subsystem& physics = *part->port_hamiltonian();
    const auto* const own = dynamic_cast<const GradientsSideBySide*>(&physics);
    ASSERT_NE(own, nullptr);
    ASSERT_TRUE(own->takes_gradients());
    const SideBySide all(known, *own);
    for (int lane = 0; lane < kLaneGroup; ++lane) {
      Numbers alone(known.start.size());
      physics.gradient(all.state(lane).data(), alone.data());
      EXPECT_LE(distance(alone, all.gradient(lane)), 1e-12) << "lane " << lane;
      // The control: the lane beside it has another gradient.
      EXPECT_GT(distance(alone, all.gradient((lane + 1) % kLaneGroup)), 1e-3) << "lane " << lane;
    }
  }
}

/// With its second joint at a right angle the first and the third turn about one axis, and nothing else has inertia:
/// the mass matrix is singular there, and by rounding not even positive.
TEST(Articulated, HasNoVelocitiesWhereItsMassMatrixIsNotPositive) {
  const auto wrist = part_of(
      {{"joints", Texts{"revolute", "revolute", "revolute"}},
       {"axes", MatrixRows{{0, 0, 1}, {0, 1, 0}, {1, 0, 0}}},
       {"places_m", MatrixRows{{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}},
       {"masses_kg", Numbers{0, 0, 1.3}},
       {"centres_m", MatrixRows{{0, 0, 0}, {0, 0, 0}, {0.1, 0.2, 0.3}}},
       {"inertias_kgm2",
        MatrixRows{{0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0}, {0.03, 0.001, 0, 0.05, 0.002, 0.07}}}});
  const auto& own = dynamic_cast<const GradientsSideBySide&>(*wrist->port_hamiltonian());
  int lost = 0, kept = 0;
  for (const double bend : {0.5 * std::numbers::pi, 0.7}) {
    for (int k = 0; k < 200; ++k) {
      Numbers x(6 * kLaneGroup), g(x.size());
      for (int i = 0; i < 6; ++i) {
        for (int l = 0; l < kLaneGroup; ++l) {
          x[at(i * kLaneGroup + l)] = i == 1 ? bend : std::sin(1.0 + 37.0 * k + 11.0 * l + i);
        }
      }
      own.gradients(x.data(), g.data());
      for (int l = 0; l < kLaneGroup; ++l) {
        double twice_kinetic = 0.0;
        for (int i = 3; i < 6; ++i) {
          twice_kinetic += x[at(i * kLaneGroup + l)] * g[at(i * kLaneGroup + l)];
        }
        if (bend < 1.0) {
          EXPECT_GE(twice_kinetic, 0.0);
          ++kept;
        } else {
          EXPECT_FALSE(twice_kinetic < 0.0) << "lane " << l << " of " << k;
          lost += std::isnan(twice_kinetic) ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(lost, 100);
  EXPECT_EQ(kept, 200 * kLaneGroup);
}

TEST(Articulated, TakesGradientsOneByOneWhereItHasTooManyBodies) {
  const auto chain = [](std::size_t links) {
    Parameters p;
    p["joints"] = Texts(links, "revolute");
    p["places_m"] = MatrixRows(links, Numbers{0, 0, -0.1});
    p["axes"] = MatrixRows(links, Numbers{0, 1, 0});
    p["masses_kg"] = Numbers(links, 0.5);
    p["centres_m"] = MatrixRows(links, Numbers{0, 0, -0.05});
    p["inertias_kgm2"] = MatrixRows(links, Numbers{0.01, 0, 0, 0.01, 0, 0.01});
    const auto part = part_of(std::move(p));
    return dynamic_cast<const GradientsSideBySide&>(*part->port_hamiltonian()).takes_gradients();
  };
  EXPECT_TRUE(chain(24));
  EXPECT_FALSE(chain(25));
}

TEST(Articulated, HasOrderTwiceItsStages) {
  for (const Reference& known : {crane(), balls(), satellite()}) {
    for (const int stages : {1, 2, 3}) {
      const int steps = stages == 1 ? 160 : stages == 2 ? 40 : 16;
      const double order =
          std::log2(error_of(known, stages, steps) / error_of(known, stages, 2 * steps));
      EXPECT_NEAR(order, 2.0 * stages, 0.4) << stages << " stages";
    }
  }
}

/// The crane in other units: lengths, times and masses are these many times as large.
Reference crane_in(double m, double s, double kg) {
  Reference out = crane();
  out.time_s *= s;
  const auto scale = [&out](const char* name, double by) {
    ParameterValue& value = out.parameters.at(name);
    if (auto* const rows = std::get_if<MatrixRows>(&value)) {
      for (Numbers& row : *rows) {
        for (double& entry : row) entry *= by;
      }
    } else {
      for (double& entry : std::get<Numbers>(value)) entry *= by;
    }
  };
  scale("places_m", m);
  scale("centres_m", m);
  scale("masses_kg", kg);
  scale("inertias_kgm2", kg * m * m);
  out.parameters["gravity_m_per_s2"] = 9.81 * m / (s * s);
  out.parameters["damping"] = Numbers(4, 0.0);
  out.start[1] *= m;
  for (std::size_t k = 4; k < 8; ++k) out.start[k] *= kg * m * (k == 5 ? 1.0 : m) / s;
  return out;
}

/// The largest change of H over so many steps beside the energies that are exchanged.
double energy_drift(const Reference& known, double step_s, int steps, double of_J) {
  const auto part = part_of(known.parameters);
  const Subsystem& physics = *part->port_hamiltonian();
  Numbers x = known.start;
  const double start = physics.storage(x.data());
  double drift = 0.0;
  for (int k = 0; k < 20; ++k) {
    x = testing::move_freely(part, 1, step_s, steps / 20, x);
    drift = std::max(drift, std::abs(physics.storage(x.data()) - start));
  }
  return drift / of_J;
}

TEST(Articulated, KeepsItsEnergyInAllUnits) {
  for (const double m : {1e-9, 1.0, 1e9}) {
    for (const double kg : {1e-9, 1.0, 1e9}) {
      for (const double s : {1e-9, 1.0, 1e9}) {
        const Reference known = crane_in(m, s, kg);
        EXPECT_LE(energy_drift(known, 0.005 * s, 400, kg * m * m / (s * s)), 1e-11)
            << m << " m, " << kg << " kg, " << s << " s";
      }
    }
  }
  Reference damped = crane_in(1.0, 1.0, 1.0);
  damped.parameters["damping"] = Numbers(4, 1e-9);
  EXPECT_GT(energy_drift(damped, 0.005, 400, 1.0), 1e-10);
}

TEST(Articulated, FallsAndTurnsWithoutLosingMomentum) {
  Reference known = satellite();
  known.parameters["gravity_m_per_s2"] = 0.0;
  const auto total = [](const Numbers& x) {
    const Eigen::Quaterniond turn(x[3], x[4], x[5], x[6]);
    const Eigen::Vector3d place(x[0], x[1], x[2]), p(x[9], x[10], x[11]), L(x[12], x[13], x[14]);
    const Eigen::Vector3d spin = turn * L + place.cross(p);
    return Numbers{p.x(), p.y(), p.z(), spin.x(), spin.y(), spin.z()};
  };
  const auto part = part_of(known.parameters);
  const Numbers before = total(known.start);
  const Numbers once = total(testing::move_freely(part, 1, 0.01, 500, known.start));
  for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(once[k], before[k], 1e-13);
  EXPECT_LE(distance(total(testing::move_freely(part, 3, 0.01, 100, known.start)), before), 1e-10);
  // Quaternions keep their length.
  const Numbers x = testing::move_freely(part, 1, 0.01, 500, known.start);
  EXPECT_NEAR(x[3] * x[3] + x[4] * x[4] + x[5] * x[5] + x[6] * x[6], 1.0, 1e-12);
  EXPECT_GT(distance(total(testing::move_freely(part_of(satellite().parameters), 3, 0.01, 50,
                                                known.start)),
                     before),
            1e-3);
}

/// As the engine steps a part to whose ports nothing is joined: testing::move_freely wraps it, and hides that its gradients cancel.
Numbers moved_as_it_is(const std::shared_ptr<const Component>& part, int stages, double step_s,
                       int steps, Numbers x) {
  const auto& leaves = dynamic_cast<const LeavesPorts&>(*part);
  const std::shared_ptr<const Component> staged = staged_part(
      leaves.without_ports(std::vector<bool>(part->signature().ports.size(), true)), stages);
  const Component* const parts[] = {staged.get()};
  const std::unique_ptr<StepBatch> batch = staged->make_batch(parts);
  batch->prepare(step_s, nullptr);
  AlignedVector record(batch->record_size()), next(batch->record_size());
  batch->set_state(0, x.data(), record.data());
  for (int step = 0; step < steps; ++step) {
    batch->freeze({0, 1}, record.data(), nullptr);
    const LaneStatus status =
        batch->advance({0, 1}, record.data(), nullptr, next.data(), nullptr, {});
    EXPECT_TRUE(status.ok()) << "step " << step << ", " << stages << " stages";
    if (!status.ok()) break;
    std::swap(record, next);
  }
  batch->get_state(0, record.data(), x.data());
  return x;
}

/// A joint that turns what nothing holds: all momenta but its own are 0, and torques on the base cancel.
TEST(Articulated, TurnsInSpaceWithSeveralStages) {
  for (const double speed : {1e-6, 1.0, 30.0}) {
    const auto part =
        part_of({{"joints", Texts{"free", "revolute", "revolute"}},
                 {"parents", Numbers{0, 1, 1}},
                 {"places_m", MatrixRows{{0, 0, 0}, {0.2, 0.1, 0.05}, {-0.1, 0, 0.1}}},
                 {"axes", MatrixRows{{0, 0, 1}, {0, 1, 0}, {1, 0, 0}}},
                 {"masses_kg", Numbers{1, 2, 0.5}},
                 {"centres_m", MatrixRows{{0.01, 0.02, 0.03}, {0.05, 0.02, 0.1}, {0, 0, 0.2}}},
                 {"inertias_kgm2", MatrixRows(3, {0.01, 0, 0, 0.012, 0, 0.013})},
                 {"gravity_m_per_s2", 0.0}});
    Numbers start(17, 0.0);  // r, quaternion, angles, momenta
    start[3] = 1.0;
    start[15] = 0.02 * speed;
    start[16] = -0.01 * speed;
    const double energy = part->port_hamiltonian()->storage(start.data());
    const double time_s = 0.2 / speed;
    const Numbers two = moved_as_it_is(part, 2, time_s / 200, 200, start);
    const Numbers three = moved_as_it_is(part, 3, time_s / 200, 200, start);
    for (std::size_t k = 0; k < 9; ++k) EXPECT_NEAR(two[k], three[k], 1e-9) << speed;
    for (std::size_t k = 9; k < 15; ++k) EXPECT_NEAR(three[k], 0.0, 1e-13 * speed) << speed;
    EXPECT_NEAR(part->port_hamiltonian()->storage(three.data()), energy, 1e-12 * energy) << speed;
    EXPECT_GT(std::abs(three[7]), 0.1) << speed;
  }
}

TEST(Articulated, FreeBodyIsARigidBody) {
  const auto own = part_of({{"joints", Texts{"free"}},
                            {"masses_kg", Numbers{2.0}},
                            {"inertias_kgm2", MatrixRows{{1.0, 0, 0, 1.5, 0, 2.0}}}});
  const std::shared_ptr<const Component> known = make_part("rigid_body", {{"mass_kg", 2.0},
                                                                          {"inertia_1_kgm2", 1.0},
                                                                          {"inertia_2_kgm2", 1.5},
                                                                          {"inertia_3_kgm2", 2.0}});
  const auto order = [](const Numbers& x) {  // of rigid_body: r, p, quaternion, L
    return Numbers{x[0], x[1], x[2], x[7], x[8], x[9], x[3], x[4], x[5], x[6], x[10], x[11], x[12]};
  };
  const Numbers start = {0, 0, 1, 0.8, 0.6, 0, 0, 1, 2, 3, 0.1, 3.0, 0.1};
  // With one stage the two have other discrete gradients.
  const Numbers end = order(testing::move_freely(own, 3, 0.005, 100, start));
  EXPECT_LE(distance(end, testing::move_freely(known, 3, 0.005, 100, order(start))), 1e-10);
  EXPECT_GT(distance(end, order(start)), 0.1);
}

/// Links in the plane of x and z, as those of planar_arm, which hang at 0.
Parameters plane_arm(int links) {
  MatrixRows places, centres, inertias;
  for (int k = 0; k < links; ++k) {
    places.push_back({0, 0, k > 0 ? -0.5 : 0.0});
    centres.push_back({0, 0, -0.2});
    inertias.push_back({0.04, 0, 0, 0.05, 0, 0.01});
  }
  const auto n = static_cast<std::size_t>(links);
  return {{"joints", Texts(n, "revolute")},
          {"axes", MatrixRows(n, {0, -1, 0})},
          {"places_m", places},
          {"centres_m", centres},
          {"inertias_kgm2", inertias},
          {"masses_kg", Numbers(n, 1.5)},
          {"damping", Numbers(n, 0.02)},
          {"frames", Texts{"tip"}},
          {"frame_joints", Texts{"joint_" + std::to_string(links)}},
          {"frame_points_m", MatrixRows{{0, 0, -0.5}}}};
}

TEST(Articulated, ChainInAPlaneIsAPlanarArm) {
  constexpr std::size_t kLinks = 5;
  const auto own = part_of(plane_arm(kLinks));
  const std::shared_ptr<const Component> known =
      make_part("planar_arm", {{"lengths_m", Numbers(kLinks, 0.5)},
                               {"masses_kg", Numbers(kLinks, 1.5)},
                               {"centres_m", Numbers(kLinks, 0.2)},
                               {"inertias_kgm2", Numbers(kLinks, 0.05)},
                               {"damping_Nms_per_rad", Numbers(kLinks, 0.02)},
                               {"tip_port", true}});
  Numbers start = {0.5, -0.8, 1.0, 0.2, 0.4, 0.1, 0.2, -0.1, 0.05, 0.02};
  EXPECT_NEAR(own->port_hamiltonian()->storage(start.data()),
              known->port_hamiltonian()->storage(start.data()), 1e-12);
  // With one stage the two have other discrete gradients.
  const Numbers end = testing::move_freely(own, 3, 0.005, 100, start);
  EXPECT_LE(distance(end, testing::move_freely(known, 3, 0.005, 100, start)), 1e-10);
  EXPECT_GT(distance(end, start), 0.1);
  // Forces on the tip: x of both, and y of the one is z of the other.
  Structure ours = own->port_hamiltonian()->structure(),
            theirs = known->port_hamiltonian()->structure();
  own->port_hamiltonian()->structure_at(start.data(), ours);
  known->port_hamiltonian()->structure_at(start.data(), theirs);
  const Eigen::MatrixXd G = ours.G, K = theirs.G;
  EXPECT_LE((G.col(5) - K.col(5)).norm() + (G.col(7) - K.col(6)).norm(), 1e-14);
  EXPECT_LE(G.col(6).norm(), 1e-14);
  EXPECT_GT(G.col(5).norm(), 0.1);
}

TEST(Articulated, FixedJointsMakeOneBody) {
  Parameters two = crane().parameters;
  // The last body in two halves, the second fixed to the first in turned axes.
  Parameters halves = two;
  halves["joints"] = Texts{"revolute", "prismatic", "revolute", "revolute", "fixed"};
  halves["parents"] = Numbers{0, 1, 2, 1, 4};
  halves["masses_kg"] = Numbers{3, 1, 2, 0.4, 0.4};
  halves["damping"] = Numbers{0.3, 0.5, 0.1, 0, 0};
  const auto append = [](ParameterValue& rows, Numbers row) {
    std::get<MatrixRows>(rows).push_back(std::move(row));
  };
  const double quarter = std::acos(0.0);
  append(halves.at("places_m"), {0, 0, -0.1});
  append(halves.at("turns_rad"), {quarter, 0, 0});  // y of it is z of the other
  append(halves.at("axes"), {0, 0, 0});
  append(halves.at("centres_m"), {0, -0.2, 0});
  append(halves.at("inertias_kgm2"), {0.01, 0.0005, 0, 0.005, 0, 0.01});
  std::get<MatrixRows>(halves.at("inertias_kgm2"))[3] = {0.01, 0, 0.0005, 0.01, 0, 0.005};
  const Reference known = crane();
  const Numbers end = testing::move_freely(part_of(halves), 1, 0.01, 50, known.start);
  EXPECT_LE(distance(end, testing::move_freely(part_of(two), 1, 0.01, 50, known.start)), 1e-12);
  std::get<MatrixRows>(halves.at("places_m"))[4] = {0, 0, -0.11};
  const Numbers other = testing::move_freely(part_of(halves), 1, 0.01, 50, known.start);
  EXPECT_GT(distance(end, other), 1e-4);
}

std::string told(Parameters parameters) {
  try {
    part_of(std::move(parameters));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

TEST(Articulated, TellsAllThatIsWrong) {
  EXPECT_EQ(told(crane().parameters), "");
  const auto with = [](const char* name, ParameterValue value) {
    Parameters out = crane().parameters;
    out[name] = std::move(value);
    return told(std::move(out));
  };
  const auto names = [](const std::string& text, const char* what) {
    EXPECT_NE(text.find(what), std::string::npos) << text;
  };
  names(with("joints", Texts{"revolute", "prismatic", "hinge", "revolute"}), "/joints/2");
  names(with("parents", Numbers{0, 1, 3, 1}), "/parents/2");
  names(with("masses_kg", Numbers{3, 1}), "/masses_kg");
  names(with("axes", MatrixRows{{0, 1, 1}, {0, 0, 0}, {1, 0, 0}, {0, 1, 0}}), "/axes/1");
  names(with("names", Texts{"a", "b", "a", "c.d"}), "\"a\" is already taken");
  names(with("names", Texts{"a", "b", "a", "c.d"}), "/names/3");
  names(with("frames", Texts{"hook"}), "/frame_joints");
  names(with("inertias_kgm2", MatrixRows{{1, 0.1, 0, 1.5, 0, 2},
                                         {0.1, 0, 0, 0.2, 0, 0.15},
                                         {0.3, 0.5, 0, 0.2, 0, 0.4},
                                         {0.02, 0, 0.001, 0.02, 0, 0.01}}),
        "/inertias_kgm2/2");
  Parameters light = crane().parameters;
  light["masses_kg"] = Numbers{3, 1, 2, 0};
  std::get<MatrixRows>(light.at("inertias_kgm2"))[3] = Numbers(6, 0.0);
  names(told(light), "\"joint_4\"");
  Parameters hanging = {{"joints", Texts{"revolute", "free"}}, {"masses_kg", Numbers{1, 1}}};
  names(told(hanging), "a free body has no parent");
  names(told({{"joints", Texts{"fixed"}}, {"masses_kg", Numbers{1}}}), "one that moves");
}

TEST(Articulated, StartsFromQuaternionsOfLengthOne) {
  const auto part = part_of(balls().parameters);
  Numbers x = balls().start;
  EXPECT_TRUE(part->check_initial_state(x.data()).empty());
  x[5] += 0.1;
  const Issues issues = part->check_initial_state(x.data());
  ASSERT_EQ(issues.size(), 1u);
  EXPECT_NE(issues[0].what.find("\"joint_2\""), std::string::npos);
}

/// More positions than velocities: 21 quaternions. The derivative belongs to the gradient.
TEST(Articulated, TakesAsManyBallJointsAsItSays) {
  constexpr std::size_t kJoints = 21;
  MatrixRows places(kJoints, Numbers{0, 0, -0.5}), centres(kJoints, Numbers{0, 0, -0.25});
  MatrixRows inertias(kJoints, Numbers{0.1, 0, 0, 0.1, 0, 0.05});
  const auto part = part_of({{"joints", Texts(kJoints, "spherical")},
                             {"masses_kg", Numbers(kJoints, 1.0)},
                             {"places_m", places},
                             {"centres_m", centres},
                             {"inertias_kgm2", inertias}});
  const Subsystem& physics = *part->port_hamiltonian();
  const Numbers x = physics.default_state();
  const std::size_t n = x.size();
  ASSERT_EQ(n, 7 * kJoints);
  std::vector<Eigen::Triplet<double>> jacobian;
  physics.discrete_gradient_jacobian(x.data(), x.data(), jacobian);
  Eigen::MatrixXd slopes = Eigen::MatrixXd::Zero(static_cast<int>(n), static_cast<int>(n));
  for (const auto& entry : jacobian) slopes(entry.row(), entry.col()) += entry.value();
  Numbers moved = x, ahead(n), back(n);
  for (const std::size_t i : {std::size_t{1}, std::size_t{40}, 4 * kJoints + 2, n - 1}) {
    const double reach = 1e-5;
    moved[i] = x[i] + reach;
    physics.discrete_gradient(x.data(), moved.data(), ahead.data());
    moved[i] = x[i] - reach;
    physics.discrete_gradient(x.data(), moved.data(), back.data());
    moved[i] = x[i];
    for (std::size_t k = 0; k < n; ++k) {
      EXPECT_NEAR(slopes(static_cast<int>(k), static_cast<int>(i)),
                  (ahead[k] - back[k]) / (2.0 * reach), 1e-5)
          << k << " by " << i;
    }
  }
}

/// Two joints about one axis of a body without inertia: the second moves nothing by itself.
TEST(Articulated, NamesTheJointThatMovesNothing) {
  try {
    part_of({{"joints", Texts{"revolute", "revolute"}},
             {"axes", MatrixRows{{0, 0, 1}, {0, 0, 1}}},
             {"places_m", MatrixRows{{0, 0, 0}, {0, 0, 0.2}}},
             {"masses_kg", Numbers{1, 0}},
             {"centres_m", MatrixRows{{0.3, 0, 0}, {0, 0, 0}}},
             {"inertias_kgm2", MatrixRows{{0.1, 0, 0, 0.1, 0, 0.1}, {0, 0, 0, 0, 0, 0}}}});
    FAIL() << "was taken";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("has inertia"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace portwave::test_mechanisms_articulated
