#include "adapters/structures/response_sign.hpp"

#include <algorithm>
#include <cmath>

#include "adapters/fmi/fmu_setup.hpp"
#include "adapters/fmi/instance/fmu_instance.hpp"

namespace portwave::structures {
namespace {

constexpr int kSteps = 4;  // the first may show nothing yet

/// An FMU that is started again and again, with one input held at different values.
class Probe {
 public:
  Probe(fmi::Program& program, const fmi::Variable* input, const fmi::Variable* output,
        double start_s)
      : program_(program),
        in_{input},
        out_{output},
        inputs_(in_),
        outputs_(out_),
        start_s_(start_s) {
    program_.instance().get(inputs_, &held_);
  }

  /// The sign of the answer at once.
  int at_once() {
    return sign_of([&](double value) {
      begin(value);
      return read();
    });
  }
  /// That of its integral over some steps: of a passive part that of the difference has the sign of the input's.
  int over_steps(double step_s) {
    return sign_of([&](double value) {
      begin(value);
      double sum = 0.5 * read();
      for (int n = 0; n < kSteps; ++n) {
        program_.instance().set(inputs_, &value);
        program_.step(start_s_ + n * step_s, step_s);
        sum += (n + 1 < kSteps ? 1.0 : 0.5) * read();
      }
      return sum;
    });
  }

 private:
  void begin(double value) {
    program_.restore(program_.initial());
    program_.instance().set(inputs_, &value);
  }
  double read() {
    double own = 0.0;
    program_.instance().get(outputs_, &own);
    return own;
  }

  template <class Answer>
  int sign_of(const Answer& answer) {
    const double first = answer(held_), again = answer(held_);
    const double noise = 100.0 * std::abs(again - first) + 1e-13 * std::abs(first);
    for (const double share : {1e-3, 1.0}) {
      const double difference = answer(held_ + share * std::max(1.0, std::abs(held_))) - first;
      if (std::isfinite(difference) && std::abs(difference) > noise)
        return difference > 0.0 ? 1 : -1;
    }
    return 0;
  }

  fmi::Program& program_;
  const fmi::Variable *in_[1], *out_[1];
  fmi::VariableList inputs_, outputs_;
  double start_s_, held_ = 0.0;
};

}  // namespace

std::optional<int> response_sign(const Element& element, const std::string& input,
                                 const std::string& output, double start_s, double step_s,
                                 bool in_a_process, Issues& issues) {
  Issues defects;
  fmi::FmuVariables variables(element.fmu, element.start, defects);
  const auto start = fmi::find_start_values(variables, element.start, defects);
  for (const Issue& defect : defects) issues.push_back({element.where, defect.what});
  if (!defects.empty()) return 0;
  fmi::Program program(element.fmu, element.name, start, start_s,
                       fmi::isolation_of(in_a_process, FmuPartOptions().time_limit_s));
  Probe probe(program, variables.find(input), variables.find(output), start_s);
  int sign = 0;
  try {
    sign = probe.at_once();
  } catch (const fmi::FmuFault&) {
    sign = 0;  // it tells its outputs after steps alone
  }
  if (sign != 0) return sign;
  sign = probe.over_steps(step_s);
  // A part that decays within a step may show its recoil alone: finer steps have to say the same.
  for (const double share : {0.1, 0.01}) {
    int finer = 0;
    try {
      finer = probe.over_steps(share * step_s);
    } catch (const fmi::FmuFault&) {
      break;  // it takes no such steps
    }
    if (sign != 0 && finer != 0 && finer != sign) return std::nullopt;
    if (finer != 0) sign = finer;
  }
  return sign;
}

}  // namespace portwave::structures
