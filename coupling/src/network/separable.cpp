#include "network/separable.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "network/port_gains.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"
#include "portwave/subsystems/nonlinear/quartic_storage.hpp"

namespace portwave {
namespace {
namespace separable {

constexpr const char* kWaves = "; wave coupling ({\"kind\": \"auto\"}) takes it";
constexpr std::size_t kMostIssues = 8;  ///< of one sort

bool is_identity(const SparseMatrix& m) {
  double diagonal = 0.0;
  for (int j = 0; j < m.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(m, j); it; ++it) {
      if (it.row() == j ? it.value() != 1.0 : it.value() != 0.0) return false;
      if (it.row() == j) diagonal += 1.0;
    }
  }
  return diagonal == static_cast<double>(m.rows());
}

/// Without what is round-off beside `size`, the sum of the terms that an entry was made of.
SparseMatrix beyond_rounding(const SparseMatrix& m, const SparseMatrix& size) {
  SparseMatrix out = m;
  out.prune([&](Eigen::Index i, Eigen::Index j, double value) {
    const auto row = static_cast<int>(i), column = static_cast<int>(j);
    return std::abs(value) > 1e-13 * (size.coeff(row, column) + size.coeff(column, row));
  });
  return out;
}

/// Adds issues of one sort, the first few of them.
class FewIssues {
 public:
  explicit FewIssues(Issues& issues) : issues_(issues) {}
  void add(std::string where, std::string what) {
    if (count_++ < kMostIssues) issues_.push_back({std::move(where), std::move(what)});
  }

 private:
  Issues& issues_;
  std::size_t count_ = 0;
};

/// Two colours of states: J joins unlike ones, H and R like ones.
class Colouring {
 public:
  explicit Colouring(int states) : root_(at(states)), odd_(at(states), 0) {
    std::iota(root_.begin(), root_.end(), 0);
  }
  /// {root, colour beside that of the root}.
  std::pair<int, int> find(int i) {
    int parity = 0;
    while (root_[at(i)] != i) {
      parity ^= odd_[at(i)];
      i = root_[at(i)];
    }
    return {i, parity};
  }
  /// False where it contradicts what was joined before.
  bool join(int a, int b, int unlike) {
    const auto [ra, pa] = find(a);
    const auto [rb, pb] = find(b);
    if (ra == rb) return (pa ^ pb) == unlike;
    const auto [low, high] = std::minmax(ra, rb);
    root_[at(high)] = low;
    odd_[at(high)] = pa ^ pb ^ unlike;
    return true;
  }

 private:
  std::vector<int> root_, odd_;
};

}  // namespace separable
}  // namespace

using separable::beyond_rounding;
using separable::Colouring;
using separable::FewIssues;
using separable::kMostIssues;
using separable::kWaves;

SeparableNetwork::SeparableNetwork(const System& system) : system_(&system) {
  Issues issues;
  int states = 0;
  for (std::size_t i = 0; i < system.parts().size(); ++i) {
    const Part& part = system.parts()[i];
    first_state_.push_back(states);
    const int own = part.component->signature().state_size();
    part_of_state_.insert(part_of_state_.end(), at(own), static_cast<int>(i));
    states += own;
    if (auto defect = wave_only_defect(part, i)) {
      issues.push_back(*std::move(defect));
      continue;
    }
    const Subsystem& physics = *part.port_hamiltonian();
    has_active_ = has_active_ || physics.is_active();
    const std::string where = fmt::format("/subsystems/{}", i);
    if (!physics.constant_structure()) {
      issues.push_back(
          {where, fmt::format("the structure of subsystem {} ({}) depends on its state, and kicks "
                              "and drifts need a constant one{}",
                              in_quotes(part.name), physics.signature().type, kWaves)});
    }
    const LinearForm form = physics.linear_form();
    if (form.E != nullptr && !separable::is_identity(*form.E)) {
      issues.push_back(
          {where, fmt::format("subsystem {} is a descriptor part, d/dt(Ex), and kicks and drifts "
                              "need its states themselves{}",
                              in_quotes(part.name), kWaves)});
    }
    for (std::size_t c = 0; c < part.inputs.size(); ++c) {
      if (part.input_is_driven[c]) {
        inputs.push_back({static_cast<int>(i), static_cast<int>(c), &part.inputs[c]});
      }
    }
  }
  if (states == 0 && issues.empty()) issues.push_back({"/subsystems", "no part has a state"});
  const auto shows_physics = [](const Part& part) { return part.port_hamiltonian() != nullptr; };
  if (!issues.empty() && std::ranges::all_of(system.parts(), shows_physics)) {
    port_gains(system, port_feedthrough(system), issues);  // what is wrong with the couplings, too
  }
  throw_if_any(std::move(issues));
  kind.assign(at(states), SeparableKind::position);
  assemble();
  Issues of_storage;
  find_storage(of_storage);
  throw_if_any(std::move(of_storage));
  find_dead_states();
  colour();
}

