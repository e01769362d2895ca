#pragma once

#include <vector>

#include "network/explicit/network_form.hpp"

namespace portwave {

/// How a state takes part in kicks and drifts.
enum class SeparableKind : char {
  momentum,  ///< p: its storage is quadratic
  position,  ///< q without damping
  decaying,  ///< q that is damped; its storage is quadratic
  dead,      ///< a damped state that neither acts on others nor is acted upon
};

/// A network whose states are of two sides:
///   ẋ = (J − R)∇H + B s,   x = (q, p),   H = V(q) + ½pᵀWp,   J joins q with p only.
/// R joins momenta with momenta, and each decaying position with itself.
///
/// Momenta are shifted so that H has no linear term in them; `constant` is 0 there.
/// Errors: ConfigError with every reason why a system has no such form.
class SeparableNetwork : public NetworkForm {
 public:
  explicit SeparableNetwork(const System& system);

  std::vector<SeparableKind> kind;
  std::vector<double> shift;  ///< of momenta: p = x + shift

 private:
  void colour();
};

}  // namespace portwave
