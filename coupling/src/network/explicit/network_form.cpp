#include "network/explicit/network_form.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "network/elimination.hpp"
#include "network/port_gains.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"

namespace portwave {
namespace {
namespace network_form {

/// Without what is round-off beside `size`, the sum of the terms that an entry was made of.
SparseMatrix beyond_rounding(const SparseMatrix& m, const SparseMatrix& size) {
  SparseMatrix out = m;
  out.prune([&](Eigen::Index i, Eigen::Index j, double value) {
    const auto row = static_cast<int>(i), column = static_cast<int>(j);
    return std::abs(value) > 1e-13 * (size.coeff(row, column) + size.coeff(column, row));
  });
  return out;
}

}  // namespace network_form
}  // namespace

using network_form::beyond_rounding;

NetworkForm::NetworkForm(const System& system, const Method& method)
    : system_(&system),
      settings_(std::make_unique<std::vector<double>>(system.initial_settings())) {
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
          {where,
           fmt::format("the structure of subsystem {} ({}) depends on its state, and {} need a "
                       "constant one{}",
                       in_quotes(part.name), physics.signature().type, method.name, kWaves)});
    }
    const LinearForm form = physics.linear_form();
    if (form.E != nullptr && !elimination::is_identity(*form.E)) {
      issues.push_back(
          {where, fmt::format("subsystem {} is a descriptor part, d/dt(Ex), and {} need its states "
                              "themselves{}",
                              in_quotes(part.name), method.name, kWaves)});
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
    // What is wrong with the couplings, too.
    port_gains(system, port_feedthrough(system), issues);
  }
  throw_if_any(std::move(issues));
  assemble(method);
  Issues of_storage;
  find_storage(of_storage);
  throw_if_any(std::move(of_storage));
  find_dead_states();
  const auto is_missed = [&](int state) { return state >= 0 && is_dead[at(state)] == 0; };
  if (std::ranges::none_of(loose_, is_missed)) return;
  Issues of_ends;  // springs of another law
  port_gains(system, port_feedthrough(system), of_ends);
  throw_if_any(std::move(of_ends));
}

std::string NetworkForm::label(int state) const {
  const Part& part = system_->parts()[at(part_of(state))];
  return part.name + "." +
         part.component->signature().states[at(state - first_state(part_of(state)))].name;
}

std::vector<int> NetworkForm::loose_springs(const SparseMatrix& D) const {
  std::vector<int> state_of(system_->scalar_ports().size(), -1);
  const std::vector<bool> effort_in = effort_inputs(*system_);
  for (const auto& junction : system_->junctions()) {
    const int port = junction.waves.front();
    if (junction.waves.size() != 1 || effort_in[at(port)] || junction.dirac.F(0, 0) != 0.0)
      continue;
    const int part = system_->scalar_ports()[at(port)].part;
    const Structure& s = system_->parts()[at(part)].port_hamiltonian()->structure();
    const SparseMatrix in = s.G - s.P, see = s.G + s.P;
    const int column = port - system_->first_scalar_port(part);
    int state = -1, entries = 0, others = 0;
    for (SparseMatrix::InnerIterator it(in, column); it; ++it) {
      if (it.value() == 0.0) continue;
      state = static_cast<int>(it.row());
      ++entries;
    }
    if (entries != 1) continue;
    const int own_ports = system_->parts()[at(part)].component->signature().wave_size();
    for (int j = own_ports; j < in.cols(); ++j) others += in.coeff(state, j) != 0.0 ? 1 : 0;
    for (SparseMatrix::InnerIterator it(see, column); it; ++it) {
      if (it.row() != state && it.value() != 0.0) ++others;
    }
    for (SparseMatrix::InnerIterator it(D, port); it; ++it) others += it.value() != 0.0 ? 1 : 0;
    if (others == 0) state_of[at(port)] = first_state(part) + state;
  }
  return state_of;
}

