// Splitting of fourth order with positive weights: Ψ = e^{h/6 A₁} e^{h/2 A₂} e^{2h/3 Ã₁} e^{h/2 A₂} e^{h/6 A₁},
// Ã₁ = A₁ + h²/48 [A₁,[A₂,A₁]], where A₁ is the coupling (with `impulse`: and the slow parts) and A₂ the rest.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include <Eigen/Dense>
#include <fmt/format.h>

#include "network/splitting/component_flow.hpp"
#include "network/splitting/splitting_options.hpp"
#include "portwave/coupling/network/splitting.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"

namespace portwave {
namespace {
namespace fourth_order {

constexpr int kMostChecked = 256;  ///< states whose step is looked at as a whole

SparseMatrix sparse_product(const SparseMatrix& a, const SparseMatrix& b) {
  SparseMatrix out = a * b;
  out.prune(0.0);
  return out;
}

/// E⁻¹ of a block-diagonal E.
SparseMatrix inverse_of_E(const CondensedSystem& system) {
  SparseEntries entries;
  for (const CondensedBlock& block : system.blocks()) {
    if (!block.is_descriptor) {
      for (int i = 0; i < block.size; ++i) {
        entries.emplace_back(block.first + i, block.first + i, 1.0);
      }
      continue;
    }
    const Eigen::MatrixXd inverse = Eigen::MatrixXd(block.E).inverse();
    append_block(SparseMatrix(inverse.sparseView()), block.first, block.first, entries);
  }
  return sparse_matrix(system.size(), system.size(), entries);
}

/// By state, whether its block is of A₂.
std::vector<char> inner_states(const CondensedSystem& system, const Splitting& options) {
  std::vector<char> out(at(system.size()), 1);
  if (options.kind != SplittingKind::impulse) return out;
  const std::vector<bool> slow = slow_blocks(system, options);
  for (std::size_t b = 0; b < slow.size(); ++b) {
    const CondensedBlock& block = system.blocks()[b];
    if (slow[b]) std::fill_n(out.begin() + block.first, block.size, 0);
  }
  return out;
}

/// The rows of one sort.
SparseMatrix rows_of(SparseMatrix m, const std::vector<char>& of, bool wanted) {
  m.prune([&](Eigen::Index i, Eigen::Index, double value) {
    return value != 0.0 && (of[at(static_cast<int>(i))] != 0) == wanted;
  });
  return m;
}

}  // namespace fourth_order
}  // namespace

using fourth_order::sparse_product;

struct FourthOrderSplitting::Impl {
  Impl(const CondensedSystem& s, double h, const Splitting& given, bool keep_ledger)
      : system((throw_if_any(splitting_defects(s, h, given)), s)),
        step_s(h),
        options(given),
        ledger(keep_ledger),
        Q(s.Q()),
        R(s.R()) {
    const int n = s.size();
    const SparseMatrix inverse = fourth_order::inverse_of_E(s);
    const std::vector<char> is_inner = fourth_order::inner_states(s, given);
    const SparseMatrix local = sparse_product(inverse, sparse_product(s.J_local() - R, Q));
    const SparseMatrix coupling = sparse_product(inverse, sparse_product(s.J_coupling(), Q));
    const SparseMatrix A2 = fourth_order::rows_of(local, is_inner, true);
    const SparseMatrix A1 = coupling + fourth_order::rows_of(local, is_inner, false);
    R_inner = fourth_order::rows_of(R, is_inner, true);
    has_slow_losses = fourth_order::rows_of(R, is_inner, false).nonZeros() > 0;
    const SparseMatrix A11 = sparse_product(A1, A1);
    const SparseMatrix commutator = 2.0 * sparse_product(sparse_product(A1, A2), A1) -
                                    sparse_product(A11, A2) - sparse_product(A2, A11);
    const double share = h * h / 48.0;
    SparseMatrix mixed = A1 + share * commutator;
    mixed.prune(0.0);
    B = sparse_product(inverse, s.B());
    kick = -share * sparse_product(A11, B);
    std::vector<char> driven(at(n), 0), kicked(at(n), 0);
    const auto mark = [](const SparseMatrix& m, std::vector<char>& rows) {
      for (int j = 0; j < m.outerSize(); ++j) {
        for (SparseMatrix::InnerIterator it(m, j); it; ++it) {
          rows[at(static_cast<int>(it.row()))] = 1;
        }
      }
    };
    mark(B, driven);
    mark(kick, kicked);
    const int fast_steps = given.kind == SplittingKind::impulse ? (given.factor + 1) / 2 : 1;
    outer.emplace(A1, h / 6.0, 1, std::vector<char>(at(n), 0));
    inner.emplace(A2, h / 2.0, fast_steps, driven);
    middle.emplace(mixed, 2.0 * h / 3.0, 1, kicked);
    supply = ColumnList(sparse_product(SparseMatrix(Q.transpose()), s.B()));
    kick_supply = ColumnList(
        SparseMatrix(-share * sparse_product(SparseMatrix(A11.transpose()),
                                             sparse_product(SparseMatrix(Q.transpose()), s.B()))));
    energy = 0.5 * sparse_product(SparseMatrix(Q.transpose()), s.E());
    const Eigen::VectorXd start = s.initial_state();
    x.assign(start.data(), start.data() + n);
    next = previous = before = x;
    z.assign(at(n), 0.0);
    inputs.assign(s.inputs().size(), 0.0);
    sampled.fill(inputs);
    if (!inputs.empty()) g.assign(at(ComponentFlow::kStages * n), 0.0);
    stages.assign(at(ComponentFlow::kStages * n), 0.0);
    stored = bilinear(energy, x.data(), x.data());
    check_norm();
  }

