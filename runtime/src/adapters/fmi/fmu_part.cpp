#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "adapters/fmi/fmu_batch.hpp"
#include "adapters/fmi/fmu_forward.hpp"
#include "adapters/fmi/fmu_setup.hpp"
#include "portwave/runtime/adapters/fmu.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/core/opaque_facets.hpp"
#include "portwave/subsystems/core/state_bytes.hpp"

namespace portwave {
namespace fmi {
namespace {

/// Instances of FMUs that may be instantiated once per process, by file.
struct OnlyInstances {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<Program>> by_file;

  static OnlyInstances& instance() {
    static OnlyInstances all;
    return all;
  }
};

std::shared_ptr<Program> start_only(const PartSetup& setup) {
  OnlyInstances& all = OnlyInstances::instance();
  const std::lock_guard lock(all.mutex);
  std::weak_ptr<Program>& known = all.by_file[setup.fmu->file().string()];
  if (known.lock() != nullptr) {
    throw ConfigError("/path",
                      fmt::format("{} may be instantiated once per process, and is in use already: "
                                  "give its parts \"process\": true",
                                  in_quotes(setup.fmu->file().filename().string())));
  }
  std::shared_ptr<Program> program = setup.start_program();
  known = program;
  return program;
}

Signature signature_of(const PartSetup& setup) {
  Signature out;
  out.type = "fmu";
  for (const Variable* const own : setup.outputs) {
    out.states.push_back({plain_fmu_name(own->name), own->unit});
  }
  for (const PortVariables& own : setup.ports) {
    out.ports.push_back({own.name, own.causality, own.domain, 1});
  }
  for (const Variable* const own : setup.inputs) {
    out.inputs.push_back({plain_fmu_name(own->name), own->unit});
  }
  return out;
}

Issues name_defects(const Signature& signature) {
  Issues issues;
  std::set<std::string> names;
  for (const StateVariable& own : signature.states) {
    if (names.insert(own.name).second) continue;
    issues.push_back(
        {"/outputs", fmt::format("two outputs have the name {} once dots and brackets are "
                                 "replaced: name the ones to be shown in \"outputs\"",
                                 in_quotes(own.name))});
  }
  for (std::size_t i = 0; i < signature.ports.size(); ++i) {
    if (is_plain_name(signature.ports[i].name)) continue;
    issues.push_back({fmt::format("/ports/{}/name", i),
                      fmt::format("{} must not hold dots, brackets, blanks, commas or quotes",
                                  in_quotes(signature.ports[i].name))});
  }
  return issues;
}

/// An objection to states other than the outputs at the start.
Issues outputs_that_were_set(const Signature& signature, const std::vector<double>& shown,
                             const double* x) {
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (x[i] == shown[i] || (std::isnan(x[i]) && std::isnan(shown[i]))) continue;
    return {{"/initial_state/" + signature.states[i].name,
             "is an output of an FMU, which nobody can set: give its start values in \"start\""}};
  }
  return {};
}

/// An FMU with power ports: nothing known of what is inside, but that its steps can be taken back.
class FmuComponent final : public Component,
                           public MayHaveStateBytes,
                           public HoldsEnergy,
                           public ShowsMeans {
 public:
  FmuComponent(PartSetup setup, double step_s)
      : Component(signature_of(setup)), setup_(std::move(setup)) {
    throw_if_any(name_defects(signature()));
    program_ = is_only() ? start_only(setup_) : std::shared_ptr<Program>(setup_.start_program());
    shown_.resize(setup_.outputs.size());
    program_->instance().get(VariableList(setup_.outputs), shown_.data());
    check(step_s);
  }

  /// How far repeated steps differ, relatively.
  double floor() const { return floor_; }

  const FirstSteps& first() const { return first_; }
  std::optional<double> held_J() const override { return setup_.held_J; }
  bool is_mean(std::size_t state) const override { return setup_.outputs[state]->is_mean; }

  Capabilities capabilities() const override {
    return {.repeatable = floor_ == 0.0, .thread_safe = true, .linearisable = true};
  }
  std::string why_no_state_bytes() const override { return fmi::why_no_state_bytes(*setup_.fmu); }
  std::vector<double> default_state() const override { return shown_; }
  Issues check_initial_state(const double* x) const override {
    return outputs_that_were_set(signature(), shown_, x);
  }
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> /*one*/) const override {
    try {
      return std::make_unique<FmuBatch>(setup_, take_program(), floor_);
    } catch (const FmuFault& fault) {
      throw std::runtime_error(
          fmt::format("part {} cannot be started: {}", in_quotes(setup_.name), fault.what()));
    }
  }

