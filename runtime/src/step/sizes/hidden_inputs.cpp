#include "step/sizes/hidden_inputs.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <utility>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "signals/table_span.hpp"
#include "step/sizes/input_pulses.hpp"

namespace portwave {
namespace {

/// Amplitude of the error of means, beside that of the input: of one stage at ωh = 1.9. Share of the mean square that
/// is hidden.
constexpr double kOff = 0.15, kHidden = 0.1;
constexpr int kSamples = 16;
/// Steps with pulses, from which on they are more than single ones.
constexpr std::int64_t kFewest = 3;

bool is_judged(const Part& part, std::size_t input) {
  const Signal& signal = part.inputs[input];
  if (!part.input_is_driven[input] || signal.is_settable() || signal.is_callback() ||
      signal.is_rate()) {
    return false;
  }
  const Subsystem* const physics = part.port_hamiltonian();
  return physics == nullptr || !physics->has_vertical_laws();
}

}  // namespace

HiddenInputs::HiddenInputs(const System& system, const SignalGraph* parameters, double widest)
    : widest_(widest) {
  std::vector<bool> is_nonlinear(at(system.island_count()), false);
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    const bool own = !system.parts()[at(i)].component->capabilities().linear;
    if (own) is_nonlinear[at(system.island_of_part(i))] = true;
  }
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    const Part& part = system.parts()[at(i)];
    for (std::size_t k = 0; k < part.inputs.size(); ++k) {
      if (!is_judged(part, k)) continue;
      inputs_.push_back(
          {&part.inputs[k], i, static_cast<int>(k), is_nonlinear[at(system.island_of_part(i))]});
    }
  }
  const std::size_t count = parameters == nullptr ? 0 : parameters->parameter_actuators().size();
  for (std::size_t k = 0; k < count; ++k) {
    const SignalGraph::ParameterActuator& own = parameters->parameter_actuators()[k];
    const Signal* const function = held_function(*parameters, own);
    if (function == nullptr || function->is_callback()) continue;
    const std::size_t inputs = system.parts()[at(own.part)].inputs.size();
    inputs_.push_back({function, own.part, static_cast<int>(inputs + k), false, true});
  }
  sums_.resize(inputs_.size());
}

void HiddenInputs::look(std::int64_t step, double begin_s, double step_s, const StageRule& stages) {
  // One damped stage takes the end of a step for all of it, with an error of first order like all that it does.
  const StageRule& rule = stages.count == 1 ? gauss_stages(1) : stages;
  // Other places in every step, so that no period fits them.
  constexpr double kGolden = 0.6180339887498949;
  const double offset = std::fmod(kGolden * static_cast<double>(step % 1000000), 1.0);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Signal& signal = *inputs_[i].signal;
    double mean = 0.0, square = 0.0, taken = 0.0, taken_square = 0.0;
    try {
      for (int k = 0; k < kSamples; ++k) {
        const double u = signal(begin_s + (k + offset) / kSamples * step_s);
        mean += u / kSamples;
        square += u * u / kSamples;
      }
      if (inputs_[i].is_parameter) {
        taken = signal.at_sample(begin_s + 0.5 * step_s, step_s);
        taken_square = taken * taken;
      }
      for (int j = 0; j < rule.count && !inputs_[i].is_parameter; ++j) {
        const double c = rule.c[at(j)], b = rule.b[at(j)];
        const double u = signal.in_step({begin_s + c * step_s, begin_s, step_s, c, rule.count});
        taken += b * u;
        taken_square += b * u * u;
      }
    } catch (const std::exception&) {  // the step itself tells it, if it meets that too
      continue;
    }
    if (!std::isfinite(square) || !std::isfinite(taken_square)) continue;
    Sums& own = sums_[i];
    own.all += square;
    // Jumps within the step have their mean; samples have it but for one of them.
    const bool jumps = signal.next_kink(begin_s) < begin_s + step_s ||
                       signal.next_change(begin_s, begin_s + step_s) < begin_s + step_s;
    const double off = jumps ? 0.0 : (mean - taken) * (mean - taken);
    const double hidden = jumps ? std::max(square - taken_square, 0.0) : 0.0;
    if (off > kOff * kOff * square && own.off_at < 0) own.off_at = step;
    if (hidden > kHidden * square && own.pulses++ == 0) own.hidden_at = step;
    own.off += off;
    own.hidden += hidden;
  }
}

/// Whether an input leaves what a coarse look sees of it, anywhere within.
void HiddenInputs::search_stretch(const Expression& input, double begin_s, double end_s,
                                  double steps, bool is_parameter, Sums& sums) {
  constexpr int kPlaces = 16;
  constexpr double kShare = 0.05;
  sums.searched_s = end_s;
  sums.is_suspect = 0;
  double low = input(begin_s, {}), high = low, square = low * low;
  for (int k = 1; k <= kPlaces; ++k) {
    const double u = input(begin_s + k * (end_s - begin_s) / kPlaces, {});
    low = std::min(low, u);
    high = std::max(high, u);
    square += u * u;
  }
  if (!std::isfinite(square)) return;
  if (!is_parameter) sums.square += steps * square / (kPlaces + 1);
  sums.largest = std::max({sums.largest, -low, high});
  const double slack = std::max(kShare * sums.largest, 0.5 * (high - low));
  sums.is_suspect = input.farthest_outside(begin_s, end_s, low, high, slack).has_value() ? 1 : 0;
}