  /// Ã₁ takes dissipation into account that is not there: on the states that couplings touch, energy is created at
  /// O(h³), and dissipated at O(h³) too. Whether a step can create energy at all is seen from all of it.
  void check_norm() {
    if (system.has_active() || system.size() > fourth_order::kMostChecked) return;
    const Eigen::Index n = system.size();
    Eigen::MatrixXd step = Eigen::MatrixXd::Identity(n, n);
    for (Eigen::Index j = 0; j < n; ++j) advance(ForEach(), step.col(j).data(), false);
    const Eigen::MatrixXd H = Eigen::MatrixXd(energy);
    Eigen::VectorXd scale(n);
    for (Eigen::Index i = 0; i < n; ++i) scale[i] = H(i, i) > 0.0 ? 1.0 / std::sqrt(H(i, i)) : 0.0;
    Eigen::MatrixXd gain = step.transpose() * H * step - H;
    gain = scale.asDiagonal() * (0.5 * (gain + gain.transpose())).eval() * scale.asDiagonal();
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> found(gain, Eigen::ComputeEigenvectors);
    // Beside the energies of single states, as some states may have none together.
    constexpr double kRounding = 1e-12;
    if (!(found.eigenvalues()[n - 1] > kRounding)) return;
    const Eigen::VectorXd worst = scale.asDiagonal() * found.eigenvectors().col(n - 1);
    const double share = found.eigenvalues()[n - 1] / worst.dot(H * worst);
    throw ConfigError(
        "/time/step_s",
        fmt::format("a step of order 4 could create energy at this size, {:.1e} of what is stored "
                    "at worst: dampers act beside couplings. Take shorter steps, or order 2, "
                    "which dissipates at every size",
                    share));
  }

  /// Half of the inner flow, from a share `begin` of the step on.
  void run_inner(const ForEach& each, double* state, double begin, bool driven) {
    const double tau = inner->step_s();
    const auto n = static_cast<int>(x.size());
    for (int k = 0; k < inner->steps(); ++k) {
      const double begin_s = clock.time_s() + begin * step_s + k * tau;
      if (driven) std::ranges::fill(g, 0.0);
      for (int i = 0; i < ComponentFlow::kStages && driven; ++i) {
        const double place = ComponentFlow::places()[at(i)];
        sample_inputs(system, {begin_s + place * tau, begin_s, tau, place, ComponentFlow::kStages},
                      inputs.data());
        sampled[at(i)] = inputs;
        add_product(B, 1.0, inputs.data(), g.data() + i * n);
      }
      inner->step(each, state, driven ? g.data() : nullptr, ledger ? stages.data() : nullptr);
      if (ledger && account) book_inner(tau, driven);
    }
  }

