#include "catalogue/expression_batch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "base/workspace.hpp"
#include "core/lane_values.hpp"
#include "core/port_closure.hpp"
#include "kernels/bent_kernels.hpp"
#include "nonlinear/lane_solver.hpp"
#include "nonlinear/solver_of_each_lane.hpp"
#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {

namespace bent {

const Kernels& kernels() { return PORTWAVE_KERNELS(kBent); }

}  // namespace bent

namespace {
namespace expression_lanes {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

using bent::kMostPorts;
using bent::kMostStates;
constexpr int kMostBent = 4;
constexpr int kMostNewtonSteps = 12;
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
/// As in LaneSolver: a residual that is round-off; one from which a step that does not gain a factor 4 is the last.
constexpr double kRoundOff = 4.0 * kEpsilon;
constexpr double kStagnation = 1e-12;
/// Of a bracket around the root of one equation.
constexpr int kMostDoublings = 60, kMostBisections = 400;

/// A matrix of a lane group within its coefficients: entry (i, j) of `rows` rows at (begin + j·rows + i).
struct Block {
  int begin = 0, rows = 0, columns = 0;
  int entry(int i, int j) const { return begin + j * rows + i; }
};

std::vector<bent::Entry> entries_of(const Matrix& M) {
  std::vector<bent::Entry> out;
  for (int j = 0; j < static_cast<int>(M.cols()); ++j) {
    for (int i = 0; i < static_cast<int>(M.rows()); ++i) {
      if (M(i, j) != 0.0) out.push_back({i, j, M(i, j)});
    }
  }
  return out;
}

/// Values of a lane group side by side.
template <int W>
struct Row {
  using Values = LaneValues<W>;
  static Values at(const double* values, int k) {
    return Values::from(values + static_cast<std::ptrdiff_t>(k) * W);
  }
  static void put(double* values, int k, const Values& what) {
    what.to(values + static_cast<std::ptrdiff_t>(k) * W);
  }
};

class ExpressionBatch final : public StepBatch {
 public:
  ExpressionBatch(std::span<const Subsystem* const> parts, const SplitEnergy& energy,
                  NewtonOptions options)
      : StepBatch(static_cast<int>(parts.size()), parts[0]->signature().state_size(),
                  parts[0]->signature().wave_size(), parts[0]->signature().input_size()),
        part_(*parts[0]),
        energy_(energy),
        n_(state_size()),
        p_(wave_size()),
        q_(input_size()),
        r_(static_cast<int>(energy.bent().size())),
        width_(lanes() == 1 ? 1 : kLaneGroup),
        solvers_(lanes(), p_, [this, options](int /*lane*/) {
          return std::make_unique<LaneSolver>(part_, options);
        }) {
    set_structure();
    lay_out();
  }

  double scatter_cost_ns() const override { return 20.0 + 10.0 * r_ * (r_ + 1.0); }
  double advance_cost_ns() const override { return 3.0 * scatter_cost_ns(); }

  void prepare(double step_s, const double* impedance) override {
    step_s_ = step_s;
    solvers_.prepare(step_s, impedance, stride());
    coefficients_.assign(at(groups() * coefficient_count_ * width_), 0.0);
    std::vector<double> own(at(p_)), last;
    std::vector<double> values;
    for (int lane = 0; lane < groups() * width_; ++lane) {
      for (int j = 0; j < p_; ++j)
        own[at(j)] = impedance[j * stride() + std::min(lane, lanes() - 1)];
      if (lane == 0 || own != last) values = coefficients_for(own);
      last = own;
      double* const to =
          coefficients_.data() + at(lane / width_ * coefficient_count_ * width_ + lane % width_);
      for (int k = 0; k < coefficient_count_; ++k) to[k * width_] = values[at(k)];
    }
  }

  std::size_t record_size() const override { return at(groups() * record_count_ * width_); }
  std::vector<RecordRegion> record_regions() const override {
    return {{0, at(record_count_ * width_)}};
  }
  void set_state(int lane, const double* x, double* record) const override {
    for (int i = 0; i < n_; ++i) *place(record, lane, state_ + i) = x[i];
  }
  void get_state(int lane, const double* record, double* x) const override {
    for (int i = 0; i < n_; ++i) x[i] = *place(record, lane, state_ + i);
  }

