#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "base/workspace.hpp"
#include "core/affine_batch.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/descriptor/descriptor_part.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "stages/stage_equations.hpp"
#include "stages/staged_batches.hpp"

namespace portwave {
namespace {

using Vector = Eigen::VectorXd;

/// Descriptor parts with dense step maps have them with stages too. (Linear parts with dense ones
/// have a batch of their own.)
bool has_dense_stages(const Subsystem& part) {
  const auto* const own = dynamic_cast<const DescriptorPortHamiltonian*>(&part);
  return own != nullptr && !own->uses_sparse_step_maps();
}

/// The energy ledger of a part with stages, from flat entry lists.
class StageEnergy {
 public:
  StageEnergy(const StageEquations& of, double step_s)
      : layout_(of.layout),
        weight_(of.weight),
        damped_(of.damped),
        is_damped_(of.damped.squaredNorm() > 0.0),
        storage_(of.E == nullptr ? *of.Q
                                 : clean_product(SparseMatrix(of.E->transpose()), *of.Q, 1e-15)) {
    const Structure& st = of.part->structure();
    append_form(*of.Q, 1.0, gradient_);
    append_form(dissipation_matrix(st), step_s, dissipation_);
    const int n = layout_.n, p = layout_.p;
    append_form(SparseMatrix((st.G + st.P).transpose()), step_s, output_);
    std::vector<FormEntry> direct;
    append_form(SparseMatrix(st.S + st.N), step_s, direct);
    for (const FormEntry& e : direct) output_.push_back({e.row, n + e.column, e.value});
    std::erase_if(output_, [p](const FormEntry& e) { return e.row < p; });
  }

  /// `z` is scratch of n + p + q doubles; `input` is null when none is driven.
  StepEnergy account(const double* x, const double* x_next, const double* D, const double* a,
                     const double* b, const double* input, const std::vector<PortClosure>& closures,
                     double* z) const {
    StepEnergy energy;
    energy.change_J = storage_.change(x, x_next);
    if (is_damped_) energy.numerical_dissipation_J = numerical_dissipation(D);
    energy.dissipated_J = energy.numerical_dissipation_J;
    if (dissipation_.empty() && input == nullptr) return energy;
    const int n = layout_.n, p = layout_.p, q = layout_.q;
    for (int i = 0; i < layout_.stages; ++i) {
      const double* const moved = D + static_cast<std::ptrdiff_t>(i) * n;
      const double start = weight_[static_cast<std::size_t>(i)];
      std::fill(z, z + n + p + q, 0.0);
      for (const FormEntry& e : gradient_) {
        z[e.row] += e.value * (start * x[e.column] + moved[e.column]);
      }
      for (int j = 0; j < p; ++j) {
        const int port = layout_.port(i, j);
        z[n + j] = closures[static_cast<std::size_t>(port)].input(a[port], b[port]);
      }
      if (input != nullptr) std::copy(input + i * q, input + (i + 1) * q, z + n + p);
      for (const FormEntry& e : dissipation_)
        energy.dissipated_J += e.value * z[e.row] * z[e.column];
      if (input == nullptr) continue;
      for (const FormEntry& e : output_) {
        energy.external_supply_J += z[n + e.row] * e.value * z[e.column];
      }
    }
    return energy;
  }

 private:
  double numerical_dissipation(const double* D) const {
    const int n = layout_.n;
    detail::Workspace room(at(2 * n));
    double* const origin = room.data();
    double* const w = origin + n;
    std::fill(origin, origin + 2 * n, 0.0);
    for (int j = 0; j < layout_.stages; ++j) {
      for (int k = 0; k < n; ++k) w[k] += damped_[j] * D[j * n + k];
    }
    return storage_.change(origin, w);
  }

  StageLayout layout_;
  std::vector<double> weight_;
  Eigen::VectorXd damped_;
  bool is_damped_;
  StorageForm storage_;                 // ½xᵀEᵀQx
  std::vector<FormEntry> gradient_;     // Q
  std::vector<FormEntry> dissipation_;  // h [R P; Pᵀ S]
  std::vector<FormEntry> output_;       // h [(G+P)ᵀ, S+N] of the external inputs
};

/// out += M x
void add_to(const SparseMatrix& M, const double* x, double* out) {
  for (int j = 0; j < M.outerSize(); ++j) {
    if (x[j] == 0.0) continue;
    for (SparseMatrix::InnerIterator it(M, j); it; ++it) out[it.row()] += it.value() * x[j];
  }
}

class StagedLinearBatch final : public AffineBatch, public StepRoundings, public StageMotion {
 public:
  StagedLinearBatch(std::span<const Subsystem* const> parts, const StageRule& stages)
      : StagedLinearBatch(parts, stages,
                          {stages.count, parts[0]->signature().state_size(),
                           parts[0]->signature().wave_size(), parts[0]->signature().input_size()}) {
  }