  void book_inner(double tau, bool driven) {
    const auto n = static_cast<int>(x.size());
    for (int i = 0; i < ComponentFlow::kStages; ++i) {
      const double* const own = stages.data() + i * n;
      std::ranges::fill(z, 0.0);
      add_product(Q, 1.0, own, z.data());
      dissipated += 0.5 * tau * bilinear(R_inner, z.data(), z.data());
      for (int k = 0; k < static_cast<int>(inputs.size()) && driven; ++k) {
        supplied += 0.5 * tau * sampled[at(i)][at(k)] * supply.dot(k, own);
      }
    }
  }

  /// The supply is an integral along A₂, so that the commutator has a share of it.
  void book_middle() {
    const auto n = static_cast<int>(x.size());
    double work = 0.0;
    for (int i = 0; i < ComponentFlow::kStages; ++i) {
      for (int k = 0; k < static_cast<int>(inputs.size()); ++k) {
        work += 0.5 * middle->step_s() * inputs[at(k)] * kick_supply.dot(k, stages.data() + i * n);
      }
    }
    supplied += work;
    dissipated += work;
  }

  /// What a flow of A₁ or Ã₁ does to the energy counts as dissipated.
  template <class Flow>
  void run_booked(double* state, bool counts, const Flow& flow) {
    const bool books = ledger && account && counts;
    if (books) std::copy_n(state, before.size(), before.data());
    flow();
    if (!books) return;
    for (std::size_t i = 0; i < before.size(); ++i) {
      z[i] = state[i] + before[i];
      before[i] -= state[i];
    }
    dissipated += bilinear(energy, z.data(), before.data());
  }

  /// One step of `state`; `driven`: with the external inputs.
  void advance(const ForEach& each, double* state, bool driven) {
    const auto run_outer = [&] { outer->step(each, state, nullptr, nullptr); };
    run_booked(state, has_slow_losses, run_outer);
    run_inner(each, state, 0.0, driven);
    if (driven) {
      const double half = 0.5 * step_s;
      sample_inputs(system, {clock.time_s() + half, clock.time_s(), step_s, 0.5, 1}, inputs.data());
      std::ranges::fill(g, 0.0);
      for (int i = 0; i < ComponentFlow::kStages; ++i) {
        add_product(kick, 1.0, inputs.data(), g.data() + i * static_cast<int>(x.size()));
      }
    }
    run_booked(state, true, [&] {
      middle->step(each, state, driven ? g.data() : nullptr, driven ? stages.data() : nullptr);
    });
    if (driven && ledger && account) book_middle();
    run_inner(each, state, 0.5, driven);
    run_booked(state, has_slow_losses, run_outer);
  }

  NetworkStep step(const ForEach& each) {
    supplied = dissipated = 0.0;
    account = true;
    std::ranges::copy(x, next.begin());
    advance(each, next.data(), !inputs.empty());
    NetworkStep result;
    result.converged = true;
    close(result);
    previous.swap(x);
    x.swap(next);
    clock.advance(step_s);
    return result;
  }

  void close(NetworkStep& result) {
    for (const CondensedBlock& block : system.blocks()) {
      const auto begin = next.begin() + block.first;
      if (std::all_of(begin, begin + block.size, [](double v) { return std::isfinite(v); })) {
        continue;
      }
      throw NetworkFault(block.part, 0, StepFault::not_finite);
    }
    if (!ledger) return;
    const double after = bilinear(energy, next.data(), next.data());
    result.energy.stored_J = after;
    result.energy.supplied_J = supplied;
    result.energy.dissipated_J = dissipated;
    result.energy.mismatch_J = supplied - dissipated - (after - stored);
    result.energy.max_passivity_residual_J = after - stored - supplied;
    result.energy_scale_J =
        term_size(energy, x.data()) + term_size(energy, next.data()) + std::abs(supplied);
    stored = after;
  }