  void freeze(LaneRange range, double* record, const double* input) const override {
    for (int lane = range.first; lane < range.last; ++lane) {
      for (int j = 0; j < q_; ++j) {
        *place(record, lane, input_ + j) = input == nullptr ? 0.0 : input[lane * q_ + j];
      }
    }
    for_groups(range, [&](auto width, int group) {
      constexpr int W = decltype(width)::value;
      complete<W>(group, record);
    });
  }

  LaneStatus scatter(LaneRange range, double* record, const double* a, double* b) const override {
    return solve_all(range, record, a, nullptr, b, {}, /*warm=*/false);
  }
  LaneStatus inexact_scatter(LaneRange range, double* record, const double* a,
                             double* b) const override {
    return solve_all(range, record, a, nullptr, b, {}, /*warm=*/true);
  }
  LaneStatus advance(LaneRange range, double* record, const double* a, double* next, double* b,
                     const EnergyColumns& energy) const override {
    return solve_all(range, record, a, next, b, energy, /*warm=*/false);
  }

  FailedSolve failed_solve(int lane, const double* record) const override {
    FailedSolve out;
    out.state.resize(at(n_));
    get_state(lane, record, out.state.data());
    for (int j = 0; j < q_; ++j) out.inputs.push_back(*place(record, lane, input_ + j));
    return out;
  }

 private:
  template <int W>
  using V = LaneValues<W>;
  template <int W>
  struct Width {
    static constexpr int value = W;
  };

  // ---- what does not depend on the step

  void set_structure() {
    const Structure& s = part_.structure();
    JR_ = Matrix(s.J) - Matrix(s.R);
    in_ = Matrix(s.G) - Matrix(s.P);
    out_ = (Matrix(s.G) + Matrix(s.P)).transpose();
    D_ = Matrix(s.S) + Matrix(s.N);
    Q_entries_ = entries_of(energy_.Q());
    R_entries_ = entries_of(Matrix(s.R));
    P_entries_ = entries_of(Matrix(s.P));
    S_entries_ = entries_of(Matrix(s.S));
    external_out_ = entries_of(out_.bottomRows(q_));
    external_through_ = entries_of(D_.bottomRows(q_));
  }

  Block block(int rows, int columns) {
    Block out{coefficient_count_, rows, columns};
    coefficient_count_ += rows * columns;
    return out;
  }
  int room(int count) {
    const int begin = record_count_;
    record_count_ += count;
    return begin;
  }

  void lay_out() {
    of_gradient_ = block(n_, n_);
    of_input_ = block(n_, q_);
    of_wave_ = block(n_, p_);
    of_mean_ = block(n_, r_);
    b_of_gradient_ = block(p_, n_);
    b_of_offset_ = block(p_, n_);
    b_of_input_ = block(p_, q_);
    b_of_wave_ = block(p_, p_);
    b_of_mean_ = block(p_, r_);
    u_of_a_ = block(p_, 1);
    u_of_b_ = block(p_, 1);
    state_ = room(n_);
    input_ = room(q_);
    slope_ = room(n_);   // Qx + c
    offset_ = room(n_);  // d⁰
    b_offset_ = room(p_);
    bent_slope_ = room(energy_.slope_count());  // ∇V and ∇²V at x
    V_ = room(1);
    warm_ = room(r_);
    is_warm_ = room(1);
    if (energy_.taylor_degree() > 0) taylor_ = room(energy_.taylor_degree() + 1);
    set_linear_task();
  }

  void set_linear_task() {
    const auto shared = [](const std::vector<bent::Entry>& entries) {
      return bent::Entries{entries.data(), static_cast<int>(entries.size())};
    };
    bent::LinearTask& t = linear_;
    t.states = n_;
    t.ports = p_;
    t.inputs = q_;
    t.bent = r_;
    t.bent_states = energy_.bent().data();
    t.constants = energy_.c().data();
    t.Q = shared(Q_entries_);
    t.R = shared(R_entries_);
    t.P = shared(P_entries_);
    t.S = shared(S_entries_);
    t.outputs = shared(external_out_);
    t.through = shared(external_through_);
    t.of_gradient = of_gradient_.begin;
    t.of_input = of_input_.begin;
    t.of_wave = of_wave_.begin;
    t.of_mean = of_mean_.begin;
    t.b_of_gradient = b_of_gradient_.begin;
    t.b_of_offset = b_of_offset_.begin;
    t.b_of_input = b_of_input_.begin;
    t.u_of_a = u_of_a_.begin;
    t.u_of_b = u_of_b_.begin;
    t.state = state_;
    t.input = input_;
    t.slope = slope_;
    t.offset = offset_;
    t.b_offset = b_offset_;
  }

