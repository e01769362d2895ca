// Steps of a second-order part that is condensed to its ports (CondensedForm).
//
// With A δ = r + B_p e and the ports closed by their impedances, e = s a − γ y, the boundary has
//   (Σ + B_T γ B_Tᵀ) δ_T = g + B_T s a,   g = r_T − Y L⁻¹r_I − B_T γ B_Tᵀ v_T.
// freeze  eliminates the interior from r: one pass through L and Y; where each port has a coordinate of the boundary to
//         itself, e = −g says what δ_T = 0 takes: waves at which b is known;
// scatter solves for δ_T and gives b = a − (2γ/s) y or −a + (2/s) e;
// advance does the same and substitutes back: the second pass.
// Increments for the reason given in dense_linear_batch.cpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include "core/affine_batch.hpp"
#include "core/port_closure.hpp"
#include "core/subnormal_flush.hpp"
#include "descriptor/descriptor_batch.hpp"
#include "kernels/factor_kernels.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/descriptor/condensed_form.hpp"
#include "portwave/subsystems/matrices/symmetric_product.hpp"

namespace portwave {
namespace second_order_step {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

/// Σ + B_T γ B_Tᵀ, factorised: dense, or sparse where it is that of a part without an interior.
class ClosedBoundary {
 public:
  void factorise(const CondensedForm& form, const CondensedStep& step, const Vector& gamma) {
    const SparseMatrix closing = SparseMatrix(
        form.at_boundary() *
        SparseMatrix(gamma.asDiagonal() * SparseMatrix(form.at_boundary().transpose())));
    bool is_sound = false;
    if (!step.has_interior()) {
      auto made = std::make_unique<CondensedFactors>();
      is_sound = made->factorise(step.boundary + closing, {});
      sparse_ = std::move(made);
    } else {
      Matrix closed = step.factors.schur();
      for (int j = 0; j < closing.outerSize(); ++j) {
        for (SparseMatrix::InnerIterator it(closing, j); it; ++it)
          closed(it.row(), j) += it.value();
      }
      const auto size = static_cast<int>(closed.rows());
      inverse_.resize(size);
      is_sound = factor_columns::kernels().factorise({closed.data(), size, size}, false,
                                                     inverse_.data()) > 0.0;
      dense_ = std::move(closed);
    }
    if (!is_sound) throw ConfigError("", "the implicit step is singular at this step size");
  }
  std::size_t scratch_size() const {
    return sparse_ == nullptr
               ? 0
               : sparse_->scratch_size() + static_cast<std::size_t>(sparse_->interior());
  }
  double entries_of_solve() const {
    return sparse_ != nullptr ? 2.0 * static_cast<double>(sparse_->entries())
                              : static_cast<double>(dense_.size());
  }
  void solve(double* x, double* scratch) const {
    if (sparse_ == nullptr) {
      factor_columns::kernels().solve({dense_.data(), static_cast<int>(dense_.rows())},
                                      inverse_.data(), x);
      return;
    }
    const std::vector<int>& order = sparse_->order();
    double* const moved = scratch + sparse_->scratch_size();
    for (std::size_t k = 0; k < order.size(); ++k) moved[k] = x[order[k]];
    sparse_->reduce(moved, scratch);
    sparse_->expand(moved, scratch);
    for (std::size_t k = 0; k < order.size(); ++k) x[order[k]] = moved[k];
  }

