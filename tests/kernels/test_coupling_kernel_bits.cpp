// The kernels of blocks that are solved side by side, of junctions, of small islands and of the ledger, called with
// numbers that nothing else has touched, give the same bits on every instruction set and every
// architecture.

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "energy/island_account.hpp"
#include "kernels/junction_kernels.hpp"
#include "kernels/lane_kernels.hpp"
#include "kernels/ledger_kernels.hpp"
#include "kernels/numbers.hpp"
#include "kernels/small_island_kernels.hpp"
#include "support/instruction_sets.hpp"

namespace portwave {
namespace {

using testing::Digest;
using testing::Numbers;

// Blocks side by side.

constexpr int kW = kLaneGroup;

/// Line i refers to some of the columns before it, or, if `from_behind`, to those of lines before it
/// when rows are taken from the last to the first.
struct Lines {
  std::vector<int> begin{0}, offset;
  std::vector<double> value;

  Lines(int count, bool triangular, bool from_behind, Numbers& numbers) {
    for (int i = 0; i < count; ++i) {
      const int columns = triangular ? i : count;
      for (int j = 0; j < columns; ++j) {
        if (numbers.below(3) == 0) continue;
        offset.push_back((from_behind ? count - 1 - j : j) * kW);
        value.push_back(numbers(-0.4, 0.4));
      }
      begin.push_back(static_cast<int>(offset.size()));
    }
  }
  LaneLines view() const {
    return {static_cast<int>(begin.size()) - 1, begin.data(), offset.data(), value.data()};
  }
};

Digest run_lanes(int n, bool control) {
  const LaneKernels& kernels = lane_kernels();
  Numbers numbers(static_cast<std::uint64_t>(n));
  const Lines square(n, false, false, numbers), lower(n, true, false, numbers),
      upper(n, true, true, numbers);
  const int stride = (n + kW - 1) / kW * kW, size = n * kW;
  const auto empty = [](int count) { return std::vector<double>(static_cast<std::size_t>(count)); };
  std::vector<double> x = numbers.draw(size, -1, 1), y = numbers.draw(size, -1, 1);
  if (control) testing::nudge(x[0]);
  Digest digest;

  std::vector<double> out = empty(size);
  kernels.product(square.view(), x.data(), out.data());
  digest.add_all(out);
  kernels.add_product(square.view(), 0.7, x.data(), out.data());
  digest.add_all(out);

  std::vector<int> forth, back;
  for (int i = 0; i < n; ++i) {
    forth.push_back(i * kW);
    back.push_back((n - 1 - i) * kW);
  }
  const std::vector<double> inverse_diagonal = numbers.draw(n, 0.5, 1.5);
  std::vector<double> scratch = empty(size);
  const LaneTriangles factors = {lower.view(), upper.view(), forth.data(),
                                 back.data(),  back.data(),  inverse_diagonal.data()};
  kernels.solve(factors, x.data(), out.data(), scratch.data());
  digest.add_all(out);

  const std::vector<double> dense = numbers.draw(n * stride, -0.4, 0.4);
  kernels.dense_product(dense.data(), n, stride, x.data(), out.data());
  digest.add_all(out);
  std::vector<double> vector = empty(n);
  kernels.matrix_vector(dense.data(), n, stride, x.data(), vector.data());
  digest.add_all(vector);

  std::array<double, kW> sums = {};
  kernels.bilinear(square.view(), x.data(), y.data(), sums.data());
  digest.add_all(sums);
  kernels.sum(n, x.data(), sums.data());
  digest.add_all(sums);
  kernels.sum_squares(n, x.data(), sums.data());
  digest.add_all(sums);

  std::vector<unsigned long long> mask(static_cast<std::size_t>(size));
  for (unsigned long long& m : mask) m = numbers.below(2) == 0 ? 0ull : ~0ull;
  out = y;
  kernels.add_masked(square.view(), mask.data(), x.data(), out.data());
  digest.add_all(out);

  kernels.advance(n, 0.3, x.data(), y.data());
  digest.add_all(y);
  kernels.scale(n, 1.7, x.data(), out.data());
  kernels.add(n, y.data(), out.data());
  digest.add_all(out);
  kernels.subtract(n, x.data(), out.data());
  digest.add_all(out);

  constexpr int kStages = 3;
  const std::vector<double> g = numbers.draw(kStages * size, -1, 1);
  std::vector<double> rhs = empty(kStages * size), X = empty(kStages * size);
  kernels.stage_rhs(n, kStages, g.data(), x.data(), rhs.data());
  digest.add_all(rhs);
  const std::vector<double> weights = {0.2, 0.5, 0.3};
  kernels.stage_end(n, kStages, weights.data(), rhs.data(), y.data(), X.data());
  digest.add_all(y);
  digest.add_all(X);

  std::array<const double*, kW> from = {};
  std::array<double*, kW> to = {};
  std::vector<double> given = empty(size);
  for (int l = 0; l < kW; ++l) {
    from[static_cast<std::size_t>(l)] = y.data() + l * n;
    to[static_cast<std::size_t>(l)] = given.data() + l * n;
  }
  kernels.gather(n, from.data(), out.data());
  digest.add_all(out);
  kernels.scatter(n, kW - 3, out.data(), to.data());
  digest.add_all(given);
  return digest;
}

// Run in processes of its own.
const testing::DigestSuite kLaneKernelBitsDigests("LaneKernelBits", [] {
  // Up to eight rows at once, and what remains of them.
  for (const int n : {1, 2, 5, 8, 11, 16, 19, 30, 37}) {
    run_lanes(n, false).print(fmt::format("n{}", n));
    run_lanes(n, true).print(fmt::format("n{}'", n));
  }
});

// Junctions.

constexpr int kJunctions = 21;

Digest run_junctions(JunctionRun run, bool control) {
  run.count = kJunctions;
  junction_kernels().choose(run);
  const int arity = run.arity;
  Numbers numbers(static_cast<std::uint64_t>(arity));
  const int waves = arity * kJunctions;
  // Every wave belongs to one position, in an order that is mixed where it may be.
  std::vector<int> order, offsets;
  for (int w = 0; w < waves; ++w) order.push_back(w);
  for (int w = waves - 1; w > 0 && !run.contiguous; --w) {
    std::swap(order[static_cast<std::size_t>(w)],
              order[static_cast<std::size_t>(numbers.below(w + 1))]);
  }
  if (run.contiguous) {
    for (int k = 0; k < arity; ++k) offsets.push_back(k * kJunctions);
  } else {
    offsets = order;
  }
  const int values = run.form == JunctionForm::dense ? 2 * arity * arity * kJunctions
                     : run.shared                    ? arity
                                                     : waves;
  const std::vector<double> value = numbers.draw(values, -0.7, 0.7);
  std::vector<double> b = numbers.draw(waves, -1, 1), u = numbers.draw(waves, -1, 1);
  if (control) testing::nudge(b[0]);
  std::vector<double> a(b.size()), work(static_cast<std::size_t>(arity));
  Digest digest;
  run.exchange(run, offsets.data(), value.data(), b.data(), a.data());
  digest.add_all(a);
  run.average(run, offsets.data(), value.data(), 0.6, b.data(), u.data(), work.data());
  digest.add_all(u);
  run.resolve(run, offsets.data(), value.data(), 1.3, b.data(), u.data(), work.data());
  digest.add_all(u);
  return digest;
}

// Run in processes of its own.
const testing::DigestSuite kJunctionKernelBitsDigests("JunctionKernelBits", [] {
  const auto print = [](const std::string& name, const JunctionRun& run) {
    run_junctions(run, false).print(name);
    run_junctions(run, true).print(name + "'");
  };
  for (const bool contiguous : {false, true}) {
    const std::string where = contiguous ? "_contiguous" : "";
    JunctionRun swap;
    swap.contiguous = contiguous;
    swap.arity = 2;
    print("swap" + where, swap);
    for (const bool shared : {false, true}) {
      for (const int arity : {1, 2, 3, 4, 6}) {
        for (const double sign : {1.0, -1.0}) {
          JunctionRun reflection = swap;
          reflection.form = JunctionForm::reflection;
          reflection.shared = shared;
          reflection.arity = arity;
          reflection.sign = sign;
          print(fmt::format("reflection{}{}{}{}", arity, sign > 0 ? '+' : '-',
                            shared ? "_shared" : "", where),
                reflection);
        }
      }
    }
  }
  for (const int arity : {2, 3, 5}) {
    JunctionRun dense;
    dense.form = JunctionForm::dense;
    dense.arity = arity;
    print(fmt::format("dense{}", arity), dense);
  }
});

// The ledger.

constexpr int kLanes = 45;

/// A column for each energy of a step, and what is made of them.
struct Columns {
  std::vector<double> change, supply, dissipated, mismatch, residual, tolerance;

