#include "portwave/coupling/impedance/shared_decays.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <optional>
#include <unordered_map>

#include <Eigen/QR>

#include "impedance/fast_ports.hpp"
#include "impedance/response_tools.hpp"
#include "impedance/rigid_ties.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave {
namespace {

constexpr Eigen::Index kMostInside = 4;
constexpr std::size_t kMostJointPorts = 64, kMostLossPorts = 8;
/// Joints whose weights are 1 are looked at where a decay is within this of the limit, and others always.
constexpr double kNear = 0.1;

bool is_zero_column(const SparseMatrix& A, int j) {
  for (SparseMatrix::InnerIterator it(A, j); it; ++it) {
    if (it.value() != 0.0) return false;
  }
  return true;
}

/// Whether its output is that of states alone: y = Gᵀz.
bool shows_states_alone(const Subsystem& physics, int port) {
  const Structure& s = physics.structure();
  return is_zero_column(s.P, port) && is_zero_column(s.S, port) && is_zero_column(s.N, port);
}

bool is_constant(const Signal& input) {
  return !input.is_callback() && std::isfinite(input(0.0)) &&
         input.digest() == Signal::constant(input(0.0)).digest();
}

/// A part without states whose outputs are constant: sources, and ends that are held.
bool is_constant_source(const Part& part) {
  const Subsystem* const physics = part.port_hamiltonian();
  if (physics == nullptr || part.component->signature().state_size() > 0 ||
      !physics->constant_structure() || physics->has_port_laws() || physics->has_vertical_laws() ||
      physics->linear_form().E != nullptr) {
    return false;
  }
  for (std::size_t i = 0; i < part.inputs.size(); ++i) {
    if (i < part.input_is_driven.size() && part.input_is_driven[i] && !is_constant(part.inputs[i]))
      return false;
  }
  const int ports = part.component->signature().wave_size();
  for (int j = 0; j < ports; ++j) {
    if (!is_zero_column(physics->structure().S, j)) return false;
    for (SparseMatrix::InnerIterator it(physics->structure().N, j); it; ++it) {
      if (it.value() != 0.0 && it.row() < ports) return false;  // as a gear has
    }
  }
  return true;
}

/// A part whose ports may be those of a loss.
const Subsystem* resisting(const Part& part) {
  const Subsystem* const physics = part.port_hamiltonian();
  const bool resists = physics != nullptr && physics->constant_structure() &&
                       !physics->has_port_laws() && !physics->has_vertical_laws() &&
                       physics->linear_form().E == nullptr &&
                       part.component->signature().wave_size() == physics->signature().wave_size();
  return resists ? physics : nullptr;
}

/// S between some ports.
Eigen::MatrixXd resistance(const Subsystem& physics, const std::vector<int>& ports) {
  const auto n = static_cast<Eigen::Index>(ports.size());
  Eigen::MatrixXd S(n, n);
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j < n; ++j)
      S(i, j) = physics.structure().S.coeff(ports[static_cast<std::size_t>(i)],
                                            ports[static_cast<std::size_t>(j)]);
  }
  return S;
}

}  // namespace

/// What the joints of a system show while losses are collected.
struct SharedDecays::Network {
  Network(const System& own, RigidTies& own_ties) : system(own), ties(own_ties) {
    place.resize(system.scalar_ports().size(), {-1, -1});
    for (int j = 0; j < std::ssize(system.junctions()); ++j) {
      const std::vector<int>& waves = system.junctions()[at(j)].waves;
      for (int k = 0; k < std::ssize(waves); ++k) place[at(waves[at(k)])] = {j, k};
    }
  }

  /// fast_part of a part; empty: that cannot be found.
  const std::vector<FastPort>& fast(int part) {
    const Part& own = system.parts()[at(part)];
    const bool is_linear = own.component->capabilities().linear;
    if (const auto known = linear.find(own.component.get()); is_linear && known != linear.end()) {
      return known->second;
    }
    std::vector<FastPort>& out = is_linear ? linear[own.component.get()] : nonlinear[part];
    if (!out.empty()) return out;
    const Subsystem* const physics = own.port_hamiltonian();
    if (physics == nullptr ||
        own.component->signature().wave_size() != physics->signature().wave_size()) {
      return out;
    }
    try {
      out = fast_part(*physics, own.initial_state.data()).ports;
    } catch (const std::exception&) {  // a callback outside its domain
    }
    return out;
  }

