// No step after the first takes memory from the heap. Counted at malloc (Eigen calls it directly)
// and at operator new; see the link options of this program.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/parts.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"
#include "support/guard_of.hpp"
#include "support/systems/descriptor_parts.hpp"
#include "support/systems/networks.hpp"
#include "support/systems/separable_networks.hpp"
#include "support/systems/systems.hpp"

namespace {
std::atomic<long> allocations{0};
std::atomic<bool> is_memory_used_up{false};  // for operator new
}  // namespace

extern "C" {
void* __real_malloc(std::size_t size);                            // NOLINT
void* __real_calloc(std::size_t count, std::size_t size);         // NOLINT
void* __real_realloc(void* old, std::size_t size);                // NOLINT
void* __real_aligned_alloc(std::size_t align, std::size_t size);  // NOLINT

void* __wrap_malloc(std::size_t size) {  // NOLINT
  ++allocations;
  return __real_malloc(size);
}
void* __wrap_calloc(std::size_t count, std::size_t size) {  // NOLINT
  ++allocations;
  return __real_calloc(count, size);
}
void* __wrap_realloc(void* old, std::size_t size) {  // NOLINT
  ++allocations;
  return __real_realloc(old, size);
}
void* __wrap_aligned_alloc(std::size_t align, std::size_t size) {  // NOLINT
  ++allocations;
  return __real_aligned_alloc(align, size);
}
}

void* operator new(std::size_t size) {
  ++allocations;
  if (is_memory_used_up) throw std::bad_alloc();
  if (void* memory = __real_malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void* operator new[](std::size_t size) { return operator new(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return __real_malloc(size == 0 ? 1 : size);
}
void* operator new[](std::size_t size, const std::nothrow_t& tag) noexcept {
  return operator new(size, tag);
}
void* operator new(std::size_t size, std::align_val_t align) {
  ++allocations;
  const auto alignment = static_cast<std::size_t>(align);
  if (void* memory =
          __real_aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)) {
    return memory;
  }
  throw std::bad_alloc();
}
void* operator new[](std::size_t size, std::align_val_t align) { return operator new(size, align); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace portwave {
namespace {

/// Allocations in steps 2 to 21.
long allocations_while_stepping(const System& system, const StepperOptions& options) {
  Stepper stepper(system, options);
  stepper.step();
  const long before = allocations;
  stepper.step(20);
  return allocations - before;
}

/// A pendulum-like nonlinear part, solved by the generic Newton batch.
System generic_nonlinear_pair(DiscreteGradient kind, bool with_hessian) {
  Structure structure = Structure::zero(2, 1);
  structure.J.insert(0, 1) = 1.0;
  structure.J.insert(1, 0) = -1.0;
  structure.R.insert(1, 1) = 0.1;
  structure.G.insert(1, 0) = -1.0;
  Hamiltonian hamiltonian;
  hamiltonian.value = [](const double* x) { return 1.0 - std::cos(x[0]) + 0.5 * x[1] * x[1]; };
  hamiltonian.gradient = [](const double* x, double* g) {
    g[0] = std::sin(x[0]);
    g[1] = x[1];
  };
  if (with_hessian) {
    hamiltonian.hessian = [](const double* x, double* h) {
      h[0] = std::cos(x[0]);
      h[1] = h[2] = 0.0;
      h[3] = 1.0;
    };
  }
  NonlinearPortHamiltonian::Options options;
  options.discrete_gradient = kind;
  SystemBuilder builder;
  builder.add("pendulum",
              std::make_unique<NonlinearPortHamiltonian>(
                  Signature{"pendulum",
                            {{"q", ""}, {"p", ""}},
                            {{"coupling", Causality::effort_in, Domain::translation, 1}},
                            {}},
                  std::move(structure), std::move(hamiltonian), options),
              {.initial_state = {1.0, 0.2}});
  builder.add("B", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 2}));
  builder.connect("pendulum.coupling", "B.coupling");
  return builder.build();
}

StepperOptions serial(double gamma) {
  StepperOptions options{.method = WaveCoupling{}};
  options.start = Start::as_given;
  options.method.waves().impedance = {gamma};
  return options;
}

TEST(Allocation, NoneInAStepAfterTheFirst) {
  for (const testing::NamedSystem& sample : testing::sample_systems()) {
    const System system = sample.make();
    StepperOptions options = serial(sample.impedance);
    EXPECT_EQ(allocations_while_stepping(system, options), 0) << sample.name;
    options.method.waves().tolerance = 1e-8;
    options.method.waves().tolerance_per_part = true;
    EXPECT_EQ(allocations_while_stepping(system, options), 0) << sample.name << " tolerance";
  }
}

// Factors of linear islands are made once; those of others stay while they serve.
TEST(Allocation, NoneWithTheInterfaceUpdate) {
  SystemBuilder builder;
  builder.add("left", linear_oscillator({.mass_kg = 3, .stiffness_N_per_m = 2}),
              {.initial_state = {1, 0}});
  builder.add("right", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 5}));
  builder.join(joint::CommonEffort{}, {"left.coupling", "right.coupling"});
  StepperOptions options = serial(0.1);
  options.method.waves().kind = WaveUpdate::interface;
  options.method.waves().tolerance = 1e-10;
  EXPECT_EQ(allocations_while_stepping(builder.build(), options), 0);
}

TEST(Allocation, NoneInASparsePart) {
  SystemBuilder builder;
  builder.add("long", mass_spring_damper_chain({.masses = 60, .stiffness_N_per_m = 40}));
  builder.add("end", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 2}),
              {.initial_state = {1, 0}});
  builder.connect("long.right", "end.coupling");
  builder.join(joint::Free{}, {"long.left"});
  const System system = builder.build();
  const auto* part = dynamic_cast<const LinearPortHamiltonian*>(system.parts()[0].component.get());
  ASSERT_TRUE(part != nullptr && part->uses_sparse_step_maps());
  for (const int stages : {1, 2, 3}) {
    StepperOptions options = serial(0.1);
    options.method.waves().stages = stages;
    EXPECT_EQ(allocations_while_stepping(system, options), 0) << stages;
  }
}

