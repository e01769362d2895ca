#include "portwave/coupling/network/condensed.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "network/elimination.hpp"
#include "network/port_gains.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"

namespace portwave {
namespace {

SparseMatrix identity(int n) {
  SparseMatrix m(n, n);
  m.setIdentity();
  return m;
}

/// The largest |entry|.
double size_of(const SparseMatrix& m) {
  double largest = 0.0;
  for (int j = 0; j < m.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(m, j); it; ++it)
      largest = std::max(largest, std::abs(it.value()));
  }
  return largest;
}

/// The only row with an entry other than 0 in a column; −1 when there are none or several.
int single_row(const SparseMatrix& m, int column) {
  int row = -1;
  for (SparseMatrix::InnerIterator it(m, column); it; ++it) {
    if (it.value() == 0.0) continue;
    if (row >= 0) return -1;
    row = static_cast<int>(it.row());
  }
  return row;
}

/// True when a row and the column of that number hold nothing but their diagonal entry, not 0.
bool stands_alone(const SparseMatrix& m, int i) {
  double diagonal = 0.0;
  for (int j = 0; j < m.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(m, j); it; ++it) {
      if (it.value() == 0.0 || (it.row() != i && j != i)) continue;
      if (it.row() != j) return false;
      diagonal = it.value();
    }
  }
  return diagonal != 0.0;
}

}  // namespace

CondensedSystem::CondensedSystem(const System& system, double start_s)
    : system_(&system), start_s_(start_s) {
  find_offsets();
  condense();
  if (has_descriptor()) analyse();
}

void CondensedSystem::find_offsets() {
  Issues issues;
  for (std::size_t i = 0; i < system_->parts().size(); ++i) {
    const Part& part = system_->parts()[i];
    block_of_part_.push_back(-1);
    if (auto defect = wave_only_defect(part, i)) {
      issues.push_back(*std::move(defect));
      continue;
    }
    const Subsystem& physics = *part.port_hamiltonian();
    const LinearForm form = physics.linear_form();
    if (form.Q == nullptr || !physics.constant_structure()) {
      issues.push_back(
          {fmt::format("/subsystems/{}", i),
           fmt::format("\"{}\" ({}) is not linear", part.name, physics.signature().type)});
      continue;
    }
    const int n = physics.signature().state_size();
    const int p = physics.signature().wave_size();
    const Structure& s = physics.structure();
    const SparseMatrix feed = s.S + s.N;
    for (std::size_t c = 0; c < part.inputs.size(); ++c) {
      if (!part.input_is_driven[c]) continue;
      const int column = p + static_cast<int>(c);
      const SparseMatrix own_P = s.P.col(column), own_feed = feed.col(column);
      const SparseMatrix seen = SparseMatrix(feed.transpose()).col(column);
      if (size_of(own_P) > 0.0 || size_of(own_feed) > 0.0 || size_of(seen) > 0.0) {
        issues.push_back(
            {fmt::format("/subsystems/{}/inputs/{}", i, physics.signature().inputs[c].name),
             "this input acts on an output without delay (feedthrough)"});
      }
      inputs_.push_back({static_cast<int>(i), static_cast<int>(c), &part.inputs[c]});
    }
    if (n == 0) continue;
    CondensedBlock block;
    block.part = static_cast<int>(i);
    block.first = size_;
    block.size = n;
    block.is_descriptor = form.E != nullptr && !elimination::is_identity(*form.E);
    block.is_active = physics.is_active();
    block.E = block.is_descriptor ? *form.E : identity(n);
    block.J = s.J;
    block.R = s.R;
    block.Q = *form.Q;
    block_of_part_.back() = static_cast<int>(blocks_.size());
    size_ += n;
    blocks_.push_back(std::move(block));
  }
  if (blocks_.empty() && issues.empty()) issues.push_back({"/subsystems", "no part has a state"});
  throw_if_any(std::move(issues));
}

/// How the scalar ports see the blocks, and one another through the junctions.
struct CondensedSystem::PortMaps {
  SparseMatrix D;                       // feedthrough of the parts
  SparseMatrix M;                       // inputs by outputs without feedthrough
  std::vector<int> block_of_port;       // −1: a part without states
  std::vector<SparseMatrix> into, out;  // by block: how its ports act on its states, and see them
  std::vector<SparseEntries> own;       // by block: entries of M within it, by its own ports
  std::vector<bool> is_channel;         // by port: M couples it with another block
  std::vector<int> channel_of_port;     // −1: none
};

