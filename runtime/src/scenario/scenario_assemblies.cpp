#include "scenario/scenario_assemblies.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/name_search.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/core/component.hpp"
#include "scenario/scenario_limits.hpp"
#include "signals/expression.hpp"

namespace portwave::scenario_file {
namespace {

constexpr std::int64_t kMostExpanded = 10'000'000;
constexpr int kMostLevels = 32;

/// What names stand for within an assembly, an array or an indexed coupling.
class Scope {
 public:
  void set(const std::string& name, Json value) {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end()) {
      names_.push_back(name);
      values_.push_back(std::move(value));
    } else {
      values_[static_cast<std::size_t>(found - names_.begin())] = std::move(value);
    }
  }
  const Json* find(std::string_view name) const {
    const auto found = std::ranges::find(names_, name);
    return found == names_.end() ? nullptr
                                 : &values_[static_cast<std::size_t>(found - names_.begin())];
  }
  const std::vector<std::string>& names() const { return names_; }
  bool empty() const { return names_.empty(); }

  /// Errors: ConfigError.
  double evaluate(const std::string& text) const {
    std::vector<std::string> names;
    std::vector<double> values;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (!values_[i].is_number()) continue;
      names.push_back(names_[i]);
      values.push_back(values_[i].get<double>());
    }
    const double value = Expression::parse(text, names)(values);
    if (!std::isfinite(value)) {
      throw ConfigError("", fmt::format("the expression {} is {}", in_quotes(text), value));
    }
    return value;
  }

 private:
  std::vector<std::string> names_;
  std::vector<Json> values_;
};

