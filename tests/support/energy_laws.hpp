#pragma once

// The laws of the passivity guard, checked from committed states and waves alone.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "portwave/coupling/system/derived_systems.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave::testing {

/// Watches a run, step by step. H is asked of the parts, tanks are kept here, from the waves and in
/// extended precision; of the ledger only the external supply is used. The first breach is kept.
///   T ≥ 0 per island     up to the rounding of the account so far, 20ε Σₙ (2|H| + ½|a|² + ½|b|²); the
///                        T kept here: by as much more as one rounding of the terms per step may have
///                        lost in the engine's sum, 4ε Σ ½(|a|² + |b|²)
/// What steps within their tolerance took beyond their tanks is taken from the ledger too: it counts as
/// supplied. H may exceed its bound without it by at most 1 % of all energy there.
///   H + T ≤ H₀ + T₀ + supply   up to 1e-12 (H₀ + T₀ + Σ|supply|) + 16ε Σ ½(|a|² + |b|²): for what
///                        commits round off in states and waves, which are sums of several terms. A
///                        single step whose waves are far larger than H + T has been seen to take 7ε.
class EnergyLaws {
 public:
  explicit EnergyLaws(const Stepper& stepper)
      : system_(stepper.system()),
        cap_(stepper.method().method.waves().tank.cap_J),
        tank_(static_cast<std::size_t>(system_.island_count()), 0.0L),
        drift_(tank_.size(), 0.0),
        rounding_(tank_.size(), 0.0) {
    const WaveCoupling& method = stepper.method().method.waves();
    const std::vector<double> stored = storages(stepper);
    std::vector<double> waves(tank_.size(), 0.0);
    // Idle ports have no waves, and the method that was chosen has none for them.
    const std::vector<int> live = live_system(system_).number_of_port;
    for (std::size_t j = 0; j < live.size() && !method.initial_waves.empty(); ++j) {
      if (live[j] < 0) continue;
      const double own = method.initial_waves[static_cast<std::size_t>(live[j])];
      waves[island_of_port(static_cast<int>(j))] += 0.5 * own * own;
    }
    for (std::size_t i = 0; i < tank_.size(); ++i) {
      const double initial = method.tank.initial_J.value_or(waves[i]);
      tank_[i] = std::min(initial + method.tank.initial_fraction * stored[i], cap_);
      initial_ += static_cast<long double>(stored[i]) + tank_[i];
    }
  }