  double scatter_cost_ns() const override { return 5.0 + wave_size() * wave_size(); }
  double advance_cost_ns() const override {
    const double unknowns = layout_.states();
    const double per_row =
        is_dense_ ? 0.5 * (layout_.n + wave_size() + input_size()) : 20.0 * layout_.stages;
    return 20.0 + (per_row + 2.0 * wave_size()) * unknowns;
  }

  const StepRoundings* roundings() const override { return this; }
  const StageMotion* stage_motion() const override { return this; }

  void prepare(double step_s, const double* impedance) override {
    step_s_ = step_s;
    lane_.clear();
    // Lanes of one part with equal impedances are one; so is what does not depend on impedances.
    std::map<std::pair<const Subsystem*, std::vector<double>>, std::shared_ptr<const Solved>> same;
    std::map<const Subsystem*, std::shared_ptr<const StageEnergy>> energies;
    std::vector<OutgoingWaves> waves;
    for (std::size_t l = 0; l < parts_.size(); ++l) {
      std::vector<double> gamma(static_cast<std::size_t>(wave_size()));
      for (int j = 0; j < wave_size(); ++j) {
        gamma[static_cast<std::size_t>(j)] = impedance[j * stride() + static_cast<int>(l)];
      }
      const StageEquations& equations = *equations_[l];
      std::vector<PortClosure> closures = port_closures(
          staged_signature(parts_[l]->signature(), layout_.stages), step_s, gamma.data());
      std::shared_ptr<const Solved>& solved = same[{parts_[l], std::move(gamma)}];
      if (solved == nullptr) {
        std::shared_ptr<const StageEnergy>& energy = energies[parts_[l]];
        if (energy == nullptr) energy = std::make_shared<const StageEnergy>(equations, step_s);
        ClosedStages step(equations, closures, step_s, is_dense_);
        solved = std::make_shared<const Solved>(std::move(step), energy, std::move(closures));
      }
      lane_.push_back(solved);
      waves.push_back(solved->step.waves);
    }
    set_outgoing(std::move(waves));
  }

  int stages() const override { return layout_.stages; }
  /// From what the commit has left, D = √bᵢ(X(cᵢ) − x).
  void stage_increments(LaneRange range, const double* record, const double* /*a*/,
                        const double* /*next*/, double* out) const override {
    const StageRule& rule = rule_;
    for (int l = range.first; l < range.last; ++l) {
      const double* const D = extra_of(l, record) + layout_.ports();
      for (int i = 0; i < layout_.stages; ++i) {
        for (int k = 0; k < layout_.n; ++k) {
          double sum = 0.0;
          for (int j = 0; j < layout_.stages; ++j) {
            // Damped ones are no collocation on Gauss's nodes.
            const double scale = std::sqrt(rule.b[at(i)] / rule.b[at(j)]);
            const double share = rule.nodes == StageNodes::gauss && !rule.is_damped()
                                     ? scale * rule.inverse(i, j)
                                     : equations_[at(l)]->omega(i, j);
            sum += share * D[j * layout_.n + k];
          }
          out[(i * layout_.n + k) * stride() + l] = sum;
        }
      }
    }
  }
  /// As those of sparse linear and of descriptor parts of one stage, with D for the increment.
  std::optional<double> step_rounding(int l, const double* record, const double* a,
                                      const double* next) const override;

 private:
  struct Solved {
    Solved(ClosedStages closed, std::shared_ptr<const StageEnergy> ledger,
           std::vector<PortClosure> ports)
        : step(std::move(closed)), energy(std::move(ledger)), closures(std::move(ports)) {}

    ClosedStages step;
    std::shared_ptr<const StageEnergy> energy;
    std::vector<PortClosure> closures;
  };

  StagedLinearBatch(std::span<const Subsystem* const> parts, const StageRule& stages,
                    const StageLayout& layout)
      : AffineBatch(static_cast<int>(parts.size()), layout.n, layout.ports(), layout.inputs(),
                    /*extra: b⁰, D and work=*/layout.ports() + layout.states() +
                        std::max(layout.states(), layout.n + layout.p + layout.q)),
        parts_(parts.begin(), parts.end()),
        rule_(stages),
        layout_(layout),
        is_dense_(has_dense_stages(*parts[0])) {
    std::map<const Subsystem*, std::shared_ptr<const StageEquations>> known;
    for (const Subsystem* part : parts) {
      std::shared_ptr<const StageEquations>& own = known[part];
      if (own == nullptr) own = std::make_shared<const StageEquations>(*part, stages);
      equations_.push_back(own);
    }
  }

