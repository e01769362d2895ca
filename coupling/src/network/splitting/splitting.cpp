#include "portwave/coupling/network/splitting.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "network/splitting/local_flows.hpp"
#include "network/splitting/splitting_options.hpp"
#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {
struct SplittingMethod::Impl {
  Impl(const CondensedSystem& s, double h, const Splitting& given, bool keep_ledger)
      : system(s),
        step_s(h),
        kind(given.kind),
        options(given),
        ledger(keep_ledger),
        classes((throw_if_any(splitting_defects(s, h, given)), s.blocks())),
        energies(s, classes) {
    if (order_of(options) != 2) {
      throw ConfigError("/method/order",
                        "SplittingMethod is of order 2, FourthOrderSplitting of 4");
    }
    if (kind == SplittingKind::impulse) {
      make_impulse();
    } else {
      make_strang();
    }
    const Eigen::VectorXd start = system.initial_state();
    x.assign(start.data(), start.data() + start.size());
    next = previous = x;
    inputs.assign(system.inputs().size(), 0.0);
    const std::size_t blocks = system.blocks().size();
    stored.assign(blocks, 0.0);
    stored_next.assign(blocks, 0.0);
    dissipated.assign(blocks, 0.0);
    energies.all(ForEach(), x.data(), stored.data());
    total = sum(stored);
    if (scalar_flow && inputs.empty()) prepare_one_phase();
  }

  void make_strang() {
    const double half = 0.5 * step_s;
    std::string reason;
    if (options.coupling_flow != CouplingFlow::low_rank) pairs = system.scalar_couplings(reason);
    scalar = options.coupling_flow != CouplingFlow::low_rank && reason.empty();
    if (!scalar && options.coupling_flow == CouplingFlow::scalar) {
      throw ConfigError("/method/coupling_flow",
                        "the coupling is not scalar: " + reason + "; \"low-rank\" takes it");
    }
    if (scalar) {
      scalar_flow.emplace(system, half, pairs);
    } else {
      coupled_flow.emplace(system, classes, half, std::vector<bool>(system.blocks().size(), false));
    }
    why_not_scalar = reason;
    std::vector<int> all(system.blocks().size());
    std::iota(all.begin(), all.end(), 0);
    local.emplace(system, classes, std::move(all), [&](const CondensedBlock& block) {
      LocalFlows::Recipe recipe{{{step_s, FlowTerms::all}}, {0}};
      if (options.split_dissipation && block.R.nonZeros() > 0) {
        recipe = {{{half, FlowTerms::dissipative}, {step_s, FlowTerms::conservative}}, {0, 1, 0}};
      }
      return recipe;
    });
  }

  void make_impulse() {
    const std::vector<bool> slow = slow_blocks(system, options);
    coupled_flow.emplace(system, classes, 0.5 * step_s, slow);
    std::vector<int> fast;
    for (std::size_t i = 0; i < slow.size(); ++i) {
      if (!slow[i]) fast.push_back(static_cast<int>(i));
    }
    local.emplace(system, classes, std::move(fast), [&](const CondensedBlock&) {
      return LocalFlows::Recipe{{{step_s / options.factor, FlowTerms::all}},
                                std::vector<int>(static_cast<std::size_t>(options.factor), 0)};
    });
  }

  /// Scalar couplings move few states: their first half flow goes to `moved`, which the local flows
  /// put in when they take their blocks, and nothing else is done between the local flows and the
  /// second.
  void prepare_one_phase() {
    const std::size_t blocks = system.blocks().size();
    std::vector<int> block_of_state;
    for (std::size_t i = 0; i < blocks; ++i) {
      block_of_state.insert(block_of_state.end(), static_cast<std::size_t>(system.blocks()[i].size),
                            static_cast<int>(i));
    }
    std::vector<int> states;
    for (const ScalarFlow::Pair& pair : scalar_flow->pairs()) {
      states.push_back(pair.row);
      states.push_back(pair.column);
    }
    std::sort(states.begin(), states.end());
    moved.begin.assign(blocks + 1, 0);
    for (const int state : states) {
      const int block = block_of_state[static_cast<std::size_t>(state)];
      moved.state.push_back(state - system.blocks()[static_cast<std::size_t>(block)].first);
      ++moved.begin[static_cast<std::size_t>(block) + 1];
    }
    std::partial_sum(moved.begin.begin(), moved.begin.end(), moved.begin.begin());
    moved.value.assign(states.size(), 0.0);
    const auto end = [&](int state) {
      End out;
      out.block = block_of_state[static_cast<std::size_t>(state)];
      out.slot =
          static_cast<int>(std::lower_bound(states.begin(), states.end(), state) - states.begin());
      const auto own =
          energies.diagonal(out.block, moved.state[static_cast<std::size_t>(out.slot)]);
      one_phase = one_phase && own.has_value();
      out.energy = ledger ? own.value_or(0.0) : 0.0;
      return out;
    };
    one_phase = true;
    for (const ScalarFlow::Pair& pair : scalar_flow->pairs()) {
      ends.push_back(end(pair.row));
      ends.push_back(end(pair.column));
    }
  }

