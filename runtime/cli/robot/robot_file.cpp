#include "robot/robot_file.hpp"

#include <string_view>

#ifdef PORTWAVE_URDF
#include <tinyxml2.h>
#endif

#include <Eigen/Dense>
#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"
#include "robot/mjcf.hpp"
#include "robot/urdf.hpp"

namespace portwave::cli {
namespace {

Robot as_written(const std::string& text) {
#ifdef PORTWAVE_URDF
  tinyxml2::XMLDocument document;
  document.Parse(text.data(), text.size());
  const tinyxml2::XMLElement* const root = document.RootElement();
  if (root != nullptr && std::string_view(root->Name()) == "mujoco") return read_mjcf(text);
#endif
  return read_urdf(text);
}

/// I₁ + I₂ ≥ I₃ for every distribution of mass.
void tell_impossible_inertia(Robot& robot) {
  constexpr double kRounding = 1e-3;  // files have few digits
  for (const RobotLink& link : robot.links) {
    const auto& I = link.inertia;
    Eigen::Matrix3d matrix;
    matrix << I[0], I[1], I[2], I[1], I[3], I[4], I[2], I[4], I[5];
    const Eigen::Vector3d own =
        Eigen::SelfAdjointEigenSolver<Eigen::Matrix3d>(matrix, Eigen::EigenvaluesOnly)
            .eigenvalues();
    if (own[2] <= (1.0 + kRounding) * (own[0] + own[1])) continue;
    robot.notes.push_back(fmt::format(
        "link {}: no body has its moments of inertia, {:.3g}, {:.3g} and {:.3g} kg m^2: the "
        "largest exceeds the sum of the others; it moves as given",
        in_quotes(link.name), own[0], own[1], own[2]));
  }
}

}  // namespace

Robot read_robot(const std::string& text) {
  Robot out = as_written(text);
  tell_impossible_inertia(out);
  return out;
}

}  // namespace portwave::cli
