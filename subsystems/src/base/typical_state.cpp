#include "portwave/subsystems/base/typical_state.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <limits>
#include <optional>
#include <utility>

namespace portwave {
namespace {

constexpr double kEps = std::numeric_limits<double>::epsilon();
constexpr int kFirstExponent = -84;  // reaches from 2^-84 (5e-26) on,
constexpr int kLastExponent = 84;    // to 2^84,
constexpr int kExponentStep = 3;     // by factors of eight
constexpr int kSteadyReaches = 5;    // over so many the power is the same where it is one
constexpr double kSamePower = 0.3;   // powers that differ by less are the same
constexpr double kLeastPower = 0.5;  // anything slower is noise, or a jump
constexpr double kTypicalEnergy_J = 1.0;
constexpr double kMostEnergy_J = 1e15;   // no further than this from where the part is at home
constexpr double kLeastChange = 1e-280;  // of a gradient, above what underflows

/// H and ∇H along one state.
class Line {
 public:
  Line(const StorageProbe& H, std::vector<double> x, std::size_t state)
      : H_(H), x_(std::move(x)), g_(x_.size()), state_(state), middle_(x_[state]) {}

  struct Sample {
    double gradient, value;
    double at;
  };

  /// At xᵢ + reach; nothing outside the domain.
  std::optional<Sample> at(double reach) {
    x_[state_] = middle_ + reach;
    Sample sample{0.0, 0.0, x_[state_]};
    try {
      sample.value = H_.value(x_.data());
      H_.gradient(x_.data(), g_.data());
    } catch (const std::exception&) {
      return std::nullopt;
    }
    sample.gradient = g_[state_];
    if (!std::isfinite(sample.value)) return std::nullopt;
    const bool finite =
        std::all_of(g_.begin(), g_.end(), [](double value) { return std::isfinite(value); });
    return finite ? std::optional(sample) : std::nullopt;
  }

