#pragma once

#include <cstdint>
#include <string_view>

namespace portwave {

/// Lanes [first, last) of a batch.
struct LaneRange {
  int first = 0;
  int last = 0;
};

/// Why a port solve failed.
enum class StepFault : std::uint8_t {
  none,
  not_converged,  ///< the Newton iteration of the implicit step did not converge
  not_finite,     ///< a state or wave came out as NaN or infinity
  threw,          ///< a callback of the part threw
};

std::string_view to_string(StepFault fault);

/// Outcome of a scatter or advance: the first lane that failed, or ok().
struct [[nodiscard]] LaneStatus {
  int lane = -1;
  StepFault fault = StepFault::none;

  bool ok() const { return fault == StepFault::none; }
};

/// Energies of one part over one committed step [J].
struct StepEnergy {
  double storage_J = 0.0;          ///< H(x⁺)
  double external_supply_J = 0.0;  ///< h Σ u·y over the external input channels
  double dissipated_J = 0.0;       ///< h [∇̄H; u]ᵀ[R P; Pᵀ S][∇̄H; u]
  /// Size of the terms that make up H(x⁺), Σ|∂H/∂xᵢ xᵢ| or more: what a rounding of the state is
  /// multiplied by. Larger than H where terms cancel (a stiff spring far from the origin).
  double magnitude_J = 0.0;
};

/// The one-step solver of a batch of equal-shaped parts: the frozen port map S: a ↦ b in three acts.
///
///   freeze   takes the committed states xⁿ and the external inputs ū of the step;
///   scatter  b = S(a), any number of times; discards the trial state;
///   advance  the same solve, kept: x⁺, b and the step's energies.
///
/// A batch is one virtual call however many parts it holds. Lane l of an array of `w` doubles per
/// part is at [l·w, (l+1)·w). Every act works on a range of lanes; different lanes may be worked on
/// by different threads at the same time, one lane by one thread at a time. `scatter` and `advance`
/// are pure functions of (xⁿ, ū, a): neither the committed state nor earlier calls have a part in
/// their result, bit by bit. `prepare` may allocate and throw; the three acts do not allocate, and
/// throw only if a user's callback does.
class StepBatch {
 public:
  virtual ~StepBatch() = default;

  StepBatch(int lanes, int state_size, int wave_size, int input_size)
      : lanes_(lanes), state_size_(state_size), wave_size_(wave_size), input_size_(input_size) {}
  StepBatch(const StepBatch&) = delete;
  StepBatch& operator=(const StepBatch&) = delete;

  int lanes() const { return lanes_; }
  int state_size() const { return state_size_; }  ///< doubles per part in x
  int wave_size() const { return wave_size_; }    ///< scalar ports per part: doubles in a and b
  int input_size() const { return input_size_; }  ///< external input channels per part

  /// (Re)computes the step maps for step h [s] and impedances γ (lanes × wave_size, all > 0).
  /// Errors: ConfigError when the implicit step is singular.
  virtual void prepare(double step_s, const double* impedance) = 0;

  /// Freezes at x (lanes × state_size) with external inputs ū (lanes × input_size; null: all zero).
  /// Both arrays must stay as they are until the lanes are frozen again.
  virtual void freeze(LaneRange lanes, const double* x, const double* input) = 0;

  /// b = S(a), both lanes × wave_size.
  virtual LaneStatus scatter(LaneRange lanes, const double* a, double* b) = 0;

  /// x⁺ and b for the incident wave a; `energy` has one entry per lane.
  virtual LaneStatus advance(LaneRange lanes, const double* a, double* x_next, double* b,
                             StepEnergy* energy) = 0;

  /// Linear parts: S(a) = b⁰ + D a with D constant between calls of prepare (wave_size × wave_size,
  /// row-major) and b⁰ set by freeze. Null for parts that are not affine.
  virtual const double* affine_matrix([[maybe_unused]] int lane) const { return nullptr; }
  virtual const double* affine_offset([[maybe_unused]] int lane) const { return nullptr; }

 private:
  int lanes_;
  int state_size_;
  int wave_size_;
  int input_size_;
};

}  // namespace portwave
