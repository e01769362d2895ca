#include "portwave/coupling/splitting.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "network_flow.hpp"

namespace portwave {
namespace {

/// Blocks are handed out in runs that are worth a task.
constexpr double kTaskOperations = 4000.0;
constexpr double kNanosecondsPerOperation = 1.2;

Issues defects(const CondensedSystem& system, double step_s, const CouplingMethod& method) {
  Issues issues;
  if (!(step_s > 0.0) || !std::isfinite(step_s)) {
    issues.push_back({"/time/step_s", fmt::format("must be > 0 and finite, got {}", step_s)});
  }
  for (const CondensedBlock& block : system.blocks()) {
    LinearSolver E;
    if (!block.is_descriptor || E.factorise(block.E)) continue;
    issues.push_back(
        {fmt::format("/subsystems/{}", block.part),
         fmt::format(
             "\"{}\" has algebraic equations (E is singular), which cannot be split; dynamic "
             "iteration and wave coupling take them",
             system.system().parts()[static_cast<std::size_t>(block.part)].name)});
  }
  if (method.kind != MethodKind::impulse) return issues;
  const SplittingOptions& s = method.splitting;
  if (s.factor < 1)
    issues.push_back({"/method/factor", fmt::format("must be >= 1, got {}", s.factor)});
  if (s.split_dissipation) {
    issues.push_back(
        {"/method/split_dissipation", "only \"strang\" splits its local flows further"});
  }
  if (s.fast.empty()) issues.push_back({"/method/fast", "must name at least one part"});
  std::vector<std::string> names;
  for (const CondensedBlock& block : system.blocks()) {
    names.push_back(system.system().parts()[static_cast<std::size_t>(block.part)].name);
  }
  for (std::size_t i = 0; i < s.fast.size(); ++i) {
    if (std::find(names.begin(), names.end(), s.fast[i]) != names.end()) continue;
    const bool stateless = system.system().find_part(s.fast[i]) >= 0;
    issues.push_back({fmt::format("/method/fast/{}", i),
                      stateless ? fmt::format("\"{}\" has no state of its own", s.fast[i])
                                : fmt::format("there is no part \"{}\".{}", s.fast[i],
                                              did_you_mean(s.fast[i], names))});
  }
  return issues;
}

}  // namespace

struct SplittingMethod::Impl {
  Impl(const CondensedSystem& s, double h, const CouplingMethod& m, bool keep_book)
      : system(s), step_s(h), kind(m.kind), options(m.splitting), book(keep_book) {
    throw_if_any(defects(system, step_s, m));
    if (kind == MethodKind::impulse) {
      make_impulse();
    } else {
      make_strang();
    }
    const Eigen::VectorXd start = system.initial_state();
    x.assign(start.data(), start.data() + start.size());
    next = x;
    inputs.assign(system.inputs().size(), 0.0);
    const std::size_t blocks = system.blocks().size();
    stored.assign(blocks, 0.0);
    stored_next.assign(blocks, 0.0);
    dissipated.assign(blocks, 0.0);
    for (std::size_t i = 0; i < blocks; ++i) {
      const CondensedBlock& block = system.blocks()[i];
      energy.emplace_back(0.5 * SparseMatrix(SparseMatrix(block.Q.transpose()) * block.E));
      energy.back().makeCompressed();
      stored[i] = block_energy(i, x.data());
    }
    total = sum(stored);
    cut_tasks();
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
      coupled_flow.emplace(system, half, std::vector<bool>(system.blocks().size(), false));
    }
    why_not_scalar = reason;
    for (std::size_t i = 0; i < system.blocks().size(); ++i) {
      local_blocks.push_back(static_cast<int>(i));
      const CondensedBlock& block = system.blocks()[i];
      std::vector<BlockFlow> flows;
      if (options.split_dissipation && block.R.nonZeros() > 0) {
        flows.emplace_back(block, half, FlowTerms::dissipative);
        flows.emplace_back(block, step_s, FlowTerms::conservative);
        sequence.push_back({0, 1, 0});
      } else {
        flows.emplace_back(block, step_s, FlowTerms::all);
        sequence.push_back({0});
      }
      local_flows.push_back(std::move(flows));
    }
  }

  void make_impulse() {
    const System& parts = system.system();
    std::vector<bool> slow(system.blocks().size(), true);
    for (const std::string& name : options.fast) {
      slow[static_cast<std::size_t>(system.block_of_part(parts.find_part(name)))] = false;
    }
    if (std::find(slow.begin(), slow.end(), true) == slow.end()) {
      throw ConfigError("/method/fast", "every part is fast; at least one must be slow");
    }
    coupled_flow.emplace(system, 0.5 * step_s, slow);
    for (std::size_t i = 0; i < slow.size(); ++i) {
      if (slow[i]) continue;
      local_blocks.push_back(static_cast<int>(i));
      std::vector<BlockFlow> flows;
      flows.emplace_back(system.blocks()[i], step_s / options.factor, FlowTerms::all);
      local_flows.push_back(std::move(flows));
      sequence.emplace_back(static_cast<std::size_t>(options.factor), 0);
    }
  }