TEST(Allocation, NoneWithStages) {
  for (const int stages : {2, 3}) {
    StepperOptions options = serial(0.1);
    options.method.waves().stages = stages;
    for (const testing::NamedSystem& sample : testing::sample_systems()) {
      const System system = sample.make();
      options.method.waves().impedance = {sample.impedance};
      EXPECT_EQ(allocations_while_stepping(system, options), 0) << sample.name;
    }
    for (const bool with_hessian : {true, false}) {
      const System pair = generic_nonlinear_pair(DiscreteGradient::gonzalez, with_hessian);
      EXPECT_EQ(allocations_while_stepping(pair, options), 0) << "hessian=" << with_hessian;
    }
  }
}

/// Steps that choose their size allocate where one is of a size that was not in use before. Once
/// sizes are settled none does, nor does starting from where waves would have gone on.
TEST(Allocation, NoneInStepsOfChosenSize) {
  for (const int stages : {1, 2, 3}) {
    const System system = testing::duffing_linear_pair();
    StepperOptions options = serial(0.0625);
    options.method = WaveCoupling::automatic();
    options.method.waves().stages = stages;
    options.method.waves().start = InnerStart::extrapolated;
    options.method.waves().retune_factor = 0.0;
    options.sizes = StepSizes{.tolerance = 1e-4};
    Stepper stepper(system, options);
    stepper.step(600);
    // A stretch without a change of size: one is sure to be among these.
    long least = 1;
    for (int stretch = 0; stretch < 20 && least > 0; ++stretch) {
      const std::int64_t changes = stepper.step_sizes()->changes;
      const std::int64_t rejected = stepper.step_sizes()->rejected;
      const long before = allocations;
      stepper.step(20);
      const long own = allocations - before;
      const bool is_settled =
          stepper.step_sizes()->changes == changes && stepper.step_sizes()->rejected == rejected;
      if (is_settled) least = own;
    }
    EXPECT_EQ(least, 0) << stages;
  }
}

