#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "portwave/runtime/ranks/slice_builder.hpp"
#include "scenario/parts/system_draft.hpp"
#include "scenario/reader/text.hpp"

namespace portwave::scenario_file {
namespace {

// The ports that couplings name, by each beginning "a", "a.b" of a path that may be the name of a
// part.
class PortsByPart {
 public:
  explicit PortsByPart(std::vector<CouplingDraft>& couplings) {
    for (CouplingDraft& coupling : couplings) {
      for (std::string& port : coupling.ports) {
        for (auto dot = port.find('.'); dot != std::string::npos; dot = port.find('.', dot + 1)) {
          ports_.emplace(port.substr(0, dot), &port);
        }
      }
    }
  }

  // Ports "part.port" of couplings, and what they end, are then `path`.
  void move(const std::string& part, const std::string& port, const std::string& path) {
    const auto [begin, end] = ports_.equal_range(part);
    for (auto found = begin; found != end; ++found) {
      if (*found->second == part + '.' + port) *found->second = path;
    }
  }

  // True when some coupling names a port of `part`; those ports are then of the part called `name`.
  bool rename(const std::string& part, const std::string& name) {
    bool is_named = false;
    const auto [begin, end] = ports_.equal_range(part);
    for (auto found = begin; found != end; ++found) {
      std::string& port = *found->second;
      if (!port.starts_with(part + '.')) continue;  // renamed before
      port.replace(0, part.size(), name);
      is_named = true;
    }
    return is_named;
  }

 private:
  std::unordered_multimap<std::string, std::string*> ports_;
};

bool are_sound_names(const std::vector<PartDraft>& parts) {
  std::unordered_set<std::string_view> names;
  names.reserve(parts.size());
  return std::all_of(parts.begin(), parts.end(), [&names](const PartDraft& part) {
    return is_plain_name(part.name) && names.insert(part.name).second;
  });
}

// Notes every name that is unfit or taken. A part with no name of its own, which can play no
// further role, gets a stand-in: one that the couplings are told too if they use the unfit name,
// else one that some coupling uses and no part has, probably the name that was meant.
void settle_names(SystemDraft& draft, Defects& defects) {
  if (are_sound_names(draft.parts)) return;
  std::map<std::string, std::size_t> taken;
  for (std::size_t i = 0; i < draft.parts.size(); ++i) {
    std::string& name = draft.parts[i].name;
    if (!name.empty() && !is_plain_name(name)) {
      defects.add(fmt::format("/subsystems/{}/name", i),
                  fmt::format("must not contain dots, brackets, blanks, commas or quotes (it names "
                              "columns of results), got {}",
                              in_quotes(name)));
      name.clear();
      continue;
    }
    if (name.empty()) continue;
    const auto [first, is_new] = taken.emplace(name, i);
    if (is_new) continue;
    defects.add(fmt::format("/subsystems/{}/name", i),
                fmt::format("the name {} is already taken by /subsystems/{}", in_quotes(name),
                            first->second));
    name.clear();
  }
  const auto stand_in_of = [&taken](std::size_t part) {
    std::string name = fmt::format("subsystem_{}", part);
    while (!taken.emplace(name, part).second) name += '_';
    return name;
  };
  PortsByPart ports(draft.couplings);
  for (std::size_t i = 0; i < draft.parts.size(); ++i) {
    PartDraft& part = draft.parts[i];
    if (!part.name.empty() || taken.contains(part.given_name)) continue;
    std::string name = stand_in_of(i);
    if (ports.rename(part.given_name, name)) part.name = std::move(name);
  }
  taken.emplace("", 0);  // no name to go by
  std::vector<std::string> wanted;
  for (const CouplingDraft& coupling : draft.couplings) {
    for (const std::string& port : coupling.ports) {
      const std::string name = port.substr(0, port.find('.'));
      if (taken.emplace(name, 0).second) wanted.push_back(name);
    }
  }
  auto next = wanted.begin();
  for (std::size_t i = 0; i < draft.parts.size(); ++i) {
    PartDraft& part = draft.parts[i];
    if (part.name == part.given_name && !part.name.empty()) continue;
    if (part.name.empty()) part.name = next != wanted.end() ? *next++ : stand_in_of(i);
    part.part = nullptr;
  }
}

bool is_cut(const PartDraft& part) { return part.cut != nullptr && part.part != nullptr; }

// Pieces are parts of the system, and of one entry in the file; what is between them has no place of
// its own.
void place_as_given(Issues& issues, const SystemDraft& draft,
                    const std::vector<std::size_t>& entry_of) {
  for (Issue& issue : issues) {
    for (const std::string_view list : {"/subsystems/", "/couplings/"}) {
      if (!issue.where.starts_with(list)) continue;
      const std::size_t end = std::min(issue.where.find('/', list.size()), issue.where.size());
      const auto index =
          static_cast<std::size_t>(std::stoul(issue.where.substr(list.size(), end - list.size())));
      const std::string rest = issue.where.substr(end);
      if (list == "/subsystems/" && index < entry_of.size()) {
        issue.where = fmt::format("/subsystems/{}{}", entry_of[index], rest);
      } else if (list == "/couplings/" && index >= draft.couplings.size()) {
        issue.where = "/subsystems";
      }
    }
  }
}

// True for what the builder says about something that is reported already, or because of it.
bool is_echo(const Issue& issue, const SystemDraft& draft, const Defects& defects) {
  if (defects.has(issue.where)) return true;
  const std::string_view where = issue.where;
  constexpr std::string_view kList = "/couplings/";
  if (where.starts_with(kList)) {
    const std::string_view rest = where.substr(kList.size());
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    const auto index = static_cast<std::size_t>(std::stoul(std::string(rest.substr(0, slash))));
    const bool is_about_one_port = rest.substr(slash).starts_with("/ports/");
    return !draft.couplings[index].is_sound && !is_about_one_port;
  }
  // An open port is reported at its part as a whole.
  const bool is_about_part = where.rfind('/') == std::string_view("/subsystems").size();
  return is_about_part && !draft.knows_all_ports;
}

// What is wrong with the system before anything in it is cut: told in the names of the file.
Issues check_uncut(const SystemDraft& draft) {
  SystemBuilder builder;
  builder.reserve(draft.parts.size(), draft.couplings.size());
  for (const PartDraft& part : draft.parts) builder.add(part.name, part.part, part.options);
  for (const CouplingDraft& coupling : draft.couplings)
    builder.join(coupling.joint, coupling.ports);
  return builder.check();
}

// Parts that are cut are added as their pieces, which take over the ports of the couplings.
class PieceBuilder {
 public:
  explicit PieceBuilder(SystemDraft& draft) : draft_(draft), ports_(draft.couplings) {}

