#pragma once

#include <span>
#include <string>
#include <vector>

#include "portwave/coupling/method/wave_coupling.hpp"
#include "portwave/coupling/system/derived_systems.hpp"
#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A decay of a part, as far as it can be seen from the part and the joints at its ports.
struct PartDecay {
  double h_lambda = 0.0;  ///< the rate of the decay [1/s] times the step
  int port = -1;  ///< scalar port of the system that leads to what resists; −1: it is in the part
};

/// The fastest decay of each part's energy at the initial states, linearised: of a state by the part's own
/// resistance, Rᵢᵢ ∂²H/∂xᵢ², or by what one of its ports sees across its joint, (G + P)ᵀ∇²H(G − P)·Re Y, other
/// parts answering with their direct resistances and their storage at some frequencies beyond 1/h. What stores
/// does not resist, however stiff it is, nor do sources. A resistance that weakens far from rest, as dry friction
/// does, counts as it is there; one that grows, as a diode's conductance, as it is at the start. Exact for one
/// storage beside one resistance, else a guess of the right size. Of a descriptor part, that of Eẋ = (J − R)Qx. 0 for
/// parts without states, for opaque ones, and at joints of many ports that do not add up immittances.
/// `exchanged`: by part, whether its resistances do not count, as they are others from time to time; empty: all count.
/// Cost     per part, one Hessian and its products with the columns of the ports.
std::vector<PartDecay> fastest_decays(const System& system, double step_s,
                                      std::span<const char> exchanged = {});

/// By island: whether energy may swing to and fro there. It cannot where all that stores gives efforts, or all gives
/// flows, and neither a part nor a joint turns the one into the other: resistor–capacitor networks, for example.
std::vector<char> islands_that_may_oscillate(const System& system);

/// The stages of a run, and why.
struct IntegratorChoice {
  StagePlan plan = {};
  int damped_parts = 0;
  int fastest = -1;  ///< of the parts that `automatic` damps, the one that decays fastest
  int fastest_state =
      -1;  ///< and its state, if that has a resistance of its own among motion that swings
  int switched = -1;  ///< an ideal switch or diode in an island whose parts it damps
  int driven = -1;    ///< the first of those that it damps because an input drives them
  int turning = -1;   ///< … because rigid joints tie them whose directions turn with states
  int beside = -1;    ///< the first of those that it damps because a one-sided part may bind them
  int thrown = -1;    ///< the first that conserves, although it has a decay beyond thrown_decay
  int oscillating =
      -1;  ///< the first that is damped in an island where energy may swing to and fro
  PartDecay decay = {};
  /// "damped, with order 1, in 2 of 3 parts; …"; empty where none is damped.
  std::string text(const System& system) const;
};

/// A part is damped if it says so, or if it is silent and the method says so; `automatic` damps it if that is
/// possible, its fastest decay exceeds resolved_decay, and nothing in its island may oscillate: what does would lose
/// energy with every step. Where something may, it damps the states alone that a resistance of their own brings to
/// rest that fast, such as the current of a motor's winding: from slow motion that takes next to nothing. For steps that choose their size (`is_adaptive`), which resolve every decay, it
/// damps what an input that is not constant drives through rigid joints: conserving steps follow such a
/// constraint in the mean only, and its rates are wrong by O(h). In islands with ideal switches or diodes
/// (Subsystem::has_vertical_laws) it damps all parts that can be: what these open or short is a constraint
/// that comes and goes, and conserving steps would swing about it for ever. With several stages it damps what stores
/// beside a resistance that changes, dry friction for example, where that may bind it within a step (OneSidedDecays);
/// with one stage single steps of it are damped while the run goes on. In a slice, where the parts of
/// others are not known, it damps nothing. Where anything is damped the nodes are
/// those of Radau, so that joints hold at the ends of steps.
///
/// `exchanged`: by part, whether parameters of it follow signals; what they do is judged while the run goes on.
IntegratorChoice choose_integrators(const System& system, const WaveCoupling& method, double step_s,
                                    bool is_adaptive, std::span<const char> exchanged = {});

/// h·λ beyond which a decay counts as not resolved: there one conserving stage turns a third of what is left of it over,
/// and more stages keep or turn half.
inline double resolved_decay(int stages) { return stages == 1 ? 4.0 : 16.0; }
/// h·λ, as seen from one part, beyond which a conserving step may leave what begins there off its place by some per cent,
/// or on the other side of its rest: of what two parts share each sees a half.
inline double thrown_decay(int stages) { return stages; }
/// The same of decays that storages share (SharedDecays), and the share of motion by which a step throws such a decay
/// across its rest that is no motion which it resolves.
inline double shared_decay(int stages) { return 2.0 * resolved_decay(stages); }
inline constexpr double kThrownShare = 0.03;

}  // namespace portwave
