#pragma once

#include <array>
#include <string_view>

#include <Eigen/Dense>

namespace portwave::cli {

/// A primitive shape of MJCF: half lengths, its axis along z.
struct MjcfShape {
  std::string_view kind;         ///< sphere, capsule, cylinder, ellipsoid or box
  std::array<double, 3> size{};  ///< radius; radius, half length; half axes
};

/// How many numbers describe the size of a kind; 0 for those that are no primitive shapes with a volume.
int size_count(std::string_view kind);

double volume(const MjcfShape& shape);
/// About its centre, in its axes, of mass 1.
Eigen::Vector3d moments_of_unit_mass(const MjcfShape& shape);

/// Mass, mass centre and moments of several bodies made one.
class MassSum {
 public:
  void add(double mass, const Eigen::Vector3d& centre, const Eigen::Matrix3d& moments_about_it);

  double mass() const { return mass_; }
  Eigen::Vector3d centre() const;
  /// About the mass centre.
  Eigen::Matrix3d moments() const;

 private:
  double mass_ = 0.0;
  Eigen::Vector3d first_ = Eigen::Vector3d::Zero();
  Eigen::Matrix3d about_origin_ = Eigen::Matrix3d::Zero();
};

}  // namespace portwave::cli