 private:
  Matrix dense_;  ///< L, below what is above its diagonal
  Vector inverse_;
  std::unique_ptr<const CondensedFactors> sparse_;
};

struct CondensedLane {
  const CondensedForm* form = nullptr;
  std::shared_ptr<const CondensedStep> step;
  const CondensedFactors* factors = nullptr;  ///< of the step
  ClosedBoundary closed;
  SymmetricProduct M, K, D;  ///< D: empty where damping is proportional
  SparseMatrix B_u;
  Vector gamma, s;  ///< of the ports; e = s a − γ y
  std::vector<char> by_flow;
  bool has_own_coordinates = false;  ///< each port, one of the boundary
};

void check_ports(const Signature& signature) {
  for (const Port& port : signature.ports) {
    if (port.causality != Causality::effort_in) {
      throw ConfigError("", "a condensed part has ports that take efforts only");
    }
  }
}

class Batch final : public LanewiseBatch, public AffineMap, public StepRoundings {
 public:
  explicit Batch(std::span<const Component* const> parts)
      : LanewiseBatch(static_cast<int>(parts.size()), parts[0]->signature().state_size(),
                      parts[0]->signature().wave_size(), parts[0]->signature().input_size(),
                      extra_of(*parts[0])),
        n_(parts[0]->signature().state_size() / 2),
        p_(wave_size()),
        q_(input_size()) {
    for (const Component* part : parts) {
      parts_.push_back(dynamic_cast<const DescriptorPortHamiltonian*>(part));
    }
  }

  double scatter_cost_ns() const override {
    if (lanes_.empty()) return 20.0 + 0.5 * p_ * p_;
    return 20.0 + 10.0 * p_ + kPerEntry_ns * lanes_[0].closed.entries_of_solve();
  }
  double advance_cost_ns() const override {
    if (lanes_.empty()) return 20.0 + 20.0 * n_ + 0.5 * p_ * p_;
    const CondensedLane& lane = lanes_[0];
    const std::size_t entries = 2 * (lane.factors->entries() + lane.K.entries());
    return scatter_cost_ns() + 20.0 * n_ + kPerEntry_ns * static_cast<double>(entries);
  }

  const AffineMap* affine_map() const override { return this; }
  const StepRoundings* roundings() const override { return this; }

  void prepare(double step_s, const double* impedance) override {
    const double h = step_s_ = step_s;
    if (lanes_.empty()) {
      for (const DescriptorPortHamiltonian* part : parts_) lanes_.push_back(fixed_lane(*part));
    }
    for (int l = 0; l < lanes(); ++l) {
      CondensedLane& lane = lanes_[static_cast<std::size_t>(l)];
      lane.step = lane.form->step(h);
      lane.factors = &lane.step->factors;
      lane.gamma.resize(p_);
      lane.s.resize(p_);
      for (int j = 0; j < p_; ++j) {
        lane.gamma[j] = impedance[j * stride() + l];
        lane.s[j] = std::sqrt(2.0 * lane.gamma[j] / h);
      }
      lane.closed.factorise(*lane.form, *lane.step, lane.gamma);
      choose_rows(lane);
    }
  }

  void affine_matrix(int l, double* matrix) const override {
    const CondensedLane& lane = lanes_[static_cast<std::size_t>(l)];
    const SparseMatrix& B = lane.form->at_boundary();
    std::vector<double> column(static_cast<std::size_t>(B.rows())),
        scratch(lane.closed.scratch_size());
    for (int j = 0; j < p_; ++j) {
      std::fill(column.begin(), column.end(), 0.0);
      for (SparseMatrix::InnerIterator it(B, j); it; ++it)
        column[row(it)] += it.value() * lane.s[j];
      lane.closed.solve(column.data(), scratch.data());
      for (int i = 0; i < p_; ++i) {
        const double flow = flow_of(lane, i, column.data());
        matrix[i * p_ + j] = outgoing(lane, i, i == j ? 1.0 : 0.0, flow);
      }
    }
  }

  void affine_offset(int l, const double* record, double* offset) const override {
    const CondensedLane& lane = lanes_[static_cast<std::size_t>(l)];
    const double* const x = state_of(l, record);
    const double* const w = extra_of_lane(l, record);
    std::vector<double> delta(w + lane.factors->interior(), w + n_);
    std::vector<double> scratch(lane.closed.scratch_size());
    lane.closed.solve(delta.data(), scratch.data());
    add_velocity(lane, x + n_, delta.data());
    for (int i = 0; i < p_; ++i) {
      offset[i] = outgoing(lane, i, 0.0, flow_of(lane, i, delta.data()));
    }
  }

