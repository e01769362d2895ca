#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "network/block_groups.hpp"
#include "network/group_algebra.hpp"
#include "portwave/coupling/network/dynamic_iteration.hpp"
#include "portwave/subsystems/base/aligned.hpp"

namespace portwave {

/// The settings of an iteration with everything chosen that was left open. Errors: ConfigError with
/// every reason (see WaveformIteration).
DynamicParameters resolve_parameters(const CondensedSystem& system, double step_s,
                                     const DynamicIteration& given);

/// Waveforms lie lane group by lane group, [step][stage][state of the block], and of lanes
/// [step][stage][state][lane]; channels [step][stage][channel].
struct WaveformIteration::Impl {
  /// What blocks of equal matrices share.
  struct Class {
    GroupMatrix T;  ///< Q, in the energy metric I; Lions–Mercier
    GroupMatrix E, J, R, Q;
    GroupMatrix energy;  ///< ½QᵀE
    StageSolver solver;
    LinearSolver shift;  ///< T + λ((1−α)RQ + μE)
    double operations = 0.0;
    bool has_lanes = false;
  };
  struct LaneGroup {
    BlockGroup of;
    int width = 1;  ///< lanes
    int size = 0;   ///< states of a block
    CouplingColumns columns;
    bool driven = false;
    std::size_t waveform = 0;  ///< its place in zeta and delta
    std::size_t start = 0;     ///< its place in group_start
    std::size_t scratch = 0;   ///< its place in work
  };
  /// Places in a lane group's scratch.
  struct Scratch {
    double *x, *X, *solver, *r, *s, *more, *f, *lane;
  };

  Impl(const CondensedSystem& s, double step_s, const DynamicIteration& given);

  // Set-up.
  void prepare(int block_class);
  void make_groups();
  void add_group(BlockGroup of, const CouplingGroups& groups);
  void factorise_channels();
  void cut_tasks();
  /// Gauss–Seidel: a block comes after those before it that it is coupled to.
  std::vector<std::vector<int>> order_levels() const;

  void begin(double time_s, std::span<const double> x);
  template <class Algebra>
  void begin_lm(const LaneGroup& lane_group);
  void begin_relaxation(const double* values, std::size_t stride);
  void start_from(std::span<const double> values);

  WaveformChange iterate(const ForEach& each);
  void iterate_lm(const ForEach& each);
  template <class Algebra>
  void split_group(const LaneGroup& lane_group);
  template <class Algebra>
  void join_group(const LaneGroup& lane_group);
  /// Jacobi: everyone with the others' last waveforms. Gauss–Seidel: with the newest, level by
  /// level.
  void relax(const ForEach& each);
  template <class Algebra>
  void relax_group(const LaneGroup& lane_group);
  void drive_all(const ForEach& each);
  void drive(int channel);
  void solve(const ForEach& each, std::span<double> out);
  void finish(const ForEach& each, std::span<double> states, std::span<StepEnergies> energies);
  template <class Algebra>
  void finish_group(const LaneGroup& lane_group, std::span<double> states);
  void copy_z(std::span<double> out) const;

  /// Solves a lane group over the window; visit(step, stage values, xⁿ⁺¹) after every step.
  template <class Algebra, class Visit>
  void solve_group(const LaneGroup& lane_group, const Visit& visit);
  /// g += factor · B u of the driven blocks of a lane group.
  void add_inputs(const LaneGroup& lane_group, std::size_t point, double factor, double* g) const;