void CondensedSystem::condense() {
  PortMaps ports = port_maps();
  observe_ports(ports);
  split_gains(ports);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    add_own_gain(blocks_[i], ports, i);
    make_channels(blocks_[i], ports, i);
  }
  couple_channels(ports);
  refuse_shared_dampers();
  for (CondensedBlock& block : blocks_) drive(block);
}

CondensedSystem::PortMaps CondensedSystem::port_maps() const {
  const System& system = *system_;
  Issues issues;
  PortMaps ports;
  ports.D = port_feedthrough(system);
  ports.M = port_gains(system, ports.D, issues);
  throw_if_any(std::move(issues));
  const std::size_t count = system.scalar_ports().size();
  ports.block_of_port.assign(count, -1);
  ports.channel_of_port.assign(count, -1);
  ports.is_channel.assign(count, false);
  ports.own.resize(blocks_.size());
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const CondensedBlock& block = blocks_[i];
    const Subsystem& part =
        *system.parts()[static_cast<std::size_t>(block.part)].port_hamiltonian();
    const int first = system.first_scalar_port(block.part);
    const int p = part.signature().wave_size();
    ports.into.emplace_back(SparseMatrix(part.structure().G - part.structure().P).leftCols(p));
    ports.out.emplace_back(SparseMatrix(part.structure().G + part.structure().P).leftCols(p));
    for (int j = 0; j < p; ++j) {
      ports.block_of_port[static_cast<std::size_t>(first + j)] = static_cast<int>(i);
    }
  }
  return ports;
}

/// Inputs and outputs of the ports as functions of z.
void CondensedSystem::observe_ports(const PortMaps& ports) {
  effort_in_ = effort_inputs(*system_);
  SparseEntries seen;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const int first_port = system_->first_scalar_port(blocks_[i].part);
    for (int j = 0; j < ports.out[i].outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(ports.out[i], j); it; ++it) {
        seen.emplace_back(first_port + j, blocks_[i].first + static_cast<int>(it.row()),
                          it.value());
      }
    }
  }
  const auto port_count = static_cast<Eigen::Index>(ports.block_of_port.size());
  const SparseMatrix y0_of_z = sparse_matrix(port_count, size_, seen);
  input_of_z_ = ports.M * y0_of_z;
  output_of_z_ = y0_of_z + SparseMatrix(ports.D * input_of_z_);
}

/// Within a block M adds to J and R; between blocks it is the coupling.
void CondensedSystem::split_gains(PortMaps& ports) const {
  const auto first_port = [&](int block) {
    return system_->first_scalar_port(blocks_[static_cast<std::size_t>(block)].part);
  };
  for (int b = 0; b < ports.M.outerSize(); ++b) {
    const int of = ports.block_of_port[static_cast<std::size_t>(b)];
    for (SparseMatrix::InnerIterator it(ports.M, b); it; ++it) {
      const int a = static_cast<int>(it.row());
      const int to = ports.block_of_port[static_cast<std::size_t>(a)];
      if (of < 0 || to < 0 || it.value() == 0.0) continue;
      if (of != to) {
        ports.is_channel[static_cast<std::size_t>(a)] = true;
        ports.is_channel[static_cast<std::size_t>(b)] = true;
      } else {
        ports.own[static_cast<std::size_t>(of)].emplace_back(a - first_port(of), b - first_port(of),
                                                             it.value());
      }
    }
  }
}

void CondensedSystem::add_own_gain(CondensedBlock& block, const PortMaps& ports,
                                   std::size_t index) {
  if (ports.own[index].empty()) return;
  const SparseMatrix &into = ports.into[index], &out = ports.out[index];
  const SparseMatrix gain = sparse_matrix(into.cols(), into.cols(), ports.own[index]);
  const SparseMatrix X = into * gain * SparseMatrix(out.transpose());
  const SparseMatrix Xt = X.transpose();
  // Entries that only rounding has made would count as negative dampers.
  // They are as large as the terms, which may cancel.
  const double rounding = 1e-14 * size_of(SparseMatrix(into.cwiseAbs() * gain.cwiseAbs() *
                                                       SparseMatrix(out.transpose()).cwiseAbs()));
  const auto without_rounding = [&](SparseMatrix m) {
    m.prune([&](Eigen::Index, Eigen::Index, double value) { return std::abs(value) > rounding; });
    return m;
  };
  block.J += without_rounding(0.5 * SparseMatrix(X - Xt));
  block.R -= without_rounding(0.5 * SparseMatrix(X + Xt));
}

