#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "portwave/coupling/energy/step_certifier.hpp"
#include "portwave/coupling/waves/residual.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "waves/interface_equation.hpp"
#include "waves/part_linearisation.hpp"

namespace portwave {
namespace {

constexpr double kRoundOff = 4.0 * std::numeric_limits<double>::epsilon();
constexpr double kGoodEnough = 1e-12;  // a Newton that stalls below this has met round-off

/// Newton steps of one island.
class IslandStep {
 public:
  IslandStep(const WaveDiscretisation& waves, const IslandNetworks& networks, int island)
      : ports_(networks.of[at(island)].ports),
        parts_(waves, networks.of[at(island)].parts),
        equation_(waves.system(), networks, island),
        gap_(ports_.size()),
        change_(ports_.size()) {}

  /// u += (I − PD)⁻¹(exchanged − u), D at u. False when a port solve fails.
  bool take(const WaveDiscretisation& waves, const double* record, std::span<double> u,
            std::span<const double> exchanged) {
    if (!parts_.differentiate(record, u.data(), exchanged.data(),
                              PartLinearisation::Accuracy::by_differences))
      return false;
    const auto D = [&](int part) { return parts_.of(part); };
    if (!equation_.factorise(waves.interconnection(), D)) return false;
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      const std::size_t w = at(waves.wave_of_port(ports_[i]));
      gap_[i] = exchanged[w] - u[w];
    }
    equation_.solve(gap_.data(), change_.data());
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      u[at(waves.wave_of_port(ports_[i]))] += change_[i];
    }
    return true;
  }

 private:
  const std::vector<int>& ports_;
  PartLinearisation parts_;
  InterfaceEquation equation_;
  std::vector<double> gap_, change_;
};

}  // namespace

FixedPointSolver::FixedPointSolver(const WaveDiscretisation& waves, const InnerUpdate& update,
                                   int plain_iterations)
    : iteration_(waves, update), plain_iterations_(plain_iterations) {}

std::span<const double> FixedPointSolver::solve(double* record, std::span<const double> start) {
  iteration_.start_at(start);
  if (iterate_plainly(record) || iterate_newton(record)) return iteration_.u();
  return {};
}

/// |P S(u) − u| relative to the waves of all islands; NaN when a port solve fails.
double FixedPointSolver::evaluate(double* record) {
  if (!iteration_.evaluate(record).ok()) return std::numeric_limits<double>::quiet_NaN();
  exchanged_ = iteration_.shadow();
  const std::span<const double> u = iteration_.u(), b = iteration_.b();
  const WaveDiscretisation& waves = iteration_.waves();
  GapSquares squares;
  for (int port = 0; port < static_cast<int>(waves.system().scalar_ports().size()); ++port) {
    const std::size_t j = at(waves.wave_of_port(port));
    squares.add(u[j], b[j], exchanged_[j]);
  }
  return squares.residual();
}

/// Only a fast iteration may stop here: with rate ρ the error is residual/(1 − ρ).
bool FixedPointSolver::iterate_plainly(double* record) {
  for (int k = 0; k < plain_iterations_; ++k) {
    const double residual = evaluate(record);
    if (residual <= kRoundOff) return true;
    if (!std::isfinite(residual)) return false;
    iteration_.update();
  }
  return false;
}

bool FixedPointSolver::iterate_newton(double* record) {
  constexpr int kMaxSteps = 30;
  const WaveDiscretisation& waves = iteration_.waves();
  const IslandNetworks networks(waves.system());
  std::vector<IslandStep> islands;
  islands.reserve(networks.of.size());
  for (int i = 0; i < static_cast<int>(networks.of.size()); ++i) {
    if (!networks.of[at(i)].ports.empty()) islands.emplace_back(waves, networks, i);
  }
  double best = std::numeric_limits<double>::infinity();
  const std::span<double> u = iteration_.u();
  AlignedVector best_u(u.begin(), u.end());
  for (int k = 0; k < kMaxSteps; ++k) {
    const double residual = evaluate(record);
    if (!std::isfinite(residual)) break;
    const bool stalled = residual >= 0.5 * best;
    if (residual < best) {
      best = residual;
      std::ranges::copy(u, best_u.begin());
    }
    if (residual <= kRoundOff || (stalled && best <= kGoodEnough)) break;
    const bool sound = std::ranges::all_of(
        islands, [&](IslandStep& island) { return island.take(waves, record, u, exchanged_); });
    if (!sound) break;
  }
  std::ranges::copy(best_u, u.begin());
  return best <= kGoodEnough;
}

}  // namespace portwave