  explicit Columns(Numbers& numbers)
      : change(numbers.draw(kLanes, -1, 1)),
        supply(numbers.draw(kLanes, -1, 1)),
        dissipated(numbers.draw(kLanes, -0.1, 1)),
        mismatch(numbers.draw(kLanes, -1, 1)),
        residual(numbers.draw(kLanes, -1, 1e-3)),
        tolerance(numbers.draw(kLanes, 0, 1e-3)) {
    tolerance[3] = 0.0;
  }
  LedgerColumns view(double accepted) const {
    return {change.data(),   supply.data(),    dissipated.data(), mismatch.data(),
            residual.data(), tolerance.data(), accepted};
  }
};

void add(Digest& digest, const LedgerTotals& t) {
  digest.add_all(std::array{t.change, t.supply, t.dissipated, t.mismatch, t.tolerance,
                            t.largest_residual, t.largest_excess});
}

Digest run_accounts(int ports, bool control) {
  const LedgerKernels& kernels = ledger_kernels();
  Numbers numbers(static_cast<std::uint64_t>(ports));
  Columns columns(numbers);
  std::vector<double> a = numbers.draw(ports * kLanes, -1, 1),
                      b = numbers.draw(ports * kLanes, -1, 1), before = numbers.draw(kLanes, 0, 3),
                      storage(kLanes);
  if (control) testing::nudge(a[20]);
  LedgerTask task;
  task.ports = ports;
  task.stride = kLanes;
  task.a = a.data();
  task.b = b.data();
  task.step = {columns.change.data(), columns.supply.data(), columns.dissipated.data()};
  task.storage_before = before.data();
  task.storage = storage.data();
  task.residual = columns.residual.data();
  task.tolerance = columns.tolerance.data();
  task.mismatch = columns.mismatch.data();
  Digest digest;
  for (const auto& [first, last] : {std::pair{0, kLanes}, {3, 40}, {18, 21}}) {
    task.first = first;
    task.last = last;
    kernels.account(task);
    for (const auto* column : {&storage, &columns.residual, &columns.tolerance, &columns.mismatch})
      digest.add_all(*column);
    add(digest, kernels.account_chunk(task, 3.0));
    for (const auto* column : {&storage, &columns.residual, &columns.tolerance, &columns.mismatch})
      digest.add_all(*column);
  }
  const std::vector<double> exchanged = numbers.draw(ports * kLanes, -1, 1);
  std::vector<double> gap(kLanes), incident(kLanes), outgoing(kLanes);
  kernels.norms({3, 40, ports, kLanes, a.data(), b.data(), exchanged.data(), gap.data(),
                 incident.data(), outgoing.data()});
  for (const auto* column : {&gap, &incident, &outgoing}) digest.add_all(*column);
  return digest;
}

/// Parts of one small island, anywhere among the lanes, with `ports` ports each.
Digest run_small_account(int count, int ports, bool control) {
  const LedgerKernels& kernels = ledger_kernels();
  Numbers numbers(static_cast<std::uint64_t>(10 * count + ports));
  Columns columns(numbers), apart = columns;
  std::vector<double> a = numbers.draw(ports * kLanes, -1, 1),
                      b = numbers.draw(ports * kLanes, -1, 1), before = numbers.draw(kLanes, 0, 3),
                      storage(kLanes), storage_apart(kLanes);
  if (control) testing::nudge(a[2]);
  std::vector<PartPorts> parts;
  std::vector<int> index;
  for (int i = 0; i < count; ++i) {
    index.push_back((7 * i + 2) % kLanes);
    parts.push_back({index.back(), ports, index.back(), kLanes});
  }
  constexpr double kAccepted = 2.0;
  constexpr int kApart = 3;
  std::array<double, 7 * kApart> sums = {};
  LedgerTotals wanted = {};
  kernels.account_island(
      {parts.data(), count, a.data(), b.data(),
       EnergyColumns{columns.change.data(), columns.supply.data(), columns.dissipated.data()},
       before.data(), storage.data(), columns.residual.data(), columns.tolerance.data(),
       columns.mismatch.data(), kAccepted, sums.data(), kApart});
  const LedgerTotals totals{sums[0],          sums[kApart],     sums[2 * kApart], sums[3 * kApart],
                            sums[4 * kApart], sums[5 * kApart], sums[6 * kApart]};
  // The same, lane by lane.
  for (const int lane : index) {
    kernels.account(
        {lane, lane + 1, ports, kLanes, a.data(), b.data(),
         EnergyColumns{apart.change.data(), apart.supply.data(), apart.dissipated.data()},
         before.data(), storage_apart.data(), apart.residual.data(), apart.tolerance.data(),
         apart.mismatch.data()});
  }
  kernels.totals(apart.view(kAccepted), index.data(), count, &wanted);
  Digest digest, lane_by_lane;
  add(digest, totals);
  add(lane_by_lane, wanted);
  for (const auto* column : {&storage, &columns.residual, &columns.tolerance, &columns.mismatch})
    digest.add_all(*column);
  for (const auto* column : {&storage_apart, &apart.residual, &apart.tolerance, &apart.mismatch})
    lane_by_lane.add_all(*column);
  EXPECT_EQ(digest.value(), lane_by_lane.value()) << count << " parts of " << ports << " ports";
  return digest;
}

Digest run_totals(int count, bool control) {
  const LedgerKernels& kernels = ledger_kernels();
  Numbers numbers(3);
  Columns columns(numbers);
  std::vector<int> index;
  for (int i = 0; i < count; ++i) index.push_back((7 * i + 2) % kLanes);
  if (control) {
    testing::nudge(columns.change[0]);
    testing::nudge(columns.change[2]);
  }
  Digest digest;
  LedgerTotals totals = {};
  kernels.totals(columns.view(2.0), nullptr, count, &totals);
  add(digest, totals);
  kernels.totals(columns.view(2.0), index.data(), count, &totals);
  add(digest, totals);
  digest.add(kernels.sum(columns.supply.data(), nullptr, count));
  digest.add(kernels.sum(columns.supply.data(), index.data(), count));
  return digest;
}

/// The accounts of islands over some steps.
Digest run_islands(int parts, bool side_by_side, bool guarded, bool control) {
  const LedgerKernels& kernels = ledger_kernels();
  Numbers numbers(static_cast<std::uint64_t>(parts));
  const int islands = kLanes / parts - 1;
  std::vector<int> first, step;
  for (int p = 0; p < parts; ++p) {
    first.push_back(side_by_side ? p * islands + 1 : p);
    step.push_back(side_by_side ? 1 : parts);
  }
  const std::vector<double> accepted = numbers.draw(islands, 0, 3);
  std::vector<double> accounts(IslandAccount::kColumns * static_cast<std::size_t>(islands), 0.0);
  const auto column = [&](IslandAccount::Column c) { return accounts.data() + c * islands; };
  const auto draw = [&](IslandAccount::Column c, double low, double high) {
    std::ranges::copy(numbers.draw(islands, low, high), column(c));
  };
  for (const auto c : {IslandAccount::kTankAtStart, IslandAccount::kSent}) draw(c, 0, 1);
  draw(IslandAccount::kSize, 1, 9);
  draw(IslandAccount::kPerInitialEnergy, 0.1, 2);
  draw(IslandAccount::kByStates, 0, 1e-5);
  draw(IslandAccount::kTolerated, 0, 0.1);
  draw(IslandAccount::kToleratedOfStep, 0, 0.01);
  // Sums with their lost parts, and maxima.
  for (int c = IslandAccount::kGained; c <= IslandAccount::kGivenUpLost; ++c) {
    draw(static_cast<IslandAccount::Column>(c), -1, 1);
  }
  for (const auto c : {IslandAccount::kMoved, IslandAccount::kByWaves, IslandAccount::kMaxResidual,
                       IslandAccount::kMaxStored, IslandAccount::kMaxRatio}) {
    draw(c, 0, 1e-13);
  }

  Digest digest;
  for (int n = 0; n < 6; ++n) {
    Columns columns(numbers);
    if (control && n == 2) testing::nudge(columns.change[1]);
    IslandSumsTask of_parts;
    of_parts.at = {islands, parts, first.data(), step.data()};
    of_parts.columns = columns.view(0.0);
    of_parts.accepted = accepted.data();
    of_parts.change = column(IslandAccount::kChange);
    of_parts.supply = column(IslandAccount::kSupply);
    of_parts.dissipated = column(IslandAccount::kDissipated);
    of_parts.mismatch = column(IslandAccount::kMismatch);
    of_parts.tolerance = column(IslandAccount::kTolerance);
    of_parts.largest_residual = column(IslandAccount::kLargestResidual);
    of_parts.largest_excess = column(IslandAccount::kLargestExcess);
    kernels.island_sums(of_parts);
    const IslandAccountsTask task{accounts.data(), islands, {guarded, 0.8}, true};
    kernels.judge_islands(task);
    kernels.settle_islands(task);
    digest.add_all(accounts);
  }
  return digest;
}

// Run in processes of its own.
const testing::DigestSuite kLedgerKernelBitsDigests("LedgerKernelBits", [] {
  for (const bool control : {false, true}) {
    const std::string mark = control ? "'" : "";
    for (const int ports : {1, 2, 3, 4})
      run_accounts(ports, control).print(fmt::format("account{}{}", ports, mark));
    for (const int count : {1, 2, 3, 5, SmallIslandTask::kMostParts}) {
      for (const int ports : {1, 2, 3}) {
        run_small_account(count, ports, control)
            .print(fmt::format("small{}x{}{}", count, ports, mark));
      }
    }
    for (const int count : {1, 2, 3, 8, 21, kLanes})
      run_totals(count, control).print(fmt::format("totals{}{}", count, mark));
    for (const int parts : {1, 2, 3, 4, 5}) {
      for (const bool side_by_side : {false, true}) {
        for (const bool guarded : {false, true}) {
          run_islands(parts, side_by_side, guarded, control)
              .print(fmt::format("islands{}{}{}{}", parts, side_by_side ? "_side_by_side" : "",
                                 guarded ? "_guarded" : "", mark));
        }
      }
    }
  }
});

// Small islands.

using Form = PortSolve::Form;

/// A part whose port solve is of that form: what it reads, and what it carries along.
struct SmallPart {
  std::vector<double> coefficients, offset, cubic, last;
  int ports;
  Form form;

