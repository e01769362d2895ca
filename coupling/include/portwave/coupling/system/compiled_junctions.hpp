#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "portwave/coupling/method/update_rule.hpp"
#include "portwave/coupling/system/junction_run.hpp"
#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The coupling of some junctions as straight loops over a wave array. Compiled from an
/// Interconnection, which may write other weights into it later (Interconnection::recompile); its loops
/// change and allocate nothing. Several threads may run these at once on arrays whose offsets do
/// not meet.
class CompiledJunctions {
 public:
  /// a = P b on the offsets of these junctions.
  void exchange(const double* b, double* a) const {
    for (const JunctionRun& run : runs_) {
      run.exchange(run, offsets_.data() + run.offsets, values_.data() + run.values, b, a);
    }
  }
  // With the gap g = P b − u:
  /// u += ω g; u = P b for ω = 1.
  void average(double relaxation, const double* b, double* u) const {
    if (relaxation == 1.0) return exchange(b, u);
    for (const JunctionRun& run : runs_) {
      run.average(run, offsets_.data() + run.offsets, values_.data() + run.values, relaxation, b, u,
                  work_.data() + run.work);
    }
  }
  /// u += ω (2I − P)⁻¹ g.
  void resolve(double relaxation, const double* b, double* u) const {
    for (const JunctionRun& run : runs_) {
      run.resolve(run, offsets_.data() + run.offsets, values_.data() + run.values, relaxation, b, u,
                  work_.data() + run.work);
    }
  }
  /// u ← the next iterate, given b = S(u).
  void update(const InnerUpdate& update, const double* b, double* u) const {
    const JunctionPasses& passes = update.passes();
    apply(passes.first, b, u);
    if (passes.second) apply(*passes.second, b, u);
  }

  bool empty() const { return runs_.empty(); }
  /// Runs, for callers that judge the numbering of offsets.
  const std::vector<JunctionRun>& runs() const { return runs_; }
  /// A run of a single junction: its offsets and its values (JunctionRun).
  std::span<const int> offsets(const JunctionRun& run) const {
    return {offsets_.data() + run.offsets, static_cast<std::size_t>(run.arity)};
  }
  std::span<const double> values(const JunctionRun& run) const {
    const int count = run.form == JunctionForm::reflection ? run.arity : 0;
    return {values_.data() + run.values, static_cast<std::size_t>(count)};
  }
  std::size_t bytes() const;

 private:
  friend class JunctionCompiler;

  void apply(const JunctionPass& pass, const double* b, double* u) const {
    switch (pass.kind) {
      case JunctionPass::Kind::resolve:
        return resolve(pass.factor, b, u);
      case JunctionPass::Kind::exchange:
        return exchange(b, u);
      case JunctionPass::Kind::average:
        return average(pass.factor, b, u);
    }
  }

  std::vector<JunctionRun> runs_;
  std::vector<int> junctions_;  // run by run, of the Interconnection
  std::vector<int> offsets_;
  AlignedVector values_;
  mutable AlignedVector work_;  // of dense junctions with many ports, each its own stretch
};

}  // namespace portwave
