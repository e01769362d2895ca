#include "robot/robot_cut.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <Eigen/Dense>
#include <fmt/format.h>

#include <portwave/subsystems/base/error.hpp>
#include <portwave/subsystems/base/printable.hpp>

namespace portwave::cli {
namespace {

using Numbers = std::vector<double>;
using Texts = std::vector<std::string>;
using Eigen::Matrix3d;
using Eigen::Vector3d;

constexpr const char* kBase = "base";

Vector3d vector_of(const Numbers& v) { return {v[0], v[1], v[2]}; }
Numbers numbers_of(const Vector3d& v) { return {v.x(), v.y(), v.z()}; }

Matrix3d matrix_of(const Numbers& I) {
  Matrix3d out;
  out << I[0], I[1], I[2], I[1], I[3], I[4], I[2], I[4], I[5];
  return out;
}

/// Roll, pitch and yaw.
Numbers angles_of(const Matrix3d& R) {
  const double pitch = std::atan2(-R(2, 0), std::hypot(R(0, 0), R(1, 0)));
  const double yaw = std::atan2(R(1, 0), R(0, 0));
  // Of what is left without yaw and pitch: sound also where pitch is a right angle.
  const double roll = std::atan2(std::sin(yaw) * R(0, 2) - std::cos(yaw) * R(1, 2),
                                 std::cos(yaw) * R(1, 1) - std::sin(yaw) * R(0, 1));
  return {roll, pitch, yaw};
}

/// About its mass centre.
struct Inertia {
  double mass = 0.0;
  Vector3d centre = Vector3d::Zero();
  Matrix3d moments = Matrix3d::Zero();

  void add(double m, const Vector3d& c, const Matrix3d& I) {
    const double both = mass + m;
    if (both > 0.0) {
      const Vector3d d = c - centre;
      moments += mass * m / both * (d.squaredNorm() * Matrix3d::Identity() - d * d.transpose());
      centre = (mass * centre + m * c) / both;
    }
    moments += I;
    mass = both;
  }
  bool is_solid() const {
    const Vector3d own = Eigen::SelfAdjointEigenSolver<Matrix3d>(moments).eigenvalues();
    return mass > 0.0 && own[0] > 1e-12 * own[2] && own[2] > 0.0;
  }
};

class Cutter {
 public:
  Cutter(const std::string& name, const Parameters& parameters,
         const std::vector<Eigen::Isometry3d>& poses)
      : name_(name),
        whole_(parameters),
        poses_(poses),
        names_(texts("names")),
        kinds_(texts("joints")) {
    for (const double parent : std::get<Numbers>(whole_.at("parents"))) {
      parents_.push_back(static_cast<int>(parent) - 1);
    }
  }

  RobotCut cut(const Texts& joints) {
    find_cuts(joints);
    throw_if_any(std::move(issues_));
    add_pieces();
    for (std::size_t i = 0; i < names_.size(); ++i) add_body(i);
    add_frames();
    for (Piece& own : pieces_) {
      const bool moves = std::ranges::any_of(own.kinds, [](const auto& k) { return k != "fixed"; });
      if (moves) finish(own);
    }
    return std::move(out_);
  }

 private:
  struct Piece {
    RobotPiece part;
    Texts kinds, names, frames, frame_joints, frame_kinds;
    MatrixRows frame_points;
    std::vector<std::size_t> bodies;  ///< of the whole, without the base
    Numbers parents, masses, damping;
    MatrixRows places, turns, axes, centres, inertias;
  };

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  const Texts& texts(const char* key) const { return std::get<Texts>(whole_.at(key)); }
  const Numbers& row(const char* key, std::size_t i) const { return rows(key)[i]; }
  const MatrixRows& rows(const char* key) const { return std::get<MatrixRows>(whole_.at(key)); }
  double number(const char* key, std::size_t i) const {
    return std::get<Numbers>(whole_.at(key))[i];
  }

  /// The body of a group that are fixed to one another that moves, −1: the world.
  int root_of(int body) const {
    while (body >= 0 && kinds_[at(body)] == "fixed") body = parents_[at(body)];
    return body;
  }