 private:
  /// One instance serves all batches. In processes of their own each has one.
  bool is_only() const {
    return setup_.fmu->description().is_only_once && !setup_.isolation.in_a_process;
  }

  void check(double step_s) {
    first_ = try_first_steps(setup_, *program_, step_s);
    floor_ = first_.worst;
    const std::string file = in_quotes(setup_.fmu->file().filename().string());
    if (std::isnan(floor_)) {
      throw ConfigError("/path",
                        fmt::format("{}: its answer to the first step is not finite: are its start "
                                    "values sound?",
                                    file));
    }
    if (floor_ > kNoRollback || first_.drifts) {
      throw ConfigError(
          "/path",
          fmt::format("{} says that it can go back (canGetAndSetFMUState), but a step that was "
                      "taken back and repeated differs by {:.2g}{}: it cannot be iterated.\n"
                      "Exporters that save registered variables alone (pythonfmu) need all that "
                      "changes in a step to be registered; with \"rollback\": false its steps are "
                      "foretold, and taken once",
                      file, floor_, first_.drifts ? ", each time" : ""));
    }
  }

  /// The instance of the checks serves the first batch; further batches get their own.
  std::shared_ptr<Program> take_program() const {
    const std::lock_guard lock(mutex_);
    if (is_only()) return program_;
    if (program_ != nullptr) return std::move(program_);
    return setup_.start_program();
  }

  PartSetup setup_;
  FirstSteps first_;
  double floor_ = 0.0;
  std::vector<double> shown_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<Program> program_;
};

/// An FMU with power ports whose steps cannot be taken back: they are foretold, and taken once (Forecast).
class ForwardComponent final : public Component,
                               public MayHaveStateBytes,
                               public HoldsEnergy,
                               public ShowsMeans {
 public:
  ForwardComponent(PartSetup setup, double step_s)
      : Component(signature_of(setup)), setup_(std::move(setup)), trials_(setup_) {
    throw_if_any(name_defects(signature()));
    const std::string file = in_quotes(setup_.fmu->file().filename().string());
    if (setup_.fmu->description().is_only_once && !setup_.isolation.in_a_process) {
      throw ConfigError(
          "/path", fmt::format("{} may be instantiated once per process, and cannot go back: what "
                               "its steps do is tried with instances of their own.\nGive the part "
                               "\"process\": true",
                               file));
    }
    first_ = trials_.of(step_s);
    if (!first_->is_finite) {
      throw ConfigError("/path",
                        fmt::format("{}: its answer to the first step is not finite: are its start "
                                    "values sound?",
                                    file));
    }
  }

  const Trials& first() const { return *first_; }
  std::optional<double> held_J() const override { return setup_.held_J; }
  bool is_mean(std::size_t state) const override { return setup_.outputs[state]->is_mean; }

  Capabilities capabilities() const override {
    return {.repeatable = first_->difference == 0.0, .thread_safe = true, .linearisable = true};
  }
  std::string why_no_state_bytes() const override {
    return "it is an FMU whose steps are taken once";
  }
  std::vector<double> default_state() const override { return first_->shown; }
  Issues check_initial_state(const double* x) const override {
    return outputs_that_were_set(signature(), first_->shown, x);
  }
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> /*one*/) const override {
    return std::make_unique<ForwardBatch>(setup_, trials_);
  }

 private:
  PartSetup setup_;
  mutable TrialRuns trials_;
  std::shared_ptr<const Trials> first_;
};

double step_of_checks(const FmuPartOptions& options, const ModelDescription& model) {
  constexpr double kStep_s = 1e-3;
  return options.step_s > 0.0 ? options.step_s : model.usual_step_s.value_or(kStep_s);
}

/// The FMU's capability, in the words of its version.
std::string_view rollback_word(const ModelDescription& model) {
  return model.version == Version::v2 ? "canGetAndSetFMUstate" : "canGetAndSetFMUState";
}

