#include <algorithm>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/error.hpp"

namespace portwave::test_errors {
namespace {

TEST(ConfigError, SaysEveryIssueOnALineOfItsOwn) {
  const ConfigError error(
      {{"/J", "is not skew"}, {"", "as a whole at fault"}, {"/Q", "must be 2×2"}});
  EXPECT_STREQ(error.what(), "/J: is not skew\nas a whole at fault\n/Q: must be 2×2");
  EXPECT_EQ(error.issues().size(), 3U);
  EXPECT_STREQ(ConfigError("/mass_kg", "must be > 0").what(), "/mass_kg: must be > 0");
}

TEST(ConfigError, SaysFiftyIssuesAndTheNumberOfTheOthers) {
  const auto lines = [](std::size_t issues) {
    const std::string text = ConfigError(Issues(issues, {"/parts", "wrong"})).what();
    return std::pair{std::ranges::count(text, '\n') + 1, text.substr(text.rfind('\n') + 1)};
  };
  EXPECT_EQ(lines(50), std::pair(50L, std::string("/parts: wrong")));
  EXPECT_EQ(lines(53), std::pair(51L, std::string("... and 3 more")));
  EXPECT_EQ(ConfigError(Issues(53, {"", "wrong"})).issues().size(), 53u);
}

TEST(ConfigError, IsThrownExactlyWhenThereIsAnIssue) {
  EXPECT_NO_THROW(throw_if_any({}));
  EXPECT_THROW(throw_if_any({{"/a", "b"}}), ConfigError);
}

TEST(Issues, AreMovedUnderAPrefix) {
  Issues issues = {{"/a", "1"}};
  append(issues, "/subsystems/2", {{"/b", "2"}, {"", "3"}});
  ASSERT_EQ(issues.size(), 3U);
  EXPECT_EQ(issues[0].where, "/a");
  EXPECT_EQ(issues[1].where, "/subsystems/2/b");
  EXPECT_EQ(issues[2].where, "/subsystems/2");
  EXPECT_EQ(issues[2].what, "3");
}

struct Slip {
  std::string word;
  std::vector<std::string> candidates;
  std::string nearest;
};

TEST(NearestName, FindsSlipsAndNothingElse) {
  const std::vector<std::string> units = {"mass_kg", "stiffness_N_per_m", "damping_Ns_per_m",
                                          "damping_ratio"};
  const std::vector<Slip> slips = {
      {"shaft2", {"shaft", "terminals"}, "shaft"},         // an insertion
      {"shat", {"shaft", "terminals"}, "shaft"},           // a deletion
      {"shaff", {"shaft", "terminals"}, "shaft"},          // a substitution
      {"hsaft", {"shaft", "terminals"}, "shaft"},          // a swap of neighbours
      {"SHAFT", {"shaft", "terminals"}, "shaft"},          // case does not count
      {"tremnials", {"shaft", "terminals"}, "terminals"},  // two edits in nine letters
      {"trmnlas", {"shaft", "terminals"}, ""},             // three in seven: no slip
      {"wheel", {"shaft", "terminals"}, ""},               // nothing near
      {"a", {"b", "c"}, ""},                               // one letter is not near another
      {"", {"a", "shaft"}, ""},                            // nothing was said
      {"shaft", {}, ""},                                   // nothing to suggest
      {"mass", units, "mass_kg"},                          // the unit is missing
      {"stiffness", units, "stiffness_N_per_m"},           //
      {"damping", units, ""},                              // two begin so
      {"da", {"damping_Ns_per_m"}, ""},                    // too short to say
      {"mass_k", {"mass_kg", "mass_km"}, "mass_kg"},       // a tie goes to the first
      {"mass_k", {"mass_km", "mass_kg"}, "mass_km"},       //
      {"left", {"lef", "Left", "left_end"}, "Left"},       // the nearest wins over the first
  };
  for (const Slip& slip : slips) {
    EXPECT_EQ(nearest_name(slip.word, slip.candidates), slip.nearest) << "word " << slip.word;
  }
}

TEST(NearestName, BecomesAQuestion) {
  EXPECT_EQ(did_you_mean("shaft2", {"shaft"}), " Did you mean \"shaft\"?");
  EXPECT_EQ(did_you_mean("wheel", {"shaft"}), "");
}

// A threshold that let everything through would pass the table's positive half.
TEST(NearestNameControl, TheLimitGrowsWithTheWord) {
  const std::string name = "abcdefghijkl";
  EXPECT_EQ(nearest_name("ABcdefgh1234", {name}), name);  // four of twelve
  EXPECT_EQ(nearest_name("abcdefg12345", {name}), "");    // five of twelve
}

}  // namespace
}  // namespace portwave::test_errors
