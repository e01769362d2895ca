#include "portwave/runtime/ensemble/ensemble.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>

#include "ensemble/chunks.hpp"
#include "parallel/expect_number.hpp"
#include "parallel/threads/activity.hpp"
#include "parallel/threads/arena_impl.hpp"
#include "portwave/coupling/system/derived_systems.hpp"
#include "portwave/coupling/system/state_constraints.hpp"
#include "portwave/runtime/parallel/arena.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "step/staged_run.hpp"
#include "step/stepper_options.hpp"
#include "step/tuner.hpp"
#include "step/wave_start.hpp"

namespace portwave {
namespace {

/// A system, owned here or elsewhere.
using Source = std::function<const System&(int replica, std::optional<System>& own)>;

Issues check_ensemble(const System& one, int replicas, const StepperOptions& options,
                      const EnsembleOptions& ensemble) {
  Issues issues;
  const auto expect = [&](bool good, const char* where, const char* what) {
    if (!good) issues.push_back({where, what});
  };
  expect(replicas >= 1, "/ensemble/replicas", "must be >= 1");
  expect(ensemble.threads >= 1 && ensemble.threads <= kMaxThreads, "/ensemble/threads",
         "must be in 1..1024");
  expect(ensemble.chunk >= 0, "/ensemble/chunk", "must be >= 0");
  expect(
      !options.time.active(), "/deadline",
      "an ensemble keeps no pace and no deadline: what a step has time for would depend on which "
      "replicas are stepped beside it");
  expect(options.watches.empty(), "/events",
         "an ensemble does not tell events: step the replica that they are wanted of by itself");
  expect(options.method.couples_by_waves() || one.settable_inputs().empty(), "/method/kind",
         "without waves inputs are functions of time only, and this system has settable ones");
  return issues;
}

/// Whether rigid joints constrain inputs that may jump, or parts that may change.
bool has_moving_joints(const System& one) {
  const StateConstraints constraints(one, [&one](int part) -> std::span<const double> {
    return one.parts()[at(part)].initial_state;
  });
  return constraints.may_change() ||
         std::ranges::any_of(constraints.sources(), [&one](const StateConstraints::Source& own) {
           const Signal& input = one.parts()[at(own.part)].inputs[at(own.input)];
           return input.is_settable() || input.is_callback() ||
                  input.digest() != Signal::constant(input(0.0)).digest();
         });
}

/// Why replicas cannot lie in lanes whatever their impedances; empty: they can.
std::string find_obstacle(const System& one, const StepperOptions& options) {
  if (!options.method.couples_by_waves()) return "the method couples without waves";
  if (options.sizes) return "steps choose their own size";
  if (options.signals != nullptr) return "signals are sampled for each by itself";
  if (options.certify == Certify::full) return "every step of each is certified in full";
  if (one.island_count() != 1) return fmt::format("it falls into {} islands", one.island_count());
  if (has_moving_joints(one)) return "what enters a rigid joint may jump";
  for (const Part& part : one.parts()) {
    const Capabilities able = part.component->capabilities();
    if (able.knows_energy && able.repeatable && able.thread_safe &&
        part.port_hamiltonian() != nullptr) {
      continue;
    }
    return fmt::format("subsystem {} does not know its energy, repeat its steps or allow threads",
                       in_quotes(part.name));
  }
  return {};
}

/// Callbacks are called by one thread only, and some parts by one at a time.
bool allows_threads(const System& system) {
  return std::ranges::all_of(system.parts(), [](const Part& part) {
    return part.component->capabilities().thread_safe &&
           std::ranges::none_of(part.inputs, &Signal::is_callback);
  });
}

bool have_same_parts(const System& a, const System& b) {
  return std::ranges::equal(a.parts(), b.parts(), {}, &Part::component, &Part::component) &&
         std::ranges::equal(a.junctions(), b.junctions(), {}, &Junction::shared, &Junction::shared);
}

void refuse_other_shape(const System& one, const System& other, int replica) {
  const auto same_part = [](const Part& a, const Part& b) {
    const Signature& x = a.component->signature();
    const Signature& y = b.component->signature();
    return a.name == b.name && a.substeps == b.substeps && x.state_size() == y.state_size() &&
           x.wave_size() == y.wave_size() && x.input_size() == y.input_size();
  };
  const auto same_input = [](const System::SettableInput& a, const System::SettableInput& b) {
    return a.part == b.part && a.input == b.input;
  };
  const bool same = std::ranges::equal(one.parts(), other.parts(), same_part) &&
                    std::ranges::equal(one.junctions(), other.junctions(), {}, &Junction::waves,
                                       &Junction::waves) &&
                    std::ranges::equal(one.settable_inputs(), other.settable_inputs(), same_input);
  if (same) return;
  throw ConfigError(fmt::format("/ensemble/replicas/{}", replica),
                    "has another shape than the first one: parts by name, with as many states, "
                    "ports and inputs, couplings and settable inputs must be the same");
}

template <class Values>
std::vector<Values> repeated(const std::vector<Values>& values, int times) {
  std::vector<Values> out;
  for (int i = 0; i < times; ++i) out.insert(out.end(), values.begin(), values.end());
  return out;
}

}  // namespace

struct Ensemble::Impl {
  Impl(int count, const Source& source, const StepperOptions& given,
       const EnsembleOptions& ensemble)
      : replicas(count), options(given) {
    std::optional<System> own;
    const System& one = source(0, own);
    throw_if_any(check_ensemble(one, count, given, ensemble));
    checked(one, given);
    const System* const only[] = {&one};
    system.emplace(gathered_system(only));
    for (const Part& part : one.parts()) {
      first_state.push_back(states);
      states += static_cast<int>(part.initial_state.size());
    }
    inputs = static_cast<int>(one.settable_inputs().size());
    threads = allows_threads(one) ? ensemble.threads : 1;
    if (ensemble.arena == nullptr) threads = threads_allowed(threads);
    options.threads = 1;
    options.executor = ExecutorKind::serial;
    obstacle = find_obstacle(one, options);
    if (obstacle.empty()) choose_method();
    const int size = obstacle.empty() ? chunk_size(ensemble.chunk) : 1;
    for (int first = 0; first < replicas; first += size) {
      add_chunk(first, std::min(size, replicas - first), source, own);
    }
    if (!obstacle.empty()) {
      alone()->begin(initial.data());
      if (alone()->stepper() == nullptr) throw ConfigError("/", alone()->status(0).error);
      choice = alone()->stepper()->method();
    }
    execution = obstacle.empty()
                    ? fmt::format("{} chunk{} of up to {} replicas in lanes", chunks.size(),
                                  chunks.size() == 1 ? "" : "s", std::min(size, replicas))
                    : "each replica by itself: " + obstacle;
    if (threads == 1) return;
    arena = ensemble.arena != nullptr
                ? std::shared_ptr<tbb::task_arena>(ensemble.arena, &ensemble.arena->impl().arena)
                : std::make_shared<tbb::task_arena>(threads);
  }

