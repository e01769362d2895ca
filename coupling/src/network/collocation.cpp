#include "portwave/coupling/network/collocation.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <Eigen/LU>
#include <fmt/format.h>

#include "network/stage_solver.hpp"
#include "portwave/coupling/system/step_clock.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"

namespace portwave {

Tableau tableau(Integrator integrator) {
  if (integrator == Integrator::radau_iia) {
    return {.stages = 2,
            .A_inverse = {1.5, 0.5, -4.5, 2.5},
            .b = {0.75, 0.25},
            .c = {1.0 / 3.0, 1.0},
            .stiffly_accurate = true};
  }
  return {.stages = 1, .A_inverse = {2.0}, .b = {1.0}, .c = {0.5}, .stiffly_accurate = false};
}

bool StageSolver::prepare(const Tableau& tableau, double step_s, const SparseMatrix& E,
                          const SparseMatrix& A) {
  n_ = static_cast<int>(A.rows());
  stages_ = tableau.stages;
  A_ = A;
  A_.makeCompressed();
  weights_.assign(static_cast<std::size_t>(stages_), 0.0);
  SparseEntries entries;
  for (int i = 0; i < stages_; ++i) {
    for (int j = 0; j < stages_; ++j) {
      const double a = tableau.A_inverse[static_cast<std::size_t>(i * stages_ + j)];
      weights_[static_cast<std::size_t>(j)] += tableau.b[static_cast<std::size_t>(i)] * a;
      // Unknowns are interleaved, stage by stage of each state, so that the factors stay narrow.
      for (int c = 0; c < n_; ++c) {
        for (SparseMatrix::InnerIterator it(E, c); it; ++it) {
          entries.emplace_back(static_cast<int>(it.row()) * stages_ + i, c * stages_ + j,
                               a / step_s * it.value());
        }
      }
    }
    for (int c = 0; c < n_; ++c) {
      for (SparseMatrix::InnerIterator it(A_, c); it; ++it) {
        entries.emplace_back(static_cast<int>(it.row()) * stages_ + i, c * stages_ + i,
                             -it.value());
      }
    }
  }
  if (tableau.stiffly_accurate) {  // without the rounding of b and A⁻¹
    weights_.assign(static_cast<std::size_t>(stages_), 0.0);
    weights_.back() = 1.0;
  }
  SparseMatrix matrix = sparse_matrix(stages_ * n_, stages_ * n_, entries);
  if (!solver_.factorise(matrix)) return false;
  scalar_ = n_ == 1 && stages_ == 1 && A_.nonZeros() == 1 && solver_.inverse() != nullptr;
  return true;
}

void StageSolver::step(double* x, double* stage_values, double* scratch) const {
  if (scalar_) {  // the same operations; long windows of tiny blocks live here
    const double start = *x;
    const double rhs = *stage_values + (0.0 + *A_.valuePtr() * start);
    const double d = 0.0 + *solver_.inverse() * rhs;
    *stage_values = start + d;
    *x = start + (0.0 + weights_.front() * d);
    return;
  }
  const int s = stages_;
  double* rhs = scratch;
  double* d = scratch + s * n_;
  double* work = scratch + 2 * s * n_;
  for (int i = 0; i < n_; ++i) work[i] = 0.0;
  add_product(A_, 1.0, x, work);
  for (int i = 0; i < n_; ++i) {
    for (int k = 0; k < s; ++k) rhs[i * s + k] = stage_values[k * n_ + i] + work[i];
  }
  solver_.solve(rhs, d, work);
  for (int i = 0; i < n_; ++i) {
    const double start = x[i];
    double moved = 0.0;
    for (int k = 0; k < s; ++k) {
      stage_values[k * n_ + i] = start + d[i * s + k];
      moved += weights_[static_cast<std::size_t>(k)] * d[i * s + k];
    }
    x[i] = start + moved;
  }
}

void StageSolver::prepare_lanes() {
  solver_.prepare_lanes();
  A_lanes_ = LaneMatrix(A_, LaneMatrix::By::rows);
}

void StageSolver::step_lanes(double* x, double* stage_values, double* scratch) const {
  const LaneKernels& kernels = lane_kernels();
  const int many = stages_ * n_ * kLaneGroup;
  double* rhs = scratch;
  double* d = scratch + many;
  double* work = d + many;
  kernels.product(A_lanes_.lines(), x, work);
  kernels.stage_rhs(n_, stages_, stage_values, work, rhs);
  solver_.solve_lanes(rhs, d, work);
  kernels.stage_end(n_, stages_, weights_.data(), d, x, stage_values);
}

namespace {

Integrator resolved(Integrator integrator, const CondensedSystem& system) {
  if (integrator != Integrator::automatic) return integrator;
  return system.analysis().algebraic > 0 ? Integrator::radau_iia : Integrator::midpoint;
}

void check(const Tableau& table, const CondensedSystem& system) {
  const auto s = static_cast<std::size_t>(std::max(table.stages, 0));
  if (s == 0 || table.A_inverse.size() != s * s || table.b.size() != s || table.c.size() != s) {
    throw ConfigError("/tableau", "must have as many coefficients as its stages ask for");
  }
  if (system.analysis().algebraic > 0 && !table.stiffly_accurate) {
    throw ConfigError(
        "/integrator",
        "the system has algebraic equations (E is singular), which need a stiffly accurate "
        "method such as Radau IIA");
  }
}

}  // namespace

struct CollocationReference::Impl {
  Impl(const CondensedSystem& s, double h, Tableau chosen)
      : system(s), step_s(h), method(std::move(chosen)), n(s.size()) {
    if (!(h > 0.0) || !std::isfinite(h)) {
      throw ConfigError("/time/step_s",
                        fmt::format("must be > 0 and finite, got {}", shown_number(h)));
    }
    check(method, system);
    E = system.E();
    Q = system.Q();
    R = system.R();
    B = system.B();
    const SparseMatrix generator = SparseMatrix(system.J_local() + system.J_coupling() - R) * Q;
    if (!solver.prepare(method, h, E, generator)) {
      throw ConfigError("/time/step_s", "the implicit step is singular at this step size");
    }
    stages.assign(static_cast<std::size_t>(method.stages) * static_cast<std::size_t>(n), 0.0);
    scratch.assign(static_cast<std::size_t>(solver.scratch_size()), 0.0);
    z.assign(static_cast<std::size_t>(n), 0.0);
    inputs.assign(system.inputs().size(), 0.0);
    const Eigen::VectorXd start = system.initial_state();
    x.assign(start.data(), start.data() + n);
  }