/// A, B, J, R, and the efforts and flows of ports, with u = M (y⁰ + D s) at the ports.
void NetworkForm::assemble(const Method& method) {
  const System& system = *system_;
  Issues issues;
  const SparseMatrix D = port_feedthrough(system);
  loose_ = loose_springs(D);
  std::vector<bool> left_out;
  for (const int state : loose_) left_out.push_back(state >= 0);
  const SparseMatrix M = port_gains(system, D, issues, left_out);
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
  // Such a spring follows what it hangs on, at the flow f = −(Jz + Σgⱼuⱼ)/g of its end. It has no force, and what it may
  // have at the start is gone at once: one more state that nothing sees, damped by the limit of a vanishing damper.
  constexpr double kAtOnce = 1e100;
  SparseEntries by_states, by_ports;
  std::vector<int> end_of(at(size()), -1);
  std::vector<double> gain(loose_.size(), 0.0);
  for (int port = 0; port < static_cast<int>(loose_.size()); ++port) {
    if (loose_[at(port)] >= 0) end_of[at(loose_[at(port)])] = port;
  }
  const auto is_loose = [&](Eigen::Index state) {
    return end_of[at(static_cast<int>(state))] >= 0;
  };
  for (const auto& entry : into) {
    if (loose_[at(entry.col())] == entry.row()) gain[at(entry.col())] = entry.value();
  }
  const auto follow = [&](const SparseEntries& entries, SparseEntries& followed) {
    for (const auto& entry : entries) {
      if (!is_loose(entry.row())) continue;
      const int port = end_of[at(entry.row())];
      followed.emplace_back(port, entry.col(), -entry.value() / gain[at(port)]);
    }
  };
  follow(local, by_states);
  follow(into, by_ports);
  std::erase_if(local,
                [&](const auto& entry) { return is_loose(entry.row()) || is_loose(entry.col()); });
  for (SparseEntries* const own : {&into, &out}) {
    std::erase_if(*own, [&](const auto& entry) { return is_loose(entry.row()); });
  }
  for (int state = 0; state < size(); ++state) {
    if (is_loose(state)) local.emplace_back(state, state, -kAtOnce);
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
  input_of_s_ = M * feed_in;
  // The rows of free ends in M are empty, and so what they follow is known.
  const SparseMatrix followed = sparse_matrix(ports, ports, by_ports);
  input_of_z_ += SparseMatrix(followed * input_of_z_) + sparse_matrix(ports, n, by_states);
  input_of_s_ += SparseMatrix(followed * input_of_s_);
  output_of_z_ = out_t + SparseMatrix(D * input_of_z_);
  output_of_s_ = feed_in + SparseMatrix(D * input_of_s_);

  // Power through the inputs must be sᵀBᵀ∇H: no damper without a state between.
  const SparseMatrix feed_out_t = feed_out.transpose();
  Seen = sparse_matrix(n, count, seen) + SparseMatrix((feed_out_t * input_of_z_).transpose());
  Through = sparse_matrix(count, count, own_feed) + SparseMatrix(feed_out_t * input_of_s_);
  if (method.takes_damped_inputs) return;
  const SparseMatrix through_t = Through.transpose();
  const auto column_size = [](const SparseMatrix& m, int j) {
    double sum = 0.0;
    for (SparseMatrix::InnerIterator it(m, j); it; ++it) sum += std::abs(it.value());
    return sum;
  };
  const SparseMatrix apart = B - Seen, damped = Through + through_t;
  for (int k = 0; k < static_cast<int>(inputs.size()); ++k) {
    const double size = column_size(B, k) + column_size(Seen, k);
    const double own = column_size(Through, k) + column_size(through_t, k);
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

std::vector<int> NetworkForm::ordered_by_type(const std::vector<int>& states) const {
  std::map<std::pair<std::string, int>, int> types;
  std::vector<std::tuple<int, int, int, int>> keys;
  for (const int state : states) {
    const int part = part_of(state);
    const Signature& signature = system_->parts()[at(part)].component->signature();
    const auto [type, is_new] =
        types.try_emplace({signature.type, signature.state_size()}, static_cast<int>(types.size()));
    keys.emplace_back(type->second, state - first_state(part), part, state);
  }
  std::ranges::sort(keys);
  std::vector<int> out;
  out.reserve(keys.size());
  for (const auto& key : keys) out.push_back(std::get<3>(key));
  return out;
}

void NetworkForm::ports(const double* z, const double* s, std::span<double> effort,
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

}  // namespace portwave