  void known_waves(LaneRange range, const double* record, double* a) const override {
    for (int l = range.first; l < range.last; ++l) {
      if (!lanes_[static_cast<std::size_t>(l)].has_own_coordinates) continue;
      const double* const last_a =
          extra_of_lane(l, record) + 4 * n_ + 7 * parts_[0]->factored()->boundary().size();
      for (int j = 0; j < p_; ++j) a[j * stride() + l] = last_a[j];
    }
  }

  /// As that of a sparse linear part.
  std::optional<double> step_rounding(int l, const double* record, const double* a,
                                      const double* next) const override {
    using step_rounding::kPerTerm;
    using step_rounding::terms;
    const CondensedLane& lane = lanes_[static_cast<std::size_t>(l)];
    const SecondOrderForm& form = lane.form->form();
    const double h = step_s_;
    const Eigen::Map<const Vector> q(state_of(l, record), n_), v(state_of(l, record) + n_, n_),
        input(state_of(l, record) + 2 * n_, q_), q_next(state_of(l, next), n_),
        v_next(state_of(l, next) + n_, n_);
    Vector wave(p_);
    for (int j = 0; j < p_; ++j) wave[j] = a[j * stride() + l];
    const SparseMatrix B_p = form.B.leftCols(p_);
    const Vector delta = 0.5 * (v_next - v), middle = v + delta;
    const Vector slope_q = form.K * q_next, slope_v = form.M * v_next;
    const Vector work = lane.B_u * input;
    Vector weight = 2.0 * slope_v + h * slope_q - h * work;
    solve_whole(lane, weight);
    const SparseMatrix A = lane.form->step_matrix(h);
    const Vector drive =
        B_p.cwiseAbs() * lane.s.cwiseProduct(wave).cwiseAbs() +
        B_p.cwiseAbs() *
            lane.gamma.cwiseProduct(Vector(B_p.cwiseAbs().transpose() * middle.cwiseAbs()));
    const Vector residual = terms(form.K, Vector(q.cwiseAbs() + 0.5 * h * v.cwiseAbs())) +
                            terms(form.D, Vector(v)) + terms(lane.B_u, Vector(input)) + drive +
                            terms(A, delta);
    double sum = weight.cwiseAbs().dot(residual);
    sum += slope_v.cwiseAbs().dot(v_next.cwiseAbs() + 2.0 * delta.cwiseAbs());
    sum += slope_q.cwiseAbs().dot(q_next.cwiseAbs() + h * middle.cwiseAbs());
    sum += h * work.cwiseAbs().dot(v.cwiseAbs() + delta.cwiseAbs());
    // H⁺ − H is a sum over ½K(q + q⁺) and ½M(v + v⁺).
    sum += 0.5 *
           (terms(form.K, Vector(q)) + terms(form.K, Vector(q_next))).dot((q_next - q).cwiseAbs());
    sum += 0.5 *
           (terms(form.M, Vector(v)) + terms(form.M, Vector(v_next))).dot((v_next - v).cwiseAbs());
    for (int j = 0; j < p_; ++j) {
      const double flow = std::abs(B_p.col(j).dot(middle));
      const double size = std::abs(wave[j]) + 2.0 * lane.gamma[j] / lane.s[j] * flow;
      sum += size * size;
    }
    return kPerTerm * sum;
  }

 private:
  static constexpr double kPerEntry_ns =
      0.3;  ///< of what is read once, from the cache of all cores

  static int extra_of(const Component& part) {
    const auto& own = dynamic_cast<const DescriptorPortHamiltonian&>(part);
    const int n = part.signature().state_size() / 2;
    const auto t = static_cast<int>(own.factored()->boundary().size());
    // w, δ by place, two products; δ_T and room of the solves and of products; a and b of the last scatter
    return 4 * n + 7 * t + 2 * part.signature().wave_size();
  }
  const double* extra_of_lane(int l, const double* record) const {
    return LanewiseBatch::extra_of(l, record);
  }
  static std::size_t row(const SparseMatrix::InnerIterator& it) {
    return static_cast<std::size_t>(it.row());
  }

