// portwave check

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <portwave/subsystems/base/error.hpp>
#include <portwave/subsystems/base/name_search.hpp>
#include <portwave/subsystems/base/printable.hpp>
#include <portwave/subsystems/catalogue/catalogue.hpp>
#include <portwave/subsystems/conformance/conformance.hpp>
#include <portwave/subsystems/core/component_digest.hpp>

#include "line/commands.hpp"
#include "live/status_line.hpp"
#include "verbs/columns.hpp"

namespace portwave::cli {
namespace {

using Json = nlohmann::ordered_json;

/// A part to check, and how.
struct Checked {
  std::string label;  ///< "pendulum (port_hamiltonian), and 3 equal ones"
  const Component* component = nullptr;
  ConformanceOptions options;
  std::vector<LawReport> reports = {};

  bool holds() const {
    return std::ranges::all_of(reports, [](const LawReport& own) { return own.holds; });
  }
};

/// Waves that move about as much energy as usual states have.
double usual_waves(const Subsystem& part) {
  const std::vector<double> centre = part.default_state(), size = part.typical_state();
  std::vector<double> x = centre;
  double most_J = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = centre[i] + size[i];
    const double own_J = std::abs(part.storage(x.data()) - part.storage(centre.data()));
    if (std::isfinite(own_J)) most_J = std::max(most_J, own_J);
    x[i] = centre[i];
  }
  return most_J > 0.0 ? std::sqrt(most_J) : 1.0;
}

ConformanceOptions options_for(const Component& component, std::vector<double> steps_s,
                               const CheckArguments& arguments) {
  ConformanceOptions options;
  options.steps_s = std::move(steps_s);
  if (arguments.trials) options.trials = *arguments.trials;
  if (arguments.seed) options.seed = static_cast<std::uint64_t>(*arguments.seed);
  const Subsystem* const physics = component.port_hamiltonian();
  if (physics != nullptr) options.wave_scale = usual_waves(*physics);
  return options;
}

std::vector<LawReport> laws_of(const Checked& own) {
  std::vector<LawReport> reports;
  if (const Subsystem* const physics = own.component->port_hamiltonian()) {
    reports = check_all(*physics, own.options);
  }
  if (own.component->capabilities().repeatable) {
    reports.push_back(check_rollback(*own.component, own.options));
  }
  return reports;
}

void check_each(std::span<Checked> parts, StatusLine& status) {
  for (Checked& own : parts) {
    status.show({"checking " + own.label});
    try {
      own.reports = laws_of(own);
    } catch (const std::exception& error) {
      own.reports.push_back({"callbacks", false, HUGE_VAL, error.what()});
    }
  }
  status.finish();
}

std::string worst_text(const LawReport& own) {
  if (own.detail.empty()) return "not tested";
  return std::isfinite(own.worst) ? fmt::format("{:.2g}", own.worst) : "no bound";
}

std::string text_of(const Checked& own) {
  std::vector<std::vector<std::string>> rows = {{"law", "", "worst, in allowed defects"}};
  for (const LawReport& law : own.reports) {
    const std::string verdict = law.holds ? (law.detail.empty() ? "-" : "holds") : "BROKEN";
    rows.push_back({law.law, verdict, worst_text(law)});
  }
  std::string text = section(own.label, rows);
  for (const LawReport& law : own.reports) {
    if (!law.holds) text += fmt::format("  {}: {}\n", law.law, law.detail);
  }
  if (own.reports.empty())
    text += "  opaque, and its steps do not repeat: there is no law for it\n";
  return text.substr(text.find_first_not_of('\n'));
}

Json json_of(const Checked& own) {
  Json laws = Json::array();
  for (const LawReport& law : own.reports) {
    Json worst = std::isfinite(law.worst) ? Json(law.worst) : Json(nullptr);
    laws.push_back({{"law", law.law},
                    {"holds", law.holds},
                    {"tested", !law.detail.empty()},
                    {"worst", std::move(worst)},
                    {"detail", law.detail}});
  }
  return {{"part", own.label}, {"holds", own.holds()}, {"laws", std::move(laws)}};
}

int tell(std::span<const Checked> parts, bool json, std::ostream& out, std::ostream& err) {
  if (json) {
    Json all = Json::array();
    for (const Checked& own : parts) all.push_back(json_of(own));
    out << all.dump(2) << '\n';
  } else {
    for (std::size_t i = 0; i < parts.size(); ++i) out << (i > 0 ? "\n" : "") << text_of(parts[i]);
  }
  const auto broken = std::ranges::count_if(parts, [](const Checked& own) { return !own.holds(); });
  if (broken == 0) {
    err << "Every law that was tested holds.\n";
    return kOk;
  }
  err << fmt::format("{} of {} part{} break{} a law.\n", broken, parts.size(),
                     parts.size() == 1 ? "" : "s", broken == 1 ? "s" : "");
  return kViolated;
}

bool is_file(const std::string& text) {
  std::error_code ignored;
  return text.ends_with(".json") || text.find('/') != std::string::npos ||
         std::filesystem::is_regular_file(text, ignored);
}

int check_type(const CheckArguments& arguments, std::ostream& out, std::ostream& err) {
  load_plugins(arguments.scenario.plugins);
  const std::string& name = arguments.scenario.file;
  const PartType* const type = find_part_type(name);
  Issues issues;
  if (type == nullptr) {
    std::vector<std::string> names;
    for (const PartType& own : catalogue()) names.push_back(own.name);
    issues.push_back({"", fmt::format("there is no type of part {}, nor a file of that name.{}",
                                      in_quotes(name), did_you_mean(name, names))});
  }
  if (!arguments.parts.empty()) issues.push_back({"", "--part takes a part of a scenario file"});
  if (!arguments.scenario.overrides.empty()) issues.push_back({"", "--set takes a scenario file"});
  throw_if_any(std::move(issues));
  const std::unique_ptr<Component> example = make_part(type->name, type->example);
  std::vector<double> steps_s = arguments.steps_s;
  if (steps_s.empty()) steps_s = {1e-6, 1e-4, 1e-2, 1e-1};
  Checked own{fmt::format("{}, with the parameters of its example", type->name), example.get(),
              options_for(*example, std::move(steps_s), arguments)};
  StatusLine status(err, stderr_is_terminal());
  check_each(std::span(&own, 1), status);
  return tell(std::span(&own, 1), arguments.json, out, err);
}

/// The named parts, or one of each kind of equal ones.
std::vector<Checked> parts_of(const Scenario& scenario, const CheckArguments& arguments) {
  const std::span<const Part> parts = scenario.system.parts();
  std::vector<std::string> names;
  for (const Part& part : parts) names.push_back(part.name);
  NameSearch search(names);
  Issues issues;
  std::set<int> asked;
  for (const std::string& name : arguments.parts) {
    const int part = scenario.system.find_part(name);
    if (part >= 0) {
      asked.insert(part);
    } else {
      issues.push_back({"", fmt::format("--part: there is no part {}.{}", in_quotes(name),
                                        search.did_you_mean(name))});
    }
  }
  if (!issues.empty()) throw ScenarioError(arguments.scenario.file, std::move(issues));

  const double h = scenario.options.step_s;
  std::vector<double> steps_s = arguments.steps_s;
  if (steps_s.empty()) steps_s = {1e-3 * h, h / 30.0, h};
  // What an opaque part does, no digest sees: each is a kind of its own.
  using Kind = std::tuple<std::string, std::uint64_t, int>;
  std::map<Kind, std::vector<int>> kinds;
  for (int i = 0; i < static_cast<int>(parts.size()); ++i) {
    const Component& own = *parts[static_cast<std::size_t>(i)].component;
    if (asked.empty() || asked.contains(i)) {
      const int alone = own.port_hamiltonian() == nullptr ? i : -1;
      kinds[{own.signature().type, component_digest(own), alone}].push_back(i);
    }
  }
  std::map<int, Checked> in_order;
  for (const auto& [kind, members] : kinds) {
    const Part& first = parts[static_cast<std::size_t>(members.front())];
    std::string label = fmt::format("{} ({})", first.name, std::get<0>(kind));
    if (members.size() > 1) label += fmt::format(", and {} equal to it", members.size() - 1);
    in_order[members.front()] = {std::move(label), first.component.get(),
                                 options_for(*first.component, steps_s, arguments)};
  }
  std::vector<Checked> out;
  for (auto& [part, own] : in_order) out.push_back(std::move(own));
  return out;
}

}  // namespace

int run_command(const CheckArguments& arguments, std::ostream& out, std::ostream& err) {
  if (!is_file(arguments.scenario.file)) return check_type(arguments, out, err);
  StatusLine status(err, stderr_is_terminal());
  const Scenario scenario = load(arguments.scenario, status);
  std::vector<Checked> parts = parts_of(scenario, arguments);
  check_each(parts, status);
  return tell(parts, arguments.json, out, err);
}

}  // namespace portwave::cli
