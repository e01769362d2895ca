// portwave check
#ifdef PORTWAVE_CLI

#include <algorithm>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/files/cli_process.hpp"
#include "support/files/source_folder.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::test_cli_check {
namespace {

using Json = nlohmann::json;
using testing::contains;
using testing::portwave_cli;
using testing::ProcessResult;
using testing::said;
using testing::Words;
using testing::operator+;

std::string example(const std::string& name) { return testing::source_file("examples/" + name); }

/// A scenario of one free part with a given energy of a way p and a momentum q.
class EnergyFile {
 public:
  explicit EnergyFile(const std::string& energy) : file_((folder_.path() / "own.json").string()) {
    const Json port = {{"name", "end"}, {"causality", "effort_in"}, {"domain", "translation"}};
    const Json parameters = {{"states", {{"p", "m"}, {"q", "kg m/s"}}},
                             {"energy", energy},
                             {"J", {{0, 1}, {-1, 0}}},
                             {"G", {{0}, {1}}},
                             {"ports", Json::array({port})}};
    const Json part = {{"name", "own"}, {"type", "port_hamiltonian"}, {"parameters", parameters}};
    const Json scenario = {{"name", "own"},
                           {"time", {{"step_s", 0.1}, {"steps", 10}}},
                           {"subsystems", Json::array({part})},
                           {"couplings", {{{"kind", "free"}, {"ports", {"own.end"}}}}}};
    testing::write_text(file_, scenario.dump());
  }
  const std::string& file() const { return file_; }

 private:
  testing::TemporaryFolder folder_;
  std::string file_;
};

TEST(CliCheck, ShowsTheLawsOfTheDistinctPartsOfAScenario) {
  const ProcessResult result = portwave_cli({"check", example("two_oscillators.json")});
  EXPECT_EQ(result.exit_code, 0) << said(result);
  EXPECT_TRUE(contains(result.out, "energy_law")) << said(result);
  EXPECT_TRUE(contains(result.err, "Every law that was tested holds.")) << said(result);
  const ProcessResult chain = portwave_cli({"check", example("chain_64.json"), "--json"});
  const Json parts = Json::parse(chain.out);
  ASSERT_EQ(parts.size(), 2U) << said(chain);  // the last block is another
  EXPECT_TRUE(contains(parts[0]["part"].get<std::string>(), "and 62 equal to it"));
  EXPECT_TRUE(parts[0]["holds"].get<bool>());
}

TEST(CliCheck, TellsTheLawThatAPartBreaksAndTheCase) {
  const EnergyFile good("p^2/2 + q^2 + q^4"),
      bad("p^2/2 + q^2 + 0.3*p*q^3");  // has no least energy
  EXPECT_EQ(portwave_cli({"check", good.file()}).exit_code, 0);
  const ProcessResult broken = portwave_cli({"check", bad.file()});
  EXPECT_EQ(broken.exit_code, 1) << said(broken);
  EXPECT_TRUE(contains(broken.out, "BROKEN")) << said(broken);
  EXPECT_TRUE(contains(broken.out, "  energy_law: port solve: not_converged, h=0.1"))
      << said(broken);
  EXPECT_TRUE(contains(broken.err, "1 of 1 part breaks a law.")) << said(broken);
  const Json parts = Json::parse(portwave_cli({"check", bad.file(), "--json"}).out);
  EXPECT_FALSE(parts[0]["holds"].get<bool>());
  EXPECT_TRUE(std::ranges::any_of(parts[0]["laws"], [](const Json& law) {
    return law["law"] == "energy_law" && !law["holds"].get<bool>() && law["worst"].is_null();
  }));
}

TEST(CliCheck, TakesATypeAndTheOptionsOfTheTrials) {
  const Words line = {"check", "mass", "--steps-s", "0.01", "--trials", "2", "--seed", "7"};
  const ProcessResult result = portwave_cli(line);
  EXPECT_EQ(result.exit_code, 0) << said(result);
  EXPECT_TRUE(contains(result.out, "mass, with the parameters of its example")) << said(result);
  EXPECT_EQ(portwave_cli(line).out, result.out);
  EXPECT_NE(portwave_cli({"check", "mass", "--steps-s", "0.01", "--seed", "8"}).out, result.out);
}

TEST(CliCheck, RefusesWhatItCannotFind) {
  const ProcessResult type = portwave_cli({"check", "mas", "--part", "a"});
  EXPECT_EQ(type.exit_code, 2) << said(type);
  EXPECT_TRUE(contains(type.err, "Did you mean \"mass\"?")) << said(type);
  EXPECT_TRUE(contains(type.err, "--part takes a part of a scenario file")) << said(type);
  const ProcessResult part =
      portwave_cli({"check", example("robot_arm.json"), "--part", "arn", "--part", "zzz"});
  EXPECT_EQ(part.exit_code, 2) << said(part);
  EXPECT_TRUE(contains(part.err, "there is no part \"arn\". Did you mean \"arm\"?")) << said(part);
  EXPECT_TRUE(contains(part.err, "there is no part \"zzz\"")) << said(part);
  EXPECT_EQ(portwave_cli({"check", "missing.json"}).exit_code, 2);
  EXPECT_EQ(portwave_cli({"check", "mass", "--steps-s", "0"}).exit_code, 2);
}

}  // namespace
}  // namespace portwave::test_cli_check
#endif