  static CondensedLane fixed_lane(const DescriptorPortHamiltonian& part) {
    check_ports(part.signature());
    CondensedLane lane;
    lane.form = part.factored();
    const SecondOrderForm& form = lane.form->form();
    lane.M = SymmetricProduct(form.M);
    lane.K = SymmetricProduct(form.K, lane.form->boundary());
    if (!lane.form->damping()) lane.D = SymmetricProduct(form.D, lane.form->boundary());
    lane.B_u = form.B.rightCols(part.signature().input_size());
    std::vector<char> is_free(lane.form->boundary().size(), 1);
    lane.has_own_coordinates = std::cmp_equal(is_free.size(), lane.form->ports());
    for (int j = 0; j < lane.form->ports() && lane.has_own_coordinates; ++j) {
      const int place = lane.form->place_of_port(j);
      lane.has_own_coordinates =
          place >= 0 && std::exchange(is_free[static_cast<std::size_t>(place)], 0) != 0;
    }
    return lane;
  }

  /// Of the two ways to form b the one whose own reflection is the smaller (outgoing_row), by the
  /// response 1/Σ_jj of a boundary whose other coordinates rest.
  void choose_rows(CondensedLane& lane) const {
    lane.by_flow.assign(static_cast<std::size_t>(p_), 1);
    const Vector& diagonal = lane.step->diagonal;
    for (int j = 0; j < p_; ++j) {
      double stiffness = 0.0, factor = 0.0;
      for (SparseMatrix::InnerIterator it(lane.form->at_boundary(), j); it; ++it) {
        stiffness += it.value() * it.value() * diagonal[it.row()];
        factor += it.value() * it.value();
      }
      if (factor > 0.0) stiffness /= factor * factor;
      lane.by_flow[static_cast<std::size_t>(j)] = lane.gamma[j] <= stiffness ? 1 : 0;
    }
  }

  /// y of a port, from v + δ at the boundary.
  static double flow_of(const CondensedLane& lane, int port, const double* boundary) {
    double sum = 0.0;
    for (SparseMatrix::InnerIterator it(lane.form->at_boundary(), port); it; ++it) {
      sum += it.value() * boundary[it.row()];
    }
    return sum;
  }
  static double outgoing(const CondensedLane& lane, int port, double a, double flow) {
    const double s = lane.s[port], gamma = lane.gamma[port];
    if (lane.by_flow[static_cast<std::size_t>(port)] != 0) return a - 2.0 * gamma / s * flow;
    return -a + 2.0 / s * (s * a - gamma * flow);
  }
  void add_velocity(const CondensedLane& lane, const double* v, double* boundary) const {
    const std::vector<int>& coordinates = lane.form->boundary();
    for (std::size_t k = 0; k < coordinates.size(); ++k) boundary[k] += v[coordinates[k]];
  }
  void solve_whole(const CondensedLane& lane, Vector& x) const {
    const std::vector<int>& order = lane.factors->order();
    std::vector<double> w(order.size()),
        scratch(lane.factors->scratch_size() + lane.closed.scratch_size());
    for (std::size_t k = 0; k < order.size(); ++k) w[k] = x[order[k]];
    lane.factors->reduce(w.data(), scratch.data());
    lane.closed.solve(w.data() + lane.factors->interior(), scratch.data());
    lane.factors->expand(w.data(), scratch.data());
    for (std::size_t k = 0; k < order.size(); ++k) x[order[k]] = w[k];
  }

  struct Room {
    double *w, *delta, *product, *other, *boundary, *solve, *multiply, *last_a, *last_b;
  };
  Room room_of(double* extra) const {
    const auto n = static_cast<std::size_t>(n_);
    const auto t = parts_[0]->factored()->boundary().size();
    const auto p = static_cast<std::size_t>(p_);
    double* const small = extra + 4 * n;
    return {extra,     extra + n,     extra + 2 * n, extra + 3 * n,    small,
            small + t, small + 3 * t, small + 7 * t, small + 7 * t + p};
  }

