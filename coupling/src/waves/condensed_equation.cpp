#include "waves/condensed_equation.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/descriptor/descriptor_part.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"

namespace portwave {
namespace {

bool is_common_flow(const DiracStructure& dirac) {
  const DiracStructure known = DiracStructure::common_flow(dirac.size());
  return dirac.size() > 0 && dirac.E == known.E && dirac.F == known.F;
}

std::vector<int> all_rows(const SparseMatrix& M) {
  std::vector<int> rows(static_cast<std::size_t>(M.rows()));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

}  // namespace

const CondensedForm* condensed_form_of(const Part& part) {
  if (part.component->stages() > 1 || part.component->stage_rule().is_damped()) return nullptr;
  const auto* const descriptor =
      dynamic_cast<const DescriptorPortHamiltonian*>(part.port_hamiltonian());
  return descriptor == nullptr ? nullptr : descriptor->condensed();
}

std::unique_ptr<CondensedEquation> CondensedEquation::of(const System& system,
                                                         const IslandNetworks& networks,
                                                         int island) {
  const std::vector<int>& parts = networks.of[at(island)].parts;
  const bool has_condensed = std::ranges::any_of(
      parts, [&](int part) { return condensed_form_of(system.parts()[at(part)]) != nullptr; });
  if (!has_condensed) return nullptr;
  std::unique_ptr<CondensedEquation> made(new CondensedEquation(system, networks, island));
  return made->number_unknowns() ? std::move(made) : nullptr;
}

CondensedEquation::CondensedEquation(const System& system, const IslandNetworks& networks,
                                     int island)
    : system_(system), network_(networks.of[at(island)]), local_(networks.local) {}

bool CondensedEquation::number_unknowns() {
  std::map<int, int> member_of;
  for (const int part : network_.parts) {
    const CondensedForm* const form = condensed_form_of(system_.parts()[at(part)]);
    if (form == nullptr) {
      other_parts_.push_back(part);
      continue;
    }
    member_of.emplace(part, static_cast<int>(members_.size()));
    Member& member = members_.emplace_back();
    member.part = part;
    member.form = form;
    member.unknown.assign(form->boundary().size(), -1);
    member.velocity.setZero(static_cast<Eigen::Index>(form->boundary().size()));
    member.force = member.velocity;
  }
  other_at_.assign(network_.ports.size(), -1);
  std::vector<std::pair<Member*, int>> places;
  const DiracStructure* known = nullptr;  // a structure of common flow
  for (const int junction : network_.junctions) {
    const Junction& own = system_.junctions()[at(junction)];
    places.clear();
    bool is_inner = &own.dirac == known || is_common_flow(own.dirac);
    if (is_inner) known = &own.dirac;
    for (const int port : own.waves) {
      const int part = system_.scalar_ports()[at(port)].part;
      const auto found = member_of.find(part);
      if (found == member_of.end()) {
        is_inner = false;
        break;
      }
      Member& member = members_[at(found->second)];
      const int place = member.form->place_of_port(port - system_.first_scalar_port(part));
      is_inner = is_inner && place >= 0 && member.unknown[at(place)] < 0 &&
                 std::ranges::find(places, std::pair(&member, place)) == places.end();
      if (!is_inner) break;
      places.emplace_back(&member, place);
    }
    if (is_inner) {
      for (std::size_t i = 0; i < places.size(); ++i) {
        places[i].first->unknown[at(places[i].second)] = unknowns_;
        places[i].first->inner.push_back({local_[at(own.waves[i])], places[i].second});
      }
      ++unknowns_;
      continue;
    }
    other_junctions_.push_back(junction);
    for (const int port : own.waves) {
      const int part = system_.scalar_ports()[at(port)].part;
      const auto found = member_of.find(part);
      Other other{local_[at(port)]};
      if (found != member_of.end()) {
        other.member = found->second;
        other.column = condensed_others_++;
      }
      other_at_[at(other.local)] = static_cast<int>(others_.size());
      others_.push_back(other);
    }
  }
  for (Member& member : members_) {
    for (int& unknown : member.unknown) {
      if (unknown < 0) unknown = unknowns_++;
    }
  }
  return static_cast<int>(others_.size()) <= kMostOthers && unknowns_ > 0;
}

void CondensedEquation::take_impedances(std::span<const double> impedance, double step_s) {
  gamma_.resize(network_.ports.size());
  s_.resize(network_.ports.size());
  for (std::size_t i = 0; i < gamma_.size(); ++i) {
    gamma_[i] = impedance[at(network_.ports[i])];
    s_[i] = std::sqrt(2.0 * gamma_[i] / step_s);
  }
}

/// Z = Σ Rᵢᵀ Σᵢ Rᵢ, column by column.
SparseMatrix CondensedEquation::assembled() const {
  std::vector<std::vector<std::pair<int, int>>> at_unknown(at(unknowns_));  // member, place
  for (std::size_t m = 0; m < members_.size(); ++m) {
    for (std::size_t k = 0; k < members_[m].unknown.size(); ++k) {
      at_unknown[at(members_[m].unknown[k])].emplace_back(static_cast<int>(m), static_cast<int>(k));
    }
  }
  SparseMatrix Z(unknowns_, unknowns_);
  std::vector<double> column(at(unknowns_), 0.0);
  std::vector<char> is_there(at(unknowns_), 0);
  std::vector<int> rows;
  for (int j = 0; j < unknowns_; ++j) {
    rows.clear();
    const auto add = [&](int row, double value) {
      column[at(row)] += value;
      if (is_there[at(row)] != 0) return;
      is_there[at(row)] = 1;
      rows.push_back(row);
    };
    for (const auto& [m, place] : at_unknown[at(j)]) {
      const Member& member = members_[at(m)];
      if (!member.step->has_interior()) {
        for (SparseMatrix::InnerIterator it(member.step->boundary, place); it; ++it) {
          add(member.unknown[static_cast<std::size_t>(it.row())], it.value());
        }
        continue;
      }
      const double* const values = member.step->factors.schur().col(place).data();
      for (std::size_t i = 0; i < member.unknown.size(); ++i) add(member.unknown[i], values[i]);
    }
    std::ranges::sort(rows);
    Z.startVec(j);
    for (const int row : rows) {
      Z.insertBack(row, j) = column[at(row)];
      column[at(row)] = 0.0;
      is_there[at(row)] = 0;
    }
  }
  Z.finalize();
  return Z;
}

/// Z, and Z⁻¹B_o. They depend on the step size alone.
bool CondensedEquation::factorise_unknowns(double step_s) {
  if (step_s_ == step_s) return true;
  SparseEntries acting;
  for (Member& member : members_) {
    member.step = member.form->step(step_s);
    if (member.step->has_interior()) continue;
    member.sparse = SymmetricProduct(member.step->boundary, all_rows(member.step->boundary));
    member.scratch.resize(static_cast<Eigen::Index>(member.sparse.scratch_size()));
  }
  for (const Other& other : others_) {
    if (other.member < 0) continue;
    const Member& member = members_[at(other.member)];
    const int port = network_.ports[at(other.local)] - system_.first_scalar_port(member.part);
    for (SparseMatrix::InnerIterator it(member.form->at_boundary(), port); it; ++it) {
      acting.emplace_back(member.unknown[static_cast<std::size_t>(it.row())], other.column,
                          it.value());
    }
  }
  acting_ = sparse_matrix(unknowns_, condensed_others_, acting);
  if (!factors_.factorise(assembled(), {})) return false;
  for (Eigen::VectorXd* vector : {&c_, &work_}) vector->setZero(unknowns_);
  scratch_.setZero(static_cast<Eigen::Index>(factors_.scratch_size()));
  answers_ = Eigen::MatrixXd(acting_);
  for (Eigen::Index j = 0; j < answers_.cols(); ++j) solve_unknowns(answers_.col(j).data());
  step_s_ = step_s;
  return true;
}

/// x = z + (γ/s) f and y = z − (γ/s) f at condensed ports, z = e/s; x = z and y = Dz at the others. With f
/// = f⁰ + B_oᵀZ⁻¹B_o s z the rows x − P y = r become a system for z.
bool CondensedEquation::factorise_others(const Interconnection& coupling, const PartMatrix& D,
                                         double shift) {
  const auto q = static_cast<Eigen::Index>(others_.size());
  Eigen::MatrixXd y = Eigen::MatrixXd::Zero(q, q),
                  y_of_f = Eigen::MatrixXd::Zero(q, condensed_others_);
  Eigen::MatrixXd x = Eigen::MatrixXd::Identity(q, q), x_of_f = y_of_f;
  Eigen::VectorXd scale = Eigen::VectorXd::Zero(condensed_others_);
  for (Eigen::Index k = 0; k < q; ++k) {
    const Other& other = others_[static_cast<std::size_t>(k)];
    const std::size_t local = at(other.local);
    if (other.member >= 0) {
      y(k, k) = 1.0;
      x_of_f(k, other.column) = gamma_[local] / s_[local];
      y_of_f(k, other.column) = -gamma_[local] / s_[local];
      scale[other.column] = s_[local];
      continue;
    }
    const int port = network_.ports[local];
    const int part = system_.scalar_ports()[at(port)].part;
    const int first = system_.first_scalar_port(part);
    const int size = system_.parts()[at(part)].component->signature().wave_size();
    const double* const row = D(part) + at(port - first) * at(size);
    for (int j = 0; j < size; ++j) {
      y(k, other_at_[at(local_[at(first + j)])]) = row[j];
    }
  }
  // P, junction by junction, on the rows of y.
  const auto exchanged = [&](const Eigen::MatrixXd& rows) {
    Eigen::MatrixXd out = Eigen::MatrixXd::Zero(rows.rows(), rows.cols());
    for (const int junction : other_junctions_) {
      const std::vector<int>& own = system_.junctions()[at(junction)].waves;
      const Eigen::MatrixXd P = coupling.block(junction);
      for (std::size_t i = 0; i < own.size(); ++i) {
        for (std::size_t j = 0; j < own.size(); ++j) {
          const double value = P(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j));
          if (value == 0.0) continue;
          out.row(other_at_[at(local_[at(own[i])])]) +=
              value * rows.row(other_at_[at(local_[at(own[j])])]);
        }
      }
    }
    return out;
  };
  of_flows_ = x_of_f - exchanged(y_of_f);
  Eigen::MatrixXd matrix = x - exchanged(y);
  if (condensed_others_ > 0) {
    const Eigen::MatrixXd flows = (acting_.transpose() * answers_) * scale.asDiagonal();
    for (const Other& other : others_) {
      if (other.member < 0) continue;
      matrix.col(other_at_[at(other.local)]) += of_flows_ * flows.col(other.column);
    }
  }
  matrix.diagonal().array() += shift;
  if (!matrix.allFinite()) return false;
  if (q > 0) small_.compute(matrix);
  z_.setZero(q);
  rows_.setZero(q);
  flows_.setZero(condensed_others_);
  forces_.setZero(condensed_others_);
  return true;
}

bool CondensedEquation::factorise(const Interconnection& coupling,
                                  std::span<const double> impedance, double step_s,
                                  const PartMatrix& D, double shift) {
  take_impedances(impedance, step_s);
  return factorise_unknowns(step_s) && factorise_others(coupling, D, shift);
}

/// force = Σ velocity
void CondensedEquation::multiply(Member& member) const {
  if (!member.step->has_interior()) {
    member.force.setZero();
    member.sparse.add(1.0, member.velocity.data(), member.force.data(), member.scratch.data());
  } else {
    member.step->factors.multiply_schur(member.velocity.data(), member.force.data());
  }
}

void CondensedEquation::solve_unknowns(double* x) {
  const std::vector<int>& order = factors_.order();
  for (std::size_t k = 0; k < order.size(); ++k) work_[static_cast<Eigen::Index>(k)] = x[order[k]];
  factors_.reduce(work_.data(), scratch_.data());
  factors_.expand(work_.data(), scratch_.data());
  for (std::size_t k = 0; k < order.size(); ++k) x[order[k]] = work_[static_cast<Eigen::Index>(k)];
}

void CondensedEquation::solve(const double* gap, double* change, const ForEach& each) {
  const auto count = static_cast<int>(members_.size());
  // The velocities that the gap alone asks for, and the forces that they take.
  each(count, [&](int i) {
    Member& member = members_[at(i)];
    member.velocity.setZero();
    for (const Inner& own : member.inner) {
      member.velocity[own.place] = gap[own.local] / s_[at(own.local)] / step_s_;
    }
    multiply(member);
  });
  c_.setZero();
  for (const Member& member : members_) {
    for (const Inner& own : member.inner) {
      c_[member.unknown[at(own.place)]] += 0.5 * s_[at(own.local)] * gap[own.local];
    }
    for (std::size_t k = 0; k < member.unknown.size(); ++k) {
      c_[member.unknown[k]] -= member.force[static_cast<Eigen::Index>(k)];
    }
  }
  solve_unknowns(c_.data());
  if (!others_.empty()) {
    flows_.noalias() = acting_.transpose() * c_;
    for (const Other& other : others_) {
      if (other.member < 0) continue;
      const Member& member = members_[at(other.member)];
      const int port = network_.ports[at(other.local)] - system_.first_scalar_port(member.part);
      for (SparseMatrix::InnerIterator it(member.form->at_boundary(), port); it; ++it) {
        flows_[other.column] += it.value() * member.velocity[it.row()];
      }
    }
    z_.noalias() = -(of_flows_ * flows_);
    for (std::size_t k = 0; k < others_.size(); ++k) {
      z_[static_cast<Eigen::Index>(k)] += gap[others_[k].local];
    }
    for (Eigen::Index k = 0; k < z_.size(); ++k) {
      rows_[small_.permutationP().indices()[k]] = z_[k];
    }
    z_ = rows_;
    small_.matrixLU().triangularView<Eigen::UnitLower>().solveInPlace(z_);
    small_.matrixLU().triangularView<Eigen::Upper>().solveInPlace(z_);
    for (std::size_t k = 0; k < others_.size(); ++k) {
      const Other& other = others_[k];
      if (other.member < 0) continue;
      forces_[other.column] = s_[at(other.local)] * z_[static_cast<Eigen::Index>(k)];
    }
    work_.noalias() = answers_ * forces_;
    c_ += work_;
    flows_.noalias() += acting_.transpose() * work_;
    for (std::size_t k = 0; k < others_.size(); ++k) {
      const Other& other = others_[k];
      const std::size_t local = at(other.local);
      change[other.local] = z_[static_cast<Eigen::Index>(k)];
      if (other.member >= 0)
        change[other.local] += gamma_[local] / s_[local] * flows_[other.column];
    }
  }
  each(count, [&](int i) {
    Member& member = members_[at(i)];
    for (std::size_t k = 0; k < member.unknown.size(); ++k) {
      member.velocity[static_cast<Eigen::Index>(k)] += c_[member.unknown[k]];
    }
    multiply(member);
  });
  for (const Other& other : others_) {
    if (other.member < 0) continue;
    Member& member = members_[at(other.member)];
    const int port = network_.ports[at(other.local)] - system_.first_scalar_port(member.part);
    for (SparseMatrix::InnerIterator it(member.form->at_boundary(), port); it; ++it) {
      member.force[it.row()] -= it.value() * forces_[other.column];
    }
  }
  for (const Member& member : members_) {
    for (const Inner& own : member.inner) {
      const std::size_t local = at(own.local);
      change[own.local] =
          (member.force[own.place] + gamma_[local] * member.velocity[own.place]) / s_[local];
    }
  }
}

std::size_t CondensedEquation::entries() const {
  std::size_t sum = factors_.entries() + others_.size() * others_.size();
  for (const Member& member : members_) {
    const std::size_t size = member.unknown.size();
    const bool is_dense = member.step != nullptr && member.step->has_interior();
    sum += is_dense ? size * size : member.sparse.entries();
  }
  return sum;
}

std::size_t CondensedEquation::bytes() const {
  std::size_t sum = factors_.bytes() + 8 * others_.size() * others_.size() +
                    8 * static_cast<std::size_t>(answers_.size());
  for (const Member& member : members_) {
    sum += member.sparse.bytes() + 24 * member.unknown.size();
  }
  return sum;
}

}  // namespace portwave