  // ---- what depends on the step and the impedances of a lane

  /// See the class: K = (I − h/2 A Q)⁻¹ with the closed loop A.
  std::vector<double> coefficients_for(const std::vector<double>& impedance) const {
    const std::vector<PortClosure> ports =
        port_closures(part_.signature(), step_s_, impedance.data());
    Matrix M = Matrix::Zero(p_, p_), beta = Matrix::Zero(p_, p_), source = Matrix::Zero(p_, p_);
    Matrix slope = Matrix::Zero(p_, p_), sign = Matrix::Zero(p_, p_);
    for (int j = 0; j < p_; ++j) {
      const PortClosure& port = ports[at(j)];
      M.row(j) = port.beta * D_.row(j).head(p_);
      M(j, j) += port.alpha;
      beta(j, j) = port.beta;
      source(j, j) = port.s;
      slope(j, j) = port.slope;
      sign(j, j) = port.sign;
    }
    const Matrix M_inverse = inverse(M);
    const Matrix in_p = in_.leftCols(p_), in_x = in_.rightCols(q_), out_p = out_.topRows(p_);
    const Matrix through = D_.topRows(p_).rightCols(q_);
    const Matrix back = M_inverse * beta;  // u_p of −(y that the port does not see of itself)
    const Matrix A = JR_ - in_p * back * out_p;
    const Matrix K = inverse(Matrix::Identity(n_, n_) - 0.5 * step_s_ * A * energy_.Q()) * step_s_;
    Matrix bent = Matrix::Zero(n_, r_);
    for (int k = 0; k < r_; ++k) bent(energy_.bent()[at(k)], k) = 1.0;
    const Matrix of_wave = K * in_p * M_inverse * source, of_mean = K * A * bent;
    const Matrix L = slope * back;

    std::vector<double> out(at(coefficient_count_));
    const auto put = [&out](const Block& to, const Matrix& what) {
      for (int j = 0; j < to.columns; ++j) {
        for (int i = 0; i < to.rows; ++i) out[at(to.entry(i, j))] = what(i, j);
      }
    };
    const Matrix half = 0.5 * L * out_p * energy_.Q();
    put(of_gradient_, K * A);
    put(of_input_, K * (in_x - in_p * back * through));
    put(of_wave_, of_wave);
    put(of_mean_, of_mean);
    put(b_of_gradient_, -(L * out_p));
    put(b_of_offset_, -half);
    put(b_of_input_, -(L * through));
    put(b_of_wave_, sign + slope * M_inverse * source - half * of_wave);
    put(b_of_mean_, -(L * out_p * bent) - half * of_mean);
    for (int j = 0; j < p_; ++j) {
      const PortClosure& port = ports[at(j)];
      out[at(u_of_a_.entry(j, 0))] = port.input(1.0, 0.0);
      out[at(u_of_b_.entry(j, 0))] = port.input(0.0, 1.0);
    }
    const bool finite = std::ranges::all_of(out, [](double value) { return std::isfinite(value); });
    if (!finite) throw ConfigError("", "the implicit step is singular at this impedance");
    return out;
  }

  static Matrix inverse(const Matrix& M) { return M.rows() == 0 ? Matrix(M) : lu_inverse(M); }

  // ---- the step

  int groups() const { return (lanes() + width_ - 1) / width_; }
  const double* coefficients(int group) const {
    return coefficients_.data() + at(group * coefficient_count_ * width_);
  }
  template <class Pointer>
  Pointer of_group(Pointer record, int group) const {
    return record + static_cast<std::ptrdiff_t>(group) * record_count_ * width_;
  }
  template <class Pointer>
  Pointer place(Pointer record, int lane, int value) const {
    return of_group(record, lane / width_) + value * width_ + lane % width_;
  }
  template <class Act>
  void for_groups(LaneRange range, Act act) const {
    const int last = (range.last + width_ - 1) / width_;
    for (int group = range.first / width_; group < last; ++group) {
      if (width_ == 1) {
        act(Width<1>{}, group);
      } else {
        act(Width<kLaneGroup>{}, group);
      }
    }
  }

