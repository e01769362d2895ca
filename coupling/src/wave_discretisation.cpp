#include "portwave/coupling/wave_discretisation.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <map>
#include <string>
#include <string_view>
#include <typeindex>
#include <typeinfo>
#include <utility>

#include <fmt/format.h>

namespace portwave {
namespace {

Issues check(const System& system, double step_s, std::span<const double> impedance) {
  Issues issues;
  if (!(step_s > 0.0) || !std::isfinite(step_s)) {
    issues.push_back({"/time/step_s", "must be a finite number > 0"});
  }
  if (impedance.size() != system.scalar_ports().size()) {
    issues.push_back({"/method/impedance", "must have one value per scalar port (" +
                                               std::to_string(system.scalar_ports().size()) + ")"});
    return issues;
  }
  for (std::size_t j = 0; j < impedance.size(); ++j) {
    if (!(impedance[j] > 0.0) || !std::isfinite(impedance[j])) {
      issues.push_back({"/method/impedance", "must be finite and > 0 at port \"" +
                                                 system.port_label(static_cast<int>(j)) + "\""});
    }
  }
  return issues;
}

/// Parts by batch, in order of first appearance: those of one class and key. Parts with an empty key
/// stay alone.
std::vector<std::vector<int>> group_parts(const System& system) {
  std::vector<std::vector<int>> groups;
  std::map<std::pair<std::type_index, std::string>, std::size_t> group_of_key;
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    const Subsystem& subsystem = *system.parts()[static_cast<std::size_t>(i)].subsystem;
    const std::string key = subsystem.batch_key();
    if (key.empty()) {
      groups.push_back({i});
      continue;
    }
    const auto [it, is_new] = group_of_key.try_emplace({typeid(subsystem), key}, groups.size());
    if (is_new) groups.emplace_back();
    groups[it->second].push_back(i);
  }
  return groups;
}

}  // namespace

WaveDiscretisation::WaveDiscretisation(const System& system, double step_s,
                                       std::span<const double> impedance)
    : system_(system), step_s_(step_s) {
  throw_if_any(check(system, step_s, impedance));
  places_.resize(system.parts().size());
  wave_of_port_.resize(system.scalar_ports().size());
  for (const std::vector<int>& group : group_parts(system)) add_batch(group);

  impedance_.resize(static_cast<std::size_t>(wave_size_));
  for (std::size_t j = 0; j < impedance.size(); ++j) {
    impedance_[static_cast<std::size_t>(wave_of_port_[j])] = impedance[j];
  }
  prepare_batches();

  std::vector<Junction> junctions(system.junctions().begin(), system.junctions().end());
  for (Junction& junction : junctions) {
    for (int& wave : junction.waves) wave = wave_of_port(wave);
  }
  interconnection_ = std::make_unique<Interconnection>(std::move(junctions), impedance_);
}

void WaveDiscretisation::add_batch(const std::vector<int>& parts) {
  std::vector<const Subsystem*> subsystems;
  for (const int part : parts) {
    subsystems.push_back(system_.parts()[static_cast<std::size_t>(part)].subsystem.get());
  }
  BatchPlace place;
  place.batch = subsystems[0]->make_batch(subsystems);
  place.parts = parts;
  place.state = state_size_;
  place.wave = wave_size_;
  place.input = input_size_;
  place.energy = static_cast<int>(part_of_energy_.size());
  const StepBatch& batch = *place.batch;
  for (int lane = 0; lane < batch.lanes(); ++lane) {
    const int index = parts[static_cast<std::size_t>(lane)];
    const Part& part = system_.parts()[static_cast<std::size_t>(index)];
    PartPlace& where = places_[static_cast<std::size_t>(index)];
    where.batch = static_cast<int>(batches_.size());
    where.lane = lane;
    where.state = state_size_ + lane * batch.state_size();
    where.wave = wave_size_ + lane * batch.wave_size();
    for (int j = 0; j < batch.wave_size(); ++j) {
      wave_of_port_[static_cast<std::size_t>(system_.first_scalar_port(index) + j)] =
          where.wave + j;
    }
    for (int j = 0; j < batch.input_size(); ++j) {
      if (!part.input_is_driven[static_cast<std::size_t>(j)]) continue;
      driven_.push_back({&part.inputs[static_cast<std::size_t>(j)],
                         input_size_ + lane * batch.input_size() + j, index, j});
      place.driven = true;
    }
    part_of_energy_.push_back(index);
  }
  state_size_ += batch.lanes() * batch.state_size();
  wave_size_ += batch.lanes() * batch.wave_size();
  input_size_ += batch.lanes() * batch.input_size();
  batches_.push_back(std::move(place));
}