  void find_cuts(const Texts& joints) {
    is_cut_.assign(names_.size(), 0);
    shares_.assign(names_.size(), 1.0);
    for (const std::string& joint : joints) {
      const auto found = std::ranges::find(names_, joint);
      const auto i = static_cast<std::size_t>(found - names_.begin());
      const auto report = [&](std::string what) {
        issues_.push_back({"--cut", fmt::format("{}: {}", in_quotes(joint), what)});
      };
      if (found == names_.end()) {
        report(fmt::format("there is no joint of this name.{}", did_you_mean(joint, names_)));
      } else if (is_cut_[i] != 0) {
        report("is given twice");
      } else if (kinds_[i] == "fixed" || kinds_[i] == "free") {
        report(fmt::format("is {}: give a joint that moves and hangs on a body",
                           kinds_[i] == "free" ? "free already" : "fixed"));
      } else if (const int root = root_of(parents_[i]); root >= 0 && !group_of(root).is_solid()) {
        report(
            "hangs on a body that cannot be shared, since it has no mass, or no moment of inertia "
            "about some axis: cut at another joint");
      } else {
        is_cut_[i] = 1;
        if (root >= 0) shares_[at(root)] += 1.0;
      }
    }
  }

  /// Of the bodies fixed to a moving one, in its axes.
  Inertia group_of(int root) const {
    Inertia out;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (root_of(static_cast<int>(i)) != root) continue;
      const Eigen::Isometry3d pose = poses_[at(root) + 1].inverse() * poses_[i + 1];
      const Matrix3d R = pose.rotation();
      out.add(number("masses_kg", i), pose * vector_of(row("centres_m", i)),
              R * matrix_of(row("inertias_kgm2", i)) * R.transpose());
    }
    return out;
  }

  void add_pieces() {
    pieces_.emplace_back().part.name = name_;
    piece_of_.assign(names_.size(), 0);
    number_in_.assign(names_.size(), 0);
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (parents_[i] >= 0) piece_of_[i] = piece_of_[at(parents_[i])];
      if (is_cut_[i] == 0) continue;
      piece_of_[i] = pieces_.size();
      pieces_.emplace_back().part.name = name_ + "_" + names_[i];
    }
  }

  void put(Piece& piece, const std::string& kind, const std::string& name, int parent,
           const Numbers& place, const Numbers& turn, const Numbers& axis, const Inertia& inertia,
           double damping) {
    piece.kinds.push_back(kind);
    piece.names.push_back(name);
    piece.parents.push_back(parent);
    piece.places.push_back(place);
    piece.turns.push_back(turn);
    piece.axes.push_back(axis);
    piece.masses.push_back(inertia.mass);
    piece.centres.push_back(numbers_of(inertia.centre));
    const Matrix3d& I = inertia.moments;
    piece.inertias.push_back({I(0, 0), I(0, 1), I(0, 2), I(1, 1), I(1, 2), I(2, 2)});
    piece.damping.push_back(damping);
  }

  void add_body(std::size_t i) {
    Piece& piece = pieces_[piece_of_[i]];
    Numbers place = row("places_m", i), turn = row("turns_rad", i);
    int parent = parents_[i] < 0 ? 0 : number_in_[at(parents_[i])];
    if (is_cut_[i] != 0) {
      const int root = root_of(parents_[i]);
      // Of the joint at rest, in the axes of what carries it now.
      const Eigen::Isometry3d carrier =
          root < 0 ? Eigen::Isometry3d::Identity() : poses_[at(root) + 1];
      const Eigen::Isometry3d on =
          parents_[i] < 0 ? Eigen::Isometry3d::Identity() : poses_[at(parents_[i]) + 1];
      Eigen::Isometry3d joint = carrier.inverse() * on;
      joint.translate(vector_of(place));
      joint.rotate(Eigen::AngleAxisd(turn[2], Vector3d::UnitZ()) *
                   Eigen::AngleAxisd(turn[1], Vector3d::UnitY()) *
                   Eigen::AngleAxisd(turn[0], Vector3d::UnitX()));
      if (root != parents_[i]) {  // else they are as given, to the last digit
        place = numbers_of(joint.translation());
        turn = angles_of(joint.rotation());
      }
      parent = 0;
      if (root >= 0) parent = add_base(i, root, place);
    }
    const double share =
        root_of(static_cast<int>(i)) < 0 ? 1.0 : shares_[at(root_of(static_cast<int>(i)))];
    Inertia own;
    own.mass = number("masses_kg", i) / share;
    own.centre = vector_of(row("centres_m", i));
    own.moments = matrix_of(row("inertias_kgm2", i)) / share;
    put(piece, kinds_[i], names_[i], parent, place, turn, row("axes", i), own,
        number("damping", i));
    number_in_[i] = static_cast<int>(piece.names.size());
    out_.owner[names_[i]] = piece.part.name;
    if (kinds_[i] != "free") return;
    for (const char* const port : {"_force", "_torque"}) {
      out_.owner[names_[i] + port] = piece.part.name;
    }
  }

