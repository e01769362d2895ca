#include "scenario/settings/signal_units.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/base/units.hpp"
#include "portwave/subsystems/core/port.hpp"

namespace portwave::scenario_file {
namespace {

/// The inputs that have the unit of the output, by number; empty: it does not keep any.
std::vector<std::size_t> kept_inputs(std::string_view kind, std::size_t count) {
  if (kind == "saturation" || kind == "rate_limit" || kind == "delay") return {0};
  if (kind == "selector") return {1, 2};
  std::vector<std::size_t> all;
  for (std::size_t i = 0; kind == "sum" && i < count; ++i) all.push_back(i);
  return all;
}

}  // namespace

std::string unit_of(const System& system, const Sensor& sensor) {
  switch (sensor.kind) {
    case Sensor::Kind::state:
      return system.parts()[at(sensor.part)].component->signature().states[at(sensor.index)].unit;
    case Sensor::Kind::storage:
      return "J";
    case Sensor::Kind::coenergy:
      return coenergy_unit(
          system.parts()[at(sensor.part)].component->signature().states[at(sensor.index)].unit);
    default:
      break;
  }
  const ScalarPort& scalar = system.scalar_ports()[at(sensor.index)];
  const Port& port = system.parts()[at(scalar.part)].component->signature().ports[at(scalar.port)];
  const DomainUnits own = units(port.domain);
  return std::string(sensor.kind == Sensor::Kind::effort ? own.effort : own.flow);
}

void SignalUnits::declare(const std::string& signal, const std::string& unit,
                          const std::string& where) {
  if (parse_unit(unit)) {
    known_[signal] = unit;
  } else {
    defects_.push_back(
        {where, fmt::format("the unit {} is not known. Units are products such as \"N m/rad\", "
                            "\"km/h\", \"rpm\", \"deg\" or \"bar\"",
                            in_quotes(unit))});
  }
}

void SignalUnits::measure(const std::string& signal, const std::string& unit,
                          const std::string& where, const std::string& shown) {
  if (!shown.empty()) shown_[signal] = shown;
  const auto declared = known_.find(signal);
  if (declared == known_.end()) {
    if (!unit.empty()) known_[signal] = unit;
    return;
  }
  const auto given = parse_unit(declared->second), own = parse_unit(unit);
  if (unit.empty() || !given || !own) return;
  if (!relation(*given, *own).converts()) {
    defects_.push_back({where, fmt::format("is measured in {}, and not in {}: put a gain behind it",
                                           unit, declared->second)});
  }
}

void SignalUnits::add(const std::string& signal, const std::string& kind,
                      std::vector<std::string> inputs, std::vector<std::string> places) {
  blocks_[signal] = {kind, std::move(inputs), std::move(places)};
}

void SignalUnits::drive(const std::string& signal, const std::string& unit,
                        const std::string& input, const std::string& where) {
  driven_.push_back({signal, unit, input, where});
}

std::optional<std::string> SignalUnits::unit(const std::string& signal) const {
  std::set<std::string> on_the_way;
  return unit(signal, on_the_way);
}

/// Of a loop of blocks that keep units nothing is known by itself.
std::optional<std::string> SignalUnits::unit(const std::string& signal,
                                             std::set<std::string>& on_the_way) const {
  if (const auto known = known_.find(signal); known != known_.end()) return known->second;
  const auto block = blocks_.find(signal);
  if (block == blocks_.end() || !on_the_way.insert(signal).second) return std::nullopt;
  for (const std::size_t i : kept_inputs(block->second.kind, block->second.inputs.size())) {
    if (i >= block->second.inputs.size()) continue;
    if (auto own = unit(block->second.inputs[i], on_the_way)) return own;
  }
  return std::nullopt;
}

std::string SignalUnits::shown(const std::string& signal) const {
  const auto found = shown_.find(signal);
  return in_quotes(found == shown_.end() ? signal : found->second);
}

void SignalUnits::compare(const std::string& signal, const std::string& wanted,
                          const std::string& wanted_by, const std::string& where,
                          Issues& issues) const {
  const std::optional<std::string> given = unit(signal);
  if (!given || wanted.empty()) return;
  const auto from = parse_unit(*given), to = parse_unit(wanted);
  if (!from || !to) return;  // a unit of a part of somebody's own
  const UnitRelation own = relation(*from, *to);
  if (own.converts()) return;
  std::string what =
      fmt::format("{} is in {}, and {} in {}", shown(signal), *given, wanted_by, wanted);
  what +=
      own.is_same_dimension
          ? fmt::format(": put a gain of {:.9g} between", own.factor)
          : ". A block of kind gain or expression may make one of the other, if that is meant; it "
            "has no unit unless it gives \"unit\"";
  issues.push_back({where, std::move(what)});
}

Issues SignalUnits::check() const {
  Issues issues = defects_;
  for (const auto& [name, block] : blocks_) {
    std::vector<std::size_t> alike = kept_inputs(block.kind, block.inputs.size());
    if (block.kind == "pid") alike = {0, 1};
    const auto declared = known_.find(name);
    const bool keeps = block.kind != "pid" && declared != known_.end();
    std::string first = keeps ? declared->second : std::string();
    std::string of = keeps ? "the block " + in_quotes(name) : std::string();
    for (const std::size_t i : alike) {
      if (i >= block.inputs.size() || i >= block.places.size()) continue;
      if (first.empty()) {
        first = unit(block.inputs[i]).value_or("");
        of = shown(block.inputs[i]);
      } else {
        compare(block.inputs[i], first, of, block.places[i], issues);
      }
    }
  }
  for (const Driven& own : driven_) {
    compare(own.signal, own.unit, "the input " + own.input, own.where, issues);
  }
  return issues;
}

}  // namespace portwave::scenario_file
