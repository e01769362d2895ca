#include "scenario/templates/expansion.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/name_search.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/core/component.hpp"
#include "scenario/reader/limits.hpp"
#include "scenario/templates/assemblies.hpp"
#include "scenario/templates/template_filler.hpp"
#include "scenario/templates/template_schema.hpp"

namespace portwave::scenario_file {
namespace {

constexpr std::size_t kCharactersOfName = 8;  // of a part, that weigh as much as a value

}  // namespace

/// Writes out every use of an assembly, every element of an array, every coupling of an index.
class Expander {
 public:
  Expander(const Json& root, Defects& defects)
      : root_(root, defects),
        defects_(defects),
        before_(defects.count()),
        filler_(defects),
        assemblies_(root_),
        ports_(filler_) {}

  ExpandedDocument expanded() && {
    // A small file may stand for so much that writing it out takes seconds, and then is refused.
    constexpr auto kMost = static_cast<double>(TemplateFiller::kMostValues);
    if (const auto where = entry_of_too_many_values(root_.json(), assemblies_, kMost)) {
      filler_.give_up(*where);
      out_.is_too_large = true;
      return std::move(out_);
    }
    read_parameters();
    const Json* const parts = member_of(root_.json(), "subsystems");
    if (parts != nullptr && parts->is_array()) {
      const Node node = root_.member("subsystems", *parts);
      expand_parts(node, "", top_);
    }
    const Json* const joints = member_of(root_.json(), "couplings");
    if (joints != nullptr && joints->is_array()) {
      const Node node = root_.member("couplings", *joints);
      expand_couplings(node, "", top_);
    }
    out_.root = Json::object();
    auto& members = out_.root.get_ref<Json::object_t&>();
    for (const auto& [key, value] : root_.json().get_ref<const Json::object_t&>()) {
      if (key == "assemblies" || key == "parameters") continue;
      const Node node = root_.member(key, value);
      if (key == "subsystems" && value.is_array()) {
        members.emplace_back(key, std::move(parts_));
      } else if (key == "couplings" && value.is_array()) {
        members.emplace_back(key, std::move(couplings_));
      } else if (key == "signals" && value.is_object()) {
        members.emplace_back(key, expanded_signals(node));
      } else if (key == "outputs" || key == "method") {
        members.emplace_back(key, ports_.with_inner_names(node, top_));
      } else {
        members.emplace_back(key, value);
      }
    }
    if (joints == nullptr && !couplings_.empty()) {
      members.emplace_back("couplings", std::move(couplings_));
    }
    note_unused();
    out_.is_too_large = filler_.is_exhausted();
    out_.values = filler_.spent();
    out_.is_whole = defects_.count() == before_;
    return std::move(out_);
  }

 private:
  /// The scope of an assembly in use, and the values that are its own.
  struct Inside {
    Scope scope = Scope::of_assembly();
    std::deque<Json> computed;
    bool is_sound = true;
  };

  void note_unused() {
    for (const std::string& name : assemblies_.names()) {
      if (used_.contains(name)) continue;
      out_.notes.push_back(
          {"/assemblies/" + escape_key(name), "is not used, so its contents were not checked"});
    }
  }

  /// Those of the scenario itself.
  void read_parameters() {
    const Json* const given = member_of(root_.json(), "parameters");
    if (given == nullptr) return;
    top_ = Scope::of_assembly();
    const Node list = root_.member("parameters", *given);
    for (const AssemblyList::Parameter& parameter : AssemblyList::read_parameters(list)) {
      if (parameter.otherwise == nullptr) {
        filler_.fail("/parameters/" + std::string(parameter.name), "must have a value, got null");
        continue;
      }
      const Node node = list.member(parameter.name, *parameter.otherwise);
      add_default(parameter, node, top_, computed_);
    }
  }

  /// A default may be computed of parameters before it. `computed` keeps what is.
  void add_default(const AssemblyList::Parameter& parameter, const Node& node, Scope& scope,
                   std::deque<Json>& computed) {
    if (parameter.is_computed) computed.push_back(filler_.fill(node, scope));
    scope.add(parameter.name, parameter.is_computed ? computed.back() : *parameter.otherwise);
  }

  // Parts and uses

  /// Of an entry that is wrong nobody knows what it names.
  std::optional<std::int64_t> count_of(const Node& entry, const Scope& scope) {
    const auto count = count_of_entry(filler_, entry, scope);
    if (!count) ports_.forgive_unknown_names();
    return count;
  }