  StepFault advance_state(int l, const Lane& frozen, const double* a, double* next, double* b,
                          StepEnergy& energy) const override {
    (void)scatter_lane(l, frozen, a, b);
    const Solved& solved = *lane_[static_cast<std::size_t>(l)];
    const StageEquations& of = *equations_[static_cast<std::size_t>(l)];
    double* const D = frozen.extra + layout_.ports();
    double* const work = D + layout_.states();
    find_stages(of, solved.step, frozen, a, D, work);
    end_of_step(of, frozen.x, D, next);
    const bool driven = std::any_of(frozen.input, frozen.input + layout_.inputs(),
                                    [](double u) { return u != 0.0; });
    energy = solved.energy->account(frozen.x, next, D, a, b, driven ? frozen.input : nullptr,
                                    solved.closures, work);
    const bool finite =
        std::all_of(next, next + layout_.n, [](double x) { return std::isfinite(x); });
    return finite ? StepFault::none : StepFault::not_finite;
  }

  /// D; `work` is scratch of sn doubles.
  void find_stages(const StageEquations& of, const ClosedStages& step, const Lane& frozen,
                   const double* a, double* D, double* work) const {
    const int n = layout_.n, rows = layout_.states(), p = layout_.ports(), q = layout_.inputs();
    if (is_dense_) {
      for (int i = 0; i < rows; ++i) {
        const double* row = step.map.data() + static_cast<std::ptrdiff_t>(i) * (n + p + q);
        double sum = 0.0;
        for (int j = 0; j < n; ++j) sum += row[j] * frozen.x[j];
        for (int j = 0; j < p; ++j) sum += row[n + j] * a[j];
        for (int j = 0; j < q; ++j) sum += row[n + p + j] * frozen.input[j];
        D[i] = sum;
      }
      return;
    }
    for (int i = 0; i < layout_.stages; ++i) {
      for (int j = 0; j < n; ++j) {
        work[i * n + j] = of.weight[static_cast<std::size_t>(i)] * frozen.x[j];
      }
    }
    std::fill(D, D + rows, 0.0);
    add_to(step.W, work, D);
    add_to(step.B_a, a, D);
    add_to(step.B_u, frozen.input, D);
    step.lhs.solve(D, D, work);
  }

  /// x⁺ of D.
  void end_of_step(const StageEquations& of, const double* x, const double* D, double* next) const {
    const int n = layout_.n;
    for (int i = 0; i < n; ++i) {
      double moved = 0.0;
      for (int j = 0; j < layout_.stages; ++j) moved += of.to_end[j] * D[j * n + i];
      next[i] = x[i] + moved;
    }
    if (of.kernel == nullptr) return;
    const SparseMatrix& V = *of.kernel;
    for (int k = 0; k < V.outerSize(); ++k) {
      double along = 0.0;
      for (SparseMatrix::InnerIterator it(V, k); it; ++it) {
        for (int j = 0; j < layout_.stages; ++j) {
          along += it.value() * (of.to_last[j] - of.to_end[j]) * D[j * n + it.row()];
        }
      }
      for (SparseMatrix::InnerIterator it(V, k); it; ++it) next[it.row()] += along * it.value();
    }
  }

