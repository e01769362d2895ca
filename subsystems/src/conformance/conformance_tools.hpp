#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <fmt/format.h>

#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/conformance/conformance.hpp"

namespace portwave::conformance {

using Eigen::VectorXd;

/// Collects defects against what is allowed and remembers the worst.
class Tally {
 public:
  explicit Tally(std::string law) { report_.law = std::move(law); }

  /// `where` is called only when this defect is the worst so far.
  template <class Where>
  void see(double defect, double allowed, const Where& where) {
    const double ratio = defect <= 0.0 ? 0.0 : defect / allowed;
    const bool sound = std::isfinite(ratio);
    if (sound && ratio <= report_.worst && !report_.detail.empty()) return;
    report_.worst =
        sound ? std::max(report_.worst, ratio) : std::numeric_limits<double>::infinity();
    report_.detail = where();
  }
  /// A rule for which something was seen.
  void see_rule(const std::string& rule) {
    if (std::ranges::find(report_.rules, rule) == report_.rules.end()) {
      report_.rules.push_back(rule);
    }
  }
  void fail(std::string detail) {
    see(1.0, 0.0, [&] { return std::move(detail); });
  }

  LawReport report() && {
    report_.holds = report_.worst <= 1.0;
    return std::move(report_);
  }

 private:
  LawReport report_;
};

/// Uniform numbers that are the same on every platform (SplitMix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  /// In [-1, 1).
  double operator()() {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1.0p-52 - 1.0;
  }
  VectorXd vector(Eigen::Index size, double scale) {
    VectorXd v(size);
    for (double& value : v) value = scale * (*this)();
    return v;
  }

 private:
  std::uint64_t state_;
};

/// Draws what a check needs for a part.
class Sampler {
 public:
  Sampler(const Subsystem& part, const ConformanceOptions& options)
      : part_(part), options_(options), random_(options.seed) {
    const std::vector<double> x = part.default_state();
    centre_ = Eigen::Map<const VectorXd>(x.data(), static_cast<Eigen::Index>(x.size()));
    const std::vector<double> size = part.typical_state();
    usual_ = Eigen::Map<const VectorXd>(size.data(), static_cast<Eigen::Index>(size.size()));
  }

  /// Typical size of each state.
  const VectorXd& usual() const { return usual_; }

  /// The default state after 100 draws where H is not finite.
  VectorXd state() {
    for (int attempt = 0; attempt < 100; ++attempt) {
      VectorXd x = centre_ + direction(options_.state_scale);
      if (std::isfinite(part_.storage(x.data()))) return x;
    }
    return centre_;
  }
  VectorXd direction(double scale) {
    return usual_.cwiseProduct(random_.vector(centre_.size(), scale));
  }
  VectorXd waves() { return random_.vector(part_.signature().wave_size(), options_.wave_scale); }
  VectorXd inputs() { return random_.vector(part_.signature().input_size(), options_.input_scale); }
  VectorXd impedance() {
    VectorXd gamma = random_.vector(part_.signature().wave_size(), 1.0);
    for (double& value : gamma) value = options_.impedance * std::pow(10.0, value);
    return gamma;
  }

 private:
  const Subsystem& part_;
  const ConformanceOptions& options_;
  Random random_;
  VectorXd centre_, usual_;
};

/// A batch of one part, frozen at one state: the port map S of the laws.
class FrozenMap {
 public:
  FrozenMap(std::unique_ptr<StepBatch> batch, double step_s, const VectorXd& impedance, VectorXd x,
            VectorXd input)
      : batch_(std::move(batch)),
        x_(std::move(x)),
        input_(std::move(input)),
        impedance_(impedance),
        record_(batch_->record_size()),
        next_(batch_->record_size()) {
    batch_->prepare(step_s, impedance.data());
    freeze();
  }
  /// Of a batch that has frozen nothing: the record is what another process is told of that of `other`.
  FrozenMap(std::unique_ptr<StepBatch> batch, double step_s, const FrozenMap& other)
      : batch_(std::move(batch)),
        x_(other.x_),
        input_(other.input_),
        impedance_(other.impedance_),
        record_(batch_->record_size(), 0.0),
        next_(batch_->record_size()) {
    batch_->prepare(step_s, impedance_.data());
    for (const RecordRegion& region : batch_->record_regions()) {
      std::copy_n(other.record_.begin() + static_cast<std::ptrdiff_t>(region.begin), region.doubles,
                  record_.begin() + static_cast<std::ptrdiff_t>(region.begin));
    }
  }

