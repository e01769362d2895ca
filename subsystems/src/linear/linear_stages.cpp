#include "linear/linear_stages.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "core/affine_batch.hpp"
#include "linear/linear_energy.hpp"
#include "linear/plain_lu.hpp"
#include "matrices/quadruple.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"

namespace portwave {
namespace {

using Matrix = Eigen::MatrixXd;

struct StagedForm {
  StageLayout layout;
  Structure structure;  ///< all stages
  SparseMatrix Q_delta, Q_x;
  Eigen::VectorXd weight;  ///< √bᵢ
  Eigen::VectorXd damped;  ///< by stage, √(2δθ)·√bᵢ P̂(cᵢ)
  Eigen::VectorXd mask;    ///< by state, 1: is damped

  StagedForm(const LinearPortHamiltonian& part, const StageRule& stages)
      : layout{stages.count, part.signature().state_size(), part.signature().wave_size(),
               part.signature().input_size()},
        structure(Structure::zero(layout.states(), layout.ports() + layout.inputs())),
        Q_delta(layout.states(), layout.states()),
        Q_x(layout.states(), layout.n),
        weight(stages.count),
        damped(std::sqrt(2.0 * stages.damping) *
               Eigen::Map<const Eigen::VectorXd>(stages.top.data(), stages.count)),
        mask(layout.n) {
    for (int k = 0; k < layout.n; ++k) mask[k] = stages.damps(k) ? 1.0 : 0.0;
    SparseEntries of_delta, of_x;
    for (int i = 0; i < stages.count; ++i) {
      const auto row = static_cast<std::size_t>(i);
      add_stage(layout, i, 0, part.structure(), structure);
      weight[i] = std::sqrt(stages.b[row]);
      for (int c = 0; c < part.Q().outerSize(); ++c) {
        for (SparseMatrix::InnerIterator it(part.Q(), c); it; ++it) {
          const int r = i * layout.n + static_cast<int>(it.row());
          of_x.emplace_back(r, c, weight[i] * it.value());
          for (int j = 0; j < stages.count; ++j) {
            const auto column = static_cast<std::size_t>(j);
            const bool is_damped = stages.damps(static_cast<int>(it.row())) && stages.damps(c);
            const double a = is_damped ? stages.A[row][column] : stages.undamped(i, j);
            const double gain = a * std::sqrt(stages.b[row] / stages.b[column]);
            of_delta.emplace_back(r, j * layout.n + c, gain * it.value());
          }
        }
      }
    }
    Q_delta.setFromTriplets(of_delta.begin(), of_delta.end());
    Q_x.setFromTriplets(of_x.begin(), of_x.end());
  }
};

using Wide = PlainLu<Quadruple>::Dense;
using Long = PlainLu<long double>::Dense;

double size_of(Quadruple value) { return static_cast<double>(value < 0 ? -value : value); }

Wide product(const SparseMatrix& A, const Wide& x) {
  Wide out = Wide::Zero(A.rows(), x.cols());
  for (Eigen::Index k = 0; k < x.cols(); ++k) {
    for (int j = 0; j < A.outerSize(); ++j) {
      const Quadruple own = x(j, k);
      if (own == 0) continue;
      for (SparseMatrix::InnerIterator it(A, j); it; ++it) {
        out(it.row(), k) += Quadruple(it.value()) * own;
      }
    }
  }
  return out;
}

Wide widened(const SparseMatrix& A) { return Matrix(A).cast<Quadruple>(); }

/// δ, x⁺ − x, z and y as maps of (x, u, ū), ports open: LU in long double, refined against the equations
/// in more digits. They are scaled to roots of energies.
struct OpenStages {
  Wide delta, moved, z, y;
  Wide damped;  ///< w, of one substep after the other