  int part_of(int port) const { return system.scalar_ports()[at(port)].part; }
  int own_of(int port) const { return port - system.first_scalar_port(part_of(port)); }
  Causality causality(int port) const {
    const ScalarPort& own = system.scalar_ports()[at(port)];
    return system.parts()[at(own.part)].component->signature().ports[at(own.port)].causality;
  }
  bool is_storage(int port) {
    const int part = part_of(port);
    if (!ties.may_take(part)) return false;
    const std::vector<FastPort>& ports = fast(part);
    return !ports.empty() && ports[at(own_of(port))].storage > 0.0 &&
           shows_states_alone(*system.parts()[at(part)].port_hamiltonian(), own_of(port));
  }

  /// A bound of what stores beside a port; nothing: weights make it another one.
  std::optional<double> storage_beside(int port) {
    const Junction& joint = system.junctions()[at(place[at(port)].first)];
    const auto has_weights = [](const Eigen::MatrixXd& A) {
      return (A.array() != 0.0 && A.array().abs() != 1.0).any();
    };
    if (has_weights(joint.dirac.E) || has_weights(joint.dirac.F)) return std::nullopt;
    double sum = 0.0;
    for (const int other : joint.waves) {
      if (other == port) continue;
      const std::vector<FastPort>& ports = fast(part_of(other));
      if (!ports.empty()) sum += std::max(0.0, ports[at(own_of(other))].storage);
    }
    return sum;
  }

  /// A variable of a port as a sum of outputs of storages at its joint, Σ c y: (scalar port, c). Nothing: others decide
  /// it, too.
  std::optional<std::vector<std::pair<int, double>>> decided_by(int port, bool is_effort) {
    const auto [number, index] = place[at(port)];
    if (number < 0) return std::nullopt;
    const Junction& joint = system.junctions()[at(number)];
    if (joint.waves.size() > kMostJointPorts) return std::nullopt;
    const Eigen::MatrixXd &E = joint.dirac.E, &F = joint.dirac.F;
    Eigen::MatrixXd open(E.rows(), 2 * E.cols());  // what nobody knows
    Eigen::Index unknown = 0;
    std::vector<std::pair<int, Eigen::VectorXd>> known;
    for (int k = 0; k < std::ssize(joint.waves); ++k) {
      const int own = joint.waves[at(k)];
      if (own == port) {
        open.col(unknown++) = is_effort ? F.col(k) : E.col(k);
        continue;
      }
      const bool gives_effort = causality(own) == Causality::flow_in;
      const bool shows = is_storage(own);
      const Part& part = system.parts()[at(part_of(own))];
      if (!shows && !is_constant_source(part)) open.col(unknown++) = E.col(k);
      if (!shows && !is_constant_source(part)) {
        open.col(unknown++) = F.col(k);
        continue;
      }
      if (shows) known.emplace_back(own, gives_effort ? E.col(k) : F.col(k));
      open.col(unknown++) = gives_effort ? F.col(k) : E.col(k);
    }
    const Eigen::VectorXd target = is_effort ? E.col(index) : F.col(index);
    if (target.isZero(0.0)) return std::nullopt;
    // A row of the equations in which nothing else is left.
    Eigen::VectorXd row = target;
    if (unknown > 0) {
      const Eigen::ColPivHouseholderQR<Eigen::MatrixXd> qr(open.leftCols(unknown));
      Eigen::VectorXd turned = qr.householderQ().adjoint() * target;
      turned.head(qr.rank()).setZero();
      row = qr.householderQ() * turned;
    }
    constexpr double kNothing = 1e-9;
    const double size = row.dot(target);
    if (!(size > kNothing * target.squaredNorm())) return std::nullopt;
    std::vector<std::pair<int, double>> out;
    for (const auto& [own, column] : known) {
      const double c = -row.dot(column) / size;
      if (std::abs(c) > kNothing) out.emplace_back(own, c);
    }
    return out;
  }

  const System& system;
  RigidTies& ties;
  std::vector<std::pair<int, int>> place;  // by scalar port: junction, and number in it
  std::unordered_map<const Component*, std::vector<FastPort>> linear;
  std::unordered_map<int, std::vector<FastPort>> nonlinear;
};

SharedDecays::SharedDecays(const System& system, double step_s, double limit,
                           const std::function<bool(int part)>& may_take,
                           const std::function<bool(int part)>& is_exchanged)
    : system_(system), h_(step_s), limit_(limit) {
  RigidTies ties(system, may_take);
  Network network(system, ties);
  for (int i = 0; i < std::ssize(system.parts()); ++i) {
    if (is_exchanged(i)) continue;
    add_at_ports(i, network, ties);
    add_inside(i, network, ties);
  }
}

