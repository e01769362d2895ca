// What batches tell of the slopes of their port maps (PortSlopes) beside differences of those maps: exact for contacts,
// and for mechanisms and several stages with an error that falls with the step.

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <gtest/gtest.h>

#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/core/port_slopes.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"

namespace portwave::test_port_slopes {
namespace {

using Numbers = std::vector<double>;
using Texts = std::vector<std::string>;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// A batch of one part with a record from a state and one of incident waves.
class Frozen {
 public:
  Frozen(const Component& part, const Numbers& x, double step_s, double impedance) {
    const Component* const parts[] = {&part};
    batch_ = part.make_batch(parts);
    size_ = static_cast<std::size_t>(batch_->wave_size());
    // No two alike.
    for (std::size_t j = 0; j < size_; ++j) {
      gamma_.push_back(impedance * (1.0 + 0.1 * static_cast<double>(j)));
    }
    batch_->prepare(step_s, gamma_.data());
    record_.resize(batch_->record_size());
    batch_->set_state(0, x.data(), record_.data());
    batch_->freeze({0, 1}, record_.data(), nullptr);
  }

  std::size_t size() const { return size_; }

  Matrix told(const Numbers& a, int stride = 1) const {
    const auto n = static_cast<Eigen::Index>(size_);
    Matrix D = Matrix::Constant(n, n, std::numeric_limits<double>::quiet_NaN());
    const auto* const slopes = dynamic_cast<const PortSlopes*>(batch_.get());
    EXPECT_NE(slopes, nullptr);
    if (slopes == nullptr) return D;
    Numbers apart(a.size() * static_cast<std::size_t>(stride), 1e9);
    for (std::size_t j = 0; j < a.size(); ++j) apart[j * static_cast<std::size_t>(stride)] = a[j];
    EXPECT_TRUE(slopes->port_slopes(0, record_.data(), apart.data(), stride, D.data()));
    return D;
  }

  Matrix by_differences(const Numbers& a) {
    const auto n = static_cast<Eigen::Index>(size_);
    Matrix D(n, n);
    double length = 0.0;
    for (const double value : a) length += value * value;
    const double step = 1e-6 * std::sqrt(length);
    for (Eigen::Index j = 0; j < n; ++j) {
      Numbers b[2] = {Numbers(size_), Numbers(size_)};
      for (const int side : {0, 1}) {
        Numbers moved = a;
        moved[static_cast<std::size_t>(j)] += side == 0 ? step : -step;
        EXPECT_TRUE(batch_->scatter({0, 1}, record_.data(), moved.data(), b[side].data()).ok());
      }
      for (std::size_t i = 0; i < size_; ++i) {
        D(static_cast<Eigen::Index>(i), j) = (b[0][i] - b[1][i]) / (2.0 * step);
      }
    }
    return D;
  }