  void expand_parts(const Node& parts, const std::string& prefix, const Scope& scope) {
    for (std::size_t k = 0; k < parts.size() && !filler_.is_exhausted(); ++k) {
      const Node entry = parts.at(k);
      if (!entry.json().is_object()) {  // left to the reader
        out_.subsystems_.push_back({entry.where(), ""});
        parts_.push_back(entry.json());
        continue;
      }
      filler_.set_use(prefix.empty() ? "" : prefix.substr(0, prefix.size() - 1));
      const auto count = count_of(entry, scope);
      if (!count) continue;
      if (*count < 0) {
        expand_part(entry, prefix, "", scope);
        continue;
      }
      for (std::int64_t i = 0; i < *count && !filler_.is_exhausted(); ++i) {
        const Json index = i;
        expand_part(entry, prefix, fmt::format("_{}", i), Scope::of_index(scope, "i", index));
      }
    }
  }

  void expand_part(const Node& given, const std::string& prefix, const std::string& suffix,
                   const Scope& scope) {
    const Json* const name_given = member_of(given.json(), "name");
    std::string name;
    if (name_given != nullptr) {
      const Node node = given.member("name", *name_given);
      const Json filled = filler_.fill(node, scope);
      if (filled.is_string() && !filled.get_ref<const std::string&>().empty()) {
        name = prefix + filled.get<std::string>() + suffix;
        filler_.charge(node, name.size() / kCharactersOfName);
      }
    }
    const bool is_one_of_many = !prefix.empty() || !suffix.empty();
    if (is_one_of_many) filler_.set_use(name);
    Json entry = filler_.fill(given, scope);
    if (filler_.is_exhausted()) return;
    entry.erase("count");
    const bool is_use = member_of(entry, "assembly") != nullptr;
    if (is_one_of_many || is_use || scope.is_template()) {
      if (name.empty()) return fail_name(given, name_given);
      *member_of(entry, "name") = name;
    }
    const std::string place = given.where();
    const std::size_t number = is_use ? AssemblyPorts::kUse : out_.subsystems_.size();
    if (!name.empty()) {
      if (const auto owner = ports_.add_owner(name, number)) return fail_taken(given, name, *owner);
    }
    if (is_use) return expand_use(given, std::move(entry), name);
    out_.subsystems_.push_back({place, is_one_of_many ? name : ""});
    parts_.push_back(std::move(entry));
  }

  void fail_name(const Node& given, const Json* name) {
    ports_.forgive_unknown_names();
    if (name == nullptr) return filler_.fail(given.where() + "/name", "is required");
    const Node node = given.member("name", *name);
    filler_.fail(node, name->is_string()
                           ? "must not be empty"
                           : fmt::format("must be a string, got {}", describe(*name)));
  }

  void fail_taken(const Node& given, const std::string& name, std::size_t owner) {
    ports_.forgive_unknown_names();
    filler_.fail(given.where() + "/name",
                 fmt::format("the name {} is already taken by {}", in_quotes(name),
                             owner == AssemblyPorts::kUse ? "an assembly in use"
                                                          : out_.subsystems_[owner].where));
  }

  void expand_use(const Node& given, Json entry, const std::string& name) {
    fail_unknown_keys(given);
    const Json* const name_given = member_of(given.json(), "name");
    if (!is_plain_name(name)) {
      const Node node = given.member("name", *name_given);
      ports_.forgive_unknown_names();
      return filler_.fail(node, fmt::format("must not be empty nor contain dots, brackets, blanks, "
                                            "commas or quotes, got {}",
                                            in_quotes(name)));
    }
    const AssemblyList::Assembly* const assembly = assembly_of(given, entry);
    if (assembly == nullptr || !filler_.charge(given, AssemblyList::kWeightOfUse)) {
      ports_.forgive_unknown_names();
      return;
    }
    open_.push_back(assembly->name);
    const Node all = root_.member("assemblies", *member_of(root_.json(), "assemblies"));
    const Node own = all.member(assembly->name, *assembly->json);
    const Inside inside = inside_of(*assembly, own, given, entry);
    if (!inside.is_sound) {
      ports_.forgive_unknown_names();
    } else {
      const std::string prefix = name + "/";
      if (const auto parts = list_in(own, "subsystems")) expand_parts(*parts, prefix, inside.scope);
      if (const auto joints = list_in(own, "couplings")) {
        expand_couplings(*joints, prefix, inside.scope);
      }
      filler_.set_use(name);
      expose_ports(own, name, inside.scope);
    }
    open_.pop_back();
  }

