#include "portwave/coupling/network/linearisation.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include <Eigen/LU>
#include <fmt/format.h>

#include "network/elimination.hpp"
#include "network/linearised_part.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/typical_state.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"

namespace portwave {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using elimination::clean_product;
using elimination::Cluster;
using elimination::clusters_of;
using elimination::Elimination;
using elimination::matrix;
using elimination::Triplet;
using elimination::Triplets;
using elimination::without_rounding;
using linearisation::Block;
using linearisation::Realisation;

class NotFound : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The equations
///   E ẋ = f(x, w, u),   0 = c(x, w, u),
/// w being the efforts of all scalar ports and then the flows. The algebraic ones are the outputs of
/// the parts, one per scalar port, and the rows of the junctions, as many again.
class Equations {
 public:
  /// `moves`: inputs change while ties between states are kept.
  explicit Equations(const System& system, const OperatingPoint& point, bool moves = false)
      : system_(system) {
    settings_ = point.input.empty() ? system.initial_settings() : point.input;
    int states = 0;
    for (const Part& part : system.parts()) {
      states += part.component->signature().state_size();
    }
    ports_ = static_cast<int>(system.scalar_ports().size());
    linearisation::check(system, point, states);
    std::vector<double> x = point.state;
    if (x.empty()) {
      for (const Part& part : system.parts()) {
        x.insert(x.end(), part.initial_state.begin(), part.initial_state.end());
      }
    }
    int state = 0;
    for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
      const Part& part = system.parts()[at(i)];
      blocks_.emplace_back(part, i, state, system.first_scalar_port(i), x.data() + state);
      state += blocks_.back().n;
      Block& own = blocks_.back();
      for (Eigen::Index j = 0; j < own.external.size(); ++j) {
        const auto channel = static_cast<std::size_t>(j);
        if (!part.input_is_driven[channel]) continue;
        own.external[j] = part.inputs[channel].at(point.time_s, settings_);
      }
    }
    states_ = state;
    w_ = VectorXd::Zero(2 * ports_);
    for (int j = 0; j < ports_ && !point.effort.empty(); ++j) w_[j] = point.effort[at(j)];
    for (int j = 0; j < ports_ && !point.flow.empty(); ++j) w_[ports_ + j] = point.flow[at(j)];
    if (moves) find_input_rate(point.time_s);
    find_waves();
  }

  /// Empty where something is left open.
  std::optional<PortValues> values() {
    if (!is_determined_ || has_descriptor()) return std::nullopt;
    constexpr double kAtOdds = 1e-9;
    const VectorXd left = residual().tail(2 * ports_).cwiseAbs();
    const VectorXd terms = algebraic_jacobian().cwiseAbs() * w_.cwiseAbs();
    // What inputs move by in so short a time is no violation of a tie.
    const double moved =
        input_rate_.size() == 0 ? 0.0 : kShort_s * input_rate_.cwiseAbs().maxCoeff();
    if (!w_.allFinite() || !(left.array() <= kAtOdds * terms.array() + moved).all()) {
      return std::nullopt;
    }
    return PortValues{{w_.begin(), w_.begin() + ports_}, {w_.begin() + ports_, w_.end()}};
  }

  Linearisation at_this_point(const std::vector<LinearOutput>& outputs) {
    const Jacobians own = differentiate();
    std::optional<Response> response = respond(own, Elimination(own.cw));
    Linearisation out;
    out.input =
        Eigen::Map<const VectorXd>(settings_.data(), static_cast<Eigen::Index>(settings_.size()));
    if (response) {
      const SparseMatrix& T = response->recover;
      const SparseMatrix A = T.cols() == states_
                                 ? SparseMatrix(own.fx + own.fw * response->x)
                                 : clean_product(own.fx, T) + clean_product(own.fw, response->x);
      const SparseMatrix keep = selection(response->kept);
      out.E = keep * mass() * T;
      out.A = keep * A;
      out.B = keep * (own.fu + own.fw * response->u);
      out.state = keep * x();
      out.rate = keep * residual().head(states_);
      out.recover = T;
    } else {
      extend(own, out);
    }
    name(out, response ? &response->kept : nullptr);
    out.is_explicit = response && !has_descriptor();
    observe(outputs, response, out);
    return out;
  }

