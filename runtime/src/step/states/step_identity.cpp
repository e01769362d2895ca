#include "step/states/step_identity.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "portwave/coupling/method/method_table.hpp"
#include "portwave/subsystems/base/digest.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/core/component_digest.hpp"

namespace portwave {
namespace {

/// The display of a number that stands for something; empty: not shown.
using Show = std::string (*)(std::uint64_t);

std::string as_number(std::uint64_t bits) { return fmt::format("{}", std::bit_cast<double>(bits)); }
std::string as_flag(std::uint64_t bits) { return bits == 0 ? "false" : "true"; }

template <class Numbers>
std::uint64_t digest_of(const Numbers& numbers) {
  Digest digest;
  for (const auto number : numbers) digest.add(static_cast<double>(number));
  return digest.value();
}

std::uint64_t digest_of(std::string_view text) {
  Digest digest;
  digest.add(text);
  return digest.value();
}

void add(Digest& digest, const Sensor& sensor) {
  digest.add(static_cast<int>(sensor.kind));
  digest.add(sensor.part);
  digest.add(sensor.index);
}

/// Keys of a run's start, which a snapshot replaces.
bool is_of_start(std::string_view key) {
  return key == "initial_waves" || key == "initial_J" || key == "initial_fraction";
}

/// Options in a fixed order, each with its name as in scenario files. `items` has
///   item(name, bits, show)   of one option;
///   gate(name, bits, show)   the same: where these differ, those that follow are of other things.
template <class Items>
class OptionVisit {
 public:
  OptionVisit(const StepperOptions& given, const CouplingMethod& resolved, Items& items)
      : given_(given), resolved_(resolved), items_(items) {}

  void visit_all() {
    items_.gate("/method/kind", digest_of(name_of(given_.method)), nullptr);
    number("/time/step_s", given_.step_s);
    items_.gate("/time/step", given_.sizes ? 1 : 0,
                [](std::uint64_t bits) { return std::string(bits == 0 ? "fixed" : "adaptive"); });
    if (given_.sizes) {
      number("/time/step/tolerance", given_.sizes->tolerance);
      number("/time/step/smallest_s", given_.sizes->smallest_s);
      number("/time/step/event_tolerance_s", given_.sizes->event_tolerance_s);
    }
    items_.item("--certify", static_cast<std::uint64_t>(given_.certify), [](std::uint64_t bits) {
      return std::string(bits == 0 ? "none" : bits == 1 ? "energy" : "full");
    });
    method_options("/method", family_of(given_.method.kind()).options);
    resolved_method();
    signals();
    watches();
  }

 private:
  void number(std::string_view name, double value) {
    items_.item(name, std::bit_cast<std::uint64_t>(value), as_number);
  }
  void flag(std::string_view name, bool value) { items_.item(name, value ? 1 : 0, as_flag); }

  void method_options(const std::string& where, std::span<const OptionInfo> options) {
    for (const OptionInfo& info : options) {
      if (!info.is_for(given_.method.kind()) || is_of_start(info.key)) continue;
      const std::string name = fmt::format("{}/{}", where, info.key);
      std::visit([&](const auto& value) { option(name, value); }, info.value);
    }
  }
  void option(const std::string& name, const OptionField<int>& field) {
    number(name, field.of(given_.method));
  }
  void option(const std::string& name, const OptionField<double>& field) {
    number(name, field.of(given_.method));
  }
  void option(const std::string& name, const OptionField<bool>& field) {
    flag(name, field.of(given_.method));
  }
  void option(const std::string& name, const OptionField<std::optional<double>>& field) {
    const std::optional<double>& value = field.of(given_.method);
    flag(name + " is given", value.has_value());
    number(name, value.value_or(0.0));
  }
  void option(const std::string& name, const OptionChoice& choice) {
    const auto index = static_cast<std::size_t>(choice.get(given_.method));
    items_.item(name, digest_of(choice.names[index]), nullptr);
  }
  void option(const std::string& name, const OptionGroup& group) {
    method_options(name, group.options());
  }
  void option(const std::string& name, const SpecialOption&) {
    if (const auto* const splitting = given_.method.as<Splitting>()) {
      Digest digest;
      for (const std::string& part : splitting->fast) digest.add(part);
      items_.item(name, digest.value(), nullptr);
    } else if (given_.method.couples_by_waves()) {
      const WaveCoupling& waves = given_.method.waves();
      items_.item(name + "/kind", digest_of(to_string(waves.impedance_kind)), nullptr);
      if (waves.impedance_kind == ImpedanceKind::given) {
        items_.item(name + "/value", digest_of(waves.impedance), nullptr);
      } else {
        number(name + "/retune_factor", waves.retune_factor);
      }
    }
  }

