#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <limits>
#include <numbers>
#include <optional>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/runtime/output/file_recorder.hpp>
#include <portwave/subsystems/linear/linear_part.hpp>

#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"
#include "support/guard_of.hpp"
#include "support/systems/oscillator_pair.hpp"

namespace portwave::test_recorder {
namespace {

using testing::duffing_linear_pair;
using testing::names_in;
using testing::pair_options;
using testing::quantity;
using testing::read_csv;
using testing::read_text;
using testing::TemporaryFolder;
using testing::write_text;

using Names = std::vector<std::string>;

/// Bitwise, so that -0.0 is not 0.0.
bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

SparseMatrix diagonal(int size, double value) {
  SparseMatrix matrix(size, size);
  matrix.setIdentity();
  return matrix * value;
}

/// A part without storage or ports that holds any numbers as its state.
std::unique_ptr<Subsystem> number_holder(int count) {
  Signature signature;
  signature.type = "number_holder";
  for (int i = 0; i < count; ++i) signature.states.push_back({"x" + std::to_string(i), "1"});
  return std::make_unique<LinearPortHamiltonian>(std::move(signature), Structure::zero(count, 0),
                                                 SparseMatrix(count, count));
}

/// A resistor of three scalar ports in one.
std::unique_ptr<Subsystem> wide_resistor() {
  Signature signature;
  signature.type = "wide_resistor";
  signature.ports = {{"p", Causality::flow_in, Domain::electrical, 3}};
  Structure structure = Structure::zero(0, 3);
  structure.S = diagonal(3, 2.0);
  return std::make_unique<LinearPortHamiltonian>(std::move(signature), std::move(structure),
                                                 SparseMatrix(0, 0));
}

/// The pair, a part with a wide port, and one that ends in a resistor, which is a part of its own
/// with a dot in its name: "C.coupling".
System labelled_system() {
  SystemBuilder builder;
  builder.add("A", duffing_oscillator({.coupling_stiffness_N_per_m = 1.0}));
  builder.add("B", linear_oscillator({.stiffness_N_per_m = 1.0}));
  builder.add("wide", wide_resistor());
  builder.connect("A.coupling", "B.coupling");
  builder.add("C", linear_oscillator({}));
  builder.join(joint::Free{}, {"wide.p"});
  builder.join(joint::Resistive{1.0}, {"C.coupling"});
  return builder.build();
}

TEST(ResolveQuantity, FindsEveryFormOfQuantity) {
  const System system = labelled_system();
  struct Case {
    const char* label;
    Quantity::Kind kind;
    int part;
    int index;
    const char* unit;
  };
  const int wide = system.first_scalar_port(2);
  for (const Case& expected : {
           Case{"A.q1", Quantity::Kind::state, 0, 0, "m"},
           Case{"A.delta", Quantity::Kind::state, 0, 2, "m"},
           Case{"A.storage", Quantity::Kind::storage, 0, 0, "J"},
           Case{"A.coupling.effort", Quantity::Kind::effort, 0, 0, "N"},
           Case{"B.coupling.flow", Quantity::Kind::flow, 1, 1, "m/s"},
           Case{"B.coupling.flow[0]", Quantity::Kind::flow, 1, 1, "m/s"},
           Case{"A.coupling.incident", Quantity::Kind::incident, 0, 0, "sqrt(J)"},
           Case{"A.coupling.outgoing", Quantity::Kind::outgoing, 0, 0, "sqrt(J)"},
           Case{"wide.p.effort[2]", Quantity::Kind::effort, 2, wide + 2, "V"},
           Case{"C.coupling.effort", Quantity::Kind::effort, 3, wide + 3, "N"},
           Case{"C.coupling.storage", Quantity::Kind::storage, 4, 0, "J"},
           Case{"wide.p[1].flow", Quantity::Kind::flow, 2, wide + 1, "A"},
       }) {
    Quantity found;
    Issues issues;
    ASSERT_TRUE(resolve_quantity(system, expected.label, "/x", found, issues))
        << expected.label << ": " << issues.front().what;
    EXPECT_TRUE(issues.empty()) << expected.label;
    EXPECT_EQ(found.label, expected.label);
    EXPECT_EQ(found.kind, expected.kind) << expected.label;
    EXPECT_EQ(found.part, expected.part) << expected.label;
    EXPECT_EQ(found.index, expected.index) << expected.label;
    EXPECT_EQ(found.unit, expected.unit) << expected.label;
  }
}

TEST(ResolveQuantity, TellsWhatIsMeantByASlip) {
  const System system = labelled_system();
  struct Case {
    const char* label;
    const char* hint;
  };
  for (const Case& slip :
       {Case{"A.q2", "Did you mean \"A.q1\"?"}, Case{"A.dleta", "Did you mean \"A.delta\"?"},
        Case{"A.coupling.efort", "Did you mean \"A.coupling.effort\"?"},
        Case{"A.couplign.flow", "Did you mean \"A.coupling.flow\"?"},
        Case{"wid.p.effort[0]", "Did you mean \"wide\"?"},
        Case{"delta", "Did you mean \"A.delta\"?"}, Case{"", "expected \"part.state\""},
        Case{".", "there is no subsystem \"\""},
        Case{"A.", "subsystem \"A\" has nothing named \"\""},
        Case{"nothing.like.it", "there is no subsystem \"nothing\""},
        Case{"wide.p.effort", "3 components: write \"wide.p.effort[0]\" to [2]"},
        Case{"wide.p.effort[3]", "3 components"}, Case{"wide.p.effort[-1]", "3 components"},
        Case{"wide.p.effort[1x]", "wide.p.effort[1]"},
        Case{"A.coupling.effort[1]", "1 component:"}}) {
    Quantity found;
    found.label = "untouched";
    Issues issues;
    EXPECT_FALSE(resolve_quantity(system, slip.label, "/here/3", found, issues)) << slip.label;
    ASSERT_EQ(issues.size(), 1u) << slip.label;
    EXPECT_EQ(issues[0].where, "/here/3");
    EXPECT_NE(issues[0].what.find(slip.hint), std::string::npos)
        << slip.label << ": " << issues[0].what;
    EXPECT_EQ(found.label, "untouched") << slip.label;
  }
}

/// Records `steps` steps of the pair; the rows that were written, as the stepper had them.
struct Recorded {
  std::vector<std::vector<double>> trajectory;
  std::vector<double> stored_J;
  EnergyTotals totals;
  std::int64_t iterations = 0;
};

Recorded record_pair(const std::filesystem::path& folder, int steps, int every) {
  const System system = duffing_linear_pair();
  Stepper stepper(system, pair_options(5));
  const std::vector<Quantity> quantities = {
      quantity(system, "A.q1"), quantity(system, "B.coupling.flow"), quantity(system, "A.storage")};
  FileRecorder recorder(folder, {.quantities = quantities, .every = every});
  Recorded result;
  const auto note = [&] {
    if (stepper.step_index() % every != 0) return;
    std::vector<double> row = {stepper.time_s()};
    for (const Quantity& o : quantities) row.push_back(observe(stepper, o));
    result.trajectory.push_back(row);
    result.stored_J.push_back(stepper.storage(0) + stepper.storage(1));
  };
  recorder.record_initial(stepper);
  note();
  for (int n = 0; n < steps; ++n) {
    const StepReport report = stepper.step();
    recorder.record(stepper, report);
    note();
  }
  recorder.finish();
  result.totals = stepper.energy();
  result.iterations = stepper.iterations().total;
  return result;
}

TEST(FileRecorder, WritesWhatTheStepperHadBitByBit) {
  for (const int every : {1, 2, 7}) {
    const TemporaryFolder folder;
    const Recorded expected = record_pair(folder / "deep/out", 42, every);
    EXPECT_EQ(names_in(folder / "deep/out"),
              (Names{"energy.csv", "network.json", "trajectory.csv"}));

    const auto table = read_csv(folder / "deep/out/trajectory.csv");
    EXPECT_EQ(table.names, (Names{"time_s", "A.q1", "B.coupling.flow", "A.storage"}));
    ASSERT_EQ(table.rows.size(), 1u + 42u / static_cast<unsigned>(every));
    for (std::size_t n = 0; n < table.rows.size(); ++n) {
      for (std::size_t c = 0; c < table.names.size(); ++c) {
        EXPECT_TRUE(same_bits(table.rows[n][c], expected.trajectory[n][c]))
            << "every=" << every << " row " << n << " column " << table.names[c];
      }
    }
  }
}

TEST(FileRecorder, EnergyRowsCloseTheLedgerAtAnyInterval) {
  for (const int every : {1, 2, 7}) {
    const TemporaryFolder folder;
    const Recorded expected = record_pair(folder.path(), 42, every);
    const auto table = read_csv(folder / "energy.csv");
    EXPECT_EQ(table.names,
              (Names{"step", "time_s", "stored_J", "supplied_J", "dissipated_J", "mismatch_J",
                     "impact_J", "tank_J", "max_passivity_residual_J", "iterations", "guard_alpha",
                     "guard_withheld_J", "guard_tolerated_J", "residual", "step_s"}));
    ASSERT_EQ(table.rows.size(), expected.stored_J.size());
    EXPECT_DOUBLE_EQ(table.rows[0][table.column("stored_J")], testing::kPairEnergy_J);
    double mismatch_J = 0.0;
    double iterations = 0.0;
    for (std::size_t n = 0; n < table.rows.size(); ++n) {
      const auto at = [&](const char* name) { return table.rows[n][table.column(name)]; };
      EXPECT_EQ(at("step"), static_cast<double>(n) * every);
      if (n == 0) {
        for (const char* name : {"time_s", "supplied_J", "dissipated_J", "mismatch_J",
                                 "max_passivity_residual_J", "iterations"}) {
          EXPECT_EQ(at(name), 0.0) << name;
        }
        continue;
      }
      const double change = at("stored_J") - table.rows[n - 1][table.column("stored_J")];
      EXPECT_NEAR(change, at("supplied_J") - at("dissipated_J") - at("mismatch_J"), 1e-11)
          << "every=" << every << " row " << n;
      mismatch_J += at("mismatch_J");
      iterations += at("iterations");
    }
    EXPECT_NEAR(mismatch_J, expected.totals.mismatch_J, 1e-11) << "every=" << every;
    EXPECT_EQ(iterations, static_cast<double>(expected.iterations)) << "every=" << every;
    EXPECT_NE(mismatch_J, 0.0) << "nothing was booked, so nothing was tested";
  }
}

TEST(FileRecorder, SaysWhatTheGuardDid) {
  for (const int every : {1, 3}) {
    const TemporaryFolder folder;
    const System system = testing::lossless_pair();
    StepperOptions options = pair_options(2);
    options.method.waves().impedance = {20.0};
    options.method.waves().guard = true;
    Stepper stepper(system, options);
    FileRecorder recorder(folder.path(), {.every = every});
    recorder.record_initial(stepper);
    std::vector<double> alpha = {1.0}, withheld_J = {0.0};
    for (int n = 0; n < 60; ++n) {
      const StepReport report = stepper.step();
      recorder.record(stepper, report);
      if (n % every == 0) {
        alpha.push_back(1.0);
        withheld_J.push_back(0.0);
      }
      for (const GuardUse& use : stepper.waves()->guard_uses()) {
        alpha.back() = std::min(alpha.back(), use.alpha);
        withheld_J.back() += use.withheld_J;
      }
    }
    recorder.finish();
    ASSERT_GT(testing::guard_of(stepper).steps, 5) << "nothing was tested";
    const auto table = read_csv(folder / "energy.csv");
    ASSERT_EQ(table.rows.size(), alpha.size());
    for (std::size_t n = 0; n < table.rows.size(); ++n) {
      EXPECT_EQ(table.rows[n][table.column("guard_alpha")], alpha[n]) << "every=" << every;
      EXPECT_EQ(table.rows[n][table.column("guard_withheld_J")], withheld_J[n]) << n;
    }
  }
}

TEST(FileRecorder, KeepsEveryDouble) {
  using Limits = std::numeric_limits<double>;
  const std::vector<double> numbers = {0.1,
                                       -0.0,
                                       1.0 / 3.0,
                                       std::numbers::pi * 1e200,
                                       -std::numbers::e * 1e-200,
                                       123456789012345680.0,
                                       std::nextafter(1.0, 2.0),
                                       Limits::max(),
                                       Limits::min(),
                                       Limits::denorm_min(),
                                       9007199254740993.0,
                                       1e23};
  const int count = static_cast<int>(numbers.size());
  SystemBuilder builder;
  builder.add("A", number_holder(count), {.initial_state = numbers});
  const System system = builder.build();
  const Stepper stepper(system, pair_options(1));
  std::vector<Quantity> quantities;
  for (int i = 0; i < count; ++i) {
    quantities.push_back(quantity(system, "A.x" + std::to_string(i)));
  }
  const TemporaryFolder folder;
  FileRecorder recorder(folder.path(), {.quantities = quantities});
  recorder.record_initial(stepper);
  recorder.finish();
  const std::string text = read_text(folder / "trajectory.csv");
  std::istringstream line(text.substr(text.find('\n') + 1));
  std::string field;
  std::getline(line, field, ',');
  for (const double number : numbers) {
    std::getline(line, field, number == numbers.back() ? '\n' : ',');
    EXPECT_TRUE(same_bits(std::strtod(field.c_str(), nullptr), number)) << number << " " << field;
  }
  // Control: six digits, as streams write them, would not do.
  std::ostringstream short_form;
  short_form << numbers[2];
  EXPECT_FALSE(same_bits(std::strtod(short_form.str().c_str(), nullptr), numbers[2]));
}

TEST(FileRecorder, QuotesLabelsThatWouldSplit) {
  const System system = duffing_linear_pair();
  Quantity odd = quantity(system, "A.q1");
  odd.label = "a \"b\", c";
  const TemporaryFolder folder;
  FileRecorder recorder(folder.path(), {.quantities = {odd}});
  const Stepper stepper(system, pair_options(1));
  recorder.record_initial(stepper);
  recorder.finish();
  const std::string text = read_text(folder / "trajectory.csv");
  EXPECT_TRUE(text.starts_with("time_s,\"a \"\"b\"\", c\"\n")) << text;
}

TEST(FileRecorder, ShowsNoNamesBeforeTheEnd) {
  const TemporaryFolder folder;
  const auto out = folder / "out";
  const System system = duffing_linear_pair();
  Stepper stepper(system, pair_options(1));
  {
    FileRecorder recorder(out, {.quantities = {quantity(system, "A.q1")}});
    recorder.record_initial(stepper);
    // More than the buffers hold, so that some of it is in the files.
    for (int n = 0; n < 30000; ++n) recorder.record(stepper, stepper.step());
    const std::string pid = std::to_string(::getpid());
    EXPECT_EQ(names_in(out),
              (Names{".energy.csv." + pid + ".part", ".trajectory.csv." + pid + ".part"}));
    EXPECT_GT(std::filesystem::file_size(out / (".trajectory.csv." + pid + ".part")), 0u);
  }
  EXPECT_FALSE(std::filesystem::exists(out)) << "it was made for a run that did not end";
}

TEST(FileRecorder, LeavesEarlierResultsAloneWithoutFinish) {
  const TemporaryFolder folder;
  write_text(folder / "trajectory.csv", "earlier\n");
  const System system = duffing_linear_pair();
  const Stepper stepper(system, pair_options(1));
  {
    FileRecorder recorder(folder.path(), {.quantities = {quantity(system, "A.q1")}});
    recorder.record_initial(stepper);
  }
  EXPECT_EQ(names_in(folder.path()), (Names{"trajectory.csv"}));
  EXPECT_EQ(read_text(folder / "trajectory.csv"), "earlier\n");
  {
    FileRecorder recorder(folder.path(), {.quantities = {quantity(system, "A.q1")}});
    recorder.record_initial(stepper);
    recorder.finish();
  }
  EXPECT_EQ(names_in(folder.path()), (Names{"energy.csv", "network.json", "trajectory.csv"}));
  EXPECT_EQ(read_csv(folder / "trajectory.csv").rows.size(), 1u);
}

/// The message of the std::runtime_error that `act` throws.
template <class Act>
std::optional<std::string> failure_of(const Act& act) {
  try {
    act();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return std::nullopt;
}

TEST(FileRecorder, NamesTheFolderThatCannotBe) {
  const TemporaryFolder folder;
  write_text(folder / "file", "");
  for (const std::string name : {"file", "file/out"}) {
    const auto message = failure_of([&] { FileRecorder recorder(folder / name, {.every = 1}); });
    ASSERT_TRUE(message) << name;
    EXPECT_NE(message->find((folder / name).string()), std::string::npos) << *message;
  }
  EXPECT_EQ(names_in(folder.path()), (Names{"file"}));
}

/// Files of this process may not grow beyond `bytes`, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_ = {};
  void (*handler_)(int) = nullptr;
};

TEST(FileRecorder, ReportsADiskThatIsFull) {
  // The limits fall on the first flush of the buffer, on a later one and on none.
  for (const rlim_t limit : {rlim_t{1000}, rlim_t{100'000}, RLIM_INFINITY}) {
    const TemporaryFolder folder;
    const auto out = folder / "out";
    std::optional<std::string> message;
    {
      const FileSizeLimit full(limit);
      message = failure_of([&] { record_pair(out, 3000, 1); });
    }
    if (limit == RLIM_INFINITY) {
      EXPECT_FALSE(message) << *message;
      continue;
    }
    ASSERT_TRUE(message) << limit;
    EXPECT_NE(message->find("energy.csv"), std::string::npos) << *message;
    EXPECT_NE(message->find("File too large"), std::string::npos) << *message;
    EXPECT_FALSE(std::filesystem::exists(out)) << limit;
  }
}

TEST(FileRecorder, SummaryIsThereOnlyBesideItsOwnFiles) {
  const System system = duffing_linear_pair();
  const Stepper stepper(system, pair_options(1));
  for (const std::string taken : {"", "energy.csv", "trajectory.csv"}) {
    const TemporaryFolder folder;
    for (const char* name : {"energy.csv", "network.json", "summary.json", "trajectory.csv"}) {
      write_text(folder / name, "earlier\n");
    }
    FileRecorder recorder(folder.path(), {.quantities = {quantity(system, "A.q1")}});
    recorder.record_initial(stepper);
    if (taken.empty()) {
      recorder.finish("{}\n");
      EXPECT_EQ(names_in(folder.path()),
                (Names{"energy.csv", "network.json", "summary.json", "trajectory.csv"}));
      EXPECT_EQ(read_text(folder / "summary.json"), "{}\n");
      EXPECT_EQ(read_csv(folder / "trajectory.csv").rows.size(), 1u);
      continue;
    }
    // A name that is taken during the run: the set stays mixed, and no summary vouches for it.
    std::filesystem::remove(folder / taken);
    std::filesystem::create_directory(folder / taken);
    EXPECT_TRUE(failure_of([&] { recorder.finish("{}\n"); })) << taken;
    EXPECT_FALSE(std::filesystem::exists(folder / "summary.json")) << taken;
  }
}

TEST(FileRecorder, KeepsEarlierFilesWhenTheSummaryCannotBeWritten) {
  const TemporaryFolder folder;
  for (const char* name : {"energy.csv", "network.json", "summary.json", "trajectory.csv"}) {
    write_text(folder / name, "earlier\n");
  }
  {
    FileRecorder recorder(folder.path(), {.every = 1});
    const FileSizeLimit full(1000);
    const auto message = failure_of([&] { recorder.finish(std::string(2000, 'x')); });
    ASSERT_TRUE(message);
    EXPECT_NE(message->find("summary.json"), std::string::npos) << *message;
  }
  EXPECT_EQ(names_in(folder.path()),
            (Names{"energy.csv", "network.json", "summary.json", "trajectory.csv"}));
  for (const std::string& name : names_in(folder.path())) {
    EXPECT_EQ(read_text(folder / name), "earlier\n") << name;
  }
}

TEST(OutputFolder, TellsBeforehandThatANameIsTaken) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "b.json");
  const auto message = failure_of([&] { OutputFolder taken(folder.path(), {"a.json", "b.json"}); });
  ASSERT_TRUE(message);
  EXPECT_NE(message->find((folder / "b.json").string()), std::string::npos) << *message;
  EXPECT_EQ(names_in(folder.path()), (Names{"b.json"}));
  { const OutputFolder unused(folder / "new", {"a.json"}); }
  EXPECT_FALSE(std::filesystem::exists(folder / "new"));
  OutputFolder(folder / "new", {"a.json"}).keep();
  EXPECT_TRUE(std::filesystem::is_empty(folder / "new"));
}

/// A process that was killed leaves hidden files. Those of processes that live, and of other things, stay.
TEST(OutputFolder, IsTidiedOfWhatKilledProcessesLeft) {
  const TemporaryFolder folder;
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ASSERT_GT(gone, 0);
  ASSERT_EQ(::waitpid(gone, nullptr, 0), gone);
  const std::string left = "." + std::to_string(gone) + ".part";
  const std::string alive = "." + std::to_string(::getppid()) + ".part";
  const Names staying = {".energy.csv" + alive, ".notes.txt" + left, ".summary.json.12x.part",
                         "network.json" + left};
  for (const std::string& name : staying) write_text((folder / name).string(), "x");
  for (const char* name : {".network.json", ".summary.json", ".trajectory.csv", ".results.h5"}) {
    write_text((folder / (name + left)).string(), "x");
  }
  // Numbers of processes come again: this one began after the file was written.
  const auto before = folder / (".trajectory.csv" + alive);
  write_text(before.string(), "x");
  std::filesystem::last_write_time(
      before, std::filesystem::file_time_type::clock::now() - std::chrono::years(20));
  { const OutputFolder own(folder.path(), {"summary.json"}); }
  Names found = names_in(folder.path());
  std::ranges::sort(found);
  EXPECT_EQ(found, staying);
}

TEST(WriteFileAtomically, TakesAwayWhatAKilledProcessLeftOfTheFile) {
  const TemporaryFolder folder;
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(gone, nullptr, 0), gone);
  const std::string left = "." + std::to_string(gone) + ".part";
  write_text((folder / (".net.txt" + left)).string(), "x");
  write_text((folder / (".other.txt" + left)).string(), "x");
  write_file_atomically(folder / "net.txt", "new");
  Names found = names_in(folder.path());
  std::ranges::sort(found);
  EXPECT_EQ(found, (Names{".other.txt" + left, "net.txt"}));
}

TEST(WriteFileAtomically, ReplacesOrLeavesAlone) {
  const TemporaryFolder folder;
  const auto path = folder / "summary.json";
  const std::string large(200'000, 'x');
  for (const std::string& text : {std::string(), std::string("one\n"), large}) {
    write_file_atomically(path, text);
    EXPECT_EQ(read_text(path), text);
  }
  {
    const FileSizeLimit full(1000);
    const auto message = failure_of([&] { write_file_atomically(path, large + "y"); });
    ASSERT_TRUE(message);
    EXPECT_NE(message->find(path.string()), std::string::npos) << *message;
  }
  EXPECT_EQ(read_text(path), large);
  EXPECT_EQ(names_in(folder.path()), (Names{"summary.json"}));

  std::filesystem::create_directory(folder / "taken");
  EXPECT_TRUE(failure_of([&] { write_file_atomically(folder / "taken", "text"); }));
  EXPECT_EQ(names_in(folder.path()), (Names{"summary.json", "taken"}));
}

}  // namespace
}  // namespace portwave::test_recorder
