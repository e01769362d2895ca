#include "stages/stage_equations.hpp"

#include <cmath>
#include <cstddef>
#include <utility>

#include "descriptor/descriptor_batch.hpp"
#include "linear/plain_lu.hpp"
#include "matrices/quadruple.hpp"
#include "portwave/subsystems/descriptor/descriptor.hpp"
#include "portwave/subsystems/descriptor/descriptor_part.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"

namespace portwave {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

/// What the ports are closed by, of all stages; stages do not mix.
struct StageClosure {
  SparseMatrix C_pQ;  // sp×sn
  SparseMatrix D_p;   // sp×sp
  SparseMatrix D_x;   // sp×sq
  SparseMatrix K;     // M⁻¹β
  SparseMatrix M_inv_s;

  StageClosure(const StageEquations& of, const std::vector<PortClosure>& closures) {
    const Structure& st = of.part->structure();
    const int p = of.layout.p;
    const SparseMatrix D = SparseMatrix(st.S + st.N).topRows(p);
    C_pQ = of.at_all_stages(SparseMatrix((st.G + st.P).transpose()).topRows(p) * *of.Q);
    D_p = of.of_ports(D);
    D_x = of.of_inputs(D);
    const Matrix own = Matrix(D.leftCols(p));
    SparseEntries k, source;
    for (int i = 0; i < of.layout.stages && p > 0; ++i) {
      Matrix M(p, p);
      for (int j = 0; j < p; ++j) {
        const PortClosure& port = closures[static_cast<std::size_t>(of.layout.port(i, j))];
        M.row(j) = port.beta * own.row(j);
        M(j, j) += port.alpha;
      }
      const Matrix inverse = lu_inverse(M);
      for (int r = 0; r < p; ++r) {
        for (int c = 0; c < p; ++c) {
          const PortClosure& port = closures[static_cast<std::size_t>(of.layout.port(i, c))];
          const int row = of.layout.port(i, r), column = of.layout.port(i, c);
          if (inverse(r, c) == 0.0) continue;
          k.emplace_back(row, column, inverse(r, c) * port.beta);
          source.emplace_back(row, column, inverse(r, c) * port.s);
        }
      }
    }
    K.resize(of.layout.ports(), of.layout.ports());
    M_inv_s.resize(of.layout.ports(), of.layout.ports());
    K.setFromTriplets(k.begin(), k.end());
    M_inv_s.setFromTriplets(source.begin(), source.end());
  }
};

/// The outgoing waves alone, by one transposed solve per port and stage. X solves
///   (Ω̃ ⊗ E/h − W)X = (Ω̃√b ⊗ E/h)x + B_a a + B_u ū,   X = √b ⊗ x + D.
OutgoingWaves waves_by_solves(const StageEquations& of, const ClosedStages& step,
                              const SparseMatrix& lhs, const StageClosure& closure,
                              const std::vector<PortClosure>& closures, double step_s) {
  const StageLayout& l = of.layout;
  const Eigen::Index n = l.n, p = l.ports(), q = l.inputs();
  RefinedSolves solves(step.lhs, lhs);
  const Vector start =
      of.omega * Eigen::Map<const Vector>(of.weight.data(), l.stages) / step_s;  // Ω̃√b/h
  const SparseMatrix seen = closure.C_pQ.transpose();
  Matrix at_ports(p, n + p + q);
  for (Eigen::Index j = 0; j < p; ++j) {
    const Vector row = solves.solve_transposed(Vector(seen.col(j)));
    Vector of_x = Vector::Zero(n);
    for (int i = 0; i < l.stages; ++i) of_x += start[i] * row.segment(i * n, n);
    if (of.E != nullptr) of_x = Vector(of.E->transpose() * of_x);
    at_ports.row(j).head(n) = of_x.transpose();
    at_ports.row(j).segment(n, p) = (step.B_a.transpose() * row).transpose();
    at_ports.row(j).tail(q) = (step.B_u.transpose() * row).transpose();
  }
  Matrix u = -(closure.K * at_ports);
  u.middleCols(n, p) += Matrix(closure.M_inv_s);
  u.rightCols(q) -= Matrix(closure.K * closure.D_x);
  Matrix y = at_ports + closure.D_p * u;
  y.rightCols(q) += Matrix(closure.D_x);
  return outgoing_waves(closures, u, y, n);
}

/// By long double: Ω is used, A is what is known.
Matrix inverse_of(const StageRule& stages) {
  PlainLu<long double>::Dense A(stages.count, stages.count);
  for (int i = 0; i < stages.count; ++i) {
    for (int j = 0; j < stages.count; ++j) {
      A(i, j) = stages.A[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
    }
  }
  PlainLu<long double> lu(stages.count);
  lu.compute(A);
  return lu.inverse().cast<double>();
}

}  // namespace

StageEquations::StageEquations(const Subsystem& of_part, const StageRule& stages)
    : part(&of_part),
      layout{stages.count, of_part.signature().state_size(), of_part.signature().wave_size(),
             of_part.signature().input_size()},
      E(of_part.linear_form().E),
      Q(of_part.linear_form().Q),
      kernel(nullptr),
      omega(inverse_of(stages)),
      to_end(stages.count),
      to_last(stages.count),
      damped(stages.count) {
  const Structure& st = of_part.structure();
  if (E != nullptr) {
    const auto* const own = dynamic_cast<const DescriptorPortHamiltonian*>(&of_part);
    if (own->kernel().cols() > 0) kernel = &own->kernel();
    rate = descriptor_rate(st.J, st.R, *Q);
  } else {
    rate = SparseMatrix(st.J - st.R) * *Q;
  }
  for (int i = 0; i < stages.count; ++i) {
    weight.push_back(std::sqrt(stages.b[static_cast<std::size_t>(i)]));
  }
  const Eigen::Map<const Vector> root(weight.data(), stages.count);
  omega = root.asDiagonal() * omega * root.cwiseInverse().asDiagonal();
  to_end = omega.transpose() * root;
  damped = std::sqrt(2.0 * stages.damping) *
           (omega.transpose() * Eigen::Map<const Vector>(stages.top.data(), stages.count));
  for (int j = 0; j < stages.count; ++j) to_last[j] = stages.lagrange(j, 1.0) / root[j];
}

SparseMatrix StageEquations::inertia(double factor) const {
  SparseMatrix identity(layout.n, layout.n);
  identity.setIdentity();
  SparseEntries entries;
  for (int i = 0; i < layout.stages; ++i) {
    for (int j = 0; j < layout.stages; ++j) {
      append_block(E != nullptr ? *E : identity, i * layout.n, j * layout.n, entries,
                   factor * omega(i, j));
    }
  }
  return sparse_matrix(layout.states(), layout.states(), entries);
}

SparseMatrix StageEquations::at_all_stages(const SparseMatrix& M) const {
  SparseEntries entries;
  const int rows = static_cast<int>(M.rows()), columns = static_cast<int>(M.cols());
  for (int i = 0; i < layout.stages; ++i) append_block(M, i * rows, i * columns, entries);
  return sparse_matrix(layout.stages * rows, layout.stages * columns, entries);
}

ClosedStages::ClosedStages(const StageEquations& of, const std::vector<PortClosure>& closures,
                           double step_s, bool dense) {
  const Structure& st = of.part->structure();
  const SparseMatrix in = st.G - st.P;
  const SparseMatrix B_p = of.of_ports(in);
  const StageClosure closure(of, closures);
  W = of.at_all_stages(of.rate);
  const bool has_ports = of.layout.p > 0;
  if (has_ports) W -= SparseMatrix(B_p * SparseMatrix(closure.K * closure.C_pQ));
  const SparseMatrix matrix = of.inertia(1.0 / step_s) - W;
  B_a = B_p * closure.M_inv_s;
  B_u = of.of_inputs(in);
  if (has_ports) B_u -= SparseMatrix(B_p * SparseMatrix(closure.K * closure.D_x));
  bool regular = lhs.factorise(matrix);
  if (regular && dense) {
    const SparseMatrix inertia = of.inertia(0.5);
    const SparseMatrix B_x = of.of_inputs(in);
    SparseMatrix B(of.layout.states(), of.layout.ports() + of.layout.inputs());
    SparseEntries entries;
    append_block(B_p, 0, 0, entries);
    append_block(B_x, 0, of.layout.ports(), entries);
    B.setFromTriplets(entries.begin(), entries.end());
    ClosedStepMaps maps = closed_descriptor_step({.E = &inertia,
                                                  .JR = of.at_all_stages(st.J - st.R),
                                                  .Q = of.at_all_stages(*of.Q),
                                                  .B = B,
                                                  .C = SparseMatrix(B.transpose()),
                                                  .D = SparseMatrix(B.cols(), B.cols()),
                                                  .closures = closures,
                                                  .step_s = step_s,
                                                  .weights = of.weight},
                                                 closure.C_pQ, lhs);
    map = maps.delta;
    waves = OutgoingWaves(maps.outgoing, std::move(maps.sigma), of.layout.n);
  } else if (regular) {
    waves = waves_by_solves(of, *this, matrix, closure, closures, step_s);
  }
  regular = regular && waves.C.allFinite() && waves.D.allFinite() && waves.C_u.allFinite() &&
            map.allFinite();
  if (!regular) throw ConfigError("", "the implicit step is singular at this step size");
}

}  // namespace portwave
