// Mechanisms that are cut through a body and welded at frames, and loops that are closed there: against the mechanism
// that is not cut, and against equations in one coordinate, solved elsewhere (tests/agreement/linkage_reference.py).

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Geometry>
#include <gtest/gtest.h>

#include "portwave/coupling/system/system.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/core/signal.hpp"

namespace portwave::test_mechanism_cuts {
namespace {

using Eigen::Matrix3d;
using Eigen::Vector3d;
using Numbers = std::vector<double>;
using Texts = std::vector<std::string>;

/// A part "articulated", body by body.
struct Chain {
  Parameters parameters = {{"joint_ports", false}};
  Texts joints, names;
  MatrixRows places, turns, axes, centres, inertias;
  Numbers masses, damping;
  Texts frames, frame_joints, frame_kinds;
  MatrixRows frame_points;

  void add(const std::string& kind, const std::string& name, Numbers place, Numbers axis,
           double mass, Numbers centre, Numbers inertia, double d = 0.0, Numbers turn = {0, 0, 0}) {
    joints.push_back(kind);
    names.push_back(name);
    places.push_back(std::move(place));
    turns.push_back(std::move(turn));
    axes.push_back(std::move(axis));
    masses.push_back(mass);
    centres.push_back(std::move(centre));
    inertias.push_back(std::move(inertia));
    damping.push_back(d);
  }
  void frame(const std::string& name, const std::string& joint, Numbers point,
             const std::string& kind) {
    frames.push_back(name);
    frame_joints.push_back(joint);
    frame_points.push_back(std::move(point));
    frame_kinds.push_back(kind);
  }
  std::shared_ptr<const Component> part() const {
    Parameters all = parameters;
    all["joints"] = joints;
    all["names"] = names;
    all["places_m"] = places;
    all["turns_rad"] = turns;
    all["axes"] = axes;
    all["masses_kg"] = masses;
    all["centres_m"] = centres;
    all["inertias_kgm2"] = inertias;
    all["damping"] = damping;
    all["frames"] = frames;
    all["frame_joints"] = frame_joints;
    all["frame_points_m"] = frame_points;
    all["frame_kinds"] = frame_kinds;
    return make_part("articulated", std::move(all));
  }
};

Numbers scaled(const Numbers& v, double by) {
  Numbers out = v;
  for (double& x : out) x *= by;
  return out;
}

struct Run {
  std::map<std::string, Numbers> states;
  double off_J = 0.0, size_J = 0.0;  ///< the account, and what it is of
  int missed = 0;
};

Run run(SystemBuilder& builder, const Texts& parts, double step_s, double end_s, int stages = 1) {
  StepperOptions options;
  if (stages > 1) options.method = WaveCoupling::automatic_with_stages(stages);
  options.step_s = step_s;
  Stepper stepper(builder.build(), options);
  stepper.step(std::lround(end_s / step_s));
  Run out;
  for (const std::string& part : parts) {
    const auto x = stepper.state(part);
    out.states[part].assign(x.begin(), x.end());
  }
  const EnergyTotals energy = stepper.energy();
  out.off_J = std::abs(energy.final_J - energy.initial_J - energy.supplied_J + energy.dissipated_J +
                       energy.mismatch_J);
  out.size_J = std::abs(energy.initial_J) + std::abs(energy.supplied_J);
  out.missed = static_cast<int>(stepper.iterations().not_converged);
  return out;
}

// ---- A chain in space ----

constexpr double kLength = 0.5;

struct Link {
  double mass;
  Numbers centre, inertia, axis;
  double damping;
};

std::vector<Link> links(double scale) {
  std::vector<Link> out;
  const Numbers axes[] = {{0, 1, 0}, {0, 0.6, 0.8}, {0, 1, 0}, {1, 0, 0.2}};
  const double damping[] = {0.02, 0.01, 0.03, 0.0};
  for (std::size_t i = 0; i < 4; ++i) {
    const auto n = static_cast<double>(i);
    out.push_back({scale * (1 + 0.3 * n),
                   {0.25, 0.02, -0.01},
                   scaled({0.01 + 0.002 * n, 0.001, 0, 0.03, 0.0005, 0.025}, scale),
                   axes[i],
                   scale * damping[i]});
  }
  return out;
}

void add_link(Chain& chain, std::size_t i, const Link& link, double share = 1.0) {
  chain.add("revolute", "j" + std::to_string(i + 1), {i == 0 ? 0.0 : kLength, 0, 0}, link.axis,
            share * link.mass, link.centre, scaled(link.inertia, share), link.damping);
}

/// Angles of the four joints, from the uncut chain.
std::array<double, 4> whole_chain(double step_s, double end_s, double scale = 1.0, int stages = 1) {
  Chain chain;
  const std::vector<Link> all = links(scale);
  for (std::size_t i = 0; i < 4; ++i) add_link(chain, i, all[i]);
  SystemBuilder builder;
  builder.add("robot", chain.part());
  const Numbers x = run(builder, {"robot"}, step_s, end_s, stages).states["robot"];
  return {x[0], x[1], x[2], x[3]};
}

struct CutRun {
  std::array<double, 4> angles;
  double place_off = 0.0, turn_off = 0.0;  ///< of the two halves of link 2
  Run run;
};

Matrix3d turn(double angle, const Numbers& axis) {
  return Eigen::AngleAxisd(angle, Vector3d(axis[0], axis[1], axis[2]).normalized())
      .toRotationMatrix();
}

/// Cut through link 2, of which the outer piece takes a share.
CutRun cut_chain(double step_s, double end_s, double scale = 1.0, double share = 0.5,
                 int stages = 1) {
  const std::vector<Link> all = links(scale);
  Chain inner, outer;
  add_link(inner, 0, all[0]);
  add_link(inner, 1, all[1], 1.0 - share);
  inner.frame("cut", "j2", {0.1, 0, 0.05}, "wrench");
  outer.add("free", "base", {0, 0, 0}, {0, 0, 1}, share * all[1].mass, all[1].centre,
            scaled(all[1].inertia, share));
  add_link(outer, 2, all[2]);
  add_link(outer, 3, all[3]);
  outer.frame("cut", "base", {0.1, 0, 0.05}, "wrench");
  SystemBuilder builder;
  Numbers start(17, 0.0);
  start[0] = kLength;
  start[3] = 1.0;
  builder.add("a", inner.part());
  builder.add("b", outer.part(), {.initial_state = start});
  builder.join(joint::CommonFlow{}, {"a.cut", "b.cut"});
  builder.join(joint::CommonFlow{}, {"a.cut_torque", "b.cut_torque"});
  CutRun out;
  out.run = run(builder, {"a", "b"}, step_s, end_s, stages);
  const Numbers &a = out.run.states["a"], &b = out.run.states["b"];
  out.angles = {a[0], a[1], b[7], b[8]};
  const Matrix3d first = turn(a[0], all[0].axis), second = first * turn(a[1], all[1].axis);
  out.place_off = (first * Vector3d(kLength, 0, 0) - Vector3d(b[0], b[1], b[2])).norm();
  const Matrix3d base = Eigen::Quaterniond(b[3], b[4], b[5], b[6]).toRotationMatrix();
  out.turn_off = (second - base).norm();
  return out;
}

TEST(MechanismCuts, ChainMovesAsTheWholeAndStaysWelded) {
  const double h = 2e-3, end = 1.0;
  const CutRun coarse = cut_chain(h, end), fine = cut_chain(0.5 * h, end);
  const auto whole = whole_chain(h, end), whole_fine = whole_chain(0.5 * h, end);
  for (std::size_t j = 0; j < 4; ++j) {
    const double off = coarse.angles[j] - whole[j], off_fine = fine.angles[j] - whole_fine[j];
    EXPECT_LT(std::abs(off), 5e-4) << "joint " << j + 1;
    EXPECT_LT(std::abs(off_fine), 0.3 * std::abs(off) + 1e-9) << "joint " << j + 1;
    // Order 2 of both: without it nothing is left of their difference.
    EXPECT_LT(std::abs(4.0 * off_fine - off) / 3.0, 1e-6) << "joint " << j + 1;
  }
  EXPECT_GT(std::abs(whole[0]), 0.5) << "it has fallen";
  for (const CutRun* own : {&coarse, &fine}) {
    EXPECT_LT(own->place_off, 1e-9);
    EXPECT_LT(own->turn_off, 1e-9);
    EXPECT_LT(own->run.off_J, 1e-9 * own->run.size_J);
    EXPECT_EQ(own->run.missed, 0);
  }
  // The control: what is exact of the weld is not so because the steps are.
  EXPECT_GT(std::abs(coarse.angles[0] - fine.angles[0]), 1e-6);
}

/// Of order 4 and 6, in the motion and in the weld.
TEST(MechanismCuts, SeveralStagesMoveAsTheWhole) {
  const double end = 0.4;
  const auto exact = whole_chain(5e-4, end, 1.0, 3);
  const auto off = [&](const CutRun& own) {
    double largest = 0.0;
    for (std::size_t j = 0; j < 4; ++j) {
      largest = std::max(largest, std::abs(own.angles[j] - exact[j]));
    }
    return largest;
  };
  const CutRun two = cut_chain(4e-3, end, 1.0, 0.5, 2), three = cut_chain(4e-3, end, 1.0, 0.5, 3);
  EXPECT_LT(off(two), 1e-7);
  EXPECT_LT(off(three), 1e-9);
  for (const CutRun* own : {&two, &three}) {
    EXPECT_LT(own->place_off, 1e-9);
    EXPECT_LT(own->turn_off, 1e-9);
    EXPECT_LT(own->run.off_J, 1e-9 * own->run.size_J);
    EXPECT_EQ(own->run.missed, 0);
  }
  EXPECT_GT(off(cut_chain(4e-3, end)), 1e-6) << "the control: one stage is of order 2";
}

TEST(MechanismCuts, DoNotDependOnUnitsNorOnTheShare) {
  const CutRun one = cut_chain(2e-3, 0.5);
  for (const auto& [scale, share] : {std::pair(1e9, 0.5), {1e-9, 0.5}, {1.0, 0.05}, {1.0, 0.95}}) {
    const CutRun own = cut_chain(2e-3, 0.5, scale, share);
    const double most = share == 0.5 ? 1e-8 : 1e-4;  // other shares have other discrete steps
    for (std::size_t j = 0; j < 4; ++j) {
      EXPECT_NEAR(own.angles[j], one.angles[j], most) << "scale " << scale << " share " << share;
    }
    EXPECT_LT(own.place_off, 1e-9) << "scale " << scale << " share " << share;
    EXPECT_LT(own.turn_off, 1e-9) << "scale " << scale << " share " << share;
  }
}

// ---- A four-bar linkage ----

struct Linkage {
  double crank, coupler, rocker;
  double gap;  ///< between the ends that are joined
  Run run;
};

Numbers rod(double mass, double length) {
  const double I = mass * length * length / 12.0;
  return {I / 100, 0, 0, I, 0, I};
}

/// Crank and coupler on one pivot, the rocker on the other; joined where coupler and rocker meet, or through the
/// coupler. Turned about x by `tilt`, with the weights of a linkage that is upright.
Linkage linkage(bool through_coupler, double step_s, double end_s) {
  constexpr double kA = 0.3, kB = 0.9, kC = 0.7, kD = 1.0;
  const Numbers y = {0, 1, 0};
  const double coupler = through_coupler ? 1.0 : 2.0;
  Chain left, right;
  left.add("revolute", "crank", {0, 0, 0}, y, 1.0, {kA / 2, 0, 0}, rod(1.0, kA), 0.5);
  left.add("revolute", "coupler", {kA, 0, 0}, y, coupler, {kB / 2, 0, 0}, rod(coupler, kB), 0.2);
  right.add("revolute", "rocker", {kD, 0, 0}, y, 1.5, {kC / 2, 0, 0}, rod(1.5, kC), 0.3);
  Numbers start = {-1.6506082348163230, 0};
  if (through_coupler) {
    right.add("revolute", "half", {kC, 0, 0}, y, 1.0, {-kB / 2, 0, 0}, rod(1.0, kB));
    const double half = -1.0 + 0.4823820228222636 + 1.6506082348163230;
    start = {-1.6506082348163230, half, 0, 0};
    left.frame("end", "coupler", {kB / 2, 0, 0}, "wrench");
    right.frame("end", "half", {-kB / 2, 0, 0}, "wrench");
  } else {
    left.frame("end", "coupler", {kB, 0, 0}, "force");
    right.frame("end", "rocker", {kC, 0, 0}, "force");
  }
  SystemBuilder builder;
  builder.add("left", left.part(),
              {.initial_state = {-1.0, 0.4823820228222636, 0, 0},
               .inputs = {{"crank_torque",
                           Signal::piecewise_linear({{0, 3}, {1, 3}, {1, -2}, {2, -2}, {2, 0}})}}});
  builder.add("right", right.part(), {.initial_state = start});
  builder.join(joint::CommonFlow{}, {"left.end", "right.end"});
  if (through_coupler) builder.join(joint::CommonFlow{}, {"left.end_torque", "right.end_torque"});
  Linkage out;
  out.run = run(builder, {"left", "right"}, step_s, end_s);
  const Numbers &l = out.run.states["left"], &r = out.run.states["right"];
  out.crank = l[0];
  out.coupler = l[1];
  out.rocker = r[0];
  const Vector3d crank_end = turn(l[0], y) * Vector3d(kA, 0, 0);
  const Vector3d end = crank_end + turn(l[0] + l[1], y) * Vector3d(kB, 0, 0);
  out.gap = (end - Vector3d(kD, 0, 0) - turn(r[0], y) * Vector3d(kC, 0, 0)).norm();
  return out;
}

/// Of six efforts at a weld of a planar loop three are there twice, of three at a ball joint one.
TEST(MechanismLoops, FourBarLinkageAgreesWithOneCoordinate) {
  constexpr double kCrank = 1.866265878934, kCoupler = -2.795875945289, kRocker = -2.472397534272;
  for (const bool through_coupler : {false, true}) {
    const Linkage coarse = linkage(through_coupler, 2e-3, 3.0);
    const Linkage fine = linkage(through_coupler, 1e-3, 3.0);
    const auto better = [&](double Linkage::*angle) {
      return (4.0 * fine.*angle - coarse.*angle) / 3.0;
    };
    EXPECT_NEAR(fine.crank, kCrank, 2e-6) << through_coupler;
    EXPECT_NEAR(better(&Linkage::crank), kCrank, 2e-8) << through_coupler;
    EXPECT_NEAR(better(&Linkage::coupler), kCoupler, 2e-8) << through_coupler;
    EXPECT_NEAR(better(&Linkage::rocker), kRocker, 2e-8) << through_coupler;
    for (const Linkage* own : {&coarse, &fine}) {
      EXPECT_LT(own->gap, 1e-9) << through_coupler;
      EXPECT_LT(own->run.off_J, 1e-9 * own->run.size_J) << through_coupler;
      EXPECT_EQ(own->run.missed, 0) << through_coupler;
    }
    EXPECT_GT(std::abs(coarse.crank - kCrank), 1e-7) << "the control: a step is not exact";
  }
}

/// Two arms in a plane, joined at their tips.
TEST(MechanismLoops, TipsOfPlanarArmsStayJoined) {
  const auto gap = [](double step_s, int stages) {
    const auto arm = [] {
      return make_part(
          "planar_arm",
          {{"lengths_m", Numbers{0.5, 0.4}}, {"masses_kg", Numbers{2.0, 1.0}}, {"tip_port", true}});
    };
    SystemBuilder builder;
    builder.add("a", arm(), {.initial_state = {0.3, 0.5, 0, 0}});
    builder.add("b", arm(), {.initial_state = {0.8, -0.5, 0, 0}});
    for (const char* const part : {"a", "b"}) {
      for (int k = 1; k <= 2; ++k) {
        builder.join(joint::Free{}, {std::string(part) + ".joint_" + std::to_string(k)});
      }
    }
    // The bases stand apart by what their tips are apart: only speeds are joined.
    builder.join(joint::CommonFlow{}, {"a.tip", "b.tip"});
    StepperOptions options;
    options.step_s = step_s;
    options.method.waves().stages = stages;
    Stepper stepper(builder.build(), options);
    const auto tip = [&](const char* part) {
      const auto x = stepper.state(part);
      return Eigen::Vector2d(0.5 * std::sin(x[0]) + 0.4 * std::sin(x[0] + x[1]),
                             -0.5 * std::cos(x[0]) - 0.4 * std::cos(x[0] + x[1]));
    };
    const Eigen::Vector2d apart = tip("a") - tip("b"), start = tip("a");
    stepper.step(std::lround(2.0 / step_s));
    EXPECT_GT((tip("a") - start).norm(), 0.05) << "it has moved";
    EXPECT_EQ(stepper.iterations().not_converged, 0);
    return (tip("a") - tip("b") - apart).norm();
  };
  EXPECT_LT(gap(2e-3, 1), 1e-9);
}

// ---- Two arms that hold an object ----

struct Arm {
  Vector3d base;
  std::array<Numbers, 3> axes;
  std::array<double, 3> angles;