  template <int W>
  static void add_product(const double* coefficient, const Block& M, const double* x, V<W>* y) {
    for (int j = 0; j < M.columns; ++j) {
      const V<W> own = Row<W>::at(x, j);
      for (int i = 0; i < M.rows; ++i) y[i] += Row<W>::at(coefficient, M.entry(i, j)) * own;
    }
  }
  template <int W>
  static void store(const V<W>* y, int count, double* to) {
    for (int i = 0; i < count; ++i) Row<W>::put(to, i, y[i]);
  }
  template <int W>
  void gather(const double* x, double* y) const {
    for (int k = 0; k < r_; ++k) Row<W>::put(y, k, Row<W>::at(x, energy_.bent()[at(k)]));
  }

  /// What a step needs of x and ū.
  template <int W>
  void complete(int group, double* record) const {
    double* const own = of_group(record, group);
    bent::LinearTask task = linear_;
    task.coefficients = coefficients(group);
    task.record = own;
    (W == 1 ? bent::kernels().freeze_alone : bent::kernels().freeze)(task);
    std::fill(own + is_warm_ * W, own + (is_warm_ + 1) * W, 0.0);
    if (r_ == 0) return;
    detail::Workspace room(energy_.scratch_size(W) + at(kMostBent * W));
    double* const scratch = room.data() + kMostBent * W;
    gather<W>(own + state_ * W, room.data());
    const int degree = energy_.taylor_degree();
    if (degree == 0) {
      energy_.slopes<W>(room.data(), own + bent_slope_ * W, scratch);
      if (!energy_.is_exact()) energy_.value<W>(room.data(), own + V_ * W, scratch);
      return;
    }
    energy_.taylor<W>(room.data(), own + taylor_ * W, scratch);
    const V<W> curvature = 2.0 * Row<W>::at(own, taylor_ + 1);
    Row<W>::put(own, bent_slope_, Row<W>::at(own, taylor_));
    Row<W>::put(own, bent_slope_ + 1, curvature);
    Row<W>::put(own, taylor_ + degree, abs(curvature) * abs(Row<W>::at(room.data(), 0)));
  }

  /// What Newton's method works on, for a lane group.
  template <int W>
  struct Solve {
    double y[kMostBent * W], delta[kMostBent * W], mean[kMostBent * W], noise[kMostBent * W];
    double jacobian[kMostBent * kMostBent * W];
    double known[kMostBent * W],
        known_size[kMostBent * W];  // δ but for V̄, and the size of its terms
    bool is_done[W];
    bool fails[W];
  };

  LaneStatus solve_all(LaneRange range, double* record, const double* a, double* next, double* b,
                       const EnergyColumns& energy, bool warm) const {
    if (next == nullptr && energy_.taylor_degree() > 0) {
      return scatter_polynomial(range, record, a, b, warm);
    }
    LaneStatus status;
    for_groups(range, [&](auto width, int group) {
      constexpr int W = decltype(width)::value;
      const LaneStatus own = solve_one<W>(group, record, a, next, b, energy, warm);
      if (status.ok()) status = own;
    });
    return status;
  }

  bent::Task bent_task(LaneRange range, double* record, const double* a, double* b,
                       bool warm) const {
    bent::Task t;
    t.coefficients = coefficients_.data();
    t.coefficient_size = static_cast<long>(coefficient_count_) * width_;
    t.record = record;
    t.record_size = static_cast<long>(record_count_) * width_;
    t.a = a;
    t.b = b;
    t.stride = stride();
    t.ports = p_;
    t.degree = energy_.taylor_degree();
    t.first = range.first / width_;
    t.last = (range.last + width_ - 1) / width_;
    t.warm = warm;
    t.own_of_wave = of_wave_.entry(energy_.bent()[0], 0);
    t.own_of_wave_step = n_;
    t.gain = of_mean_.entry(energy_.bent()[0], 0);
    t.b_of_wave = b_of_wave_.begin;
    t.b_of_mean = b_of_mean_.begin;
    t.offset = offset_ + energy_.bent()[0];
    t.b_offset = b_offset_;
    t.taylor = taylor_;
    t.increment = warm_;
    t.is_warm = is_warm_;
    return t;
  }
  int run_bent(const bent::Task& task) const {
    return width_ == 1 ? bent::kernels().scatter_alone(task) : bent::kernels().scatter(task);
  }

