#include "network/explicit/storage_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <limits>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {

StorageCheck::StorageCheck(const NetworkForm& network) : network_(network) {
  std::size_t longest = 0;
  for (const int number : network.probed_parts) {
    const Part& part = network.system().parts()[at(number)];
    Own own{.part = number, .first = network.first_state(number), .start = part.initial_state};
    const auto size = static_cast<int>(own.start.size());
    for (int i = 0; i < size; ++i) {
      if (network.by_callback[at(own.first + i)] == 0) own.states.push_back(i);
    }
    if (own.states.empty()) continue;
    own.slope.resize(own.start.size());
    own.is_all = own.states.size() == own.start.size();
    own.start_J = part.port_hamiltonian()->storage(own.start.data());
    part.port_hamiltonian()->gradient(own.start.data(), own.slope.data());
    longest = std::max(longest, own.start.size());
    parts_.push_back(std::move(own));
  }
  reference_.resize(longest);
  moved_.resize(longest);
}

double StorageCheck::astray(const Own& own, const double* x) {
  constexpr double kForm = 1e-8, kRounding = 64.0 * std::numeric_limits<double>::epsilon();
  const Subsystem& physics = *network_.system().parts()[at(own.part)].port_hamiltonian();
  std::ranges::copy(x, x + own.start.size(), reference_.begin());
  std::ranges::fill(moved_, 0.0);
  for (const int i : own.states) {
    moved_[at(i)] = x[i] - own.start[at(i)];
    reference_[at(i)] = own.start[at(i)];
  }
  double change_J = 0.0, terms_J = 0.0, rounding_J = 0.0;
  for (const int i : own.states) {
    double bend = 0.0;
    for (SparseMatrix::InnerIterator it(network_.hessian, own.first + i); it; ++it) {
      bend += it.value() * moved_[at(static_cast<int>(it.row()) - own.first)];
    }
    const double straight_J = own.slope[at(i)] * moved_[at(i)];
    const double bent_J = 0.5 * bend * moved_[at(i)];
    change_J += straight_J + bent_J;
    terms_J += std::abs(straight_J) + std::abs(bent_J);
    rounding_J += (std::abs(own.slope[at(i)]) + std::abs(bend)) *
                  (std::abs(x[i]) + std::abs(own.start[at(i)]));
  }
  double here_J = std::numeric_limits<double>::quiet_NaN(), there_J = own.start_J;
  try {
    here_J = physics.storage(x);
    if (!own.is_all) there_J = physics.storage(reference_.data());
  } catch (const std::exception&) {  // no energy there
  }
  const double apart_J = std::abs(here_J - there_J - change_J);
  const double allowed_J = kForm * terms_J +
                           kRounding * (std::abs(here_J) + std::abs(there_J) + rounding_J) +
                           std::numeric_limits<double>::min();
  return std::isfinite(apart_J) ? apart_J / allowed_J : std::numeric_limits<double>::infinity();
}

int StorageCheck::part_astray(std::span<const double> x) {
  int worst = -1;
  double most = 1.0;
  for (const Own& own : parts_) {
    const double ratio = astray(own, x.data() + own.first);
    if (ratio <= most) continue;
    most = ratio;
    worst = own.part;
  }
  return worst;
}

}  // namespace portwave