  void freeze_lane(int l, const Lane& frozen) const override {
    const SubnormalFlush flush(true);
    const CondensedLane& lane = lanes_[static_cast<std::size_t>(l)];
    const Room room = room_of(frozen.extra);
    const double *q = frozen.x, *v = frozen.x + n_;
    const double h = step_s_;
    double* const r = room.product;
    double* const x = room.other;
    std::fill(r, r + n_, 0.0);
    const auto& damping = lane.form->damping();
    const double per_velocity = 0.5 * h + (damping ? damping->of_stiffness : 0.0);
    for (int i = 0; i < n_; ++i) x[i] = q[i] + per_velocity * v[i];
    lane.K.add(-1.0, x, r, room.multiply);
    if (!damping) {
      lane.D.add(-1.0, v, r, room.multiply);
    } else if (damping->of_mass != 0.0) {
      lane.M.add(-damping->of_mass, v, r, room.multiply);
    }
    for (int j = 0; j < q_; ++j) {
      if (frozen.input[j] == 0.0) continue;
      for (SparseMatrix::InnerIterator it(lane.B_u, j); it; ++it) {
        r[it.row()] += it.value() * frozen.input[j];
      }
    }
    const std::vector<int>& order = lane.factors->order();
    for (std::size_t k = 0; k < order.size(); ++k) room.w[k] = r[order[k]];
    lane.factors->reduce(room.w, room.delta);
    if (p_ == 0) return;
    if (!lane.has_own_coordinates) room.last_a[0] = std::numeric_limits<double>::quiet_NaN();
    const SparseMatrix& B = lane.form->at_boundary();
    const std::vector<int>& coordinates = lane.form->boundary();
    double* const g = room.w + lane.factors->interior();
    if (lane.has_own_coordinates) std::fill_n(room.boundary, coordinates.size(), 0.0);
    for (int j = 0; j < p_; ++j) {
      double flow = 0.0;
      for (SparseMatrix::InnerIterator it(B, j); it; ++it) {
        flow += it.value() * v[coordinates[row(it)]];
      }
      if (lane.has_own_coordinates) {
        const double effort = -g[lane.form->place_of_port(j)];
        room.last_a[j] = (effort + lane.gamma[j] * flow) / lane.s[j];
        room.last_b[j] = outgoing(lane, j, room.last_a[j], flow);
      }
      for (SparseMatrix::InnerIterator it(B, j); it; ++it) {
        g[it.row()] -= it.value() * lane.gamma[j] * flow;
      }
    }
  }

  /// δ_T into room.boundary, and b: known where `a` is that of the last call, as it is when what was found
  /// is committed.
  void solve_boundary(const CondensedLane& lane, const Lane& frozen, const Room& room,
                      const double* a, double* b) const {
    if (p_ > 0 && std::equal(a, a + p_, room.last_a)) {
      std::copy(room.last_b, room.last_b + p_, b);
      return;
    }
    const SparseMatrix& B = lane.form->at_boundary();
    const auto t = static_cast<std::size_t>(B.rows());
    const double* const g = room.w + lane.factors->interior();
    double* const delta = room.boundary;
    std::copy(g, g + t, delta);
    for (int j = 0; j < p_; ++j) {
      const double drive = lane.s[j] * a[j];
      for (SparseMatrix::InnerIterator it(B, j); it; ++it) delta[it.row()] += it.value() * drive;
    }
    lane.closed.solve(delta, room.solve);
    const std::vector<int>& coordinates = lane.form->boundary();
    const double* const v = frozen.x + n_;
    for (int j = 0; j < p_; ++j) {
      double flow = 0.0;
      for (SparseMatrix::InnerIterator it(B, j); it; ++it) {
        flow += it.value() * (v[coordinates[row(it)]] + delta[it.row()]);
      }
      b[j] = outgoing(lane, j, a[j], flow);
    }
    std::copy(a, a + p_, room.last_a);
    std::copy(b, b + p_, room.last_b);
  }

  StepFault scatter_lane(int l, const Lane& frozen, const double* a, double* b) const override {
    const CondensedLane& lane = lanes_[static_cast<std::size_t>(l)];
    solve_boundary(lane, frozen, room_of(frozen.extra), a, b);
    return StepFault::none;
  }

