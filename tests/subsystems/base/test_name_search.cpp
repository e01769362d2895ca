#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/name_search.hpp"

namespace portwave::test_name_search {
namespace {

std::string lowered(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return word;
}

/// The whole table of edit distances: insertions, deletions, substitutions, swaps of neighbours.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min(
          {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

/// Every name compared in full.
std::string nearest_of_all(const std::string& given, const std::vector<std::string>& names) {
  const std::string word = lowered(given);
  std::size_t smallest = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::string nearest;
  for (const std::string& name : names) {
    const std::size_t edits = distance(word, lowered(name));
    if (edits >= smallest || edits >= std::max(word.size(), name.size())) continue;
    smallest = edits;
    nearest = name;
  }
  if (!nearest.empty() || word.size() < 3) return nearest;
  for (const std::string& name : names) {
    if (!lowered(name).starts_with(word)) continue;
    if (!nearest.empty()) return {};
    nearest = name;
  }
  return nearest;
}

/// Few letters, so that many words are near to many names.
std::string random_word(std::mt19937& random, std::size_t most) {
  std::string word(random() % (most + 1), 'a');
  for (char& c : word) c = "abAB_"[random() % 5];
  return word;
}

TEST(NameSearch, FindsWhatComparingEveryNameInFullFinds) {
  std::mt19937 random(7);
  int found = 0;
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<std::string> names(random() % 30);
    for (std::string& name : names) name = random_word(random, 14);
    NameSearch search(names);
    for (int i = 0; i < 25; ++i) {
      const std::string word = random_word(random, 14);
      const std::string expected = nearest_of_all(word, names);
      found += expected.empty() ? 0 : 1;
      ASSERT_EQ(search.nearest(word), expected)
          << "seed 7, trial " << trial << ", word \"" << word << "\"";
      ASSERT_EQ(nearest_name(word, names), expected) << word;
    }
  }
  EXPECT_GT(found, 2000);
  EXPECT_LT(found, 9000) << "words without a near name are to be among them";
}

TEST(NameSearch, ComparesOnlyNamesThatCanBeNearest) {
  std::vector<std::string> names;
  for (std::size_t length = 1; length <= 60; ++length) names.emplace_back(length, 'x');
  NameSearch search(names);
  // That of ten letters takes one edit. So does that of nine, which comes earlier and wins the tie.
  EXPECT_EQ(search.nearest("xxxxxxxxxy"), "xxxxxxxxx");
  EXPECT_LE(search.comparisons(), 3);
  EXPECT_EQ(search.nearest("xxxxxxxxxx"), "xxxxxxxxxx");
  EXPECT_LE(search.comparisons(), 4) << "nothing is nearer than the same";
}

std::vector<std::string> numbered(const char* prefix, int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(fmt::format("{}{:05}", prefix, i));
  return names;
}

TEST(NameSearch, GivesUpAfterItsEffort) {
  constexpr int kNames = 30'000;
  NameSearch search(numbered("part_", kNames));
  int suggested = 0;
  for (const std::string& word : numbered("prat_x", kNames)) {
    suggested += search.nearest(word).empty() ? 0 : 1;
  }
  EXPECT_TRUE(search.gave_up());
  EXPECT_GE(suggested, 50) << "as many as a report shows";
  EXPECT_LT(search.comparisons(), NameSearch::kEffort / 5);  // of 900 million
  EXPECT_EQ(search.nearest("part_0000"), "") << "for good";
  EXPECT_EQ(search.did_you_mean("part_0000"), "");
}

TEST(NameSearch, GivesUpOnALongWordToo) {
  constexpr std::int64_t kEffort = 1000;
  NameSearch search({std::string(1000, 'a')}, kEffort);
  EXPECT_EQ(search.nearest(std::string(1000, 'b')), "");
  EXPECT_TRUE(search.gave_up());
  // Control: with the usual effort such words are compared.
  NameSearch patient({std::string(1000, 'a')});
  EXPECT_EQ(patient.nearest(std::string(999, 'a') + "b"), std::string(1000, 'a'));
  EXPECT_FALSE(patient.gave_up());
}

TEST(NameSearchControl, SmallReportsNeverGiveUp) {
  NameSearch search(numbered("part_", 200));
  for (const std::string& word : numbered("prat_", 1000)) search.nearest(word);
  EXPECT_FALSE(search.gave_up());
}

TEST(NameSearch, OffersNothingThatLooksLikeTheWordItself) {
  EXPECT_EQ(did_you_mean("a.q2", {"a.q2"}), "");
  EXPECT_EQ(did_you_mean("A.q2", {"a.q2"}), " Did you mean \"a.q2\"?");
  const std::string same(100, 'x');  // no more than 80 characters are shown
  EXPECT_EQ(did_you_mean(same + "a", {same + "b"}), "");
  EXPECT_EQ(suggestion("", "b"), "");
  EXPECT_EQ(suggestion("a", "b"), " Did you mean \"a\"?");
}

}  // namespace
}  // namespace portwave::test_name_search