TEST(Allocation, NoneInASignalGraph) {
  SystemBuilder builder;
  SystemBuilder::PartOptions driven;
  driven.inputs["force"] = Signal::settable();
  driven.initial_state = {0.3, 0.0};
  builder.add("m", linear_oscillator({.mass_kg = 4, .stiffness_N_per_m = 50}), driven);
  builder.join(joint::Free{}, {"m.coupling"});
  const System system = builder.build();
  SignalGraphBuilder graph(system);
  graph.sensor("q", {Sensor::Kind::state, 0, 0});
  graph.sensor("e", {Sensor::Kind::effort, 0, 0});
  graph.sensor("H", {Sensor::Kind::storage, 0, 0});
  graph.block("late", block::delay(5), {"H"});
  graph.block("pid", block::pid({.proportional = 3.0, .integral = 1.0, .derivative = 0.1}),
              {"e", "q"}, 3);
  const Eigen::MatrixXd gains = Eigen::MatrixXd::Constant(3, 3, 0.1);
  graph.block("filter", block::state_space({gains, gains, gains, gains}), {"q", "late", "pid"});
  graph.block("sway", block::expression("0.1*sin(2*pi*t) + if(q > 0, q, 0)", {"q"}), {"q"});
  graph.block("force", block::sum({1.0, 1.0, 1.0}), {"filter[0]", "pid", "sway"});
  graph.actuate("force", 0, 0);
  StepperOptions options = serial(0.01);
  options.method = WaveCoupling::automatic();
  options.signals = std::make_shared<const SignalGraph>(graph.build());
  EXPECT_EQ(allocations_while_stepping(system, options), 0);
}

TEST(Allocation, NoneInSubsteps) {
  SystemBuilder builder;
  builder.add("A",
              duffing_oscillator({.mass_kg = 8,
                                  .stiffness_N_per_m = 100,
                                  .cubic_stiffness_N_per_m3 = 8000,
                                  .coupling_stiffness_N_per_m = 120}),
              {.initial_state = {0.4, 0, -0.4},
               .inputs = {{"force", Signal::expression("sin(4*pi*t)")}},
               .substeps = 3});
  builder.add("B", linear_oscillator({.mass_kg = 4, .stiffness_N_per_m = 50}), {.substeps = 4});
  builder.connect("A.coupling", "B.coupling");
  const System system = builder.build();
  for (const int stages : {1, 2, 3}) {
    StepperOptions options = serial(0.02);
    options.method = WaveCoupling::automatic();
    options.method.waves().stages = stages;
    options.method.waves().retune_factor = 0.0;
    EXPECT_EQ(allocations_while_stepping(system, options), 0) << stages;
  }
}

TEST(Allocation, NoneInADescriptorPart) {
  for (const auto storage : {StepMapStorage::dense, StepMapStorage::sparse}) {
    SystemBuilder builder;
    builder.add("left", testing::circuit_left(storage),
                {.initial_state = {}, .inputs = {{"source", Signal::constant(1.0)}}});
    builder.add("right", testing::circuit_right(storage));
    builder.connect("left.right", "right.left");
    const System system = builder.build();
    for (const int stages : {1, 2, 3}) {
      StepperOptions options = serial(1.0);
      options.method.waves().stages = stages;
      EXPECT_EQ(allocations_while_stepping(system, options), 0)
          << (storage == StepMapStorage::dense ? "dense" : "sparse") << ", stages " << stages;
    }
  }
}

TEST(Allocation, NoneInTheGenericNewtonBatch) {
  for (const auto kind :
       {DiscreteGradient::gonzalez, DiscreteGradient::mean_value, DiscreteGradient::itoh_abe}) {
    for (const bool with_hessian : {true, false}) {
      EXPECT_EQ(allocations_while_stepping(generic_nonlinear_pair(kind, with_hessian), serial(0.1)),
                0)
          << to_string(kind) << " hessian=" << with_hessian;
    }
  }
}

