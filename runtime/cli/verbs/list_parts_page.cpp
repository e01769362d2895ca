// portwave list --markdown: the reference page of all types of parts, and the drawing of ports.

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/scenario/catalogue_json.hpp>
#include <portwave/subsystems/catalogue/catalogue.hpp>

#include "verbs/list_parts.hpp"

namespace portwave::cli {
namespace {

/// Titles of the groups, in the order of the page.
constexpr std::pair<std::string_view, std::string_view> kGroupTitles[] = {
    {"translation", "Translation"}, {"rotation", "Rotation"},       {"electrical", "Electrical"},
    {"hydraulic", "Hydraulic"},     {"transducers", "Transducers"}, {"sources", "Sources"},
    {"general", "General"},
};

std::string title_of(std::string_view group) {
  for (const auto& [name, title] : kGroupTitles) {
    if (name == group) return std::string(title);
  }
  return std::string(group);
}

std::string with_unit(std::string_view symbol, std::string_view unit) {
  return unit.empty() ? std::string(symbol) : fmt::format("{} [{}]", symbol, unit);
}

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(std::string text, std::size_t width) {
  const std::size_t own = columns_of(text);
  return own < width ? text + std::string(width - own, ' ') : text;
}

/// Text of a table cell, in which no bar ends the cell.
std::string table_cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out.empty() ? "–" : out;
}

std::string parameter_table(const PartType& type) {
  if (type.parameters.empty()) return {};
  std::string text = "| parameter | unit | default | range | meaning |\n|---|---|---|---|---|\n";
  for (const ParameterInfo& info : type.parameters) {
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", info.name, table_cell(info.unit),
                        table_cell(parameter_default(info)), table_cell(parameter_range(info)),
                        table_cell(info.summary));
  }
  return text + "\n";
}

template <class Named>
std::string named_line(std::string_view what, const std::vector<Named>& things) {
  if (things.empty()) return {};
  std::vector<std::string> names;
  constexpr std::size_t kShown = 12;
  for (std::size_t i = 0; i < std::min(things.size(), kShown); ++i) {
    names.push_back(things[i].unit.empty()
                        ? fmt::format("`{}`", things[i].name)
                        : fmt::format("`{}` [{}]", things[i].name, things[i].unit));
  }
  return fmt::format("{}: {}{}  \n", what, fmt::join(names, ", "),
                     things.size() > kShown ? ", …" : "");
}

}  // namespace

std::string port_drawing(const std::string& name, const Signature& signature) {
  struct Line {
    std::string port, in, out;
  };
  std::vector<Line> lines;
  for (const Port& port : signature.ports) {
    const DomainUnits unit = units(port.domain);
    const std::string effort = with_unit("e", unit.effort), flow = with_unit("f", unit.flow);
    const bool effort_in = port.causality == Causality::effort_in;
    const std::string width = port.dimension == 1 ? "" : fmt::format(" ×{}", port.dimension);
    lines.push_back({port.name + width, effort_in ? effort : flow, effort_in ? flow : effort});
  }
  for (const ExternalInput& input : signature.inputs) {
    lines.push_back({input.name, with_unit("input", input.unit), ""});
  }
  std::size_t in_width = 0, out_width = 0, box = columns_of(name);
  for (const Line& line : lines) {
    in_width = std::max(in_width, columns_of(line.in));
    out_width = std::max(out_width, columns_of(line.out));
    box = std::max(box, columns_of(line.port));
  }
  const std::string rule(box + 2, '-');
  const std::string margin(in_width + 5, ' ');
  std::string text = fmt::format("{}+{}+\n{}| {} |\n{}+{}+\n", margin, rule, margin,
                                 padded(name, box), margin, rule);
  for (const Line& line : lines) {
    text += fmt::format("{} --> | {} |", padded(line.in, in_width), padded(line.port, box));
    text += line.out.empty() ? "\n" : fmt::format(" --> {}\n", line.out);
  }
  return text + fmt::format("{}+{}+\n", margin, rule);
}

std::string example_text(const PartType& type) {
  nlohmann::ordered_json example = {{"name", "part"}, {"type", type.name}};
  if (!type.example.empty()) example["parameters"] = parameters_json(type.example);
  return example.dump();
}

std::string part_section(const PartType& type) {
  const std::unique_ptr<Component> part = make_part(type.name, type.example);
  const Signature& signature = part->signature();
  std::string text =
      fmt::format("### {}\n\n{}\n\n```text\n{}\n```\n\n", type.name, type.summary, type.equations);
  text += parameter_table(type);
  const std::string lists =
      named_line("States", signature.states) + named_line("Inputs", signature.inputs);
  if (!lists.empty()) text += lists + "\n";
  text += fmt::format("```text\n{}```\n\n", port_drawing(type.name, signature));
  return text + fmt::format("```json\n{}\n```\n\n", example_text(type));
}

std::string parts_page() {
  std::string text =
      "# Types of parts\n\n"
      "<!-- generated: portwave list --markdown -->\n\n"
      "All types that `portwave list` shows, with their equations. e and f are effort and flow of "
      "a\n"
      "port; flows count into the part. In a drawing the part takes what points at it and gives "
      "what\n"
      "points away: a port that takes an effort is `effort_in`, one that takes a flow `flow_in`. "
      "Which\n"
      "coupling joins which ports is in the [modelling guide](../modelling-guide.md).\n\n"
      "`allow_active` lifts the bounds of dampers and resistances, for parts that may create "
      "energy.\n"
      "Each example goes into \"subsystems\" as it stands.\n\n";
  std::vector<std::string> groups;
  for (const auto& [name, title] : kGroupTitles) groups.emplace_back(name);
  for (const PartType& type : catalogue()) {
    if (std::ranges::find(groups, group_of(type)) == groups.end()) {
      groups.emplace_back(group_of(type));
    }
  }
  for (const std::string& group : groups) {
    std::string parts;
    for (const PartType& type : catalogue()) {
      if (group_of(type) == group) parts += part_section(type);
    }
    if (!parts.empty()) text += fmt::format("## {}\n\n{}", title_of(group), parts);
  }
  text.erase(text.find_last_not_of('\n') + 1);
  return text + "\n";
}

}  // namespace portwave::cli
