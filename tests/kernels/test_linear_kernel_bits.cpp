// The kernels of linear parts, called with numbers that nothing else has touched, give the same bits
// on every instruction set and every architecture.

#include <algorithm>
#include <array>
#include <limits>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/linear_kernels.hpp"
#include "kernels/numbers.hpp"
#include "support/instruction_sets.hpp"

namespace portwave {
namespace {

using testing::Digest;
using testing::Numbers;

struct Case {
  int states;
  int ports;
  int width;
  bool shared;
  bool driven;

  std::string name() const {
    return fmt::format("{}x{}_{}{}{}", states, ports, width, shared ? "_shared" : "",
                       driven ? "_driven" : "");
  }
};

/// Three lane groups with all that a linear part can have. The first rows of z are made of Q's
/// diagonal, then comes one of entries and one of a map. State 1 is the integral of state 0, and state 2 that
/// of states 0 and 3 if there are so many; with three ports both have rows as well.
class Batch {
 public:
  Batch(const Case& c, Numbers& numbers) : case_(c) {
    const int n = c.states, p = c.ports;
    shape_.n = n;
    shape_.z = n;
    shape_.p = p;
    shape_.q = kInputs;
    for (int i = 0; i + 1 < n; ++i) storage_.push_back({i, i + 1});
    for (int j = 0; j < n; j += 2) gradient_.push_back({n - 2, j});
    mapped_ = {n - 1};
    for (int i = 0; i < n + p + kInputs; ++i) {
      dissipation_.push_back({i, i});
      if (i > 0) dissipation_.push_back({i, numbers.below(i)});
      output_.push_back({numbers.below(kInputs), i});
    }
    arrange_rows();
    diagonal_gradient_.assign(static_cast<std::size_t>(n), 1);
    diagonal_gradient_[static_cast<std::size_t>(n - 2)] = 0;
    diagonal_gradient_[static_cast<std::size_t>(n - 1)] = 0;
    for (int j = 0; j < p; ++j) sign_.push_back(j % 2 == 0 ? 1.0 : -1.0);
    shape_.storage_count = static_cast<int>(storage_.size());
    shape_.gradient_count = static_cast<int>(gradient_.size());
    shape_.mapped_count = static_cast<int>(mapped_.size());
    shape_.dissipation_count = static_cast<int>(dissipation_.size());
    shape_.output_count = static_cast<int>(output_.size());
    shape_.ports_dissipate = true;
    shape_.storage = offsets(storage_);
    shape_.gradient = offsets(gradient_);
    shape_.mapped = mapped_.data();
    shape_.dissipation = offsets(dissipation_);
    shape_.output = offsets(output_);
    shape_.diagonal_gradient = diagonal_gradient_.data();
    shape_.input_sign = sign_.data();

    const int columns = n + p + kInputs;
    const std::array<int, kBlocks> sizes = {
        p + p * p,
        shape_.row_count * (n + p + 1) + shape_.integral_count + p * n,
        shape_.row_count * kInputs + p * kInputs,
        n + shape_.storage_count + shape_.gradient_count + shape_.dissipation_count +
            shape_.output_count + p,
        shape_.mapped_count * columns,
        shape_.z * columns};
    coefficients_.resize(kGroups * kBlocks);
    for (int g = 0; g < kGroups; ++g) {
      for (int block = 0; block < kBlocks; ++block) {
        const int lanes = c.shared ? 1 : c.width;
        coefficients_[at(g, block)] =
            numbers.draw(sizes[static_cast<std::size_t>(block)] * lanes, -0.3, 0.3);
      }
      groups_.push_back({block(g, 0), block(g, 1), block(g, 2), block(g, 3), block(g, 4),
                         block(g, 5), nullptr, c.shared});
    }
    a_ = numbers.draw(p * stride(), -1, 1);
    record_ = numbers.draw(kGroups * (p + n + kInputs) * c.width, -1, 1);
  }

  double& a(int i) { return a_[static_cast<std::size_t>(i)]; }

  /// Every kernel, each after what it needs.
  Digest run(const LinearKernels& kernels) {
    const int n = case_.states;
    std::vector<double> b(a_.size()), next(record_.size()), change(lanes()), supply(lanes()),
        dissipated(lanes()), increments(static_cast<std::size_t>(n * stride()));
    LinearTask task;
    task.shape = &shape_;
    task.groups = groups_.data();
    task.first = 0;
    task.last = kGroups;
    task.width = case_.width;
    task.stride = stride();
    task.a = a_.data();
    task.b = b.data();
    task.record = record_.data();
    task.states = static_cast<long>(kGroups) * case_.ports * case_.width;
    task.next = next.data();
    task.energy = {change.data(), supply.data(), dissipated.data()};
    task.driven = case_.driven;
    task.may_be_driven = case_.driven;

    Digest digest;
    kernels.freeze(task);
    digest.add_all(record_);
    kernels.scatter(task);
    digest.add_all(b);
    std::fill(b.begin(), b.end(), 0.0);
    EXPECT_EQ(kernels.scatter_of(case_.width, case_.ports)(&task), -1);
    digest.add_all(b);
    const auto advance = kernels.advance_of(case_.width, case_.ports, n);
    EXPECT_EQ(advance(&task), -1);
    for (const auto* column : {&b, &next, &change, &supply, &dissipated}) digest.add_all(*column);
    expect_as_with_many_states(kernels, task, next);
    kernels.increments(task, increments.data());
    digest.add_all(increments);
    // And which lane is not finite.
    a_.back() = std::numeric_limits<double>::infinity();
    EXPECT_EQ(advance(&task), stride() - 1);
    return digest;
  }