 private:
  /// How efforts and flows follow: δw = x δξ + u δu, ξ being the states that are kept, and all states
  /// recover · ξ.
  struct Response {
    SparseMatrix x, u, recover;
    std::vector<int> kept;
  };

  SparseMatrix selection(const std::vector<int>& kept) const {
    Triplets entries;
    for (int i = 0; i < static_cast<int>(kept.size()); ++i)
      entries.emplace_back(i, kept[at(i)], 1.0);
    return matrix(static_cast<Eigen::Index>(kept.size()), states_, entries);
  }
  bool has_descriptor() const {
    return std::ranges::any_of(blocks_, [](const Block& block) { return block.form.E != nullptr; });
  }
  struct Jacobians {
    SparseMatrix fx, fw, fu, cx, cw, cu;
  };

  int input_at(const Block& b, int j) const {
    return b.effort_in[at(j)] ? b.port + j : ports_ + b.port + j;
  }
  int output_at(const Block& b, int j) const {
    return b.effort_in[at(j)] ? ports_ + b.port + j : b.port + j;
  }
  VectorXd inputs(const Block& b) const {
    VectorXd u(b.p + b.external.size());
    for (int j = 0; j < b.p; ++j) u[j] = w_[input_at(b, j)];
    u.tail(b.external.size()) = b.external;
    return u;
  }
  /// Of a port with a vertical law, which feeds nothing through besides.
  PortLawPoint point_of(const Block& b, int j) const {
    const double sum = w_[input_at(b, j)] + w_[output_at(b, j)];
    const double* const external = b.external.size() > 0 ? b.external.data() : nullptr;
    return b.part->port_law_point(j, 1.0, 1.0, sum, external);
  }
  VectorXd x() const {
    VectorXd out(states_);
    for (const Block& b : blocks_) out.segment(b.state, b.n) = b.x;
    return out;
  }

  /// (f, c) at this point.
  VectorXd residual() const {
    VectorXd out = VectorXd::Zero(states_ + 2 * ports_);
    for (const Block& b : blocks_) {
      const VectorXd u = inputs(b);
      out.segment(b.state, b.n) = b.at_x.A * b.g + b.at_x.B * u;
      const VectorXd y = b.at_x.C * b.g + b.at_x.D * u;
      for (int j = 0; j < b.p; ++j) {
        if (b.part->has_vertical_laws()) {
          // u is that of the point of the characteristic with the u + y of here.
          out[states_ + b.port + j] = u[j] - point_of(b, j).u;
          continue;
        }
        double own = y[j];
        if (b.part->has_port_laws()) own += b.part->port_law(j, u[j]).value;
        out[states_ + b.port + j] = w_[output_at(b, j)] - own;
      }
    }
    int row = states_ + ports_;
    for (const Junction& junction : system_.junctions()) {
      const DiracStructure& d = junction.dirac;
      for (int i = 0; i < d.size(); ++i, ++row) {
        for (int j = 0; j < d.size(); ++j) {
          const int port = junction.waves[at(j)];
          out[row] += d.E(i, j) * w_[port] + d.F(i, j) * w_[ports_ + port];
        }
      }
    }
    return out;
  }

  /// ∂c/∂w.
  SparseMatrix algebraic_jacobian() const {
    Triplets entries;
    for (const Block& b : blocks_) {
      for (int j = 0; j < b.p; ++j) {
        if (b.part->has_vertical_laws()) {
          const double share = 1.0 / (1.0 + point_of(b, j).slope);  // of u in u + y
          if (share < 1.0) entries.emplace_back(b.port + j, input_at(b, j), 1.0 - share);
          if (share > 0.0) entries.emplace_back(b.port + j, output_at(b, j), -share);
          continue;
        }
        entries.emplace_back(b.port + j, output_at(b, j), 1.0);
        for (SparseMatrix::InnerIterator it(b.at_x.D, j); it; ++it) {
          if (it.row() >= b.p) continue;
          entries.emplace_back(b.port + static_cast<int>(it.row()), input_at(b, j), -it.value());
        }
        if (!b.part->has_port_laws()) continue;
        const double slope = b.part->port_law(j, w_[input_at(b, j)]).slope;
        entries.emplace_back(b.port + j, input_at(b, j), -slope);
      }
    }
    int row = ports_;
    for (const Junction& junction : system_.junctions()) {
      const DiracStructure& d = junction.dirac;
      for (int i = 0; i < d.size(); ++i, ++row) {
        for (int j = 0; j < d.size(); ++j) {
          const int port = junction.waves[at(j)];
          entries.emplace_back(row, port, d.E(i, j));
          entries.emplace_back(row, ports_ + port, d.F(i, j));
        }
      }
    }
    return matrix(2 * ports_, 2 * ports_, entries);
  }