  double local_operations(std::size_t k) const {
    double sum = 0.0;
    for (const int f : sequence[k]) sum += local_flows[k][static_cast<std::size_t>(f)].operations();
    return sum;
  }

  void cut_tasks() {
    double load = 0.0;
    std::size_t work_size = 0;
    task_first.push_back(0);
    for (std::size_t k = 0; k < local_blocks.size(); ++k) {
      if (load >= kTaskOperations) {
        task_first.push_back(static_cast<int>(k));
        load = 0.0;
      }
      load += local_operations(k);
      work_first.push_back(work_size);
      // Rounded up to cache lines: tasks of neighbours run at once.
      work_size += (static_cast<std::size_t>(
                        4 * system.blocks()[static_cast<std::size_t>(local_blocks[k])].size) +
                    15) /
                   8 * 8;
    }
    task_first.push_back(static_cast<int>(local_blocks.size()));
    work.assign(work_size, 0.0);
  }

  double block_energy(std::size_t i, const double* state) const {
    const double* own = state + system.blocks()[i].first;
    return bilinear(energy[i], own, own);
  }
  static double sum(const std::vector<double>& values) {
    double out = 0.0;
    for (const double v : values) out += v;
    return out;
  }

  /// All local flows of one block, in turn.
  void run_block(std::size_t k) {
    const auto index = static_cast<std::size_t>(local_blocks[k]);
    const CondensedBlock& block = system.blocks()[index];
    double* own = next.data() + block.first;
    double* d = work.data() + work_first[k];
    for (const int f : sequence[k]) {
      const BlockFlow& flow = local_flows[k][static_cast<std::size_t>(f)];
      flow.increment(own, nullptr, d, d + block.size);
      if (book) dissipated[index] += flow.dissipated(own, d, d + block.size);
      for (int j = 0; j < block.size; ++j) own[j] += 2.0 * d[j];
    }
  }