  void add_parts(SystemBuilder& builder) {
    for (std::size_t i = 0; i < draft_.parts.size(); ++i) {
      PartDraft& part = draft_.parts[i];
      if (!is_cut(part)) {
        entry_of_.push_back(i);
        builder.add(part.name, part.part, std::move(part.options));
        continue;
      }
      entry_of_.insert(entry_of_.end(), part.cut->pieces.size(), i);
      add_pieces(builder, part.name, *part.part, *part.cut, part.options);
      const std::vector<Port>& of_part = part.part->signature().ports;
      for (std::size_t k = 0; k < of_part.size(); ++k) {
        ports_.move(part.name, of_part[k].name, path_of(part.name, *part.cut, part.cut->ports[k]));
      }
    }
  }
  void join(SystemBuilder& builder) const {
    for (const PartDraft& part : draft_.parts) {
      if (is_cut(part)) join_pieces(builder, part.name, *part.cut);
    }
  }
  void place(Issues& issues) const { place_as_given(issues, draft_, entry_of_); }

 private:
  SystemDraft& draft_;
  PortsByPart ports_;
  std::vector<std::size_t> entry_of_;  // of "subsystems", by part of the system
};

}  // namespace

std::optional<System> build_system(SystemDraft& draft, Defects& defects) {
  if (!draft.knows_all_parts) return std::nullopt;
  settle_names(draft, defects);
  const auto is_ready = [](const auto& each) { return each.part != nullptr; };
  const bool is_sound = std::all_of(draft.parts.begin(), draft.parts.end(), is_ready);
  const auto fail = [&](Issues issues) {
    std::erase_if(issues, [&](const Issue& issue) { return is_echo(issue, draft, defects); });
    defects.add(issues);
    return std::nullopt;
  };
  std::optional<PieceBuilder> pieces;
  if (std::any_of(draft.parts.begin(), draft.parts.end(), is_cut)) {
    Issues issues = check_uncut(draft);
    if (!issues.empty() || !is_sound) return fail(std::move(issues));
    pieces.emplace(draft);
  }
  SystemBuilder builder;
  builder.reserve(draft.parts.size(), draft.couplings.size());
  if (pieces) {
    pieces->add_parts(builder);
  } else {
    for (PartDraft& part : draft.parts) {
      builder.add(part.name, part.part, std::move(part.options));
    }
  }
  for (CouplingDraft& coupling : draft.couplings) {
    builder.join(std::move(coupling.joint), std::move(coupling.ports));
  }
  if (pieces) pieces->join(builder);
  if (!is_sound) return fail(builder.check());
  try {
    return builder.build();
  } catch (const ConfigError& error) {
    Issues issues = error.issues();
    if (pieces) pieces->place(issues);
    return fail(std::move(issues));
  }
}

std::optional<System> build_slice(SystemDraft& draft, const SlicePlaces& places, Defects& defects) {
  settle_names(draft, defects);
  if (std::ranges::any_of(draft.parts, is_cut)) {
    defects.add("/subsystems", "pieces of cut parts have no numbers: they cannot be in slices");
  }
  SliceBuilder builder(places.first_part);
  bool is_sound = draft.knows_all_parts;
  for (std::size_t i = 0; i < draft.parts.size(); ++i) {
    PartDraft& part = draft.parts[i];
    is_sound = is_sound && part.part != nullptr;
    if (std::cmp_less(i, places.own_parts)) {
      builder.add(part.name, part.part, std::move(part.options));
    } else {
      const std::int64_t number = places.outside[i - static_cast<std::size_t>(places.own_parts)];
      builder.add_outside(number, part.name, part.part);
    }
  }
  for (CouplingDraft& coupling : draft.couplings) {
    builder.join(std::move(coupling.joint), std::move(coupling.ports));
  }
  // What is wrong with a slice only its rank can say; no rank goes on.
  const bool is_bad = !is_sound || defects.count() > 0;
  const auto others = gather_values(*places.ranks, is_bad ? 1 : 0);
  if (std::ranges::any_of(others, [](int own) { return own != 0; })) {
    if (!is_sound) defects.add(builder.check());
    return std::nullopt;
  }
  try {
    return builder.build(*places.ranks);
  } catch (const ConfigError& error) {
    defects.add(error.issues());
  } catch (const SliceDefects&) {  // of another rank
  }
  return std::nullopt;
}

}  // namespace portwave::scenario_file
