#include "portwave/runtime/scenario/scenario.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "output/files/input_file.hpp"
#include "portwave/runtime/adapters/structure.hpp"
#include "scenario/file_keys.hpp"
#include "scenario/files/foreign_code.hpp"
#include "scenario/files/matrix_file.hpp"
#include "scenario/files/plugins.hpp"
#include "scenario/parts/system_draft.hpp"
#include "scenario/reader/document.hpp"
#include "scenario/reader/node.hpp"
#include "scenario/reader/text.hpp"
#include "scenario/settings/names.hpp"
#include "scenario/settings/settings.hpp"
#include "scenario/slice.hpp"
#include "scenario/templates/expansion.hpp"
#include "signals/table_span.hpp"

namespace portwave {
namespace scenario_file {
namespace {

std::string with_full_stop(std::string text) {
  const bool has_end =
      !text.empty() && std::string_view(".?!").find(text.back()) != std::string_view::npos;
  return has_end ? text : text + '.';
}

// What is wrong on the first line; how to put it right on those that follow, set in.
std::string report_line(const std::string& file, const Issue& issue) {
  const std::string place = issue.where.empty() ? "" : " " + printable(issue.where, 200);
  std::string text = printable(file, file.size()) + place + ": ";
  for (std::string_view rest = issue.what; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::size_t first = std::min(rest.find_first_not_of(' '), end);
    text += with_full_stop(printable(rest.substr(first, end - first), end)) + '\n';
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!rest.empty()) text += "  ";
  }
  return text;
}

std::unordered_set<std::string> unbuilt_parts(const SystemDraft& draft) {
  std::unordered_set<std::string> names;
  for (const PartDraft& part : draft.parts) {
    if (part.cut != nullptr) {
      for (const CutPiece& piece : part.cut->pieces) names.insert(part.name + "/" + piece.name);
    }
    if (part.part != nullptr) continue;
    names.insert(part.name);
    names.insert(part.given_name);
  }
  return names;
}

// Everything that names parts, ports or states. `system` is what the file describes, if it is
// sound.
void read_names(const FileKeys& keys, const SystemDraft& draft, const std::optional<System>& system,
                const std::filesystem::path& folder, RunSettings& settings, Defects& defects) {
  const std::optional<System> table = system ? std::nullopt : build_name_table(draft, defects);
  if (!system && !table) return;
  Names names = system ? Names(*system) : Names(*table, unbuilt_parts(draft));
  if (keys.method) read_method_names(*keys.method, names, settings.options.method);
  settings.signal_names = read_signals(keys.signals ? &*keys.signals : nullptr, draft, folder,
                                       names, settings.options, defects);
  if (keys.events) read_events(*keys.events, names, settings);
  if (keys.outputs) {
    read_quantities(*keys.outputs, names, settings);
  } else {
    settings.recording.quantities = names.all_states();
  }
}

// The stored energy of FMUs is not known, and the guard has nothing to spend where the tank of a run is empty:
// it gets what they can give in a first step, unless the file says otherwise.
void fill_tank_for_fmus(SystemDraft& draft, CouplingMethod& method) {
  if (draft.fmu_energy_J <= 0.0 || !method.couples_by_waves()) return;
  WaveCoupling& waves = method.waves();
  if (waves.tank.initial_J || waves.tank.initial_fraction > 0.0 || !waves.initial_waves.empty()) {
    return;
  }
  waves.tank.initial_J = draft.fmu_energy_J;
  draft.notes.push_back(
      {"/method/tank", fmt::format("starts with {:.3g} J, which the FMUs can give in a first "
                                   "step: what they hold is not known",
                                   draft.fmu_energy_J)});
}

// Nothing is returned if there is any defect. `is_whole`: false when entries are missing. `slice`: null
// where the scenario is all there is.
std::optional<Scenario> read_scenario(const Node& root, bool is_whole,
                                      const std::filesystem::path& folder, Plugins plugins,
                                      const PhaseCallback& listener,
                                      const SlicePlaces* slice = nullptr) {
  FileKeys keys;
  file_keys().read(root, keys);
  if (!root.json().is_object()) return std::nullopt;
  RunSettings settings;
  if (keys.time) read_time(*keys.time, settings);
  ForeignCode foreign(folder, plugins);
  foreign.start_s = settings.options.start_s;
  foreign.step_s = settings.options.step_s;
  SystemDraft draft;
  if (keys.plugins) {
    tell(listener, {"loading plugins"});
    draft.knows_all_types = read_plugins(*keys.plugins, folder, plugins);
  }
  draft.knows_all_parts = keys.subsystems.has_value();
  if (keys.subsystems) read_parts(*keys.subsystems, folder, draft, listener);
  draft.knows_all_parts = draft.knows_all_parts && is_whole;
  tell(listener, {"reading the couplings"});
  if (keys.couplings) read_couplings(*keys.couplings, folder, draft);
  if (keys.method) read_method(*keys.method, settings.options.method);
  prefer_what_suits_steps(keys.method ? keys.method->json() : Json::object(), settings.options);
  if (keys.outputs) read_outputs(*keys.outputs, settings);
  fill_tank_for_fmus(draft, settings.options.method);

  tell(listener, {"joining the subsystems"});
  Issues notes = notes_of(draft);
  append(notes, "", draft.notes);
  std::optional<System> system = slice != nullptr ? build_slice(draft, *slice, root.defects())
                                                  : build_system(draft, root.defects());
  tell(listener, {"reading the outputs"});
  if (is_whole) read_names(keys, draft, system, folder, settings, root.defects());
  if (slice != nullptr) {  // all states, where nothing was said
    std::erase_if(settings.recording.quantities, [slice](const Quantity& own) {
      return own.kind == Quantity::Kind::state && own.part >= slice->own_parts;
    });
  }
  if (!system || root.defects().count() > 0) return std::nullopt;
  for (std::string& note : tables_out_of_reach(*system, settings.options.signals.get(),
                                               settings.options.start_s, settings.end_s)) {
    notes.push_back({"/time", std::move(note)});
  }
  return Scenario{std::move(keys.name), *std::move(system),      std::move(settings.options),
                  settings.steps,       settings.end_s,          std::move(settings.recording),
                  std::move(notes),     std::move(draft.recipes)};
}

void note_files(FilesRead& read, Scenario& scenario) {
  scenario.recording.inputs = std::move(read.plugins);
  for (const ScenarioFile& own : read.files) scenario.recording.inputs.push_back(own.path);
  scenario.files = std::move(read.files);
}

/// `read`: which files may be read, and then those that were.
Scenario parse(std::string text, const std::string& file, const std::filesystem::path& folder,
               const std::vector<Override>& overrides, const PhaseCallback& listener,
               Plugins plugins, FilesRead& read) {
  tell(listener, {"reading " + file});
  Document document = parse_document(std::move(text));
  if (document.readable) apply_overrides(document, overrides);
  Defects defects(document);
  std::optional<Scenario> scenario;
  if (document.readable && has_assemblies(document.root)) {
    tell(listener, {"expanding assemblies"});
    ExpandedDocument expanded = expand_assemblies(document.root, defects);
    defects.place_by([&expanded](Issue issue) { return expanded.place(std::move(issue)); });
    if (!expanded.is_too_large) {
      scenario =
          read_scenario(Node(expanded.root, defects), expanded.is_whole, folder, plugins, listener);
      if (scenario) append(scenario->notes, "", expanded.notes);
    }
  } else if (document.readable) {
    scenario = read_scenario(Node(document.root, defects), true, folder, plugins, listener);
  }
  if (scenario) {
    note_files(read, *scenario);
    return *std::move(scenario);
  }
  Issues issues = defects.take();
  sort_by_place(issues, document.root);
  throw ScenarioError(file, std::move(issues));
}

/// What reaches beyond a slice.
void refuse_beyond_slice(const Json& root, Defects& defects) {
  if (has_assemblies(root)) {
    defects.add("", "assemblies make subsystems: write these out for slices");
  }
  for (const char* const key : {"signals", "events"}) {
    if (root.contains(key)) {
      defects.add(fmt::format("/{}", key), "reaches all subsystems, and no rank has all slices");
    }
  }
  const Json::json_pointer kind("/method/impedance/kind");
  if (root.contains(kind) && root.at(kind) == "per_port") {
    defects.add("/method/impedance/kind", "must be \"uniform\" for slices");
  }
  const Json::json_pointer observe("/outputs/observe");
  if (!root.contains(observe) || !root.at(observe).is_array()) return;
  for (const Json& label : root.at(observe)) {
    if (!label.is_string() || !is_pattern(label.get_ref<const std::string&>())) continue;
    defects.add("/outputs/observe",
                fmt::format("{} may stand for subsystems of any slice: name each",
                            in_quotes(label.get<std::string>())));
  }
}

Scenario load_slice(const std::filesystem::path& file, Ranks& ranks,
                    const std::vector<Override>& overrides, const PhaseCallback& listener,
                    Plugins plugins, OutsideFiles outside) {
  for (const Override& own : overrides) {
    for (const char* const list : {"/subsystems", "/couplings", "/parameters"}) {
      if (!own.pointer.starts_with(list)) continue;
      throw ScenarioError(file.string(),
                          {{own.pointer, "cannot be set for slices: change the file"}});
    }
  }
  SliceText slice = read_slice(file, ranks, listener);
  const SlicePlaces& places = slice.places;
  FilesRead read(file.parent_path(), outside);
  Document document = parse_document(std::move(slice.text));
  if (document.readable) apply_overrides(document, overrides);
  Defects defects(document);
  std::optional<SliceOutputs> outputs;
  if (document.readable && document.root.is_object()) {
    refuse_beyond_slice(document.root, defects);
    outputs.emplace(document.root, places);
  } else if (defects.count() == 0) {
    defects.add("", "is no scenario");
  }
  // What is wrong with the slices of others is told by all.
  const auto expect_sound = [&] {
    Issues own;
    for (Issue& issue : defects.take()) own.push_back(placed_in_whole(std::move(issue), places));
    if (Issues all = gathered_issues(ranks, own); !all.empty()) {
      throw ScenarioError(file.string(), std::move(all));
    }
  };
  expect_sound();
  outputs->check(places, defects);
  std::optional<Scenario> scenario = read_scenario(Node(document.root, defects), true,
                                                   file.parent_path(), plugins, listener, &places);
  expect_sound();
  if (!scenario) throw ScenarioError(file.string(), {{"", "is no scenario"}});
  note_files(read, *scenario);
  scenario->recording.inputs.push_back(file);
  return *std::move(scenario);
}

/// A system structure, whose FMUs are named where they lie while it is read.
Scenario load_structure(const std::filesystem::path& file, const std::vector<Override>& overrides,
                        const PhaseCallback& listener, Plugins plugins, OutsideFiles outside) {
  tell(listener, {"reading " + file.string()});
  StructureScenario structure;
  try {
    structure = read_structure(file, {.may_run_fmus = plugins == Plugins::allowed});
  } catch (const ConfigError& error) {
    throw ScenarioError(file.string(), error.issues());
  }
  FilesRead read(file.parent_path(), outside);
  Scenario scenario = parse(std::move(structure.text), file.string(), file.parent_path(), overrides,
                            listener, plugins, read);
  // Not files of a package that are gone with it.
  scenario.recording.inputs = {file};
  for (const StructureScenario::Fmu& own : structure.fmus) {
    if (file.extension() != ".ssp") scenario.recording.inputs.push_back(own.file);
  }
  for (Issue& note : structure.notes) {
    if (note.where.empty()) note.where = file.filename().string();
    scenario.notes.push_back(std::move(note));
  }
  return scenario;
}

}  // namespace
}  // namespace scenario_file

