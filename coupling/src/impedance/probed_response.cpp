// The response of a component that shows no equations, by steps that are taken back.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include <Eigen/Dense>

#include "impedance/response_tools.hpp"
#include "portwave/coupling/impedance/tuning.hpp"
#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"

namespace portwave {
namespace {

using Matrix = Eigen::MatrixXd;

/// Of the waves that a part sends out by itself, and at least: what its ports are probed with [√J].
constexpr double kRelativeStep = 1e-3;
constexpr double kLeastStep = 1e-6;
/// Parts with a solver of their own may answer small steps by jumps, and fail: these are tried one after the other.
constexpr double kLargerSteps[] = {1.0, 1e3, 1e6};
/// Where a port reflects nearly everything its response is lost in differences.
constexpr double kReflectsAll = 0.999;
constexpr double kLargeMove = 1e3;
constexpr int kMostMoves = 12;

/// One part in a batch of its own, frozen at a state.
class Probe {
 public:
  Probe(const Component& component, double step_s, const double* x)
      : component_(component), step_s_(step_s), x_(x) {
    const Component* parts[] = {&component};
    batch_ = component.make_batch(parts);
    record_.resize(batch_->record_size(), 0.0);
    for (AlignedVector* wave : {&a_, &b_[0], &b_[1]}) {
      wave->resize(static_cast<std::size_t>(batch_->wave_count()), 0.0);
    }
  }

  /// D at these impedances; empty when a step fails.
  std::optional<Matrix> scattering(const std::vector<double>& impedance) {
    const auto ports = static_cast<Eigen::Index>(impedance.size());
    batch_->prepare(step_s_, impedance.data());
    batch_->set_state(0, x_, record_.data());
    batch_->freeze({0, 1}, record_.data(), nullptr);
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> D(ports, ports);
    const AffineMap* const affine =
        component_.capabilities().linear ? batch_->affine_map() : nullptr;
    if (affine != nullptr) {
      affine->affine_matrix(0, D.data());
    } else if (!std::ranges::any_of(kLargerSteps,
                                    [&](double factor) { return differentiate(D, factor); })) {
      return std::nullopt;
    }
    if (!D.allFinite()) return std::nullopt;
    return Matrix(D);
  }

 private:
  template <class RowMajor>
  bool differentiate(RowMajor& D, double larger) {
    const Eigen::Index ports = D.rows();
    std::fill(a_.begin(), a_.end(), 0.0);
    if (!scatter(b_[0])) return false;
    double square = 0.0;
    for (Eigen::Index j = 0; j < ports; ++j) square += b_[0][at(j)] * b_[0][at(j)];
    const double step = larger * std::max(kRelativeStep * std::sqrt(square), kLeastStep);
    for (Eigen::Index j = 0; j < ports; ++j) {
      for (const int side : {0, 1}) {
        a_[at(j)] = side == 0 ? step : -step;
        if (!scatter(b_[side])) return false;
      }
      a_[at(j)] = 0.0;
      for (Eigen::Index i = 0; i < ports; ++i) {
        D(i, j) = (b_[0][at(i)] - b_[1][at(i)]) / (2.0 * step);
      }
    }
    return true;
  }
  bool scatter(AlignedVector& b) {
    return batch_->scatter({0, 1}, record_.data(), a_.data(), b.data()).ok();
  }
  static std::size_t at(Eigen::Index port) { return static_cast<std::size_t>(port); }

  const Component& component_;
  double step_s_;
  const double* x_;
  std::unique_ptr<StepBatch> batch_;
  AlignedVector record_, a_, b_[2];
};

/// M of ȳ = M ū, from D: with D′ = ΣD, M̂ = (I − D′)(I + D′)⁻¹ (see scattering_matrix).
Matrix response_of(Matrix D, std::span<const Causality> causality,
                   std::span<const double> impedance) {
  const Eigen::Index ports = D.rows();
  for (Eigen::Index j = 0; j < ports; ++j) {
    if (causality[static_cast<std::size_t>(j)] == Causality::flow_in) D.row(j) *= -1.0;
  }
  const Matrix identity = Matrix::Identity(ports, ports);
  const Matrix sum = identity + D;
  const Matrix scaled =
      sum.transpose().partialPivLu().solve((identity - D).transpose()).transpose();
  std::vector<double> inverse;
  for (const double gamma : impedance) inverse.push_back(1.0 / gamma);
  return scaled_response(scaled, causality, inverse);
}

/// (1 − M̂)/(1 + M̂) of a port: near 1 where it answers next to nothing at this impedance.
double reflected_at(const Matrix& D, Eigen::Index port, std::span<const Causality> causality) {
  const bool is_flow = causality[static_cast<std::size_t>(port)] == Causality::flow_in;
  return is_flow ? -D(port, port) : D(port, port);
}

/// Moves impedances to where the ports answer best: to their match, or, where a port reflects all
/// but everything, far towards it. Whether that moved any by more than a factor 2.
bool move_impedances(const Matrix& D, const Matrix& response, std::span<const Causality> causality,
                     std::vector<double>& impedance) {
  bool moved = false;
  for (std::size_t j = 0; j < impedance.size(); ++j) {
    const auto port = static_cast<Eigen::Index>(j);
    const bool is_flow = causality[j] == Causality::flow_in;
    const double reflected = reflected_at(D, port, causality);
    const double match = match_of(response(port, port), causality[j]);
    double next = impedance[j];
    if (std::abs(reflected) > kReflectsAll || !is_impedance(match)) {
      const bool is_small = reflected > 0.0;  // M̂_jj, which grows with γ for effort-in ports
      next *= is_small == is_flow ? 1.0 / kLargeMove : kLargeMove;
    } else {
      next = match;
    }
    if (!is_impedance(next)) continue;
    moved = moved || std::max(next / impedance[j], impedance[j] / next) > 2.0;
    impedance[j] = next;
  }
  return moved;
}

}  // namespace

/// Ports that reflect all however far impedances move, such as a contact that is open, answer nothing: 0.
std::optional<Eigen::MatrixXd> probed_response(const Component& component, double step_s,
                                               const double* x) {
  const Capabilities capabilities = component.capabilities();
  if (!capabilities.linear && !capabilities.linearisable) return std::nullopt;
  const std::vector<Causality> causality = scalar_causalities(component.signature());
  if (causality.empty()) return Matrix(0, 0);
  std::optional<Matrix> last;
  const auto take = [&](Matrix&& response, const Matrix& D) {
    for (Eigen::Index j = 0; j < D.rows(); ++j) {
      if (reflected_at(D, j, causality) < kReflectsAll) continue;
      response.row(j).setZero();
      response.col(j).setZero();
    }
    last = std::move(response);
  };
  try {
    Probe probe(component, step_s, x);
    std::vector<double> impedance(causality.size(), 1.0);
    for (int moves = 0;; ++moves) {
      const std::optional<Matrix> D = probe.scattering(impedance);
      if (!D) return last;
      Matrix response = response_of(*D, causality, impedance);
      if (!response.allFinite()) return last;
      const bool moved = moves < kMostMoves && move_impedances(*D, response, causality, impedance);
      take(std::move(response), *D);
      if (!moved) return last;
    }
  } catch (const std::exception&) {
    // A step that throws, or is singular at an impedance.
    return last;
  }
}

}  // namespace portwave