/// 3 rather than 3.0, so that integers and counts may be computed.
Json number_json(double value) {
  const bool is_whole = std::trunc(value) == value && std::abs(value) < 9e15;
  return is_whole ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

bool is_integer_between(const Json& value, std::int64_t least, std::int64_t most) {
  return value.is_number_integer() && value.get<double>() >= static_cast<double>(least) &&
         value.get<double>() <= static_cast<double>(most);
}

class Expander {
 public:
  explicit Expander(const Json& root) : given_(root) {
    if (const Json* const all = member(root, "assemblies")) {
      if (all->is_object()) {
        assemblies_ = all;
      } else {
        fail("/assemblies", "must be an object of assemblies by name");
      }
    }
  }

  ExpandedDocument run() && {
    check_assemblies();
    out_.root = given_;
    out_.root.erase("assemblies");
    if (const Json* const parts = member(given_, "subsystems"); parts && parts->is_array()) {
      out_.root["subsystems"] = Json::array();
      expand_parts(*parts, "/subsystems", "", Scope());
    }
    Json outer = Json::array();
    if (const Json* const joints = member(given_, "couplings"); joints && joints->is_array()) {
      expand_couplings(*joints, "/couplings", "", Scope());
    }
    out_.root["couplings"] = std::move(couplings_);
    if (const Json* const signals = member(given_, "signals")) {
      const Json* const blocks = member(*signals, "blocks");
      if (blocks != nullptr && blocks->is_array()) expand_blocks(*blocks);
    }
    return std::move(out_);
  }

 private:
  void fail(const std::string& where, std::string what) {
    if (!told_.insert(where + '\n' + what).second) return;
    if (out_.issues.size() < scenario_limits::kDefects) {
      out_.issues.push_back({where, std::move(what)});
    }
  }

  /// Shapes of all assemblies, used or not.
  void check_assemblies() {
    if (assemblies_ == nullptr) return;
    static const std::vector<std::string> keys = {"description", "parameters", "subsystems",
                                                  "couplings", "ports"};
    for (const auto& [name, assembly] : assemblies_->items()) {
      const std::string where = "/assemblies/" + escape_key(name);
      if (!assembly.is_object()) {
        fail(where,
             "must be an object with \"subsystems\", \"couplings\", \"ports\" and "
             "\"parameters\"");
        continue;
      }
      for (const auto& [key, value] : assembly.items()) {
        if (std::ranges::find(keys, key) == keys.end()) {
          fail(where + "/" + escape_key(key),
               fmt::format("unknown key {}.\nkeys: \"{}\".{}", in_quotes(key),
                           fmt::join(keys, "\", \""), did_you_mean(key, keys)));
        }
      }
      const auto expect = [&](const char* key, bool is_array) {
        const Json* const value = member(assembly, key);
        if (value == nullptr || (is_array ? value->is_array() : value->is_object())) return;
        fail(where + "/" + key, is_array ? "must be an array" : "must be an object");
      };
      expect("parameters", false);
      expect("subsystems", true);
      expect("couplings", true);
      expect("ports", false);
      if (member(assembly, "subsystems") == nullptr) fail(where, "\"subsystems\" is required");
    }
  }

  /// Numbers and names of the scope in place of what stands for them.
  Json substitute(const Json& value, const Scope& scope, const std::string& where) {
    if (scope.empty()) return value;
    if (value.is_object()) {
      if (value.size() == 1) {
        const auto only = value.begin();
        if (only.key() == "parameter" && only->is_string())
          return named(only->get<std::string>(), scope, where);
        if (only.key() == "expression" && only->is_string()) {
          return computed(only->get<std::string>(), scope, where);
        }
      }
      Json out = Json::object();
      for (const auto& [key, each] : value.items()) {
        out[key] = substitute(each, scope, where + "/" + escape_key(key));
      }
      return out;
    }
    if (value.is_array()) {
      Json out = Json::array();
      for (std::size_t i = 0; i < value.size(); ++i) {
        out.push_back(substitute(value[i], scope, fmt::format("{}/{}", where, i)));
      }
      return out;
    }
    if (value.is_string()) return interpolated(value.get_ref<const std::string&>(), scope, where);
    return value;
  }

  Json named(const std::string& name, const Scope& scope, const std::string& where) {
    if (const Json* const found = scope.find(name)) return *found;
    fail(where, fmt::format("there is no parameter {}.\nparameters: \"{}\".{}", in_quotes(name),
                            fmt::join(scope.names(), "\", \""), did_you_mean(name, scope.names())));
    return 0;
  }

  Json computed(const std::string& text, const Scope& scope, const std::string& where) {
    try {
      return number_json(scope.evaluate(text));
    } catch (const ConfigError& error) {
      for (const Issue& issue : error.issues()) fail(where, issue.what);
    }
    return 1;
  }

  /// "line_{i+1}" with i = 3 as "line_4".
  Json interpolated(const std::string& text, const Scope& scope, const std::string& where) {
    if (text.find('{') == std::string::npos) return text;
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t open = text.find('{', at);
      out += text.substr(at, open - at);
      if (open == std::string::npos) break;
      const std::size_t close = text.find('}', open);
      if (close == std::string::npos) {
        fail(where, fmt::format("\"{{\" without \"}}\" in {}", in_quotes(text)));
        return text;
      }
      const std::string inner = text.substr(open + 1, close - open - 1);
      if (const Json* const word = scope.find(inner); word != nullptr && word->is_string()) {
        out += word->get<std::string>();
      } else {
        const Json value = computed(inner, scope, where);
        if (!value.is_number_integer()) {
          fail(where, fmt::format("{} in {} is {}, and must be whole", in_quotes(inner),
                                  in_quotes(text), value.dump()));
        }
        out += value.dump();
      }
      at = close + 1;
    }
    return out;
  }

  bool count_one(const std::string& where) {
    if (++expanded_ <= kMostExpanded) return true;
    fail(where, fmt::format("with this there are more than {} parts, couplings and blocks",
                            kMostExpanded));
    return false;
  }

  /// How often an entry stands there: nothing, and noted, where that is not said rightly; −1: once,
  /// not as an array.
  std::optional<std::int64_t> count_of(const Json& entry, const Scope& scope,
                                       const std::string& where) {
    const Json* const count = member(entry, "count");
    if (count == nullptr) return -1;
    const Json value = substitute(*count, scope, where + "/count");
    if (is_integer_between(value, 1, scenario_limits::kInteger)) return value.get<std::int64_t>();
    fail(where + "/count", fmt::format("must be an integer from 1 to {}, got {}",
                                       scenario_limits::kInteger, printable(value.dump())));
    return std::nullopt;
  }

  std::string name_of(const Json& entry, const std::string& where) {
    const Json* const name = member(entry, "name");
    if (name != nullptr && name->is_string()) return name->get<std::string>();
    fail(where, name == nullptr ? "\"name\" is required" : "/name must be a text");
    return {};
  }

  /// Subsystems of the file or of an assembly, with `prefix` before their names.
  void expand_parts(const Json& parts, const std::string& where, const std::string& prefix,
                    const Scope& scope) {
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const Json& entry = parts[k];
      const std::string place = fmt::format("{}/{}", where, k);
      const auto count = entry.is_object() ? count_of(entry, scope, place) : -1;
      if (!count) continue;
      for (std::int64_t i = 0; i < std::max<std::int64_t>(*count, 1); ++i) {
        if (!count_one(place)) return;
        Scope own = scope;
        if (*count >= 0) own.set("i", i);
        expand_part(entry, place, prefix, own, *count >= 0 ? fmt::format("_{}", i) : "");
      }
    }
  }

  void expand_part(const Json& given, const std::string& place, const std::string& prefix,
                   const Scope& scope, const std::string& index) {
    const bool is_plain = prefix.empty() && index.empty();
    const bool is_use = member(given, "assembly") != nullptr;
    if (is_plain && !is_use) {
      note_port_owner(given, "");
      out_.subsystems.push_back({place, ""});
      out_.root["subsystems"].push_back(given);
      return;
    }
    Json entry = substitute(given, scope, place);
    const std::string name = prefix + name_of(entry, place) + index;
    entry["name"] = name;
    entry.erase("count");
    if (is_use) return expand_use(entry, place, name);
    names_.insert(name);
    out_.subsystems.push_back({place, name});
    out_.root["subsystems"].push_back(std::move(entry));
  }

  void note_port_owner(const Json& entry, const std::string& prefix) {
    const Json* const name = member(entry, "name");
    if (name != nullptr && name->is_string()) names_.insert(prefix + name->get<std::string>());
  }

  void expand_use(const Json& entry, const std::string& place, const std::string& name) {
    static const std::vector<std::string> keys = {"name", "assembly", "parameters"};
    for (const auto& [key, value] : entry.items()) {
      if (std::ranges::find(keys, key) != keys.end()) continue;
      fail(place + "/" + escape_key(key),
           fmt::format("unknown key {} of an assembly in use.\nkeys: \"count\", \"{}\".{}",
                       in_quotes(key), fmt::join(keys, "\", \""), did_you_mean(key, keys)));
    }
    if (!is_plain_name(name)) {
      fail(place + "/name", fmt::format("must not be empty nor contain dots, brackets, blanks, "
                                        "commas or quotes, got {}",
                                        in_quotes(name)));
    }
    if (!entry["assembly"].is_string()) {
      return fail(place + "/assembly", "must be the name of an assembly");
    }
    const auto of = entry["assembly"].get<std::string>();
    const Json* const assembly =
        assemblies_ == nullptr ? nullptr : member(*assemblies_, of.c_str());
    if (assembly == nullptr) {
      std::vector<std::string> known;
      if (assemblies_ != nullptr) {
        for (const auto& [each, value] : assemblies_->items()) known.push_back(each);
      }
      return fail(place + "/assembly",
                  known.empty() ? fmt::format("there is no assembly {}: the file has no "
                                              "\"assemblies\"",
                                              in_quotes(of))
                                : fmt::format("there is no assembly {}.\nassemblies: \"{}\".{}",
                                              in_quotes(of), fmt::join(known, "\", \""),
                                              did_you_mean(of, known)));
    }
    if (!assembly->is_object()) return;
    if (std::ranges::find(open_, of) != open_.end() || std::ssize(open_) >= kMostLevels) {
      return fail(place + "/assembly", fmt::format("an assembly that contains itself: {} -> {}",
                                                   fmt::join(open_, " -> "), of));
    }
    open_.push_back(of);
    const Scope inner = scope_of(*assembly, entry, of, place);
    const std::string where = "/assemblies/" + escape_key(of);
    if (const Json* const parts = member(*assembly, "subsystems"); parts && parts->is_array()) {
      expand_parts(*parts, where + "/subsystems", name + "/", inner);
    }
    if (const Json* const joints = member(*assembly, "couplings"); joints && joints->is_array()) {
      expand_couplings(*joints, where + "/couplings", name + "/", inner);
    }
    uses_.insert(name);
    if (const Json* const ports = member(*assembly, "ports"); ports && ports->is_object()) {
      for (const auto& [port, path] : ports->items()) {
        if (!path.is_string()) {
          fail(where + "/ports/" + escape_key(port),
               "must be a port \"part.port\" of a part inside");
          continue;
        }
        const Json inside = substitute(path, inner, where + "/ports/" + escape_key(port));
        ports_[name + "." + port] = name + "/" + inside.get<std::string>();
      }
    }
    open_.pop_back();
  }

  /// The parameters of an assembly in use: its defaults, and what the use says.
  Scope scope_of(const Json& assembly, const Json& use, const std::string& of,
                 const std::string& place) {
    Scope scope;
    std::vector<std::string> names;
    const Json* const declared = member(assembly, "parameters");
    const Json* const given = member(use, "parameters");
    if (given != nullptr && !given->is_object()) fail(place + "/parameters", "must be an object");
    if (declared != nullptr && declared->is_object()) {
      for (const auto& [name, value] : declared->items()) {
        names.push_back(name);
        const Json* const own = given == nullptr ? nullptr : member(*given, name.c_str());
        if (own == nullptr && value.is_null()) {
          fail(place + "/parameters",
               fmt::format("the assembly {} needs {}", in_quotes(of), in_quotes(name)));
        }
        scope.set(name, own != nullptr ? *own : value.is_null() ? Json(1) : value);
      }
    }
    if (given != nullptr && given->is_object()) {
      for (const auto& [name, value] : given->items()) {
        if (std::ranges::find(names, name) != names.end()) continue;
        fail(place + "/parameters/" + escape_key(name),
             fmt::format("the assembly {} has no parameter {}.{}{}", in_quotes(of), in_quotes(name),
                         names.empty()
                             ? std::string()
                             : fmt::format("\nparameters: \"{}\".", fmt::join(names, "\", \"")),
                         did_you_mean(name, names)));
      }
    }
    return scope;
  }

  void expand_couplings(const Json& joints, const std::string& where, const std::string& prefix,
                        const Scope& scope) {
    for (std::size_t k = 0; k < joints.size(); ++k) {
      const Json& entry = joints[k];
      const std::string place = fmt::format("{}/{}", where, k);
      const Json* const loop = member(entry, "for");
      if (loop == nullptr) {
        if (!count_one(place)) return;
        add_coupling(entry, place, prefix, scope, false);
        continue;
      }
      const auto ranges = ranges_of(*loop, scope, place + "/for");
      if (ranges) run_loop(entry, place, prefix, scope, *ranges, 0);
    }
  }

  struct Range {
    std::string name;
    std::int64_t first, last;
  };

  std::optional<std::vector<Range>> ranges_of(const Json& loop, const Scope& scope,
                                              const std::string& where) {
    if (!loop.is_object() || loop.empty()) {
      fail(where, "must be an object such as {\"i\": [0, 9]}, first and last of each index");
      return std::nullopt;
    }
    std::vector<Range> ranges;
    bool is_sound = true;
    for (const auto& [name, given] : loop.items()) {
      const std::string place = where + "/" + escape_key(name);
      const Json value = substitute(given, scope, place);
      const bool fits = value.is_array() && value.size() == 2 &&
                        is_integer_between(value[0], -kMostExpanded, kMostExpanded) &&
                        is_integer_between(value[1], -kMostExpanded, kMostExpanded);
      if (!fits) {
        fail(place,
             fmt::format("must be [first, last], two integers, got {}", printable(value.dump())));
        is_sound = false;
        continue;
      }
      ranges.push_back({name, value[0].get<std::int64_t>(), value[1].get<std::int64_t>()});
    }
    if (!is_sound) return std::nullopt;
    return ranges;
  }

  void run_loop(const Json& entry, const std::string& place, const std::string& prefix,
                const Scope& scope, const std::vector<Range>& ranges, std::size_t level) {
    if (level == ranges.size()) return add_coupling(entry, place, prefix, scope, true);
    for (std::int64_t i = ranges[level].first; i <= ranges[level].last; ++i) {
      if (expanded_ > kMostExpanded || (level + 1 == ranges.size() && !count_one(place))) return;
      Scope own = scope;
      own.set(ranges[level].name, i);
      run_loop(entry, place, prefix, own, ranges, level + 1);
    }
  }

  void add_coupling(const Json& given, const std::string& place, const std::string& prefix,
                    const Scope& scope, bool is_repeated) {
    Json entry = substitute(given, scope, place);
    if (entry.is_object()) entry.erase("for");
    std::string first;
    if (const auto ports = entry.is_object() ? entry.find("ports") : entry.end();
        ports != entry.end() && ports->is_array()) {
      for (std::size_t i = 0; i < ports->size(); ++i) {
        Json& port = (*ports)[i];
        if (!port.is_string()) continue;
        port = resolved(prefix + port.get<std::string>(), fmt::format("{}/ports/{}", place, i));
        if (first.empty()) first = port.get<std::string>();
      }
    }
    const bool is_shared = is_repeated || !prefix.empty();
    out_.couplings.push_back({place, is_shared ? first : std::string()});
    couplings_.push_back(std::move(entry));
  }

  /// A port of an assembly as the port inside that it stands for.
  std::string resolved(std::string path, const std::string& where) {
    for (int level = 0; level < kMostLevels; ++level) {
      if (const auto found = ports_.find(path); found != ports_.end()) {
        path = found->second;
        continue;
      }
      const std::size_t dot = path.rfind('.');
      const std::string owner = path.substr(0, dot);
      if (dot != std::string::npos && uses_.contains(owner) && !names_.contains(owner)) {
        std::vector<std::string> known;
        for (auto port = ports_.lower_bound(owner + "."); port != ports_.end(); ++port) {
          if (!port->first.starts_with(owner + ".")) break;
          known.push_back(port->first.substr(owner.size() + 1));
        }
        const std::string port = path.substr(dot + 1);
        fail(where, fmt::format("{} is an assembly without a port {}.{}{}", in_quotes(owner),
                                in_quotes(port),
                                known.empty()
                                    ? std::string()
                                    : fmt::format("\nports: \"{}\".", fmt::join(known, "\", \"")),
                                did_you_mean(port, known)));
      }
      break;
    }
    return path;
  }

  void expand_blocks(const Json& blocks) {
    Json all = Json::array();
    for (std::size_t k = 0; k < blocks.size(); ++k) {
      const std::string place = fmt::format("/signals/blocks/{}", k);
      const auto count = blocks[k].is_object() ? count_of(blocks[k], Scope(), place) : -1;
      if (!count) continue;
      if (*count < 0) {
        out_.blocks.push_back({place, ""});
        all.push_back(blocks[k]);
        continue;
      }
      for (std::int64_t i = 0; i < *count && count_one(place); ++i) {
        Scope own;
        own.set("i", i);
        Json entry = substitute(blocks[k], own, place);
        const std::string name = name_of(entry, place) + fmt::format("_{}", i);
        entry["name"] = name;
        entry.erase("count");
        out_.blocks.push_back({place, name});
        all.push_back(std::move(entry));
      }
    }
    out_.root["signals"]["blocks"] = std::move(all);
  }

  const Json& given_;
  const Json* assemblies_ = nullptr;
  ExpandedDocument out_;
  Json couplings_ = Json::array();
  std::vector<std::string> open_;  // assemblies that are being expanded
  std::set<std::string> names_;    // of parts
  std::set<std::string> uses_;     // of assemblies in use
  std::map<std::string, std::string> ports_;
  std::set<std::string> told_;
  std::int64_t expanded_ = 0;
};