  OpenStages(Wide delta_map, Wide moved_map, Wide z_map, Wide y_map, Wide damped_map)
      : delta(std::move(delta_map)),
        moved(std::move(moved_map)),
        z(std::move(z_map)),
        y(std::move(y_map)),
        damped(std::move(damped_map)) {}
  OpenStages(const StagedForm& form, const SparseMatrix& Q, double step_s) {
    const StageLayout& l = form.layout;
    const Eigen::Index n = l.n, p = l.ports(), q = l.inputs();
    const Structure& s = form.structure;
    const Eigen::VectorXd d = energy_scaling(Q).replicate(l.stages, 1);  // of each stage
    rate_ = step_s * SparseMatrix(d.asDiagonal() * SparseMatrix(s.J - s.R));
    inverse_ = SparseMatrix(form.Q_delta * d.cwiseInverse().asDiagonal());
    const SparseMatrix B = step_s * SparseMatrix(d.asDiagonal() * SparseMatrix(s.G - s.P));
    Wide rhs(l.states(), n + p + q);
    rhs.leftCols(n) = product(rate_, widened(form.Q_x));
    rhs.rightCols(p + q) = widened(B);
    delta = solve(rhs);
    for (Eigen::Index i = 0; i < delta.rows(); ++i) {
      for (Eigen::Index k = 0; k < delta.cols(); ++k) delta(i, k) /= Quadruple(d[i]);
    }
    moved = Wide::Zero(n, delta.cols());
    for (Eigen::Index i = 0; i < delta.rows(); ++i) {
      for (Eigen::Index k = 0; k < delta.cols(); ++k) {
        moved(i % n, k) += Quadruple(form.weight[i / n]) * delta(i, k);
      }
    }
    if (form.damped.squaredNorm() > 0.0) {
      damped = Wide::Zero(n, delta.cols());
      for (Eigen::Index i = 0; i < delta.rows(); ++i) {
        for (Eigen::Index k = 0; k < delta.cols(); ++k) {
          damped(i % n, k) += Quadruple(form.damped[i / n] * form.mask[i % n]) * delta(i, k);
        }
      }
    }
    z = product(form.Q_delta, delta);
    for (int j = 0; j < form.Q_x.outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(form.Q_x, j); it; ++it) {
        z(it.row(), j) += Quadruple(it.value());
      }
    }
    y = product(SparseMatrix((s.G + s.P).transpose()).topRows(p), z);
    const Matrix D = Matrix(SparseMatrix(s.S + s.N)).topRows(p);
    for (Eigen::Index i = 0; i < p; ++i) {
      for (Eigen::Index k = 0; k < p + q; ++k) y(i, n + k) += Quadruple(D(i, k));
    }
  }

 private:
  /// δ − h(J − R)Q_δ δ = rhs, in scaled variables.
  Wide solve(const Wide& rhs) const {
    constexpr int kMostSweeps = 16;
    constexpr double kEnough = 1e-22;
    const Eigen::Index N = rhs.rows();
    Long lhs =
        -(Matrix(rate_).cast<long double>().lazyProduct(Matrix(inverse_).cast<long double>()));
    lhs.diagonal().array() += 1.0L;
    PlainLu<long double> lu(N);
    lu.compute(lhs);
    Wide solution = Wide::Zero(N, rhs.cols());
    double last = std::numeric_limits<double>::max();
    for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
      const Wide rest = rhs - solution + product(rate_, product(inverse_, solution));
      Long correction;
      lu.solve(rest.cast<long double>(), correction);
      // The largest of any column, each beside its own size.
      double most = 0.0;
      for (Eigen::Index k = 0; k < rhs.cols(); ++k) {
        double change = 0.0, size = 0.0;
        for (Eigen::Index i = 0; i < N; ++i) {
          const Quadruple next = solution(i, k) + Quadruple(correction(i, k));
          change = std::max(change, size_of(Quadruple(correction(i, k))));
          size = std::max(size, size_of(next));
          solution(i, k) = next;
        }
        if (size > 0.0) most = std::max(most, change / size);
      }
      if (!(most > kEnough) || (sweep > 1 && !(most < last))) break;
      last = most;
    }
    return solution;
  }

  SparseMatrix rate_, inverse_;  // h d(J − R) and Q_δ d⁻¹
};

/// The step's ports at a stage of substep k, share ⊗ I.
Wide shares(const StageLayout& l, const StageRule& stages, int k) {
  Wide out = Wide::Zero(l.ports(), l.ports());
  for (int i = 0; i < l.stages; ++i) {
    for (int of = 0; of < l.stages; ++of) {
      const Quadruple share = substep_share(stages, l.substeps, k, i, of);
      for (int j = 0; j < l.p; ++j) out(l.port(i, j), l.port(of, j)) = share;
    }
  }
  return out;
}