  std::vector<const Subsystem*> parts_;
  StageRule rule_;
  StageLayout layout_;
  bool is_dense_;
  std::vector<std::shared_ptr<const StageEquations>> equations_;  // by lane
  std::vector<std::shared_ptr<const Solved>> lane_;
  double step_s_ = 0.0;
};

std::optional<double> StagedLinearBatch::step_rounding(int l, const double* record, const double* a,
                                                       const double* next) const {
  using step_rounding::kPerTerm;
  using step_rounding::terms;
  const Solved& solved = *lane_[static_cast<std::size_t>(l)];
  const ClosedStages& step = solved.step;
  const StageEquations& of = *equations_[static_cast<std::size_t>(l)];
  const Structure& st = of.part->structure();
  const int n = layout_.n, p = layout_.ports(), q = layout_.inputs(), count = layout_.stages;
  const Vector x = Eigen::Map<const Vector>(state_of(l, record), n);
  const Vector input = Eigen::Map<const Vector>(state_of(l, record) + n, q);
  const Vector after = Eigen::Map<const Vector>(state_of(l, next), n);
  Vector wave(p);
  for (int j = 0; j < p; ++j) wave[j] = a[j * stride() + l];
  Vector D(layout_.states()), work(layout_.states()), start(layout_.states());
  find_stages(of, step, {x.data(), input.data(), nullptr}, wave.data(), D.data(), work.data());
  for (int i = 0; i < count; ++i)
    start.segment(i * n, n) = of.weight[static_cast<std::size_t>(i)] * x;

  // What an error of x⁺ changes H⁺ by; of Dⱼ also what the inputs work on it.
  Vector slope = *of.Q * after;
  if (of.E != nullptr) slope = Vector(of.E->transpose() * slope);
  Vector of_kernel = Vector::Zero(n);
  if (of.kernel != nullptr) of_kernel = *of.kernel * Vector(of.kernel->transpose() * slope);
  const SparseMatrix C_x = SparseMatrix(st.G + st.P).rightCols(layout_.q);
  const SparseMatrix D_x = SparseMatrix(SparseMatrix(st.S + st.N).transpose()).rightCols(layout_.q);
  Vector weight(D.size());
  double sum = slope.cwiseAbs().dot(after.cwiseAbs());
  Vector of_z(D.size());  // terms of z
  const Vector of_b = wave.cwiseAbs() + terms(step.waves.C, x) + terms(step.waves.D, wave) +
                      terms(step.waves.C_u, input);
  for (int j = 0; j < count; ++j) {
    const Vector own = D.segment(j * n, n), at_start = start.segment(j * n, n);
    const Vector u = input.segment(j * layout_.q, layout_.q);
    const Vector supplied = step_s_ * (of.Q->transpose() * Vector(C_x * u));
    weight.segment(j * n, n) =
        of.to_end[j] * slope + (of.to_last[j] - of.to_end[j]) * of_kernel - supplied;
    sum += std::abs(of.to_end[j]) * slope.cwiseAbs().dot(own.cwiseAbs());
    sum += supplied.cwiseAbs().dot(at_start.cwiseAbs() + own.cwiseAbs());
    of_z.segment(j * n, n) = terms(*of.Q, at_start) + terms(*of.Q, own);
    sum += step_s_ * of_z.segment(j * n, n).dot(terms(C_x, u));
    const Vector direct = terms(D_x, u);
    for (int k = 0; k < layout_.p; ++k) {
      const int port = layout_.port(j, k);
      const PortClosure& c = solved.closures[static_cast<std::size_t>(port)];
      sum += step_s_ * direct[k] * of_b[port] * 0.5 * c.s / (c.effort_in ? 1.0 : c.impedance);
    }
  }
  const SparseMatrix inertia = of.inertia(1.0 / step_s_);
  const Vector of_inertia = terms(inertia, D);
  // Ω̃ and d̃ are rounded: zᵀ(Ω̃ ⊗ E)D is H⁺ − H to ε of its terms.
  sum += step_s_ * of_z.dot(of_inertia);
  if (is_dense_) {
    Vector all(n + p + q);
    all << x, wave, input;
    sum += weight.cwiseAbs().dot(terms(step.map, all));
  } else {
    // The residual that a solve leaves, and that W is a rounded product.
    Vector residual = terms(step.W, start) + terms(step.B_a, wave) + terms(step.B_u, input) +
                      terms(step.W, D) + of_inertia;
    const SparseMatrix C = SparseMatrix((st.G + st.P).transpose()).topRows(layout_.p);
    Vector of_y(p);
    for (int i = 0; i < count; ++i) {
      const Vector own = of_z.segment(i * n, n);
      residual.segment(i * n, n) += terms(st.J, own) + terms(st.R, own);
      of_y.segment(i * layout_.p, layout_.p) = terms(C, own);
    }
    for (int j = 0; j < p; ++j) {
      const PortClosure& c = solved.closures[static_cast<std::size_t>(j)];
      of_y[j] *= c.beta / c.s;
    }
    residual += terms(step.B_a, of_y);
    sum += step.lhs.solve_transposed(weight).cwiseAbs().dot(residual);
  }
  double kernels = 0.0;
  if (of.kernel != nullptr) {
    // The kernel of E is known up to rounding: what its algebraic components seem to store.
    const SparseMatrix& V = *of.kernel;
    const SparseMatrix rest = SparseMatrix(*of.E * V).cwiseAbs();
    const auto stored = [&](const Vector& v) -> Vector {
      const Vector along = (V.transpose() * v).cwiseAbs();
      return terms(*of.Q, rest * along + kPerTerm * terms(*of.E, V.cwiseAbs() * along));
    };
    for (int j = 0; j < count; ++j) {
      const Vector own = D.segment(j * n, n);
      const Vector at = start.segment(j * n, n) + own;
      kernels += std::abs(of.to_end[j]) * at.cwiseAbs().dot(stored(own));
    }
    const Vector moved = after - x, both = x + after;
    kernels += 0.5 * (both.cwiseAbs().dot(stored(moved)) + moved.cwiseAbs().dot(stored(both)));
  }
  return kPerTerm * sum + kernels + step_rounding::of_waves(step.waves, x, wave, input);
}

}  // namespace

std::unique_ptr<StepBatch> make_staged_linear_batch(std::span<const Component* const> parts,
                                                    const StageRule& stages) {
  const std::vector<const Subsystem*> physics = port_hamiltonian_parts(parts);
  return std::make_unique<StagedLinearBatch>(physics, stages);
}

}  // namespace portwave
