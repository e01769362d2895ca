// Users who may have few threads: the program does with those, and says so.
#ifdef PORTWAVE_CLI

#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/files/cli_process.hpp"
#include "support/files/source_folder.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::test_cli_few_threads {
namespace {

using Json = nlohmann::json;
using testing::contains;
using testing::names_in;
using testing::ProcessResult;
using testing::read_text;
using testing::run_process;
using testing::said;
using testing::source_file;
using testing::TemporaryFolder;
using testing::Words;
using testing::operator+;

constexpr const char* kPrlimit = "/usr/bin/prlimit";
constexpr const char* kSetpriv = "/usr/bin/setpriv";

/// The program, started by a user who may have so many threads. Root may have any number, and runs it as
/// somebody who has no other; where another runs the tests, those of theirs count too.
class FewThreads {
 public:
  FewThreads() {
    namespace fs = std::filesystem;
    if (!fs::exists(kPrlimit) || !fs::exists(kSetpriv)) return;
    // Where that user may go.
    program_ = (folder_ / "portwave").string();
    fs::copy_file(PORTWAVE_CLI, program_);
    fs::permissions(folder_.path(), fs::perms::all);
    is_possible_ = run(100, {"--version"}).exit_code == 0;
  }

  bool is_possible() const { return is_possible_; }
  const std::filesystem::path& folder() const { return folder_.path(); }

  ProcessResult run(int threads, const Words& line) const {
    Words words = {kPrlimit, "--nproc=" + std::to_string(threads)};
    if (::geteuid() == 0) {
      words = words + Words{kSetpriv, "--reuid=" + user_, "--regid=" + user_, "--clear-groups"};
    }
    return run_process(words + Words{program_} + line);
  }

 private:
  TemporaryFolder folder_;
  /// Not that of another test which runs at the same time.
  std::string user_ = std::to_string(61000 + ::getpid() % 3000);
  std::string program_;
  bool is_possible_ = false;
};

std::string copy_into(const FewThreads& user, const char* example) {
  const auto to = user.folder() / std::filesystem::path(example).filename();
  std::filesystem::copy_file(source_file(example), to);
  return to.string();
}

TEST(CliFewThreads, RunsAndStudiesDoWithThoseThatThereAre) {
  const FewThreads user;
  if (!user.is_possible())
    GTEST_SKIP() << "needs prlimit and setpriv, and a folder that all may read";
  const std::string chain = copy_into(user, "examples/msd_64x50.json");
  const std::string single = copy_into(user, "examples/msd_singlerate.json");
  const std::string short_time = R"(/time={"step_s": 0.01, "steps": 10})";
  const std::vector<Words> lines = {
      {"run", chain, "--steps", "20", "--executor", "async"},
      {"run", chain, "--steps", "20", "--executor", "graph"},
      {"run", chain, "--steps", "20", "--live", "--out", (user.folder() / "out").string()},
      {"study", "budget", chain, "--budgets", "1", "--set", short_time},
      {"study", "tolerance", chain, "--tolerances", "1e-2", "--set", short_time},
      {"study", "order", single, "--steps", "0.0078125,0.001953125"}};
  for (const Words& line : lines) {
    for (const int threads : {1, 3}) {
      const ProcessResult result = user.run(threads, line + Words{"--threads", "8"});
      EXPECT_EQ(result.exit_code, 0) << line[0] << ' ' << line[1] << ": " << said(result);
      EXPECT_TRUE(contains(result.err, "note: 8 threads were requested")) << said(result);
    }
  }
  // Control: where there are enough nothing is said.
  EXPECT_FALSE(
      contains(user.run(1000, lines[0] + Words{"--threads", "2"}).err, "threads were requested"));
}

TEST(CliFewThreads, AScalingStudyMeasuresNoMoreThanThereAre) {
  const FewThreads user;
  if (!user.is_possible())
    GTEST_SKIP() << "needs prlimit and setpriv, and a folder that all may read";
  const ProcessResult result =
      user.run(1, {"study", "scaling", "--generate", "chain", "--sizes", "50", "--threads", "1,2,4",
                   "--repetitions", "1", "--json"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  for (const Json& row : Json::parse(result.out).at("rows")) {
    const bool is_measured = row.at("source") == "measured";
    EXPECT_EQ(is_measured, row.at("threads") == 1) << row.dump();
  }
}

TEST(CliFewThreads, ARunThatCannotBeServedSaysSo) {
  const FewThreads user;
  if (!user.is_possible())
    GTEST_SKIP() << "needs prlimit and setpriv, and a folder that all may read";
  const std::string chain = copy_into(user, "examples/msd_64x50.json");
  const auto out = user.folder() / "out";
  for (const int threads : {1, 2}) {  // one of them writes the files
    const ProcessResult result =
        user.run(threads, {"run", chain, "--steps", "20", "--serve", "0", "--out", out.string()});
    EXPECT_EQ(result.exit_code, 3) << said(result);
    EXPECT_TRUE(contains(result.err, "--serve needs a thread")) << said(result);
    EXPECT_FALSE(std::filesystem::exists(out)) << threads;
  }
  // Control: it needs no more than one of its own.
  EXPECT_EQ(user.run(5, {"run", chain, "--steps", "20", "--serve", "0"}).exit_code, 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Threads take address space, and oneTBB ends the program where it is refused one. Whatever the limit: the
// program runs, with as many threads as there is room for, or says that there is too little memory.
TEST(CliFewThreads, WhereAddressSpaceIsLimited) {
  if (!std::filesystem::exists(kPrlimit)) GTEST_SKIP() << "needs prlimit";
  const TemporaryFolder folder;
  const std::string chain = source_file("examples/msd_64x50.json");
  int fewer = 0, ran = 0;
  for (const char* const resource : {"--as=", "--data="}) {
    for (const int megabytes : {80, 120, 160, 200, 240, 280, 400, 600}) {
      for (const char* const executor : {"async", "graph"}) {
        const std::string limit = resource + std::to_string(megabytes << 20);
        const ProcessResult result = run_process(
            Words{kPrlimit, limit} +
            testing::command({"run", chain, "--steps", "5", "--threads", "64", "--executor",
                              executor, "--out", (folder / "out").string()}));
        EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 3)
            << limit << ", " << executor << ": " << said(result);
        ran += result.exit_code == 0 ? 1 : 0;
        fewer += contains(result.err, "note: 64 threads were requested, and") ? 1 : 0;
      }
    }
  }
  EXPECT_GT(ran, 0);
  EXPECT_GT(fewer, 0);
}
#endif

}  // namespace
}  // namespace portwave::test_cli_few_threads

#endif  // PORTWAVE_CLI
