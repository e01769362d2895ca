#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "portwave/runtime/ranks/slice_builder.hpp"
#include "scenario/scenario_limits.hpp"
#include "scenario/scenario_parts.hpp"
#include "scenario/scenario_text.hpp"
#include "scenario/scenario_values.hpp"

namespace portwave::scenario_file {
namespace {

// Takes any number of ports and, having no gain, is judged by its ports alone.
Joint stand_in() { return joint::SkewGain{}; }

// What the rest of a coupling needs beside its own members.
struct JointContext {
  int size;  ///< its scalar ports, -1 when not known
  const std::filesystem::path& folder;
};

using JointReader = std::optional<Joint> (*)(const ObjectReader& object,
                                             const JointContext& context);

template <class Kind>
std::optional<Joint> read_plain(const ObjectReader&, const JointContext&) {
  return Kind{};
}

std::optional<double> require_number(const ObjectReader& object, std::string_view key) {
  const std::optional<Node> found = object.require(key);
  return found ? found->number() : std::nullopt;
}

template <class Kind>
std::optional<Joint> read_ratio(const ObjectReader& object, const JointContext&) {
  const auto ratio = require_number(object, "ratio");
  return ratio ? std::optional<Joint>(Kind{*ratio}) : std::nullopt;
}

std::optional<Joint> read_resistive(const ObjectReader& object, const JointContext&) {
  const auto resistance = require_number(object, "resistance");
  return resistance ? std::optional<Joint>(joint::Resistive{*resistance}) : std::nullopt;
}

std::optional<Eigen::MatrixXd> require_matrix(const ObjectReader& object, std::string_view key,
                                              const JointContext& context) {
  const std::optional<Node> found = object.require(key);
  if (!found) return std::nullopt;
  if (context.size >= 0) return read_dense_matrix(*found, context.size, context.folder);
  read_matrix(*found, context.folder);  // its defects, though its size is not known
  return std::nullopt;
}

std::optional<Joint> read_skew_gain(const ObjectReader& object, const JointContext& context) {
  auto gain = require_matrix(object, "gain", context);
  return gain ? std::optional<Joint>(joint::SkewGain{*std::move(gain)}) : std::nullopt;
}

std::optional<Joint> read_kernel(const ObjectReader& object, const JointContext& context) {
  auto E = require_matrix(object, "E", context);
  auto F = require_matrix(object, "F", context);
  if (!E || !F) return std::nullopt;
  return joint::Kernel{*std::move(E), *std::move(F)};
}

struct CouplingKind {
  std::string_view name;
  std::vector<std::string_view> keys;
  JointReader read;
};

const std::vector<CouplingKind>& kinds() {
  static const std::vector<CouplingKind> all = [] {
    std::vector<CouplingKind> every = {
        {"connection", {"kind", "ports"}, read_plain<joint::Connection>},
        {"common_effort", {"kind", "ports"}, read_plain<joint::CommonEffort>},
        {"common_flow", {"kind", "ports"}, read_plain<joint::CommonFlow>},
        {"transformer", {"kind", "ports", "ratio"}, read_ratio<joint::Transformer>},
        {"gyrator", {"kind", "ports", "ratio"}, read_ratio<joint::Gyrator>},
        {"skew_gain", {"kind", "ports", "gain"}, read_skew_gain},
        {"kernel", {"kind", "ports", "E", "F"}, read_kernel},
        {"free", {"kind", "ports"}, read_plain<joint::Free>},
        {"fixed", {"kind", "ports"}, read_plain<joint::Fixed>},
        {"resistive", {"kind", "ports", "resistance"}, read_resistive},
    };
    for (CouplingKind& kind : every) kind.keys.emplace_back("for");
    return every;
  }();
  return all;
}

// The dimensions of the ports of all parts that were built.
class PortSizes {
 public:
  explicit PortSizes(const std::vector<PartDraft>& parts) {
    parts_.reserve(parts.size());
    for (const PartDraft& part : parts) {
      if (part.part != nullptr) parts_.emplace(part.name, part.part.get());
    }
  }

  // Of "part.port"; -1 when it is not known.
  int of(std::string_view path) const {
    const std::size_t dot = std::min(path.rfind('.'), path.size());
    const auto [begin, end] = parts_.equal_range(path.substr(0, dot));
    for (auto part = begin; part != end; ++part) {
      for (const Port& port : part->second->signature().ports) {
        if (path.substr(std::min(dot + 1, path.size())) == port.name) return port.dimension;
      }
    }
    return -1;
  }

 private:
  std::unordered_multimap<std::string_view, const Component*> parts_;
};

int scalar_size(const std::vector<std::string>& ports, const PortSizes& sizes) {
  int size = 0;
  for (const std::string& port : ports) {
    const int dimension = sizes.of(port);
    if (dimension < 0) return -1;
    size += dimension;
  }
  return size;
}

// The names in "ports". False when one of them names no port.
bool read_port_names(const ObjectReader& object, std::vector<std::string>& names) {
  const std::optional<Node> ports = object.require("ports");
  if (!ports || !ports->is_array("an array of ports \"part.port\"")) return false;
  bool is_sound = true;
  names.reserve(ports->size());
  for (std::size_t i = 0; i < ports->size(); ++i) {
    const Node element = ports->at(i);
    auto name = element.text();
    is_sound = is_sound && name && name->find('.') != std::string::npos;
    names.push_back(std::move(name).value_or(""));
  }
  return is_sound;
}

CouplingDraft read_coupling(const Node& node, const std::filesystem::path& folder,
                            const PortSizes& sizes, bool& knows_ports) {
  CouplingDraft draft{stand_in(), {}, false};
  const auto kind_name = read_kind(node, coupling_kinds());
  const auto kind = std::find_if(kinds().begin(), kinds().end(), [&kind_name](const auto& each) {
    return kind_name && each.name == *kind_name;
  });
  const ObjectReader object =
      kind != kinds().end() ? ObjectReader(node, kind->keys) : ObjectReader(node);

  knows_ports = read_port_names(object, draft.ports) && knows_ports;
  const int size = scalar_size(draft.ports, sizes);
  const int fewest = std::max(size, static_cast<int>(draft.ports.size()));
  if (fewest > scenario_limits::kCouplingPorts) {
    node.fail(fmt::format("a coupling must have at most {} scalar ports, got {}",
                          scenario_limits::kCouplingPorts, fewest));
    return draft;
  }
  if (kind == kinds().end()) return draft;
  if (auto joint = kind->read(object, {size, folder})) {
    draft.joint = *std::move(joint);
    draft.is_sound = true;
  }
  return draft;
}

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
  constexpr std::string_view kCouplings = "/couplings/";
  if (where.starts_with(kCouplings)) {
    const std::string_view rest = where.substr(kCouplings.size());
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

const std::vector<std::string>& coupling_kinds() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const CouplingKind& kind : kinds()) all.emplace_back(kind.name);
    return all;
  }();
  return names;
}

void read_couplings(const Node& node, const std::filesystem::path& folder, SystemDraft& draft) {
  if (!node.is_array("an array of couplings")) {
    draft.knows_all_ports = false;
    return;
  }
  const PortSizes sizes(draft.parts);
  for (std::size_t i = 0; i < node.size(); ++i) {
    if (node.defects().is_full()) {
      draft.knows_all_ports = false;
      return;
    }
    const Node element = node.at(i);
    draft.couplings.push_back(read_coupling(element, folder, sizes, draft.knows_all_ports));
  }
}

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