  /// Groups with a lane that the kernel does not solve are left to solve_group, which takes the others as they
  /// are.
  LaneStatus scatter_polynomial(LaneRange range, double* record, const double* a, double* b,
                                bool warm) const {
    double delta[kLaneGroup], mean[kLaneGroup], failed[kLaneGroup];
    bent::Task task = bent_task(range, record, a, b, warm);
    task.delta = delta;
    task.mean = mean;
    task.failed = failed;
    LaneStatus status;
    for (;;) {
      const int group = run_bent(task);
      if (group < 0) return status;
      for_groups({group * width_, group * width_ + 1}, [&](auto width, int) {
        constexpr int W = decltype(width)::value;
        const LaneStatus own = solve_one<W>(group, record, a, nullptr, b, {}, warm);
        if (status.ok()) status = own;
      });
      task.first = group + 1;
    }
  }

  template <int W>
  LaneStatus solve_one(int group, double* record, const double* a, double* next, double* b,
                       const EnergyColumns& energy, bool warm) const {
    const int first = group * W, last = std::min(first + W, lanes());
    return solve_group<W>({first, last}, record, a + first, next, b + first, energy.from(first),
                          warm);
  }

  /// The increments of a group, and its b: where H is a polynomial in one bent state by the kernel, whose lanes
  /// keep their bits beside others that it does not solve.
  template <int W>
  void solve_increments(LaneRange range, double* record, const double* waves, bool warm,
                        Solve<W>& s, double* outgoing) const {
    double* const own = of_group(record, range.first / width_);
    const double* const coefficient = coefficients(range.first / width_);
    const int used = range.last - range.first;
    const bool has_kernel = energy_.taylor_degree() > 0;
    double delta[W], mean[W], failed[W], by_kernel[kMostPorts * W];
    bool all = false;
    if (has_kernel) {
      bent::Task task = bent_task({0, W}, own, waves, by_kernel, warm);
      task.coefficients = coefficient;
      task.stride = W;
      task.delta = delta;
      task.mean = mean;
      task.failed = failed;
      all = run_bent(task) < 0;
    }
    if (r_ > 0 && !all) find_increments<W>(own, coefficient, waves, used, warm && !has_kernel, s);
    for (int l = 0; l < W && has_kernel; ++l) {
      if (failed[l] != 0.0) continue;
      s.delta[l] = delta[l];
      s.mean[l] = mean[l];
      s.fails[l] = false;
    }
    for (int lane = range.first; lane < range.last && r_ == 1; ++lane) {
      const int l = lane - range.first;
      if (!s.fails[l]) continue;
      double unused[kMostPorts], given[kMostPorts];
      for (int j = 0; j < p_; ++j) given[j] = waves[j * W + l];
      const StepFault fault = solve_damped(lane, record, given, 1, unused, 1, nullptr, l, {});
      if (fault == StepFault::not_converged) {
        s.fails[l] = !solve_bracketed<W>(own, coefficient, l, s);
      }
    }
    V<W> values[kMostPorts];
    for (int j = 0; j < p_; ++j) values[j] = Row<W>::at(own, b_offset_ + j);
    add_product<W>(coefficient, b_of_wave_, waves, values);
    if (r_ > 0) add_product<W>(coefficient, b_of_mean_, s.mean, values);
    store<W>(values, p_, outgoing);
    for (int l = 0; l < W && has_kernel; ++l) {
      for (int j = 0; j < p_ && failed[l] == 0.0; ++j) outgoing[j * W + l] = by_kernel[j * W + l];
    }
  }

  template <int W>
  LaneStatus solve_group(LaneRange range, double* record, const double* a, double* next, double* b,
                         const EnergyColumns& energy, bool warm) const {
    const int group = range.first / width_;
    double* const own = of_group(record, group);
    double waves[kMostPorts * W];
    for (int j = 0; j < p_; ++j) std::copy_n(a + j * stride(), W, waves + j * W);
    Solve<W> solve;
    double outgoing[kMostPorts * W];
    solve_increments<W>(range, record, waves, warm, solve, outgoing);
    if (next != nullptr) commit<W>(group, own, waves, outgoing, solve, next, energy);
    LaneStatus status;
    for (int lane = range.first; lane < range.last; ++lane) {
      const int l = lane - range.first;
      bool finite = true;
      for (int j = 0; j < p_; ++j) finite = finite && std::isfinite(outgoing[j * W + l]);
      if (finite && (r_ == 0 || !solve.fails[l])) continue;
      const StepFault fault =
          solve_damped(lane, record, a + l, stride(), outgoing + l, W, next, l, energy);
      if (fault != StepFault::none && status.ok()) status = {lane, fault};
    }
    for (int j = 0; j < p_; ++j) {
      for (int l = 0; l < range.last - range.first; ++l) b[j * stride() + l] = outgoing[j * W + l];
    }
    // The lanes that were solved otherwise are completed again with the others, to the same bits.
    if (next != nullptr) complete<W>(group, next);
    return status;
  }