void WaveDiscretisation::prepare_batches() {
  Issues issues;
  for (BatchPlace& place : batches_) {
    try {
      place.batch->prepare(step_s_, impedance_.data() + place.wave);
    } catch (const ConfigError& error) {
      for (const Issue& issue : error.issues()) {
        issues.push_back(
            {"/subsystems/" + std::to_string(place.parts.front()) + issue.where, issue.what});
      }
    }
  }
  throw_if_any(std::move(issues));
}

void PhaseStatus::merge(PhaseStatus other) {
  if (!other.ok() && (ok() || other.part < part)) *this = std::move(other);
}

template <class Act>
PhaseStatus WaveDiscretisation::guarded(int batch, LaneRange lanes, Act act) {
  const BatchPlace& place = batches_[static_cast<std::size_t>(batch)];
  const auto part_of = [&](int lane) { return place.parts[static_cast<std::size_t>(lane)]; };
  try {
    const LaneStatus status = act(place);
    if (status.ok()) return {};
    return {part_of(status.lane), status.fault, {}};
  } catch (const std::exception& error) {
    return {part_of(lanes.first), StepFault::threw, error.what()};
  } catch (...) {
    return {part_of(lanes.first), StepFault::threw, "an exception that is no std::exception"};
  }
}

PhaseStatus WaveDiscretisation::freeze(int batch, LaneRange lanes, const double* x,
                                       const double* input) {
  return guarded(batch, lanes, [&](const BatchPlace& place) {
    const bool driven = input != nullptr && place.driven;
    place.batch->freeze(lanes, x + place.state, driven ? input + place.input : nullptr);
    return LaneStatus{};
  });
}

PhaseStatus WaveDiscretisation::scatter(int batch, LaneRange lanes, const double* a, double* b) {
  return guarded(batch, lanes, [&](const BatchPlace& place) {
    return place.batch->scatter(lanes, a + place.wave, b + place.wave);
  });
}

PhaseStatus WaveDiscretisation::advance(int batch, LaneRange lanes, const double* a, double* x_next,
                                        double* b, StepEnergy* energy) {
  return guarded(batch, lanes, [&](const BatchPlace& place) {
    return place.batch->advance(lanes, a + place.wave, x_next + place.state, b + place.wave,
                                energy + place.energy);
  });
}

bool WaveDiscretisation::scatter_unguarded(const double* a, double* b) {
  for (const BatchPlace& place : batches_) {
    StepBatch& batch = *place.batch;
    if (!batch.scatter({0, batch.lanes()}, a + place.wave, b + place.wave).ok()) return false;
  }
  return true;
}

PhaseStatus WaveDiscretisation::scatter_all(const double* a, double* b) {
  try {
    if (scatter_unguarded(a, b)) return {};
  } catch (...) {  // told apart below
  }
  // Scattering is pure: doing it again, guarded, finds the failing part with the lowest number.
  PhaseStatus status;
  for (int i = 0; i < static_cast<int>(batches_.size()); ++i) {
    status.merge(scatter(i, {0, batches_[static_cast<std::size_t>(i)].batch->lanes()}, a, b));
  }
  return status;
}

std::vector<double> WaveDiscretisation::initial_state() const {
  std::vector<double> x(static_cast<std::size_t>(state_size_));
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const std::vector<double>& part = system_.parts()[i].initial_state;
    std::copy(part.begin(), part.end(), x.begin() + places_[i].state);
  }
  return x;
}

PhaseStatus WaveDiscretisation::sample_inputs(double time_s, double* input) const {
  const double mid = time_s + 0.5 * step_s_;
  const DrivenInput* current = nullptr;
  const auto failed = [&](std::string_view what) {
    const Part& part = system_.parts()[static_cast<std::size_t>(current->part)];
    const auto channel = static_cast<std::size_t>(current->channel);
    return PhaseStatus{
        current->part, StepFault::threw,
        fmt::format("input \"{}\": {}", part.subsystem->signature().inputs[channel].name, what)};
  };
  try {
    for (const DrivenInput& driven : driven_) {
      current = &driven;
      input[driven.place] = (*driven.signal)(mid);
    }
  } catch (const std::exception& error) {
    return failed(error.what());
  } catch (...) {
    return failed("an exception that is no std::exception");
  }
  return {};
}

}  // namespace portwave