  /// Impedances and the budget apart, which may change while it runs, and are in snapshots.
  void resolved_method() {
    items_.gate("the method that was chosen", digest_of(name_of(resolved_)), nullptr);
    if (!resolved_.couples_by_waves()) return;
    const WaveCoupling& waves = resolved_.waves();
    number("the number of stages", waves.stages);
    number("the integrator", static_cast<int>(waves.integrator));
    number("the relaxation", waves.relaxation);
    number("the tolerance", waves.tolerance);
    number("the energy tolerance", waves.energy_tolerance_J);
    number("the acceleration", waves.acceleration);
    number("the evaluations before a rescue", waves.rescue_after);
    items_.item("the islands that take the interface update", digest_of(waves.interface_islands),
                nullptr);
  }

  void signals() {
    number("/signals/every_s", given_.signals_every_s);
    const SignalGraph* const graph = given_.signals.get();
    items_.gate("the number of blocks in /signals", graph == nullptr ? 0 : graph->nodes().size(),
                [](std::uint64_t count) { return fmt::format("{}", count); });
    if (graph == nullptr) return;
    for (const SignalGraph::Node& node : graph->nodes()) {
      Digest digest;
      digest.add(node.name);
      digest.add(node.every);
      digest.add(node.digest);
      digest.add(node.outputs);
      add(digest, node.sensor);
      for (const int input : node.inputs) digest.add(input);
      items_.item(fmt::format("the block {} of /signals", in_quotes(node.name)), digest.value(),
                  nullptr);
    }
    Digest driven;
    for (const SignalGraph::Actuator& own : graph->actuators()) {
      driven.add(own.signal);
      driven.add(own.slot);
    }
    for (const SignalGraph::ParameterActuator& own : graph->parameter_actuators()) {
      driven.add(own.signal);
      driven.add(own.part);
      driven.add(own.parameter);
    }
    items_.item("what /signals drives", driven.value(), nullptr);
  }

  void watches() {
    items_.gate("the number of /events", given_.watches.size(),
                [](std::uint64_t count) { return fmt::format("{}", count); });
    for (const Watch& watch : given_.watches) {
      Digest digest;
      digest.add(watch.name);
      add(digest, watch.of);
      digest.add(watch.signal);
      digest.add(watch.level);
      digest.add(static_cast<int>(watch.direction));
      digest.add(watch.ends_run ? 1 : 0);
      items_.item(fmt::format("the event {}", in_quotes(watch.name)), digest.value(), nullptr);
    }
  }

  const StepperOptions& given_;
  const CouplingMethod& resolved_;
  Items& items_;
};

/// Notes the numbers.
struct NotedItems {
  std::vector<std::uint64_t>& to;

  void item(std::string_view, std::uint64_t bits, Show) { to.push_back(bits); }
  void gate(std::string_view, std::uint64_t bits, Show) { to.push_back(bits); }
};

/// The differences, the first few by name.
class Differences {
 public:
  void add(std::string what) {
    if (++count_ > kNamed) return;
    text_ += (text_.empty() ? "" : "; ") + std::move(what);
  }
  /// `name` has a value here and another one there.
  void add(std::string_view name, std::uint64_t here, std::uint64_t there, Show show) {
    add(show == nullptr
            ? fmt::format("{} is another", name)
            : fmt::format("{} is {} here, and {} there", name, show(here), show(there)));
  }
  bool none() const { return count_ == 0; }
  std::string text() const {
    return count_ > kNamed ? fmt::format("{}; and {} more", text_, count_ - kNamed) : text_;
  }