ScenarioError::ScenarioError(std::string file, Issues issues)
    : ConfigError(std::move(issues)), file_(std::move(file)) {}

std::string ScenarioError::report() const {
  constexpr std::size_t kShown = 50;
  std::string text;
  for (std::size_t i = 0; i < std::min(issues().size(), kShown); ++i) {
    text += scenario_file::report_line(file_, issues()[i]);
  }
  if (issues().size() > kShown) text += fmt::format("... and {} more.\n", issues().size() - kShown);
  return text + fmt::format("{} error{}; nothing was run.\n", issues().size(),
                            issues().size() == 1 ? "" : "s");
}

Scenario parse_scenario(const std::string& text, const std::string& file,
                        const std::filesystem::path& folder, const std::vector<Override>& overrides,
                        const PhaseCallback& listener, Plugins plugins, OutsideFiles outside) {
  scenario_file::FilesRead read(folder, outside);
  return scenario_file::parse(text, file, folder, overrides, listener, plugins, read);
}

Scenario parse_scenario(const std::string& text, const std::string& file,
                        const std::filesystem::path& folder, const std::vector<Override>& overrides,
                        Plugins plugins, std::span<const NamedMatrix> matrices) {
  scenario_file::FilesRead read(folder, OutsideFiles::refused);
  const scenario_file::MatricesInMemory known(matrices);
  return scenario_file::parse(text, file, folder, overrides, {}, plugins, read);
}