std::string SeparableNetwork::label(int state) const {
  const Part& part = system_->parts()[at(part_of(state))];
  return part.name + "." +
         part.component->signature().states[at(state - first_state(part_of(state)))].name;
}

/// A, B, J, R, and the efforts and flows of ports, with u = M (y⁰ + D s) at the ports.
void SeparableNetwork::assemble() {
  const System& system = *system_;
  Issues issues;
  const SparseMatrix D = port_feedthrough(system);
  const SparseMatrix M = port_gains(system, D, issues);
  throw_if_any(std::move(issues));
  effort_in_ = effort_inputs(system);
  const auto n = static_cast<Eigen::Index>(size());
  const auto ports = static_cast<Eigen::Index>(system.scalar_ports().size());
  const auto count = static_cast<Eigen::Index>(inputs.size());
  SparseEntries local, into, out, direct, seen, port_of_s, s_of_port, own_feed;
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    const Subsystem& part = *system.parts()[at(i)].port_hamiltonian();
    const Structure& s = part.structure();
    const int first = first_state(i), port = system.first_scalar_port(i);
    const int p = part.signature().wave_size();
    append_block(s.J - s.R, first, first, local);
    const SparseMatrix in = s.G - s.P, see = s.G + s.P, feed = s.S + s.N;
    append_block(SparseMatrix(in.leftCols(p)), first, port, into);
    append_block(SparseMatrix(see.leftCols(p)), first, port, out);
    for (int k = 0; k < static_cast<int>(inputs.size()); ++k) {
      if (inputs[at(k)].part != i) continue;
      const int column = p + inputs[at(k)].input;
      for (SparseMatrix::InnerIterator it(in, column); it; ++it) {
        direct.emplace_back(first + static_cast<int>(it.row()), k, it.value());
      }
      for (SparseMatrix::InnerIterator it(see, column); it; ++it) {
        seen.emplace_back(first + static_cast<int>(it.row()), k, it.value());
      }
      for (SparseMatrix::InnerIterator it(feed, column); it; ++it) {
        if (it.row() < p) port_of_s.emplace_back(port + static_cast<int>(it.row()), k, it.value());
      }
      for (int j = 0; j < p; ++j) {
        const double value = feed.coeff(column, j);
        if (value != 0.0) s_of_port.emplace_back(port + j, k, value);
      }
      for (int other = 0; other < static_cast<int>(inputs.size()); ++other) {
        if (inputs[at(other)].part != i) continue;
        const double value = feed.coeff(p + inputs[at(other)].input, column);
        if (value != 0.0) own_feed.emplace_back(other, k, value);
      }
    }
  }
  const SparseMatrix into_m = sparse_matrix(n, ports, into), out_m = sparse_matrix(n, ports, out);
  const SparseMatrix out_t = out_m.transpose();
  const SparseMatrix feed_in = sparse_matrix(ports, count, port_of_s);
  const SparseMatrix feed_out = sparse_matrix(ports, count, s_of_port);
  const SparseMatrix A0 = sparse_matrix(n, n, local);
  const auto magnitude = [](const SparseMatrix& m) { return SparseMatrix(m.cwiseAbs()); };
  const SparseMatrix gained = into_m * M;
  A = A0 + SparseMatrix(gained * out_t);
  const SparseMatrix sizes =
      magnitude(A0) +
      SparseMatrix(SparseMatrix(magnitude(into_m) * magnitude(M)) * magnitude(out_t));
  const SparseMatrix transposed = A.transpose();
  J = beyond_rounding(0.5 * (A - transposed), sizes);
  R = beyond_rounding(-0.5 * (A + transposed), sizes);
  A = J - R;
  B = sparse_matrix(n, count, direct) + SparseMatrix(gained * feed_in);
  input_of_z_ = M * out_t;
  output_of_z_ = out_t + SparseMatrix(D * input_of_z_);
  input_of_s_ = M * feed_in;
  output_of_s_ = feed_in + SparseMatrix(D * input_of_s_);

  // Power through the inputs must be sᵀBᵀ∇H: no damper without a state between.
  const SparseMatrix feed_out_t = feed_out.transpose();
  const SparseMatrix seen_all =
      sparse_matrix(n, count, seen) + SparseMatrix((feed_out_t * input_of_z_).transpose());
  const SparseMatrix through =
      sparse_matrix(count, count, own_feed) + SparseMatrix(feed_out_t * input_of_s_);
  const SparseMatrix through_t = through.transpose();
  const auto column_size = [](const SparseMatrix& m, int j) {
    double sum = 0.0;
    for (SparseMatrix::InnerIterator it(m, j); it; ++it) sum += std::abs(it.value());
    return sum;
  };
  const SparseMatrix apart = B - seen_all, damped = through + through_t;
  for (int k = 0; k < static_cast<int>(inputs.size()); ++k) {
    const double size = column_size(B, k) + column_size(seen_all, k);
    const double own = column_size(through, k) + column_size(through_t, k);
    if (column_size(apart, k) <= 1e-12 * size && column_size(damped, k) <= 1e-12 * own) continue;
    const Part& part = system.parts()[at(inputs[at(k)].part)];
    const std::string& name = part.component->signature().inputs[at(inputs[at(k)].input)].name;
    issues.push_back(
        {fmt::format("/subsystems/{}/inputs/{}", inputs[at(k)].part, name),
         fmt::format("input {} of subsystem {} drives a damper without delay, and the energy that "
                     "it supplies is then no matter of the states: put a spring or a mass "
                     "between them{}",
                     in_quotes(name), in_quotes(part.name), kWaves)});
  }
  throw_if_any(std::move(issues));
}