 private:
  static constexpr int kNamed = 5;

  std::string text_;
  int count_ = 0;
};

/// Compares numbers that were noted with those of another one.
struct ComparedItems {
  const std::vector<std::uint64_t>& other;
  Differences& found;
  std::size_t next = 0;
  bool are_of_other_things = false;

  void item(std::string_view name, std::uint64_t bits, Show show) {
    if (are_of_other_things || next >= other.size()) return;
    const std::uint64_t there = other[next++];
    if (there != bits) found.add(name, bits, there, show);
  }
  void gate(std::string_view name, std::uint64_t bits, Show show) {
    const std::size_t at = next;
    item(name, bits, show);
    are_of_other_things = are_of_other_things || at >= other.size() || other[at] != bits;
  }
};

std::uint64_t shape_of(const Part& part) {
  const Component& component = *part.component;
  const Signature& signature = component.signature();
  Digest digest;
  digest.add(part.name);
  digest.add(signature.type);
  for (const StateVariable& state : signature.states) digest.add(state.name);
  digest.add(static_cast<int>(signature.states.size()));
  for (const Port& port : signature.ports) {
    digest.add(port.name);
    digest.add(port.dimension);
    digest.add(to_string(port.causality));
  }
  digest.add(static_cast<int>(signature.inputs.size()));
  digest.add(part.substeps);
  digest.add(part.integrator ? static_cast<int>(*part.integrator) : -1);
  if (part.damping != StageDamping{}) {
    digest.add(part.damping.theta);
    digest.add(part.damping.conserved);
  }
  return digest.value();
}

std::uint64_t law_of(const DiracStructure& dirac) {
  Digest digest;
  for (const Eigen::MatrixXd* matrix : {&dirac.E, &dirac.F}) {
    for (const double entry : matrix->reshaped()) digest.add(entry);
  }
  return digest.value();
}

/// "A.shaft and B.shaft"; for many ports the first and the number of others.
std::string ports_text(const System& system, const Junction& junction) {
  constexpr std::size_t kNamed = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(junction.waves.size(), kNamed); ++i) {
    text += (i == 0 ? "" : " and ") + system.port_label(junction.waves[i]);
  }
  const std::size_t more = junction.waves.size() - std::min(junction.waves.size(), kNamed);
  return more == 0 ? text : fmt::format("{} and {} more", text, more);
}

void compare_counts(std::size_t here, std::size_t there, const char* what, Differences& found) {
  if (here != there)
    found.add(fmt::format("there are {} {} here, and {} there", here, what, there));
}

/// Parameter `k` of those that a part was built from.
void add_parameter(const Part& part, std::size_t k, std::uint64_t here, std::uint64_t there,
                   Differences& found) {
  const BuiltFrom* const built = part.component->built_from();
  const std::string whose = fmt::format("part {}", in_quotes(part.name));
  if (built == nullptr) return found.add(whose + " has other equations");
  const std::vector<ParameterInfo>& infos = built->type->parameters;
  if (k >= infos.size()) {
    return found.add(whose + ": allow_active", here, there,
                     [](std::uint64_t bits) { return as_flag(bits); });
  }
  const ParameterKind kind = infos[k].kind;
  const bool is_number = kind == ParameterKind::number || kind == ParameterKind::integer;
  const bool is_flag = kind == ParameterKind::boolean;
  found.add(fmt::format("{}: {}", whose, infos[k].name), here, there,
            is_number ? as_number
            : is_flag ? as_flag
                      : nullptr);
}

}  // namespace

StepIdentity::StepIdentity(const StepperOptions& given, const CouplingMethod& resolved) {
  NotedItems items{options_};
  OptionVisit(given, resolved, items).visit_all();
}

StepIdentity::StepIdentity(const System& system, const StepperOptions& given,
                           const CouplingMethod& resolved)
    : StepIdentity(given, resolved) {
  add_parts(system);
  add_junctions(system);
}