  static double sum(const std::vector<double>& values) {
    double out = 0.0;
    for (const double v : values) out += v;
    return out;
  }

  /// Half a step around `middle`, a share of the step.
  void run_coupling(const ForEach& each, double middle, double& supplied) {
    const double time_s = clock.time_s() + middle * step_s;
    const double begin_s = clock.time_s() + (middle - 0.25) * step_s;
    const double* u = nullptr;
    if (!inputs.empty()) {
      sample_inputs(system, {time_s, begin_s, 0.5 * step_s}, inputs.data());
      u = inputs.data();
    }
    if (scalar_flow) {
      scalar_flow->apply(next.data(), u, supplied);
    } else {
      coupled_flow->apply(each, next.data(), u, supplied, ledger ? dissipated.data() : nullptr);
    }
  }

  NetworkStep step(const ForEach& each) {
    double supplied = 0.0;
    if (one_phase) {
      run_one_phase(each);
    } else {
      run_phases(each, supplied);
    }
    NetworkStep result;
    result.converged = true;
    close(supplied, result);
    // Three in turn: a step that fails leaves the state and the one before it.
    previous.swap(x);
    x.swap(next);
    clock.advance(step_s);
    return result;
  }

  /// x → next, with the energies or probes of the blocks in stored_next.
  void run_one_phase(const ForEach& each) {
    const std::span<const ScalarFlow::Pair> couplings = scalar_flow->pairs();
    for (std::size_t k = 0; k < couplings.size(); ++k) {
      couplings[k].map(x[static_cast<std::size_t>(couplings[k].row)],
                       x[static_cast<std::size_t>(couplings[k].column)],
                       moved.value[static_cast<std::size_t>(ends[2 * k].slot)],
                       moved.value[static_cast<std::size_t>(ends[2 * k + 1].slot)]);
    }
    LocalFlows::Report report;
    (ledger ? report.energy : report.probe) = stored_next.data();
    if (ledger) report.dissipated = dissipated.data();
    local->run(each, x.data(), next.data(), &moved, energies, report);
    for (std::size_t k = 0; k < couplings.size(); ++k) {
      double& row = next[static_cast<std::size_t>(couplings[k].row)];
      double& column = next[static_cast<std::size_t>(couplings[k].column)];
      couplings[k].map(row, column, row, column);
      stored_next[static_cast<std::size_t>(ends[2 * k].block)] += ends[2 * k].energy * row * row;
      stored_next[static_cast<std::size_t>(ends[2 * k + 1].block)] +=
          ends[2 * k + 1].energy * column * column;
    }
  }

  void run_phases(const ForEach& each, double& supplied) {
    std::copy(x.begin(), x.end(), next.begin());
    std::fill(dissipated.begin(), dissipated.end(), 0.0);
    run_coupling(each, 0.25, supplied);
    LocalFlows::Report report;
    if (ledger) report.dissipated = dissipated.data();
    local->run(each, next.data(), next.data(), nullptr, energies, report);
    run_coupling(each, 0.75, supplied);
    if (ledger) {
      energies.all(each, next.data(), stored_next.data());
      return;
    }
    for (std::size_t i = 0; i < stored_next.size(); ++i) {
      const CondensedBlock& block = system.blocks()[i];
      stored_next[i] = probe(next.data() + block.first, block.size);
    }
  }

  /// Finite if all are.
  static double probe(const double* values, int count) {
    constexpr int kSums = 8;
    double sums[kSums] = {};
    int i = 0;
    for (; i + kSums <= count; i += kSums) {
      for (int k = 0; k < kSums; ++k) sums[k] += values[i + k];
    }
    for (; i < count; ++i) sums[0] += values[i];
    return std::accumulate(sums, sums + kSums, 0.0);
  }

  /// Whether the step is finite, and its ledger.
  void close(double supplied, NetworkStep& result) {
    for (std::size_t i = 0; i < stored_next.size(); ++i) {
      if (std::isfinite(stored_next[i])) continue;
      throw NetworkFault(system.blocks()[i].part, 0, StepFault::not_finite);
    }
    if (!ledger) return;
    const double after = sum(stored_next);
    result.energy.stored_J = after;
    result.energy.supplied_J = supplied;
    result.energy.dissipated_J = sum(dissipated);
    result.energy.mismatch_J = supplied - result.energy.dissipated_J - (after - total);
    result.energy.max_passivity_residual_J = after - total - supplied;
    result.energy_scale_J = std::abs(after) + std::abs(total) + std::abs(supplied);
    // H is a sum of terms that may cancel; how large they are is asked only where it matters.
    if (result.energy.max_passivity_residual_J > 1e-13 * result.energy_scale_J) {
      for (std::size_t i = 0; i < stored_next.size(); ++i) {
        const int block = static_cast<int>(i);
        const int first = system.blocks()[i].first;
        result.energy_scale_J += term_size(energies.matrix(block), x.data() + first) +
                                 term_size(energies.matrix(block), next.data() + first);
      }
    }
    total = after;
    std::swap(stored, stored_next);
  }

