#pragma once

#include <span>
#include <vector>

#include <Eigen/Core>

#include "portwave/coupling/impedance/tuning.hpp"

namespace portwave {

/// What the rules have in common: the ports with their responses, matches and junctions.
class PortMatches {
 public:
  explicit PortMatches(const PortResponses& responses);

  const PortResponses& responses() const { return responses_; }
  const System& system() const { return responses_.system(); }
  /// The match of every scalar port; where a part has none, the impedance that the port sees on the
  /// other side of its junction, or what those of its island and domain are about, or 1.
  std::span<const double> values() const { return values_; }
  /// Whether the part itself has a match there.
  bool is_own(int port) const { return is_own_[static_cast<std::size_t>(port)]; }
  /// Whether a port has an ideal end: a junction of its own.
  bool is_end(int port) const {
    return system().junctions()[static_cast<std::size_t>(junction_of(port))].waves.size() == 1;
  }
  /// Junction of a scalar port.
  int junction_of(int port) const { return junction_of_[static_cast<std::size_t>(port)]; }

 private:
  const PortResponses& responses_;
  std::vector<double> values_;
  std::vector<bool> is_own_;
  std::vector<int> junction_of_;
};

/// The impedance that port `own` of a junction sees when its other ports are closed by parts of the
/// impedances given: P_jj = 0 with it. `impedance` is by port of the junction. Not positive and
/// finite where there is none.
double seen_impedance(const DiracStructure& dirac, std::span<const double> impedance, int own);

/// Matches the ideal ends of every part together, its other ports closed by their impedances. Two
/// ends that hold the same body would otherwise reflect a third of what they share.
void match_ends(const PortMatches& matches, std::vector<double>& impedance);

std::vector<double> leaf_impedances(const PortMatches& matches);
std::vector<double> adapted_impedances(const PortMatches& matches);
std::vector<double> across_impedances(const PortMatches& matches);
TunedImpedance fne_impedances(const PortMatches& matches);

/// By island: how much rounding the step map of its worst passive part multiplies with these
/// impedances.
std::vector<double> worst_conditions(const PortResponses& responses,
                                     std::span<const double> impedance);

/// Scales x > 0 with which all eigenvalues of diag(x) B are 1, B being the response of one port's
/// stages to one another: 2×2 or 3×3, in the variables of staged_part. A port whose stages have the
/// impedances 1/x (x, if it is effort-in) then reflects with (I + xB)⁻¹(I − xB), which is nilpotent:
/// what comes in has gone after as many reflections as there are stages. The match of each stage by
/// itself, 1/bᵢᵢ, leaves two stages of a lossless element .28 of it each time. Empty where
/// there are no such x, or none is found.
Eigen::VectorXd stage_scales(const Eigen::MatrixXd& response);

}  // namespace portwave