bool has_key(const Json& root, const char* list, const char* key) {
  const Json* const entries = member(root, list);
  if (entries == nullptr || !entries->is_array()) return false;
  return std::ranges::any_of(*entries,
                             [key](const Json& entry) { return member(entry, key) != nullptr; });
}

}  // namespace

bool has_assemblies(const Json& root) {
  if (member(root, "assemblies") != nullptr) return true;
  if (has_key(root, "subsystems", "count") || has_key(root, "subsystems", "assembly")) return true;
  if (has_key(root, "couplings", "for")) return true;
  const Json* const signals = member(root, "signals");
  return signals != nullptr && has_key(*signals, "blocks", "count");
}

ExpandedDocument expand_assemblies(const Json& root) { return Expander(root).run(); }

void ExpandedDocument::place(Issues& found) const {
  const std::pair<std::string_view, const std::vector<Source>*> lists[] = {
      {"/subsystems/", &subsystems}, {"/couplings/", &couplings}, {"/signals/blocks/", &blocks}};
  std::set<std::string> seen;
  for (Issue& issue : found) {
    for (const auto& [list, sources] : lists) {
      if (!issue.where.starts_with(list)) continue;
      std::size_t number = 0;
      const char* const begin = issue.where.data() + list.size();
      const auto parsed = std::from_chars(begin, issue.where.data() + issue.where.size(), number);
      if (parsed.ec != std::errc{} || number >= sources->size()) break;
      const Source& source = (*sources)[number];
      issue.where = source.where + std::string(parsed.ptr);
      if (!source.use.empty() && seen.contains(issue.where)) issue.what.clear();
      seen.insert(issue.where);
      if (!source.use.empty() && !issue.what.empty()) {
        const std::size_t line = std::min(issue.what.find('\n'), issue.what.size());
        const bool has_stop = line > 0 && issue.what[line - 1] == '.';
        issue.what.insert(line - (has_stop ? 1 : 0),
                          fmt::format(" (in {})", in_quotes(source.use)));
      }
      break;
    }
  }
  std::erase_if(found, [](const Issue& issue) { return issue.what.empty(); });
}

}  // namespace portwave::scenario_file