  void fail_unknown_keys(const Node& given) {
    static const std::vector<std::string> keys(use_keys().names().begin(),
                                               use_keys().names().end());
    for (const auto& [key, value] : given.json().get_ref<const Json::object_t&>()) {
      if (std::ranges::find(keys, key) != keys.end()) continue;
      const Node node = given.member(key, value);
      filler_.fail(node, fmt::format("unknown key {} of an assembly in use.\nkeys: {}.{}",
                                     in_quotes(key), list_of(keys), did_you_mean(key, keys)));
    }
  }

  /// Null, and noted, when there is none that may be used here.
  const AssemblyList::Assembly* assembly_of(const Node& given, const Json& entry) {
    const Json& of = *member_of(entry, "assembly");
    const Node node = given.member("assembly", *member_of(given.json(), "assembly"));
    if (!of.is_string()) {
      filler_.fail(node, fmt::format("must be the name of an assembly, got {}", describe(of)));
      return nullptr;
    }
    const auto& name = of.get_ref<const std::string&>();
    const AssemblyList::Assembly* const found = assemblies_.find(name);
    if (found == nullptr) {
      if (defects_.has(node.where())) return nullptr;
      const std::vector<std::string> known = assemblies_.names();
      filler_.fail(node, known.empty() ? fmt::format("there is no assembly {}: the file has no "
                                                     "\"assemblies\"",
                                                     in_quotes(name))
                                       : fmt::format("there is no assembly {}.\nassemblies: {}.{}",
                                                     in_quotes(name), list_of(known),
                                                     did_you_mean(name, known)));
      return nullptr;
    }
    if (std::ranges::find(open_, found->name) != open_.end()) {
      filler_.fail(node, fmt::format("the assembly {} contains itself: {} -> {}", in_quotes(name),
                                     fmt::join(open_, " -> "), printable(name)));
      return nullptr;
    }
    if (open_.size() >= AssemblyList::kMostLevels) {
      filler_.fail(node, fmt::format("more than {} assemblies within one another",
                                     AssemblyList::kMostLevels));
      return nullptr;
    }
    used_.insert(found->name);
    return found->json == nullptr ? nullptr : found;
  }

  static std::optional<Node> list_in(const Node& assembly, std::string_view key) {
    const Json* const list = member_of(assembly.json(), key);
    if (list == nullptr || !list->is_array()) return std::nullopt;
    return assembly.member(key, *list);
  }

  /// The parameters of an assembly in use: what the use says, and the defaults, which see those
  /// before them.
  Inside inside_of(const AssemblyList::Assembly& assembly, const Node& own, const Node& given,
                   const Json& entry) {
    Inside inside;
    static const Json none = Json::object();
    const Json* said = member_of(entry, "parameters");
    if (said != nullptr && !said->is_object()) {
      filler_.fail(given.where() + "/parameters",
                   fmt::format("must be an object of parameters, got {}", describe(*said)));
      inside.is_sound = false;
    }
    if (said == nullptr || !said->is_object()) said = &none;
    std::unordered_map<std::string_view, const Json*> values;
    for (const auto& [name, value] : said->get_ref<const Json::object_t&>()) {
      values.emplace(name, &value);
    }
    for (const AssemblyList::Parameter& parameter : assembly.parameters) {
      const auto found = values.find(parameter.name);
      const bool is_said = found != values.end() && !found->second->is_null();
      if (is_said) {
        inside.scope.add(parameter.name, *found->second);
      } else if (parameter.otherwise == nullptr) {
        inside.is_sound = false;
        filler_.fail(given.where() + "/parameters/" + std::string(parameter.name),
                     fmt::format("is required: the assembly {} has no default for it",
                                 in_quotes(assembly.name)));
      } else {
        const Node list = own.member("parameters", *member_of(own.json(), "parameters"));
        const Node node = list.member(parameter.name, *parameter.otherwise);
        add_default(parameter, node, inside.scope, inside.computed);
      }
      if (found != values.end()) values.erase(found);
    }
    for (const auto& [name, value] : values) fail_parameter(assembly, given, name);
    inside.is_sound = inside.is_sound && values.empty();
    return inside;
  }