  /// Empty: there is no form in the states alone.
  ///
  /// Where ∂c/∂w is singular, with N from the left and V from the right, Nᵀ∂c/∂x δx = 0 ties states
  /// to one another, and that it stays so determines what V leaves open of w:
  ///   K (∂f/∂x δx + ∂f/∂w δw + ∂f/∂u δu) = 0,   K = Nᵀ∂c/∂x.
  std::optional<Response> respond(const Jacobians& own, const Elimination& G) const {
    if (!G.is_decomposed()) return std::nullopt;
    Response out;
    std::optional<SparseMatrix> of_x = G.solve(own.cx), of_u = G.solve(own.cu);
    if (!of_x || !of_u) return std::nullopt;
    out.x = *std::move(of_x);
    out.u = *std::move(of_u);
    if (G.is_regular()) {
      out.kept.resize(at(states_));
      std::iota(out.kept.begin(), out.kept.end(), 0);
      out.recover = selection(out.kept);
      return out;
    }
    if (has_descriptor()) return std::nullopt;
    const SparseMatrix Nt = SparseMatrix(G.left_kernel.transpose());
    const SparseMatrix K = clean_product(Nt, own.cx);
    if (clean_product(Nt, own.cu).nonZeros() > 0) return std::nullopt;  // u̇ would count
    const SparseMatrix M = clean_product(K, SparseMatrix(own.fw * G.kernel));
    const Elimination open(M);
    if (!open.is_regular()) return std::nullopt;
    const auto z_of_x = open.solve(K * SparseMatrix(own.fx + own.fw * out.x));
    const auto z_of_u = open.solve(K * SparseMatrix(own.fu + own.fw * out.u));
    if (!z_of_x || !z_of_u || !tie(K, out)) return std::nullopt;
    out.x = clean_product(SparseMatrix(out.x + G.kernel * *z_of_x), out.recover);
    out.u = out.u + G.kernel * *z_of_u;
    return out;
  }

  /// Finds which states follow from which by K δx = 0.
  bool tie(const SparseMatrix& K, Response& out) const {
    std::vector<char> follows(at(states_), 0);
    Triplets recover;
    for (const Cluster& cluster : clusters_of(K)) {
      if (cluster.rows.empty()) continue;
      const auto rows = static_cast<Eigen::Index>(cluster.rows.size());
      const auto columns = static_cast<Eigen::Index>(cluster.columns.size());
      if (rows > columns || rows > 2000) return false;
      MatrixXd own = MatrixXd::Zero(rows, columns);
      const SparseMatrix by_row = SparseMatrix(K.transpose());
      for (Eigen::Index r = 0; r < rows; ++r) {
        for (SparseMatrix::InnerIterator it(by_row, cluster.rows[at(static_cast<int>(r))]); it;
             ++it) {
          const auto c = std::ranges::lower_bound(cluster.columns, static_cast<int>(it.row())) -
                         cluster.columns.begin();
          own(r, c) = it.value();
        }
        own.row(r) /= own.row(r).cwiseAbs().maxCoeff();
      }
      Eigen::FullPivLU<MatrixXd> lu(own);
      lu.setThreshold(1e-12);
      if (lu.rank() != rows) return false;
      const Eigen::VectorXi order = lu.permutationQ().indices();
      MatrixXd tied(rows, rows), free(rows, columns - rows);
      for (Eigen::Index c = 0; c < columns; ++c) {
        (c < rows ? tied.col(c) : free.col(c - rows)) = own.col(order[c]);
      }
      const MatrixXd follow = -tied.fullPivLu().solve(free);
      for (Eigen::Index r = 0; r < rows; ++r) {
        const int state = cluster.columns[at(order[r])];
        follows[at(state)] = 1;
        for (Eigen::Index c = 0; c < free.cols(); ++c) {
          recover.emplace_back(state, cluster.columns[at(order[rows + c])], follow(r, c));
        }
      }
    }
    for (int i = 0; i < states_; ++i) {
      if (follows[at(i)] != 0) continue;
      recover.emplace_back(i, i, 1.0);
      out.kept.push_back(i);
    }
    out.recover = matrix(states_, states_, recover) * SparseMatrix(selection(out.kept).transpose());
    return true;
  }