  StepFault advance_lane(int l, const Lane& frozen, const double* a, double* x_next, double* b,
                         StepEnergy& energy) const override {
    const SubnormalFlush flush(true);
    const CondensedLane& lane = lanes_[static_cast<std::size_t>(l)];
    const Room room = room_of(frozen.extra);
    solve_boundary(lane, frozen, room, a, b);
    const int inner = lane.factors->interior();
    std::copy(room.w, room.w + inner, room.delta);
    std::copy(room.boundary, room.boundary + (n_ - inner), room.delta + inner);
    lane.factors->expand(room.delta, room.product);
    const double *q = frozen.x, *v = frozen.x + n_;
    double *q_next = x_next, *v_next = x_next + n_;
    const std::vector<int>& order = lane.factors->order();
    const double h = step_s_;
    bool finite = true;
    for (std::size_t k = 0; k < order.size(); ++k) {
      const int i = order[k];
      const double delta = room.delta[k];
      q_next[i] = q[i] + h * (v[i] + delta);
      v_next[i] = v[i] + 2.0 * delta;
      finite = finite && std::isfinite(q_next[i]) && std::isfinite(v_next[i]);
    }
    energy = account(lane, frozen, x_next, room);
    return finite ? StepFault::none : StepFault::not_finite;
  }

  /// H⁺ − H = ½(v⁺ + v)ᵀM(v⁺ − v) + ½(q⁺ + q)ᵀK(q⁺ − q), of the states as they are stored.
  StepEnergy account(const CondensedLane& lane, const Lane& frozen, const double* x_next,
                     const Room& room) const {
    const double h = step_s_;
    const double *q = frozen.x, *v = frozen.x + n_, *q_next = x_next, *v_next = x_next + n_;
    double *moved = room.delta, *product = room.product;
    StepEnergy energy;
    const auto& damping = lane.form->damping();
    for (int i = 0; i < n_; ++i) moved[i] = q_next[i] - q[i];
    std::fill(product, product + n_, 0.0);
    lane.K.add(1.0, moved, product, room.multiply);
    double change = 0.0, lost = 0.0;
    for (int i = 0; i < n_; ++i) {
      change += 0.5 * (q_next[i] + q[i]) * product[i];
      lost += moved[i] * product[i];
    }
    energy.change_J = change;
    if (damping) energy.dissipated_J = damping->of_stiffness / h * lost;
    for (int i = 0; i < n_; ++i) moved[i] = v_next[i] - v[i];
    std::fill(product, product + n_, 0.0);
    lane.M.add(1.0, moved, product, room.multiply);
    change = 0.0;
    for (int i = 0; i < n_; ++i) change += 0.5 * (v_next[i] + v[i]) * product[i];
    energy.change_J += change;
    double* const middle = room.delta;
    for (int i = 0; i < n_; ++i) middle[i] = 0.5 * (v_next[i] + v[i]);
    if (!damping || damping->of_mass != 0.0) {
      std::fill(product, product + n_, 0.0);
      (damping ? lane.M : lane.D)
          .add(damping ? h * damping->of_mass : h, middle, product, room.multiply);
      lost = 0.0;
      for (int i = 0; i < n_; ++i) lost += middle[i] * product[i];
      energy.dissipated_J += lost;
    }
    for (int j = 0; j < q_; ++j) {
      if (frozen.input[j] == 0.0) continue;
      double flow = 0.0;
      for (SparseMatrix::InnerIterator it(lane.B_u, j); it; ++it) {
        flow += it.value() * middle[it.row()];
      }
      energy.external_supply_J += h * flow * frozen.input[j];
    }
    return energy;
  }

  std::vector<const DescriptorPortHamiltonian*> parts_;
  std::vector<CondensedLane> lanes_;
  int n_, p_, q_;
  double step_s_ = 0.0;
};

}  // namespace second_order_step

std::unique_ptr<StepBatch> make_second_order_batch(std::span<const Component* const> parts) {
  return std::make_unique<second_order_step::Batch>(parts);
}

}  // namespace portwave
