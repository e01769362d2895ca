#include "portwave/runtime/step/named_states.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

std::size_t state_count(const System& system) {
  std::size_t count = 0;
  for (const Part& part : system.parts()) {
    count += at(part.component->signature().state_size());
  }
  return count;
}

void expect_count(const System& system, std::size_t given) {
  const std::size_t own = named_state_count(system);
  if (own == given) return;
  throw std::invalid_argument(
      fmt::format("the system has {} states, and the array holds {}", own, given));
}

/// `read(part, states)` for all parts in turn; copies that the pieces of a part hold are left out.
template <class Read>
void gather(const System& system, std::span<double> states, const Read& read) {
  expect_count(system, states.size());
  const auto read_all = [&](std::span<double> all) {
    std::size_t first = 0;
    for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
      const auto size = at(system.parts()[at(part)].component->signature().state_size());
      read(part, all.subspan(first, size));
      first += size;
    }
  };
  if (system.cuts().empty()) return read_all(states);
  std::vector<double> all(state_count(system));
  read_all(all);
  const StateNames names = state_names(system);
  for (std::size_t i = 0; i < states.size(); ++i) states[i] = all[at(names.place[i])];
}

}  // namespace

std::size_t named_state_count(const System& system) {
  return system.cuts().empty() ? state_count(system) : state_names(system).named.size();
}

void get_named_states(const Stepper& stepper, std::span<double> states) {
  gather(stepper.system(), states, [&](int part, std::span<double> own) {
    std::ranges::copy(stepper.state(part), own.begin());
  });
}

void get_named_states_at(const Stepper& stepper, double time_s, std::span<double> states) {
  gather(stepper.system(), states,
         [&](int part, std::span<double> own) { stepper.state_at(part, time_s, own); });
}

void set_named_states(Stepper& stepper, std::span<const double> states) {
  const System& system = stepper.system();
  expect_count(system, states.size());
  if (system.cuts().empty()) return stepper.set_states(states);
  std::vector<double> all;
  for (const int name : state_names(system).name_of) all.push_back(states[at(name)]);
  stepper.set_states(all);
}

}  // namespace portwave