void SeparableNetwork::ports(const double* z, const double* s, std::span<double> effort,
                             std::span<double> flow) const {
  const Eigen::Map<const Eigen::VectorXd> own(z, A.rows()),
      driven(s, static_cast<Eigen::Index>(inputs.size()));
  const Eigen::VectorXd in = input_of_z_ * own + input_of_s_ * driven;
  const Eigen::VectorXd out = output_of_z_ * own + output_of_s_ * driven;
  for (std::size_t j = 0; j < effort.size(); ++j) {
    const auto i = static_cast<Eigen::Index>(j);
    effort[j] = effort_in_[j] ? in[i] : out[i];
    flow[j] = effort_in_[j] ? out[i] : in[i];
  }
}

/// What is collected part by part.
struct SeparableNetwork::Storage {
  SparseEntries quadratic, curvature, couplings;
};

void SeparableNetwork::find_storage(Issues& issues) {
  const std::size_t n = kind.size();
  constant.assign(n, 0.0);
  shift.assign(n, 0.0);
  cubic.assign(n, 0.0);
  by_callback.assign(n, 0);
  is_bent_.assign(n, 0);
  Storage storage;
  for (int i = 0; i < static_cast<int>(system_->parts().size()); ++i) {
    if (system_->parts()[at(i)].initial_state.empty()) continue;
    find_storage_of(i, storage, issues);
  }
  const auto rows = static_cast<Eigen::Index>(n);
  hessian = sparse_matrix(rows, rows, storage.quadratic);
  curvature = sparse_matrix(rows, rows, storage.curvature);
  couplings_ = sparse_matrix(rows, rows, storage.couplings);
}