void SharedDecays::add_at_ports(int part, Network& network, RigidTies& ties) {
  const Subsystem* const physics = resisting(system_.parts()[at(part)]);
  if (physics == nullptr) return;
  Loss loss;
  loss.part = part;
  const SparseMatrix& S = physics->structure().S;
  const int first = system_.first_scalar_port(part);
  bool may_be_fast = false;
  for (int j = 0; j < physics->signature().wave_size(); ++j) {
    if (is_zero_column(S, j)) continue;
    if (network.place[at(first + j)].first < 0) return;
    loss.ports.push_back(j);
  }
  if (loss.ports.empty() || loss.ports.size() > kMostLossPorts) return;
  for (const int j : loss.ports) {
    const double own = S.coeff(j, j);
    const auto beside = network.storage_beside(first + j);
    may_be_fast |= !beside || h_ * *beside * own > kNear * limit_ ||
                   (loss.ports.size() == 1 && h_ * *beside > kNear * limit_ * own);
  }
  if (!may_be_fast) return;
  const auto decided = [&](bool is_inverse) {
    std::vector<std::vector<std::pair<int, double>>> rows;
    for (const int j : loss.ports) {
      const bool takes_effort = network.causality(first + j) == Causality::effort_in;
      auto row = network.decided_by(first + j, takes_effort != is_inverse);
      if (!row) return false;
      rows.push_back(std::move(*row));
    }
    loss.is_inverse = is_inverse;
    loss.storages.clear();
    const auto known = std::ssize(storages_);
    std::vector<std::vector<std::pair<int, double>>> numbered(rows.size());
    for (std::size_t r = 0; r < rows.size(); ++r) {
      for (const auto& [port, c] : rows[r]) {
        const int number = number_of({network.part_of(port), network.own_of(port)}, known);
        numbered[r].emplace_back(number, c);
        if (std::ranges::find(loss.storages, number) == loss.storages.end()) {
          loss.storages.push_back(number);
        }
      }
    }
    loss.C = Eigen::MatrixXd::Zero(std::ssize(rows), std::ssize(loss.storages));
    for (std::size_t r = 0; r < rows.size(); ++r) {
      for (const auto& [number, c] : numbered[r]) {
        const auto column = std::ranges::find(loss.storages, number) - loss.storages.begin();
        loss.C(static_cast<Eigen::Index>(r), column) += c;
      }
    }
    if (!keep(loss, ties)) storages_.erase(storages_.begin() + known, storages_.end());
    return true;
  };
  if (!decided(false) && loss.ports.size() == 1) decided(true);
}

void SharedDecays::add_inside(int part, const Network& network, RigidTies& ties) {
  const auto* const linear =
      dynamic_cast<const LinearPortHamiltonian*>(system_.parts()[at(part)].port_hamiltonian());
  if (linear == nullptr || linear->linear_form().E != nullptr || !network.ties.may_take(part))
    return;
  const SparseMatrix& R = linear->structure().R;
  // States that share a resistance, by connection.
  std::vector<int> group(at(static_cast<int>(R.rows())));
  for (int i = 0; i < std::ssize(group); ++i) group[at(i)] = i;
  bool any = false;
  for (int j = 0; j < R.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(R, j); it; ++it) {
      const auto i = static_cast<int>(it.row());
      if (it.value() == 0.0 || i == j || group[at(i)] == group[at(j)]) continue;
      any = true;
      std::ranges::replace(group, int{group[at(i)]}, int{group[at(j)]});
    }
  }
  if (!any) return;
  for (int g = 0; g < std::ssize(group); ++g) {
    const auto size = std::ranges::count(group, g);
    if (size < 2 || size > kMostInside) continue;
    Loss loss;
    loss.part = part;
    const auto known = std::ssize(storages_);
    for (int i = 0; i < std::ssize(group); ++i) {
      if (group[at(i)] == g) loss.storages.push_back(number_of({part, -1 - i}, known));
    }
    loss.C = Eigen::MatrixXd::Identity(size, size);
    if (!keep(std::move(loss), ties)) storages_.erase(storages_.begin() + known, storages_.end());
  }
}

/// Adds a loss if its decay is not resolved and what it needs may be damped.
bool SharedDecays::keep(Loss loss, RigidTies& ties) {
  find_losses(loss);
  if (!(h_ * loss.rate > limit_)) return false;
  std::vector<int> parts;
  for (const int storage : loss.storages) parts.push_back(storages_[at(storage)].part);
  std::vector<int> set = ties.with(parts);
  if (set.empty()) return false;
  loss.set = static_cast<int>(sets_.size());
  sets_.push_back(std::move(set));
  losses_.push_back(std::move(loss));
  return true;
}

/// Of a storage, or of one that shows the same, beginning with number `first`.
int SharedDecays::number_of(Storage storage, std::ptrdiff_t first) {
  take_physics(storage);
  for (int i = static_cast<int>(first); i < std::ssize(storages_); ++i) {
    const Storage& own = storages_[at(i)];
    if (own.part == storage.part && own.output == storage.output) return i;
  }
  storages_.push_back(std::move(storage));
  return static_cast<int>(storages_.size()) - 1;
}