 private:
  /// The function for any number of states makes `next`, and the energies, of the same task.
  void expect_as_with_many_states(const LinearKernels& kernels, LinearTask task,
                                  const std::vector<double>& next) const {
    std::vector<double> other(next.size()), change(lanes()), supply(lanes()), dissipated(lanes());
    task.next = other.data();
    const EnergyColumns energy =
        std::exchange(task.energy, EnergyColumns{change.data(), supply.data(), dissipated.data()});
    EXPECT_EQ(kernels.advance_of(case_.width, case_.ports, kMany)(&task), -1);
    EXPECT_EQ(other, next) << case_.name();
    for (std::size_t l = 0; l < lanes(); ++l) {
      EXPECT_EQ(change[l], energy.change_J[l]) << case_.name();
      EXPECT_EQ(supply[l], energy.external_supply_J[l]) << case_.name();
      EXPECT_EQ(dissipated[l], energy.dissipated_J[l]) << case_.name();
    }
  }

  static constexpr int kMany = 64;  // states, for which no function is made
  static constexpr int kGroups = 3, kInputs = 2, kBlocks = 6;

  void arrange_rows() {
    const bool have_rows = case_.ports == 3;
    for (int i = 0; i < case_.states; ++i) {
      if (have_rows || (i != 1 && i != 2))
        rows_.push_back({i * case_.width, i == 0 && !have_rows ? case_.width : -1});
    }
    if (have_rows) integrals_.push_back({1, 0});
    integrals_.push_back({2, 0});
    if (case_.states > 3) integrals_.push_back({2, 3});
    for (auto left = static_cast<int>(rows_.size()); left > 0; left -= kRowsAtOnce) {
      block_rows_.push_back(static_cast<unsigned char>(std::min(left, kRowsAtOnce)));
    }
    shape_.row_count = static_cast<int>(rows_.size());
    shape_.rows = rows_.data();
    shape_.block_rows = block_rows_.data();
    shape_.block_count = static_cast<int>(block_rows_.size());
    shape_.integral_count = static_cast<int>(integrals_.size());
    shape_.integrals = offsets(integrals_);
    shape_.integrals_have_rows = have_rows;
  }
  const LinearOffsets* offsets(const std::vector<LinearEntry>& entries) {
    auto& list = offsets_.emplace_back();
    for (const LinearEntry& e : entries) {
      list.push_back({e.row * case_.width, e.column * case_.width});
    }
    return list.data();
  }
  static std::size_t at(int group, int block) {
    return static_cast<std::size_t>(group * kBlocks + block);
  }
  const double* block(int g, int b) const { return coefficients_[at(g, b)].data(); }
  std::size_t lanes() const { return static_cast<std::size_t>(stride()); }
  int stride() const { return kGroups * case_.width; }

  Case case_;
  LinearShape shape_;
  std::vector<LinearEntry> storage_, gradient_, dissipation_, output_, integrals_;
  std::list<std::vector<LinearOffsets>> offsets_;
  std::vector<LinearRow> rows_;
  std::vector<unsigned char> block_rows_;
  std::vector<int> mapped_;
  std::vector<unsigned char> diagonal_gradient_;
  std::vector<double> sign_;
  std::vector<std::vector<double>> coefficients_;
  std::vector<LinearGroup> groups_;
  std::vector<double> a_, record_;
};

// Run in processes of its own.
const testing::DigestSuite kLinearKernelBitsDigests("LinearKernelBits", [] {
  std::vector<Case> cases;
  for (const int ports : {1, 2, 3, 4, 5}) {
    for (const int states : {3, 4, 5, 6, 13}) {
      for (const int width : {1, 8}) {
        for (const bool shared : {false, true}) {
          cases.push_back({states, ports, width, shared, (states + ports) % 2 == 0});
        }
      }
    }
  }
  for (const Case& c : cases) {
    for (const bool control : {false, true}) {
      Numbers numbers(11);
      Batch batch(c, numbers);
      if (control) testing::nudge(batch.a(0));
      batch.run(linear_kernels()).print(c.name() + (control ? "'" : ""));
    }
  }
});

TEST(LinearKernelBits, AreTheSameOnEveryInstructionSet) {
  testing::expect_equal_digests("LinearKernelBits", 200);
}

#ifdef PORTWAVE_OTHER_PROGRAM
TEST(LinearKernelBits, AreTheSameOnAnotherArchitecture) {
  testing::expect_digests_of(PORTWAVE_OTHER_PROGRAM, "LinearKernelBits", 100,
                             [](const std::string& /*name*/) { return true; });
}
#endif

}  // namespace
}  // namespace portwave
