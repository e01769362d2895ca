#include "network/explicit/kick_drift/motion_energies.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <limits>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

constexpr double kOfState = 64.0 * std::numeric_limits<double>::epsilon();

}  // namespace

MotionEnergies::MotionEnergies(const NetworkForm& network) : network_(network) {
  const auto states = at(network.size());
  stiffness_.assign(states, 0.0);
  cubic_.assign(states, 0.0);
  for (int i = 0; i < network.size(); ++i) {
    stiffness_[at(i)] = std::abs(network.hessian.coeff(i, i));
    cubic_[at(i)] = 3.0 * std::abs(network.cubic[at(i)]);
  }
  std::size_t longest = 0;
  const std::span<const Part> parts = network.system().parts();
  for (int part = 0; part < static_cast<int>(parts.size()); ++part) {
    const auto size = static_cast<int>(parts[at(part)].initial_state.size());
    if (size == 0) continue;
    Block block{.part = part, .first = network.first_state(part), .size = size};
    block.first_tie = static_cast<int>(ties_.size());
    for (int j = block.first; j < block.first + size; ++j) {
      if (network.by_callback[at(j)] != 0) block.by_callback = true;
      for (SparseMatrix::InnerIterator it(network.hessian, j); it; ++it) {
        const auto row = static_cast<int>(it.row());
        if (row != j && it.value() != 0.0) ties_.push_back({row, j, it.value()});
      }
    }
    block.last_tie = static_cast<int>(ties_.size());
    if (block.by_callback) longest = std::max(longest, at(size));
    blocks_.push_back(block);
  }
  for (std::vector<double>* scratch : {&x_, &gradient_, &gradient_there_}) {
    scratch->assign(longest, 0.0);
  }
}

void MotionEnergies::measure(std::span<const double> x, std::span<const double> error,
                             std::span<const double> start,
                             std::span<NetworkTrials::Energies> by_block) {
  for (std::size_t k = 0; k < blocks_.size(); ++k) {
    const Block& block = blocks_[k];
    double of_error = 0.0, of_motion = 0.0, of_rounding = 0.0;
    for (auto i = at(block.first); i < at(block.first + block.size); ++i) {
      const double curvature = stiffness_[i] + cubic_[i] * (x[i] * x[i]);
      const double moved = x[i] - start[i];
      of_error += curvature * (error[i] * error[i]);
      of_motion += curvature * (moved * moved);
      of_rounding += curvature * (x[i] * x[i]);
    }
    for (int t = block.first_tie; t < block.last_tie; ++t) {
      const Tie& tie = ties_[at(t)];
      const auto i = at(tie.row), j = at(tie.column);
      of_error += tie.value * error[i] * error[j];
      of_motion += tie.value * (x[i] - start[i]) * (x[j] - start[j]);
    }
    by_block[k] = {0.5 * std::abs(of_error), 0.5 * std::abs(of_motion),
                   0.5 * kOfState * kOfState * of_rounding};
    if (block.by_callback) {
      add_callback(block, x.data(), error.data(), start.data(), by_block[k]);
    }
  }
}

void MotionEnergies::add_callback(const Block& block, const double* x, const double* error,
                                  const double* start, NetworkTrials::Energies& out) {
  const Subsystem& part = *network_.system().parts()[at(block.part)].port_hamiltonian();
  const double* const own = x + block.first;
  try {
    part.gradient(own, gradient_.data());
    const auto between = [&](const auto& far) {
      for (int i = 0; i < block.size; ++i) x_[at(i)] = far(i);
      part.gradient(x_.data(), gradient_there_.data());
      double sum = 0.0;
      for (int i = 0; i < block.size; ++i) {
        if (network_.by_callback[at(block.first + i)] == 0) continue;
        sum += std::abs((own[i] - x_[at(i)]) * (gradient_[at(i)] - gradient_there_[at(i)]));
      }
      return 0.5 * sum;
    };
    out.error_J += between([&](int i) { return own[i] - error[block.first + i]; });
    out.motion_J += between([&](int i) { return start[block.first + i]; });
    for (int i = 0; i < block.size; ++i) {
      if (network_.by_callback[at(block.first + i)] == 0) continue;
      out.rounding_J += kOfState * kOfState * std::abs(gradient_[at(i)] * own[i]) +
                        std::numeric_limits<double>::epsilon() *
                            std::abs(gradient_[at(i)] * error[block.first + i]);
    }
  } catch (const std::exception&) {  // outside the domain of a callback
    out.error_J = std::numeric_limits<double>::infinity();
  }
}

}  // namespace portwave
