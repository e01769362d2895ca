#include "portwave/runtime/scenario/network_builder.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <exception>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "portwave/coupling/system/cut.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "scenario/parts/without_type.hpp"
#include "scenario/reader/limits.hpp"
#include "scenario/settings/names.hpp"

namespace portwave {
namespace {

std::uint64_t next_network() {
  static std::atomic<std::uint64_t> count{0};
  return ++count;
}

template <class Value>
void append_bytes(std::string& text, const Value& value) {
  char bytes[sizeof(Value)];
  std::memcpy(bytes, &value, sizeof(Value));
  text.append(bytes, sizeof(Value));
}

/// Equal for equal parts; none where a parameter is more than a number or a text.
std::optional<std::string> key_of(const PartType& type, const Parameters& parameters) {
  std::string key = type.name;
  for (const auto& [name, value] : parameters) {
    key += '\0' + name + '\0';
    if (const auto* const number = std::get_if<double>(&value)) {
      append_bytes(key, *number);
    } else if (const auto* const integer = std::get_if<int>(&value)) {
      append_bytes(key, *integer);
    } else if (const auto* const truth = std::get_if<bool>(&value)) {
      append_bytes(key, *truth);
    } else if (const auto* const text = std::get_if<std::string>(&value)) {
      key += *text;
    } else {
      return std::nullopt;
    }
  }
  return key;
}

/// The list of "/couplings/3/ports/1", and the number in it; a number of -1: neither.
struct Place {
  bool is_coupling = false;
  int number = -1;
};

Place place_of(std::string_view where) {
  for (const std::string_view list : {"/subsystems/", "/couplings/"}) {
    if (!where.starts_with(list)) continue;
    Place place{list == "/couplings/", -1};
    std::from_chars(where.data() + list.size(), where.data() + where.size(), place.number);
    return place;
  }
  return {};
}

std::vector<std::string> names_of_states(const Component& part) {
  std::vector<std::string> names;
  for (const StateVariable& state : part.signature().states) names.push_back(state.name);
  return names;
}

}  // namespace

NetworkBuilder::NetworkBuilder(std::string name)
    : name_(std::move(name)), network_(next_network()) {}

void NetworkBuilder::add_issue(std::string where, std::string what) {
  issues_.push_back({std::move(where), std::move(what)});
}

PartHandle NetworkBuilder::keep(PendingPart part) {
  parts_.push_back(std::move(part));
  return {network_, part_count() - 1};
}

PartHandle NetworkBuilder::add(std::string name, CataloguePart part, PartOptions options) {
  std::shared_ptr<const Component> component = component_of(part, part_count());
  return keep({std::move(name), part.type(), std::move(component), std::move(options), {}});
}

PartHandle NetworkBuilder::add(std::string name, std::shared_ptr<const Component> component,
                               PartOptions options) {
  if (component == nullptr) {
    add_issue(fmt::format("/subsystems/{}", part_count()), "its component is null");
    return keep({std::move(name), "component", nullptr, std::move(options), {}});
  }
  std::string type = component->signature().type;
  return keep({std::move(name), std::move(type), std::move(component), std::move(options), {}});
}

std::vector<PartHandle> NetworkBuilder::add_array(
    int count, std::string_view name, const std::function<CataloguePart(int)>& part_of) {
  const std::size_t place = name.find("{}");
  if (place == std::string_view::npos) {
    throw std::invalid_argument(fmt::format(
        "the name {} of an array has no \"{{}}\", which stands for the number", in_quotes(name)));
  }
  if (count < 0) throw std::invalid_argument(fmt::format("an array has no {} parts", count));
  std::vector<PartHandle> parts;
  parts.reserve(at(count));
  for (int i = 0; i < count; ++i) {
    parts.push_back(
        add(fmt::format("{}{}{}", name.substr(0, place), i, name.substr(place + 2)), part_of(i)));
  }
  return parts;
}

std::shared_ptr<const Component> NetworkBuilder::component_of(const CataloguePart& part,
                                                              int index) {
  const std::string where = fmt::format("/subsystems/{}", index);
  const PartType* const type = find_part_type(part.type());
  Issues found;
  try {
    if (type == nullptr) {
      (void)part.build();  // throws, and says which types there are
      return nullptr;
    }
    Parameters parameters = part.parameters();
    found = check_parameters(*type, parameters, false);
    if (found.empty()) {
      const std::optional<std::string> key = key_of(*type, parameters);
      if (key) {
        if (const auto alike = alike_.find(*key); alike != alike_.end()) return alike->second;
      }
      std::shared_ptr<const Component> built = build_part(*type, parameters);
      if (built != nullptr) {
        recipes_->add(built, *type, std::move(parameters), false);
        if (key) alike_.emplace(*key, built);
        return built;
      }
      found.push_back({"", "its type built nothing"});
    }
  } catch (const ConfigError& error) {
    found = error.issues();
  } catch (const std::bad_alloc&) {
    found.push_back({"", "not enough memory for a part of this size"});
  } catch (const std::exception& error) {  // of a type that a program has added
    found.push_back({"", fmt::format("could not be built: {}", printable(error.what()))});
  }
  append(issues_, type == nullptr ? where + "/type" : where + "/parameters", found);
  return nullptr;
}

NetworkBuilder::PendingPart* NetworkBuilder::find(PartHandle part, std::string_view to_do) {
  if (part.network_ == network_ && part.index_ >= 0 && part.index_ < part_count()) {
    return &parts_[at(part.index_)];
  }
  add_issue("", fmt::format("{}: the part is not of this network", to_do));
  return nullptr;
}

const std::string& NetworkBuilder::name_of(PartHandle part) const {
  if (part.network_ != network_ || part.index_ < 0 || part.index_ >= part_count()) {
    throw std::out_of_range("the part is not of this network");
  }
  return parts_[at(part.index_)].name;
}

NetworkBuilder& NetworkBuilder::set_state(PartHandle part, std::string state, double value) {
  PendingPart* const own = find(part, fmt::format("state {}", in_quotes(state)));
  if (own != nullptr) own->states.insert_or_assign(std::move(state), value);
  return *this;
}

NetworkBuilder& NetworkBuilder::set_input(PartHandle part, std::string input, Signal signal) {
  PendingPart* const own = find(part, fmt::format("input {}", in_quotes(input)));
  if (own != nullptr) own->options.inputs.insert_or_assign(std::move(input), std::move(signal));
  return *this;
}

NetworkBuilder& NetworkBuilder::cut(PartHandle part, int pieces) {
  PendingPart* const own = find(part, "cut");
  if (own == nullptr) return *this;
  const std::string where = fmt::format("/subsystems/{}/cut", part.index());
  if (pieces < 1 || pieces > scenario_limits::kCutParts) {
    add_issue(where,
              fmt::format("must be 1 to {} pieces, got {}", scenario_limits::kCutParts, pieces));
  } else if (own->options.substeps != 1 || own->options.damping.conserved != 0) {
    add_issue(where,
              "a part that is cut takes the steps of the system, and names no states that damping "
              "leaves alone: leave out its substeps and these");
  } else {
    own->pieces = pieces;
  }
  return *this;
}

NetworkBuilder& NetworkBuilder::join(Joint joint, std::vector<PortHandle> ports) {
  joints_.push_back({std::move(joint), std::move(ports)});
  return *this;
}
NetworkBuilder& NetworkBuilder::connect(PortHandle first, PortHandle second) {
  return join(joint::Connection{}, {std::move(first), std::move(second)});
}
NetworkBuilder& NetworkBuilder::common_effort(std::vector<PortHandle> ports) {
  return join(joint::CommonEffort{}, std::move(ports));
}
NetworkBuilder& NetworkBuilder::common_flow(std::vector<PortHandle> ports) {
  return join(joint::CommonFlow{}, std::move(ports));
}
NetworkBuilder& NetworkBuilder::free(PortHandle port) {
  return join(joint::Free{}, {std::move(port)});
}
NetworkBuilder& NetworkBuilder::fix(PortHandle port) {
  return join(joint::Fixed{}, {std::move(port)});
}

// "part.port"; a name that no part has, and an issue, where there is no such port.
std::string NetworkBuilder::path_of(const PortHandle& port, std::size_t joint, std::size_t place) {
  const auto where = [&] { return fmt::format("/couplings/{}/ports/{}", joint, place); };
  if (port.network != network_ || port.part < 0 || port.part >= part_count()) {
    add_issue(where(), "the port is of a part of another network, or of none");
    return {};
  }
  const PendingPart& part = parts_[at(port.part)];
  if (const auto* const name = std::get_if<std::string>(&port.port)) {
    return part.name + "." + *name;
  }
  const int number = std::get<int>(port.port);
  if (part.component == nullptr) return part.name + ".?";  // whatever ports it would have
  const std::vector<Port>& ports = part.component->signature().ports;
  if (number >= 0 && at(number) < ports.size()) return part.name + "." + ports[at(number)].name;
  add_issue(where(), fmt::format("{} has {} port{}, and none of number {}", in_quotes(part.name),
                                 ports.size(), ports.size() == 1 ? "" : "s", number));
  return {};
}

void NetworkBuilder::settle_states(int index) {
  PendingPart& part = parts_[at(index)];
  if (part.states.empty() || part.component == nullptr) return;
  std::vector<double>& x = part.options.initial_state;
  if (x.empty()) x = part.component->default_state();
  const std::vector<std::string> names = names_of_states(*part.component);
  for (const auto& [name, value] : part.states) {
    const auto found = std::ranges::find(names, name);
    const auto place = static_cast<std::size_t>(found - names.begin());
    if (found == names.end()) {
      add_issue(fmt::format("/subsystems/{}/initial_state/{}", index, escape_key(name)),
                fmt::format("there is no state {}.{}", in_quotes(name), did_you_mean(name, names)));
    } else if (place < x.size()) {  // of another length: reported by SystemBuilder
      x[place] = value;
    }
  }
}

// The parts that an issue is about, in words; empty where its text names one of them.
std::string NetworkBuilder::parts_in_words(const Issue& issue) const {
  const Place place = place_of(issue.where);
  std::vector<int> parts;
  if (place.number >= 0 && !place.is_coupling && place.number < part_count()) {
    parts.push_back(place.number);
  } else if (place.is_coupling && at(place.number) < joints_.size()) {
    for (const PortHandle& port : joints_[at(place.number)].ports) {
      if (port.network == network_ && port.part >= 0 && port.part < part_count()) {
        parts.push_back(port.part);
      }
    }
  }
  std::string text;
  for (const int part : parts) {
    const PendingPart& own = parts_[at(part)];
    const std::string name = in_quotes(own.name);
    const std::string_view begin(name.data(), name.size() - 1);  // also of "part.port"
    if (issue.what.find(name) != std::string::npos ||
        issue.what.find(std::string(begin) + '.') != std::string::npos) {
      return {};
    }
    text += (text.empty() ? "" : ", ") + name;
    if (!place.is_coupling) text += fmt::format(" ({})", own.type);
  }
  return text;
}

void NetworkBuilder::name_parts(Issues& issues) const {
  for (Issue& issue : issues) {
    const std::string words = parts_in_words(issue);
    if (words.empty()) continue;
    const Place place = place_of(issue.where);
    const bool has_type = !place.is_coupling && place.number >= 0;  // see parts_in_words
    issue.what = words + ": " +
                 (has_type ? without_type(issue.what, parts_[at(place.number)].type) : issue.what);
  }
  std::ranges::stable_sort(issues, {}, [](const Issue& issue) {
    const Place place = place_of(issue.where);
    return std::tuple(place.is_coupling, place.number);
  });
}

bool NetworkBuilder::is_any_cut() const {
  return std::ranges::any_of(parts_, [](const PendingPart& part) { return part.pieces > 0; });
}

// Parts that are cut are added as their pieces, which take over the ports of the joints. The whole network has no
// defects. Errors: ConfigError, in terms of the whole network.
System NetworkBuilder::build_cut(const std::vector<std::vector<std::string>>& ports) {
  SystemBuilder builder;
  std::vector<int> part_of;  // by part of the system
  std::unordered_map<std::string, std::string> moved;
  std::vector<std::pair<int, Cut>> cuts;
  Issues found;
  for (int i = 0; i < part_count(); ++i) {
    const PendingPart& part = parts_[at(i)];
    if (part.pieces == 0) {
      part_of.push_back(i);
      builder.add(part.name, part.component, part.options);
      continue;
    }
    try {
      Cut cut = cut_part(*part.component, part.pieces);
      part_of.insert(part_of.end(), cut.pieces.size(), i);
      add_pieces(builder, part.name, *part.component, cut, part.options);
      const std::vector<Port>& own = part.component->signature().ports;
      for (std::size_t k = 0; k < own.size(); ++k) {
        moved.emplace(part.name + "." + own[k].name,
                      portwave::path_of(part.name, cut, cut.ports[k]));
      }
      cuts.emplace_back(i, std::move(cut));
    } catch (const ConfigError& error) {
      append(found, fmt::format("/subsystems/{}/cut", i), error.issues());
    } catch (const std::bad_alloc&) {
      found.push_back({fmt::format("/subsystems/{}/cut", i), "not enough memory to cut this part"});
    }
  }
  if (!found.empty()) throw ConfigError(std::move(found));
  for (std::size_t j = 0; j < joints_.size(); ++j) {
    std::vector<std::string> own = ports[j];
    for (std::string& port : own) {
      if (const auto piece = moved.find(port); piece != moved.end()) port = piece->second;
    }
    builder.join(joints_[j].joint, std::move(own));
  }
  for (const auto& [i, cut] : cuts) join_pieces(builder, parts_[at(i)].name, cut);
  try {
    return builder.build();
  } catch (const ConfigError& error) {
    for (Issue issue : error.issues()) {
      const Place place = place_of(issue.where);
      if (place.is_coupling && place.number >= static_cast<int>(joints_.size())) {
        issue.where.clear();
      } else if (!place.is_coupling && place.number >= 0) {
        issue.where = fmt::format("/subsystems/{}", part_of[at(place.number)]);
      }
      found.push_back(std::move(issue));
    }
    throw ConfigError(std::move(found));
  }
}

Scenario NetworkBuilder::build(const StepperOptions& options) {
  const Issues added = issues_;  // those of another build are found again
  SystemBuilder builder;
  builder.reserve(parts_.size(), joints_.size());
  for (int i = 0; i < part_count(); ++i) {
    settle_states(i);
    const PendingPart& part = parts_[at(i)];
    builder.add(part.name, part.component, part.options);
  }
  const bool is_cut = is_any_cut();
  std::vector<bool> is_sound_joint(joints_.size());
  std::vector<std::vector<std::string>> paths;  // by joint
  for (std::size_t j = 0; j < joints_.size(); ++j) {
    std::vector<std::string> ports;
    bool is_sound = true;
    for (std::size_t i = 0; i < joints_[j].ports.size(); ++i) {
      ports.push_back(path_of(joints_[j].ports[i], j, i));
      is_sound = is_sound && !ports.back().empty();
    }
    // A joint with unknown ports keeps its number, and its other ports count as joined.
    if (!is_sound) std::erase(ports, std::string());
    is_sound_joint[j] = is_sound;
    if (is_cut) paths.push_back(ports);
    builder.join(is_sound ? joints_[j].joint : Joint(joint::CommonEffort{}), std::move(ports));
  }
  const auto fail = [&](Issues more) {
    std::erase_if(more, [&](const Issue& issue) {  // of the stand-in
      const Place place = place_of(issue.where);
      return place.is_coupling && place.number >= 0 && !is_sound_joint[at(place.number)];
    });
    Issues all = std::exchange(issues_, added);
    append(all, "", more);
    name_parts(all);
    throw ConfigError(std::move(all));
  };
  if (!issues_.empty()) fail(builder.check());
  if (is_cut) {
    if (Issues more = builder.check(); !more.empty()) fail(std::move(more));
  }
  std::optional<System> system;
  try {
    system = is_cut ? build_cut(paths) : builder.build();
  } catch (const ConfigError& error) {
    fail(error.issues());
  }
  RecordingOptions recording;
  recording.quantities = scenario_file::Names(*system).all_states();
  return Scenario{.name = name_,
                  .system = *std::move(system),
                  .options = options,
                  .recording = std::move(recording),
                  .recipes = recipes_};
}

}  // namespace portwave
