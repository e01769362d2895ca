// Equal blocks are solved side by side. That must not show in a single bit.

#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/coupling/network/dynamic_iteration.hpp>
#include <portwave/subsystems/catalogue/chain.hpp>

#include "network/block_groups.hpp"
#include "support/instruction_sets.hpp"

namespace portwave::test_block_lanes {
namespace {

/// lane groups of lanes from this many blocks on, while it lives.
class SmallestGroup {
 public:
  explicit SmallestGroup(int blocks) : before_(smallest_lane_group()) {
    set_smallest_lane_group(blocks);
  }
  ~SmallestGroup() { set_smallest_lane_group(before_); }
  SmallestGroup(const SmallestGroup&) = delete;
  SmallestGroup& operator=(const SmallestGroup&) = delete;

 private:
  int before_;
};
constexpr int kNever = kLaneGroup + 1;

struct Network {
  std::string name;
  int masses;   ///< of a chain
  bool driven;  ///< two parts by external forces
};

/// 21 equal chains and 3 different ones, end to end from a free end to a wall.
System make_system(const Network& network, double start = 0.1) {
  const auto chain = [&](double damping) {
    return std::shared_ptr<const Subsystem>(
        mass_spring_damper_chain({.masses = network.masses,
                                  .mass_kg = 0.3,
                                  .stiffness_N_per_m = 50.0,
                                  .damping_Ns_per_m = damping,
                                  .internal_damping_Ns_per_m = 0.02,
                                  .ground_stiffness_N_per_m = 3.0,
                                  .coupling_stiffness_N_per_m = 40.0}));
  };
  const std::shared_ptr<const Subsystem> equal = chain(0.1);
  SystemBuilder builder;
  constexpr int kParts = 24;
  for (int i = 0; i < kParts; ++i) {
    std::vector<double> x(static_cast<std::size_t>(2 * network.masses + 1));
    for (std::size_t k = 0; k < x.size(); ++k)
      x[k] = start * std::sin(7.0 * i + 1.3 * static_cast<double>(k * k));
    SystemBuilder::PartOptions options{.initial_state = x};
    if (network.driven && (i == 3 || i == 11))
      options.inputs["force_1"] = Signal::sine_product(1.0 + i, {{2.0, 0.3}});
    const bool different = i == 2 || i == 9 || i == 17;
    builder.add("c" + std::to_string(i), different ? chain(0.2 + 0.01 * i) : equal, options);
  }
  for (int i = 0; i + 1 < kParts; ++i)
    builder.connect("c" + std::to_string(i) + ".right", "c" + std::to_string(i + 1) + ".left");
  builder.join(joint::Free{}, {"c0.left"});
  builder.join(joint::Fixed{}, {"c" + std::to_string(kParts - 1) + ".right"});
  return builder.build();
}

const std::vector<Network> kNetworks = {{"sparse", 20, false},
                                        {"sparse_driven", 20, true},
                                        {"dense", 2, false},
                                        {"dense_driven", 2, true}};

struct Case {
  std::string name;
  CouplingMethod method = WaveCoupling{};
  bool ledger = true;
};

std::vector<Case> cases() {
  std::vector<Case> out;
  Splitting strang;
  out.push_back({"strang", strang});
  out.push_back({"strang_no_book", strang, false});
  strang.split_dissipation = true;
  out.push_back({"strang_split", strang});
  strang.split_dissipation = false;
  strang.coupling_flow = CouplingFlow::low_rank;
  out.push_back({"strang_low_rank", strang});
  out.push_back({"strang_low_rank_no_book", strang, false});
  Splitting impulse;
  impulse.kind = SplittingKind::impulse;
  impulse.factor = 3;
  for (const int i : {0, 1, 2, 4, 5, 8, 10, 12, 20, 21})
    impulse.fast.push_back("c" + std::to_string(i));
  out.push_back({"impulse", impulse});
  for (const int window : {1, 3}) {
    const std::string w = "_" + std::to_string(window);
    DynamicIteration m;
    m.iterations = 4;
    m.window_steps = window;
    m.kind = IterationKind::lions_mercier;
    out.push_back({"lions_mercier" + w, m});
    m.metric = IterationMetric::identity;
    out.push_back({"lions_mercier_identity" + w, m});
    m.metric = IterationMetric::automatic;
    m.integrator = Integrator::radau_iia;
    out.push_back({"lions_mercier_radau" + w, m});
    for (const IterationKind kind : {IterationKind::jacobi, IterationKind::gauss_seidel}) {
      m.kind = kind;
      const std::string name = kind == IterationKind::jacobi ? "jacobi" : "gauss_seidel";
      m.integrator = Integrator::automatic;
      out.push_back({name + w, m});
      m.integrator = Integrator::radau_iia;
      out.push_back({name + "_radau" + w, m});
    }
    m.iterations = 0;
    m.kind = IterationKind::jacobi;
    out.push_back({"jacobi_not_iterated" + w, m});
  }
  return out;
}

/// From the last to the first: another order than the usual one.
class Backwards : public ForEach {
 protected:
  void run(int count, void (*call)(const void* body, int i), const void* body) const override {
    for (int i = count; i-- > 0;) call(body, i);
  }
};

/// States, ledgers and residuals of a few steps.
std::vector<double> run(const System& parts, const Case& c, const ForEach& each = ForEach()) {
  const CondensedSystem system(parts);
  const auto method = make_network_method(system, 2e-3, c.method, c.ledger);
  std::vector<double> out;
  for (int n = 0; n < 7; ++n) {
    const NetworkStep step = method->step(each);
    out.insert(out.end(), method->state().begin(), method->state().end());
    const StepLedger& e = step.energy;
    out.insert(out.end(), {e.stored_J, e.supplied_J, e.dissipated_J, e.mismatch_J, step.residual});
  }
  for (int i = 0; i < static_cast<int>(system.blocks().size()); ++i)
    out.push_back(method->storage(i));
  return out;
}

/// What a waveform iteration shows of itself.
std::vector<double> run_waveforms(const System& parts, const CouplingMethod& method) {
  const CondensedSystem system(parts);
  WaveformIteration iteration(system, 2e-3, method.dynamic());
  const Eigen::VectorXd x = system.initial_state();
  iteration.begin(0.0, {x.data(), static_cast<std::size_t>(x.size())});
  std::vector<double> stages(iteration.stages_size()), out;
  const auto note = [&](const std::vector<double>& values) {
    out.insert(out.end(), values.begin(), values.end());
  };
  iteration.solve(ForEach(), stages);
  note(stages);
  if (method.kind() != IterationKind::lions_mercier) {
    for (std::size_t k = 0; k < stages.size(); ++k) stages[k] = std::sin(static_cast<double>(k));
    iteration.start_from(stages);
  }
  for (int k = 0; k < 3; ++k) {
    const WaveformChange change = iteration.iterate(ForEach());
    note({change.change, change.size});
    iteration.solve(ForEach(), stages);
    note(stages);
    if (method.kind() != IterationKind::lions_mercier) continue;
    iteration.z(stages);
    note(stages);
  }
  return out;
}

testing::Digest digest(const std::vector<double>& numbers) {
  testing::Digest out;
  out.add_all(numbers);
  return out;
}

void expect_same_bits(const std::vector<double>& a, const std::vector<double>& b,
                      const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  std::size_t different = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (std::bit_cast<std::uint64_t>(a[k]) != std::bit_cast<std::uint64_t>(b[k])) ++different;
  }
  EXPECT_EQ(different, 0u) << what << ": of " << a.size();
}

TEST(BlockLanes, GiveTheBitsOfBlockByBlockSolves) {
  for (const Network& network : kNetworks) {
    const System parts = make_system(network);
    for (const Case& c : cases()) {
      std::vector<double> alone;
      {
        const SmallestGroup never(kNever);
        alone = run(parts, c);
      }
      for (const double value : alone) ASSERT_TRUE(std::isfinite(value)) << network.name << c.name;
      expect_same_bits(run(parts, c), alone, network.name + " " + c.name);
      const SmallestGroup always(1);
      expect_same_bits(run(parts, c, Backwards()), alone,
                       network.name + " " + c.name + ", all lanes, tasks backwards");
    }
  }
}

TEST(BlockLanes, GiveTheWaveformsOfBlockByBlockSolves) {
  for (const Network& network : kNetworks) {
    const System parts = make_system(network);
    for (const Case& c : cases()) {
      if (!c.method.is<DynamicIteration>()) continue;
      std::vector<double> alone;
      {
        const SmallestGroup never(kNever);
        alone = run_waveforms(parts, c.method);
      }
      expect_same_bits(run_waveforms(parts, c.method), alone, network.name + " " + c.name);
    }
  }
}

TEST(BlockLanes, FewDifferentBlocksAreFoundAmongEqualOnes) {
  const System parts = make_system(kNetworks.front());
  const CondensedSystem system(parts);
  const BlockClasses classes(system.blocks());
  EXPECT_EQ(classes.count(), 4);
  std::vector<int> all(system.blocks().size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  std::vector<std::size_t> lanes;
  std::size_t blocks = 0;
  for (const BlockGroup& lane_group : classes.lane_groups(all)) {
    blocks += lane_group.blocks.size();
    if (lane_group.by_lanes) lanes.push_back(lane_group.blocks.size());
  }
  EXPECT_EQ(blocks, all.size());
  EXPECT_EQ(lanes, (std::vector<std::size_t>{8, 8, 5}));
  const SmallestGroup never(kNever);
  EXPECT_EQ(classes.lane_groups(all).size(), all.size());
}

TEST(BlockLanesControl, AnotherStartGivesOtherBits) {
  const Case strang = cases().front();
  EXPECT_NE(run(make_system(kNetworks.front()), strang),
            run(make_system(kNetworks.front(), std::nextafter(0.1, 1.0)), strang));
}

// Run in processes of its own.
const testing::DigestSuite kBlockLaneBitsDigests("BlockLaneBits", [] {
  for (const Network& network : kNetworks) {
    const System parts = make_system(network);
    for (const Case& c : cases()) digest(run(parts, c)).print(network.name + "_" + c.name);
    const Case first = cases().front();
    digest(run(make_system(network, 0.2), first)).print(network.name + "_" + first.name + "'");
  }
});

TEST(BlockLaneBits, AreTheSameOnEveryInstructionSet) {
  testing::expect_equal_digests("BlockLaneBits", 4 * cases().size());
}

}  // namespace
}  // namespace portwave::test_block_lanes