  OperationCounts operations() const {
    OperationCounts count;
    const double inputs_n = static_cast<double>(inputs.size()) * system.size();
    for (const int block : local->blocks()) {
      const double n = system.blocks()[static_cast<std::size_t>(block)].size;
      count.dense += n * n * local->flows_per_step(block);
      count.sparse += local->operations(block);
    }
    const double all = system.size(), r = system.channels();
    if (scalar_flow) {
      count.dense += 2.0 * (scalar_flow->operations() + inputs_n);
      count.sparse += 2.0 * (scalar_flow->operations() + static_cast<double>(inputs.size()));
    } else {
      // Strang's coupling flow moves r states only; the slow flow of impulse all that is slow.
      count.dense += 2.0 * ((kind == SplittingKind::impulse ? all * all : r * r) + inputs_n);
      count.sparse += 2.0 * coupled_flow->operations();
    }
    return count;
  }

  /// A state at one end of a scalar coupling.
  struct End {
    int block = 0;
    int slot = 0;         ///< in moved
    double energy = 0.0;  ///< of the block: this times its square; without a ledger only a probe, 0
  };

  const CondensedSystem& system;
  double step_s;
  SplittingKind kind;
  Splitting options;
  bool ledger;
  BlockClasses classes;
  BlockEnergies energies;
  std::vector<ScalarCoupling> pairs;
  bool scalar = false;
  std::string why_not_scalar;
  std::optional<ScalarFlow> scalar_flow;
  std::optional<CoupledFlow> coupled_flow;
  std::optional<LocalFlows> local;
  bool one_phase = false;  ///< scalar couplings and no driven inputs
  std::vector<End> ends;   ///< by coupling: row, column
  MovedStates moved;
  std::vector<double> x, next, previous, inputs;
  std::vector<double> stored, stored_next, dissipated;  ///< by block
  double total = 0.0;
  StepClock clock{system.start_s()};
};

SplittingMethod::SplittingMethod(const CondensedSystem& system, double step_s,
                                 const Splitting& options, bool ledger)
    : impl_(std::make_unique<Impl>(system, step_s, options, ledger)) {}
SplittingMethod::~SplittingMethod() = default;

NetworkStep SplittingMethod::step(const ForEach& each) { return impl_->step(each); }
const StepClock& SplittingMethod::clock() const { return impl_->clock; }
std::span<const double> SplittingMethod::state() const { return impl_->x; }
std::span<const double> SplittingMethod::previous_state() const { return impl_->previous; }
double SplittingMethod::storage(int block) const {
  return impl_->energies.of(block, impl_->x.data());
}
OperationCounts SplittingMethod::operations() const { return impl_->operations(); }

int SplittingMethod::tasks() const { return impl_->local->tasks(); }
std::size_t SplittingMethod::bytes() const {
  const Impl& i = *impl_;
  return (i.x.capacity() + i.next.capacity() + i.previous.capacity() + i.stored.capacity() +
          i.stored_next.capacity() + i.dissipated.capacity()) *
             sizeof(double) +
         i.local->bytes();
}

double SplittingMethod::shared_cost_ns() const {
  double sum = impl_->local->cost_ns();
  if (impl_->coupled_flow) sum += 2.0 * impl_->coupled_flow->shared_cost_ns();
  return sum;
}

void SplittingMethod::archive(StateArchive& archive) {
  Impl& i = *impl_;
  for (std::vector<double>* own : {&i.x, &i.previous, &i.stored}) archive.array(*own);
  archive.values(i.total, i.clock);
  for (const std::vector<double>* own : {&i.x, &i.previous}) archive.expect_finite(*own, "a state");
  archive.expect(i.clock.is_sound(), "the time");
}

std::string SplittingMethod::description() const {
  const Impl& i = *impl_;
  const std::string coupling =
      i.scalar ? fmt::format("{} scalar coupling{} in closed form", i.pairs.size(),
                             i.pairs.size() == 1 ? "" : "s")
               : fmt::format("low-rank coupling flow of {} channels{}", i.system.channels(),
                             i.why_not_scalar.empty() ? "" : " (" + i.why_not_scalar + ")");
  if (i.kind == SplittingKind::impulse) {
    return fmt::format("{} fast of {} parts, {} fast steps per step; {}", i.local->blocks().size(),
                       i.system.blocks().size(), i.options.factor, coupling);
  }
  return fmt::format(
      "{} local flows{}; {}", i.local->blocks().size(),
      i.options.split_dissipation ? ", each split into conservative and dissipative" : "",
      coupling);
}

}  // namespace portwave