/// Two parts of this energy on one another; their friction depends on the state if it is not a number.
System pair_by_energy(const std::string& energy, const std::string& friction) {
  const CataloguePart part =
      parts::port_hamiltonian({.states = {{"q", "m"}, {"p", "kg m/s"}},
                               .ports = {{"end", Causality::effort_in, Domain::translation, 1}},
                               .energy = energy,
                               .J = {{0, 1}, {-1, 0}},
                               .R = {{0, 0}, {0, friction}},
                               .G = {{0}, {-1}}});
  SystemBuilder builder;
  builder.add("left", part, {.initial_state = {1.0, 0.5}, .inputs = {}});
  builder.add("spring", parts::spring_damper({.stiffness_N_per_m = 3, .damping_Ns_per_m = 0.1}));
  builder.add("right", part, {.initial_state = {-0.4, 0.0}, .inputs = {}});
  builder.connect("left.end", "spring.left");
  builder.connect("right.end", "spring.right");
  return builder.build();
}

TEST(Allocation, NoneInPartsGivenByExpressions) {
  for (const char* const energy :
       {"p^2/2 + q^4", "p^2/2 + 1 - cos(q)", "p^2/2 + sqrt(1 + q^2)*p^2"}) {
    for (const char* const friction : {"0.1", "0.1*(1 + q^2)"}) {
      EXPECT_EQ(allocations_while_stepping(pair_by_energy(energy, friction), serial(0.1)), 0)
          << energy << ", " << friction;
    }
  }
}

/// Inputs of every kind on parts of every kind.
System driven_system(Signal callback) {
  SystemBuilder builder;
  builder.add("duffing",
              duffing_oscillator({.mass_kg = 8,
                                  .stiffness_N_per_m = 100,
                                  .cubic_stiffness_N_per_m3 = 8000,
                                  .coupling_stiffness_N_per_m = 120,
                                  .coupling_damping_Ns_per_m = 0.05}),
              {.initial_state = {},
               .inputs = {{"force", Signal::sine_product(3.0, {{1.5, 0.2}, {0.3, 0.0}}, 1.0)}}});
  builder.add(
      "chain",
      mass_spring_damper_chain(
          {.masses = 3, .mass_kg = 0.5, .stiffness_N_per_m = 30, .coupling_stiffness_N_per_m = 40}),
      {.initial_state = {},
       .inputs = {{"force_1", Signal::constant(2.0)},
                  {"force_3", Signal::piecewise_linear({{0, 0}, {0.1, 5}, {0.15, -1}})}}});
  builder.add("linear", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 2}),
              {.initial_state = {}, .inputs = {{"force", std::move(callback)}}});
  builder.connect("duffing.coupling", "chain.left");
  builder.connect("chain.right", "linear.coupling");
  return builder.build();
}

TEST(Allocation, NoneInADrivenSystem) {
  const System system = driven_system(Signal::callback([](double t) { return std::cos(t); }));
  Stepper stepper(system, serial(0.1));
  const long construction = allocations;
  stepper.step(21);
  EXPECT_EQ(allocations - construction, 0) << "not even in the first step";
  EXPECT_NE(stepper.energy().supplied_J, 0.0);
}

TEST(AllocationControl, CountsWhatAnInputTakes) {
  const System system = driven_system(Signal::callback([](double t) {
    ::operator delete(::operator new(8));  // a new expression might be optimised away
    return t;
  }));
  EXPECT_EQ(allocations_while_stepping(system, serial(0.1)), 20);
}

/// Two threads for oneTBB whatever the machine has.
class TwoThreads {
 private:
  tbb::global_control control_{tbb::global_control::max_allowed_parallelism,
                               std::max<std::size_t>(2, std::thread::hardware_concurrency())};
};

StepperOptions on_two_threads(double gamma, ExecutorKind executor = ExecutorKind::async) {
  StepperOptions options = serial(gamma);
  options.threads = 2;
  options.grain = Grain::per_part();
  options.executor = executor;
  return options;
}