  SmallPart(Form of_form, int of_ports, Numbers& numbers)
      : offset(numbers.draw(of_ports, -1, 1)), ports(of_ports), form(of_form) {
    if (form == Form::affine) {
      coefficients = numbers.draw(ports + ports * ports, -0.3, 0.3);
      return;
    }
    coefficients = numbers.draw(1 + 3 * ports, 0.1, 0.4);
    cubic = {numbers(-0.2, 0.2), numbers(2.0, 3.0), numbers(-1.0, 1.0)};  // increasing
    last = {0.0, cubic[2], 1.0 / cubic[1]};
  }
  PortSolve view() {
    return {.form = form,
            .ports = ports,
            .coefficients = coefficients.data(),
            .offset = offset.data(),
            .cubic = cubic.data(),
            .last = last.data()};
  }
};

/// Two parts of one port in registers, with few and many evaluations, one step after another.
Digest run_pair(Form first, Form second, SmallIslandKernels::Junction junction,
                SmallIslandKernels::Pass pass, bool control) {
  Numbers numbers(static_cast<std::uint64_t>(10 * junction + pass));
  SmallPart one(first, 1, numbers), other(second, 1, numbers);
  PairTask task;
  task.parts[0] = one.view();
  task.parts[1] = other.view();
  task.waves[0] = 3;
  task.waves[1] = 1;
  if (junction == SmallIslandKernels::reflection) {
    task.p = 0.6;
    task.s = 0.8;
  }
  std::vector<double> b = numbers.draw(5, -1, 1), a(b.size());
  if (control) testing::nudge(b[1]);
  const PairSweep sweep = small_island_kernels().pair_sweep(first, second, junction, pass);
  const double factor = pass == SmallIslandKernels::exchange ? 1.0 : 0.9;
  Digest digest;
  for (const int evaluations : {0, 1, 2, 5, 20}) {
    EXPECT_TRUE(sweep(task, evaluations, factor, b.data(), a.data()));
    digest.add_all(a);
    digest.add_all(one.last);
    digest.add_all(other.last);
  }
  return digest;
}

/// Parts of several ports, side by side in a small array.
Digest run_packed(Form form, int ports, bool control) {
  constexpr int kParts = 3;
  Numbers numbers(static_cast<std::uint64_t>(ports));
  std::vector<SmallPart> parts;
  for (int i = 0; i < kParts; ++i) parts.emplace_back(form, ports, numbers);
  std::vector<PortSolve> solves;
  for (SmallPart& part : parts) solves.push_back(part.view());
  std::vector<double> u = numbers.draw(kParts * ports, -1, 1), b(u.size());
  if (control) testing::nudge(u.back());
  Digest digest;
  for (int k = 0; k < 6; ++k) {
    EXPECT_TRUE(small_island_kernels().solve(solves.data(), kParts, u.data(), b.data()));
    digest.add_all(b);
    for (std::size_t i = 0; i < u.size(); ++i) u[i] = 0.5 * (u[i] + b[u.size() - 1 - i]);
  }
  for (const SmallPart& part : parts) digest.add_all(part.last);
  return digest;
}

// Run in processes of its own.
const testing::DigestSuite kSmallIslandKernelBitsDigests("SmallIslandKernelBits", [] {
  using Kernels = SmallIslandKernels;
  const std::pair<Form, Form> pairs[] = {
      {Form::cubic, Form::cubic}, {Form::cubic, Form::affine}, {Form::affine, Form::affine}};
  for (const bool control : {false, true}) {
    const std::string mark = control ? "'" : "";
    for (const auto& [first, second] : pairs) {
      for (const auto junction : {Kernels::swap, Kernels::reflection}) {
        for (const auto pass : {Kernels::exchange, Kernels::average, Kernels::resolve}) {
          run_pair(first, second, junction, pass, control)
              .print(fmt::format("pair{}{}_junction{}_pass{}{}", static_cast<int>(first),
                                 static_cast<int>(second), static_cast<int>(junction),
                                 static_cast<int>(pass), mark));
        }
      }
    }
    for (const Form form : {Form::affine, Form::cubic}) {
      for (const int ports : {1, 2, 3, 5}) {
        run_packed(form, ports, control)
            .print(fmt::format("packed{}x{}{}", static_cast<int>(form), ports, mark));
      }
    }
  }
});

struct Suite {
  const char* name;
  std::size_t computations;
};
void PrintTo(const Suite& suite, std::ostream* out) { *out << suite.name; }

class CouplingKernels : public ::testing::TestWithParam<Suite> {};

TEST_P(CouplingKernels, GiveTheSameBitsOnEveryInstructionSet) {
  testing::expect_equal_digests(GetParam().name, 2 * GetParam().computations);
}

#ifdef PORTWAVE_OTHER_PROGRAM
TEST_P(CouplingKernels, GiveTheSameBitsOnAnotherArchitecture) {
  testing::expect_digests_of(PORTWAVE_OTHER_PROGRAM, GetParam().name, GetParam().computations,
                             [](const std::string& /*name*/) { return true; });
}
#endif

INSTANTIATE_TEST_SUITE_P(All, CouplingKernels,
                         ::testing::Values(Suite{"LaneKernelBits", 9},
                                           Suite{"JunctionKernelBits", 45},
                                           Suite{"SmallIslandKernelBits", 26},
                                           Suite{"LedgerKernelBits", 45}),
                         [](const auto& suite) { return std::string(suite.param.name); });

}  // namespace
}  // namespace portwave