  const SoloChunk* alone() const {
    return dynamic_cast<const SoloChunk*>(chunks.front().steps.get());
  }
  SoloChunk* alone() { return dynamic_cast<SoloChunk*>(chunks.front().steps.get()); }

  /// For the first replica, for all of them.
  void choose_method() {
    StagedRun run(*system, options);
    tuner.emplace(run.stepped(), options.step_s, run.options().method.waves());
    choice = tuner->choice();
    const WaveCoupling& m = choice.method.waves();
    const bool nonlinear = std::ranges::any_of(
        system->parts(), [](const Part& part) { return !part.component->capabilities().linear; });
    if (tuner->follows_state()) {
      obstacle = "impedances follow the state (\"retune_factor\" 0 leaves them as they are)";
    } else if (nonlinear && (m.kind == WaveUpdate::interface || !m.interface_islands.empty())) {
      obstacle = "the interface equation of nonlinear parts keeps factors for each";
    } else {
      const WaveDiscretisation waves(run.stepped(), options.step_s, m.impedance);
      doubles_per_replica =
          2 * waves.record_size() + 6 * at(waves.wave_size()) + 16 * waves.slots().size() + 40;
    }
    if (!obstacle.empty()) return;
    // Impedances are given by port from here on; other options stay.
    options.method = choice.method;
    options.method.waves().impedance_kind = ImpedanceKind::given;
    options.method.waves().initial_waves = run.options().method.waves().initial_waves;
  }

  int chunk_size(int wanted) const {
    if (wanted > 0) return std::min(wanted, replicas);
    constexpr std::size_t kCached = std::size_t{256} << 10;  // half of a second-level cache
    const std::size_t fitting = kCached / (sizeof(double) * doubles_per_replica);
    const int even = threads == 1 ? replicas : (replicas + 2 * threads - 1) / (2 * threads);
    const int size =
        std::clamp(static_cast<int>(std::min<std::size_t>(fitting, 1024)), 8, std::max(even, 8));
    return (size + kLaneGroup - 1) / kLaneGroup * kLaneGroup;
  }

