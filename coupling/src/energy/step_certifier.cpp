#include "portwave/coupling/energy/step_certifier.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <new>

namespace portwave {
namespace {

/// In the order of the system's ports, whatever the layout.
double half_square_distance(const WaveDiscretisation& waves, std::span<const double> u,
                            std::span<const double> v) {
  double sum = 0.0;
  for (int port = 0; port < static_cast<int>(waves.system().scalar_ports().size()); ++port) {
    const auto j = static_cast<std::size_t>(waves.wave_of_port(port));
    sum += (u[j] - v[j]) * (u[j] - v[j]);
  }
  return 0.5 * sum;
}

void raise_to(std::optional<double>& maximum, double value) {
  maximum = std::max(maximum.value_or(value), value);
}

}  // namespace

std::string_view to_string(CertificateStatus status) {
  switch (status) {
    case CertificateStatus::holds:
      return "holds";
    case CertificateStatus::conditional:
      return "conditional";
    case CertificateStatus::violated:
      return "violated";
  }
  return "unknown";
}

MarginSampler::MarginSampler(const WaveDiscretisation& waves, const UpdateRule& rule,
                             std::uint64_t seed)
    : condition_(rule.part_condition()), seed_(seed) {
  const auto size = static_cast<std::size_t>(waves.wave_size());
  for (auto* v : {&alpha_, &beta_, &s_alpha_, &s_beta_}) v->resize(size);
}

std::optional<MarginSampler::Result> MarginSampler::sample(const WaveDiscretisation& waves,
                                                           double* record, std::int64_t step) {
  constexpr std::uint64_t kOddStride = 0x9e3779b97f4a7c15U;
  std::mt19937_64 generator(seed_ + kOddStride * static_cast<std::uint64_t>(step));
  std::normal_distribution<double> normal;
  const int ports = static_cast<int>(waves.system().scalar_ports().size());
  const auto draw = [&](AlignedVector& out) {
    for (int port = 0; port < ports; ++port) {
      out[static_cast<std::size_t>(waves.wave_of_port(port))] = normal(generator);
    }
  };
  Result result{std::numeric_limits<double>::infinity(), false};
  for (int pair = 0; pair < kPairs; ++pair) {
    draw(alpha_);
    draw(beta_);
    if (!waves.scatter_all(record, alpha_.data(), s_alpha_.data()).ok()) return std::nullopt;
    if (!waves.scatter_all(record, beta_.data(), s_beta_.data()).ok()) return std::nullopt;
    for (std::size_t i = 0; i < waves.slots().size(); ++i) take_margin(waves, i, result);
  }
  return result;
}

void MarginSampler::take_margin(const WaveDiscretisation& waves, std::size_t part,
                                Result& result) const {
  const PartSlot& slot = waves.slots()[part];
  const int size = waves.batch(slot.batch).batch->wave_size();
  if (size == 0 || !waves.batch(slot.batch).capabilities.repeatable) return;
  double inner = 0.0, image = 0.0, source = 0.0;
  for (int k = 0; k < size; ++k) {
    const auto j = static_cast<std::size_t>(slot.wave + k * slot.stride);
    const double difference = alpha_[j] - beta_[j];
    const double mapped = s_alpha_[j] - s_beta_[j];
    inner += mapped * difference;
    image += mapped * mapped;
    source += difference * difference;
  }
  const bool is_firm = condition_ == PartCondition::firmly_nonexpansive;
  const double margin = (is_firm ? inner : source) - image;
  result.min_margin = std::min(result.min_margin, margin);
  if (!(margin >= -1e-12 * source)) result.negative_beyond_tolerance = true;
}

std::vector<int> unrepeatable_parts(const WaveDiscretisation& waves) {
  std::vector<int> out;
  for (int part = 0; part < static_cast<int>(waves.slots().size()); ++part) {
    if (!waves.batch(waves.slot(part).batch).capabilities.repeatable) out.push_back(part);
  }
  return out;
}

StepCertifier::StepCertifier(const WaveDiscretisation& waves, const InnerUpdate& update)
    : waves_(waves),
      is_repeatable_(unrepeatable_parts(waves).empty()),
      update_(update),
      sampler_(waves, *update.rule()),
      fixed_point_(waves, update),
      iteration_(waves, update),
      before_(static_cast<std::size_t>(waves.wave_size())) {}

void StepCertifier::examine(double* record, const Step& step, Certificate& certificate) {
  examine_margins(record, step.index, certificate);
  if (step.accelerated || !is_repeatable_) return;
  std::span<const double> fixed_point;
  try {
    fixed_point = fixed_point_.solve(record, step.u_start);
  } catch (const std::bad_alloc&) {  // the step itself is sound: go without this evidence
  }
  if (fixed_point.size() != step.u_start.size()) {
    ++certificate.steps_without_fixed_point;
    return;
  }
  examine_iterates(record, step, fixed_point, certificate);
}

void StepCertifier::examine_margins(double* record, std::int64_t index, Certificate& certificate) {
  const auto margins = sampler_.sample(waves_, record, index);
  if (!margins) ++certificate.steps_without_margin;
  if (!margins || !std::isfinite(margins->min_margin)) return;  // no margin: a system without ports
  const bool is_firm = update_.rule()->part_condition() == PartCondition::firmly_nonexpansive;
  std::optional<double>& smallest =
      is_firm ? certificate.min_fne_margin : certificate.min_nonexpansiveness_margin;
  smallest = std::min(smallest.value_or(margins->min_margin), margins->min_margin);
  if (margins->negative_beyond_tolerance && certificate.status == CertificateStatus::holds) {
    certificate.status = CertificateStatus::conditional;
  }
}

void StepCertifier::examine_iterates(double* record, const Step& step,
                                     std::span<const double> fixed_point,
                                     Certificate& certificate) {
  iteration_.start_at(step.u_start);
  const auto distance_of = [&](std::span<const double> u) {
    return half_square_distance(waves_, u, fixed_point);
  };
  const double start = distance_of(iteration_.u());
  double distance = start;
  const double gain = update_.rule()->fejer_gain(update_.relaxation());
  const int last = *std::max_element(step.iterations.begin(), step.iterations.end());
  for (int k = 0; k < last; ++k) {
    if (!iteration_.evaluate(record).ok()) {
      ++certificate.steps_without_fixed_point;
      return;
    }
    std::ranges::copy(iteration_.u(), before_.begin());
    iteration_.update();
    hold_stopped_islands(step.iterations, k);
    const double next = distance_of(iteration_.u());
    raise_to(certificate.max_fejer_residual_J,
             next - distance + gain * half_square_distance(waves_, iteration_.u(), before_));
    distance = next;
  }
  // ΔH + ½|u^K − u†|² − ½|u⁰ − u†|² ≤ ½(|â|² − |b|²) + supply
  raise_to(certificate.max_augmented_residual_J,
           step.stored_change_J + distance - start + step.mismatch_J - step.supplied_J);
}

/// Islands that have stopped before evaluation k keep their u.
void StepCertifier::hold_stopped_islands(std::span<const int> iterations, int k) {
  const std::span<double> u = iteration_.u();
  for (std::size_t j = 0; j < u.size(); ++j) {
    const int part = waves_.part_of_wave(static_cast<int>(j));
    if (part < 0) continue;
    const int island = waves_.system().island_of_part(part);
    if (k >= iterations[static_cast<std::size_t>(island)]) u[j] = before_[j];
  }
}

}  // namespace portwave