 private:
  std::unique_ptr<StepBatch> batch_;
  std::size_t size_ = 0;
  Numbers gamma_;
  AlignedVector record_;
};

Numbers waves(std::size_t count, double size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0.0, size);
  Numbers out(count);
  for (double& value : out) value = normal(random);
  return out;
}

/// A trunk that floats, with a leg of two links and frames at its foot and on the trunk.
std::shared_ptr<const Component> walker() {
  return make_part("articulated",
                   {{"joints", Texts{"free", "revolute", "revolute"}},
                    {"masses_kg", Numbers{3.0, 0.6, 0.4}},
                    {"places_m", MatrixRows{{0, 0, 0}, {0.2, 0.1, 0}, {0, 0, -0.3}}},
                    {"axes", MatrixRows{{0, 0, 1}, {1, 0, 0}, {0, 1, 0}}},
                    {"centres_m", MatrixRows{{0, 0, 0}, {0, 0.02, -0.1}, {0, 0, -0.15}}},
                    {"inertias_kgm2", MatrixRows{{0.05, 0, 0, 0.1, 0, 0.12},
                                                 {0.003, 0, 0, 0.003, 0, 0.001},
                                                 {0.002, 0, 0, 0.002, 0, 0.0005}}},
                    {"damping", Numbers{0.0, 0.1, 0.1}},
                    {"frames", Texts{"foot", "trunk"}},
                    {"frame_joints", Texts{"joint_3", "joint_1"}},
                    {"frame_points_m", MatrixRows{{0, 0, -0.3}, {0.1, 0, 0.05}}}});
}

const Numbers kWalking = {0.1, -0.2, 0.5, 0.99, 0.1,  0.05, -0.08, 0.4, -0.7,
                          3.0, 1.0,  0.5, 0.02, 0.03, 0.01, 0.02,  0.01};

std::shared_ptr<const Component> arm() {
  return make_part("planar_arm", {{"lengths_m", Numbers{0.4, 0.3, 0.2}},
                                  {"masses_kg", Numbers{3.0, 2.0, 1.0}},
                                  {"tip_port", true}});
}
const Numbers kBent = {0.5, -0.4, 0.9, 0.8, 0.3, 0.1};

std::shared_ptr<const Component> ground(const Numbers& normal, bool rolls) {
  return make_part("ground_contact", {{"force_N", 100.0},
                                      {"compression_m", 0.01},
                                      {"damping_s_per_m", 0.2},
                                      {"friction", 0.7},
                                      {"creep_speed_m_per_s", 0.05},
                                      {"normal", normal},
                                      {"height_m", 0.0},
                                      {"radius_m", 0.1},
                                      {"rolls", rolls}});
}

/// Largest difference of what is told from what differences say, beside the size of these.
double apart(const Component& part, const Numbers& x, double step_s, double wave,
             double impedance = 2.0) {
  Frozen frozen(part, x, step_s, impedance);
  const Numbers a = waves(frozen.size(), wave, 3);
  const Matrix found = frozen.by_differences(a);
  EXPECT_EQ(frozen.told(a), frozen.told(a, 8)) << "by the distance of the waves";
  return (frozen.told(a) - found).cwiseAbs().maxCoeff() / found.cwiseAbs().maxCoeff();
}

struct Case {
  std::string name;
  std::shared_ptr<const Component> part;
  Numbers x;
};

std::vector<Case> cases() {
  std::vector<Case> out;
  out.push_back({"walker", walker(), kWalking});
  out.push_back({"arm", arm(), kBent});
  for (const int stages : {2, 3}) {
    out.push_back({"walker in stages", staged_part(walker(), stages), kWalking});
    out.push_back({"arm in stages", staged_part(arm(), stages), kBent});
  }
  out.push_back({"damped arm", staged_part(arm(), damped(gauss_stages(2))), kBent});
  return out;
}

TEST(PortSlopes, OfMechanismsFallWithTheStep) {
  for (const Case& own : cases()) {
    const double coarse = apart(*own.part, own.x, 2e-3, 0.3);
    const double fine = apart(*own.part, own.x, 5e-4, 0.3);
    EXPECT_LT(coarse, 0.05) << own.name;
    EXPECT_LT(fine, 0.4 * coarse + 1e-8) << own.name;
  }
}

TEST(PortSlopes, OfContactsAreExact) {
  for (const bool rolls : {false, true}) {
    for (const Numbers& n : {Numbers{0, 0, 1}, Numbers{0.36, 0.48, 0.8}}) {
      const auto part = ground(n, rolls);
      // Pressed, with and without slip; in the air.
      for (const double depth : {0.004, -0.05}) {
        Numbers x = {0.0, 0.0, 0.0};
        for (std::size_t i = 0; i < 3; ++i) x[i] = (0.1 - depth) * n[i];
        for (const double wave : {0.02, 1.0}) {
          EXPECT_LT(apart(*part, x, 1e-3, wave, 20.0), 2e-5)
              << "rolls " << rolls << ", depth " << depth << ", wave " << wave;
        }
      }
    }
  }
}

/// Slopes at other impedances, or at other waves where the map bends, are seen to be wrong.
TEST(PortSlopesControl, SlopesOfAnotherMapDiffer) {
  for (const Case& own : cases()) {
    Frozen one(*own.part, own.x, 5e-4, 2.0), other(*own.part, own.x, 5e-4, 2.2);
    const Numbers a = waves(one.size(), 0.3, 3);
    const Matrix found = other.by_differences(a);
    const double off = (one.told(a) - found).cwiseAbs().maxCoeff() / found.cwiseAbs().maxCoeff();
    EXPECT_GT(off, 2.0 * apart(*own.part, own.x, 5e-4, 0.3)) << own.name;
  }
  Frozen contact(*ground({0, 0, 1}, false), {0, 0, 0.096}, 1e-3, 20.0);
  const Matrix near = contact.told({0.01, 0.01, -0.02}), far = contact.told({1.0, 0.5, -0.9});
  EXPECT_GT((near - far).cwiseAbs().maxCoeff(), 0.05);
}

}  // namespace
}  // namespace portwave::test_port_slopes