  /// After a step.
  void observe(const Stepper& stepper, const StepReport& report) {
    if (stepper.certificate().status == CertificateStatus::violated) {
      breach("the certificate is violated, r = {:.2e} J",
             stepper.certificate().max_passivity_residual_J);
    }
    const std::size_t islands = tank_.size();
    std::vector<long double> taken(islands, 0.0L), terms(islands, 0.0L);
    for (int j = 0; j < static_cast<int>(system_.scalar_ports().size()); ++j) {
      for (int stage = 0; stage < stepper.waves()->stages(); ++stage) {
        const WavePair wave = stepper.waves()->waves_at(j, stage);
        const long double a = wave.incident, b = wave.outgoing;
        taken[island_of_port(j)] += 0.5L * (b - a) * (b + a);
        terms[island_of_port(j)] += 0.5L * (a * a + b * b);
      }
    }
    supplied_ += static_cast<long double>(report.energy.supplied_J) + report.energy.tolerated_J;
    tolerated_ += report.energy.tolerated_J;
    double to_tolerate = report.energy.tolerated_J;
    supplied_size_ += std::abs(report.energy.supplied_J);
    const std::vector<double> stored = storages(stepper);
    long double total = 0.0L, stored_sum = 0.0L;
    for (std::size_t i = 0; i < islands; ++i) {
      stored_sum += stored[i];
      const long double before = tank_[i];
      tank_[i] = std::min(before + taken[i], static_cast<long double>(cap_));
      drift_[i] += 4.0 * kEpsilon * static_cast<double>(terms[i]);
      waves_ += static_cast<double>(terms[i]);
      total += tank_[i] + static_cast<long double>(stored[i]);
      rounding_[i] += 20.0 * kEpsilon * (2.0 * std::abs(stored[i]) + static_cast<double>(terms[i]));
      const double allowance = rounding_[i];
      const double engine = stepper.waves()->tank(static_cast<int>(i));
      // Of several islands it is not said whose deficit it was.
      const double more = engine - static_cast<double>(tank_[i]);
      if (to_tolerate > 0.0 && more > drift_[i] && more <= to_tolerate + drift_[i]) {
        tank_[i] += more;
        total += more;
        to_tolerate -= more;
      }
      lowest_ = std::min(lowest_, static_cast<double>(tank_[i]));
      if (engine < -allowance - 2.0 * kEpsilon * std::abs(engine)) {
        breach("T = {:.3e} J on island {}, allowed {:.1e}", engine, i, -allowance);
      }
      if (static_cast<double>(tank_[i]) < -allowance - drift_[i]) {
        breach("T = {:.3e} J on island {} by its waves, allowed {:.1e}",
               static_cast<double>(tank_[i]), i, -allowance - drift_[i]);
      }
      if (!(std::abs(engine - static_cast<double>(tank_[i])) <=
            drift_[i] + 4.0 * kEpsilon * std::abs(engine) * static_cast<double>(steps_ + 1))) {
        breach("T of the ledger is {:.17g}, by the waves {:.17g}, island {}", engine,
               static_cast<double>(tank_[i]), i);
      }
    }
    const double scale = static_cast<double>(initial_) + supplied_size_;
    const double allowance = 1e-12 * scale + 16.0 * kEpsilon * waves_;
    const auto excess = static_cast<double>(total - initial_ - supplied_);
    if (!(excess <= allowance)) {
      breach("H + T exceeds its bound by {:.3e} J, allowed {:.1e}", excess, allowance);
    }
    const auto growth = static_cast<double>(stored_sum - initial_ - supplied_) + tolerated_;
    if (!(growth <= 0.0101 * scale + allowance)) breach("H exceeds its start by {:.3e} J", growth);
    const double ratio = stepper.energy().max_energy_ratio;
    // It counts no tank below 0, so what a tank may lack comes on top.
    double lacking = 0.0;
    for (const double rounding : rounding_) lacking += rounding;
    if (initial_ > 0.0L && supplied_size_ == 0.0 &&
        !(ratio <= 1.0 + (allowance + lacking + tolerated_) / static_cast<double>(initial_))) {
      breach("max_energy_ratio is 1 + {:.3e}", ratio - 1.0);
    }
    if (!(report.energy.alpha >= 0.0 && report.energy.alpha <= 1.0) ||
        (report.energy.alpha < 1.0 &&
         !(report.energy.withheld_J > 0.0 || report.energy.tolerated_J > 0.0))) {
      breach("alpha = {}, withheld {:.3e} J", report.energy.alpha, report.energy.withheld_J);
    }
    ++steps_;
  }

  bool hold() const { return breach_.empty(); }
  const std::string& first_breach() const { return breach_; }
  /// The lowest T [J] of any island, from the waves.
  double lowest_tank() const { return lowest_; }
  double initial_energy() const { return static_cast<double>(initial_); }

 private:
  static constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

  std::size_t island_of_port(int port) const {
    return static_cast<std::size_t>(
        system_.island_of_part(system_.scalar_ports()[static_cast<std::size_t>(port)].part));
  }

  /// H by island.
  std::vector<double> storages(const Stepper& stepper) const {
    std::vector<double> out(
        tank_.empty() ? static_cast<std::size_t>(system_.island_count()) : tank_.size(), 0.0);
    for (int i = 0; i < static_cast<int>(system_.parts().size()); ++i) {
      const Subsystem& part = *system_.parts()[static_cast<std::size_t>(i)].port_hamiltonian();
      out[static_cast<std::size_t>(system_.island_of_part(i))] +=
          part.storage(stepper.state(i).data());
    }
    return out;
  }

  template <class... Args>
  void breach(fmt::format_string<Args...> text, Args&&... args) {
    if (breach_.empty()) {
      breach_ = fmt::format("step {}: ", steps_) + fmt::format(text, std::forward<Args>(args)...);
    }
  }

  const System& system_;
  double cap_;
  std::vector<long double> tank_;
  std::vector<double> drift_, rounding_;
  long double initial_ = 0.0L;
  long double supplied_ = 0.0L;
  double supplied_size_ = 0.0, tolerated_ = 0.0;
  double waves_ = 0.0;
  double lowest_ = std::numeric_limits<double>::infinity();
  std::int64_t steps_ = 0;
  std::string breach_;
};

}  // namespace portwave::testing