/// One channel for each port through which other blocks act.
void CondensedSystem::make_channels(CondensedBlock& block, PortMaps& ports, std::size_t index) {
  block.first_channel = static_cast<int>(block_of_channel_.size());
  const SparseMatrix &into = ports.into[index], &out = ports.out[index];
  const int first_port = system_->first_scalar_port(block.part);
  SparseEntries in, see;
  for (int j = 0; j < into.outerSize(); ++j) {
    const auto port = static_cast<std::size_t>(first_port + j);
    if (!ports.is_channel[port]) continue;
    ports.channel_of_port[port] = static_cast<int>(block_of_channel_.size());
    block_of_channel_.push_back(static_cast<int>(index));
    for (SparseMatrix::InnerIterator it(into, j); it; ++it) {
      in.emplace_back(it.row(), block.channels, it.value());
    }
    for (SparseMatrix::InnerIterator it(out, j); it; ++it) {
      see.emplace_back(it.row(), block.channels, it.value());
    }
    ++block.channels;
  }
  block.into = sparse_matrix(block.size, block.channels, in);
  block.out = sparse_matrix(block.size, block.channels, see);
}

void CondensedSystem::couple_channels(const PortMaps& ports) {
  const auto block_of = [&](int channel) {
    return block_of_channel_[static_cast<std::size_t>(channel)];
  };
  SparseEntries coupling;
  for (int b = 0; b < ports.M.outerSize(); ++b) {
    for (SparseMatrix::InnerIterator it(ports.M, b); it; ++it) {
      const int a = ports.channel_of_port[static_cast<std::size_t>(it.row())];
      const int c = ports.channel_of_port[static_cast<std::size_t>(b)];
      if (a < 0 || c < 0 || block_of(a) == block_of(c)) continue;
      coupling.emplace_back(a, c, it.value());
    }
  }
  const auto channels = static_cast<Eigen::Index>(block_of_channel_.size());
  C_ = sparse_matrix(channels, channels, coupling);
}

void CondensedSystem::refuse_shared_dampers() const {
  constexpr std::size_t kMostIssues = 8;
  Issues issues;
  const SparseMatrix J_o = J_coupling();
  const SparseMatrix symmetric = J_o + SparseMatrix(J_o.transpose());
  const SparseMatrix size = J_coupling(/*magnitudes=*/true);
  for (int j = 0; j < symmetric.outerSize() && issues.size() < kMostIssues; ++j) {
    for (SparseMatrix::InnerIterator it(symmetric, j); it; ++it) {
      const auto i = static_cast<int>(it.row());
      if (i > j || std::abs(it.value()) <= 1e-12 * (size.coeff(i, j) + size.coeff(j, i))) continue;
      issues.push_back(
          {"/couplings",
           fmt::format("the coupling dissipates between {} and {}: a damper that two parts "
                       "share; put it into one of them",
                       state_label(i), state_label(j))});
      if (issues.size() == kMostIssues) break;
    }
  }
  throw_if_any(std::move(issues));
}

/// How the external inputs act on the states of a block.
void CondensedSystem::drive(CondensedBlock& block) const {
  const Subsystem& part =
      *system_->parts()[static_cast<std::size_t>(block.part)].port_hamiltonian();
  SparseEntries entries;
  for (std::size_t k = 0; k < inputs_.size(); ++k) {
    if (inputs_[k].part != block.part) continue;
    const int column = part.signature().wave_size() + inputs_[k].input;
    for (SparseMatrix::InnerIterator it(part.structure().G, column); it; ++it) {
      entries.emplace_back(static_cast<int>(it.row()), static_cast<int>(k), it.value());
    }
  }
  block.B = sparse_matrix(block.size, static_cast<Eigen::Index>(inputs_.size()), entries);
}

bool CondensedSystem::has_descriptor() const {
  return std::any_of(blocks_.begin(), blocks_.end(), [](const auto& b) { return b.is_descriptor; });
}

bool CondensedSystem::has_active() const {
  return std::any_of(blocks_.begin(), blocks_.end(), [](const auto& b) { return b.is_active; });
}

SparseMatrix CondensedSystem::block_diagonal(SparseMatrix CondensedBlock::*member) const {
  SparseEntries entries;
  for (const CondensedBlock& block : blocks_) {
    const SparseMatrix& m = block.*member;
    for (int j = 0; j < m.outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(m, j); it; ++it) {
        entries.emplace_back(block.first + static_cast<int>(it.row()), block.first + j, it.value());
      }
    }
  }
  return sparse_matrix(size_, size_, entries);
}

