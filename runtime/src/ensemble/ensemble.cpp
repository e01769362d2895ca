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
#include "ensemble/replica_checks.hpp"
#include "parallel/expect_number.hpp"
#include "parallel/threads/activity.hpp"
#include "parallel/threads/arena_impl.hpp"
#include "portwave/coupling/system/derived_systems.hpp"
#include "portwave/coupling/system/state_constraints.hpp"
#include "portwave/runtime/parallel/arena.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "step/sizes/input_changes.hpp"
#include "step/staged_run.hpp"
#include "step/stepper_options.hpp"
#include "step/waves/tuner.hpp"
#include "step/waves/wave_start.hpp"

namespace portwave {
namespace {

/// A system, owned here or elsewhere.
using Source = std::function<const System&(int replica, std::optional<System>& own)>;

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
    if (run.may_change_over()) {
      obstacle =
          "storages beside one-sided or stiff parts take damped steps each at its own time "
          "(\"integrator\": \"gauss\" has none)";
    } else if (run.may_overshoot()) {
      obstacle =
          "steps in which one-sided parts change over, or motion begins that dies within one, are "
          "taken in pieces (\"integrator\": \"damped\" has none)";
    } else if (run.integrators().damped_parts > 0 && StagedRun::can_return(*system) &&
               InputChanges(run.stepped()).may_be_sudden()) {
      obstacle = "damped steps are cut where inputs jump";
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
    options.method.waves().initial_waves = run.options().method.waves().initial_waves;
    if (tuner->follows_state()) {
      follows = true;
      options.method.waves().impedance.clear();
      following = options;
    }
    options.method.waves().impedance_kind = ImpedanceKind::given;
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
      impedances.push_back(impedances_of(one));
    }
    if (!obstacle.empty()) {
      chunks.push_back(
          {std::make_unique<SoloChunk>(gathered_system(members), options), first, count});
      return;
    }
    chunks.push_back({std::make_unique<LaneChunk>(gathered_system(members), count,
                                                  options_of_chunk(first, count), following_of()),
                      first, count});
  }

  /// Null: impedances stay.
  std::unique_ptr<const LaneChunk::Following> following_of() const {
    if (!follows) return nullptr;
    return std::make_unique<LaneChunk::Following>(
        LaneChunk::Following{&*tuner, &*system, following});
  }

  struct Placed {
    std::unique_ptr<Chunk> steps;
    int first;
    int count;
  };

  /// Of replicas in lanes, whose impedances are known.
  StepperOptions options_of_chunk(int first, int count) const {
    StepperOptions out = options;
    WaveCoupling& m = out.method.waves();
    m.impedance.clear();
    for (int i = first; i < first + count; ++i) {
      m.impedance.insert(m.impedance.end(), impedances[at(i)].begin(), impedances[at(i)].end());
    }
    m.initial_waves = repeated(m.initial_waves, count);
    if (!m.interface_islands.empty()) {
      m.interface_islands.clear();
      for (int i = 0; i < count; ++i) m.interface_islands.push_back(i);
    }
    return out;
  }

  /// The system of one replica as of the next run, with another component of a part.
  System changed_system_of(const Chunk& chunk, int place, int part,
                           const std::shared_ptr<const Component>& component) const {
    std::vector<double> starts;
    for (int i = 0; i < std::ssize(first_state); ++i) {
      const std::vector<double>& own = chunk.part(place, i).initial_state;
      starts.insert(starts.end(), own.begin(), own.end());
    }
    const System* const only[] = {&*system};
    System out = gathered_system(only, starts.data());
    for (int i = 0; i < std::ssize(first_state); ++i) {
      exchange_component(out, i, i == part ? component : chunk.part(place, i).component);
    }
    return out;
  }