// What oneTBB takes for its tasks is taken inside libtbb, where neither count sees it: this is
// about what portwave itself takes, on either thread.
TEST(Allocation, NoneOfOurOwnOnTwoThreads) {
  const TwoThreads allowed;
  for (const testing::NamedSystem& sample : testing::sample_systems()) {
    const System system = sample.make();
    StepperOptions options = on_two_threads(sample.impedance, ExecutorKind::async);
    EXPECT_EQ(allocations_while_stepping(system, options), 0) << sample.name;
    options.method.waves().tolerance = 1e-8;
    options.method.waves().tolerance_per_part = true;
    EXPECT_EQ(allocations_while_stepping(system, options), 0) << sample.name << ", tolerance";
  }
  const System driven = driven_system(Signal::callback([](double t) { return std::cos(t); }));
  EXPECT_EQ(allocations_while_stepping(driven, on_two_threads(0.1)), 0);
  EXPECT_EQ(allocations_while_stepping(generic_nonlinear_pair(DiscreteGradient::gonzalez, true),
                                       on_two_threads(0.1)),
            0);
}

/// Small budgets and empty tanks, so that the guard acts; accelerated.
StepperOptions guarded(StepperOptions options, WaveUpdate kind, double relaxation, int memory) {
  options.method.waves().kind = kind;
  options.method.waves().relaxation = relaxation;
  options.method.waves().iterations = memory > 0 ? 5 : 2;
  options.method.waves().acceleration = memory;
  options.method.waves().impedance = {20.0 * options.method.waves().impedance[0]};
  options.method.waves().tank.initial_J = 0.0;
  return options;
}

TEST(Allocation, NoneWhenTheGuardActsAndIterationsAreAccelerated) {
  const TwoThreads allowed;
  std::int64_t uses = 0;
  for (const testing::NamedSystem& sample : testing::sample_systems()) {
    const System system = sample.make();
    for (const bool parallel : {false, true}) {
      const StepperOptions base =
          parallel ? on_two_threads(sample.impedance) : serial(sample.impedance);
      for (const auto& [kind, relaxation] : {std::pair{WaveUpdate::douglas_rachford, 1.0},
                                             std::pair{WaveUpdate::peaceman_rachford, 1.0},
                                             std::pair{WaveUpdate::peaceman_rachford, 0.5}}) {
        for (const int memory : {0, 10}) {
          const StepperOptions options = guarded(base, kind, relaxation, memory);
          Stepper stepper(system, options);
          stepper.step();
          const std::int64_t uses_before = testing::guard_of(stepper).uses;
          const long before = allocations;
          stepper.step(60);
          EXPECT_EQ(allocations - before, 0)
              << sample.name << ", " << to_string(kind) << " " << relaxation << ", memory "
              << memory << ", " << options.threads << " threads";
          uses += testing::guard_of(stepper).uses - uses_before;
        }
      }
    }
  }
  EXPECT_GT(uses, 100) << "the guard acts";
}

TEST(Allocation, NoneInMethodsWithoutWaves) {
  const TwoThreads allowed;
  const System system = testing::chain_of_blocks(4, 3);
  std::vector<CouplingMethod> methods = {
      Splitting{},
      Splitting{.kind = SplittingKind::impulse, .fast = {"block1"}},
      Splitting{.kind = SplittingKind::kick_drift},
      Splitting{.kind = SplittingKind::taylor},
      Splitting{.kind = SplittingKind::strang, .order = 4},
      Splitting{.kind = SplittingKind::impulse, .fast = {"block1"}, .order = 4}};
  for (const IterationKind kind :
       {IterationKind::lions_mercier, IterationKind::jacobi, IterationKind::gauss_seidel}) {
    for (const int window : {1, 4}) {
      methods.push_back(DynamicIteration{.kind = kind, .iterations = 7, .window_steps = window});
    }
  }
  for (const CouplingMethod& method : methods) {
    for (const ExecutorKind executor : {ExecutorKind::serial, ExecutorKind::async}) {
      StepperOptions options = on_two_threads(1.0, executor);
      options.step_s = 0.001;
      options.method = method;
      EXPECT_EQ(allocations_while_stepping(system, options), 0)
          << to_string(method.kind()) << ", " << to_string(executor);
    }
  }
}

TEST(Allocation, NoneInKicksAndDriftsOfADuffingGrid) {
  const TwoThreads allowed;
  const System system = testing::separable_grid(30, 0.05);  // rows that are long runs
  for (const int order : {4, 6}) {
    StepperOptions options = on_two_threads(1.0, ExecutorKind::serial);
    options.step_s = 0.02;
    options.method = Splitting{.kind = SplittingKind::kick_drift, .order = order};
    EXPECT_EQ(allocations_while_stepping(system, options), 0) << order;
  }
}