  /// One lane, by the solver of any part; its a at a[j·a_step], its b at outgoing[j·step].
  StepFault solve_damped(int lane, const double* record, const double* a, int a_step,
                         double* outgoing, int step, double* next, int l,
                         const EnergyColumns& energy) const {
    double x[kMostStates], x_next[kMostStates], waves[kMostPorts], b[kMostPorts];
    detail::Workspace inputs(at(q_ + 1));
    get_state(lane, record, x);
    for (int j = 0; j < q_; ++j) inputs.data()[j] = *place(record, lane, input_ + j);
    for (int j = 0; j < p_; ++j) waves[j] = a[j * a_step];
    return solvers_.with(lane, [&](LaneSolver& solver) {
      solver.part().freeze(x, inputs.data());
      const StepFault fault = solver.solve(waves, b);
      if (fault != StepFault::none) return fault;
      for (int j = 0; j < p_; ++j) outgoing[j * step] = b[j];
      if (next == nullptr) return fault;
      const StepEnergy own = solver.part().commit(solver.increment(), x_next);
      set_state(lane, x_next, next);
      if (energy.wanted()) energy.set(l, own);
      return fault;
    });
  }

  template <int W>
  void find_increments(double* own, const double* coefficient, const double* waves, int lanes_used,
                       bool warm, Solve<W>& s) const {
    gather<W>(own + state_ * W, s.y);
    for (int k = 0; k < r_; ++k) {
      const int i = energy_.bent()[at(k)];
      V<W> sum = Row<W>::at(own, offset_ + i), size = abs(sum);
      for (int j = 0; j < p_; ++j) {
        const V<W> term = Row<W>::at(coefficient, of_wave_.entry(i, j)) * Row<W>::at(waves, j);
        sum += term;
        size += abs(term);
      }
      Row<W>::put(s.known, k, sum);
      Row<W>::put(s.known_size, k, size);
    }
    predict<W>(own, coefficient, s);
    for (int l = 0; l < W; ++l) {
      s.is_done[l] = l >= lanes_used;
      s.fails[l] = false;
      if (!warm || own[is_warm_ * W + l] == 0.0) continue;
      for (int k = 0; k < r_; ++k) s.delta[k * W + l] = own[(warm_ + k) * W + l];
    }
    iterate<W>(own, coefficient, s);
    if (!warm) return;
    for (int l = 0; l < W; ++l) {
      own[is_warm_ * W + l] = s.fails[l] ? 0.0 : 1.0;
      for (int k = 0; k < r_; ++k) own[(warm_ + k) * W + l] = s.delta[k * W + l];
    }
  }

  double N(const double* coefficient, int row, int k, int l, int W) const {
    return coefficient[of_mean_.entry(energy_.bent()[at(row)], k) * W + l];
  }

  /// δ of the step linearised at x: (I − ½N∇²V)δ = known + N∇V.
  template <int W>
  void predict(const double* own, const double* coefficient, Solve<W>& s) const {
    const double* const slopes = own + bent_slope_ * W;
    const double* curvature = slopes + r_ * W;
    for (int j = 0; j < r_; ++j) {
      for (int i = j; i < r_; ++i, curvature += W) {
        for (int l = 0; l < W; ++l) {
          s.jacobian[(j * r_ + i) * W + l] = s.jacobian[(i * r_ + j) * W + l] = 0.5 * curvature[l];
        }
      }
    }
    double right[kMostBent * W];
    for (int k = 0; k < r_; ++k) {
      for (int l = 0; l < W; ++l) {
        double sum = s.known[k * W + l];
        for (int j = 0; j < r_; ++j) sum += N(coefficient, k, j, l, W) * slopes[j * W + l];
        right[k * W + l] = sum;
      }
    }
    solve_linear<W>(coefficient, s.jacobian, right, s.delta);
  }

