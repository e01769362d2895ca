#include "portwave/coupling/certificate.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace portwave {

std::string_view to_string(CertificateStatus status) {
  switch (status) {
    case CertificateStatus::holds: return "holds";
    case CertificateStatus::conditional: return "conditional";
    case CertificateStatus::violated: return "violated";
  }
  return "unknown";
}

FneSampler::FneSampler(const WaveDiscretisation& waves, std::uint64_t seed) : seed_(seed) {
  const auto size = static_cast<std::size_t>(waves.wave_size());
  for (auto* v : {&alpha_, &beta_, &s_alpha_, &s_beta_}) v->resize(size);
}

std::optional<FneSampler::Result> FneSampler::sample(WaveDiscretisation& waves,
                                                     std::int64_t step) {
  constexpr std::uint64_t kOddStride = 0x9e3779b97f4a7c15U;
  std::mt19937_64 generator(seed_ + kOddStride * static_cast<std::uint64_t>(step));
  std::normal_distribution<double> normal;
  Result result{std::numeric_limits<double>::infinity(), false};
  for (int pair = 0; pair < kPairs; ++pair) {
    for (double& value : alpha_) value = normal(generator);
    for (double& value : beta_) value = normal(generator);
    if (!waves.scatter_all(alpha_.data(), s_alpha_.data()).ok()) return std::nullopt;
    if (!waves.scatter_all(beta_.data(), s_beta_.data()).ok()) return std::nullopt;
    for (std::size_t i = 0; i < waves.places().size(); ++i) take_margin(waves, i, result);
  }
  return result;
}

void FneSampler::take_margin(const WaveDiscretisation& waves, std::size_t part,
                             Result& result) const {
  const PartPlace& place = waves.places()[part];
  const int size = waves.batches()[static_cast<std::size_t>(place.batch)].batch->wave_size();
  if (size == 0) return;
  double inner = 0.0, image = 0.0, source = 0.0;
  for (auto j = static_cast<std::size_t>(place.wave);
       j < static_cast<std::size_t>(place.wave + size); ++j) {
    const double difference = alpha_[j] - beta_[j];
    const double mapped = s_alpha_[j] - s_beta_[j];
    inner += mapped * difference;
    image += mapped * mapped;
    source += difference * difference;
  }
  const double margin = inner - image;
  result.min_margin = std::min(result.min_margin, margin);
  if (!(margin >= -1e-12 * source)) result.negative_beyond_tolerance = true;
}

FixedPointSolver::FixedPointSolver(const WaveDiscretisation& waves, double relaxation,
                                   int max_evaluations)
    : relaxation_(relaxation), max_evaluations_(max_evaluations) {
  for (auto* v : {&u_, &b_, &exchanged_}) v->resize(static_cast<std::size_t>(waves.wave_size()));
}

std::span<const double> FixedPointSolver::solve(WaveDiscretisation& waves,
                                                std::span<const double> start) {
  constexpr double kRoundOff = 4.0 * std::numeric_limits<double>::epsilon();
  constexpr double kGoodEnough = 1e-12;  // where slow progress is taken for round-off
  constexpr int kPatience = 16;
  std::copy(start.begin(), start.end(), u_.begin());
  const Interconnection& coupling = waves.interconnection();
  double best = std::numeric_limits<double>::infinity();
  int since_best = 0;
  for (int k = 0; k < max_evaluations_; ++k) {
    if (!waves.scatter_all(u_.data(), b_.data()).ok()) return {};
    coupling.exchange(coupling.all(), b_.data(), exchanged_.data());
    const double residual = relative_residual();
    if (residual <= kRoundOff) return u_;
    if (residual < 0.5 * best) {
      best = residual;
      since_best = 0;
    } else if (++since_best >= kPatience && best <= kGoodEnough) {
      return u_;
    }
    coupling.douglas_rachford(coupling.all(), relaxation_, b_.data(), u_.data());
  }
  return {};
}

double FixedPointSolver::relative_residual() const {
  double gap = 0.0, incident = 0.0, outgoing = 0.0;
  for (std::size_t j = 0; j < u_.size(); ++j) {
    const double difference = exchanged_[j] - u_[j];
    gap += difference * difference;
    incident += u_[j] * u_[j];
    outgoing += b_[j] * b_[j];
  }
  const double scale = std::max(incident, outgoing);
  return gap == 0.0 ? 0.0 : std::sqrt(gap / scale);
}

}  // namespace portwave
