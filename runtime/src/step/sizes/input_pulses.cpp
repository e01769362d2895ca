#include "step/sizes/input_pulses.hpp"

#include <algorithm>
#include <cmath>
#include <exception>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {
namespace {

/// Share of the largest value so far by which a pulse leaves those at the stages; and by more than they span.
constexpr double kPulse = 0.05;

}  // namespace

InputPulses::InputPulses(const System& system, const StageRule& stages) : stages_(stages) {
  for (const Part& part : system.parts()) {
    for (std::size_t i = 0; i < part.inputs.size(); ++i) {
      const Expression* const own = part.inputs[i].expression();
      if (own != nullptr && part.input_is_driven[i]) inputs_.push_back({own});
    }
  }
}

bool InputPulses::within(double begin_s, double step_s) {
  bool out = false;
  for (Input& input : inputs_) {
    try {
      double low = (*input.of)(begin_s, {}), high = low;
      const auto see = [&](double time_s) {
        const double u = (*input.of)(time_s, {});
        low = std::min(low, u);
        high = std::max(high, u);
      };
      for (int i = 0; i < stages_.count; ++i) see(begin_s + stages_.c[at(i)] * step_s);
      see(begin_s + step_s);
      if (!std::isfinite(high - low)) continue;
      input.largest = std::max({input.largest, -low, high});
      const double span = high - low;
      const auto found = input.of->farthest_outside(begin_s, begin_s + step_s, low, high,
                                                    std::max(kPulse * input.largest, span));
      if (!found) continue;
      input.largest = std::max(input.largest, std::abs(found->value));
      const double beyond = std::max(found->value - high, low - found->value);
      out = out || beyond > std::max(kPulse * input.largest, span);
    } catch (const std::exception&) {  // the step itself tells it, if it meets that too
      continue;
    }
  }
  return out;
}

void InputPulses::archive(StateArchive& archive) {
  for (Input& input : inputs_) {
    archive.values(input.largest);
    archive.expect(input.largest >= 0.0, "the largest value of an input so far");
  }
}

}  // namespace portwave