  /// A share of the body on which joint i hangs; returns its number.
  int add_base(std::size_t i, int root, const Numbers& place) {
    Piece& piece = pieces_[piece_of_[i]];
    Piece& inner = pieces_[piece_of_[at(root)]];
    Inertia share = group_of(root);
    share.mass /= shares_[at(root)];
    share.moments /= shares_[at(root)];
    put(piece, "free", kBase, 0, {0, 0, 0}, {0, 0, 0}, {0, 0, 1}, share, 0.0);
    const Eigen::Isometry3d& pose = poses_[at(root) + 1];
    const Eigen::Quaterniond q(pose.rotation());
    for (const auto& [state, value] : {std::pair("base_x", pose.translation().x()),
                                       {"base_y", pose.translation().y()},
                                       {"base_z", pose.translation().z()},
                                       {"base_q_w", q.w()},
                                       {"base_q_x", q.x()},
                                       {"base_q_y", q.y()},
                                       {"base_q_z", q.z()}}) {
      piece.part.start[state] = value;
    }
    const std::string frame = names_[i] + "_cut";
    add_frame(inner, frame, names_[at(root)], place, "wrench");
    add_frame(piece, "base_cut", kBase, place, "wrench");
    out_.welds.push_back({inner.part.name + "." + frame, piece.part.name + ".base_cut"});
    return 1;
  }

  static void add_frame(Piece& piece, const std::string& name, const std::string& joint,
                        const Numbers& point, const std::string& kind) {
    piece.frames.push_back(name);
    piece.frame_joints.push_back(joint);
    piece.frame_points.push_back(point);
    piece.frame_kinds.push_back(kind);
  }

  void add_frames() {
    if (!whole_.contains("frames")) return;
    for (std::size_t i = 0; i < texts("frames").size(); ++i) {
      const std::string& joint = texts("frame_joints")[i];
      const auto body = static_cast<std::size_t>(std::ranges::find(names_, joint) - names_.begin());
      Piece& piece = pieces_[piece_of_[body]];
      add_frame(piece, texts("frames")[i], joint, row("frame_points_m", i), "force");
      out_.owner[texts("frames")[i]] = piece.part.name;
    }
  }

  void finish(Piece& own) {
    Parameters& parameters = own.part.parameters;
    parameters = {{"joints", own.kinds},           {"names", own.names},
                  {"parents", own.parents},        {"places_m", own.places},
                  {"turns_rad", own.turns},        {"axes", own.axes},
                  {"masses_kg", own.masses},       {"centres_m", own.centres},
                  {"inertias_kgm2", own.inertias}, {"damping", own.damping}};
    if (!own.frames.empty()) {
      parameters["frames"] = own.frames;
      parameters["frame_joints"] = own.frame_joints;
      parameters["frame_points_m"] = own.frame_points;
      parameters["frame_kinds"] = own.frame_kinds;
    }
    if (const auto g = whole_.find("gravity_m_per_s2"); g != whole_.end()) {
      parameters["gravity_m_per_s2"] = g->second;
    }
    out_.pieces.push_back(std::move(own.part));
  }

  const std::string& name_;
  const Parameters& whole_;
  const std::vector<Eigen::Isometry3d>& poses_;
  const Texts &names_, &kinds_;
  std::vector<int> parents_;  ///< −1: the world
  std::vector<char> is_cut_;
  Numbers shares_;  ///< by moving body: in how many its group is dealt out
  std::vector<std::size_t> piece_of_;
  std::vector<int> number_in_;  ///< its piece, from 1
  std::vector<Piece> pieces_;
  RobotCut out_;
  Issues issues_;
};

}  // namespace

RobotCut cut_robot(const std::string& name, const Parameters& parameters,
                   const std::vector<std::string>& joints,
                   const std::vector<Eigen::Isometry3d>& poses) {
  return Cutter(name, parameters, poses).cut(joints);
}

}  // namespace portwave::cli