SparseMatrix CondensedSystem::E() const { return block_diagonal(&CondensedBlock::E); }
SparseMatrix CondensedSystem::J_local() const { return block_diagonal(&CondensedBlock::J); }
SparseMatrix CondensedSystem::R() const { return block_diagonal(&CondensedBlock::R); }
SparseMatrix CondensedSystem::Q() const { return block_diagonal(&CondensedBlock::Q); }

SparseMatrix CondensedSystem::J_coupling() const { return J_coupling(/*magnitudes=*/false); }

SparseMatrix CondensedSystem::J_coupling(bool magnitudes) const {
  SparseEntries in, see;
  for (const CondensedBlock& block : blocks_) {
    for (int c = 0; c < block.channels; ++c) {
      for (SparseMatrix::InnerIterator it(block.into, c); it; ++it) {
        in.emplace_back(block.first + static_cast<int>(it.row()), block.first_channel + c,
                        it.value());
      }
      for (SparseMatrix::InnerIterator it(block.out, c); it; ++it) {
        see.emplace_back(block.first_channel + c, block.first + static_cast<int>(it.row()),
                         it.value());
      }
    }
  }
  const auto r = static_cast<Eigen::Index>(channels());
  const SparseMatrix into = sparse_matrix(size_, r, in), out = sparse_matrix(r, size_, see);
  if (magnitudes) return into.cwiseAbs() * C_.cwiseAbs() * out.cwiseAbs();
  return into * C_ * out;
}

SparseMatrix CondensedSystem::B() const {
  SparseEntries entries;
  for (const CondensedBlock& block : blocks_) {
    for (int j = 0; j < block.B.outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(block.B, j); it; ++it) {
        entries.emplace_back(block.first + static_cast<int>(it.row()), j, it.value());
      }
    }
  }
  return sparse_matrix(size_, static_cast<Eigen::Index>(inputs_.size()), entries);
}

void CondensedSystem::analyse() {
  const SparseMatrix J = J_local() + J_coupling();
  analysis_ = analyse_descriptor(E(), J, R(), Q());
  if (!analysis_.regular) {
    throw ConfigError(
        "/subsystems",
        "the coupled system has no unique solution: its pencil sE - (J - R)Q is singular");
  }
  if (analysis_.index > 2) {
    throw ConfigError("/subsystems",
                      "the coupled system has an index above 2, which no passive one has");
  }
}

Eigen::VectorXd CondensedSystem::initial_state() const {
  Eigen::VectorXd x(size_);
  for (const CondensedBlock& block : blocks_) {
    const std::vector<double>& own =
        system_->parts()[static_cast<std::size_t>(block.part)].initial_state;
    std::copy(own.begin(), own.end(), x.data() + block.first);
  }
  if (analysis_.algebraic == 0) return x;

  // u′ by a forward difference: only constraints that inputs act on ask for it.
  constexpr double kShort_s = 1e-8, kRounding = 1e-15;
  const double later_s = start_s_ + std::max(kShort_s, kRounding / kShort_s * std::abs(start_s_));
  Eigen::VectorXd u = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(inputs_.size())), later = u;
  const auto sample_at = [&](double time_s, Eigen::VectorXd& values) {
    Issues issues;
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      const CondensedInput& input = inputs_[k];
      const Part& part = system_->parts()[static_cast<std::size_t>(input.part)];
      const std::string where = fmt::format(
          "/subsystems/{}/inputs/{}", input.part,
          part.component->signature().inputs[static_cast<std::size_t>(input.input)].name);
      double& value = values[static_cast<Eigen::Index>(k)];
      try {
        value = (*input.signal)(time_s);
        if (!std::isfinite(value)) issues.push_back({where, "is not finite at the start"});
      } catch (const std::exception& error) {
        issues.push_back({where, std::string("threw at the start: ") + error.what()});
      } catch (...) {
        issues.push_back({where, "threw at the start"});
      }
    }
    throw_if_any(std::move(issues));
  };
  sample_at(start_s_, u);
  sample_at(later_s, later);
  const SparseMatrix A = descriptor_rate(J_local() + J_coupling(), R(), Q());
  const ConsistentState found =
      consistent_state(E(), A, B() * u, B() * ((later - u) / (later_s - start_s_)), x);
  if (found.consistent()) return found.x;
  Issues issues;
  for (const ViolatedConstraint& violated : found.violated) {
    const auto list = [&](const std::vector<int>& numbers) {
      std::string text;
      for (std::size_t i = 0; i < numbers.size() && i < 6; ++i) {
        text += (i == 0 ? "" : ", ") + state_label(numbers[i]);
      }
      return text + (numbers.size() > 6 ? ", ..." : "");
    };
    const auto after = std::upper_bound(blocks_.begin(), blocks_.end(), violated.equations.front(),
                                        [](int s, const CondensedBlock& b) { return s < b.first; });
    issues.push_back({fmt::format("/subsystems/{}/initial_state", std::prev(after)->part),
                      fmt::format("not consistent: the algebraic equation of {} between {} is off "
                                  "by {:.3g}, its terms being {:.3g}",
                                  list(violated.equations), list(violated.states),
                                  violated.residual, violated.size)});
  }
  throw ConfigError(std::move(issues));
}

