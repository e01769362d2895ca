#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"

namespace PORTWAVE_EXPORT portwave {

/// What the laws of nonlinear resistances (Subsystem::port_law) do behind the last stage of a step. A body that dry
/// friction stops there goes on against the friction until the end of the step, and no stage has seen it.
///
/// Laws count whose inputs follow from the states at the end of the step: those at joints at which all others
/// give what is added up, as masses do, or one gives what is common, as a capacitor does, by their states alone.
class LawEnds {
 public:
  /// The system must outlive it.
  explicit LawEnds(const System& system);

  bool empty() const { return laws_.empty(); }

  struct Error {
    int part = -1;          ///< that is moved most
    double energy_J = 0.0;  ///< of the error of its state
  };
  /// The error of a step of size `step_s` by laws whose value at the end is far from where the stages lead them.
  /// `input(scalar_port, stage)`: at the port of a law; `state(part)`: at the end.
  Error error(double step_s, const StageRule& rule,
              const std::function<double(int scalar_port, int stage)>& input,
              const std::function<std::span<const double>(int part)>& state) const;

 private:
  /// A part that gives something to the input of a law, or takes what the law gives.
  struct Giver {
    int part;
    int own;         ///< its scalar port
    double share;    ///< of its output in the input
    double storage;  ///< (G + P)ᵀ∇²H(G − P) there
  };
  struct Law {
    int part;
    int own;   ///< scalar port of the part
    int port;  ///< scalar port of the system
    std::vector<Giver> givers;
  };
  std::optional<Law> law_at(const Junction& junction, std::size_t place) const;

  const System& system_;
  std::vector<Law> laws_;
};

}  // namespace portwave