  /// w with c(x, w, u) = 0, by Newton's method, halving steps that do not help. Where that leaves
  /// something open, what keeps states that are tied together together; else what was given.
  void find_waves() {
    const bool has_laws =
        std::ranges::any_of(blocks_, [](const Block& b) { return b.part->has_port_laws(); });
    const VectorXd given = w_;
    constexpr int kMostSteps = 100;
    for (int step = 0; step < kMostSteps; ++step) {
      const SparseMatrix G = algebraic_jacobian();
      const Elimination elimination(G);
      const VectorXd c = residual().tail(2 * ports_);
      const std::optional<SparseMatrix> change =
          elimination.is_decomposed() ? elimination.solve(c.sparseView(0.0, 0.0)) : std::nullopt;
      if (!change) {
        w_ = given;
        return;
      }
      const VectorXd full = VectorXd(change->col(0));
      const VectorXd start = w_;
      const double scale = start.cwiseAbs().maxCoeff() + full.cwiseAbs().maxCoeff();
      w_ = start + full;
      is_determined_ = elimination.is_regular() || keep_together(elimination);
      if (!has_laws || !elimination.is_regular()) {
        if (step == 1) return;  // the second one refines
        continue;
      }
      const double before = c.norm();
      double share = 1.0;
      while (share > 1e-6 && !(residual().tail(2 * ports_).norm() <= before)) {
        share *= 0.5;
        w_ = start + share * full;
      }
      if (share * full.cwiseAbs().maxCoeff() <= 1e-14 * scale) return;
      if (share <= 1e-6) {  // no step helps: this is round-off, or no solution
        w_ = start;
        if (full.cwiseAbs().maxCoeff() <= 1e-9 * scale) return;
        break;
      }
    }
    throw NotFound("the efforts and flows at this point were not found");
  }

  /// Adds to w what of ∂c/∂w's kernel makes K f = 0.
  bool keep_together(const Elimination& G) {
    const Jacobians own = differentiate();
    const SparseMatrix Nt = SparseMatrix(G.left_kernel.transpose());
    const SparseMatrix K = clean_product(Nt, own.cx);
    const SparseMatrix M = clean_product(K, SparseMatrix(own.fw * G.kernel));
    const Elimination open(M);
    if (!open.is_regular()) return false;
    VectorXd apart = K * residual().head(states_);
    if (input_rate_.size() > 0) apart += Nt * input_rate_;
    const auto z = open.solve(apart.sparseView(0.0, 0.0));
    if (z) w_ += G.kernel * VectorXd(z->col(0));
    return z.has_value();
  }

  /// ∂c/∂t through the inputs, by a forward difference. They act on outputs linearly.
  void find_input_rate(double time_s) {
    constexpr double kRounding = 1e-15;
    const double later_s = time_s + std::max(kShort_s, kRounding / kShort_s * std::abs(time_s));
    input_rate_ = VectorXd::Zero(2 * ports_);
    for (const Block& b : blocks_) {
      VectorXd rate = VectorXd::Zero(b.p + b.external.size());
      for (Eigen::Index j = 0; j < b.external.size(); ++j) {
        const auto channel = static_cast<std::size_t>(j);
        if (!b.placed->input_is_driven[channel]) continue;
        const double later = b.placed->inputs[channel].at(later_s, settings_);
        rate[b.p + j] = (later - b.external[j]) / (later_s - time_s);
      }
      input_rate_.segment(b.port, b.p) = -(b.at_x.D * rate).head(b.p);
    }
  }