  void freeze() { freeze(input_.data()); }
  /// With other inputs than those given; null: none.
  void freeze(const double* input) {
    batch_->set_state(0, x_.data(), record_.data());
    batch_->freeze({0, 1}, record_.data(), input);
  }
  /// Goes on from another state, with the same inputs.
  void move_to(const VectorXd& x) {
    x_ = x;
    freeze();
  }
  StepBatch& batch() { return *batch_; }
  const double* record() const { return record_.data(); }
  const VectorXd& state() const { return x_; }
  const VectorXd& input() const { return input_; }
  const VectorXd& impedance() const { return impedance_; }

  struct Outcome {
    LaneStatus status;
    VectorXd b;
    VectorXd x_next;
    StepEnergy energy;
  };
  Outcome scatter(const VectorXd& a) {
    Outcome out{{}, VectorXd::Zero(a.size()), {}, {}};
    out.status = batch_->scatter({0, 1}, record_.data(), a.data(), out.b.data());
    return out;
  }
  Outcome inexact_scatter(const VectorXd& a) {
    Outcome out{{}, VectorXd::Zero(a.size()), {}, {}};
    out.status = batch_->inexact_scatter({0, 1}, record_.data(), a.data(), out.b.data());
    return out;
  }
  Outcome advance(const VectorXd& a) {
    Outcome out{{}, VectorXd::Zero(a.size()), VectorXd::Zero(x_.size()), {}};
    StepEnergy& e = out.energy;
    out.status = batch_->advance(
        {0, 1}, record_.data(), a.data(), next_.data(), out.b.data(),
        {&e.change_J, &e.external_supply_J, &e.dissipated_J, &e.numerical_dissipation_J});
    batch_->get_state(0, next_.data(), out.x_next.data());
    return out;
  }

 private:
  std::unique_ptr<StepBatch> batch_;
  VectorXd x_, input_, impedance_;
  AlignedVector record_, next_;
};

inline std::unique_ptr<StepBatch> own_batch(const Subsystem& part) {
  const Component* parts[] = {&part};
  return part.make_batch(parts);
}

inline VectorXd gradient_at(const Subsystem& part, const VectorXd& x) {
  VectorXd g(x.size());
  part.gradient(x.data(), g.data());
  return g;
}

/// EΔx, or |E||Δx| for magnitudes; Δx where there is no E.
inline VectorXd moved(const Subsystem& part, const VectorXd& dx) {
  const SparseMatrix* E = part.linear_form().E;
  return E == nullptr ? dx : VectorXd(*E * dx);
}
inline VectorXd moved_size(const Subsystem& part, const VectorXd& dx) {
  const SparseMatrix* E = part.linear_form().E;
  return E == nullptr ? VectorXd(dx.cwiseAbs()) : VectorXd(E->cwiseAbs() * dx.cwiseAbs());
}

/// The fastest rate [1/s] of the part linearised at x with its ports terminated by γ.
double fastest_rate(const Subsystem& part, const VectorXd& x, const VectorXd& impedance);

/// The size of the energies of one step, whose round-off bounds what a balance can promise.
double energy_size(const Subsystem& part, const VectorXd& x, const VectorXd& a,
                   const FrozenMap::Outcome& out);

/// Calls body(sampler, h, where) for every step size and trial.
template <class Body>
void sweep(const Subsystem& part, const ConformanceOptions& options, const Body& body) {
  Sampler sampler(part, options);
  for (const double h : options.steps_s) {
    for (int trial = 0; trial < options.trials; ++trial) {
      body(sampler, h, fmt::format("h={:g}, trial={}, seed={}", h, trial, options.seed));
    }
  }
}

}  // namespace portwave::conformance
