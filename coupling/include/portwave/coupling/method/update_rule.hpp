#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

struct WaveCoupling;
enum class WaveUpdate;

/// Relaxations ω that an update rule takes: 0 < ω < most, or 0 < ω ≤ most.
struct RelaxationRange {
  double most = 1.0;
  bool includes_most = true;

  bool contains(double relaxation) const {
    return relaxation > 0.0 && (relaxation < most || (includes_most && relaxation == most));
  }
};

/// The condition on every frozen part map S_i under which the guarantees of a rule hold.
enum class PartCondition {
  nonexpansive,         ///< |α − β|² − |Sα − Sβ|² ≥ 0
  firmly_nonexpansive,  ///< ⟨Sα − Sβ, α − β⟩ − |Sα − Sβ|² ≥ 0
};

/// One pass over the junctions, in place, with the gap g = P b̂ − u.
struct JunctionPass {
  enum class Kind {
    exchange,  ///< u = P b̂
    average,   ///< u += c g
    resolve,   ///< u += c (2I − P)⁻¹ g
  };
  Kind kind = Kind::exchange;
  double factor = 1.0;  ///< c
};

/// An update for the loops over junctions: one pass, or two, the second one with the gap that the first
/// one has left.
struct JunctionPasses {
  JunctionPass first;
  std::optional<JunctionPass> second = {};
};

/// How an inner iterate u becomes the next one, given b̂ = S(u), junction by junction. One object holds
/// everything about a rule; executors, certificates, predicted rates and checks of options all ask that
/// object.
///
/// A new rule is a class derived from this one, in a file of its own. Its update leaves exactly
/// those u as they are for which u = P S(u). It needs no other file to run: see
/// WaveCoupling::own_rule. Rules that scenario files name are also in `update_rules`.
/// Thread-safety   const functions of one object are called by many threads at once.
class UpdateRule {
 public:
  UpdateRule() = default;
  UpdateRule(const UpdateRule&) = delete;
  UpdateRule& operator=(const UpdateRule&) = delete;
  virtual ~UpdateRule() = default;

  /// The word for it in files: lower case, hyphens.
  virtual std::string_view name() const = 0;
  /// Its name for people, with what a relaxation other than 1 makes of it.
  virtual std::string title(double relaxation) const = 0;

  virtual RelaxationRange relaxation_range() const = 0;
  virtual PartCondition part_condition() const = 0;
  /// c ≥ 0 of its Fejér decrease |uᵏ⁺¹ − u†|² ≤ |uᵏ − u†|² − c|uᵏ⁺¹ − uᵏ|².
  virtual double fejer_gain(double relaxation) const = 0;

  /// u ← the next iterate. Called once, when a rule receives its relaxation; the loops over junctions then
  /// know no rules.
  virtual JunctionPasses passes(double relaxation) const = 0;
};

/// u ← u + λ((2I − P)⁻¹(2b̂ − u) − b̂), 0 < λ < 2.
const UpdateRule& douglas_rachford();
/// u ← (1 − θ)u + θ P b̂, 0 < θ ≤ 1.
const UpdateRule& peaceman_rachford();

/// The rules that scenario files name.
std::span<const UpdateRule* const> update_rules();

/// A rule with its relaxation, as an inner iteration needs it.
class InnerUpdate {
 public:
  /// No rule. No update is to be made with it.
  InnerUpdate() = default;
  InnerUpdate(const UpdateRule* rule, double relaxation) : rule_(rule), relaxation_(relaxation) {
    if (rule != nullptr) passes_ = rule->passes(relaxation);
  }

  const UpdateRule* rule() const { return rule_; }
  double relaxation() const { return relaxation_; }
  const JunctionPasses& passes() const { return passes_; }

 private:
  const UpdateRule* rule_ = nullptr;
  double relaxation_ = 1.0;
  JunctionPasses passes_;
};

/// The rule of a kind; WaveUpdate::interface falls back to Peaceman–Rachford. Null for `automatic`,
/// before it has chosen.
const UpdateRule* update_rule_of(WaveUpdate kind);
/// The rule of a resolved method, and its relaxation. Precondition: it has one.
InnerUpdate inner_update_of(const WaveCoupling& method);

}  // namespace portwave