void SharedDecays::take_physics(Storage& storage) const {
  const Part& part = system_.parts()[at(storage.part)];
  const Subsystem& physics = *part.port_hamiltonian();
  storage.output.clear();
  storage.shown.clear();
  storage.is_linear = physics.is_linear();
  storage.stiffness = 0.0;
  const auto n = physics.signature().state_size();
  Eigen::SparseVector<double> column(n);
  if (storage.port >= 0) {
    column = physics.structure().G.col(storage.port);
  } else {
    column.coeffRef(-1 - storage.port) = 1.0;
  }
  try {
    const auto* const linear = dynamic_cast<const LinearPortHamiltonian*>(&physics);
    const SparseMatrix K =
        linear != nullptr ? linear->Q() : hessian_at(physics, part.initial_state.data());
    const Eigen::SparseVector<double> shown = K * column;
    storage.stiffness = column.dot(shown);
    for (Eigen::SparseVector<double>::InnerIterator it(shown); it; ++it) {
      storage.shown.push_back(static_cast<int>(it.index()));
      if (linear != nullptr) storage.output.emplace_back(it.index(), it.value());
    }
    if (linear != nullptr) return;
  } catch (const std::exception&) {  // a callback outside its domain
  }
  for (Eigen::SparseVector<double>::InnerIterator it(column); it; ++it) {
    storage.output.emplace_back(static_cast<int>(it.index()), it.value());
  }
}

/// With what its part resists now.
void SharedDecays::find_losses(Loss& loss) const {
  const Subsystem& physics = *system_.parts()[at(loss.part)].port_hamiltonian();
  Eigen::MatrixXd S;
  if (!loss.ports.empty()) {
    S = resistance(physics, loss.ports);
    if (loss.is_inverse) S = S.cwiseInverse();  // of one port
  } else {
    const auto n = std::ssize(loss.storages);
    S.resize(n, n);
    const auto state = [&](Eigen::Index i) {
      return -1 - storages_[at(loss.storages[static_cast<std::size_t>(i)])].port;
    };
    for (Eigen::Index i = 0; i < n; ++i) {
      for (Eigen::Index j = 0; j < n; ++j)
        S(i, j) = physics.structure().R.coeff(state(i), state(j));
    }
  }
  loss.losses = loss.C.transpose() * S * loss.C;
  loss.rate = 0.0;
  for (Eigen::Index i = 0; i < loss.losses.rows(); ++i) {
    loss.rate +=
        storages_[at(loss.storages[static_cast<std::size_t>(i)])].stiffness * loss.losses(i, i);
  }
  if (!std::isfinite(loss.rate)) loss.rate = 0.0;
}

double SharedDecays::output(std::size_t storage, const double* state) {
  const Storage& own = storages_[storage];
  double sum = 0.0;
  if (own.is_linear) {
    for (const auto& [i, c] : own.output) sum += c * state[i];
    return sum;
  }
  const Subsystem& physics = *system_.parts()[at(own.part)].port_hamiltonian();
  gradient_.resize(std::max(gradient_.size(), physics.signature().states.size()));
  physics.gradient(state, gradient_.data());
  for (const auto& [i, c] : own.output) sum += c * gradient_[at(i)];
  return sum;
}

double SharedDecays::share(std::size_t loss, std::span<const double> change,
                           std::span<const double> magnitude) const {
  const Loss& own = losses_[loss];
  // Beside the largest of each, so that no square underflows.
  double moved = 0.0, all = 0.0, size = 0.0;
  for (const int storage : own.storages) {
    size = std::max({size, magnitude[at(storage)], std::abs(change[at(storage)])});
  }
  if (!(size > 0.0) || !std::isfinite(size)) return 0.0;
  for (Eigen::Index i = 0; i < own.losses.rows(); ++i) {
    const auto a = at(own.storages[static_cast<std::size_t>(i)]);
    all += own.losses(i, i) * (magnitude[a] / size) * (magnitude[a] / size);
    for (Eigen::Index j = 0; j < own.losses.rows(); ++j) {
      const auto b = at(own.storages[static_cast<std::size_t>(j)]);
      moved += own.losses(i, j) * (change[a] / size) * (change[b] / size);
    }
  }
  return all > 0.0 && moved > 0.0 ? std::sqrt(moved / all) : 0.0;
}

void SharedDecays::component_changed(int part) {
  bool any = false;
  for (Storage& own : storages_) {
    if (own.part != part) continue;
    take_physics(own);
    any = true;
  }
  for (Loss& own : losses_) {
    const auto is_its = [&](int storage) { return storages_[at(storage)].part == part; };
    if (own.part == part || (any && std::ranges::any_of(own.storages, is_its))) find_losses(own);
  }
}

}  // namespace portwave