  /// The impedances of a replica other than the first.
  std::vector<double> impedances_of(const System& other) {
    if (have_same_parts(*system, other)) return choice.method.waves().impedance;
    StagedRun run(other, options);
    const Tuner own(run.stepped(), options.step_s, *tuner);
    return own.choice().method.waves().impedance;
  }

  void add_chunk(int first, int count, const Source& source, std::optional<System>& own) {
    std::vector<std::optional<System>> owned(at(count));
    std::vector<const System*> members;
    std::vector<double> impedance;
    for (int i = 0; i < count; ++i) {
      // The first one is there already.
      const System& one =
          first + i == 0 ? (own ? *own : source(0, own)) : source(first + i, owned[at(i)]);
      if (first + i > 0) refuse_other_shape(*system, one, first + i);
      members.push_back(&one);
      for (const Part& part : one.parts()) {
        initial.insert(initial.end(), part.initial_state.begin(), part.initial_state.end());
      }
      const std::vector<double> set = one.initial_settings();
      settings.insert(settings.end(), set.begin(), set.end());
      if (!obstacle.empty()) continue;
      const std::vector<double> tuned = impedances_of(one);
      impedances.push_back(tuned);
      impedance.insert(impedance.end(), tuned.begin(), tuned.end());
    }
    if (!obstacle.empty()) {
      chunks.push_back(
          {std::make_unique<SoloChunk>(gathered_system(members), options), first, count});
      return;
    }
    StepperOptions gathered = options;
    WaveCoupling& m = gathered.method.waves();
    m.impedance = std::move(impedance);
    m.initial_waves = repeated(m.initial_waves, count);
    if (!m.interface_islands.empty()) {
      m.interface_islands.clear();
      for (int i = 0; i < count; ++i) m.interface_islands.push_back(i);
    }
    chunks.push_back(
        {std::make_unique<LaneChunk>(gathered_system(members), count, gathered), first, count});
  }

  struct Placed {
    std::unique_ptr<Chunk> steps;
    int first;
    int count;
  };

  /// act(chunk) for all of them, on all threads.
  template <class Act>
  void for_chunks(const Act& act) {
    if (!arena) {
      for (Placed& own : chunks) act(own);
      return;
    }
    arena->execute([&] {
      tbb::parallel_for(
          tbb::blocked_range<std::size_t>(0, chunks.size(), 1),
          [&](const tbb::blocked_range<std::size_t>& range) {
            for (std::size_t i = range.begin(); i < range.end(); ++i) act(chunks[i]);
          },
          tbb::simple_partitioner());
    });
  }

  /// make(chunk, before_step) for all of them; before_step() asks whether to continue and is false
  /// when another thread was told to stop.
  template <class Make>
  void for_steps(const std::function<void()>& ask, const Make& make) {
    if (!ask) {
      for_chunks([&](Placed& own) { make(own, [] { return true; }); });
      return;
    }
    std::atomic<bool> ended = false;
    const auto before_step = [&] {
      if (ended.load(std::memory_order_relaxed)) return false;
      try {
        ask();
      } catch (...) {
        ended.store(true, std::memory_order_relaxed);
        throw;
      }
      return true;
    };
    begun = false;
    for_chunks([&](Placed& own) { make(own, before_step); });
    begun = true;
  }

  void begin_if_need_be() {
    if (begun) return;
    for_chunks([this](Placed& own) { own.steps->begin(initial.data() + at(own.first * states)); });
    begun = true;
    steps = 0;
  }

  std::pair<const Chunk*, int> find(int replica) {
    activity.expect_none();
    check_replica(replica);
    begin_if_need_be();
    const int size = chunks.front().count;
    const Placed& own = chunks[at(replica / size)];
    return {own.steps.get(), replica - own.first};
  }
  void check_replica(int replica) const {
    if (replica >= 0 && replica < replicas) return;
    throw std::out_of_range(fmt::format("there is no replica {} of {}", replica, replicas));
  }

