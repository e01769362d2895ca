#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {

/// An external input that is driven, of a network.
struct NetworkInput {
  int part;
  int input;
  const Signal* signal;
};

/// Adds issues of one sort, the first few of them.
class FewIssues {
 public:
  static constexpr std::size_t kMost = 8;

  explicit FewIssues(Issues& issues) : issues_(issues) {}
  void add(std::string where, std::string what) {
    if (++count_ <= kMost) return issues_.push_back({std::move(where), std::move(what)});
    if (count_ == kMost + 1) {
      rest_ = issues_.size();
      issues_.emplace_back();
    }
    issues_[rest_].what = "and " + std::to_string(count_ - kMost) + " more of this kind";
  }

 private:
  Issues& issues_;
  std::size_t count_ = 0, rest_ = 0;
};

/// A system as one network in state space, junctions and feedthrough solved for the inputs of the ports:
///   ẋ = (J − R)∇H + B s,   with the power sᵀ(Seenᵀ∇H + Through s) coming in through the inputs.
/// States are those of all parts, in part order.
///
/// Of the states that are not bent ∂H/∂x = `hessian`·x + `constant`; a bent one adds cubic·x³, or has the
/// gradient of its part (`by_callback`).
class NetworkForm {
 public:
  /// What a method asks of a network.
  struct Method {
    const char* name;          ///< for texts: "kicks and drifts", in the plural
    bool takes_damped_inputs;  ///< inputs that act through dampers, Seen ≠ B or Through ≠ 0
  };
  /// How refusals end.
  static constexpr const char* kWaves = "; wave coupling ({\"kind\": \"auto\"}) takes it";

  /// Errors: ConfigError with every reason why a system has no such form: opaque parts, descriptor parts,
  /// algebraic constraints, structures that depend on a state, damped inputs that the method does not take.
  NetworkForm(const System& system, const Method& method);

  const System& system() const { return *system_; }
  int size() const { return static_cast<int>(part_of_state_.size()); }
  int first_state(int part) const { return first_state_[static_cast<std::size_t>(part)]; }
  int part_of(int state) const { return part_of_state_[static_cast<std::size_t>(state)]; }
  int island_of(int state) const { return system_->island_of_part(part_of(state)); }
  /// "part.state".
  std::string label(int state) const;
  bool has_active() const { return has_active_; }
  bool is_bent(int state) const {
    const auto i = static_cast<std::size_t>(state);
    return is_bent_[i] != 0 || by_callback[i] != 0;
  }
  /// By type of part, number of the state in it, and part: then equal parts that follow one another make rows
  /// that do.
  std::vector<int> ordered_by_type(const std::vector<int>& states) const;

  /// Efforts and flows of all scalar ports where the parts have the co-energy variables z and inputs the
  /// values s.
  void ports(const double* z, const double* s, std::span<double> effort,
             std::span<double> flow) const;

  /// An input in a step. Errors: what its function throws.
  double input_in_step(int number, const Signal::StepPlace& place) const {
    return inputs[static_cast<std::size_t>(number)].signal->in_step(place, *settings_);
  }
  /// Values of the settable inputs of the system, by slot, in steps from now on.
  std::span<double> settings() const { return *settings_; }

  std::vector<NetworkInput> inputs;
  SparseMatrix A;        ///< J − R, size × size
  SparseMatrix B;        ///< size × inputs
  SparseMatrix Seen;     ///< size × inputs
  SparseMatrix Through;  ///< inputs × inputs
  SparseMatrix J, R;
  SparseMatrix hessian;           ///< of what is quadratic; without states by callback
  std::vector<double> constant;   ///< ∂H/∂x at 0 of states that are not by callback
  std::vector<double> cubic;      ///< by state
  std::vector<char> by_callback;  ///< by state: ∂H/∂x is that of its part
  SparseMatrix curvature;         ///< ∇²H at the initial state, all of it
  SparseMatrix couplings;         ///< ∇²H where it is anything but 0 at some state
  /// Parts with states of which ∇²H at a few places is all that says that they are not bent.
  std::vector<int> probed_parts;
  std::vector<char>
      is_dead;  ///< by state: it is damped, and neither acts on others nor is acted upon

 private:
  struct Storage;
  /// By scalar port: the state of a spring whose end there is free and has no damper, so that it has no force; or −1.
  std::vector<int> loose_springs(const SparseMatrix& D) const;
  void assemble(const Method& method);
  void find_storage(Issues& issues);
  void find_storage_of(int part, Storage& storage, Issues& issues);
  void probe_storage_of(int part, Storage& storage, Issues& issues);
  void find_dead_states();
  bool is_coupled_alone(int state) const;

  const System* system_;
  std::unique_ptr<std::vector<double>> settings_;
  std::vector<int> first_state_, part_of_state_;
  std::vector<int> loose_;  // see loose_springs
  std::vector<char> is_bent_;
  bool has_active_ = false;
  std::vector<bool> effort_in_;
  SparseMatrix input_of_z_, output_of_z_, input_of_s_, output_of_s_;
};

}  // namespace portwave