  void run_coupling(const ForEach& each, double time_s, double& supplied) {
    const double* u = nullptr;
    if (!inputs.empty()) {
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        const CondensedInput& input = system.inputs()[k];
        try {
          inputs[k] = (*input.signal)(time_s);
        } catch (const std::exception& error) {
          throw NetworkFault(input.part, -1, StepFault::threw, error.what());
        }
        if (!std::isfinite(inputs[k])) {
          throw NetworkFault(input.part, -1, StepFault::not_finite,
                             fmt::format("input \"{}\" is not finite",
                                         system.system()
                                             .parts()[static_cast<std::size_t>(input.part)]
                                             .subsystem->signature()
                                             .inputs[static_cast<std::size_t>(input.channel)]
                                             .name));
        }
      }
      u = inputs.data();
    }
    if (scalar_flow) {
      scalar_flow->apply(next.data(), u, supplied);
    } else {
      coupled_flow->apply(each, next.data(), u, supplied, book ? dissipated.data() : nullptr);
    }
  }

  NetworkStep step(const ForEach& each) {
    std::copy(x.begin(), x.end(), next.begin());
    std::fill(dissipated.begin(), dissipated.end(), 0.0);
    const double time = static_cast<double>(steps) * step_s;
    double supplied = 0.0;
    run_coupling(each, time + 0.25 * step_s, supplied);
    each(static_cast<int>(task_first.size()) - 1, [&](int t) {
      for (int k = task_first[static_cast<std::size_t>(t)];
           k < task_first[static_cast<std::size_t>(t) + 1]; ++k) {
        run_block(static_cast<std::size_t>(k));
      }
    });
    run_coupling(each, time + 0.75 * step_s, supplied);
    NetworkStep result;
    result.converged = true;
    close(each, supplied, result);
    std::swap(x, next);
    ++steps;
    return result;
  }

  /// Energies of the step, and whether it is finite.
  void close(const ForEach& each, double supplied, NetworkStep& result) {
    const int blocks = static_cast<int>(system.blocks().size());
    if (!book) {
      for (const CondensedBlock& block : system.blocks()) {
        double probe = 0.0;
        for (int j = 0; j < block.size; ++j)
          probe += next[static_cast<std::size_t>(block.first + j)];
        if (!std::isfinite(probe)) throw NetworkFault(block.part, 0, StepFault::not_finite);
      }
      return;
    }
    constexpr int kRun = 16;
    each((blocks + kRun - 1) / kRun, [&](int t) {
      for (int i = t * kRun; i < std::min(blocks, (t + 1) * kRun); ++i) {
        stored_next[static_cast<std::size_t>(i)] =
            block_energy(static_cast<std::size_t>(i), next.data());
      }
    });
    for (int i = 0; i < blocks; ++i) {
      if (std::isfinite(stored_next[static_cast<std::size_t>(i)])) continue;
      throw NetworkFault(system.blocks()[static_cast<std::size_t>(i)].part, 0,
                         StepFault::not_finite);
    }
    const double after = sum(stored_next);
    result.energy.stored_J = after;
    result.energy.supplied_J = supplied;
    result.energy.dissipated_J = sum(dissipated);
    result.energy.mismatch_J = supplied - result.energy.dissipated_J - (after - total);
    result.energy.max_passivity_residual_J = after - total - supplied;
    result.energy_scale_J = std::abs(after) + std::abs(total) + std::abs(supplied);
    total = after;
    std::swap(stored, stored_next);
  }

  OperationCounts operations() const {
    OperationCounts count;
    const double inputs_n = static_cast<double>(inputs.size()) * system.size();
    for (std::size_t k = 0; k < local_blocks.size(); ++k) {
      const double n = system.blocks()[static_cast<std::size_t>(local_blocks[k])].size;
      count.dense += n * n * static_cast<double>(sequence[k].size());
      count.sparse += local_operations(k);
    }
    const double all = system.size(), r = system.channels();
    if (scalar_flow) {
      count.dense += 2.0 * (scalar_flow->operations() + inputs_n);
      count.sparse += 2.0 * (scalar_flow->operations() + static_cast<double>(inputs.size()));
    } else {
      // Strang's coupling flow moves r states only; the slow flow of impulse all that is slow.
      count.dense += 2.0 * ((kind == MethodKind::impulse ? all * all : r * r) + inputs_n);
      count.sparse += 2.0 * coupled_flow->operations();
    }
    return count;
  }

  const CondensedSystem& system;
  double step_s;
  MethodKind kind;
  SplittingOptions options;
  bool book;
  std::vector<ScalarCoupling> pairs;
  bool scalar = false;
  std::string why_not_scalar;
  std::optional<ScalarFlow> scalar_flow;
  std::optional<CoupledFlow> coupled_flow;
  std::vector<int> local_blocks;  ///< those with a local flow
  std::vector<std::vector<BlockFlow>> local_flows;
  std::vector<std::vector<int>> sequence;  ///< the flows of a local block, in turn
  std::vector<int> task_first;
  std::vector<std::size_t> work_first;
  std::vector<double> work;
  std::vector<SparseMatrix> energy;  ///< ½QᵀE
  std::vector<double> x, next, inputs;
  std::vector<double> stored, stored_next, dissipated;  ///< by block
  double total = 0.0;
  std::int64_t steps = 0;
};

SplittingMethod::SplittingMethod(const CondensedSystem& system, double step_s,
                                 const CouplingMethod& method, bool book)
    : impl_(std::make_unique<Impl>(system, step_s, method, book)) {}
SplittingMethod::~SplittingMethod() = default;

NetworkStep SplittingMethod::step(const ForEach& each) { return impl_->step(each); }
std::int64_t SplittingMethod::step_index() const { return impl_->steps; }
std::span<const double> SplittingMethod::state() const { return impl_->x; }
double SplittingMethod::storage(int block) const {
  return impl_->block_energy(static_cast<std::size_t>(block), impl_->x.data());
}
OperationCounts SplittingMethod::operations() const { return impl_->operations(); }

double SplittingMethod::shared_cost_ns() const {
  double sum = 0.0;
  for (std::size_t k = 0; k < impl_->local_blocks.size(); ++k) sum += impl_->local_operations(k);
  if (impl_->coupled_flow) sum += 2.0 * impl_->coupled_flow->shared_operations();
  return kNanosecondsPerOperation * sum;
}

std::string SplittingMethod::description() const {
  const Impl& i = *impl_;
  const std::string coupling =
      i.scalar ? fmt::format("{} scalar coupling{} in closed form", i.pairs.size(),
                             i.pairs.size() == 1 ? "" : "s")
               : fmt::format("low-rank coupling flow of {} channels{}", i.system.channels(),
                             i.why_not_scalar.empty() ? "" : " (" + i.why_not_scalar + ")");
  if (i.kind == MethodKind::impulse) {
    return fmt::format("{} fast of {} parts, {} fast steps per step; {}", i.local_blocks.size(),
                       i.system.blocks().size(), i.options.factor, coupling);
  }
  return fmt::format(
      "{} local flows{}; {}", i.local_blocks.size(),
      i.options.split_dissipation ? ", each split into conservative and dissipative" : "",
      coupling);
}

}  // namespace portwave
