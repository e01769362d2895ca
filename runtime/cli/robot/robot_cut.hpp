#pragma once

#include <map>
#include <string>
#include <vector>

#include <Eigen/Geometry>

#include <portwave/subsystems/catalogue/catalogue.hpp>

namespace portwave::cli {

/// A part "articulated" of a robot that is cut.
struct RobotPiece {
  std::string name;
  Parameters parameters;
  std::map<std::string, double> start;  ///< of its base; at rest
};

/// Two frames of pieces that are one place of one body: "robot.elbow_cut" and "robot_elbow.base_cut".
struct RobotWeld {
  std::string inner, outer;
};

struct RobotCut {
  std::vector<RobotPiece> pieces;
  std::map<std::string, std::string> owner;  ///< of a joint or frame: the name of its piece
  std::vector<RobotWeld> welds;
};

/// Cuts a tree at joints. What hangs on such a joint becomes a piece "<name>_<joint>" with the joint itself, on a free
/// body "base", which takes an equal share of the body that the joint hangs on; the two shares are welded together.
/// So joints of all kinds are cut, with their dampers, ports and inputs, and the whole has its mass and its motion.
/// What hangs on bodies that are fixed to the world hangs there as before, and nothing is welded.
/// `parameters`: of a part "articulated", with every list given; `poses`: of the world and then of each body at the
/// start, in the world.
/// Errors: ConfigError with every name that is no joint, is given twice or cannot be cut, and why.
RobotCut cut_robot(const std::string& name, const Parameters& parameters,
                   const std::vector<std::string>& joints,
                   const std::vector<Eigen::Isometry3d>& poses);

}  // namespace portwave::cli