  /// (I − N·jacobian) out = right, lane by lane, with pivots.
  template <int W>
  void solve_linear(const double* coefficient, const double* jacobian, const double* right,
                    double* out) const {
    if (r_ == 1) {
      const double* const gain = coefficient + of_mean_.entry(energy_.bent()[0], 0) * W;
      for (int l = 0; l < W; ++l) out[l] = right[l] / (1.0 - gain[l] * jacobian[l]);
      return;
    }
    for (int l = 0; l < W; ++l) {
      double M[kMostBent][kMostBent + 1];
      for (int i = 0; i < r_; ++i) {
        for (int j = 0; j < r_; ++j) {
          M[i][j] = i == j ? 1.0 : 0.0;
          for (int k = 0; k < r_; ++k) {
            M[i][j] -= N(coefficient, i, k, l, W) * jacobian[(j * r_ + k) * W + l];
          }
        }
        M[i][r_] = right[i * W + l];
      }
      for (int c = 0; c < r_; ++c) {
        int pivot = c;
        for (int i = c + 1; i < r_; ++i) {
          if (std::abs(M[i][c]) > std::abs(M[pivot][c])) pivot = i;
        }
        std::swap(M[c], M[pivot]);
        for (int i = c + 1; i < r_; ++i) {
          const double factor = M[i][c] / M[c][c];
          for (int j = c; j <= r_; ++j) M[i][j] -= factor * M[c][j];
        }
      }
      for (int i = r_ - 1; i >= 0; --i) {
        double sum = M[i][r_];
        for (int j = i + 1; j < r_; ++j) sum -= M[i][j] * out[j * W + l];
        out[i * W + l] = sum / M[i][i];
      }
    }
  }

  /// A lane is done, or fails, by its own numbers alone, and its δ stays then.
  template <int W>
  void iterate(const double* own, const double* coefficient, Solve<W>& s) const {
    detail::Workspace room(energy_.scratch_size(W));
    double residual[kMostBent * W], step[kMostBent * W], before[W];
    for (int k = 0; k <= kMostNewtonSteps; ++k) {
      energy_.mean<W>(s.y, s.delta, own + V_ * W, s.mean, s.jacobian, s.noise, room.data());
      double size[W];
      std::fill(size, size + W, 0.0);
      for (int i = 0; i < r_; ++i) {
        V<W> F = Row<W>::at(s.delta, i), w = abs(F);
        F -= Row<W>::at(s.known, i);
        w += Row<W>::at(s.known_size, i);
        for (int j = 0; j < r_; ++j) {
          const V<W> gain = Row<W>::at(coefficient, of_mean_.entry(energy_.bent()[at(i)], j));
          const V<W> term = gain * Row<W>::at(s.mean, j);
          F -= term;
          w += abs(term);
          w += abs(gain) * Row<W>::at(s.noise, j);
        }
        double weight[W];
        w.to(weight);
        F.to(residual + i * W);
        for (int l = 0; l < W; ++l) {
          const double value = std::abs(residual[i * W + l]);
          const double share = value == 0.0 ? 0.0 : value / weight[l];
          size[l] = share <= size[l] ? size[l] : share;  // NaN counts as larger
        }
      }
      bool all = true;
      for (int l = 0; l < W; ++l) {
        if (s.is_done[l]) continue;
        const bool improves = k == 0 || size[l] < before[l];
        const bool is_last = k > 0 && before[l] <= kStagnation && !(size[l] <= 0.25 * before[l]);
        s.is_done[l] = size[l] <= kRoundOff || is_last;
        s.fails[l] =
            !s.is_done[l] && (!improves || k == kMostNewtonSteps || !std::isfinite(size[l]));
        s.is_done[l] = s.is_done[l] || s.fails[l];
        all = all && s.is_done[l];
        before[l] = size[l];
      }
      if (all) return;
      solve_linear<W>(coefficient, s.jacobian, residual, step);
      for (int i = 0; i < r_; ++i) {
        for (int l = 0; l < W; ++l) {
          if (!s.is_done[l]) s.delta[i * W + l] -= step[i * W + l];
        }
      }
    }
  }