  int replicas;
  StepperOptions options;
  std::optional<System> system;  // the first one
  std::vector<int> first_state;
  int states = 0;  // n
  int inputs = 0;  // m
  int threads = 1;
  std::string obstacle;  // to lanes
  std::optional<Tuner> tuner;
  MethodChoice choice;
  std::size_t doubles_per_replica = 0;
  std::string execution;
  std::vector<std::vector<double>> impedances;  // by replica, in lanes
  std::vector<double> initial;                  // [N, n]
  std::vector<double> settings;                 // [N, m]
  std::vector<Placed> chunks;
  std::shared_ptr<tbb::task_arena> arena;
  bool begun = false;
  std::int64_t steps = 0;
  Activity activity;
};

Ensemble::Ensemble(const System& one, int replicas, const StepperOptions& options,
                   const EnsembleOptions& ensemble)
    : impl_(std::make_unique<Impl>(
          replicas, [&](int, std::optional<System>&) -> const System& { return one; }, options,
          ensemble)) {}

Ensemble::Ensemble(int replicas, const std::function<System(int)>& replica,
                   const StepperOptions& options, const EnsembleOptions& ensemble)
    : impl_(std::make_unique<Impl>(
          replicas,
          [&](int i, std::optional<System>& own) -> const System& {
            return own.emplace(replica(i));
          },
          options, ensemble)) {}

Ensemble::~Ensemble() { expect_to_end(); }
Ensemble::Ensemble(Ensemble&& other) noexcept {
  other.expect_to_end();
  impl_ = std::move(other.impl_);
}
Ensemble& Ensemble::operator=(Ensemble&& other) noexcept {
  expect_to_end();
  other.expect_to_end();
  impl_ = std::move(other.impl_);
  return *this;
}

/// Ends the program if it is in a run.
void Ensemble::expect_to_end() const noexcept {
  if (impl_ != nullptr) impl_->activity.expect_to_end("an ensemble");
}

int Ensemble::replicas() const { return impl_->replicas; }
int Ensemble::state_size() const { return impl_->states; }
int Ensemble::input_size() const { return impl_->inputs; }
int Ensemble::first_state(int part) const {
  expect_number("part", part, impl_->first_state.size());
  return impl_->first_state[at(part)];
}
const System& Ensemble::system() const { return *impl_->system; }
const MethodChoice& Ensemble::method() const { return impl_->choice; }
int Ensemble::threads() const { return impl_->threads; }
int Ensemble::chunks() const { return static_cast<int>(impl_->chunks.size()); }
bool Ensemble::in_lanes() const { return impl_->obstacle.empty(); }
const std::string& Ensemble::execution() const { return impl_->execution; }
std::int64_t Ensemble::step_index() const { return impl_->begun ? impl_->steps : 0; }

StepperOptions Ensemble::options_of(int replica) const {
  impl_->check_replica(replica);
  StepperOptions out = impl_->options;
  if (in_lanes()) out.method.waves().impedance = impl_->impedances[at(replica)];
  return out;
}

void Ensemble::set_state(int replica, std::span<const double> state) {
  impl_->activity.expect_none();
  impl_->check_replica(replica);
  if (state.size() != at(impl_->states)) {
    throw std::invalid_argument(
        fmt::format("a replica has {} states, and {} were given", impl_->states, state.size()));
  }
  std::ranges::copy(
      state, impl_->initial.begin() + static_cast<std::ptrdiff_t>(at(replica) * at(impl_->states)));
  if (step_index() == 0) impl_->begun = false;
}

void Ensemble::set_state(int replica, int part, std::span<const double> state) {
  impl_->activity.expect_none();
  impl_->check_replica(replica);
  expect_number("part", part, impl_->first_state.size());
  const std::size_t size = impl_->system->parts()[at(part)].initial_state.size();
  const std::size_t first = at(replica) * at(impl_->states) + at(first_state(part));
  if (state.size() != size) {
    throw std::invalid_argument(
        fmt::format("the part has {} states, and {} were given", size, state.size()));
  }
  std::ranges::copy(state, impl_->initial.begin() + static_cast<std::ptrdiff_t>(first));
  if (step_index() == 0) impl_->begun = false;
}

void Ensemble::set_input(int replica, int slot, double value) {
  impl_->activity.expect_none();
  impl_->check_replica(replica);
  if (slot < 0 || slot >= impl_->inputs) {
    throw std::out_of_range(
        fmt::format("there is no settable input {} of {}", slot, impl_->inputs));
  }
  if (!std::isfinite(value)) {
    throw std::invalid_argument(
        fmt::format("an input must be finite, got {}", shown_number(value)));
  }
  impl_->settings[at(replica) * at(impl_->inputs) + at(slot)] = value;
}

double Ensemble::input(int replica, int slot) const {
  impl_->check_replica(replica);
  if (slot < 0 || slot >= impl_->inputs) {
    throw std::out_of_range(
        fmt::format("there is no settable input {} of {}", slot, impl_->inputs));
  }
  return impl_->settings[at(replica) * at(impl_->inputs) + at(slot)];
}

void Ensemble::reset() {
  impl_->activity.expect_none();
  impl_->begun = false;
}

void Ensemble::step(std::int64_t steps, const std::function<void()>& ask) {
  Impl& own = *impl_;
  const Acting acting(own.activity, Activity::Kind::step);
  if (steps < 0 || steps > StateArchive::kMostSteps) {
    throw std::invalid_argument(
        fmt::format("the number of steps must be from 0 to 2^53, got {}", steps));
  }
  own.begin_if_need_be();
  own.for_steps(ask, [&](Impl::Placed& chunk, const auto& before_step) {
    const double* settings = own.settings.data() + at(chunk.first) * at(own.inputs);
    for (std::int64_t i = 0; i < steps && !chunk.steps->all_failed() && before_step(); ++i) {
      chunk.steps->step(settings);
    }
  });
  own.steps += steps;
}

void Ensemble::get_state(int replica, std::span<double> state) const {
  const auto [chunk, place] = impl_->find(replica);
  if (state.size() != at(impl_->states)) {
    throw std::invalid_argument(fmt::format("a replica has {} states, and there is room for {}",
                                            impl_->states, state.size()));
  }
  chunk->read_state(place, state.data());
}

ReplicaStatus Ensemble::status(int replica) const {
  const auto [chunk, place] = impl_->find(replica);
  return chunk->status(place);
}

int Ensemble::failures() const {
  impl_->activity.expect_none();
  impl_->begin_if_need_be();
  int count = 0;
  for (const Impl::Placed& own : impl_->chunks) count += own.steps->failures();
  return count;
}

Certificate Ensemble::certificate(int replica) const {
  const auto [chunk, place] = impl_->find(replica);
  return chunk->certificate(place);
}

EnergyTotals Ensemble::energy(int replica) const {
  const auto [chunk, place] = impl_->find(replica);
  return chunk->energy(place);
}

void Ensemble::rollout(std::span<const double> x0, std::span<const double> u, int steps,
                       std::span<double> x, const RolloutOptions& options) {
  Impl& own = *impl_;
  const Acting acting(own.activity, Activity::Kind::step);
  const std::size_t N = at(own.replicas), n = at(own.states), m = at(own.inputs);
  if (steps < 0 || options.every < 1 || steps % options.every != 0) {
    throw std::invalid_argument(
        fmt::format("{} steps with a row every {}: there must be no fewer than 0 steps, and the "
                    "rows must divide them",
                    steps, options.every));
  }
  const std::size_t T = at(steps), rows = at(steps / options.every);
  const auto expect = [](const char* name, std::size_t size, std::string shape,
                         std::size_t wanted) {
    if (size == wanted) return;
    throw std::invalid_argument(
        fmt::format("{} has {} numbers, and its shape must be {}: {}", name, size, shape, wanted));
  };
  if (!x0.empty()) expect("x0", x0.size(), fmt::format("[{}, {}]", N, n), N * n);
  if (!u.empty()) expect("u", u.size(), fmt::format("[{}, {}, {}]", N, T, m), N * T * m);
  expect("x", x.size(), fmt::format("[{}, {}, {}]", N, rows, n), N * rows * n);

  const double* const start = x0.empty() ? own.initial.data() : x0.data();
  own.for_steps(options.ask, [&](Impl::Placed& placed, const auto& before_step) {
    Chunk& chunk = *placed.steps;
    const std::size_t first = at(placed.first), count = at(placed.count);
    chunk.begin(start + first * n);
    double* const settings = own.settings.data() + first * m;
    for (std::size_t t = 0; t < T && before_step(); ++t) {
      for (std::size_t i = 0; !u.empty() && i < count; ++i) {
        std::copy_n(u.data() + ((first + i) * T + t) * m, m, settings + i * m);
      }
      chunk.step(settings);
      if ((t + 1) % at(options.every) != 0) continue;
      const std::size_t row = (t + 1) / at(options.every) - 1;
      chunk.read_states(x.data() + (first * rows + row) * n, rows * n);
    }
  });
  own.begun = true;
  own.steps = steps;
}

}  // namespace portwave
