#pragma once

#include <complex>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/port.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace PORTWAVE_EXPORT portwave {

class RigidTies;

/// The decays of storages that share a joint with a resistance that changes: dry friction, diodes, valves,
/// switches, and resistors whose parameter is driven. Each may be far faster than a step at one moment, and nothing at the next.
///
/// A storage is a part with a constant structure that takes damped stages, without factors of sparse step maps, and
/// without a solver of its own if it is nonlinear. Its decay is that of fastest_decays, with what the resistances are at given inputs and ∇²H is at a given state. Joints
/// whose decays stay below `limit` at every resistance that their parts can have are left out, so that systems in which
/// every decay is resolved have none; and so are joints where a part that may not be taken stores, or is tied to one
/// that does.
/// Cost     at construction a few µs per joint; later that of the laws, and of joints whose resistances have
///          changed by a tenth; of nonlinear storages ∇²H where their decay may be fast.
class OneSidedDecays {
 public:
  /// `may_take`: whether a part counts as a storage; `is_exchanged`: whether it has other parameters from time to time.
  OneSidedDecays(const System& system, double step_s, double limit,
                 const std::function<bool(int part)>& may_take,
                 const std::function<bool(int part)>& is_exchanged);
  ~OneSidedDecays();
  OneSidedDecays(OneSidedDecays&&) noexcept;

  struct Storage {
    int part;
    int set;  ///< of `sets`
    bool is_linear = true;
    /// Of its output at the port of the joint, y = Σ cᵢxᵢ, or Σ cᵢ∂H/∂xᵢ if it is nonlinear: (i, cᵢ).
    std::vector<std::pair<int, double>> output = {};
    std::vector<int> shown = {};  ///< states that the output depends on
  };
  std::span<const Storage> storages() const { return storages_; }
  /// Parts whose ends of steps must agree: those that store at one joint, and all that rigid joints tie to these.
  std::span<const std::vector<int>> sets() const { return sets_; }
  bool empty() const { return storages_.empty(); }

  /// With what a resistance changes: the input of its port, the state of its part, or when its part is exchanged.
  enum class Change { input, state, parameter };
  /// A scalar port whose resistance or conductance changes.
  struct Resistance {
    int part;
    int port;  ///< scalar port of the system
    int own;   ///< of the part
    Causality causality;
    Change with;
    bool is_exchanged;  ///< its part has other parameters from time to time
  };
  std::span<const Resistance> resistances() const { return resistances_; }

  /// The resistance or conductance number `i`, by its port's causality. `input`: of its port; `state`: of its part. The
  /// one that does not count may be anything.
  double direct(std::size_t i, double input, const double* state);
  /// The output of a storage at a state.
  double output(std::size_t storage, const double* state);
  using StateOf = std::function<const double*(int part)>;
  /// hλ by storage, for one value of `direct` by resistance. `state`: of nonlinear storages.
  void find(std::span<const double> direct, std::span<double> h_lambda, const StateOf& state);

  /// Steps have another size from now on.
  void set_step(double step_s);
  /// A part has another component than before.
  void component_changed(int part);

 private:
  struct Joint;

  bool add(const Junction& junction, const std::vector<int>& number, RigidTies& ties);
  void take_physics(Joint& joint);
  void judge(Joint& joint, std::span<const double> direct);
  void find_rates(const Joint& joint, std::vector<std::complex<double>>& work,
                  std::span<double> rates) const;
  bool may_be_fast(Joint& joint, std::vector<double>& direct);
  bool look_at_states(Joint& joint, const StateOf& state);

  const System& system_;
  double h_;
  double limit_;
  std::vector<Storage> storages_;
  std::vector<std::vector<int>> sets_;
  std::vector<Resistance> resistances_;
  std::vector<Joint> joints_;
  std::vector<std::pair<int, int>> joints_of_parts_;  // (part, joint), sorted
  std::unique_ptr<Structure> scratch_;
  std::vector<double> gradient_;  // scratch
};

}  // namespace portwave