Scenario parse_scenario(const KeptScenario& kept, const std::vector<Override>& overrides,
                        const PhaseCallback& listener, Plugins plugins, OutsideFiles outside) {
  scenario_file::FilesRead read(kept.keeper, outside, "results");
  return scenario_file::parse(kept.text, kept.file, kept.folder, overrides, listener, plugins,
                              read);
}

bool reads_outside(const Scenario& scenario, const std::filesystem::path& folder) {
  const std::filesystem::path plain = plain_folder(folder);
  return !std::ranges::all_of(
      scenario.files, [&](const ScenarioFile& own) { return lies_within(plain, own.path); });
}

std::string read_scenario_text(const std::filesystem::path& file) {
  if (is_structure_file(file)) {
    throw ScenarioError(file.string(), {{"",
                                         "is a system structure, and a scenario is needed here: "
                                         "write one by portwave import"}});
  }
  scenario_file::FileText content =
      scenario_file::read_text_file(file, scenario_file::Pipes::handed_over);
  if (!content.ok()) throw ScenarioError(file.string(), {{"", content.problem}});
  return std::move(content.text);
}

Scenario load_scenario(const std::filesystem::path& file, const std::vector<Override>& overrides,
                       const PhaseCallback& listener, Plugins plugins, OutsideFiles outside) {
  if (is_structure_file(file)) {
    return scenario_file::load_structure(file, overrides, listener, plugins, outside);
  }
  std::string text = read_scenario_text(file);
  scenario_file::FilesRead read(file.parent_path(), outside);
  Scenario scenario = scenario_file::parse(std::move(text), file.string(), file.parent_path(),
                                           overrides, listener, plugins, read);
  scenario.recording.inputs.push_back(file);
  return scenario;
}

Scenario load_scenario_slice(const std::filesystem::path& file, Ranks& ranks,
                             const std::vector<Override>& overrides, const PhaseCallback& listener,
                             Plugins plugins, OutsideFiles outside) {
  if (ranks.size() == 1) return load_scenario(file, overrides, listener, plugins, outside);
  return scenario_file::load_slice(file, ranks, overrides, listener, plugins, outside);
}

}  // namespace portwave