/// ∇²H of a part: exactly where it says it, and at probe states where it does not. There a state whose row is
/// the same at all of them counts as quadratic.
void SeparableNetwork::find_storage_of(int number, Storage& storage, Issues& issues) {
  const Part& part = system_->parts()[at(number)];
  const Subsystem& physics = *part.port_hamiltonian();
  const int n = physics.signature().state_size(), first = first_state(number);
  if (const LinearForm form = physics.linear_form(); form.Q != nullptr) {
    append_block(*form.Q, first, first, storage.quadratic);
    append_block(*form.Q, first, first, storage.curvature);
    append_block(*form.Q, first, first, storage.couplings);
    return;
  }
  if (const auto* const quartic = dynamic_cast<const QuarticStorage*>(&physics)) {
    const std::vector<double> zero(at(n), 0.0);
    std::vector<Eigen::Triplet<double>> at_zero, here;
    physics.hessian(zero.data(), at_zero);
    physics.hessian(part.initial_state.data(), here);
    for (const auto& entry : at_zero) {
      storage.quadratic.emplace_back(first + entry.row(), first + entry.col(), entry.value());
    }
    for (const auto& entry : here) {
      storage.curvature.emplace_back(first + entry.row(), first + entry.col(), entry.value());
      storage.couplings.emplace_back(first + entry.row(), first + entry.col(), 1.0);
    }
    for (const QuarticTerm& term : quartic->quartic_terms()) {
      cubic[at(first + term.state)] = term.coefficient;
      is_bent_[at(first + term.state)] = term.coefficient != 0.0 ? 1 : 0;
    }
    return;
  }
  probe_storage_of(number, storage, issues);
}

/// The same for a part whose ∂H/∂x is a function and no more is known of it.
void SeparableNetwork::probe_storage_of(int number, Storage& storage, Issues& issues) {
  const Part& part = system_->parts()[at(number)];
  const Subsystem& physics = *part.port_hamiltonian();
  const int n = physics.signature().state_size(), first = first_state(number);
  using Eigen::MatrixXd;
  using Eigen::VectorXd;
  const std::vector<double> typical = physics.typical_state();
  const std::vector<double> usual = physics.default_state();
  const Eigen::Map<const VectorXd> start(part.initial_state.data(), n);
  const VectorXd middle = Eigen::Map<const VectorXd>(usual.data(), n);
  const VectorXd reach = Eigen::Map<const VectorXd>(typical.data(), n);
  // Secants as wide as the state is large: exact where ∂H/∂x is linear, and no more is asked of them.
  const auto slopes = [&](const VectorXd& x, double share) {
    std::vector<Eigen::Triplet<double>> entries;
    MatrixXd H = MatrixXd::Zero(n, n);
    if (share == 0.0 && physics.hessian(x.data(), entries)) {
      for (const auto& entry : entries) H(entry.row(), entry.col()) += entry.value();
      return H;
    }
    VectorXd ahead(n), back(n), moved = x;
    for (int c = 0; c < n; ++c) {
      const double wide = share == 0.0 ? 1e-4 * reach[c] : share * reach[c];
      moved[c] = x[c] + wide;
      const double above = moved[c];
      physics.gradient(moved.data(), ahead.data());
      moved[c] = x[c] - wide;
      const double width = above - moved[c];
      physics.gradient(moved.data(), back.data());
      moved[c] = x[c];
      H.col(c) = (ahead - back) / width;
    }
    return H;
  };
  std::vector<Eigen::Triplet<double>> analytic;
  const bool has_hessian = physics.hessian(start.data(), analytic);
  const MatrixXd here = slopes(start, 0.0);
  MatrixXd largest = here.cwiseAbs();
  MatrixXd quadratic = here;
  const double tolerance = has_hessian ? 1e-10 : 1e-6;
  std::vector<MatrixXd> all = {here};
  for (const double share : {0.0, 0.37, -0.61, 0.93}) {
    VectorXd x = middle;
    for (int i = 0; i < n; ++i) x[i] += (i % 2 == 0 ? share : -0.7 * share) * reach[i];
    MatrixXd H = slopes(x, 0.0);
    if (H.allFinite()) all.push_back(std::move(H));
  }
  for (const MatrixXd& H : all) largest = largest.cwiseMax(H.cwiseAbs());
  const VectorXd scale = reach;  // ∇²H of unlike units, made alike
  const auto alike = [&](int i, int j) { return largest(i, j) * scale[i] * scale[j]; };
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      if (i != j && alike(i, j) <= tolerance * std::sqrt(alike(i, i) * alike(j, j))) {
        largest(i, j) = 0.0;
      }
      for (const MatrixXd& H : all) {
        if (std::abs(H(i, j) - here(i, j)) > tolerance * std::max(largest(i, j), 1e-300) &&
            largest(i, j) > 0.0) {
          is_bent_[at(first + i)] = 1;
        }
      }
    }
  }
  if (!has_hessian) quadratic = slopes(start, 1.0);
  // A bent state takes all along that H ties to it.
  std::vector<char> is_tied(is_bent_.begin() + first, is_bent_.begin() + first + n);
  for (bool grows = true; grows;) {
    grows = false;
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n && is_tied[at(i)] == 0; ++j) {
        if (largest(i, j) == 0.0 || is_tied[at(j)] == 0) continue;
        is_tied[at(i)] = 1;
        grows = true;
      }
    }
  }
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      if (largest(i, j) == 0.0) continue;
      storage.couplings.emplace_back(first + i, first + j, largest(i, j));
      storage.curvature.emplace_back(first + i, first + j, here(i, j));
      if (is_tied[at(i)] == 0)
        storage.quadratic.emplace_back(first + i, first + j, quadratic(i, j));
    }
  }
  VectorXd z(n);
  physics.gradient(start.data(), z.data());
  if (!z.allFinite()) {
    issues.push_back({fmt::format("/subsystems/{}/initial_state", number),
                      "the gradient of the stored energy at this state is not finite"});
  }
  for (int i = 0; i < n; ++i) {
    by_callback[at(first + i)] = is_tied[at(i)];
    if (is_tied[at(i)] != 0) continue;
    const double linear = quadratic.row(i).dot(start);
    const double rest = z[i] - linear;
    const double size = std::abs(z[i]) + quadratic.row(i).cwiseAbs().dot(start.cwiseAbs());
    if (std::abs(rest) > 1e-13 * size) constant[at(first + i)] = rest;
  }
}

