#include "network/explicit/network_form.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "network/port_gains.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"

namespace portwave {
namespace {
namespace network_form {

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
    if (form.E != nullptr && !network_form::is_identity(*form.E)) {
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
    port_gains(system, port_feedthrough(system), issues);  // what is wrong with the couplings, too
  }
  throw_if_any(std::move(issues));
  assemble(method);
  Issues of_storage;
  find_storage(of_storage);
  throw_if_any(std::move(of_storage));
  find_dead_states();
}

std::string NetworkForm::label(int state) const {
  const Part& part = system_->parts()[at(part_of(state))];
  return part.name + "." +
         part.component->signature().states[at(state - first_state(part_of(state)))].name;
}

/// A, B, J, R, and the efforts and flows of ports, with u = M (y⁰ + D s) at the ports.
void NetworkForm::assemble(const Method& method) {
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