  /// One equation, where Newton's method runs to and fro between the swings of a sine: its root is between a δ
  /// with F < 0 and one with F > 0. Looked for from the step without V̄ on, ever farther out on both sides; then
  /// by Newton's method where it stays between the two, else by halves.
  template <int W>
  bool solve_bracketed(const double* own, const double* coefficient, int l, Solve<W>& s) const {
    detail::Workspace room(energy_.scratch_size(1));
    const double gain = coefficient[of_mean_.entry(energy_.bent()[0], 0) * W + l];
    const double y = s.y[l], known = s.known[l], V_before = own[V_ * W + l];
    double mean = 0.0, slope = 0.0, noise = 0.0, size = 0.0;
    const auto residual = [&](double delta) {
      energy_.mean<1>(&y, &delta, &V_before, &mean, &slope, &noise, room.data());
      const double F = delta - known - gain * mean;
      const double terms =
          std::abs(delta) + s.known_size[l] + std::abs(gain) * (std::abs(mean) + noise);
      size = F == 0.0 ? 0.0 : std::abs(F) / terms;
      return F;
    };
    double low = known, high = known;
    double F_low = residual(low), F_high = F_low;
    double reach = std::abs(F_low);
    for (int k = 0; k < kMostDoublings && !(F_low <= 0.0 && F_high >= 0.0); ++k, reach *= 2.0) {
      if (!std::isfinite(F_low) || !std::isfinite(F_high)) return false;
      if (F_low > 0.0) F_low = residual(low = known - reach);
      if (F_high < 0.0) F_high = residual(high = known + reach);
    }
    if (!(F_low <= 0.0 && F_high >= 0.0)) return false;
    double delta = 0.5 * (low + high);
    for (int k = 0; k < kMostBisections; ++k) {
      const double F = residual(delta);
      s.delta[l] = delta;
      s.mean[l] = mean;
      if (size <= kRoundOff) return true;
      (F > 0.0 ? high : low) = delta;
      const double newton = delta - F / (1.0 - gain * slope);
      const double middle = 0.5 * (low + high);
      const bool is_within = k % 2 == 0 && newton > low && newton < high;
      delta = is_within ? newton : middle;
      if (delta == low || delta == high) break;
    }
    return size <= kStagnation;
  }

  template <int W>
  void commit(int group, double* own, const double* waves, const double* outgoing,
              const Solve<W>& s, double* next, const EnergyColumns& energy) const {
    bent::LinearTask task = linear_;
    task.step_s = step_s_;
    task.coefficients = coefficients(group);
    task.record = own;
    task.next = of_group(next, group);
    task.waves = waves;
    task.outgoing = outgoing;
    task.mean = s.mean;
    task.delta = s.delta;
    task.energy = energy;
    (W == 1 ? bent::kernels().commit_alone : bent::kernels().commit)(task);
  }

  const Subsystem& part_;
  SplitEnergy energy_;
  int n_, p_, q_, r_;
  int width_;
  double step_s_ = 0.0;
  Matrix JR_, in_, out_, D_;
  std::vector<bent::Entry> Q_entries_, R_entries_, P_entries_, S_entries_;
  std::vector<bent::Entry> external_out_, external_through_;
  int coefficient_count_ = 0, record_count_ = 0;
  Block of_gradient_, of_input_, of_wave_, of_mean_;
  Block b_of_gradient_, b_of_offset_, b_of_input_, b_of_wave_, b_of_mean_, u_of_a_, u_of_b_;
  int state_ = 0, input_ = 0, slope_ = 0, offset_ = 0, b_offset_ = 0;
  int bent_slope_ = 0, V_ = 0, warm_ = 0, is_warm_ = 0, taylor_ = 0;
  bent::LinearTask linear_;  // but for what a group has of its own
  AlignedVector coefficients_;
  SolverOfEachLane<LaneSolver> solvers_;
};

}  // namespace expression_lanes
}  // namespace

bool has_lanes(const SplitEnergy& energy, const Signature& signature) {
  using namespace expression_lanes;
  return signature.state_size() <= kMostStates && signature.wave_size() <= kMostPorts &&
         signature.input_size() <= kMostStates && std::ssize(energy.bent()) <= kMostBent;
}

std::unique_ptr<StepBatch> make_expression_batch(std::span<const Subsystem* const> parts,
                                                 const SplitEnergy& energy, NewtonOptions options) {
  return std::make_unique<expression_lanes::ExpressionBatch>(parts, energy, options);
}

}  // namespace portwave