  const CondensedSystem& system;
  double step_s;
  Splitting options;
  bool ledger;
  bool account = false;  ///< whether a step of the run is made
  SparseMatrix Q, R, R_inner;
  SparseMatrix B;          ///< E⁻¹B
  SparseMatrix kick;       ///< −h²/48 A₁²B
  SparseMatrix energy;     ///< ½QᵀE
  ColumnList supply;       ///< QᵀB
  ColumnList kick_supply;  ///< −h²/48 (A₁²)ᵀQᵀB
  bool has_slow_losses = false;
  std::optional<ComponentFlow> outer, inner, middle;
  std::vector<double> x, next, previous, before, z, inputs, g, stages;
  std::array<std::vector<double>, ComponentFlow::kStages> sampled;
  double supplied = 0.0, dissipated = 0.0, stored = 0.0;
  StepClock clock{system.start_s()};
};

FourthOrderSplitting::FourthOrderSplitting(const CondensedSystem& system, double step_s,
                                           const Splitting& options, bool ledger)
    : impl_(std::make_unique<Impl>(system, step_s, options, ledger)) {}
FourthOrderSplitting::~FourthOrderSplitting() = default;

NetworkStep FourthOrderSplitting::step(const ForEach& each) { return impl_->step(each); }
const StepClock& FourthOrderSplitting::clock() const { return impl_->clock; }
std::span<const double> FourthOrderSplitting::state() const { return impl_->x; }
std::span<const double> FourthOrderSplitting::previous_state() const { return impl_->previous; }

double FourthOrderSplitting::storage(int block) const {
  const CondensedBlock& own = impl_->system.blocks()[at(block)];
  const double* const x = impl_->x.data() + own.first;
  return 0.5 * bilinear(SparseMatrix(own.Q.transpose() * own.E), x, x);
}

int FourthOrderSplitting::tasks() const { return impl_->inner->tasks(); }

double FourthOrderSplitting::shared_cost_ns() const {
  constexpr double kPerOperation_ns = 2.0;
  const Impl& i = *impl_;
  return kPerOperation_ns *
         (2.0 * i.outer->operations() + 2.0 * i.inner->operations() + i.middle->operations());
}

std::size_t FourthOrderSplitting::bytes() const {
  const Impl& i = *impl_;
  std::size_t sum = i.outer->bytes() + i.inner->bytes() + i.middle->bytes();
  for (const std::vector<double>* own :
       {&i.x, &i.next, &i.previous, &i.before, &i.z, &i.g, &i.stages}) {
    sum += own->capacity() * sizeof(double);
  }
  return sum;
}

void FourthOrderSplitting::archive(StateArchive& archive) {
  Impl& i = *impl_;
  for (std::vector<double>* own : {&i.x, &i.previous}) archive.array(*own);
  archive.values(i.stored, i.clock);
  for (const std::vector<double>* own : {&i.x, &i.previous}) archive.expect_finite(*own, "a state");
  archive.expect(std::isfinite(i.stored), "the stored energy");
  archive.expect(i.clock.is_sound(), "the time");
}

std::string FourthOrderSplitting::description() const {
  const Impl& i = *impl_;
  std::string text = "order 4 with positive weights";
  if (i.options.kind == SplittingKind::impulse) {
    text += fmt::format(", {} fast steps per step", 2 * i.inner->steps());
  }
  if (i.system.size() > fourth_order::kMostChecked) {
    return text + fmt::format(
                      "; that no step creates energy was not checked, there being more "
                      "than {} states: the certificate judges every step",
                      fourth_order::kMostChecked);
  }
  if (i.system.has_active()) return text;
  return text + "; no step of this size creates energy, longer ones may";
}

}  // namespace portwave