  Jacobians differentiate() const {
    Triplets fx, fw, fu, cx, cu;
    for (const Block& b : blocks_) {
      const SparseMatrix H = b.hessian();
      append_block(b.at_x.A * H, b.state, b.state, fx);
      append_block(SparseMatrix(-(b.at_x.C * H)).topRows(b.p), b.port, b.state, cx);
      if (!b.part->constant_structure()) add_structure_slope(b, fx, cx);
      for (int j = 0; j < b.p; ++j) {
        for (SparseMatrix::InnerIterator it(b.at_x.B, j); it; ++it) {
          fw.emplace_back(b.state + static_cast<int>(it.row()), input_at(b, j), it.value());
        }
      }
      for (int j = 0; j < static_cast<int>(b.external.size()); ++j) {
        const int slot = b.placed->input_is_driven[at(j)] ? b.placed->inputs[at(j)].slot() : -1;
        if (slot < 0) continue;
        for (SparseMatrix::InnerIterator it(b.at_x.B, b.p + j); it; ++it) {
          fu.emplace_back(b.state + static_cast<int>(it.row()), slot, it.value());
        }
        for (SparseMatrix::InnerIterator it(b.at_x.D, b.p + j); it; ++it) {
          if (it.row() < b.p) {
            cu.emplace_back(b.port + static_cast<int>(it.row()), slot, -it.value());
          }
        }
      }
    }
    const auto inputs = static_cast<Eigen::Index>(settings_.size());
    return {matrix(states_, states_, fx), matrix(states_, 2 * ports_, fw),
            matrix(states_, inputs, fu),  matrix(2 * ports_, states_, cx),
            algebraic_jacobian(),         matrix(2 * ports_, inputs, cu)};
  }

  /// What comes through a structure that depends on the state, by central differences.
  void add_structure_slope(const Block& b, Triplets& fx, Triplets& cx) const {
    const VectorXd u = inputs(b);
    const std::vector<double> typical = b.part->typical_state();
    VectorXd moved = b.x;
    for (int c = 0; c < b.n; ++c) {
      const double reach = difference_step(typical[at(c)], b.x[c]);
      moved[c] = b.x[c] + reach;
      const double above = moved[c];
      const Realisation ahead = b.realisation(moved);
      moved[c] = b.x[c] - reach;
      const double width = above - moved[c];
      const Realisation back = b.realisation(moved);
      moved[c] = b.x[c];
      const VectorXd rate = (ahead.A * b.g + ahead.B * u - back.A * b.g - back.B * u) / width;
      const VectorXd y = (ahead.C * b.g + ahead.D * u - back.C * b.g - back.D * u) / width;
      for (int i = 0; i < b.n; ++i) fx.emplace_back(b.state + i, b.state + c, rate[i]);
      for (int j = 0; j < b.p; ++j) cx.emplace_back(b.port + j, b.state + c, -y[j]);
    }
  }

  /// diag(Eᵢ) of the parts.
  SparseMatrix mass() const {
    Triplets entries;
    for (const Block& b : blocks_) {
      if (b.form.E != nullptr) {
        append_block(*b.form.E, b.state, b.state, entries);
        continue;
      }
      for (int i = 0; i < b.n; ++i) entries.emplace_back(b.state + i, b.state + i, 1.0);
    }
    return matrix(states_, states_, entries);
  }

  /// With efforts and flows as further variables.
  void extend(const Jacobians& own, Linearisation& out) const {
    const int size = states_ + 2 * ports_;
    Triplets E, A, B;
    append_block(mass(), 0, 0, E);
    append_block(own.fx, 0, 0, A);
    append_block(own.fw, 0, states_, A);
    append_block(own.cx, states_, 0, A);
    append_block(own.cw, states_, states_, A);
    append_block(own.fu, 0, 0, B);
    append_block(own.cu, states_, 0, B);
    out.E = matrix(size, size, E);
    out.A = matrix(size, size, A);
    out.B = matrix(size, static_cast<Eigen::Index>(settings_.size()), B);
    out.state.resize(size);
    out.state << x(), w_;
    out.rate = residual();
    out.recover = matrix(states_, size, [this] {
      Triplets entries;
      for (int i = 0; i < states_; ++i) entries.emplace_back(i, i, 1.0);
      return entries;
    }());
  }

