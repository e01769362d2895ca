#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <portwave/runtime/export/fmu_export.hpp>
#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/study/delay_study.hpp>
#include <portwave/runtime/study/iteration_study.hpp>
#include <portwave/runtime/study/order_study.hpp>
#include <portwave/runtime/study/rate_study.hpp>
#include <portwave/runtime/study/scaling.hpp>
#include <portwave/runtime/study/step_comparison.hpp>
#include <portwave/runtime/study/study.hpp>
#include <portwave/runtime/study/tolerance_study.hpp>

#include "line/networks.hpp"
#include "line/scaling_files.hpp"
#include "line/scenario_file.hpp"

namespace portwave::cli {

/// Interval between two checkpoints of a run, in steps or in wall time.
struct CheckpointEvery {
  std::int64_t steps = 0;  ///< 0: by time
  double wall_s = 0.0;
};

struct RunArguments {
  ScenarioArguments scenario;
  std::optional<std::filesystem::path> out;
  std::optional<CheckpointEvery> checkpoint_every;
  std::optional<std::filesystem::path> resume;  ///< in place of a scenario: results of a run
  int threads = 1;
  Grain grain;
  ExecutorKind executor = ExecutorKind::automatic;
  TimeBudget time;
  Certify certify = Certify::energy;
  StepComparison::Extent compare = StepComparison::Extent::beginning;  ///< with finer steps
  bool strict = false;
  bool report = false;       ///< also as a page
  bool profile = false;      ///< where the time goes
  bool live = false;         ///< shown while it goes on
  std::optional<int> serve;  ///< to browsers, on that port; 0: one that is free
  bool json = false;
  bool quiet = false;
  bool slices = false;  ///< each rank reads, steps and records a piece of the scenario
};

/// One folder of results, or two that are compared.
struct ReportArguments {
  std::vector<std::filesystem::path> folders;
  std::optional<std::filesystem::path> out;  ///< none: in the first folder
};

struct ValidateArguments {
  ScenarioArguments scenario;
};

/// The laws of parts: of a type of part, or of the parts of a scenario.
struct CheckArguments {
  ScenarioArguments scenario;      ///< its file may be the name of a type
  std::vector<std::string> parts;  ///< by name; none: one of each kind of equal ones
  std::vector<double> steps_s;     ///< none: by the scenario's step
  std::optional<int> trials;
  std::optional<std::int64_t> seed;
  bool json = false;
};

struct ListArguments {
  std::optional<std::string> type;  ///< or method; none: all
  bool markdown = false;            ///< types of parts as a page of Markdown
  bool blocks = false;              ///< kinds of blocks of signal graphs instead
  bool methods = false;             ///< methods of coupling in place of types of parts
  bool json = false;
  std::vector<std::filesystem::path> plugins;
};

struct SchemaArguments {
  std::vector<std::filesystem::path> plugins;
};

/// Sources of impedances, in the words of scenario files.
const std::vector<std::string>& impedance_words();

/// What every study of a scenario is given.
struct StudyOfScenario {
  ScenarioArguments scenario;
  std::optional<std::filesystem::path> out;
  bool report = false;
  bool json = false;
};

struct TuneArguments : StudyOfScenario {
  std::string impedance = "auto";  ///< one of impedance_words()
  int ports = 20;                  ///< as many are shown
};

struct StudyBudgetArguments : StudyOfScenario {
  BudgetAxes axes = {.budgets = {0, 3, 8, 20, 35, 50}};  ///< but for the impedances
  std::vector<std::string> impedances;                   ///< of impedance_words()
  int threads = 1;
};

struct StudyRateArguments : StudyOfScenario {
  RateOptions options;
};

struct StudyDelayArguments : StudyOfScenario {
  DelayOptions options;
};

struct StudyToleranceArguments : StudyOfScenario {
  ToleranceOptions options;
};

struct StudyOrderArguments : StudyOfScenario {
  OrderOptions options;
};

struct StudyIterationArguments : StudyOfScenario {
  std::optional<int> iterations;  ///< none: the scenario's
  IterationOptions options;       ///< but for the iterations
};

struct StudyScalingArguments {
  NetworkArguments networks;
  ScalingOptions options;
  bool weak = false;
  std::optional<std::filesystem::path> out;
  ScalingFiles files;
  bool report = false;
  bool json = false;
};

struct GenerateArguments {
  std::string kind;                          ///< of network, as generate_kinds() lists them
  std::map<std::string, std::string> given;  ///< values by option, unread
  std::optional<std::filesystem::path> out;  ///< none: stdout
};

/// A file of another format, to be made a scenario.
struct ImportArguments {
  std::filesystem::path file;
  std::optional<double> step_s, duration_s;
  bool free_base = false;
  bool ground = false;
  bool hold = false;
  bool motors = false;
  bool without_limits = false;
  std::vector<std::string> cut;  ///< joints
  double stop_time_s = 0.0;      ///< 0: by the step
  bool loads_fmus = false;       ///< which are code
  bool as_samples = false;       ///< connections of FMUs are signals, and none power bonds
  bool process = false;          ///< each FMU in a process of its own
  std::optional<std::filesystem::path> out;  ///< none: stdout
};

/// A scenario, to be made an FMU.
struct FmuArguments {
  ScenarioArguments scenario;
  FmuExportOptions options;
  std::optional<std::filesystem::path> out;  ///< required
};

/// A scenario whose parts are FMUs, to be made a package of a system structure.
struct SspArguments {
  ScenarioArguments scenario;
  std::optional<std::filesystem::path> out;  ///< required
};

using Command = std::variant<RunArguments, ReportArguments, ValidateArguments, CheckArguments,
                             ListArguments, SchemaArguments, TuneArguments, StudyBudgetArguments,
                             StudyRateArguments, StudyOrderArguments, StudyToleranceArguments,
                             StudyIterationArguments, StudyScalingArguments, StudyDelayArguments,
                             GenerateArguments, ImportArguments, FmuArguments, SspArguments>;

/// Each writes data to `out` and talk to `err`, and returns the exit code. Bad input and failures
/// are thrown: ConfigError, StepError, std::runtime_error.
int run_command(const RunArguments& arguments, std::ostream& out, std::ostream& err);
int run_command(const ReportArguments& arguments, std::ostream& out, std::ostream& err);
int run_command(const ValidateArguments& arguments, std::ostream& out, std::ostream& err);
int run_command(const CheckArguments& arguments, std::ostream& out, std::ostream& err);
int run_command(const ListArguments& arguments, std::ostream& out, std::ostream& err);
/// Of `arguments.blocks`.
int list_blocks(const ListArguments& arguments, std::ostream& out, std::ostream& err);
/// Of `arguments.methods`.
int list_methods(const ListArguments& arguments, std::ostream& out, std::ostream& err);
int run_command(const SchemaArguments& arguments, std::ostream& out, std::ostream& err);
int run_command(const TuneArguments& arguments, std::ostream& out, std::ostream& err);
int run_command(const StudyBudgetArguments& arguments, std::ostream& out, std::ostream& err);
int run_command(const StudyRateArguments& arguments, std::ostream& out, std::ostream& err);
int run_command(const StudyDelayArguments& arguments, std::ostream& out, std::ostream& err);
int run_command(const StudyOrderArguments& arguments, std::ostream& out, std::ostream& err);
int run_command(const StudyToleranceArguments& arguments, std::ostream& out, std::ostream& err);
int run_command(const StudyIterationArguments& arguments, std::ostream& out, std::ostream& err);
int run_command(const StudyScalingArguments& arguments, std::ostream& out, std::ostream& err);
int run_command(const GenerateArguments& arguments, std::ostream& out, std::ostream& err);
int run_command(const ImportArguments& arguments, std::ostream& out, std::ostream& err);
int run_command(const FmuArguments& arguments, std::ostream& out, std::ostream& err);
int run_command(const SspArguments& arguments, std::ostream& out, std::ostream& err);

/// The rules behind words: "uniform" and "per_port" are the scenario's own values. Errors:
/// ScenarioError where it gives none of that kind.
std::vector<ImpedanceKind> impedance_kinds(const Scenario& scenario,
                                           const std::vector<std::string>& words,
                                           const std::string& file);

/// A stepper for a scenario. Errors: ScenarioError with every defect of the options.
Stepper make_stepper(const Scenario& scenario, const StepperOptions& options,
                     const std::string& file, StatusLine& status);

}  // namespace portwave::cli