namespace {

std::vector<std::uint64_t> parameters_of(const Component& component) {
  const BuiltFrom* const built = component.built_from();
  return built != nullptr ? built->values : std::vector{component_digest(component)};
}

}  // namespace

/// The sets of parameters, which are added part by part.
class StepIdentity::Sets {
 public:
  explicit Sets(StepIdentity& to) : to_(to) {}

  std::uint32_t find_or_add(const std::vector<std::uint64_t>& values) {
    const auto number = static_cast<std::uint32_t>(sets_.size());
    const auto [set, is_other] = sets_.try_emplace(values, number);
    if (is_other) {
      to_.set_begin_.push_back(to_.values_.size());
      to_.values_.insert(to_.values_.end(), values.begin(), values.end());
    }
    return set->second;
  }

 private:
  StepIdentity& to_;
  std::map<std::vector<std::uint64_t>, std::uint32_t> sets_;
};

StepIdentity StepIdentity::with(
    const std::map<int, std::shared_ptr<const Component>>& components) const {
  StepIdentity out = *this;
  for (auto* list : {&out.set_begin_, &out.values_}) list->clear();
  Sets sets(out);
  constexpr auto kUnknown = static_cast<std::uint32_t>(-1);
  std::vector<std::uint32_t> known(set_begin_.size(), kUnknown);
  for (std::size_t i = 0; i < set_of_part_.size(); ++i) {
    const auto other = components.find(static_cast<int>(i));
    if (other != components.end()) {
      out.set_of_part_[i] = sets.find_or_add(portwave::parameters_of(*other->second));
      continue;
    }
    std::uint32_t& set = known[set_of_part_[i]];
    if (set == kUnknown) set = sets.find_or_add(parameters_of(i));
    out.set_of_part_[i] = set;
  }
  return out;
}

std::vector<int> StepIdentity::parts_that_differ(const StepIdentity& other) const {
  StepIdentity rest = *this, other_rest = other;
  for (StepIdentity* own : {&rest, &other_rest}) {
    for (auto* list : {&own->set_begin_, &own->values_}) list->clear();
    own->set_of_part_.clear();
  }
  std::vector<int> out;
  if (rest != other_rest) return out;
  for (std::size_t i = 0; i < set_of_part_.size(); ++i) {
    if (parameters_of(i) != other.parameters_of(i)) out.push_back(static_cast<int>(i));
  }
  return out;
}

void StepIdentity::add_parts(const System& system) {
  std::unordered_map<const Component*, std::uint32_t> known;  // components
  Sets sets(*this);
  for (const Part& part : system.parts()) {
    shapes_.push_back(shape_of(part));
    for (const Signal& input : part.inputs) inputs_.push_back(input.digest());
    const auto [own, is_new] = known.try_emplace(part.component.get(), 0);
    if (is_new) own->second = sets.find_or_add(portwave::parameters_of(*part.component));
    set_of_part_.push_back(own->second);
  }
}

void StepIdentity::add_junctions(const System& system) {
  const DiracStructure* last = nullptr;  // many share one
  std::uint64_t law = 0;
  for (const Junction& junction : system.junctions()) {
    if (last != junction.shared.get()) law = law_of(*(last = junction.shared.get()));
    junction_ports_.push_back(digest_of(junction.waves));
    junction_laws_.push_back(law);
  }
}

std::uint64_t StepIdentity::digest() const {
  Digest digest;
  for (const auto* list :
       {&options_, &shapes_, &set_begin_, &values_, &inputs_, &junction_ports_, &junction_laws_}) {
    digest.add(static_cast<std::uint64_t>(list->size()));
    for (const std::uint64_t own : *list) digest.add(own);
  }
  for (const std::uint32_t own : set_of_part_) digest.add(static_cast<std::uint64_t>(own));
  return digest.value();
}

std::vector<std::uint64_t> StepIdentity::parameters_of(std::size_t part) const {
  const std::size_t set = set_of_part_[part];
  const auto begin = values_.begin() + static_cast<std::ptrdiff_t>(set_begin_[set]);
  const auto end = set + 1 < set_begin_.size()
                       ? values_.begin() + static_cast<std::ptrdiff_t>(set_begin_[set + 1])
                       : values_.end();
  return {begin, end};
}