/// The maps of m substeps one after another, from those of one. States and increments stay those of
/// the part, δ is that of the step's stages.
OpenStages repeated(const OpenStages& one, const StageLayout& l, const StageRule& stages) {
  const Eigen::Index n = l.n, p = l.ports(), q = l.stages * l.q, own = l.stages * n;
  const Eigen::Index columns = n + p + l.inputs();
  const double root = std::sqrt(static_cast<double>(l.substeps));
  OpenStages out{Wide::Zero(own, columns), Wide::Zero(n, columns), Wide::Zero(l.states(), columns),
                 Wide::Zero(p, columns), Wide::Zero(one.damped.rows() * l.substeps, columns)};
  Wide start = Wide::Zero(n, columns);
  for (Eigen::Index i = 0; i < n; ++i) start(i, i) = 1;
  for (int k = 0; k < l.substeps; ++k) {
    const Wide share = shares(l, stages, k);
    const auto applied = [&](const Wide& map) {
      Wide of = map.leftCols(n).lazyProduct(start);
      of.middleCols(n, p) += map.middleCols(n, p).lazyProduct(share);
      for (Eigen::Index i = 0; i < of.rows(); ++i) {
        for (Eigen::Index j = 0; j < q; ++j) {
          of(i, n + p + k * q + j) += Quadruple(root) * map(i, n + p + j);
        }
      }
      return of;
    };
    const auto add_shared = [&](const Wide& of, int rows, double factor, Wide& sum) {
      for (int i = 0; i < l.stages; ++i) {
        for (int to = 0; to < l.stages; ++to) {
          const Quadruple gain = factor * substep_share(stages, l.substeps, k, i, to);
          for (int r = 0; r < rows; ++r) {
            for (Eigen::Index c = 0; c < columns; ++c) {
              sum(to * rows + r, c) += gain * of(i * rows + r, c);
            }
          }
        }
      }
    };
    Wide z = applied(one.z);
    for (Eigen::Index i = 0; i < own; ++i) {
      for (Eigen::Index c = 0; c < columns; ++c) out.z(k * own + i, c) = z(i, c) / Quadruple(root);
    }
    if (one.damped.rows() > 0) out.damped.middleRows(k * n, n) = applied(one.damped);
    add_shared(applied(one.delta), l.n, 1.0, out.delta);
    add_shared(applied(one.y), l.p, 1.0 / l.substeps, out.y);
    out.moved += applied(one.moved);
    start = out.moved;
    for (Eigen::Index i = 0; i < n; ++i) start(i, i) += 1;
  }
  return out;
}

/// Of all substeps: states and inputs of their stages, ports of the step's.
Structure structure_of(const StageLayout& l, const StageRule& stages, const Structure& part) {
  Structure all = Structure::zero(l.states(), l.ports() + l.inputs());
  const double root = std::sqrt(static_cast<double>(l.substeps));
  for (int node = 0; node < l.substeps * l.stages; ++node) {
    const int k = node / l.stages, i = node % l.stages;
    // Column j of the part, ports first: where it stands, and with what factor.
    const auto for_input = [&](int j, const auto& put) {
      if (j >= l.p) return put(l.ports() + node * l.q + (j - l.p), 1.0);
      for (int of = 0; of < l.stages; ++of) {
        put(l.port(of, j), substep_share(stages, l.substeps, k, i, of) / root);
      }
    };
    const auto add = [&](const SparseMatrix& from, SparseMatrix& to, bool rows_are_inputs,
                         bool columns_are_inputs) {
      for (int c = 0; c < from.outerSize(); ++c) {
        for (SparseMatrix::InnerIterator it(from, c); it; ++it) {
          const int r = static_cast<int>(it.row());
          if (rows_are_inputs && columns_are_inputs && r < l.p && c < l.p) continue;  // below
          const auto put_row = [&](int column, double gain) {
            if (!rows_are_inputs) {
              to.coeffRef(node * l.n + r, column) += gain * it.value();
            } else {
              for_input(r, [&](int row, double own) {
                to.coeffRef(row, column) += own * gain * it.value();
              });
            }
          };
          if (columns_are_inputs) {
            for_input(c, put_row);
          } else {
            put_row(node * l.n + c, 1.0);
          }
        }
      }
    };
    add(part.J, all.J, false, false);
    add(part.R, all.R, false, false);
    add(part.G, all.G, false, true);
    add(part.P, all.P, false, true);
    add(part.S, all.S, true, true);
    add(part.N, all.N, true, true);
  }
  // Between ports ΣVᵀV/m = I leaves what each stage has with itself.
  for (const auto& [from, to] : {std::pair(&part.S, &all.S), std::pair(&part.N, &all.N)}) {
    for (int c = 0; c < l.p; ++c) {
      for (SparseMatrix::InnerIterator it(*from, c); it; ++it) {
        const int r = static_cast<int>(it.row());
        for (int of = 0; r < l.p && of < l.stages; ++of) {
          to->coeffRef(l.port(of, r), l.port(of, c)) += it.value();
        }
      }
    }
  }
  for (SparseMatrix* M : {&all.J, &all.R, &all.G, &all.P, &all.S, &all.N}) M->makeCompressed();
  return all;
}