  Vector3d hand() const {
    Matrix3d R = Matrix3d::Identity();
    Vector3d at = base;
    for (std::size_t i = 0; i < 3; ++i) {
      R = R * turn(angles[i], axes[i]);
      at += R * Vector3d(kLength, 0, 0);
    }
    return at;
  }
  std::shared_ptr<const Component> part(const std::string& grasp) const {
    Chain chain;
    for (std::size_t i = 0; i < 3; ++i) {
      const Numbers place = i == 0 ? Numbers{base.x(), base.y(), base.z()} : Numbers{kLength, 0, 0};
      chain.add("revolute", "j" + std::to_string(i + 1), place, axes[i], 1.0, {0.25, 0.01, 0},
                {0.01, 0, 0, 0.02, 0.001, 0.02}, 0.1);
    }
    chain.frame("hand", "j3", {kLength, 0, 0}, grasp);
    return chain.part();
  }
};

struct Grasp {
  Numbers left, right;
  double gap = 0.0;  ///< between hands and handles
  Run run;
};

/// The left hand holds firmly, the right one by a point.
Grasp grasp(bool as_rigid_body, double step_s) {
  Arm left = {{-0.6, 0, 0}, {Numbers{0, 1, 0}, {0, 1, 0}, {0, 0, 1}}, {-1.2, 0.9, 0.3}};
  Arm right = {{0.9, 0.1, 0}, {Numbers{0, 0, 1}, {0, 1, 0}, {0, 1, 0}}, {2.5, -0.8, 0.7}};
  const Vector3d centre = 0.5 * (left.hand() + right.hand());
  const Vector3d to_left = left.hand() - centre, to_right = right.hand() - centre;
  const Numbers handles[] = {{to_left.x(), to_left.y(), to_left.z()},
                             {to_right.x(), to_right.y(), to_right.z()}};
  std::shared_ptr<const Component> object;
  Numbers start = {centre.x(), centre.y(), centre.z(), 0, 0, 0, 1, 0, 0, 0, 0, 0, 0};
  if (as_rigid_body) {
    object = make_part("rigid_body", {{"mass_kg", 2.0},
                                      {"inertia_1_kgm2", 0.1},
                                      {"inertia_2_kgm2", 0.15},
                                      {"inertia_3_kgm2", 0.2},
                                      {"frames", Texts{"left", "right"}},
                                      {"frame_points_m", MatrixRows{handles[0], handles[1]}}});
  } else {
    Chain body;
    body.add("free", "body", {0, 0, 0}, {0, 0, 1}, 2.0, {0, 0, 0}, {0.1, 0, 0, 0.15, 0, 0.2});
    body.frame("left", "body", handles[0], "force");
    body.frame("right", "body", handles[1], "force");
    body.frame("torque", "body", {0, 0, 0}, "torque");
    object = body.part();
    start = {centre.x(), centre.y(), centre.z(), 1, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  }
  SystemBuilder builder;
  builder.add(
      "left", left.part("wrench"),
      {.initial_state = {left.angles[0], left.angles[1], left.angles[2], 0, 0, 0},
       .inputs = {{"j1_torque", Signal::piecewise_linear({{0, -20}, {0.3, -20}, {0.3, 5}})}}});
  builder.add("right", right.part("force"),
              {.initial_state = {right.angles[0], right.angles[1], right.angles[2], 0, 0, 0}});
  builder.add("object", object, {.initial_state = start});
  builder.join(joint::CommonFlow{}, {"left.hand", "object.left"});
  builder.join(joint::CommonFlow{}, {"left.hand_torque", "object.torque"});
  builder.join(joint::CommonFlow{}, {"right.hand", "object.right"});
  if (as_rigid_body) builder.join(joint::Free{}, {"object.force"});
  Grasp out;
  out.run = run(builder, {"left", "right", "object"}, step_s, 0.6);
  out.left = out.run.states["left"];
  out.right = out.run.states["right"];
  for (std::size_t i = 0; i < 3; ++i) {
    left.angles[i] = out.left[i];
    right.angles[i] = out.right[i];
  }
  const Numbers& x = out.run.states["object"];
  const std::size_t q = as_rigid_body ? 6 : 3;
  const Matrix3d R = Eigen::Quaterniond(x[q], x[q + 1], x[q + 2], x[q + 3]).toRotationMatrix();
  const Vector3d at(x[0], x[1], x[2]);
  out.gap = (at + R * to_left - left.hand()).norm() + (at + R * to_right - right.hand()).norm();
  return out;
}

TEST(MechanismLoops, TwoArmsHoldARigidBodyAsTheyHoldATreeOfOne) {
  const Grasp body = grasp(true, 1e-3), tree = grasp(false, 1e-3);
  const Grasp fine = grasp(true, 5e-4), fine_tree = grasp(false, 5e-4);
  const auto expect_order_2 = [](double apart, double fine_apart) {
    EXPECT_LT(std::abs(apart), 1e-5);
    EXPECT_LT(std::abs(4.0 * fine_apart - apart) / 3.0, 1e-8);
  };
  for (std::size_t i = 0; i < 3; ++i) {
    expect_order_2(body.left[i] - tree.left[i], fine.left[i] - fine_tree.left[i]);
    expect_order_2(body.right[i] - tree.right[i], fine.right[i] - fine_tree.right[i]);
  }
  for (const Grasp* own : {&body, &tree, &fine, &fine_tree}) {
    EXPECT_LT(own->gap, 1e-9);
    EXPECT_LT(own->run.off_J, 1e-9 * own->run.size_J);
    EXPECT_EQ(own->run.missed, 0);
  }
  // The controls: they have moved, and the gap is not small because the step is.
  EXPECT_GT(std::abs(body.left[0] + 1.2), 0.1);
  EXPECT_GT(std::abs(body.left[0] - fine.left[0]), 1e-8);
}

/// Speeds are joined, not places: points that start apart would stay apart.
TEST(MechanismLoops, PointsThatAreJoinedStartAtOnePlace) {
  const auto built = [](const std::array<double, 3>& off, double scale) {
    Chain arm, body;
    arm.add("revolute", "j1", {0.2 * scale, 0, 0}, {0, 1, 0}, 1.0, {0.1, 0, 0},
            {0.1, 0, 0, 0.1, 0, 0.1});
    arm.frame("hand", "j1", {0.5 * scale, 0, 0.1 * scale}, "wrench");
    body.add("free", "body", {0, 0, 0}, {0, 0, 1}, 1.0, {0, 0, 0}, {0.1, 0, 0, 0.1, 0, 0.1});
    body.frame("handle", "body", {0, 0.3 * scale, 0}, "wrench");
    SystemBuilder builder;
    builder.add("arm", arm.part(), {.initial_state = {0.4, 0}});
    const Vector3d hand = Vector3d(0.2, 0, 0) + turn(0.4, {0, 1, 0}) * Vector3d(0.5, 0, 0.1);
    // A quarter turn about z takes the handle to −x.
    const Vector3d at = scale * (hand + Vector3d(0.3, 0, 0)) + Vector3d(off[0], off[1], off[2]);
    const double half = std::sqrt(0.5);
    builder.add("body", body.part(),
                {.initial_state = {at.x(), at.y(), at.z(), half, 0, 0, half, 0, 0, 0, 0, 0, 0}});
    builder.join(joint::CommonFlow{}, {"arm.hand", "body.handle"});
    builder.join(joint::CommonFlow{}, {"arm.hand_torque", "body.handle_torque"});
    return builder.build();
  };
  for (const double scale : {1.0, 1e6, 1e-6}) EXPECT_NO_THROW(built({0, 0, 0}, scale)) << scale;
  EXPECT_NO_THROW(built({1e-7, 0, 0}, 1.0)) << "digits of a file";
  try {
    built({0, 0.02, 0}, 1.0);
    FAIL() << "they start 2 cm apart";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.issues().front().where, "/couplings/0/ports/1");
    const std::string what = error.issues().front().what;
    EXPECT_NE(what.find("\"arm.hand\" and \"body.handle\" start 0.02 m apart"), std::string::npos)
        << what;
    EXPECT_NE(what.find("moved by (0, -0.02, 0)"), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace portwave::test_mechanism_cuts