std::string StepIdentity::difference(const StepIdentity& other, const System& system,
                                     const StepperOptions& given,
                                     const CouplingMethod& resolved) const {
  if (*this == other) return {};
  Differences found;
  const std::span<const Part> parts = system.parts();
  compare_counts(shapes_.size(), other.shapes_.size(), "parts", found);
  for (std::size_t i = 0; shapes_.size() == other.shapes_.size() && i < parts.size(); ++i) {
    if (shapes_[i] == other.shapes_[i]) continue;
    found.add(fmt::format("part {} has another name, type, state or port there",
                          in_quotes(parts[i].name)));
  }
  // Parts are the same, by name and shape: their numbers may be compared one by one.
  for (std::size_t i = 0; shapes_ == other.shapes_ && i < parts.size(); ++i) {
    const std::vector<std::uint64_t> here = parameters_of(i), there = other.parameters_of(i);
    if (here.size() != there.size()) {
      found.add(fmt::format("part {} was built in another way", in_quotes(parts[i].name)));
    }
    for (std::size_t k = 0; here.size() == there.size() && k < here.size(); ++k) {
      if (here[k] != there[k]) add_parameter(parts[i], k, here[k], there[k], found);
    }
  }
  for (std::size_t i = 0, k = 0; shapes_ == other.shapes_ && i < parts.size(); ++i) {
    for (const ExternalInput& input : parts[i].component->signature().inputs) {
      const bool differs = k >= other.inputs_.size() || inputs_[k] != other.inputs_[k];
      ++k;
      if (!differs) continue;
      found.add(fmt::format("input {} of part {} is another", in_quotes(input.name),
                            in_quotes(parts[i].name)));
    }
  }
  compare_counts(junction_laws_.size(), other.junction_laws_.size(), "couplings", found);
  for (std::size_t i = 0;
       junction_laws_.size() == other.junction_laws_.size() && i < junction_laws_.size(); ++i) {
    const bool joins_others = junction_ports_[i] != other.junction_ports_[i];
    if (!joins_others && junction_laws_[i] == other.junction_laws_[i]) continue;
    found.add(fmt::format("the coupling of {} {}", ports_text(system, system.junctions()[i]),
                          joins_others ? "joins other ports there" : "has another law there"));
  }
  ComparedItems items{other.options_, found};
  OptionVisit(given, resolved, items).visit_all();
  return found.none() ? "something else" : found.text();
}

void StepIdentity::archive(StateArchive& archive) {
  for (auto* list :
       {&options_, &shapes_, &set_begin_, &values_, &inputs_, &junction_ports_, &junction_laws_}) {
    archive.vector(*list);
  }
  archive.vector(set_of_part_);
  if (!archive.reads()) return;
  const auto begins_in_order = [&] {
    return std::ranges::is_sorted(set_begin_) &&
           (set_begin_.empty() || set_begin_.back() <= values_.size());
  };
  archive.expect(
      set_of_part_.size() == shapes_.size() && begins_in_order() &&
          std::ranges::all_of(set_of_part_,
                              [&](std::uint32_t set) { return set < set_begin_.size(); }) &&
          junction_ports_.size() == junction_laws_.size(),
      "what the snapshot is of");
}

std::uint64_t digest_of_inputs(const System& system, const StepperOptions& options) {
  Digest inputs;
  if (system.slice() == nullptr) {
    inputs.add(StepIdentity(system, options, options.method).digest());
    for (const Part& part : system.parts()) {
      for (const double x : part.initial_state) inputs.add(x);
    }
    inputs.add(options.threads);
  } else {
    StepperOptions common = options;
    if (common.method.couples_by_waves()) common.method.waves().impedance.clear();
    inputs.add(StepIdentity(common, common.method).digest());
  }
  inputs.add(options.start_s);
  inputs.add(static_cast<int>(options.grain.kind));
  inputs.add(options.grain.count);
  return inputs.value();
}

}  // namespace portwave