/// Whether steps are taken back. Errors: ConfigError where they are to be, and cannot.
bool goes_back(const Fmu& fmu, std::optional<bool> wanted) {
  const ModelDescription& model = fmu.description();
  if (wanted.value_or(model.saves_state) && !model.saves_state) {
    throw ConfigError(
        "/rollback",
        fmt::format("{} cannot go back to a state ({} is not true).\nExport it again with that "
                    "capability{}; or leave \"rollback\" out: its steps are then foretold, and "
                    "taken once",
                    in_quotes(fmu.file().filename().string()), rollback_word(model),
                    model.tool.empty()
                        ? std::string()
                        : fmt::format(" (it was made by {})", printable(model.tool))));
  }
  return wanted.value_or(model.saves_state);
}

}  // namespace
}  // namespace fmi

namespace {

void note_response(double least, FmuPart& out) {
  constexpr double kNegative = -1e-6;
  if (least >= kNegative) return;
  out.notes.push_back(
      "it answers what it is given at its ports by giving energy, as no part without a source "
      "does: is effort times flow "
      "power out of the FMU (\"power\": \"out\"), or into it?");
}

FmuPart make_forward_part(fmi::PartSetup setup, const FmuPartOptions& options, FmuPart out) {
  const fmi::ModelDescription& model = setup.fmu->description();
  const std::string why =
      model.saves_state
          ? std::string("its steps are not taken back, as \"rollback\" says")
          : fmt::format("it cannot go back ({} is not true)", fmi::rollback_word(model));
  auto component = std::make_shared<fmi::ForwardComponent>(std::move(setup),
                                                           fmi::step_of_checks(options, model));
  const fmi::Trials& first = component->first();
  constexpr double kLinear = 1e-6;
  const double misfit = first.forecast.misfit();
  const std::string how_well =
      misfit <= kLinear       ? std::string("as that of a linear system")
      : std::isfinite(misfit) ? fmt::format("to {:.2g} of what its first steps do", misfit)
                              : std::string("from its first step alone, as further ones failed");
  out.notes.push_back(fmt::format(
      "{}: its answers are foretold, {}, and each step is taken once; what they miss is in the "
      "account",
      why, how_well));
  if (first.difference > 0.0) {
    out.notes.push_back(
        fmt::format("two instances differ by {:.2g} in their first step: no run repeats bit by bit",
                    first.difference));
  }
  note_response(first.least_response, out);
  out.available_J = first.available_J;
  out.component = std::move(component);
  return out;
}

}  // namespace

FmuPart make_fmu_part(const FmuPartOptions& options) {
  fmi::PartSetup setup = fmi::find_variables(options);
  const bool goes_back = fmi::goes_back(*setup.fmu, options.rollback);
  const fmi::ModelDescription& model = setup.fmu->description();
  FmuPart out;
  out.notes = setup.notes;
  for (const fmi::PortVariables& port : setup.ports) {
    // A force has no integral that an FMU would show; a velocity has its position.
    if (port.integral != nullptr || port.causality == Causality::flow_in) continue;
    if (model.provides_intermediate && port.output->is_within) continue;
    out.notes.push_back(fmt::format(
        "port {}: the mean of {} over a step is taken from both ends of it{}; name its "
        "\"integral\" for the exact work",
        port.name, port.output->name, setup.watches() ? ", and of its pieces between events" : ""));
  }
  try {
    if (!goes_back) return make_forward_part(std::move(setup), options, std::move(out));
    auto component =
        std::make_shared<fmi::FmuComponent>(std::move(setup), fmi::step_of_checks(options, model));
    if (component->floor() > 0.0) {
      out.notes.push_back(
          fmt::format("steps that are taken back and repeated differ by {:.2g}: no tolerance can "
                      "be met below that",
                      component->floor()));
    }
    note_response(component->first().least_response, out);
    out.available_J = component->first().available_J;
    out.component = std::move(component);
  } catch (const fmi::FmuFault& fault) {
    throw ConfigError("", fmt::format("the part cannot be started: {}", fault.what()));
  }
  return out;
}

std::string plain_fmu_name(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    const bool is_bad = static_cast<unsigned char>(c) <= ' ' || c == 127 ||
                        std::string_view(".[],\"'").find(c) != std::string_view::npos;
    if (is_bad) c = '_';
  }
  return out;
}

bool has_fmi() { return true; }

}  // namespace portwave