  /// `kept`: null: all states, and efforts and flows.
  void name(Linearisation& out, const std::vector<int>* kept) const {
    std::vector<std::string> all;
    for (const Block& b : blocks_) {
      for (const StateVariable& state : b.part->signature().states) {
        all.push_back(b.placed->name + "." + state.name);
      }
    }
    for (int i = 0; kept != nullptr && i < static_cast<int>(kept->size()); ++i) {
      out.state_names.push_back(all[at((*kept)[at(i)])]);
    }
    if (kept == nullptr) out.state_names = std::move(all);
    for (int i = 0; kept == nullptr && i < 2 * ports_; ++i) {
      out.state_names.push_back(system_.port_label(i % ports_) +
                                (i < ports_ ? ".effort" : ".flow"));
    }
    for (const System::SettableInput& input : system_.settable_inputs()) {
      out.input_names.push_back(system_.input_label(input));
    }
  }

  void observe(const std::vector<LinearOutput>& outputs, const std::optional<Response>& response,
               Linearisation& out) const {
    Triplets C, D;
    SparseMatrix of_states = SparseMatrix(out.recover.transpose());
    SparseMatrix x_by_row, u_by_row;
    if (response) {
      x_by_row = response->x.transpose();
      u_by_row = response->u.transpose();
    }
    const auto append_row = [](const SparseMatrix& by_row, int from, int row, Triplets& entries) {
      for (SparseMatrix::InnerIterator it(by_row, from); it; ++it) {
        entries.emplace_back(row, static_cast<int>(it.row()), it.value());
      }
    };
    const VectorXd states = x();
    out.output.resize(static_cast<Eigen::Index>(outputs.size()));
    Issues issues;
    for (int i = 0; i < static_cast<int>(outputs.size()); ++i) {
      const LinearOutput& wanted = outputs[at(i)];
      const bool is_state = wanted.kind == LinearOutput::Kind::state;
      const int most = is_state ? states_ : ports_;
      if (wanted.index < 0 || wanted.index >= most) {
        issues.push_back({fmt::format("/outputs/{}", i),
                          fmt::format("there is no {} {}: there are {}",
                                      is_state ? "state" : "scalar port", wanted.index, most)});
        continue;
      }
      if (is_state) {
        append_row(of_states, wanted.index, i, C);
        out.output[i] = states[wanted.index];
        continue;
      }
      const int wave =
          wanted.kind == LinearOutput::Kind::effort ? wanted.index : ports_ + wanted.index;
      out.output[i] = w_[wave];
      if (!response) {
        C.emplace_back(i, states_ + wave, 1.0);
        continue;
      }
      append_row(x_by_row, wave, i, C);
      append_row(u_by_row, wave, i, D);
    }
    throw_if_any(std::move(issues));
    out.C = matrix(out.output.size(), out.A.cols(), C);
    out.D = matrix(out.output.size(), out.B.cols(), D);
  }

  static constexpr double kShort_s = 1e-8;

  const System& system_;
  std::vector<double> settings_;
  std::vector<Block> blocks_;
  int states_ = 0;
  int ports_ = 0;
  VectorXd w_;
  VectorXd input_rate_;  ///< of c; empty: inputs are held
  bool is_determined_ = false;
};

}  // namespace

Linearisation linearised(const System& system, const OperatingPoint& at,
                         const std::vector<LinearOutput>& outputs) {
  return Equations(system, at).at_this_point(outputs);
}

std::optional<PortValues> port_values(const System& system, const OperatingPoint& at) {
  const auto is_known = [](const Part& part) { return part.port_hamiltonian() != nullptr; };
  if (!std::ranges::all_of(system.parts(), is_known)) return std::nullopt;
  try {
    return Equations(system, at, /*moves=*/true).values();
  } catch (const ConfigError&) {  // a state outside of what a part is defined for
    return std::nullopt;
  } catch (const NotFound&) {
    return std::nullopt;
  }
}

}  // namespace portwave
