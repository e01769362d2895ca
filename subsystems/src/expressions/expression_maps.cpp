#include "expressions/expression_maps.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/port_closure.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"

namespace portwave {

namespace bent {

const KernelsOfWidths& kernels() { return PORTWAVE_KERNELS(kBent); }

}  // namespace bent

namespace {
namespace expression_maps {

using Matrix = Eigen::MatrixXd;

/// 1 where the matrix has an entry, else 0.
Matrix places_of(const SparseMatrix& M) {
  Matrix out = Matrix::Zero(M.rows(), M.cols());
  for (int j = 0; j < M.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(M, j); it; ++it) out(it.row(), it.col()) = 1.0;
  }
  return out;
}

Matrix inverse(const Matrix& M) { return M.rows() == 0 ? Matrix(M) : lu_inverse(M); }

}  // namespace expression_maps
}  // namespace

ExpressionMaps::ExpressionMaps(const Subsystem& part, const SplitEnergy& energy)
    : energy_(energy),
      n_(part.signature().state_size()),
      p_(part.signature().wave_size()),
      q_(part.signature().input_size()),
      r_(static_cast<int>(energy.bent().size())) {
  lay_out();
  lay_out_entries(part.structure());
  set_layout();
}

/// The places that the matrices have, also where the number of this part is 0.
void ExpressionMaps::lay_out_entries(const Structure& of) {
  using expression_maps::Matrix, expression_maps::places_of;
  const auto set = [this](const Matrix& places, Entries& entries) {
    for (int j = 0; j < static_cast<int>(places.cols()); ++j) {
      for (int i = 0; i < static_cast<int>(places.rows()); ++i) {
        if (places(i, j) != 0.0) entries.push_back({i, j, block(1, 1).begin});
      }
    }
  };
  set(places_of(of.R), R_entries_);
  set(places_of(of.P), P_entries_);
  set(places_of(of.S), S_entries_);
  set((places_of(of.G) + places_of(of.P)).transpose().bottomRows(q_), external_out_);
  set((places_of(of.S) + places_of(of.N)).bottomRows(q_), external_through_);
}

bool ExpressionMaps::has_entries_of(const ExpressionMaps& other) const {
  using Lists = std::array<const Entries*, 5>;
  const auto lists = [](const ExpressionMaps& of) {
    return Lists{&of.R_entries_, &of.P_entries_, &of.S_entries_, &of.external_out_,
                 &of.external_through_};
  };
  const auto is_same = [](const bent::Entry& a, const bent::Entry& b) {
    return a.row == b.row && a.column == b.column;
  };
  const Lists own = lists(*this), others = lists(other);
  for (std::size_t k = 0; k < own.size(); ++k) {
    if (!std::ranges::equal(*own[k], *others[k], is_same)) return false;
  }
  return true;
}

ExpressionMaps::Block ExpressionMaps::block(int rows, int columns) {
  Block out{coefficient_count, rows, columns};
  coefficient_count += rows * columns;
  return out;
}

int ExpressionMaps::room(int count) {
  const int begin = record_count;
  record_count += count;
  return begin;
}

void ExpressionMaps::lay_out() {
  of_gradient = block(n_, n_);
  of_input = block(n_, q_);
  of_wave = block(n_, p_);
  of_mean = block(n_, r_);
  b_of_gradient = block(p_, n_);
  b_of_offset = block(p_, n_);
  b_of_input = block(p_, q_);
  b_of_wave = block(p_, p_);
  b_of_mean = block(p_, r_);
  u_of_a = block(p_, 1);
  u_of_b = block(p_, 1);
  Q = block(n_, n_);
  constants = block(n_, 1);
  weight = block(1, 1);
  state = room(n_);
  input = room(q_);
  offset = room(n_);  // d⁰
  b_offset = room(p_);
  warm = room(r_);
  is_one = energy_.taylor_degree() > 0 || (r_ == 1 && energy_.closed_mean().results() > 0);
  bent_slope = room(is_one ? std::max(2, energy_.taylor_degree()) : energy_.slope_count());
  if (!energy_.is_exact()) V = room(1);
}

