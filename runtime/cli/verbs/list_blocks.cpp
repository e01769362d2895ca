// portwave list --blocks

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/scenario/block_kinds.hpp>
#include <portwave/subsystems/base/error.hpp>
#include <portwave/subsystems/base/printable.hpp>

#include "line/commands.hpp"
#include "verbs/columns.hpp"

namespace portwave::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string_view kind_of_field(BlockField::Kind kind) {
  switch (kind) {
    case BlockField::Kind::signal:
      return "signal";
    case BlockField::Kind::signals:
      return "signals";
    case BlockField::Kind::named_signals:
      return "named signals";
    case BlockField::Kind::text:
      return "text";
    case BlockField::Kind::number:
      return "number";
    case BlockField::Kind::integer:
      return "integer";
    case BlockField::Kind::boolean:
      return "boolean";
    case BlockField::Kind::choice:
      return "choice";
    case BlockField::Kind::numbers:
      return "numbers";
    case BlockField::Kind::matrix:
      return "matrix";
    case BlockField::Kind::texts:
      return "texts";
    case BlockField::Kind::named_values:
      return "named values";
    case BlockField::Kind::pairs:
      break;
  }
  return "pairs";
}

std::string default_of_field(const BlockField& field) {
  if (field.required) return "required";
  switch (field.kind) {
    case BlockField::Kind::choice:
      return field.choices.front();
    case BlockField::Kind::boolean:
      return field.default_number != 0.0 ? "true" : "false";
    case BlockField::Kind::number:
    case BlockField::Kind::integer:
      return std::isfinite(field.default_number) ? fmt::format("{:g}", field.default_number)
                                                 : "none";
    default:
      return "-";
  }
}

Json block_json(const BlockKind& kind) {
  Json fields = Json::array();
  for (const BlockField& field : kind.fields) {
    const bool is_number =
        field.kind == BlockField::Kind::number || field.kind == BlockField::Kind::integer;
    const bool has_default = is_number && !field.required && std::isfinite(field.default_number);
    Json json = {{"name", field.name},
                 {"kind", std::string(kind_of_field(field.kind))},
                 {"unit", field.unit},
                 {"summary", field.summary},
                 {"required", field.required},
                 {"default", has_default ? Json(field.default_number) : Json(nullptr)}};
    if (!field.choices.empty()) json["choices"] = field.choices;
    fields.push_back(std::move(json));
  }
  return {{"block", kind.name}, {"summary", kind.summary}, {"keys", std::move(fields)}};
}

std::string block_text(const BlockKind& kind) {
  std::vector<std::vector<std::string>> rows = {{"key", "unit", "kind", "default", "meaning"}};
  for (const BlockField& field : kind.fields) {
    rows.push_back({field.name, field.unit.empty() ? "-" : field.unit,
                    std::string(kind_of_field(field.kind)), default_of_field(field),
                    field.summary});
  }
  return fmt::format("{}: {}\n", kind.name, kind.summary) +
         section("keys, beside \"name\", \"kind\" and \"every\"", rows);
}

const BlockKind& known_block(const std::string& name) {
  const auto found = std::ranges::find(block_kinds(), name, &BlockKind::name);
  if (found != block_kinds().end()) return *found;
  std::vector<std::string> names;
  for (const BlockKind& kind : block_kinds()) names.push_back(kind.name);
  throw ConfigError("",
                    fmt::format("there is no kind of block {}.\n  blocks: {}.{}", in_quotes(name),
                                fmt::join(names, ", "), did_you_mean(name, names)));
}

}  // namespace

int list_blocks(const ListArguments& arguments, std::ostream& out, std::ostream& err) {
  if (arguments.type) {
    const BlockKind& kind = known_block(*arguments.type);
    out << (arguments.json ? block_json(kind).dump(2) + "\n" : block_text(kind));
    return kOk;
  }
  if (arguments.json) {
    Json blocks = Json::array();
    for (const BlockKind& kind : block_kinds()) blocks.push_back(block_json(kind));
    out << blocks.dump(2) << '\n';
    return kOk;
  }
  std::vector<std::vector<std::string>> rows = {
      {"sensor", "a quantity \"part.state\", \"part.storage\", \"part.port.effort\" or \".flow\""}};
  for (const BlockKind& kind : block_kinds()) rows.push_back({kind.name, kind.summary});
  out << aligned(rows);
  err << "Beside these, all kinds of external inputs that are functions of time, sampled.\n"
         "\"portwave list --blocks KIND\" shows the keys of one.\n";
  return kOk;
}

}  // namespace portwave::cli
