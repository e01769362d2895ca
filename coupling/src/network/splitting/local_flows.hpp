#pragma once

#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "network/block_groups.hpp"
#include "network/splitting/network_flow.hpp"
#include "portwave/subsystems/base/aligned.hpp"

namespace portwave {

/// H of blocks, ½xᵀQᵀEx, one matrix per class.
class BlockEnergies {
 public:
  BlockEnergies(const CondensedSystem& system, const BlockClasses& classes);

  /// x: the state of the whole.
  double of(int block, const double* x) const;
  /// Of all blocks.
  void all(const ForEach& each, const double* x, double* stored);
  const SparseMatrix& matrix(int block) const {
    return matrices_[static_cast<std::size_t>(classes_.of(block))];
  }
  /// Of one state, nothing else of the block being coupled to it by the energy; empty if something
  /// is.
  std::optional<double> diagonal(int block, int state) const;
  LaneLines lanes(int block_class) const {
    return lanes_[static_cast<std::size_t>(block_class)].lines();
  }

 private:
  const CondensedSystem& system_;
  const BlockClasses& classes_;
  std::vector<SparseMatrix> matrices_;  ///< ½QᵀE by class
  std::vector<LaneMatrix> lanes_;
  std::vector<BlockGroup> lane_groups_;
  std::vector<int> tasks_;
  std::vector<std::size_t> work_of_;  ///< by task
  AlignedVector work_;
};

/// States that something else moves right before the local flows: of block i the entries
/// [begin[i], begin[i + 1]), which name states of the block and their values.
struct MovedStates {
  std::vector<int> begin, state;
  std::vector<double> value;
};

/// The flows of blocks by themselves, in lane groups of blocks of one class.
class LocalFlows {
 public:
  /// Flows by their durations and terms, and in which order they are taken.
  struct Recipe {
    std::vector<std::pair<double, FlowTerms>> flows;
    std::vector<int> sequence;
  };
  using RecipeOf = std::function<Recipe(const CondensedBlock&)>;

  /// Blocks of one class must have equal recipes. Errors: ConfigError of BlockFlow.
  LocalFlows(const CondensedSystem& system, const BlockClasses& classes, std::vector<int> blocks,
             const RecipeOf& recipe);

  /// What is wanted besides the states, by block; null: nothing.
  struct Report {
    double* dissipated = nullptr;
    double* energy = nullptr;  ///< H at the end, without the moved states
    double* probe = nullptr;   ///< a sum that is finite if the states are
  };
  /// The blocks' part of `to` from that of `from`, which may be the same array.
  void run(const ForEach& each, const double* from, double* to, const MovedStates* moved,
           const BlockEnergies& energies, const Report& report);

  std::span<const int> blocks() const { return blocks_; }
  /// Of one step of a block.
  double operations(int block) const;
  int flows_per_step(int block) const;
  double cost_ns() const;
  int tasks() const { return static_cast<int>(work_of_.size()); }
  std::size_t bytes() const { return work_.capacity() * sizeof(double); }

 private:
  struct Class {
    std::vector<BlockFlow> flows;
    std::vector<int> sequence;
    double operations = 0.0;
  };
  struct Call {
    const double* from;
    double* to;
    const MovedStates* moved;
    const BlockEnergies& energies;
    const Report& report;
  };
  void run_lanes(const BlockGroup& lane_group, const Call& call, double* work) const;
  void run_alone(const BlockGroup& lane_group, const Call& call, double* work) const;

  const CondensedSystem& system_;
  const BlockClasses& classes_;
  std::vector<int> blocks_;
  std::vector<Class> prepared_;  ///< by class
  std::vector<BlockGroup> lane_groups_;
  std::vector<int> tasks_;
  std::vector<std::size_t> work_of_;  ///< by task
  AlignedVector work_;
};

}  // namespace portwave
