#pragma once

#include <memory>
#include <span>

#include "portwave/coupling/method/method.hpp"
#include "portwave/coupling/network/network_method.hpp"
#include "portwave/coupling/system/system.hpp"

namespace portwave {

/// A part with states in the state of the whole.
struct NetworkBlock {
  int part = -1;  ///< its number in the System
  int first = 0;  ///< offset of its first state
  int size = 0;   ///< > 0
};

/// A system in the form that a method without waves steps.
class NetworkModel {
 public:
  virtual ~NetworkModel() = default;
  virtual const System& system() const = 0;
  /// In part order, one behind the other.
  virtual std::span<const NetworkBlock> blocks() const = 0;
  /// −1 for parts without states.
  virtual int block_of_part(int part) const = 0;
  /// Whether a part may create energy by its owner's wish.
  virtual bool has_active() const = 0;
  /// `ledger`: form the ledger of every step. Errors: ConfigError.
  virtual std::unique_ptr<NetworkMethod> make_method(double step_s, const CouplingMethod& method,
                                                     bool ledger) const = 0;
  /// Values of the settable inputs of the system, by slot, in steps from now on; empty where a method holds them at
  /// their initial values.
  virtual std::span<double> settings() { return {}; }
  /// Mean efforts and flows of all scalar ports in the last step that the method has made.
  virtual void mean_ports(const NetworkMethod& method, std::span<double> effort,
                          std::span<double> flow) = 0;
  /// Whether there are states within a step.
  virtual bool has_states_within() const { return false; }
  /// The state of a block in the last step that the method has made, at a share of it from 0 to 1.
  /// Precondition: there are such.
  virtual void state_within(const NetworkMethod& /*method*/, int /*block*/, double /*share*/,
                            std::span<double> /*state*/) {}
  /// Efforts and flows of all scalar ports there. Precondition: likewise.
  virtual void ports_within(const NetworkMethod& /*method*/, double /*share*/,
                            std::span<double> /*effort*/, std::span<double> /*flow*/) {}
};

/// For a method without waves. The system must outlive it. Errors: ConfigError with every reason why the
/// method cannot take the system.
std::unique_ptr<NetworkModel> make_network_model(const System& system, double start_s,
                                                 const CouplingMethod& method);

}  // namespace portwave