 private:
  const StorageProbe& H_;
  std::vector<double> x_, g_;
  std::size_t state_;
  double middle_;
};

struct Reach {
  std::optional<double> steady;     ///< where a steady power ends
  double energy_J = 0.0;            ///< by which H changes there
  std::optional<double> energetic;  ///< where H has changed by the typical energy
};

/// Watches how ∂H/∂xᵢ(x + s) − ∂H/∂xᵢ(x − s) grows with s.
Reach reach_along(Line line, double typical_energy_J) {
  Reach found;
  const auto middle = line.at(0.0);
  if (!middle) return found;
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  double last_size = kNone, last_change = kNone, power = kNone;
  int steady = 0;
  double last_reach = 0.0, last_energy = 0.0;
  const auto stop = [&] {
    if (steady < kSteadyReaches) return;
    found.steady = last_reach;
    found.energy_J = last_energy;
  };
  for (int e = kFirstExponent; e <= kLastExponent; e += kExponentStep) {
    const double reach = std::ldexp(1.0, e);
    const auto ahead = line.at(reach);
    const auto back = line.at(-reach);
    if (!ahead || !back) {
      stop();
      return found;
    }
    const double size = ahead->at - back->at;
    const double change = std::abs(ahead->gradient - back->gradient);
    const double noise = 1e3 * kEps * (std::abs(ahead->gradient) + std::abs(back->gradient));
    if (size > 0.0 && change > kLeastChange && change > noise) {
      if (!std::isnan(last_change)) {
        const double now = std::log(change / last_change) / std::log(size / last_size);
        if (std::abs(now - power) <= kSamePower && power >= kLeastPower) {
          ++steady;
        } else {
          stop();
          if (found.steady) return found;
          power = now;
          steady = 1;
        }
      }
      last_change = change;
      last_size = size;
    } else {
      stop();  // it has come back to where it was
      if (found.steady) return found;
      last_change = kNone;
      power = kNone;
      steady = 0;
    }
    const double energy =
        std::max(std::abs(ahead->value - middle->value), std::abs(back->value - middle->value));
    last_reach = reach;
    last_energy = energy;
    if (energy >= typical_energy_J && !found.energetic) found.energetic = reach;
    if (energy >= kMostEnergy_J) return found;
    // Where nothing depends on the state, any size will do.
    if (reach > 1.0 && reach > std::abs(middle->at) && energy == 0.0 && change == 0.0) return found;
  }
  return found;
}

/// By which H changes so far from x.
double energy_over(Line line, double reach) {
  const auto middle = line.at(0.0), ahead = line.at(reach), back = line.at(-reach);
  if (!middle || !ahead || !back) return 0.0;
  return std::max(std::abs(ahead->value - middle->value), std::abs(back->value - middle->value));
}

bool is_inside(const StorageProbe& H, const std::vector<double>& x) {
  return Line(H, x, 0).at(0.0).has_value();
}

}  // namespace

double difference_step(double typical, double x) {
  const double root = std::cbrt(kEps);
  return std::max(root * typical, root * root * std::abs(x));
}

TypicalSizes typical_sizes(const StorageProbe& H, const std::vector<double>& x) {
  const std::size_t n = x.size();
  std::vector<Reach> reach(n);
  std::vector<double> of_H, of_x;  // energies
  for (std::size_t i = 0; i < n; ++i) {
    reach[i] = reach_along(Line(H, x, i), kTypicalEnergy_J);
    if (reach[i].steady && reach[i].energy_J > 0.0) of_H.push_back(reach[i].energy_J);
    if (reach[i].steady || x[i] == 0.0) continue;
    const double change_J = energy_over(Line(H, x, i), std::abs(x[i]));
    if (change_J > 0.0) of_x.push_back(change_J);
  }
  // The energy of states that have a size is what the others have too.
  const std::vector<double>& known = of_H.empty() ? of_x : of_H;
  double energy = kTypicalEnergy_J, logarithms = 0.0;
  for (const double own_J : known) logarithms += std::log(own_J);
  if (!known.empty()) energy = std::exp(logarithms / static_cast<double>(known.size()));
  TypicalSizes found{.of_states = std::vector<double>(n, 1.0),
                     .is_of_H = std::vector<char>(n, 0),
                     .is_arbitrary = known.empty()};
  std::vector<double>& size = found.of_states;
  std::vector<bool> is_known(n, false);
  for (std::size_t i = 0; i < n; ++i) {
    if (!reach[i].steady && x[i] == 0.0 && !known.empty()) {
      reach[i] = reach_along(Line(H, x, i), energy);
    }
    is_known[i] = reach[i].steady || x[i] != 0.0 || reach[i].energetic;
    found.is_of_H[i] = reach[i].steady ? 1 : 0;
    if (reach[i].steady) {
      size[i] = *reach[i].steady;
    } else if (x[i] != 0.0) {
      size[i] = std::abs(x[i]);
    } else if (reach[i].energetic) {
      size[i] = *reach[i].energetic;
    }
  }
  if (n < 2) return found;

  // What shows only where the other states are not at rest.
  const std::vector<double> alone = size;
  std::vector<double> moved = x;
  double part = 0.5;
  for (int attempt = 0; attempt < 20; ++attempt, part *= 0.25) {
    for (std::size_t i = 0; i < n; ++i) moved[i] = x[i] + part * alone[i];
    if (is_inside(H, moved)) break;
  }
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> others = moved;
    others[i] = x[i];
    const Reach seen = reach_along(Line(H, std::move(others), i), energy);
    if (seen.steady) {
      size[i] = is_known[i] ? std::min(alone[i], *seen.steady) : *seen.steady;
      if (size[i] == *seen.steady) found.is_of_H[i] = 1;
    } else if (!is_known[i] && seen.energetic) {
      size[i] = *seen.energetic;
    }
  }
  return found;
}

}  // namespace portwave
