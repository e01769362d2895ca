#include "robot/mjcf_shapes.hpp"

#include <numbers>

namespace portwave::cli {
namespace {

using std::numbers::pi;

double cylinder_volume(double r, double half) { return 2.0 * pi * r * r * half; }
double sphere_volume(double r) { return 4.0 / 3.0 * pi * r * r * r; }

/// mass (|c|² 1 − c cᵀ)
Eigen::Matrix3d moments_of_point(double mass, const Eigen::Vector3d& c) {
  return mass * (c.squaredNorm() * Eigen::Matrix3d::Identity() - c * c.transpose());
}

}  // namespace

int size_count(std::string_view kind) {
  if (kind == "sphere") return 1;
  if (kind == "capsule" || kind == "cylinder") return 2;
  return kind == "ellipsoid" || kind == "box" ? 3 : 0;
}

double volume(const MjcfShape& shape) {
  const auto& [a, b, c] = shape.size;
  if (shape.kind == "sphere") return sphere_volume(a);
  if (shape.kind == "cylinder") return cylinder_volume(a, b);
  if (shape.kind == "capsule") return cylinder_volume(a, b) + sphere_volume(a);
  return shape.kind == "ellipsoid" ? 4.0 / 3.0 * pi * a * b * c : 8.0 * a * b * c;
}

Eigen::Vector3d moments_of_unit_mass(const MjcfShape& shape) {
  const auto& [a, b, c] = shape.size;
  if (shape.kind == "sphere") return Eigen::Vector3d::Constant(0.4 * a * a);
  if (shape.kind == "box" || shape.kind == "ellipsoid") {
    const double share = shape.kind == "box" ? 1.0 / 3.0 : 0.2;
    return share * Eigen::Vector3d(b * b + c * c, a * a + c * c, a * a + b * b);
  }
  const double across = a * a / 4.0 + b * b / 3.0, along = a * a / 2.0;
  if (shape.kind == "cylinder") return {across, across, along};
  const double ends = sphere_volume(a) / volume(shape);  // two half balls, each moved by b
  const double end_across = 0.4 * a * a + b * b + 0.75 * a * b, end_along = 0.4 * a * a;
  const double x = (1.0 - ends) * across + ends * end_across;
  return {x, x, (1.0 - ends) * along + ends * end_along};
}

void MassSum::add(double mass, const Eigen::Vector3d& centre, const Eigen::Matrix3d& moments) {
  mass_ += mass;
  first_ += mass * centre;
  about_origin_ += moments + moments_of_point(mass, centre);
}

Eigen::Vector3d MassSum::centre() const {
  return mass_ > 0.0 ? Eigen::Vector3d(first_ / mass_) : Eigen::Vector3d::Zero();
}

Eigen::Matrix3d MassSum::moments() const {
  return about_origin_ - moments_of_point(mass_, centre());
}

}  // namespace portwave::cli