  Scratch scratch_of(const LaneGroup& lane_group) {
    const auto m =
        static_cast<std::size_t>(lane_group.size) * static_cast<std::size_t>(lane_group.width);
    Scratch out{};
    out.x = work.data() + lane_group.scratch;
    out.X = out.x + m;
    out.solver = out.X + m * static_cast<std::size_t>(stages);
    out.r = out.solver + 3 * m * static_cast<std::size_t>(stages);
    out.s = out.r + m;
    out.more = out.s + m;
    out.f = out.more + m;
    out.lane = out.f + static_cast<std::size_t>(lane_group.columns.count() * lane_group.width);
    return out;
  }
  std::size_t scratch_size(const LaneGroup& lane_group) const {
    const auto m =
        static_cast<std::size_t>(lane_group.size) * static_cast<std::size_t>(lane_group.width);
    return m * static_cast<std::size_t>(4 * stages + 4) +
           static_cast<std::size_t>(lane_group.columns.count() * lane_group.width +
                                    lane_group.size);
  }
  const Class& class_of(const LaneGroup& lane_group) const {
    return prepared[static_cast<std::size_t>(lane_group.of.block_class)];
  }
  const CondensedBlock& block(int i) const { return system.blocks()[static_cast<std::size_t>(i)]; }
  std::size_t point_of(int step, int stage) const {
    return static_cast<std::size_t>(step) * static_cast<std::size_t>(stages) +
           static_cast<std::size_t>(stage);
  }
  double* wave(std::vector<double>& of, const LaneGroup& lane_group, std::size_t point) const {
    return of.data() + lane_group.waveform +
           point * static_cast<std::size_t>(lane_group.size) *
               static_cast<std::size_t>(lane_group.width);
  }
  double* at_point(std::vector<double>& of, std::size_t point) const {
    return of.data() + point * static_cast<std::size_t>(channels);
  }
  double point_weight(std::size_t point) const {
    const auto s = static_cast<std::size_t>(stages);
    return weight[point / s] * h * table.b[point % s];
  }
  /// body(algebra, lane group)
  template <class Body>
  static void with_algebra(const LaneGroup& lane_group, const Body& body) {
    lane_group.of.by_lanes ? body(SideBySide(), lane_group) : body(Alone(), lane_group);
  }
  template <class Body>
  void for_groups(const ForEach& each, const Body& body) {
    each(static_cast<int>(tasks.size()) - 1, [&](int t) {
      for (int i = tasks[static_cast<std::size_t>(t)]; i < tasks[static_cast<std::size_t>(t) + 1];
           ++i)
        with_algebra(lane_groups[static_cast<std::size_t>(i)], body);
    });
  }
  template <class Body>
  void for_stages(const ForEach& each, const Body& body) {
    each(stage_tasks, [&](int t) {
      double* scratch = channel_work.data() +
                        static_cast<std::size_t>(t) * static_cast<std::size_t>(2 * channels + 16);
      const std::size_t first = static_cast<std::size_t>(t) * stages_per_task;
      for (std::size_t p = first; p < std::min(count, first + stages_per_task); ++p)
        body(p, scratch);
    });
  }

  const CondensedSystem& system;
  double h;
  DynamicParameters parameters;
  Tableau table;
  int window, stages, n, channels;
  bool is_lm = false;
  std::size_t count = 0;  ///< steps · stages
  BlockClasses classes;
  std::vector<Class> prepared;  ///< by class
  std::vector<LaneGroup> lane_groups;
  LinearSolver coupling;  ///< I − λ Outᵀ Q shift⁻¹ Into C
  ColumnList C_rows;
  std::vector<double> zeta, delta;  ///< ζᵏ and ζᵏ⁺¹ − ζᵏ: z, or in the energy metric Q⁻¹z
  std::vector<double> seen, driving;  ///< by channel: OutᵀQx (or of s), and C times it
  std::vector<double> inputs, start, group_start, given_start, channel_work, weight;
  AlignedVector work;
  std::vector<double> change, size;  ///< by block
  std::vector<char> finite;
  std::vector<StepEnergies> ledger;
  std::vector<SparseMatrix> supply;    ///< QᵀB of driven blocks, by block
  std::vector<ColumnList> block_seen;  ///< QᵀOut by group of coupling; for start values
  std::vector<int> tasks;
  std::vector<int> levels;  ///< Gauss–Seidel: first lane groups of levels, and the end
  std::size_t stages_per_task = 1;
  int stage_tasks = 0;
  int iterations = 0;
};

}  // namespace portwave
