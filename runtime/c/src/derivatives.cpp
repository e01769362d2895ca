// Derivatives of the steps of a roll-out, for C.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "handles.hpp"
#include "portwave/runtime/study/step_derivatives.hpp"

using namespace portwave::c_interface;

struct portwave_derivatives {
  std::vector<portwave::StepDerivatives> steps;
  int states = 0, inputs = 0, parameters = 0;
};

namespace {

/// Row k of a matrix of the caller; 0 where there is none.
Eigen::VectorXd row(const double* matrix, std::size_t k, int width) {
  if (matrix == nullptr) return Eigen::VectorXd::Zero(width);
  return Eigen::Map<const Eigen::VectorXd>(matrix + k * static_cast<std::size_t>(width), width);
}
void put_row(const Eigen::VectorXd& values, double* matrix, std::size_t k) {
  if (matrix == nullptr) return;
  const auto width = static_cast<std::size_t>(values.size());
  Eigen::Map<Eigen::VectorXd>(matrix + k * width, values.size()) = values;
}

void put_matrix(const Eigen::MatrixXd& values, double* matrix) {
  using ByRows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  if (matrix == nullptr) return;
  Eigen::Map<ByRows>(matrix, values.rows(), values.cols()) = values;
}

}  // namespace

extern "C" {

portwave_status portwave_differentiate(portwave_simulation* simulation, int64_t steps,
                                       const double* inputs, const char* const* parameters,
                                       size_t count, portwave_derivatives** derivatives) {
  if (simulation == nullptr || derivatives == nullptr) return null_pointer();
  if (count > 0 && parameters == nullptr) return null_pointer();
  *derivatives = nullptr;
  return guarded([&] {
    if (steps < 0) throw std::invalid_argument("the number of steps must be >= 0");
    std::vector<std::string> names;
    for (size_t k = 0; k < count; ++k) {
      if (parameters[k] == nullptr) throw std::invalid_argument("the name of a parameter is null");
      names.emplace_back(parameters[k]);
    }
    const portwave_simulation::Stepping stepping(*simulation);
    portwave::Stepper& stepper = *simulation->stepper;
    const portwave::Scenario& scenario = *simulation->scenario;
    portwave::StepDifferentiator differentiator(stepper, scenario, scenario.options.step_s, names);
    auto made = std::make_unique<portwave_derivatives>();
    made->states = static_cast<int>(portwave_state_count(simulation));
    made->inputs = portwave_input_count(simulation);
    made->parameters = static_cast<int>(count);
    const auto width = static_cast<std::size_t>(made->inputs);
    for (int64_t k = 0; k < steps; ++k) {
      if (inputs != nullptr) {
        stepper.set_inputs({inputs + static_cast<std::size_t>(k) * width, width});
      }
      portwave::StepReport report;
      const std::int64_t before = stepper.step_index();
      try {
        made->steps.push_back(differentiator.step(&report));
      } catch (...) {  // a step that was made may have no derivatives, and stands
        if (stepper.step_index() != before) static_cast<void>(simulation->goes_on(report));
        throw;
      }
      if (!simulation->goes_on(report)) {
        return fail(PORTWAVE_NOT_POSSIBLE, "stopped by the observer");
      }
      if (stepper.ending_watch() != nullptr) break;
    }
    *derivatives = made.release();
    return PORTWAVE_OK;
  });
}

void portwave_derivatives_free(portwave_derivatives* derivatives) { delete derivatives; }

int64_t portwave_derivatives_steps(const portwave_derivatives* derivatives) {
  return derivatives == nullptr ? 0 : static_cast<int64_t>(derivatives->steps.size());
}

portwave_status portwave_get_derivatives(const portwave_derivatives* derivatives, int64_t step,
                                         double* by_state, double* by_input, double* by_parameter) {
  if (derivatives == nullptr) return null_pointer();
  return guarded([&] {
    if (step < 0 || step >= portwave_derivatives_steps(derivatives)) {
      throw std::invalid_argument("there is no step of this number");
    }
    const auto& own = derivatives->steps[static_cast<std::size_t>(step)];
    put_matrix(own.by_state(), by_state);
    put_matrix(own.by_input(), by_input);
    put_matrix(own.by_parameter(), by_parameter);
    return PORTWAVE_OK;
  });
}

portwave_status portwave_tangent(const portwave_derivatives* derivatives, const double* state,
                                 const double* inputs, const double* parameters, double* states) {
  if (derivatives == nullptr || states == nullptr) return null_pointer();
  return guarded([&] {
    Eigen::VectorXd x = row(state, 0, derivatives->states);
    const Eigen::VectorXd theta = row(parameters, 0, derivatives->parameters);
    put_row(x, states, 0);
    for (std::size_t k = 0; k < derivatives->steps.size(); ++k) {
      x = derivatives->steps[k].tangent(x, row(inputs, k, derivatives->inputs), theta);
      put_row(x, states, k + 1);
    }
    return PORTWAVE_OK;
  });
}

portwave_status portwave_adjoint(const portwave_derivatives* derivatives, const double* weights,
                                 double* state, double* inputs, double* parameters) {
  if (derivatives == nullptr || weights == nullptr) return null_pointer();
  return guarded([&] {
    const std::size_t steps = derivatives->steps.size();
    Eigen::VectorXd ahead = row(weights, steps, derivatives->states);
    Eigen::VectorXd theta = Eigen::VectorXd::Zero(derivatives->parameters);
    for (std::size_t k = steps; k-- > 0;) {
      const auto own = derivatives->steps[k].adjoint(ahead);
      ahead = own.state + row(weights, k, derivatives->states);
      put_row(own.input, inputs, k);
      theta += own.parameter;
    }
    put_row(ahead, state, 0);
    put_row(theta, parameters, 0);
    return PORTWAVE_OK;
  });
}

}  // extern "C"
