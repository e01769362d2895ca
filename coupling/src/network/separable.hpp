#pragma once

#include <string>
#include <vector>

#include <Eigen/Core>

#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {

/// An external input that is driven, of a separable network.
struct SeparableInput {
  int part;
  int input;
  const Signal* signal;
};

/// How a state takes part in kicks and drifts.
enum class SeparableKind : char {
  momentum,  ///< p: its storage is quadratic
  position,  ///< q without damping
  decaying,  ///< q that is damped; its storage is quadratic
  dead,      ///< a damped state that neither acts on others nor is acted upon
};

/// A system as one network in state space, junctions and feedthrough solved for the inputs of the ports:
///   ẋ = (J − R)∇H + B s,   x = (q, p),   H = V(q) + ½pᵀWp,   J joins q with p only.
/// States are those of all parts, in part order. R joins momenta with momenta, and each decaying position with
/// itself.
///
/// Momenta are shifted so that H has no linear term in them. Of the positions that are not bent
/// ∂H/∂x = `hessian`·x + `constant`; a bent one adds cubic·x³, or has the gradient of its part
/// (`by_callback`).
/// Errors: ConfigError with every reason why a system has no such form.
class SeparableNetwork {
 public:
  explicit SeparableNetwork(const System& system);

  const System& system() const { return *system_; }
  int size() const { return static_cast<int>(kind.size()); }
  int first_state(int part) const { return first_state_[static_cast<std::size_t>(part)]; }
  int part_of(int state) const { return part_of_state_[static_cast<std::size_t>(state)]; }
  /// "part.state".
  std::string label(int state) const;
  bool has_active() const { return has_active_; }

  /// Efforts and flows of all scalar ports where the parts have the co-energy variables z and inputs the
  /// values s.
  void ports(const double* z, const double* s, std::span<double> effort,
             std::span<double> flow) const;

  std::vector<SeparableInput> inputs;
  SparseMatrix A;  ///< J − R, size × size
  SparseMatrix B;  ///< size × inputs
  SparseMatrix J, R;
  std::vector<SeparableKind> kind;
  SparseMatrix hessian;           ///< of what is quadratic; without positions by callback
  std::vector<double> constant;   ///< ∂H/∂x at 0 of positions that are not by callback
  std::vector<double> shift;      ///< of momenta: p = x + shift
  std::vector<double> cubic;      ///< by state
  std::vector<char> by_callback;  ///< by state: a position whose ∂H/∂x its part gives
  SparseMatrix curvature;         ///< ∇²H at the initial state, all of it

 private:
  struct Storage;
  void assemble();
  void find_storage(Issues& issues);
  void find_storage_of(int part, Storage& storage, Issues& issues);
  void probe_storage_of(int part, Storage& storage, Issues& issues);
  void find_dead_states();
  void colour();
  bool is_coupled_alone(int state) const;

  const System* system_;
  std::vector<int> first_state_, part_of_state_;
  std::vector<char> is_bent_;
  SparseMatrix couplings_;  ///< ∇²H where it is anything but 0 at some state
  bool has_active_ = false;
  std::vector<bool> effort_in_;
  SparseMatrix input_of_z_, output_of_z_, input_of_s_, output_of_s_;
};

}  // namespace portwave
