#include "portwave/coupling/impedance/wave_scale.hpp"

#include <cmath>
#include <cstddef>

#include "impedance/response_tools.hpp"
#include "impedance/two_ports.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"

namespace portwave {
namespace {

constexpr double kFarOff = 1e9;

bool is_drowned(const Eigen::MatrixXd& response, const Signature& signature,
                std::span<const double> impedance) {
  const auto is_far_off = [](double own) {
    return own > kFarOff || (own > 0.0 && own < 1.0 / kFarOff);
  };
  if (response.rows() == 2) {
    TwoByTwo closed = scaled_two_ports(response, signature, impedance);
    if (is_far_off(closed.a00) || is_far_off(closed.a11)) return true;
    closed.a00 += 1.0;
    closed.a11 += 1.0;
    return !(closed.norm() * TwoByTwoLu(closed).inverse().norm() <= kFarOff);
  }
  const Eigen::MatrixXd scaled =
      scaled_response(response, scalar_causalities(signature), impedance);
  for (Eigen::Index j = 0; j < scaled.rows(); ++j) {
    if (is_far_off(scaled(j, j))) return true;
  }
  if (scaled.rows() < 2) return false;
  const Eigen::MatrixXd closed = Eigen::MatrixXd::Identity(scaled.rows(), scaled.rows()) + scaled;
  return !(closed.norm() * lu_inverse(closed).norm() <= kFarOff);
}

}  // namespace

std::vector<char> islands_drowned_by_waves(const PortResponses& responses,
                                           std::span<const double> impedance) {
  const System& system = responses.system();
  std::vector<char> out(static_cast<std::size_t>(system.island_count()), 0);
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    const Component& part = *system.parts()[static_cast<std::size_t>(i)].component;
    const Eigen::MatrixXd& response = responses.of(i);
    if (response.rows() == 0 || part.is_active() || !response.allFinite()) continue;
    const auto own = impedance.subspan(static_cast<std::size_t>(system.first_scalar_port(i)),
                                       static_cast<std::size_t>(response.rows()));
    if (is_drowned(response, part.signature(), own)) {
      out[static_cast<std::size_t>(system.island_of_part(i))] = 1;
    }
  }
  return out;
}

}  // namespace portwave