/// Jumps to and fro within a step: its mean is not what the middle of the step is.
void HiddenInputs::search_jumps(const Signal& parameter, std::int64_t step, double begin_s,
                                double step_s, Sums& sums) {
  constexpr double kAhead = 64.0;  // steps, of the search
  const double end_s = begin_s + step_s;
  const auto next = [&](double after_s, double until_s) {
    return std::min(parameter.next_kink(after_s), parameter.next_change(after_s, until_s));
  };
  constexpr double kRounding = 1e-6;
  if (sums.next_jump_s <= begin_s + kRounding * step_s) {
    sums.next_jump_s = next(begin_s, begin_s + kAhead * step_s);
    // Nothing for as long as was searched.
    if (!(sums.next_jump_s < begin_s + kAhead * step_s)) {
      sums.next_jump_s = begin_s + kAhead * step_s;
    }
  }
  const double taken = parameter.at_sample(begin_s + 0.5 * step_s, step_s);
  sums.square += taken * taken;
  const double before = std::exchange(sums.last, taken);
  if (!(sums.next_jump_s < end_s)) return;
  // A pulse has two edges, or one where the other is that of the step. One edge alone is a switch.
  const bool is_pulse =
      next(sums.next_jump_s, end_s) < end_s || (before == taken && parameter(end_s) == taken);
  if (!is_pulse) return;
  const double mean = parameter.in_step({begin_s + 0.5 * step_s, begin_s, step_s, 0.5, 1});
  const double off = mean - taken;
  if (!std::isfinite(off) || off == 0.0) return;
  sums.missed += off * off;
  if (sums.missed_at < 0) sums.missed_at = step;
}

/// Whether a step takes a pulse with this mean, as it does between jumps: at the stages alone it passes over it.
bool HiddenInputs::takes_mean(const Signal& input, double begin_s, double step_s,
                              const StageRule& stages, double mean) {
  double more = 0.0;
  for (int j = 0; j < stages.count; ++j) {
    const double c = stages.c[at(j)], time_s = begin_s + c * step_s;
    more += stages.b[at(j)] *
            (input.in_step({time_s, begin_s, step_s, c, stages.count}) - input(time_s));
  }
  return std::abs(more) > 0.5 * mean;
}

void HiddenInputs::search(std::int64_t step, double begin_s, double step_s, const StageRule& stages,
                          bool is_cut) {
  constexpr int kSteps = 64;  // of a stretch
  constexpr double kRounding = 1e-6;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Expression* const input = inputs_[i].signal->expression();
    Sums& own = sums_[i];
    if (is_cut && inputs_[i].is_parameter) continue;
    try {
      if (inputs_[i].is_parameter) search_jumps(*inputs_[i].signal, step, begin_s, step_s, own);
      if (input == nullptr) continue;
      if (!(begin_s + step_s <= own.searched_s + kRounding * step_s)) {
        // The first stretches differ, so that not all inputs are searched in one step.
        const bool is_first = !std::isfinite(own.searched_s);
        const double steps = is_first ? 1.0 + static_cast<double>(i % kSteps) : kSteps;
        search_stretch(*input, begin_s, begin_s + steps * step_s, steps, inputs_[i].is_parameter,
                       own);
      }
      if (own.is_suspect == 0) continue;
      const auto pulse = find_pulse(*input, stages, begin_s, step_s, own.largest);
      if (!pulse || pulse->width_s > widest_ * step_s) continue;
      const double mean = pulse->height * std::min(pulse->width_s / step_s, 1.0);
      if (takes_mean(*inputs_[i].signal, begin_s, step_s, stages, mean)) continue;
      own.missed += mean * mean;
      if (own.missed_at < 0) own.missed_at = step;
    } catch (const std::exception&) {  // the step itself tells it, if it meets that too
      continue;
    }
  }
}

Resolution HiddenInputs::value() const {
  Resolution out;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Sums& own = sums_[i];
    const auto consider = [&](Resolution::Kind kind, double share, double least,
                              std::int64_t step) {
      if (!(share > std::max(least, out.share)) || step < 0) return;
      out = {};
      out.kind = kind;
      out.share = share;
      out.step = step;
      out.part = inputs_[i].part;
      out.input = inputs_[i].input;
    };
    if (own.missed > 0.0) {
      consider(Resolution::Kind::undersampled, std::sqrt(own.missed / (own.square + own.missed)),
               kOff, own.missed_at);
    }
    if (!(own.all > 0.0)) continue;
    consider(Resolution::Kind::undersampled, std::sqrt(own.off / own.all), kOff, own.off_at);
    // One pulse is an impulse, of which all but its length is seen.
    if (inputs_[i].is_among_nonlinear && own.pulses >= kFewest) {
      consider(Resolution::Kind::pulses, own.hidden / own.all, kHidden, own.hidden_at);
    }
  }
  return out;
}

void HiddenInputs::archive(StateArchive& archive) {
  archive.array(std::span(sums_));
  for (const Sums& own : sums_) {
    archive.expect(own.all >= 0.0 && own.off >= 0.0 && own.hidden >= 0.0 && own.square >= 0.0 &&
                       own.missed >= 0.0 && own.largest >= 0.0 && !std::isnan(own.searched_s) &&
                       !std::isnan(own.next_jump_s),
                   "what inputs do within steps");
  }
}

}  // namespace portwave