  void set_component(int replica, int part, std::shared_ptr<const Component> component) {
    check_replica(replica);
    expect_number("part", part, first_state.size());
    Placed& own = chunks[at(replica / chunks.front().count)];
    const int place = replica - own.first;
    const Part& present = own.steps->part(place, part);
    const std::string defect =
        component == nullptr ? "there is none" : exchange_defect(*present.component, *component);
    if (!defect.empty()) {
      throw std::invalid_argument(
          fmt::format("replica {}: the component cannot take the place of part {}: {}", replica,
                      in_quotes(present.name), defect));
    }
    if (obstacle.empty()) {
      try {
        const System other = changed_system_of(*own.steps, place, part, component);
        StagedRun run(other, options);
        const Tuner tuned(run.stepped(), options.step_s, *tuner);
        std::vector<double> impedance = tuned.choice().method.waves().impedance;
        // Errors of step maps belong here, and not where the next run begins.
        const WaveDiscretisation rehearsal(run.stepped(), options.step_s, impedance);
        impedances[at(replica)] = std::move(impedance);
      } catch (const ConfigError& error) {
        throw ConfigError("", fmt::format("replica {}, part {}: {}", replica,
                                          in_quotes(present.name), error.issues().front().what));
      }
    }
    if (replica == 0) exchange_component(*system, part, component);
    own.steps->set_component(place, part, std::move(component));
    if (steps == 0) begun = false;
  }

  /// A run of a chunk begins.
  void begin(Placed& own, const double* start) const {
    auto* const lanes = dynamic_cast<LaneChunk*>(own.steps.get());
    if (lanes != nullptr && lanes->is_out_of_date()) {
      own.steps = std::make_unique<LaneChunk>(
          lanes->take_system(), own.count, options_of_chunk(own.first, own.count), following_of());
    }
    own.steps->begin(start);
  }

  /// Refuses numbers that are not finite: of all replicas from `first` on, [·, n].
  void expect_finite(int first, std::span<const double> given) const {
    std::string defects;
    for (std::size_t i = 0; !given.empty() && i < given.size(); i += at(states)) {
      for (std::size_t k = 0; k < first_state.size(); ++k) {
        const Part& part = system->parts()[k];
        const std::string defect =
            not_finite(part, given.subspan(i + at(first_state[k]), part.initial_state.size()));
        if (defect.empty()) continue;
        defects += fmt::format("{}replica {}, part {}: {}", defects.empty() ? "" : "; ",
                               at(first) + i / at(states), in_quotes(part.name), defect);
      }
    }
    if (!defects.empty()) throw std::invalid_argument(defects);
  }

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
    for_chunks([this](Placed& own) { begin(own, initial.data() + at(own.first) * at(states)); });
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
  bool follows = false;      // impedances of each replica follow its state
  StepperOptions following;  // of one replica then
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
  if (impl_->follows) return impl_->following;
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
  impl_->expect_finite(replica, state);
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
  const Part& own = impl_->system->parts()[at(part)];
  if (const std::string defect = not_finite(own, state); !defect.empty()) {
    throw std::invalid_argument(
        fmt::format("replica {}, part {}: {}", replica, in_quotes(own.name), defect));
  }
  std::ranges::copy(state, impl_->initial.begin() + static_cast<std::ptrdiff_t>(first));
  if (step_index() == 0) impl_->begun = false;
}

void Ensemble::set_states(std::span<const double> states) {
  impl_->activity.expect_none();
  if (states.size() != impl_->initial.size()) {
    throw std::invalid_argument(fmt::format("{} replicas have {} states, and {} were given",
                                            impl_->replicas, impl_->initial.size(), states.size()));
  }
  impl_->expect_finite(0, states);
  std::ranges::copy(states, impl_->initial.begin());
  if (step_index() == 0) impl_->begun = false;
}

const Component& Ensemble::component(int replica, int part) const {
  impl_->check_replica(replica);
  expect_number("part", part, impl_->first_state.size());
  const int size = impl_->chunks.front().count;
  return *impl_->chunks[at(replica / size)].steps->part(replica % size, part).component;
}

void Ensemble::set_component(int replica, int part, std::shared_ptr<const Component> component) {
  impl_->activity.expect_none();
  impl_->set_component(replica, part, std::move(component));
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
        fmt::format("replica {}: input {} must be finite, got {}", replica,
                    in_quotes(system().input_label(system().settable_inputs()[at(slot)])),
                    shown_number(value)));
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
  ReplicaStatus out = chunk->status(place);
  if (out.failed) out.error = fmt::format("replica {}: {}", replica, out.error);
  return out;
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
    const std::size_t first = at(placed.first), count = at(placed.count);
    own.begin(placed, start + first * n);
    Chunk& chunk = *placed.steps;
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
