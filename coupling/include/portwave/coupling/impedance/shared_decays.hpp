#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

class RigidTies;

/// Stiff decays of what several storages have in common with one resistance: of the speed of one mass against another
/// across a damper, of the voltage between two capacitors across a resistor, of two states inside a part.
///
/// A loss takes the power uᵀSu from u = Cy, which the outputs y of storages decide, and its rate is
/// λ = Σᵢ sᵢ(CᵀSC)ᵢᵢ, with s as in FastPort: exact for one direction, such as a difference. What moves without
/// changing u, two masses that swing together for example, loses nothing, and no damped step should take from it.
/// So a step is judged by what it does to u: a conserving step throws a decay with hλ ≫ 1 across its rest, so that the
/// mean of u differs from what u was by as much as u was, while a motion of frequency ω that the step resolves changes
/// u by about (hω)²/(2hλ) of y.
///
/// Losses are those of linear resistances whose parameters do not follow signals: at ports whose joints decide u (or
/// y, at a part with one port) by what storages show, sources that are constant and ends that are fixed; and
/// inside linear parts between up to four states. Storages as in OneSidedDecays.
/// Cost     at construction a Hessian for each part that is not equal to another one, and a small factorisation for
///          each joint at which some decay may exceed `limit`; later some products for each loss.
class SharedDecays {
 public:
  /// `may_take`: whether a part may be damped. `is_exchanged`: whether its parameters follow signals.
  SharedDecays(const System& system, double step_s, double limit,
               const std::function<bool(int part)>& may_take,
               const std::function<bool(int part)>& is_exchanged);

  /// Something that stores, with an output that it alone decides.
  struct Storage {
    int part;
    int port;  ///< of the part; −1 − i: state i inside it
    bool is_linear = true;
    /// y = Σ cᵢxᵢ, or Σ cᵢ∂H/∂xᵢ if it is nonlinear: (i, cᵢ).
    std::vector<std::pair<int, double>> output = {};
    std::vector<int> shown = {};  ///< states that the output depends on
    double stiffness = 0.0;       ///< s
  };
  struct Loss {
    int part = -1;              ///< that resists
    std::vector<int> ports;     ///< of it; empty: inside
    bool is_inverse = false;    ///< C gives the output of its port, not the input
    Eigen::MatrixXd C;          ///< by port and storage
    std::vector<int> storages;  ///< numbers
    Eigen::MatrixXd losses;     ///< CᵀSC
    double rate = 0.0;          ///< λ [1/s]
    int set = -1;               ///< of `sets`
  };
  std::span<const Storage> storages() const { return storages_; }
  std::span<const Loss> losses() const { return losses_; }
  /// Parts whose ends of steps must agree, by loss.
  std::span<const std::vector<int>> sets() const { return sets_; }
  bool empty() const { return losses_.empty(); }

  /// The output of a storage at a state.
  double output(std::size_t storage, const double* state);
  /// |ΔU| beside |U|: √(ΔyᵀCᵀSCΔy / Σ(CᵀSC)ᵢᵢyᵢ²), both by storage; 0 where nothing is.
  double share(std::size_t loss, std::span<const double> change,
               std::span<const double> magnitude) const;
  /// A part has another component than before.
  void component_changed(int part);

 private:
  struct Network;
  void add_at_ports(int part, Network& network, RigidTies& ties);
  void add_inside(int part, const Network& network, RigidTies& ties);
  bool keep(Loss loss, RigidTies& ties);
  int number_of(Storage storage, std::ptrdiff_t first);
  void take_physics(Storage& storage) const;
  void find_losses(Loss& loss) const;

  const System& system_;
  double h_;
  double limit_;
  std::vector<Storage> storages_;
  std::vector<Loss> losses_;
  std::vector<std::vector<int>> sets_;
  std::vector<double> gradient_;  // scratch
};

}  // namespace portwave
