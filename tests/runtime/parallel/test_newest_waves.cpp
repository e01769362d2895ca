// The inbox of an asynchronous exchange, message by message: a transport by hand says what has come.

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ranks/newest_waves.hpp"

namespace portwave::test_newest_waves {
namespace {

/// One neighbour. A message holds its number. It comes when it is `now`, or when somebody has waited for
/// it long enough.
class HandMessages final : public NeighbourMessages {
 public:
  explicit HandMessages(int slots) : slots_(static_cast<std::uint64_t>(slots)) {}

  void come(std::uint64_t number) { here_.insert(number); }
  std::uint64_t waited_for() const { return waited_for_; }
  std::size_t released() const { return released_.size(); }

  std::span<double> outgoing(int, std::uint64_t) override { return {}; }
  void send(std::uint64_t) override {}
  void receive(std::uint64_t) override {}
  void release(std::uint64_t) override {}
  bool arrived(int, std::uint64_t number, std::uint64_t now) override {
    // As MPI has it: the slot of a message is that of the one before it until that is released.
    if (number >= slots_ + 1 && released_.count(number - slots_) == 0) {
      throw std::logic_error("the slot is not free");
    }
    if (taken_.count(number) != 0) throw std::logic_error("asked again");
    if (now == kWhatever && here_.count(number) == 0 && ++patience_ > 10) {
      waited_for_ = number;
      here_.insert(number);
      patience_ = 0;
    }
    if (here_.count(number) == 0) return false;
    taken_.insert(number);
    value_ = static_cast<double>(number);
    return true;
  }
  std::span<const double> incoming(int, std::uint64_t) override { return {&value_, 1}; }
  void release(int, std::uint64_t number) override { released_.insert(number); }

 private:
  std::uint64_t slots_;
  std::set<std::uint64_t> here_, taken_, released_;
  std::uint64_t waited_for_ = 0;
  int patience_ = 0;
  double value_ = 0.0;
};

constexpr std::size_t kOne[] = {1};

struct Inbox {
  explicit Inbox(int max_delay) : messages(NewestWaves::slots(max_delay)), waves(kOne, max_delay) {
    waves.begin(1);
    waves.waves(0)[0] = -1.0;  // of the step before
  }
  double take(std::uint64_t now, std::uint64_t last = 100) {
    waves.take(messages, now, last);
    return waves.waves(0)[0];
  }

  HandMessages messages;
  NewestWaves waves;
};

TEST(NewestWaves, KeepTheLastStepsUntilOneComes) {
  Inbox inbox(3);
  EXPECT_EQ(inbox.take(1), -1.0);
  EXPECT_EQ(inbox.take(2), -1.0);
  inbox.messages.come(1);
  EXPECT_EQ(inbox.take(3), 1.0);
  EXPECT_EQ(inbox.take(4), 1.0);
  EXPECT_EQ(inbox.messages.waited_for(), 0U);
}

TEST(NewestWaves, TakeTheNewestAndDropWhatComesAfterIt) {
  Inbox inbox(3);
  inbox.messages.come(1);
  inbox.messages.come(3);
  EXPECT_EQ(inbox.take(3), 3.0);
  inbox.messages.come(2);  // late: it is taken off the line, and not used
  EXPECT_EQ(inbox.take(4), 3.0);
  EXPECT_EQ(inbox.messages.released(), 3U);
}

TEST(NewestWaves, MayBeAheadOfTheirReader) {
  Inbox inbox(2);
  inbox.messages.come(1);
  inbox.messages.come(2);
  inbox.messages.come(3);
  EXPECT_EQ(inbox.take(1), 3.0);
}

TEST(NewestWaves, AreWaitedForWhereTheyAreTooOld) {
  Inbox inbox(2);
  EXPECT_EQ(inbox.take(2), -1.0);
  EXPECT_EQ(inbox.take(3), 1.0);
  EXPECT_EQ(inbox.messages.waited_for(), 1U);
  EXPECT_EQ(inbox.take(6), 4.0) << "the one that is new enough, not those before it";
  EXPECT_EQ(inbox.messages.waited_for(), 4U);
}

TEST(NewestWaves, DoNotOutrunALostMessageByMoreThanThereAreSlots) {
  Inbox inbox(1);  // four slots
  for (std::uint64_t n = 2; n <= 5; ++n) inbox.messages.come(n);
  EXPECT_EQ(inbox.take(2), 4.0) << "the fifth has the slot of the first";
  EXPECT_EQ(inbox.take(5), 4.0);
  EXPECT_EQ(inbox.take(6), 5.0);
  EXPECT_EQ(inbox.messages.waited_for(), 1U);
}

TEST(NewestWaves, StopAtTheLastOfTheStep) {
  Inbox inbox(2);
  for (std::uint64_t n = 1; n <= 4; ++n) inbox.messages.come(n);
  EXPECT_EQ(inbox.take(2, 3), 3.0);
  inbox.waves.drain(inbox.messages, 3);
  EXPECT_EQ(inbox.messages.released(), 3U) << "the fourth belongs to the commit";
}

TEST(NewestWaves, DrainWhatIsStillToCome) {
  Inbox inbox(2);
  inbox.messages.come(2);
  EXPECT_EQ(inbox.take(2), 2.0);
  inbox.waves.drain(inbox.messages, 4);
  EXPECT_EQ(inbox.messages.released(), 4U);
  EXPECT_EQ(inbox.waves.waves(0)[0], 4.0);
}

/// Whatever comes when: never older than is allowed, never older than before, every message once.
TEST(NewestWaves, OfAnyOrderAreNeverTooOld) {
  std::mt19937_64 random(3);
  for (int draw = 0; draw < 400; ++draw) {
    const int delay = 1 + static_cast<int>(random() % 4);
    const std::uint64_t last = 1 + random() % 30;
    Inbox inbox(delay);
    std::map<std::uint64_t, std::vector<std::uint64_t>> comes;  // by when
    for (std::uint64_t n = 1; n <= last; ++n) {
      const std::uint64_t late = random() % 5 == 0 ? 20 : random() % 4;  // some are as good as lost
      comes[n + late].push_back(n);
    }
    double before = 0.0;
    for (std::uint64_t now = 1; now <= last; ++now) {
      for (const std::uint64_t n : comes[now]) inbox.messages.come(n);
      const double got = std::max(inbox.take(now, last), 0.0);
      ASSERT_GE(got, static_cast<double>(now) - delay) << "draw " << draw << " now " << now;
      ASSERT_GE(got, before);
      before = got;
    }
    inbox.waves.drain(inbox.messages, last);
    ASSERT_EQ(inbox.messages.released(), last);
  }
}

}  // namespace
}  // namespace portwave::test_newest_waves
