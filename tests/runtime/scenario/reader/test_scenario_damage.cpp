#include <array>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/systems/scenario_fixtures.hpp"

namespace portwave::test_scenario_damage {
namespace {

using testing::base_scenario;
using testing::base_text;
using testing::Json;

constexpr int kRounds = 3000;

struct Outcome {
  bool loads = false;
  std::string defect;  ///< of the outcome itself: what an answer to a user must not look like
};

// A scenario either loads or is refused with places and reasons; nothing else may come out.
Outcome outcome_of(const std::string& text) {
  Outcome outcome;
  try {
    const Scenario scenario = testing::parse(text);
    outcome.loads = true;
    if (scenario.steps < 1) outcome.defect = "loads without steps";
  } catch (const ScenarioError& error) {
    if (error.issues().empty()) outcome.defect = "refused without a reason";
    for (const Issue& issue : error.issues()) {
      const bool is_placed = issue.where.empty() || issue.where.front() == '/';
      if (!is_placed || issue.what.empty()) outcome.defect = "an issue at '" + issue.where + "'";
    }
    // nlohmann refuses to write text that is not UTF-8.
    if (Json(error.report()).dump().empty()) outcome.defect = "an empty report";
  }
  return outcome;
}

// Every place in a document, parents first.
void collect_places(const Json& value, const Json::json_pointer& place,
                    std::vector<Json::json_pointer>& places) {
  places.push_back(place);
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) collect_places(member, place / key, places);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) collect_places(value[i], place / i, places);
  }
}

TEST(ScenarioDamage, AnyBytesEndInAnAnswer) {
  constexpr std::string_view kBytes = "{}[]:,\"\\ \n0123456789.eE+-tfn/\0\x80\xFF";
  std::mt19937 random(7);
  const auto below = [&random](std::size_t n) { return random() % n; };
  for (int round = 0; round < kRounds; ++round) {
    std::string text = base_text();
    for (std::size_t k = 0; k <= below(3); ++k) {
      const std::size_t place = below(text.size());
      switch (below(4)) {
        case 0:
          text[place] = kBytes[below(kBytes.size())];
          break;
        case 1:
          text.insert(place, 1, kBytes[below(kBytes.size())]);
          break;
        case 2:
          text.erase(place, 1 + below(20));
          break;
        default:
          text.insert(place, text.substr(below(text.size()), below(40)));
      }
    }
    EXPECT_EQ(outcome_of(text).defect, "") << "seed 7, round " << round << "\n" << text;
  }
}

TEST(ScenarioDamage, AnyValuesEndInAnAnswer) {
  const std::vector<Json> values = {nullptr,
                                    true,
                                    0,
                                    -1,
                                    0.5,
                                    1e300,
                                    5e-324,
                                    std::int64_t{9223372036854775807},
                                    "",
                                    "A.coupling",
                                    "A.q1",
                                    "table",
                                    "per_port",
                                    Json::array(),
                                    Json::array({1, 2}),
                                    Json::array({Json::array({0, 0})}),
                                    Json::object(),
                                    {{"kind", "kernel"}},
                                    {{"entries", Json::array({Json::array({9, 9, 1})})}}};
  std::vector<Json::json_pointer> places;
  collect_places(base_scenario(), Json::json_pointer(), places);
  std::mt19937 random(11);
  const auto below = [&random](std::size_t n) { return random() % n; };
  int loaded = 0;
  for (int round = 0; round < kRounds; ++round) {
    Json scenario = base_scenario();
    for (std::size_t k = 0; k <= below(3); ++k) {
      const auto& place = places[below(places.size())];
      if (scenario.contains(place)) scenario[place] = values[below(values.size())];
    }
    const Outcome outcome = outcome_of(scenario.dump());
    EXPECT_EQ(outcome.defect, "") << "seed 11, round " << round << "\n" << scenario.dump();
    loaded += outcome.loads ? 1 : 0;
  }
  // Some changes do no harm: the sweep reaches both answers.
  EXPECT_GT(loaded, 10);
  EXPECT_LT(loaded, kRounds / 2);
}

}  // namespace
}  // namespace portwave::test_scenario_damage
