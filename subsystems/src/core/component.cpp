#include "portwave/subsystems/core/component.hpp"

#include <algorithm>
#include <cmath>

namespace portwave {

int Signature::wave_size() const {
  int size = 0;
  for (const Port& port : ports) size += port.dimension;
  return size;
}

std::vector<double> Component::default_state() const {
  return std::vector<double>(signature_->states.size(), 0.0);
}

std::vector<double> Component::typical_state() const {
  std::vector<double> x = default_state();
  for (double& size : x) size = size != 0.0 ? std::abs(size) : 1.0;
  return x;
}

Issues Component::check_initial_state([[maybe_unused]] const double* x) const { return {}; }

bool is_plain_name(std::string_view name) {
  static constexpr std::string_view kRefused = ".[],\"'\x7f";
  return !name.empty() && std::none_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || kRefused.find(c) != std::string_view::npos;
  });
}

std::vector<std::string> variable_names(const Signature& signature) {
  std::vector<std::string> names;
  for (const StateVariable& state : signature.states) names.push_back(state.name);
  for (const Port& port : signature.ports) {
    for (int i = 0; i < port.dimension; ++i) {
      names.push_back(port.dimension == 1 ? port.name : port.name + "[" + std::to_string(i) + "]");
    }
  }
  for (const ExternalInput& input : signature.inputs) names.push_back(input.name);
  return names;
}

}  // namespace portwave