  void fail_parameter(const AssemblyList::Assembly& assembly, const Node& given,
                      std::string_view name) {
    std::vector<std::string> known;
    for (const AssemblyList::Parameter& each : assembly.parameters) known.emplace_back(each.name);
    filler_.fail(
        given.where() + "/parameters/" + escape_key(name),
        fmt::format(
            "the assembly {} has no parameter {}.{}{}", in_quotes(assembly.name), in_quotes(name),
            known.empty() ? std::string() : fmt::format("\nparameters: {}.", list_of(known)),
            did_you_mean(name, known)));
  }

  void expose_ports(const Node& own, const std::string& name, const Scope& scope) {
    const Json* const ports = member_of(own.json(), "ports");
    if (ports == nullptr || !ports->is_object()) return;
    const Node list = own.member("ports", *ports);
    for (const auto& [port, path] : ports->get_ref<const Json::object_t&>()) {
      if (!path.is_string()) continue;
      const Node node = list.member(port, path);
      const Json inside = filler_.fill(node, scope);
      if (!inside.is_string()) continue;
      ports_.expose(node, name, port, inside.get<std::string>());
    }
  }

  // Couplings

  void expand_couplings(const Node& joints, const std::string& prefix, const Scope& scope) {
    for (std::size_t k = 0; k < joints.size() && !filler_.is_exhausted(); ++k) {
      const Node entry = joints.at(k);
      filler_.set_use(prefix.empty() ? "" : prefix.substr(0, prefix.size() - 1));
      const Json* const loop = member_of(entry.json(), "for");
      if (loop == nullptr) {
        add_coupling(entry, prefix, scope, !prefix.empty());
        continue;
      }
      const Node ranges = entry.member("for", *loop);
      if (check_indices(filler_, ranges)) repeat_coupling(entry, prefix, scope, ranges, 0);
    }
  }

  /// One for every value of the indices from number `level` on; a range may use those before it.
  void repeat_coupling(const Node& entry, const std::string& prefix, const Scope& scope,
                       const Node& ranges, std::size_t level) {
    if (level == ranges.size()) return add_coupling(entry, prefix, scope, true);
    const auto& [name, given] =
        ranges.json().get_ref<const Json::object_t&>().begin()[static_cast<std::ptrdiff_t>(level)];
    const Node node = ranges.member(name, given);
    const auto range = index_range(filler_, node, scope);
    if (!range) return;
    for (std::int64_t i = range->first; i <= range->second && filler_.charge(node, 1); ++i) {
      const Json index = i;
      repeat_coupling(entry, prefix, Scope::of_index(scope, name, index), ranges, level + 1);
    }
  }

  void add_coupling(const Node& given, const std::string& prefix, const Scope& scope,
                    bool is_one_of_many) {
    Json entry = filler_.fill(given, scope);
    if (filler_.is_exhausted()) return;
    std::string first;
    if (entry.is_object()) {
      entry.erase("for");
      if (Json* const ports = member_of(entry, "ports"); ports != nullptr && ports->is_array()) {
        first = resolve_ports(given, prefix, *ports);
      }
    }
    out_.couplings_.push_back({given.where(), is_one_of_many ? first : std::string()});
    couplings_.push_back(std::move(entry));
  }

  /// Returns the first port.
  std::string resolve_ports(const Node& given, const std::string& prefix, Json& ports) {
    std::string first;
    const Json* const written = member_of(given.json(), "ports");
    for (std::size_t i = 0; i < ports.size(); ++i) {
      if (!ports[i].is_string()) continue;
      const Node list = given.member("ports", *written);
      const Node node = list.json().is_array() && i < list.size() ? list.at(i) : list;
      ports[i] = ports_.resolved(node, prefix + ports[i].get<std::string>());
      if (first.empty()) first = ports[i].get<std::string>();
    }
    return first;
  }

  // Signals

  Json expanded_signals(const Node& node) {
    Json out = Json::object();
    auto& members = out.get_ref<Json::object_t&>();
    for (const auto& [key, value] : node.json().get_ref<const Json::object_t&>()) {
      const Node child = node.member(key, value);
      const bool is_blocks = key == "blocks" && value.is_array();
      members.emplace_back(key, is_blocks ? expanded_blocks(child) : value);
    }
    return out;
  }