/// True for a state that J, R (but for its own damper), B and H leave to itself.
bool SeparableNetwork::is_coupled_alone(int state) const {
  const auto alone = [state](const SparseMatrix& m) {
    for (SparseMatrix::InnerIterator it(m, state); it; ++it) {
      if (it.row() != state && it.value() != 0.0) return false;
    }
    return true;
  };
  return alone(J) && alone(R) && alone(couplings_);
}

/// A spring whose end is free, on its own damper: it decays and moves nothing. Kicks and drifts, some of
/// which go backwards, would only make its rate a limit to the step.
void SeparableNetwork::find_dead_states() {
  std::vector<char> driven(kind.size(), 0);
  for (int k = 0; k < B.outerSize(); ++k) {
    for (SparseMatrix::InnerIterator it(B, k); it; ++it) driven[at(static_cast<int>(it.row()))] = 1;
  }
  for (int i = 0; i < size(); ++i) {
    const bool bent = is_bent_[at(i)] != 0 || by_callback[at(i)] != 0 || constant[at(i)] != 0.0;
    if (bent || driven[at(i)] != 0 || R.coeff(i, i) <= 0.0 || hessian.coeff(i, i) <= 0.0) continue;
    if (is_coupled_alone(i)) kind[at(i)] = SeparableKind::dead;
  }
}

