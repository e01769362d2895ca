// Many replicas of a system, for C.

#include "portwave/runtime/ensemble/ensemble.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "handles.hpp"

using namespace portwave::c_interface;

struct portwave_ensemble {
  portwave::Ensemble ensemble;
  std::shared_ptr<const portwave::Scenario> scenario;  // without its system
};

namespace {

void expect_numbers(const portwave::Ensemble& of, std::size_t found, int each) {
  const std::size_t wanted =
      static_cast<std::size_t>(of.replicas()) * static_cast<std::size_t>(each);
  if (found == wanted) return;
  throw std::invalid_argument(std::to_string(found) + " numbers are given, and " +
                              std::to_string(wanted) + " are needed: " + std::to_string(each) +
                              " for each replica");
}

}  // namespace

extern "C" {

portwave_status portwave_ensemble_new(const portwave_simulation* simulation, int replicas,
                                      const char* const* parameters, size_t count,
                                      const double* values, const portwave_options* options,
                                      portwave_ensemble** ensemble) {
  if (simulation == nullptr || ensemble == nullptr) return null_pointer();
  if (count > 0 && (parameters == nullptr || values == nullptr)) return null_pointer();
  *ensemble = nullptr;
  return guarded([&] {
    const portwave_options own = options_of(options);
    if (own.deadline_s != 0.0 || own.pace != 0.0) {
      throw std::invalid_argument("an ensemble has no deadline and no pace");
    }
    portwave::EnsembleOptions of_ensemble{.threads = own.threads};
    if (own.arena != nullptr) of_ensemble.arena = own.arena->arena;
    portwave::StepperOptions steps = simulation->scenario->options;
    steps.time = {};
    steps.threads = 1;
    steps.arena = nullptr;
    std::vector<std::string> paths;
    for (size_t k = 0; k < count; ++k) {
      if (parameters[k] == nullptr) throw std::invalid_argument("the name of a parameter is null");
      paths.emplace_back(parameters[k]);
    }
    const size_t given = count * static_cast<size_t>(std::max(replicas, 0));
    *ensemble = new portwave_ensemble{
        portwave::make_ensemble(simulation->stepper->system(), *simulation->scenario, replicas,
                                paths, {values, given}, steps, of_ensemble),
        simulation->scenario};
    return PORTWAVE_OK;
  });
}

void portwave_ensemble_free(portwave_ensemble* ensemble) { delete ensemble; }

int portwave_ensemble_replicas(const portwave_ensemble* ensemble) {
  return ensemble == nullptr ? -1 : ensemble->ensemble.replicas();
}
size_t portwave_ensemble_state_count(const portwave_ensemble* ensemble) {
  return ensemble == nullptr ? 0 : static_cast<size_t>(ensemble->ensemble.state_size());
}
int portwave_ensemble_input_count(const portwave_ensemble* ensemble) {
  return ensemble == nullptr ? -1 : ensemble->ensemble.input_size();
}
int portwave_ensemble_failures(const portwave_ensemble* ensemble) {
  return ensemble == nullptr ? -1 : ensemble->ensemble.failures();
}
int64_t portwave_ensemble_step_index(const portwave_ensemble* ensemble) {
  return ensemble == nullptr ? -1 : ensemble->ensemble.step_index();
}

portwave_status portwave_ensemble_step_n(portwave_ensemble* ensemble, int64_t steps) {
  if (ensemble == nullptr) return null_pointer();
  return guarded([&] {
    ensemble->ensemble.step(steps);
    return PORTWAVE_OK;
  });
}

portwave_status portwave_ensemble_set_states(portwave_ensemble* ensemble, const double* values,
                                             size_t count) {
  if (ensemble == nullptr || (values == nullptr && count > 0)) return null_pointer();
  return guarded([&] {
    portwave::Ensemble& own = ensemble->ensemble;
    expect_numbers(own, count, own.state_size());
    own.set_states({values, count});
    own.reset();
    return PORTWAVE_OK;
  });
}

portwave_status portwave_ensemble_set_inputs(portwave_ensemble* ensemble, const double* values,
                                             size_t count) {
  if (ensemble == nullptr || (values == nullptr && count > 0)) return null_pointer();
  return guarded([&] {
    portwave::Ensemble& own = ensemble->ensemble;
    expect_numbers(own, count, own.input_size());
    const auto set = [&](bool is_finite) {
      const double* value = values;
      for (int i = 0; i < own.replicas(); ++i) {
        for (int k = 0; k < own.input_size(); ++k, ++value) {
          if (std::isfinite(*value) == is_finite) own.set_input(i, k, *value);
        }
      }
    };
    set(false);  // refuses these, before anything has changed
    set(true);
    return PORTWAVE_OK;
  });
}

portwave_status portwave_ensemble_set_parameter(portwave_ensemble* ensemble, int replica,
                                                const char* path, double value) {
  if (ensemble == nullptr || path == nullptr) return null_pointer();
  return guarded([&] {
    portwave::set_parameter(ensemble->ensemble, *ensemble->scenario, replica, path, value);
    return PORTWAVE_OK;
  });
}

portwave_status portwave_ensemble_get_parameter(const portwave_ensemble* ensemble, int replica,
                                                const char* path, double* value) {
  if (ensemble == nullptr || path == nullptr || value == nullptr) return null_pointer();
  return guarded([&] {
    *value = portwave::parameter(ensemble->ensemble, *ensemble->scenario, replica, path);
    return PORTWAVE_OK;
  });
}

portwave_status portwave_ensemble_states(const portwave_ensemble* ensemble, double* values,
                                         size_t count) {
  if (ensemble == nullptr || (values == nullptr && count > 0)) return null_pointer();
  return guarded([&] {
    const portwave::Ensemble& own = ensemble->ensemble;
    expect_numbers(own, count, own.state_size());
    const auto n = static_cast<size_t>(own.state_size());
    for (int i = 0; i < own.replicas(); ++i) {
      own.get_state(i, std::span(values + static_cast<size_t>(i) * n, n));
    }
    return PORTWAVE_OK;
  });
}

portwave_status portwave_ensemble_rollout(portwave_ensemble* ensemble, const double* x0,
                                          const double* u, int steps, int every, double* x,
                                          size_t count) {
  if (ensemble == nullptr || (x == nullptr && count > 0)) return null_pointer();
  return guarded([&] {
    portwave::Ensemble& own = ensemble->ensemble;
    if (steps < 0 || every < 1) {
      throw std::invalid_argument("steps must be >= 0 and every >= 1, got " +
                                  std::to_string(steps) + " and " + std::to_string(every));
    }
    const auto replicas = static_cast<size_t>(own.replicas());
    const auto n = static_cast<size_t>(own.state_size());
    const auto m = static_cast<size_t>(own.input_size());
    const auto given = [](const double* values, size_t size) {
      return values == nullptr ? std::span<const double>() : std::span(values, size);
    };
    own.rollout(given(x0, replicas * n), given(u, replicas * static_cast<size_t>(steps) * m), steps,
                {x, count}, {.every = every});
    return PORTWAVE_OK;
  });
}

portwave_status portwave_ensemble_get_energy(const portwave_ensemble* ensemble, int replica,
                                             portwave_energy* energy) {
  if (ensemble == nullptr || energy == nullptr) return null_pointer();
  return guarded([&] {
    return hand_over(
        energy_of(ensemble->ensemble.energy(replica), ensemble->ensemble.certificate(replica)),
        energy);
  });
}

const char* portwave_ensemble_error(const portwave_ensemble* ensemble, int replica) {
  static thread_local std::string text;
  text.clear();
  if (ensemble != nullptr) {
    (void)guarded([&] {
      text = ensemble->ensemble.status(replica).error;
      return PORTWAVE_OK;
    });
  }
  return text.c_str();
}

}  // extern "C"
