#include "step/event_watch.hpp"

#include <algorithm>
#include <utility>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "portwave/subsystems/core/coenergy.hpp"
#include "step/step_engine.hpp"

namespace portwave {
namespace {

constexpr int kBisections = 60;

/// Means over a step say nothing before the first one.
bool is_mean(const Watch& watch) {
  return watch.signal < 0 &&
         (watch.of.kind == Sensor::Kind::effort || watch.of.kind == Sensor::Kind::flow);
}

}  // namespace

std::vector<Watch> watches_of(const System& system, const StepperOptions& options) {
  std::vector<Watch> watches = options.watches;
  for (std::size_t i = 0; i < system.parts().size(); ++i) {
    const Subsystem* const physics = system.parts()[i].port_hamiltonian();
    if (physics == nullptr) continue;
    for (const StateLevel& level : physics->state_levels()) {
      Watch watch;
      watch.name = system.parts()[i].name;
      watch.of = {Sensor::Kind::state, static_cast<int>(i), level.state};
      watch.level = level.level;
      watch.changes_equations = true;
      watch.rising = level.rising;
      watch.falling = level.falling;
      watches.push_back(std::move(watch));
    }
  }
  return watches;
}

EventWatch::EventWatch(std::vector<Watch> watches, Reader reader, const System& system)
    : watches_(std::move(watches)), reader_(std::move(reader)) {
  std::size_t most = 0;
  for (const Watch& watch : watches_) {
    const double value = reader_(watch) - watch.level;
    values_.push_back(value);
    sides_.push_back(is_mean(watch) ? 0 : side_of(value));
    if (watch.signal >= 0 || is_mean(watch)) continue;
    const int last = watch.of.part + (watch.of.kind == Sensor::Kind::storage ? watch.of.index : 0);
    for (int part = watch.of.part; part <= last; ++part) {
      const Signature& signature = system.parts()[at(part)].component->signature();
      most = std::max(most, at(signature.state_size()));
    }
  }
  events_.reserve(watches_.size());
  counts_.resize(watches_.size());
  state_.resize(most);
}

void EventWatch::look(StepEngine& engine, double start_s, double end_s) {
  events_.clear();
  for (std::size_t i = 0; i < watches_.size(); ++i) {
    const Watch& watch = watches_[i];
    const bool is_known = engine.has_ports_within() && is_mean(watch);
    if (is_known) values_[i] = value_at(watch, engine, start_s) - watch.level;
    const double before = std::exchange(
        values_[i], (is_known ? value_at(watch, engine, end_s) : reader_(watch)) - watch.level);
    const int side = side_of(values_[i]);
    if (side == 0) continue;
    if (is_known && sides_[i] == 0) sides_[i] = side_of(before);
    const int side_before = std::exchange(sides_[i], side);
    if (side_before == 0 || side_before == side || !watch.wants(side > 0)) continue;
    events_.push_back({static_cast<int>(i), side > 0,
                       time_of(watch, before, values_[i], side, engine, start_s, end_s)});
  }
  std::ranges::stable_sort(events_, {}, &Event::time_s);
  for (const Event& event : events_) {
    EventCount& count = counts_[at(event.watch)];
    ++(event.rising ? count.rising : count.falling);
    count.last_s = event.time_s;
  }
}

void EventWatch::restart() {
  for (std::size_t i = 0; i < watches_.size(); ++i) {
    values_[i] = reader_(watches_[i]) - watches_[i].level;
    sides_[i] = side_of(values_[i]);
  }
}

double EventWatch::time_of(const Watch& watch, double before, double after, int side,
                           StepEngine& engine, double start_s, double end_s) {
  if (watch.signal >= 0) return end_s;
  const bool is_of_state =
      watch.of.kind == Sensor::Kind::state || watch.of.kind == Sensor::Kind::coenergy;
  const bool is_known = is_of_state ? engine.has_states_within() : engine.has_ports_within();
  if (!is_known) {
    const double share = side_of(before) == 0 ? 0.0 : before / (before - after);
    return start_s + share * (end_s - start_s);
  }
  double low = start_s, high = end_s;
  for (int i = 0; i < kBisections; ++i) {
    const double middle = 0.5 * (low + high);
    if (middle <= low || middle >= high) break;
    (side_of(value_at(watch, engine, middle) - watch.level) == side ? high : low) = middle;
  }
  return high;
}

double EventWatch::value_at(const Watch& watch, StepEngine& engine, double time_s) {
  const Sensor& of = watch.of;
  if (of.kind == Sensor::Kind::effort) return engine.port_at(of.index, time_s).effort;
  if (of.kind == Sensor::Kind::flow) return engine.port_at(of.index, time_s).flow;
  const std::span<const Part> parts = engine.system().parts();
  const auto find_state = [&](int part) {
    const auto size = parts[at(part)].component->signature().state_size();
    engine.state_at(part, time_s, std::span(state_).first(at(size)));
  };
  if (of.kind == Sensor::Kind::state) {
    find_state(of.part);
    return state_[at(of.index)];
  }
  if (of.kind == Sensor::Kind::coenergy) {
    find_state(of.part);
    return coenergy(*parts[at(of.part)].component, state_.data(), of.index);
  }
  double stored_J = 0.0;
  for (int part = of.part; part <= of.part + of.index; ++part) {
    find_state(part);
    stored_J += parts[at(part)].port_hamiltonian()->storage(state_.data());
  }
  return stored_J;
}

void EventWatch::archive(StateArchive& archive) {
  archive.array(values_);
  archive.array(sides_);
  archive.array(counts_);
  archive.vector(events_);
  if (!archive.reads()) return;
  archive.expect(std::ranges::all_of(sides_, is_side), "the side of a level");
  for (const EventCount& count : counts_) {
    archive.expect_counts({count.rising, count.falling}, "the number of events");
  }
  archive.expect(events_.size() <= watches_.size(), "the number of events of a step");
  for (const Event& event : events_) {
    archive.expect(event.watch >= 0 && at(event.watch) < watches_.size(), "what an event is of");
  }
}

std::size_t EventWatch::bytes() const {
  return watches_.capacity() * sizeof(Watch) + events_.capacity() * sizeof(Event) +
         counts_.capacity() * sizeof(EventCount) + sides_.capacity() * sizeof(int) +
         (values_.capacity() + state_.capacity()) * sizeof(double);
}

}  // namespace portwave
