#include "adapters/structures/response_sign.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>

#include "adapters/fmi/fmu_setup.hpp"
#include "adapters/fmi/instance/fmu_instance.hpp"

namespace portwave::structures {
namespace {

constexpr int kSteps = 4;  // the first may show nothing yet

/// An FMU that is at its start again and again, with one input held at different values.
class Probe {
 public:
  using Start = std::function<std::unique_ptr<fmi::Program>()>;

  /// Where an FMU cannot go back, every try starts another instance.
  Probe(Start start, bool goes_back, const fmi::Variable* input, const fmi::Variable* output,
        double start_s)
      : start_(std::move(start)),
        goes_back_(goes_back),
        program_(start_()),
        in_{input},
        out_{output},
        inputs_(in_),
        outputs_(out_),
        start_s_(start_s) {
    program_->instance().get(inputs_, &held_);
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
        program_->instance().set(inputs_, &value);
        program_->step(start_s_ + n * step_s, step_s);
        sum += (n + 1 < kSteps ? 1.0 : 0.5) * read();
      }
      return sum;
    });
  }

 private:
  void begin(double value) {
    if (goes_back_) {
      program_->restore(program_->initial());
    } else {
      program_.reset();  // first: some may be there once only
      program_ = start_();
    }
    program_->instance().set(inputs_, &value);
  }
  double read() {
    double own = 0.0;
    program_->instance().get(outputs_, &own);
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

  Start start_;
  bool goes_back_;
  std::unique_ptr<fmi::Program> program_;
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
  const fmi::Isolation isolation = fmi::isolation_of(in_a_process, FmuPartOptions().time_limit_s);
  const bool goes_back = element.fmu->description().saves_state;
  const auto program = [&] {
    return std::make_unique<fmi::Program>(element.fmu, element.name, start, start_s, isolation,
                                          fmi::Shown(), goes_back);
  };
  Probe probe(program, goes_back, variables.find(input), variables.find(output), start_s);
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