void ExpressionMaps::set_layout() {
  const auto shared = [](const std::vector<bent::Entry>& entries) {
    return bent::Entries{entries.data(), static_cast<int>(entries.size())};
  };
  bent::Layout& l = layout;
  l.coefficient_count = coefficient_count;
  l.record_count = record_count;
  l.states = n_;
  l.ports = p_;
  l.inputs = q_;
  l.bent = r_;
  l.bent_states = energy_.bent().data();
  l.constants = constants.begin;
  l.weight = weight.begin;
  l.Q = Q.begin;
  l.R = shared(R_entries_);
  l.P = shared(P_entries_);
  l.S = shared(S_entries_);
  l.outputs = shared(external_out_);
  l.through = shared(external_through_);
  l.of_gradient = of_gradient.begin;
  l.of_input = of_input.begin;
  l.of_wave = of_wave.begin;
  l.of_mean = of_mean.begin;
  l.b_of_gradient = b_of_gradient.begin;
  l.b_of_offset = b_of_offset.begin;
  l.b_of_input = b_of_input.begin;
  l.b_of_wave = b_of_wave.begin;
  l.b_of_mean = b_of_mean.begin;
  l.u_of_a = u_of_a.begin;
  l.u_of_b = u_of_b.begin;
  l.state = state;
  l.input = input;
  l.offset = offset;
  l.b_offset = b_offset;
  l.increment = warm;
  l.frozen[0] = &programs_[0];
  l.frozen[1] = &programs_[1];
  if (r_ == 0) return;
  const bool is_series = energy_.taylor_degree() > 0;
  programs_[0] = is_series ? energy_.taylor_program() : energy_.slopes_program();
  l.frozen_to[0] = bent_slope;
  if (!energy_.is_exact()) {
    programs_[1] = energy_.value_program();
    l.frozen_to[1] = V;
  }
  l.is_one = is_one;
  l.taylor = bent_slope;
  l.degree = energy_.taylor_degree();
  if (!is_one || is_series) return;
  mean_of_ = energy_.closed_mean().program();
  l.mean_of = &mean_of_;
}

/// K = (I − h/2 A Q)⁻¹ h with the closed loop A.
std::vector<double> ExpressionMaps::coefficients(const Subsystem& part, const SplitEnergy& energy,
                                                 double step_s,
                                                 const std::vector<double>& impedance) const {
  using expression_maps::inverse, expression_maps::Matrix;
  const Structure& s = part.structure();
  const Matrix R = s.R, P = s.P, S = s.S;
  const Matrix JR = Matrix(s.J) - R, all_in = Matrix(s.G) - P;
  const Matrix all_out = (Matrix(s.G) + P).transpose(), D = S + Matrix(s.N);
  const std::vector<PortClosure> ports = port_closures(part.signature(), step_s, impedance.data());
  Matrix M = Matrix::Zero(p_, p_), beta = Matrix::Zero(p_, p_), source = Matrix::Zero(p_, p_);
  Matrix per_b = Matrix::Zero(p_, p_), sign = Matrix::Zero(p_, p_);
  for (int j = 0; j < p_; ++j) {
    const PortClosure& port = ports[at(j)];
    M.row(j) = port.beta * D.row(j).head(p_);
    M(j, j) += port.alpha;
    beta(j, j) = port.beta;
    source(j, j) = port.s;
    per_b(j, j) = port.slope;
    sign(j, j) = port.sign;
  }
  const Matrix M_inverse = inverse(M);
  const Matrix in_p = all_in.leftCols(p_), in_x = all_in.rightCols(q_);
  const Matrix out_p = all_out.topRows(p_);
  const Matrix through = D.topRows(p_).rightCols(q_);
  const Matrix back = M_inverse * beta;  // u_p of −(y that the port does not see of itself)
  const Matrix A = JR - in_p * back * out_p;
  const Matrix K = inverse(Matrix::Identity(n_, n_) - 0.5 * step_s * A * energy.Q()) * step_s;
  Matrix bent_states = Matrix::Zero(n_, r_);
  for (int k = 0; k < r_; ++k) bent_states(energy.bent()[at(k)], k) = energy.weight();
  const Matrix wave = K * in_p * M_inverse * source, mean = K * A * bent_states;
  const Matrix L = per_b * back;

  std::vector<double> out(at(coefficient_count));
  const auto put = [&out](const Block& to, const Matrix& what) {
    for (int j = 0; j < to.columns; ++j) {
      for (int i = 0; i < to.rows; ++i) out[at(to.entry(i, j))] = what(i, j);
    }
  };
  const Matrix half = 0.5 * L * out_p * energy.Q();
  put(of_gradient, K * A);
  put(of_input, K * (in_x - in_p * back * through));
  put(of_wave, wave);
  put(of_mean, mean);
  put(b_of_gradient, -(L * out_p));
  put(b_of_offset, -half);
  put(b_of_input, -(L * through));
  put(b_of_wave, sign + per_b * M_inverse * source - half * wave);
  put(b_of_mean, -(L * out_p * bent_states) - half * mean);
  for (int j = 0; j < p_; ++j) {
    const PortClosure& port = ports[at(j)];
    out[at(u_of_a.entry(j, 0))] = port.input(1.0, 0.0);
    out[at(u_of_b.entry(j, 0))] = port.input(0.0, 1.0);
  }
  put(constants, energy.c());
  out[at(weight.begin)] = energy.weight();
  const auto put_entries = [&out](const Entries& entries, const Matrix& what) {
    for (const bent::Entry& entry : entries) out[at(entry.place)] = what(entry.row, entry.column);
  };
  put(Q, energy.Q());
  put_entries(R_entries_, R);
  put_entries(P_entries_, P);
  put_entries(S_entries_, S);
  put_entries(external_out_, all_out.bottomRows(q_));
  put_entries(external_through_, D.bottomRows(q_));
  const bool finite = std::ranges::all_of(out, [](double value) { return std::isfinite(value); });
  if (!finite) throw ConfigError("", "the implicit step is singular at this impedance");
  return out;
}

}  // namespace portwave