void SeparableNetwork::colour() {
  const int n = size();
  Colouring colouring(n);
  Issues issues;
  FewIssues odd(issues), tied(issues), damped(issues);
  const auto join = [&](const SparseMatrix& m, int unlike, const auto& refuse) {
    for (int j = 0; j < m.outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(m, j); it; ++it) {
        const auto i = static_cast<int>(it.row());
        if (i >= j || it.value() == 0.0) continue;
        if (!colouring.join(i, j, unlike)) refuse(i, j);
      }
    }
  };
  join(J, 1, [&](int i, int j) {
    odd.add("/couplings",
            fmt::format("{} and {} act on each other, but stand on the same side of the network (a "
                        "cycle of an odd number of states): positions and momenta cannot be told "
                        "apart{}",
                        label(i), label(j), kWaves));
  });
  join(couplings_, 0, [&](int i, int j) {
    tied.add(fmt::format("/subsystems/{}", part_of(i)),
             fmt::format("the storage ties {} to {}, a position to a momentum{}", label(i),
                         label(j), kWaves));
  });
  join(R, 0, [&](int i, int j) {
    damped.add("/couplings",
               fmt::format("a damper acts between {} and {}, a position and a momentum: put a "
                           "spring or a mass between them{}",
                           label(i), label(j), kWaves));
  });
  throw_if_any(std::move(issues));

  struct Side {
    Issues issues;
    std::size_t defects = 0;
    int damped = 0, driven = 0, states = 0;
  };
  std::vector<char> driven(at(n), 0);
  for (int k = 0; k < B.outerSize(); ++k) {
    for (SparseMatrix::InnerIterator it(B, k); it; ++it) driven[at(static_cast<int>(it.row()))] = 1;
  }
  std::vector<std::array<Side, 2>> sides(at(n));  // by root: colour 0 or 1 as that of momenta
  const auto object = [&](Side& side, int state, std::string what) {
    if (side.defects++ < kMostIssues) {
      side.issues.push_back({fmt::format("/subsystems/{}", part_of(state)), std::move(what)});
    }
  };
  for (int i = 0; i < n; ++i) {
    if (kind[at(i)] == SeparableKind::dead) continue;
    const auto [root, own] = colouring.find(i);
    Side& as_momentum = sides[at(root)][at(own)];
    Side& as_position = sides[at(root)][at(1 - own)];
    const bool bent = is_bent_[at(i)] != 0 || by_callback[at(i)] != 0;
    ++as_momentum.states;
    if (driven[at(i)] != 0) ++as_position.driven;
    if (bent) {
      object(as_momentum, i,
             fmt::format("the storage of {} is not quadratic, and it would have to be a momentum, "
                         "as the positions are on the other side{}",
                         label(i), kWaves));
    }
    bool is_damped = false, shared = false, tied_storage = false;
    for (SparseMatrix::InnerIterator it(R, i); it; ++it) {
      if (it.value() == 0.0) continue;
      is_damped = true;
      shared = shared || it.row() != i;
    }
    for (SparseMatrix::InnerIterator it(couplings_, i); it; ++it)
      tied_storage = tied_storage || it.row() != i;
    if (constant[at(i)] != 0.0 && (tied_storage || hessian.coeff(i, i) <= 0.0)) {
      object(
          as_momentum, i,
          fmt::format("the storage of {} has a linear term, and it would have to be a momentum{}",
                      label(i), kWaves));
    }
    if (!is_damped) continue;
    ++as_position.damped;
    if (bent) {
      object(as_position, i,
             fmt::format("{} is damped and its storage is not quadratic: give the damper a spring "
                         "or a capacitor of its own{}",
                         label(i), kWaves));
    } else if (shared) {
      object(as_position, i,
             fmt::format("{} shares a damper with another position: put a mass or an inductor "
                         "between them{}",
                         label(i), kWaves));
    } else if (constant[at(i)] != 0.0 && hessian.coeff(i, i) <= 0.0) {
      object(as_position, i,
             fmt::format("{} is damped and its storage is a linear term alone: it would move for "
                         "ever{}",
                         label(i), kWaves));
    } else if (tied_storage) {
      object(as_position, i,
             fmt::format("{} is damped and its storage is tied to that of another state{}",
                         label(i), kWaves));
    }
  }
  std::vector<int> momentum_colour(at(n), 1);
  for (int root = 0; root < n; ++root) {
    auto& [zero, one] = sides[at(root)];
    if (zero.states + one.states == 0) continue;
    const auto rank = [](const Side& side) {
      return std::array<std::size_t, 4>{side.defects, at(side.damped), at(side.driven),
                                        at(side.states)};
    };
    const bool takes_zero = rank(zero) < rank(one);
    momentum_colour[at(root)] = takes_zero ? 0 : 1;
    Side& taken = takes_zero ? zero : one;
    for (Issue& issue : taken.issues) issues.push_back(std::move(issue));
  }
  throw_if_any(std::move(issues));
  for (int i = 0; i < n; ++i) {
    if (kind[at(i)] == SeparableKind::dead) continue;
    const auto [root, own] = colouring.find(i);
    if (own == momentum_colour[at(root)]) {
      kind[at(i)] = SeparableKind::momentum;
      if (constant[at(i)] != 0.0) shift[at(i)] = constant[at(i)] / hessian.coeff(i, i);
      constant[at(i)] = 0.0;
    } else if (R.coeff(i, i) != 0.0) {
      kind[at(i)] = SeparableKind::decaying;
    }
  }
}

}  // namespace portwave