  void step() {
    const double time = clock.time_s();
    std::vector<double> u(static_cast<std::size_t>(method.stages) * inputs.size());
    for (int i = 0; i < method.stages; ++i) {
      double* g = stages.data() + static_cast<std::ptrdiff_t>(i) * n;
      std::fill(g, g + n, 0.0);
      if (inputs.empty()) continue;
      double* own = u.data() + static_cast<std::size_t>(i) * inputs.size();
      system.sample(time + method.c[static_cast<std::size_t>(i)] * step_s, own);
      add_product(B, 1.0, own, g);
    }
    solver.step(x.data(), stages.data(), scratch.data());
    clock.advance(step_s);
    supplied = dissipated = 0.0;
    for (int i = 0; i < method.stages; ++i) {
      const double weight = step_s * method.b[static_cast<std::size_t>(i)];
      std::fill(z.begin(), z.end(), 0.0);
      add_product(Q, 1.0, stages.data() + static_cast<std::ptrdiff_t>(i) * n, z.data());
      dissipated += weight * bilinear(R, z.data(), z.data());
      if (!inputs.empty()) {
        supplied +=
            weight * bilinear(B, z.data(), u.data() + static_cast<std::size_t>(i) * inputs.size());
      }
    }
  }

  const CondensedSystem& system;
  double step_s;
  Tableau method;
  int n;
  SparseMatrix E, Q, R, B;
  StageSolver solver;
  std::vector<double> x, stages, scratch, z, inputs;
  double supplied = 0.0, dissipated = 0.0;
  StepClock clock{system.start_s()};
};

CollocationReference::CollocationReference(const CondensedSystem& system, double step_s,
                                           Integrator integrator)
    : CollocationReference(system, step_s, tableau(resolved(integrator, system))) {}
CollocationReference::CollocationReference(const CondensedSystem& system, double step_s,
                                           Tableau method)
    : impl_(std::make_unique<Impl>(system, step_s, std::move(method))) {}
CollocationReference::~CollocationReference() = default;

void CollocationReference::step() { impl_->step(); }
double CollocationReference::time_s() const { return impl_->clock.time_s(); }
std::span<const double> CollocationReference::state() const { return impl_->x; }
std::span<const double> CollocationReference::stages() const { return impl_->stages; }
void CollocationReference::reset(std::span<const double> x) {
  impl_->x.assign(x.begin(), x.end());
  impl_->clock = StepClock(impl_->system.start_s());
}
double CollocationReference::storage() const {
  std::vector<double> Ex(impl_->x.size(), 0.0), z(impl_->x.size(), 0.0);
  add_product(impl_->E, 1.0, impl_->x.data(), Ex.data());
  add_product(impl_->Q, 1.0, impl_->x.data(), z.data());
  double twice = 0.0;
  for (std::size_t i = 0; i < z.size(); ++i) twice += Ex[i] * z[i];
  return 0.5 * twice;
}
double CollocationReference::supplied() const { return impl_->supplied; }
double CollocationReference::dissipated() const { return impl_->dissipated; }
double CollocationReference::operations() const { return impl_->solver.operations(); }

}  // namespace portwave
