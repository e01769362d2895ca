#include "adapters/structures/response_sign.hpp"

#include <algorithm>
#include <cmath>

#include "adapters/fmi/fmu_setup.hpp"

namespace portwave::structures {
namespace {

constexpr int kSteps = 4;  // the first may show nothing yet

}  // namespace

int response_sign(const Element& element, const std::string& input, const std::string& output,
                  double start_s, double step_s, bool in_a_process, Issues& issues) {
  Issues defects;
  const auto start = fmi::find_start_values(*element.fmu, element.start, defects);
  for (const Issue& defect : defects) issues.push_back({element.where, defect.what});
  if (!defects.empty()) return 0;
  fmi::Program program(element.fmu, element.name, start, start_s,
                       fmi::isolation_of(in_a_process, FmuPartOptions().time_limit_s));
  const fmi::ModelDescription& model = element.fmu->description();
  const fmi::Variable* const in[] = {model.find(input)};
  const fmi::Variable* const out[] = {model.find(output)};
  const fmi::VariableList inputs(in), outputs(out);
  double held = 0.0;
  program.instance().get(inputs, &held);
  // The integral of the answer: of a passive part that of the difference has the sign of the input's.
  const auto answer = [&](double value) {
    double sum = 0.0, own = 0.0;
    program.restore(program.initial());
    for (int n = 0; n < kSteps; ++n) {
      program.instance().set(inputs, &value);
      program.step(start_s + n * step_s, step_s);
      program.instance().get(outputs, &own);
      sum += n + 1 < kSteps ? own : 0.5 * own;
    }
    return sum;
  };
  const double first = answer(held), again = answer(held);
  const double noise = 100.0 * std::abs(again - first) + 1e-13 * std::abs(first);
  for (const double share : {1e-3, 1.0}) {
    const double difference = answer(held + share * std::max(1.0, std::abs(held))) - first;
    if (std::isfinite(difference) && std::abs(difference) > noise) return difference > 0.0 ? 1 : -1;
  }
  return 0;
}

}  // namespace portwave::structures