/// Ports closed by αu + βy = s a, which makes maps of (x, a, ū).
template <class Scalar>
LinearStages::Maps close_ports(const OpenStages& open, const StageLayout& l,
                               const std::vector<PortClosure>& closures, bool with_increments,
                               bool with_damped) {
  using Dense = typename PlainLu<Scalar>::Dense;
  const Eigen::Index n = l.n, p = l.ports(), q = l.inputs(), columns = n + p + q;
  const Dense y = open.y.cast<Scalar>();
  Dense lhs(p, p), rhs = Dense::Zero(p, columns), u(p, columns);
  for (Eigen::Index j = 0; j < p; ++j) {
    const PortClosure& port = closures[static_cast<std::size_t>(j)];
    const Scalar beta = Scalar(port.beta);
    for (Eigen::Index k = 0; k < p; ++k) lhs(j, k) = beta * y(j, n + k);
    lhs(j, j) += Scalar(port.alpha);
    for (Eigen::Index k = 0; k < n; ++k) rhs(j, k) = -beta * y(j, k);
    rhs(j, n + j) = Scalar(port.s);
    for (Eigen::Index k = n + p; k < columns; ++k) rhs(j, k) = -beta * y(j, k);
  }
  if (p > 0) {
    PlainLu<Scalar> lu(p);
    lu.compute(lhs);
    lu.solve(rhs, u);
  }
  const auto closed = [&](const Wide& open_map) -> Matrix {
    // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): a copy for one of the two types
    const Dense of = open_map.cast<Scalar>();
    Dense out = of.middleCols(n, p).lazyProduct(u);
    for (Eigen::Index i = 0; i < of.rows(); ++i) {
      for (Eigen::Index k = 0; k < n; ++k) out(i, k) += of(i, k);
      for (Eigen::Index k = n + p; k < columns; ++k) out(i, k) += of(i, k);
    }
    return out.template cast<double>();
  };
  const Matrix of_x = closed(open.moved);
  const OutgoingWaves waves =
      outgoing_waves(closures, u.template cast<double>(), closed(open.y), n);
  return {.step = {.Phi_minus_I = of_x.leftCols(n),
                   .Psi = of_x.middleCols(n, p),
                   .Psi_u = of_x.rightCols(q),
                   .C = waves.C,
                   .D_minus_sigma = waves.D_minus_sigma,
                   .C_u = waves.C_u,
                   .sigma = waves.sigma},
          .z = closed(open.z),
          .increments = with_increments ? closed(open.delta) : Matrix(),
          .damped = with_damped && open.damped.rows() > 0 ? closed(open.damped) : Matrix()};
}

/// Structures are read by position.
Structure compressed(Structure structure) {
  for (SparseMatrix* M :
       {&structure.J, &structure.R, &structure.G, &structure.P, &structure.S, &structure.N}) {
    M->makeCompressed();
  }
  return structure;
}

}  // namespace

struct LinearStages::Impl {
  StageLayout layout;
  Structure structure;
  OpenStages open;
  bool has_damped_rows = false;  ///< what is damped is not all that the step moves

  Impl(const StagedForm& form, const SparseMatrix& Q, double step_s)
      : layout(form.layout), structure(compressed(form.structure)), open(form, Q, step_s) {}

  /// `form` is that of one substep.
  Impl(const StagedForm& form, const LinearPortHamiltonian& part, const StageRule& stages,
       int substeps, double step_s)
      : Impl(form, part.Q(), step_s / substeps) {
    has_damped_rows = stages.count * substeps > 1 || stages.conserved != 0;
    if (substeps == 1) return;
    layout.substeps = substeps;
    structure = compressed(structure_of(layout, stages, part.structure()));
    open = repeated(open, layout, stages);
  }
};

LinearStages::LinearStages(const LinearPortHamiltonian& part, const StageRule& stages, int substeps,
                           double step_s)
    : impl_(std::make_unique<Impl>(StagedForm(part, stages), part, stages, substeps, step_s)) {}
LinearStages::~LinearStages() = default;
LinearStages::LinearStages(LinearStages&&) noexcept = default;
LinearStages& LinearStages::operator=(LinearStages&&) noexcept = default;

const StageLayout& LinearStages::layout() const { return impl_->layout; }
const Structure& LinearStages::structure() const { return impl_->structure; }

LinearStages::Maps LinearStages::closed(const std::vector<PortClosure>& closures,
                                        bool with_increments) const {
  // The cube of the ports: in the digits that are emulated only where there are few.
  constexpr int kFewPorts = 24;
  return impl_->layout.ports() <= kFewPorts
             ? close_ports<Quadruple>(impl_->open, impl_->layout, closures, with_increments,
                                      impl_->has_damped_rows)
             : close_ports<long double>(impl_->open, impl_->layout, closures, with_increments,
                                        impl_->has_damped_rows);
}

}  // namespace portwave