TEST(Allocation, NoneInAStepAfterAChangeOfImpedance) {
  const System system = testing::star();
  Stepper stepper(system, serial(0.05));
  stepper.step();
  stepper.waves()->set_impedance(std::vector<double>(system.scalar_ports().size(), 0.07));
  stepper.step();
  const long after = allocations;
  stepper.step(20);
  EXPECT_EQ(allocations - after, 0);
}

/// Of what a change of impedance allocates in a net of Duffing nodes, the second time and later, where
/// junctions keep their forms.
long allocations_of_retuning(const StepperOptions& options, bool change_forms) {
  const System system = testing::net(9, 9);
  Stepper stepper(system, options);
  std::vector<double> wanted(system.scalar_ports().size());
  const auto put = [&](double each, double factor) {
    for (std::size_t j = 0; j < wanted.size(); ++j) {
      wanted[j] = factor * (0.1 + each * static_cast<double>(j));
    }
  };
  long counted = 0;
  for (int n = 0; n < 6; ++n) {
    stepper.step(2);
    put(change_forms && n % 2 == 0 ? 0.0 : 0.003, 1.0 + 0.1 * n);
    const long before = allocations;
    stepper.waves()->set_impedance(wanted);
    if (n > 1) counted += allocations - before;
  }
  return counted;
}

TEST(Allocation, NoneWhereNonlinearPartsTakeOtherImpedances) {
  StepperOptions options = serial(0.1);
  options.threads = 1;
  options.method.waves().guard = false;
  EXPECT_EQ(allocations_of_retuning(options, false), 0);
}
TEST(AllocationControl, CountsLoopsThatAreCompiledAnew) {
  StepperOptions options = serial(0.1);
  options.threads = 1;
  options.method.waves().guard = false;
  EXPECT_GT(allocations_of_retuning(options, true), 0);
}

/// A step size that is new to the stepper takes step maps.
TEST(Snapshot, ThatThereIsNoMemoryForLeavesNothingToGoOnFromUntilOneIsRestored) {
  Stepper stepper(testing::lossless_pair(), serial(0.1));
  stepper.step();
  Stepper clone = stepper.clone(),
          left = stepper.clone();  // `left` ends, and is moved, as it is then
  stepper.step_by(0.05);
  const Snapshot snapshot = stepper.snapshot();
  for (Stepper* const own : {&clone, &left}) {
    bool is_refused = false;
    is_memory_used_up = true;
    try {
      own->restore(snapshot);
    } catch (const std::bad_alloc&) {
      is_refused = true;
    }
    is_memory_used_up = false;
    EXPECT_TRUE(is_refused);
  }
  const Stepper moved = std::move(left);
  EXPECT_THROW(clone.step(), std::logic_error);
  EXPECT_THROW((void)clone.snapshot(), std::logic_error);
  clone.restore(snapshot);
  stepper.step(3);
  clone.step(3);
  EXPECT_TRUE(clone.snapshot().to_bytes() == stepper.snapshot().to_bytes());
}

TEST(AllocationControl, CountsOnOtherThreads) {
  long counted = 0;
  std::thread([&] {
    const long before = allocations;
    ::operator delete(::operator new(8));
    void* volatile memory = std::malloc(10);  // NOLINT
    std::free(memory);
    counted = allocations - before;
  }).join();
  EXPECT_EQ(counted, 2);
}

TEST(AllocationControl, CountsNewAndMalloc) {
  const long before = allocations;
  ::operator delete(::operator new(8));
  EXPECT_EQ(allocations - before, 1);
  const long middle = allocations;
  void* volatile memory = std::malloc(10);  // NOLINT
  std::free(memory);
  EXPECT_EQ(allocations - middle, 1);
  const long after = allocations;
  const Eigen::VectorXd vector = Eigen::VectorXd::Zero(100);
  EXPECT_GE(allocations - after, 1) << vector.sum();
}

}  // namespace
}  // namespace portwave
