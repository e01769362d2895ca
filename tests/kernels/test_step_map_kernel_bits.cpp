// The kernels that make step maps, called with numbers that nothing else has touched, give the same bits
// on every instruction set and every architecture, and one lane those that it has among eight.

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/numbers.hpp"
#include "kernels/step_map_kernels.hpp"
#include "support/instruction_sets.hpp"

namespace portwave {
namespace {

using testing::Digest;
using testing::Numbers;

struct Case {
  int states, ports, inputs;

  std::string name() const { return fmt::format("{}x{}x{}", states, ports, inputs); }
};

/// Eight parts, most entries of whose matrices are there, and what solving for them needs.
class Parts {
 public:
  Parts(const Case& c, Numbers& numbers)
      : case_(c), effort_in_(at(c.ports)), at_ports_(at(c.states)) {
    const int n = c.states, p = c.ports, m = p + c.inputs;
    for (int i = 0; i < n; ++i) {
      rows_of_Q_.push_back(static_cast<int>(Q_.places.size()));
      for (int j = 0; j < n; ++j) {
        if (i == j || (i + j) % 3 != 0) Q_.add(i, j, numbers, i == j ? 1.0 : 0.0);
        if ((i + 2 * j) % 3 != 0) JR_.add(i, j, numbers, 0.0);
      }
      for (int j = 0; j < m; ++j) B_.add(i, j, numbers, 0.0);
    }
    rows_of_Q_.push_back(static_cast<int>(Q_.places.size()));
    for (int i = 0; i < p; ++i) {
      for (int j = i % 2; j < n; j += 2) {
        C_.add(i, j, numbers, 0.0);
        at_ports_[at(j)] = 1;
      }
      for (int j = 0; j < m; ++j) D_.add(i, j, numbers, i == j ? 1.0 : 0.0);
      effort_in_[at(i)] = static_cast<unsigned char>(i % 2);
    }
    scale_ = numbers.draw((n + p) * kLaneGroup, 0.5, 2.0);
    closures_ = numbers.draw(StepMapTask::kClosureCount * p * kLaneGroup, 0.5, 2.0);
  }

  /// One that all solutions depend on.
  double& coefficient() {
    if (!B_.values.empty()) return B_.values[0];
    if (!JR_.values.empty()) return JR_.values[0];
    return closures_[0];  // an α
  }

  /// What all lanes get, or one of them by itself.
  std::vector<double> solve(const StepMapKernels& kernels, int lane = -1) const {
    const int n = case_.states, p = case_.ports, q = case_.inputs;
    const int columns = n + p + q, width = lane < 0 ? kLaneGroup : 1;
    std::array<std::vector<double>, 7> own;
    std::size_t next = 0;
    const auto values = [&](const std::vector<double>& all) {
      std::vector<double>& to = own[next++];
      for (std::size_t k = 0; k < all.size(); ++k) {
        if (lane < 0 || static_cast<int>(k % kLaneGroup) == lane) to.push_back(all[k]);
      }
      return to.data();
    };
    const auto entries = [&](const Matrix& M) {
      return StepMapTask::Entries{M.places.data(), static_cast<int>(M.places.size()),
                                  values(M.values)};
    };
    StepMapTask task;
    task.width = width;
    task.n = n;
    task.p = p;
    task.q = q;
    task.Q = entries(Q_);
    task.JR = entries(JR_);
    task.B = entries(B_);
    task.C = entries(C_);
    task.D = entries(D_);
    task.Q_rows = rows_of_Q_.data();
    task.at_ports = at_ports_.data();
    task.step_s = 0.1;
    task.scale = values(scale_);
    task.closures = values(closures_);
    task.effort_in = effort_in_.data();
    std::vector<double> work(at(static_cast<int>(kernels.work(width, n, p, q))));
    std::vector<double> out(at((columns * (n + p) + p + 1) * width), -1.0);
    task.work = work.data();
    task.delta = out.data();
    task.outgoing = task.delta + n * columns * width;
    task.sigma = task.outgoing + p * columns * width;
    task.inexact = task.sigma + p * width;
    kernels.solve(task);
    return out;
  }

 private:
  struct Matrix {
    std::vector<LinearEntry> places;
    std::vector<double> values;

    void add(int row, int column, Numbers& numbers, double above) {
      places.push_back({row, column});
      for (int l = 0; l < kLaneGroup; ++l) values.push_back(above + numbers(-0.4, 0.4));
    }
  };
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  Case case_;
  Matrix Q_, JR_, B_, C_, D_;
  std::vector<int> rows_of_Q_;
  std::vector<unsigned char> effort_in_, at_ports_;
  std::vector<double> scale_, closures_;
};

std::vector<Case> cases() {
  std::vector<Case> list;
  for (const int states : {0, 1, 2, 5, 12}) {
    for (const int ports : {0, 1, 2, 5}) {
      for (const int inputs : {0, 2}) {
        if (ports > 0 || (states > 0 && states + inputs > 1))
          list.push_back({states, ports, inputs});
      }
    }
  }
  return list;
}

// Run in processes of its own.
const testing::DigestSuite kStepMapKernelBitsDigests("StepMapKernelBits", [] {
  for (const Case& c : cases()) {
    for (const bool control : {false, true}) {
      Numbers numbers(23);
      Parts parts(c, numbers);
      if (control) testing::nudge(parts.coefficient());
      Digest digest;
      digest.add_all(parts.solve(step_map_kernels()));
      digest.print(c.name() + (control ? "'" : ""));
    }
  }
});

TEST(StepMapKernelBits, AreTheSameOnEveryInstructionSet) {
  testing::expect_equal_digests("StepMapKernelBits", 50);
}

#ifdef PORTWAVE_OTHER_PROGRAM
TEST(StepMapKernelBits, AreTheSameOnAnotherArchitecture) {
  testing::expect_digests_of(PORTWAVE_OTHER_PROGRAM, "StepMapKernelBits", 30,
                             [](const std::string& /*name*/) { return true; });
}
#endif

TEST(StepMapKernelBits, OfOneLaneAreThoseItHasAmongEight) {
  for (const Case& c : cases()) {
    Numbers numbers(29);
    const Parts parts(c, numbers);
    const std::vector<double> all = parts.solve(step_map_kernels());
    std::vector<double> first;
    for (int lane = 0; lane < kLaneGroup; ++lane) {
      const std::vector<double> one = parts.solve(step_map_kernels(), lane);
      ASSERT_EQ(all.size(), one.size() * kLaneGroup);
      for (std::size_t k = 0; k < one.size(); ++k) {
        EXPECT_EQ(one[k], all[k * kLaneGroup + static_cast<std::size_t>(lane)])
            << c.name() << ", lane " << lane << ", number " << k;
      }
      EXPECT_EQ(one.back(), 0.0) << c.name() << " is inexact in lane " << lane;
      if (lane == 0) first = one;
      if (lane > 0 && one.size() > 2) {
        EXPECT_NE(one, first);
      }
    }
  }
}

}  // namespace
}  // namespace portwave
