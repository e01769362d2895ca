#include "export/exported_model.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "portwave/subsystems/base/error.hpp"

namespace portwave::exported {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr std::array<std::string_view, 6> kKinds = {"time",     "input",    "parameter",
                                                    "quantity", "integral", "energy"};

Variable::Kind kind_named(const std::string& word) {
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (kKinds[i] == word) return static_cast<Variable::Kind>(i);
  }
  throw ConfigError("", fmt::format("model.json: there is no kind of variable \"{}\"", word));
}

/// FNV-1a.
std::uint64_t hash_of(std::string_view text, std::uint64_t hash) {
  constexpr std::uint64_t kPrime = 0x100000001b3;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
  return hash;
}

void expect_places(const ExportedModel& model) {
  const auto count = static_cast<int>(model.variables.size());
  const auto expect = [count](int place, int least) {
    if (place >= least && place < count) return;
    throw ConfigError("", "model.json: a variable is named that there is not");
  };
  for (const Variable& own : model.variables) expect(own.integral, -1);
  for (const PowerPort& own : model.ports) {
    expect(own.effort, 0);
    expect(own.flow, 0);
  }
}

}  // namespace

std::string ExportedModel::interface_text() const {
  Json out = {{"format", kFormat},
              {"made_by", "portwave " PORTWAVE_VERSION},
              {"name", name},
              {"takes_any_step", takes_any_step},
              {"step_s", step_s}};
  Json& list = out["variables"] = Json::array();
  for (const Variable& own : variables) {
    Json entry = {{"kind", kKinds[static_cast<std::size_t>(own.kind)]}, {"name", own.name}};
    if (!own.path.empty()) entry["path"] = own.path;
    if (!own.unit.empty()) entry["unit"] = own.unit;
    if (own.is_settable()) entry["start"] = own.start;
    if (own.integral >= 0) entry["integral"] = own.integral;
    if (!own.about.empty()) entry["about"] = own.about;
    list.push_back(std::move(entry));
  }
  Json& pairs = out["ports"] = Json::array();
  for (const PowerPort& own : ports) {
    pairs.push_back(
        {{"name", own.name}, {"domain", own.domain}, {"effort", own.effort}, {"flow", own.flow}});
  }
  return out.dump(1) + "\n";
}

std::string ExportedModel::token() const {
  const std::string text = interface_text();
  const std::uint64_t high = hash_of(scenario, hash_of(text, 0xcbf29ce484222325));
  const std::uint64_t low = hash_of(text, hash_of(scenario, 0x84222325cbf29ce4));
  return fmt::format("{{{:08x}-{:04x}-{:04x}-{:04x}-{:012x}}}", high >> 32, (high >> 16) & 0xffff,
                     high & 0xffff, low >> 48, low & 0xffffffffffff);
}

ExportedModel ExportedModel::read(std::string_view interface_text, std::string scenario) {
  try {
    const Json in = Json::parse(interface_text);
    if (in.at("format").get<int>() != kFormat) {
      throw ConfigError("", "model.json: it is of another version of portwave");
    }
    ExportedModel out;
    out.name = in.at("name").get<std::string>();
    out.scenario = std::move(scenario);
    out.takes_any_step = in.at("takes_any_step").get<bool>();
    out.step_s = in.at("step_s").get<double>();
    for (const Json& entry : in.at("variables")) {
      out.variables.push_back({.kind = kind_named(entry.at("kind").get<std::string>()),
                               .name = entry.at("name").get<std::string>(),
                               .path = entry.value("path", std::string()),
                               .unit = entry.value("unit", std::string()),
                               .start = entry.value("start", 0.0),
                               .integral = entry.value("integral", -1),
                               .about = entry.value("about", std::string())});
    }
    for (const Json& entry : in.at("ports")) {
      out.ports.push_back({.name = entry.at("name").get<std::string>(),
                           .domain = entry.at("domain").get<std::string>(),
                           .effort = entry.at("effort").get<int>(),
                           .flow = entry.at("flow").get<int>()});
    }
    expect_places(out);
    return out;
  } catch (const Json::exception& error) {
    throw ConfigError("", fmt::format("model.json cannot be read: {}", error.what()));
  }
}

const std::vector<EnergyName>& energy_names() {
  static const std::vector<EnergyName> names = {
      {"stored", "stored energy of all parts"},
      {"supplied", "energy supplied through inputs since the start"},
      {"dissipated", "energy dissipated since the start"},
      {"mismatch", "energy taken by coupling that had not converged"},
      {"tank", "energy that the guard holds in reserve"},
  };
  return names;
}

}  // namespace portwave::exported
