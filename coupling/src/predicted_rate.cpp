#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "portwave/coupling/tuning.hpp"
#include "portwave/subsystems/aligned.hpp"

namespace portwave {
namespace {

constexpr double kReduction = 1e-10;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// Numbers in [-1, 1) by SplitMix64 of Steele, Lea and Flood (2014): the same everywhere.
class FixedNumbers {
 public:
  double next() {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    z ^= z >> 31;
    return static_cast<double>(z >> 11) * 0x1p-52 - 1.0;
  }

 private:
  std::uint64_t state_ = 7;
};

/// The linearised parts and their coupling, waves in the order of the scalar ports.
class LinearIteration {
 public:
  LinearIteration(const PortResponses& responses, std::span<const double> impedance)
      : system_(responses.system()), coupling_(system_.junctions(), impedance) {
    for (int part = 0; part < static_cast<int>(system_.parts().size()); ++part) {
      const Eigen::MatrixXd& response = responses.of(part);
      const int size = static_cast<int>(response.rows());
      const int first = system_.first_scalar_port(part);
      const Eigen::MatrixXd D =
          scattering_matrix(response, system_.parts()[at(part)].subsystem->signature(),
                            impedance.subspan(at(first), at(size)));
      blocks_.push_back({first, size, scattering_.size()});
      scattering_.insert(scattering_.end(), D.data(), D.data() + D.size());
    }
    for (auto* wave : {&u_, &b_, &exchanged_}) wave->assign(impedance.size(), 0.0);
    FixedNumbers numbers;
    for (double& wave : u_) wave = numbers.next();
  }

  /// b = Du, a = Pb; afterwards the gaps |a − u|², by island.
  void evaluate(std::vector<double>& gaps) {
    gaps.assign(at(system_.island_count()), 0.0);
    for (const Block& block : blocks_) {
      const double* D = scattering_.data() + block.matrix;
      double* b = b_.data() + block.first;
      const double* u = u_.data() + block.first;
      std::fill_n(b, block.size, 0.0);
      for (int j = 0; j < block.size; ++j) {
        for (int i = 0; i < block.size; ++i) b[i] += *D++ * u[j];
      }
    }
    coupling_.exchange(b_.data(), exchanged_.data());
    for (std::size_t part = 0; part < blocks_.size(); ++part) {
      double& gap = gaps[at(system_.island_of_part(static_cast<int>(part)))];
      const std::size_t first = at(blocks_[part].first);
      for (std::size_t j = first; j < first + at(blocks_[part].size); ++j) {
        gap += (exchanged_[j] - u_[j]) * (exchanged_[j] - u_[j]);
      }
    }
  }

  void update(MethodKind kind, double relaxation) {
    if (kind == MethodKind::douglas_rachford) {
      coupling_.douglas_rachford(relaxation, b_.data(), u_.data());
      return;
    }
    for (std::size_t j = 0; j < u_.size(); ++j) u_[j] += relaxation * (exchanged_[j] - u_[j]);
    if (relaxation == 1.0) u_ = exchanged_;
  }

 private:
  struct Block {
    int first;
    int size;
    std::size_t matrix;
  };

  const System& system_;
  Interconnection coupling_;
  std::vector<Block> blocks_;
  std::vector<double> scattering_;  // column-major blocks
  AlignedVector u_, b_, exchanged_;
};

/// The largest share of its first gap that an island has left.
double largest_share(const std::vector<double>& gaps, const std::vector<double>& first) {
  double share = 0.0;
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    if (!(gaps[i] <= first[i] * 1e300)) return std::numeric_limits<double>::infinity();
    if (first[i] > 0.0) share = std::max(share, gaps[i] / first[i]);
  }
  return std::sqrt(share);
}

}  // namespace

PredictedRate predict_rate(const PortResponses& responses, std::span<const double> impedance,
                           MethodKind kind, double relaxation, int limit) {
  LinearIteration iteration(responses, impedance);
  std::vector<double> first, gaps;
  iteration.evaluate(first);
  PredictedRate rate{.contraction = 0.0, .evaluations = 1, .converges = false};
  for (int k = 1; k < limit; ++k) {
    iteration.update(kind, relaxation);
    iteration.evaluate(gaps);
    const double share = largest_share(gaps, first);
    rate.evaluations = k + 1;
    rate.contraction = std::pow(share, 1.0 / k);
    rate.converges = share <= kReduction;
    if (rate.converges || !std::isfinite(share)) break;
  }
  if (!rate.converges) rate.evaluations = limit;
  return rate;
}

}  // namespace portwave
