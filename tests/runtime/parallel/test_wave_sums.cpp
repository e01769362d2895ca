// Sums over the waves of a commit are those of a pass over all of them, and have the same bits however lanes are dealt
// out.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include "parallel/wave_sums.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "support/systems/networks.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_wave_sums {
namespace {

class Waves {
 public:
  explicit Waves(const System& system)
      : waves_(system, 0.01, std::vector<double>(system.scalar_ports().size(), 0.7)),
        sums_(waves_),
        a_(at(waves_.wave_size()), 0.0),
        b_(a_.size(), 0.0) {
    sums_.arrange();
  }

  /// Waves whose sums depend on the order of their terms; between batches there are zeros.
  void fill(double seed) {
    for (int port = 0; port < static_cast<int>(waves_.system().scalar_ports().size()); ++port) {
      const std::size_t wave = at(waves_.wave_of_port(port));
      a_[wave] = std::sin(seed + 1.3 * port) * std::exp2(port % 7);
      b_[wave] = std::cos(seed * port);
    }
  }
  /// Lanes are dealt out in pieces of `groups` lane groups, the last ones first.
  WaveSums::Sums taken(int groups) {
    for (int batch = 0; batch < std::ssize(waves_.batches()); ++batch) {
      const int lanes = waves_.batch(batch).batch->lanes();
      const int piece = groups * waves_.batch(batch).batch->lane_group();
      for (int first = (lanes - 1) / piece * piece; first >= 0; first -= piece) {
        sums_.take(batch, {first, std::min(first + piece, lanes)}, a_.data(), b_.data());
      }
    }
    return sums_.total();
  }
  WaveSums::Sums pass() const {
    WaveSums::Sums out;
    for (std::size_t i = 0; i < a_.size(); ++i) out.add(a_[i], b_[i]);
    return out;
  }

 private:
  WaveDiscretisation waves_;
  WaveSums sums_;
  std::vector<double> a_, b_;
};

TEST(WaveSums, AreThoseOfAllWavesHoweverLanesAreDealtOut) {
  for (const System& system : {testing::lossless_pair(), testing::net(5, 9), testing::archipelago(),
                               testing::chain_of_blocks(77, 3)}) {
    Waves waves(system);
    for (const double seed : {0.1, 2.0}) {  // what was taken before is forgotten
      waves.fill(seed);
      const WaveSums::Sums expected = waves.pass(), own = waves.taken(1000);
      EXPECT_GT(expected.efforts, 0.0);
      EXPECT_NEAR(own.efforts, expected.efforts, 1e-13 * expected.efforts);
      EXPECT_NEAR(own.flows, expected.flows, 1e-13 * expected.flows);
      for (const int groups : {1, 2, 3}) {
        const WaveSums::Sums other = waves.taken(groups);
        EXPECT_EQ(other.efforts, own.efforts) << groups;
        EXPECT_EQ(other.flows, own.flows) << groups;
      }
    }
  }
}

}  // namespace
}  // namespace portwave::test_wave_sums
