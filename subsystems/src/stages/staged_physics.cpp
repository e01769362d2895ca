#include "stages/staged_physics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "base/workspace.hpp"
#include "nonlinear/cancelling_gradients.hpp"
#include "nonlinear/discrete_gradients.hpp"
#include "portwave/subsystems/base/typical_state.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"

namespace portwave {
namespace {

/// Exact for polynomials H of degree d with sd ≤ 16: ∇H along X, which is of degree s, times lᵢ is of
/// degree sd − 1.
constexpr int kLeastQuadraturePoints = 8;

/// What a part asks for: as many as its degree needs, or more than the least.
int quadrature_points(const Subsystem& part, int stages) {
  const auto* const own = dynamic_cast<const NonlinearPortHamiltonian*>(&part);
  if (own == nullptr) return kLeastQuadraturePoints;
  const int points = own->quadrature_points(stages);
  return own->options().polynomial_degree > 0 ? points : std::max(kLeastQuadraturePoints, points);
}

/// Whether that many points integrate its gradients exactly.
bool is_exact_polynomial(const Subsystem& part) {
  const auto* const own = dynamic_cast<const NonlinearPortHamiltonian*>(&part);
  return own != nullptr && own->options().polynomial_degree > 0;
}

const GradientsSideBySide* side_by_side(const Subsystem& part) {
  const auto* const own = dynamic_cast<const GradientsSideBySide*>(&part);
  return own != nullptr && own->takes_gradients() ? own : nullptr;
}

Signature lifted_signature(const Subsystem& part, const StageRule& stages) {
  Signature out = staged_signature(part.signature(), stages.count);
  for (int i = 1; i <= stages.count; ++i) {
    for (const StateVariable& state : part.signature().states) {
      out.states.push_back({state.name + "@" + std::to_string(i), state.unit});
    }
  }
  return out;
}

using Matrices = std::array<const SparseMatrix*, 6>;

Matrices matrices_of(const Structure& s) { return {&s.J, &s.R, &s.G, &s.P, &s.S, &s.N}; }

bool has_pattern(const SparseMatrix& A, const SparseMatrix& of) {
  return A.isCompressed() && A.nonZeros() == of.nonZeros() && A.outerSize() == of.outerSize() &&
         std::equal(A.outerIndexPtr(), A.outerIndexPtr() + A.outerSize() + 1, of.outerIndexPtr()) &&
         std::equal(A.innerIndexPtr(), A.innerIndexPtr() + A.nonZeros(), of.innerIndexPtr());
}

Structure lifted_structure(const StageLayout& layout, const Structure& own) {
  Structure all = Structure::zero(layout.n + layout.states(), layout.ports() + layout.inputs());
  for (int i = 0; i < layout.stages; ++i) add_stage(layout, i, layout.n, own, all);
  for (SparseMatrix* M : {&all.J, &all.R, &all.G, &all.P, &all.S, &all.N}) M->makeCompressed();
  return all;
}

}  // namespace

StagedPhysics::StagedPhysics(const Subsystem& part, const StageRule& stages)
    : Subsystem(lifted_signature(part, stages)),
      part_(part),
      together_(side_by_side(part)),
      stages_(stages),
      layout_{stages.count, part.signature().state_size(), part.signature().wave_size(),
              part.signature().input_size()},
      structure_(lifted_structure(layout_, part.structure())),
      own_typical_(part.typical_state()),
      stiffness_(part, stages.conserved),
      top_(2 * layout_.n),
      stage_structure_(part.structure()),
      of_delta_(layout_.states(), layout_.states()),
      hessian_terms_(static_cast<std::size_t>(layout_.states() * layout_.n), 0.0) {
  for (int i = 0; i <= stages.count; ++i) {
    typical_.insert(typical_.end(), own_typical_.begin(), own_typical_.end());
  }
  find_terms();
  if (!part.is_smooth() && stages.count > 1) {
    find_whole_step();
  } else {
    const int points = quadrature_points(part, stages.count);
    nodes_ = nodes_of(points);
    is_corrected_ = stages.count > 1 && !is_exact_polynomial(part);
    if (points > stages.count + 1) coarse_nodes_ = nodes_of(stages.count + 1);
  }
  size_weight_.resize(static_cast<std::size_t>(stages.count));
  for (const Node& node : nodes_) {
    for (std::size_t i = 0; i < size_weight_.size(); ++i) {
      size_weight_[i] += std::abs(node.weight[i]);
    }
  }
  put_nodes_together();
  for (int i = 0; i < stages.count; ++i) {
    root_weight_.push_back(std::sqrt(stages.b[static_cast<std::size_t>(i)]));
    at_stages_.push_back({{}, reach_to(stages.c[static_cast<std::size_t>(i)])});
  }
  if (whole_ != nullptr) reach_the_middle();
  coupling_.resize(stages.count, stages.count);
  for (int i = 0; i < stages.count; ++i) {
    for (int j = 0; j < stages.count; ++j) {
      const auto row = static_cast<std::size_t>(i), column = static_cast<std::size_t>(j);
      coupling_(i, j) = root_weight_[row] / root_weight_[column] * stages.A[row][column];
    }
  }
  const auto* const cancelling = dynamic_cast<const CancellingGradients*>(&part);
  cancels_ = cancelling != nullptr && cancelling->gradients_cancel();
  start_size_.resize(own_typical_.size());
  start_terms_.resize(own_typical_.size());
  start_x_.reserve(own_typical_.size());
  stored_x_.reserve(own_typical_.size());
  find_places();
}

std::vector<double> StagedPhysics::reach_to(double tau) const {
  std::vector<double> reach;
  reach.reserve(static_cast<std::size_t>(stages_.count));
  for (int j = 0; j < stages_.count; ++j) {
    reach.push_back(stages_.integral(j, tau) / std::sqrt(stages_.b[static_cast<std::size_t>(j)]));
  }
  return reach;
}

std::vector<StagedPhysics::Node> StagedPhysics::nodes_of(int points) const {
  std::vector<Node> out;
  const detail::QuadratureRule& rule = detail::gauss_legendre(points);
  for (std::size_t k = 0; k < rule.nodes.size(); ++k) {
    Node node{{}, reach_to(rule.nodes[k])};
    for (int i = 0; i < stages_.count; ++i) {
      node.weight.push_back(rule.weights[k] * stages_.lagrange(i, rule.nodes[k]) /
                            std::sqrt(stages_.b[static_cast<std::size_t>(i)]));
    }
    out.push_back(std::move(node));
  }
  return out;
}

/// Each value of a stage is its number in it, put where it goes and looked for.
void StagedPhysics::find_places() {
  if (part_.constant_structure()) return;
  for (SparseMatrix* M : {&stage_structure_.J, &stage_structure_.R, &stage_structure_.G,
                          &stage_structure_.P, &stage_structure_.S, &stage_structure_.N}) {
    M->makeCompressed();
  }
  Structure own = part_.structure(), all = structure_;
  for (SparseMatrix* M : {&own.J, &own.R, &own.G, &own.P, &own.S, &own.N}) M->makeCompressed();
  stage_pattern_ = own;
  for (SparseMatrix* M : {&own.J, &own.R, &own.G, &own.P, &own.S, &own.N}) {
    for (int k = 0; k < M->nonZeros(); ++k) M->valuePtr()[k] = k + 1.0;
  }
  for (int i = 0; i < layout_.stages; ++i) {
    for (SparseMatrix* M : {&all.J, &all.R, &all.G, &all.P, &all.S, &all.N}) {
      std::fill(M->valuePtr(), M->valuePtr() + M->nonZeros(), 0.0);
    }
    add_stage(layout_, i, layout_.n, own, all);
    Places places;
    const Matrices from = matrices_of(own), to = matrices_of(all);
    for (std::size_t m = 0; m < from.size(); ++m) {
      places.of[m].resize(static_cast<std::size_t>(from[m]->nonZeros()));
      for (int k = 0; k < to[m]->nonZeros(); ++k) {
        const double number = to[m]->valuePtr()[k];
        if (number > 0.0) places.of[m][static_cast<std::size_t>(number) - 1] = k;
      }
    }
    places_.push_back(std::move(places));
  }
}

/// The structure of a stage, in stage_structure_, into that of all.
void StagedPhysics::put_stage(int stage, Structure& out) const {
  const Matrices own = matrices_of(stage_structure_), pattern = matrices_of(stage_pattern_);
  const Matrices all = matrices_of(structure_);
  const std::array<SparseMatrix*, 6> to = {&out.J, &out.R, &out.G, &out.P, &out.S, &out.N};
  // Values that are put do not change where they stand: the first stage looks for all.
  if (stage == 0)
    has_places_ = std::ranges::equal(
        to, all, [](const auto* a, const auto* b) { return has_pattern(*a, *b); });
  for (std::size_t m = 0; m < to.size(); ++m) {
    if (has_places_ && has_pattern(*own[m], *pattern[m])) continue;
    add_stage(layout_, stage, layout_.n, stage_structure_, out);
    has_places_ = false;
    return;
  }
  for (std::size_t m = 0; m < to.size(); ++m) {
    const std::vector<int>& places = places_[static_cast<std::size_t>(stage)].of[m];
    const double* const values = own[m]->valuePtr();
    for (std::size_t k = 0; k < places.size(); ++k) to[m]->valuePtr()[places[k]] = values[k];
  }
}

std::vector<double> StagedPhysics::default_state() const {
  std::vector<double> out = part_.default_state();
  out.resize(typical_.size(), 0.0);
  return out;
}

/// x + Σⱼ reachⱼ δⱼ
void StagedPhysics::state_at(const double* x, const double* delta, const std::vector<double>& reach,
                             double* out) const {
  const double* const gains = reach.data();
  const int n = layout_.n, stages = layout_.stages;
  for (int i = 0; i < n; ++i) {
    double moved = 0.0;
    for (int j = 0; j < stages; ++j) moved += gains[j] * delta[j * n + i];
    out[i] = x[i] + moved;
  }
}

void StagedPhysics::final_state(const double* state, double* x_next) const {
  for (int i = 0; i < layout_.n; ++i) {
    double moved = 0.0;
    for (int j = 0; j < layout_.stages; ++j) {
      moved += std::sqrt(stages_.b[static_cast<std::size_t>(j)]) * state[(j + 1) * layout_.n + i];
    }
    x_next[i] = state[i] + moved;
  }
  part_.stop_at_bounds(x_next);
}

void StagedPhysics::fit_increments(const double* x_next, double* state) const {
  for (int i = 0; i < layout_.n; ++i) {
    double moved = 0.0;
    for (int j = 0; j < layout_.stages; ++j) {
      moved += std::sqrt(stages_.b[static_cast<std::size_t>(j)]) * state[(j + 1) * layout_.n + i];
    }
    if (state[i] + moved == x_next[i]) continue;
    const double share = (x_next[i] - state[i]) / moved;
    for (int j = 0; j < layout_.stages; ++j) state[(j + 1) * layout_.n + i] *= share;
  }
}

double StagedPhysics::storage(const double* state) const {
  detail::Workspace x(static_cast<std::size_t>(layout_.n));
  final_state(state, x.data());
  return storage_at(x.data());
}

/// Whether there are several stages, none of which has left x.
bool StagedPhysics::is_start(const double* delta) const {
  return layout_.stages > 1 &&
         std::all_of(delta, delta + layout_.states(), [](double own) { return own == 0.0; });
}

void StagedPhysics::discrete_gradient(const double* start, const double* next, double* g) const {
  const int n = layout_.n;
  if (is_start(next + n)) {  // ∫lᵢ = bᵢ
    correction_noise_ = 0.0;
    if (together_ != nullptr && is_known_start(start)) {
      std::ranges::copy(start_gradient_, g + n);
    } else {
      part_.gradient(start, g + n);
    }
    for (int i = layout_.stages; i > 0; --i) {
      for (int k = 0; k < n; ++k) {
        g[i * n + k] = root_weight_[static_cast<std::size_t>(i - 1)] * g[n + k];
      }
    }
    std::fill(g, g + n, 0.0);
    return;
  }
  if (whole_ != nullptr) return whole_gradient(start, next, g);
  add_quadrature(nodes_, start, next, g);
  correct(start, next + n, g);
  add_damping(start, next, g);
}

void StagedPhysics::coarse_gradient(const double* start, const double* next, double* g) const {
  add_quadrature(coarse_nodes_, start, next, g);
  add_damping(start, next, g);
}

void StagedPhysics::add_quadrature(const std::vector<Node>& nodes, const double* start,
                                   const double* next, double* g) const {
  const int n = layout_.n;
  detail::Workspace scratch(static_cast<std::size_t>(2 * n));
  double* const x = scratch.data();
  double* const slope = x + n;
  std::fill(g, g + n + layout_.states(), 0.0);
  if (together_ != nullptr) add_gradients_together(start, next + n, g);
  for (const Node& node : nodes) {
    if (together_ != nullptr) break;
    state_at(start, next + n, node.reach, x);
    part_.gradient(x, slope);
    for (int i = 0; i < layout_.stages; ++i) {
      const double weight = node.weight[static_cast<std::size_t>(i)];
      for (int k = 0; k < n; ++k) g[(i + 1) * n + k] += weight * slope[k];
    }
  }
}

void StagedPhysics::add_damping(const double* start, const double* next, double* g) const {
  if (!stages_.is_damped()) return;
  const int n = layout_.n;
  numerical_dissipation(start, next);  // finds K Σ in top_
  for (int i = 0; i < layout_.stages; ++i) {
    const double weight = stages_.damping * stages_.top[static_cast<std::size_t>(i)];
    for (int k = 0; k < n; ++k) g[(i + 1) * n + k] += weight * top_[n + k];
  }
}

/// Whether gradients of the part have terms beside their own at a point, tried a typical size from its default.
void StagedPhysics::find_terms() {
  std::vector<double> x = part_.default_state();
  const std::size_t n = x.size();
  for (std::size_t i = 0; i < n; ++i) x[i] += own_typical_[i];
  std::vector<double> slope(n), terms(n, 0.0);
  try {
    part_.gradient(x.data(), slope.data());
    part_.add_gradient_terms(x.data(), x.data(), slope.data(), terms.data());
  } catch (const std::exception&) {  // of a callback, outside its domain
    return;
  }
  has_terms_ = std::ranges::any_of(terms, [](double own) { return own != 0.0; });
}

void StagedPhysics::hessian_at(const double* x,
                               std::vector<Eigen::Triplet<double>>& hessian) const {
  hessian_of(part_, own_typical_, x, hessian);
}

double StagedPhysics::numerical_dissipation(const double* start, const double* increment) const {
  if (!stages_.is_damped()) return 0.0;
  if (damped_whole_) {
    detail::Workspace moved(static_cast<std::size_t>(layout_.n));
    whole_step(increment + layout_.n, moved.data());
    return damped_whole_->numerical_dissipation(start, moved.data());
  }
  const Eigen::Index n = layout_.n;
  top_.setZero();
  for (int j = 0; j < layout_.stages; ++j) {
    const Eigen::Map<const Eigen::VectorXd> delta(increment + (j + 1) * n, n);
    top_.head(n) += stages_.top[static_cast<std::size_t>(j)] * delta;
  }
  top_.tail(n).noalias() = stiffness_.at(start) * top_.head(n);
  return stages_.damping * top_.head(n).dot(top_.tail(n));
}

/// Of g by δ; those of g by x are left out, since K is that at the start.
void StagedPhysics::add_damping_slopes(const double* x) const {
  if (!stages_.is_damped()) return;
  const Eigen::Index n = layout_.n;
  const Eigen::MatrixXd& K = stiffness_.at(x);
  for (int i = 0; i < layout_.stages; ++i) {
    for (int j = 0; j < layout_.stages; ++j) {
      const double gain = stages_.damping * stages_.top[static_cast<std::size_t>(i)] *
                          stages_.top[static_cast<std::size_t>(j)];
      of_delta_.block(i * n, j * n, n, n) += gain * K;
    }
  }
}

void StagedPhysics::discrete_gradient_jacobian(
    const double* start, const double* next, std::vector<Eigen::Triplet<double>>& jacobian) const {
  const int n = layout_.n;
  detail::Workspace x(static_cast<std::size_t>(n));
  std::vector<Eigen::Triplet<double>>& own = stage_hessian_;
  std::fill(hessian_terms_.begin(), hessian_terms_.end(), 0.0);
  terms_are_of_start_ = false;
  has_hessian_terms_ = true;
  of_delta_.setZero();
  if (whole_ != nullptr) add_whole_slopes(start, next);
  for (const Node& node : nodes_) {
    state_at(start, next + n, node.reach, x.data());
    own.clear();
    hessian_at(x.data(), own);
    std::erase_if(own, [](const auto& entry) { return entry.value() == 0.0; });
    for (int i = 0; i < layout_.stages; ++i) {
      const double weight = std::abs(node.weight[static_cast<std::size_t>(i)]);
      for (const auto& entry : own) {
        hessian_terms_[static_cast<std::size_t>((i * n + entry.row()) * n + entry.col())] +=
            weight * std::abs(entry.value());
      }
      for (int j = 0; j < layout_.stages; ++j) {
        const double gain =
            node.weight[static_cast<std::size_t>(i)] * node.reach[static_cast<std::size_t>(j)];
        for (const auto& entry : own) {
          of_delta_(i * n + entry.row(), j * n + entry.col()) += gain * entry.value();
        }
      }
    }
  }
  if (whole_ == nullptr) {
    add_correction_slopes(start, next);
    add_damping_slopes(start);
  }
  for (int column = 0; column < layout_.states(); ++column) {
    for (int row = 0; row < layout_.states(); ++row) {
      const double value = of_delta_(row, column);
      if (value != 0.0) jacobian.emplace_back(n + row, n + column, value);
    }
  }
}

void StagedPhysics::linearise(const double* state, Eigen::MatrixXd& of_delta,
                              Eigen::MatrixXd& of_start) const {
  const int n = layout_.n;
  detail::Workspace x(static_cast<std::size_t>(n));
  of_delta.setZero();
  of_start.setZero();
  std::fill(hessian_terms_.begin(), hessian_terms_.end(), 0.0);
  terms_are_of_start_ = false;
  has_hessian_terms_ = true;
  for (const Node& node : nodes_) {
    state_at(state, state + n, node.reach, x.data());
    stage_hessian_.clear();
    hessian_at(x.data(), stage_hessian_);
    for (const auto& entry : stage_hessian_) {
      for (int i = 0; i < layout_.stages; ++i) {
        const int row = i * n + entry.row();
        const double own = node.weight[static_cast<std::size_t>(i)] * entry.value();
        hessian_terms_[static_cast<std::size_t>(row * n + entry.col())] += std::abs(own);
        of_start(row, entry.col()) += own;
        for (int j = 0; j < layout_.stages; ++j) {
          of_delta(row, j * n + entry.col()) += node.reach[static_cast<std::size_t>(j)] * own;
        }
      }
    }
  }
  if (!stages_.is_damped()) return;
  of_delta_.setZero();
  add_damping_slopes(state);
  of_delta += of_delta_;
}

/// x stands in every X(τ), in x and again in what is added to it.
void StagedPhysics::add_to_gradient(const double* start, double* size) const {
  const int n = layout_.n;
  if (terms_are_of_start_) {
    for (int i = 0; i < layout_.stages; ++i) {
      const double weight = 2.0 * size_weight_[static_cast<std::size_t>(i)];
      for (int k = 0; k < n; ++k) {
        size[(i + 1) * n + k] += weight * start_size_[static_cast<std::size_t>(k)];
      }
    }
    return;
  }
  if (!has_hessian_terms_) return;
  for (int r = 0; r < layout_.states(); ++r) {
    double sum = 0.0;
    for (int c = 0; c < n; ++c) {
      sum += hessian_terms_[static_cast<std::size_t>(r * n + c)] * std::abs(start[c]);
    }
    size[n + r] += 2.0 * sum;
  }
}

/// Stages of which some states alone are damped, and those of a whole step, have no Ã of full rank in common.
const StageStart* StagedPhysics::start(const double* x) const {
  if (whole_ != nullptr || (stages_.is_damped() && stages_.conserved != 0)) return nullptr;
  if (!is_known_start(x)) find_start(x);
  terms_are_of_start_ = start_is_finite_;
  return start_is_finite_ ? &start_ : nullptr;
}

bool StagedPhysics::is_known_start(const double* x) const {
  const auto n = static_cast<std::size_t>(layout_.n);
  return start_x_.size() == n && std::equal(x, x + n, start_x_.begin());
}

void StagedPhysics::find_start(const double* x) const {
  const Eigen::Index n = layout_.n;
  start_x_.clear();  // as long as a callback may throw
  start_.hessian.setZero(n, n);
  start_.turning.setZero(n, n);
  if (together_ != nullptr) {
    find_hessian_together(x);
  } else {
    stage_hessian_.clear();
    hessian_at(x, stage_hessian_);
    for (const auto& entry : stage_hessian_) {
      start_.hessian(entry.row(), entry.col()) += entry.value();
    }
  }
  std::fill(start_size_.begin(), start_size_.end(), 0.0);
  for (Eigen::Index j = 0; j < n; ++j) {
    for (Eigen::Index i = 0; i < n; ++i) {
      start_size_[static_cast<std::size_t>(i)] += std::abs(start_.hessian(i, j) * x[j]);
    }
  }
  if (!part_.constant_structure()) find_turning(x);
  if (has_terms_ && !cancels_) {
    detail::Workspace slope(static_cast<std::size_t>(n));
    part_.gradient(x, slope.data());
    std::fill(start_terms_.begin(), start_terms_.end(), 0.0);
    part_.add_gradient_terms(x, x, slope.data(), start_terms_.data());
  }
  start_is_finite_ = start_.hessian.allFinite() && start_.turning.allFinite();
  start_x_.assign(x, x + n);
}

void StagedPhysics::forget_terms() const {
  terms_are_of_start_ = false;
  if (has_hessian_terms_) std::fill(hessian_terms_.begin(), hessian_terms_.end(), 0.0);
  has_hessian_terms_ = false;
}

double StagedPhysics::of_energy(const double* start, const double* g) const {
  double sum = 0.0;
  for (int i = 0; i < layout_.stages; ++i) {
    for (int k = 0; k < layout_.n; ++k) {
      sum += std::sqrt(stages_.b[static_cast<std::size_t>(i)]) *
             std::abs(g[(i + 1) * layout_.n + k] * start[k]);
    }
  }
  return 2.0 * sum;
}

/// `mid` is halfway to (x, δ⁺).
void StagedPhysics::structure_at(const double* mid, Structure& out) const {
  const int n = layout_.n;
  detail::Workspace scratch(static_cast<std::size_t>(n + layout_.states()));
  double* const x = scratch.data();
  double* const delta = x + n;
  for (int i = 0; i < layout_.states(); ++i) delta[i] = 2.0 * mid[n + i];
  const bool all_alike = is_start(delta);
  for (int i = 0; i < layout_.stages; ++i) {
    if (i == 0 || !all_alike) {
      state_at(mid, delta, at_stages_[static_cast<std::size_t>(i)].reach, x);
      part_.structure_at(x, stage_structure_);
    }
    put_stage(i, out);
  }
}

void StagedPhysics::moved_structure(const double* start, const double* increment, int state,
                                    double by, double step_s, Structure& out) const {
  const int n = layout_.n;
  detail::Workspace scratch(static_cast<std::size_t>(2 * n));
  double* const x = scratch.data();
  double* const held = x + n;
  if (whole_ != nullptr) {  // the middle moves half as far as the end
    whole_step(increment + n, held);
    held[state] += 2.0 * by;
    whole_->structure_over(start, held, step_s, stage_structure_);
    return put_at_all_stages(out);
  }
  for (int k = 0; k < n; ++k) held[k] = start[k] + 0.5 * increment[k];
  for (int i = 0; i < layout_.stages; ++i) {
    state_at(held, increment + n, at_stages_[static_cast<std::size_t>(i)].reach, x);
    x[state] += by;
    part_.structure_at(x, stage_structure_);
    put_stage(i, out);
  }
}

/// Inputs and outputs of a stage are √bᵢ times those of the part.
PortLawValue StagedPhysics::port_law(int scalar_port, double u) const {
  const double weight = std::sqrt(stages_.b[static_cast<std::size_t>(scalar_port / layout_.p)]);
  const PortLawValue own = part_.port_law(scalar_port % layout_.p, u / weight);
  return {weight * own.value, own.slope};
}

PortLawPoint StagedPhysics::port_law_point(int scalar_port, double k, double beta, double r,
                                           const double* external) const {
  const int stage = scalar_port / layout_.p;
  const double weight = std::sqrt(stages_.b[static_cast<std::size_t>(stage)]);
  detail::Workspace own(static_cast<std::size_t>(layout_.q));
  for (int j = 0; j < layout_.q && external != nullptr; ++j) {
    own.data()[j] = external[stage * layout_.q + j] / weight;
  }
  PortLawPoint out = part_.port_law_point(scalar_port % layout_.p, k, beta, r / weight,
                                          external == nullptr ? nullptr : own.data());
  out.u *= weight;
  out.y *= weight;
  return out;
}

}  // namespace portwave
