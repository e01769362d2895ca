#include "step/waves/tuner.hpp"

#include <algorithm>
#include <utility>

#include "portwave/subsystems/base/state_archive.hpp"
#include "step/stepper_options.hpp"

namespace portwave {
namespace {

/// A check costs about as much as some hundred steps of the parts it examines.
constexpr std::int64_t kLongestInterval = 1024;
constexpr std::int64_t kShortestByCount = 16;

}  // namespace

Tuner::Tuner(const System& system, double step_s, const WaveCoupling& method,
             const Anytime& anytime) {
  const bool asked_for =
      method.kind != WaveUpdate::automatic && method.impedance_kind == ImpedanceKind::given;
  if (asked_for) {
    choice_.method = method;
    choice_.method.waves().impedance = impedance_by_port(system, method);
    is_given_ = true;
    return;
  }
  responses_.emplace(system, step_s);
  choice_ = choose_method(*responses_, method, anytime);
  const WaveCoupling& chosen = choice_.method.waves();
  const bool follows = chosen.retune_factor > 0.0 && responses_->depends_on_state() &&
                       chosen.impedance_kind != ImpedanceKind::given &&
                       !system.scalar_ports().empty();
  follows_ = follows;
  if (!follows) responses_.reset();
}

Tuner::Tuner(const System& system, double step_s, const Tuner& like)
    : choice_(like.choice_), is_given_(like.is_given_) {
  if (is_given_) {  // of a run that left its own ones it may yet go back behind that
    if (like.responses_) responses_.emplace(system, step_s);
    return;
  }
  responses_.emplace(system, step_s);
  if (!responses_->problem().empty()) {
    throw ConfigError("/method/impedance", responses_->problem());
  }
  TunedImpedance tuned = tune_impedance(*responses_, choice_.rules);
  if (tuned.by_port.empty() && !system.scalar_ports().empty()) {
    throw ConfigError("/method/impedance", std::move(tuned.problem));
  }
  choice_.method.waves().impedance = std::move(tuned.by_port);
  follows_ = like.follows_;
  if (!like.responses_) responses_.reset();
}

int Tuner::expected_iterations() const {
  const WaveCoupling& method = choice_.method.waves();
  const bool predicted = method.tolerance > 0.0 && choice_.rate.converges;
  return predicted ? std::min(method.iterations, choice_.rate.evaluations) : method.iterations;
}

void Tuner::observe(std::int64_t steps, int iterations, bool converged, bool rescued) {
  const WaveCoupling& method = choice_.method.waves();
  if (!follows_ || !(method.tolerance > 0.0 || method.energy_tolerance_J > 0.0)) return;
  if (usual_iterations_ == 0 || iterations < usual_iterations_) usual_iterations_ = iterations;
  if (!converged || 2 * iterations > 3 * usual_iterations_ + 2) {
    next_check_ = std::min(next_check_, std::max(steps, last_check_ + patience_));
  }
  if (rescued) next_check_ = steps;
}

std::optional<std::vector<double>> Tuner::retuned(
    std::int64_t steps, const std::function<std::span<const double>(int part)>& state_of) {
  if (!is_due(steps)) return std::nullopt;
  last_check_ = steps;
  next_check_ = steps + interval_;
  usual_iterations_ = 0;
  responses_->linearise(state_of);
  TunedImpedance tuned = tune_impedance(*responses_, choice_.rules);
  const std::vector<double>& in_force = choice_.method.waves().impedance;
  bool off = false;
  for (std::size_t i = 0; i < tuned.by_port.size(); ++i) {
    const double ratio = tuned.by_port[i] / in_force[i];
    off = off || std::max(ratio, 1.0 / ratio) > choice_.method.waves().retune_factor;
  }
  interval_ =
      off ? std::max<std::int64_t>(interval_ / 2, 1) : std::min(2 * interval_, kLongestInterval);
  patience_ =
      off ? kShortestByCount : std::clamp(2 * patience_, kShortestByCount, kLongestInterval);
  next_check_ = steps + interval_;
  if (!off) return std::nullopt;
  return std::move(tuned.by_port);
}

void Tuner::rehearse(const std::function<std::span<const double>(int part)>& state_of) {
  if (!follows_) return;
  responses_->linearise(state_of);
  static_cast<void>(tune_impedance(*responses_, choice_.rules));
}

void Tuner::refuse(std::int64_t steps) {
  interval_ = patience_ = kLongestInterval;
  last_check_ = steps;
  next_check_ = steps + interval_;
}

void Tuner::leave(std::span<const double> by_port) {
  follows_ = false;
  is_given_ = true;
  choice_.method.waves().impedance_kind = ImpedanceKind::given;
  std::vector<double>& own = choice_.method.waves().impedance;
  if (by_port.data() != own.data()) own.assign(by_port.begin(), by_port.end());
}

void Tuner::archive(StateArchive& archive) {
  WaveCoupling& method = choice_.method.waves();
  archive.vector(method.impedance);
  archive.values(method.impedance_kind, method.iterations, is_given_, follows_, interval_,
                 last_check_, next_check_, patience_, usual_iterations_);
  archive.expect(method.impedance_kind >= ImpedanceKind::given &&
                     method.impedance_kind <= ImpedanceKind::automatic,
                 "the rule of the impedances");
  archive.expect(method.iterations >= 0 && usual_iterations_ >= 0, "the number of iterations");
  archive.expect(!follows_ || responses_.has_value(), "whether impedances follow the state");
  archive.expect_counts({last_check_, next_check_}, "the step of a look at the impedances");
  for (const std::int64_t interval : {interval_, patience_}) {
    archive.expect(interval >= 1 && interval <= kLongestInterval,
                   "the number of steps between two looks at the impedances");
  }
}

}  // namespace portwave
