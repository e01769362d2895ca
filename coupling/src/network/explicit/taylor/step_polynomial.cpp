#include "network/explicit/taylor/step_polynomial.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {

StepPolynomial::StepPolynomial(const NetworkForm& network) : network_(network) {
  for (Eigen::VectorXd* own : {&z_, &rate_, &there_}) own->resize(network.size());
  s_.resize(static_cast<Eigen::Index>(network.inputs.size()));
}

void StepPolynomial::look_at(const double* x, double start_s, double step_s, double share,
                             bool with_rate) {
  const std::span<const Part> parts = network_.system().parts();
  for (int part = 0; part < static_cast<int>(parts.size()); ++part) {
    if (parts[at(part)].initial_state.empty()) continue;
    const int first = network_.first_state(part);
    parts[at(part)].port_hamiltonian()->gradient(x + first, z_.data() + first);
  }
  for (std::size_t k = 0; k < network_.inputs.size(); ++k) {
    s_[static_cast<Eigen::Index>(k)] = network_.input_in_step(
        static_cast<int>(k), {start_s + share * step_s, start_s, step_s, share, 3});
  }
  if (!with_rate) return;
  rate_.noalias() = network_.A * z_;
  rate_.noalias() += network_.B * s_;
}

void StepPolynomial::pass_through(std::span<const Node> nodes, double start_s, double step_s) {
  nodes_.resize(nodes.size());
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    nodes_[k].place = nodes[k].place;
    nodes_[k].x = Eigen::Map<const Eigen::VectorXd>(nodes[k].x.data(),
                                                    static_cast<Eigen::Index>(network_.size()));
    find_bend(nodes_[k], start_s, step_s);
  }
}

/// ẍ from rates at three states along the tangent, into the step.
void StepPolynomial::find_bend(Known& node, double start_s, double step_s) {
  constexpr double kReach = 1e-3;  // of the step: its square is the error
  const double inward = node.place < 1.0 ? kReach : -kReach, h = step_s;
  look_at(node.x.data(), start_s, h, node.place, true);
  node.slope = h * rate_;
  node.bend = -3.0 * rate_;
  // The second state has the curvature of the first, so that its own is met to the second order.
  there_ = node.x + inward * node.slope;
  look_at(there_.data(), start_s, h, node.place + inward, true);
  const Eigen::VectorXd curved = (0.5 * inward) * (h * rate_ - node.slope);
  there_ += curved;
  look_at(there_.data(), start_s, h, node.place + inward, true);
  node.bend += 4.0 * rate_;
  there_ = node.x + 2.0 * inward * node.slope + 4.0 * curved;
  look_at(there_.data(), start_s, h, node.place + 2.0 * inward, true);
  node.bend -= rate_;
  node.bend *= 0.5 * h / (2.0 * inward);
}

bool StepPolynomial::ends_at(std::span<const double> start, std::span<const double> end, int first,
                             int size) const {
  if (nodes_.empty()) return false;
  const auto is_at = [&](const Known& node, std::span<const double> x) {
    return std::equal(x.begin() + first, x.begin() + first + size, node.x.data() + first);
  };
  return is_at(nodes_.front(), start) && is_at(nodes_.back(), end);
}

/// By divided differences, every node counting three times.
void StepPolynomial::state(int first, double share, std::span<double> state) const {
  constexpr std::size_t kTimes = 3, kMost = kTimes * kMostNodes;
  const std::size_t count = kTimes * nodes_.size();
  std::array<double, kMost> place = {}, difference = {};
  for (std::size_t k = 0; k < count; ++k) place[k] = nodes_[k / kTimes].place;
  for (std::size_t i = 0; i < state.size(); ++i) {
    const auto own = static_cast<Eigen::Index>(at(first) + i);
    if (network_.is_dead[at(first) + i] != 0) {
      state[i] = decayed(own, share);
      continue;
    }
    for (std::size_t k = 0; k < count; ++k) difference[k] = nodes_[k / kTimes].x[own];
    for (std::size_t order = 1; order < count; ++order) {
      for (std::size_t k = count - 1; k >= order; --k) {
        const Known& node = nodes_[k / kTimes];
        const double length = place[k] - place[k - order];
        difference[k] = length != 0.0 ? (difference[k] - difference[k - 1]) / length
                        : order == 1  ? node.slope[own]
                                      : node.bend[own];
      }
    }
    double value = difference[count - 1];
    for (std::size_t k = count - 1; k-- > 0;) value = difference[k] + (share - place[k]) * value;
    state[i] = value;
  }
}

double StepPolynomial::decayed(Eigen::Index state, double share) const {
  std::size_t k = 0;
  while (k + 2 < nodes_.size() && nodes_[k + 1].place < share) ++k;
  const Known &from = nodes_[k], &to = nodes_[k + 1];
  const double part = (share - from.place) / (to.place - from.place);
  const double ratio = to.x[state] / from.x[state];
  if (!(ratio > 0.0)) return from.x[state] + part * (to.x[state] - from.x[state]);
  return from.x[state] * std::pow(ratio, part);
}

}  // namespace portwave