  Json expanded_blocks(const Node& blocks) {
    Json all = Json::array();
    for (std::size_t k = 0; k < blocks.size() && !filler_.is_exhausted(); ++k) {
      const Node entry = blocks.at(k);
      filler_.set_use("");
      const auto count = count_of(entry, top_);
      if (!count) continue;
      if (*count < 0) {
        out_.blocks_.push_back({entry.where(), ""});
        all.push_back(filler_.fill(entry, top_));
        ports_.rename_quantities(entry, all.back());
        continue;
      }
      for (std::int64_t i = 0; i < *count && !filler_.is_exhausted(); ++i) {
        expand_block(entry, i, all);
      }
    }
    return all;
  }

  void expand_block(const Node& entry, std::int64_t number, Json& all) {
    const Json index = number;
    const Scope scope = Scope::of_index(top_, "i", index);
    const Json* const given = member_of(entry.json(), "name");
    if (given == nullptr) return fail_name(entry, given);
    const Node node = entry.member("name", *given);
    const Json filled = filler_.fill(node, scope);
    if (!filled.is_string() || filled.get_ref<const std::string&>().empty()) {
      return fail_name(entry, given);
    }
    const std::string name = filled.get<std::string>() + fmt::format("_{}", number);
    filler_.set_use(name);
    Json block = filler_.fill(entry, scope);
    if (filler_.is_exhausted()) return;
    block.erase("count");
    *member_of(block, "name") = name;
    ports_.rename_quantities(entry, block);
    out_.blocks_.push_back({entry.where(), name});
    all.push_back(std::move(block));
  }

  const Node root_;
  Defects& defects_;
  const std::size_t before_;
  TemplateFiller filler_;
  ExpandedDocument out_;
  Json parts_ = Json::array();
  Json couplings_ = Json::array();
  AssemblyList assemblies_;
  AssemblyPorts ports_;
  Scope top_;                           ///< of the scenario itself
  std::deque<Json> computed_;           ///< values in it
  std::vector<std::string_view> open_;  ///< assemblies that are being written out
  std::unordered_set<std::string_view> used_;
};

namespace {

bool has_key(const Json& root, std::string_view list, std::string_view key) {
  const Json* const entries = member_of(root, list);
  return entries != nullptr && entries->is_array() &&
         std::ranges::any_of(*entries,
                             [key](const Json& entry) { return member_of(entry, key) != nullptr; });
}

bool has_expression(const Json& root, std::string_view key) {
  const Json* const value = member_of(root, key);
  return value != nullptr && TemplateFiller::has_expression(*value);
}

}  // namespace

bool has_assemblies(const Json& root) {
  if (!root.is_object()) return false;
  if (member_of(root, "assemblies") != nullptr || member_of(root, "parameters") != nullptr ||
      has_key(root, "subsystems", "count") || has_key(root, "subsystems", "assembly") ||
      has_key(root, "couplings", "for")) {
    return true;
  }
  const Json* const signals = member_of(root, "signals");
  return (signals != nullptr && has_key(*signals, "blocks", "count")) ||
         has_expression(root, "subsystems") || has_expression(root, "couplings") ||
         has_expression(root, "signals");
}

ExpandedDocument expand_assemblies(const Json& root, Defects& defects) {
  return Expander(root, defects).expanded();
}

std::optional<Issue> ExpandedDocument::place(Issue issue) {
  const std::pair<std::string_view, const std::vector<Source>*> lists[] = {
      {"/subsystems/", &subsystems_}, {"/couplings/", &couplings_}, {"/signals/blocks/", &blocks_}};
  for (const auto& [list, sources] : lists) {
    if (!issue.where.starts_with(list)) continue;
    std::size_t number = 0;
    const char* const begin = issue.where.data() + list.size();
    const auto parsed = std::from_chars(begin, issue.where.data() + issue.where.size(), number);
    if (parsed.ec != std::errc{} || number >= sources->size()) break;
    const Source& source = (*sources)[number];
    issue.where = source.where + std::string(parsed.ptr);
    const auto [first, is_new] = told_.try_emplace(issue.where, number);
    if (!source.use.empty() && first->second != number) return std::nullopt;
    issue.what = with_use(std::move(issue.what), source.use);
    break;
  }
  return issue;
}

}  // namespace portwave::scenario_file