void CondensedSystem::sample(double time_s, double* u) const {
  for (std::size_t k = 0; k < inputs_.size(); ++k) u[k] = (*inputs_[k].signal)(time_s);
}

void CondensedSystem::ports(const double* z, std::span<double> effort,
                            std::span<double> flow) const {
  std::fill(effort.begin(), effort.end(), 0.0);
  std::fill(flow.begin(), flow.end(), 0.0);
  const auto add = [&](const SparseMatrix& of_z, bool are_inputs) {
    for (int j = 0; j < of_z.outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(of_z, j); it; ++it) {
        const auto port = static_cast<std::size_t>(it.row());
        (effort_in_[port] == are_inputs ? effort : flow)[port] += it.value() * z[j];
      }
    }
  };
  add(input_of_z_, true);
  add(output_of_z_, false);
}

std::string CondensedSystem::state_label(int state) const {
  const auto after = std::upper_bound(blocks_.begin(), blocks_.end(), state,
                                      [](int s, const CondensedBlock& b) { return s < b.first; });
  const CondensedBlock& block = *std::prev(after);
  const Part& part = system_->parts()[static_cast<std::size_t>(block.part)];
  return part.name + "." +
         part.component->signature().states[static_cast<std::size_t>(state - block.first)].name;
}

std::vector<ScalarCoupling> CondensedSystem::scalar_couplings(std::string& reason) const {
  struct Channel {
    int state = -1;     // of the whole
    double into = 0.0;  // what a unit of the channel's input adds to ẋ of the state
    double seen = 0.0;  // the channel's output per unit of the state
  };
  const auto label = [this](int channel) {
    const CondensedBlock& b = blocks_[static_cast<std::size_t>(block_of_channel(channel))];
    return "\"" + system_->parts()[static_cast<std::size_t>(b.part)].name + "\"";
  };
  std::vector<Channel> channel(static_cast<std::size_t>(channels()));
  std::vector<int> user(static_cast<std::size_t>(size_), -1);
  for (const CondensedBlock& block : blocks_) {
    const SparseMatrix sees = SparseMatrix(block.Q.transpose()) * block.out;
    for (int c = 0; c < block.channels; ++c) {
      const int number = block.first_channel + c;
      const int row = single_row(block.into, c);
      const bool lone = row >= 0 && single_row(sees, c) == row &&
                        (!block.is_descriptor || stands_alone(block.E, row));
      if (!lone) {
        reason = "a coupling of " + label(number) + " does not touch just one of its states";
        return {};
      }
      Channel& own = channel[static_cast<std::size_t>(number)];
      own = {block.first + row, block.into.coeff(row, c) / block.E.coeff(row, row),
             sees.coeff(row, c)};
      int& other = user[static_cast<std::size_t>(own.state)];
      if (other >= 0) {
        reason = "two couplings overlap in " + state_label(own.state);
        return {};
      }
      other = number;
    }
  }
  std::vector<ScalarCoupling> out;
  for (int c = 0; c < channels(); ++c) {
    const int partner = single_row(C_, c);
    if (partner < 0 || single_row(C_, partner) != c) {
      reason = "a coupling of " + label(c) + " joins more than two states";
      return {};
    }
    if (partner < c) continue;
    const Channel &a = channel[static_cast<std::size_t>(c)],
                  &b = channel[static_cast<std::size_t>(partner)];
    out.push_back({a.state, b.state, a.into * C_.coeff(c, partner) * b.seen,
                   b.into * C_.coeff(partner, c) * a.seen});
  }
  return out;
}

}  // namespace portwave
