// A point or a sphere of a body on the ground, with friction.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include "catalogue/mechanical/contact.hpp"
#include "nonlinear/friction_contact.hpp"

namespace portwave {
namespace {
namespace ground_contact_type {

using Numbers = std::vector<double>;

constexpr ContactNames kNames = {"force_N", "compression_m", "damping_s_per_m"};

Eigen::VectorXd unit_normal(const Numbers& given) {
  if (given.empty()) return Eigen::Vector3d::UnitZ();
  const Eigen::VectorXd n =
      Eigen::Map<const Eigen::VectorXd>(given.data(), static_cast<Eigen::Index>(given.size()));
  const double length = n.size() == 2 || n.size() == 3 ? n.stableNorm() : 0.0;
  if (!(length > 0.0)) {
    throw ConfigError("/normal", "must have 2 or 3 components that are not all 0");
  }
  return n / length;
}

/// From the flows of the ports to the velocity of the surface, v + ω × (−R n): the spin's part is R n × ω.
Eigen::MatrixXd surface_motion(const Eigen::VectorXd& n, double radius, bool rolls) {
  const Eigen::Index d = n.size(), spins = !rolls ? 0 : d == 3 ? 3 : 1;
  Eigen::MatrixXd B = Eigen::MatrixXd::Zero(d, d + spins);
  B.leftCols(d).setIdentity();
  if (!rolls) return B;
  if (d == 2) {
    B.col(2) << n[1], -n[0];
  } else {
    B.col(3) << 0.0, n[2], -n[1];
    B.col(4) << -n[2], 0.0, n[0];
    B.col(5) << n[1], -n[0], 0.0;
  }
  B.rightCols(spins) *= radius;
  return B;
}

std::unique_ptr<Component> build(const Parameters& p) {
  FrictionContactLaw law;
  law.n = unit_normal(value_of<Numbers>(p, "normal"));
  const double radius = number_of(p, "radius_m");
  const bool rolls = value_of<bool>(p, "rolls");
  law.normal = contact_law(p, kNames, value_of<std::string>(p, "law") == "hertz");
  law.normal.faces = Faces::negative;
  law.normal.gap = -(number_of(p, "height_m") + radius);
  law.friction = number_of(p, "friction");
  law.creep_speed = number_of(p, "creep_speed_m_per_s");
  law.B = surface_motion(law.n, radius, rolls);
  const auto d = static_cast<int>(law.n.size());
  Signature signature{
      "ground_contact", {}, {{"point", Causality::flow_in, Domain::translation, d}}, {}};
  constexpr const char* kAxes[] = {"x", "y", "z"};
  for (int i = 0; i < d; ++i) signature.states.push_back({kAxes[i], "m"});
  if (rolls) {
    signature.ports.push_back({"spin", Causality::flow_in, Domain::rotation, d == 3 ? 3 : 1});
  }
  return std::make_unique<FrictionContact>(std::move(signature), std::move(law));
}

ParameterInfo number(std::string name, std::string unit, std::string summary, double by_default) {
  ParameterInfo info;
  info.name = std::move(name);
  info.unit = std::move(unit);
  info.summary = std::move(summary);
  info.default_value = by_default;
  return info;
}

}  // namespace ground_contact_type
}  // namespace

PartType ground_contact_type() {
  using namespace ground_contact_type;
  PartType type;
  type.name = "ground_contact";
  type.group = "translation";
  type.summary =
      "A point or a sphere of a body on the ground, with Coulomb friction by the normal force.";
  type.equations =
      "r' = u,  s = max(0, height + R - n^T r):  r, the point or the sphere's centre, in world "
      "axes\n"
      "H = k s^(m+1)/(m+1),  N = k s^m max(0, 1 + a s'),  m = 1 (linear) or 3/2 (Hertz),\n"
      "k = force/compression^m:  the ground pushes and never pulls\n"
      "e = -n N + mu N tanh(|u_t|/v0) u_t/|u_t|,  u_t = u - n n^T u:  at most mu N, against the "
      "slip\n"
      "u = f_point;  with rolls:  u = f_point + R n x f_spin,  e_spin = R (n x .)^T e,  and r is\n"
      "how far the surface has moved and slid. Start r where the body has the point.";
  type.parameters = contact_parameters(kNames, "m");
  type.parameters.push_back(non_negative_number("friction", "", "coefficient mu of friction"));
  type.parameters.push_back(positive_number(
      "creep_speed_m_per_s", "m/s",
      "slip v0 at which friction is three quarters of mu N: sticking is creep below it"));
  ParameterInfo normal;
  normal.name = "normal";
  normal.kind = ParameterKind::numbers;
  normal.summary =
      "direction n out of the ground, of any length: 2 or 3 components; absent: z, in space";
  normal.default_value = Numbers();
  type.parameters.push_back(std::move(normal));
  type.parameters.push_back(number("height_m", "m", "of the ground, from the origin along n", 0.0));
  ParameterInfo radius = non_negative_number("radius_m", "m", "radius R of the sphere; 0: a point");
  radius.default_value = 0.0;
  type.parameters.push_back(std::move(radius));
  ParameterInfo rolls;
  rolls.name = "rolls";
  rolls.kind = ParameterKind::boolean;
  rolls.summary =
      "whether a port \"spin\" takes the angular velocity, so that the sphere rolls; else it "
      "carries no torque";
  rolls.default_value = false;
  type.parameters.push_back(std::move(rolls));
  ParameterInfo law;
  law.name = "law";
  law.kind = ParameterKind::choice;
  law.default_value = std::string("linear");
  law.choices = {"linear", "hertz"};
  law.summary = "m: linear, or Hertz's law of round bodies";
  type.parameters.push_back(std::move(law));
  type.example = {{"force_N", 20.0},
                  {"compression_m", 0.5},
                  {"damping_s_per_m", 0.1},
                  {"friction", 0.6},
                  {"normal", Numbers{0.0, 0.6, 0.8}},
                  {"height_m", -0.3},
                  {"creep_speed_m_per_s", 2.0},
                  {"radius_m", 0.3},
                  {"rolls", true}};
  type.build = build;
  return type;
}

}  // namespace portwave
