#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include "portwave/coupling/method/update_rule.hpp"
#include "portwave/coupling/system/dirac.hpp"
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
  /// m = |P| |b|: the size of the terms that P b is formed of. The loops round a by a few ε of m.
  void magnitudes(const double* b, double* m) const;
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

/// The orthogonal wave coupling a = P b of a whole system, one block per junction, and the
/// resolvent (2I − P)⁻¹ of the Douglas–Rachford iteration.
///
/// Blocks with a closed form keep it: swaps (a connection with equal impedances) and reflections
/// P = ±(2nnᵀ − I) (common-effort and common-flow junctions of any arity, free and fixed ends,
/// connections, transformers); both satisfy P² = I, hence (2I − P)⁻¹ = (2I + P)/3. The others hold
/// a dense block of their own size and its resolvent: (2I + P)/5 where P² = −I, a factorised
/// inverse else. `compile` turns any choice of junctions into straight loops; junctions of one form
/// whose offsets follow one another become one vectorised run.
class Interconnection {
 public:
  /// `impedance` has one entry per offset of the wave vector. Offsets in no junction are padding,
  /// which nothing here touches. Errors: ConfigError when an offset is used twice.
  Interconnection(std::span<const Junction> junctions, std::span<const double> impedance);
  /// The same, the waves of `junctions` being numbers that `offset_of` maps to offsets.
  Interconnection(std::span<const Junction> junctions, std::span<const int> offset_of,
                  std::span<const double> impedance);

  /// Sets other impedances, by offset: finite, > 0, as many as before. The result equals an object built with
  /// them. Junctions whose impedances are as before are left alone, and offsets stay. Allocates only for
  /// junctions without a closed form, and if one takes another form, as a swap that becomes a reflection.
  /// Compiled junctions are then stale (`recompile`). If it throws (memory), setting impedances again repairs
  /// it.
  void set_impedance(std::span<const double> impedance);

  int size() const { return static_cast<int>(blocks_.size()); }
  int wave_size() const { return wave_size_; }

  /// a = P b of all junctions (see CompiledJunctions).
  void exchange(const double* b, double* a) const { all_.exchange(b, a); }
  /// The update of an inner iterate u, given b = S(u).
  void update(const InnerUpdate& update, const double* b, double* u) const {
    all_.update(update, b, u);
  }
  const CompiledJunctions& all() const { return all_; }

  /// The coupling of some junctions as loops. `renumbering`, when not empty, maps offsets to those
  /// of a smaller wave array.
  CompiledJunctions compile(std::span<const int> junctions,
                            std::span<const int> renumbering = {}) const;
  /// The same into `compiled`, which may hold an earlier result for these junctions and this renumbering,
  /// with other impedances: if all of them have kept their forms only weights are written, and nothing is
  /// allocated.
  void recompile(CompiledJunctions& compiled, std::span<const int> junctions,
                 std::span<const int> renumbering = {}) const;

  /// Offsets of a junction.
  std::span<const int> waves(int index) const;
  /// P of a junction, as the hot path applies it.
  Eigen::MatrixXd block(int index) const { return apply_to_basis(index, false); }
  /// (2I − P)⁻¹ of a junction, as the hot path applies it.
  Eigen::MatrixXd resolvent_block(int index) const { return apply_to_basis(index, true); }
  JunctionForm form(int index) const { return blocks_[static_cast<std::size_t>(index)].form; }

  /// The hot path's data of a junction: for a reflection its normal, for a dense one P and its
  /// resolvent, row-major.
  struct Coefficients {
    double sign;
    std::span<const double> values;
  };
  Coefficients coefficients(int index) const;
  std::size_t bytes() const;

 private:
  /// The properties of a junction that do not depend on impedances.
  struct Structure {
    /// The variable of the junction's only sum, if it has no other sum: then P is a reflection at any
    /// impedances.
    enum class Balance { of_flows, of_efforts, none };

    std::shared_ptr<const DiracStructure> dirac;
    Balance balance;
    std::vector<double> weights;  ///< of the sum
    bool is_swap_between_equals;  ///< equal impedances make it a swap
  };
  struct Block {
    JunctionForm form;
    int arity;
    int structure;  ///< in structures_
    int waves;      ///< begin in waves_
    int values;     ///< begin in values_, where there is room for all forms that it may take
    double sign;
  };

  static Structure structure_of(const Junction& junction);
  /// Sets form, sign and values of a block for impedance_.
  void weigh(Block& block);
  void weigh_dense(Block& block);
  Eigen::MatrixXd apply_to_basis(int index, bool resolvent) const;

  int wave_size_ = 0;
  std::vector<double> impedance_;      // by offset
  std::vector<Structure> structures_;  // one for all junctions that share it
  std::vector<Block> blocks_;
  std::vector<int> waves_;
  std::vector<double> values_;
  std::vector<int> every_;  // junction
  CompiledJunctions all_;
};

}  // namespace portwave
