#include "network/explicit/explicit_stepper.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {

bool ExplicitIsland::halve(const IslandState& from, IslandState& to, double start_s, double step_s,
                           bool once_more, IslandEnergies& energies) {
  energies = {};
  return halve(from, to, start_s, step_s, 0, once_more, energies);
}

bool ExplicitIsland::halve(const IslandState& from, IslandState& to, double start_s, double step_s,
                           int depth, bool once_more, IslandEnergies& energies) {
  if (depth >= kMostHalvings) return false;
  const double half = 0.5 * step_s;
  ++energies.halvings;
  energies.depth = std::max(energies.depth, depth + 1);
  IslandState& middle = halfway_[at(depth)];
  middle.u.resize(from.u.size());
  middle.position.resize(from.position.size());
  middle.decaying.resize(from.decaying.size());
  middle.dead.resize(from.dead.size());
  const auto take = [&](const IslandState& a, IslandState& b, double begin_s) {
    sample(begin_s, depth + 1);
    IslandEnergies own = energies;
    const bool is_met =
        !is_too_long(half) && !is_sudden(depth + 1) && attempt(a, b, depth + 1, own);
    if (!is_met || once_more) {
      return halve(a, b, begin_s, half, depth + 1, once_more && !is_met, energies);
    }
    energies = own;
    return true;
  };
  return take(from, middle, start_s) && take(middle, to, start_s + half);
}

std::size_t ExplicitIsland::bytes_of_halvings() const {
  std::size_t sum = 0;
  for (const IslandState& state : halfway_) sum += state.bytes();
  return sum;
}

AlignedVector DeadStates::kept(double h) const {
  AlignedVector kept;
  for (const double own : rate) kept.push_back(std::exp(-own * h));
  return kept;
}

double DeadStates::decay(const AlignedVector& kept, const AlignedVector& from,
                         AlignedVector& to) const {
  double gone = 0.0;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const double next = from[i] * kept[i];
    to[i] = next;
    gone += 0.5 * stiffness[i] * (from[i] - next) * (from[i] + next);
  }
  return gone;
}

std::vector<std::vector<int>> ExplicitStepper::states_by_island(const NetworkForm& network) {
  std::vector<std::vector<int>> states(at(network.system().island_count()));
  for (int i = 0; i < network.size(); ++i) states[at(network.island_of(i))].push_back(i);
  return states;
}

ExplicitStepper::ExplicitStepper(const NetworkForm& network, double start_s, double step_s,
                                 std::vector<std::unique_ptr<ExplicitIsland>> islands,
                                 std::vector<int> numbers)
    : network_(network),
      check_(network),
      step_s_(step_s),
      clock_(start_s),
      x_(at(network.size()), 0.0),
      islands_(std::move(islands)) {
  const System& system = network.system();
  for (const Part& part : system.parts()) {
    const int number = static_cast<int>(&part - system.parts().data());
    std::ranges::copy(part.initial_state, x_.begin() + network.first_state(number));
    if (!part.initial_state.empty()) block_parts_.push_back(number);
  }
  previous_x_ = x_;
  for (std::vector<IslandState>* own : {&now_, &next_, &before_}) own->resize(islands_.size());
  load();
  compares_ =
      !std::ranges::all_of(islands_, [](const auto& island) { return island->tells_error(); });
  has_inputs_ =
      std::ranges::any_of(islands_, [](const auto& island) { return island->has_inputs(); });
  for (int i = 0; i < static_cast<int>(islands_.size()); ++i) {
    (islands_[at(i)]->tasks() > 1 ? sharing_ : alone_).push_back(i);
  }
  energies_.resize(islands_.size());
  succeeded_.resize(islands_.size());
  thrown_.resize(islands_.size());
  std::vector<double> of_island(at(system.island_count()), 0.0);
  std::vector<int> first_part(at(system.island_count()), -1);
  for (int block = 0; block < static_cast<int>(block_parts_.size()); ++block) {
    const int part = block_parts_[at(block)], island = system.island_of_part(part);
    stored_.add(storage(block));
    of_island[at(island)] += storage(block);
    if (first_part[at(island)] < 0) first_part[at(island)] = part;
  }
  for (std::size_t i = 0; i < islands_.size(); ++i) {
    now_[i].stored_J = of_island[at(numbers[i])];
    part_of_island_.push_back(first_part[at(numbers[i])]);
  }
}

/// The islands' states from those of the whole.
void ExplicitStepper::load() {
  for (std::size_t i = 0; i < islands_.size(); ++i) {
    for (std::vector<IslandState>* own : {&now_, &next_}) islands_[i]->load(x_.data(), (*own)[i]);
    islands_[i]->load(previous_x_.data(), before_[i]);
  }
  is_gathered_ = has_now_ = has_before_ = true;
}

void ExplicitStepper::gather() {
  if (is_gathered_) return;
  if (!has_now_ || !has_before_) {
    peers_->about_to_fetch();
    fetch();
  }
  for (std::size_t i = 0; i < islands_.size(); ++i) {
    islands_[i]->store(now_[i], x_.data());
    islands_[i]->store(before_[i], previous_x_.data());
  }
  is_gathered_ = true;
}

const std::vector<double>& ExplicitStepper::state() {
  gather();
  return x_;
}
const std::vector<double>& ExplicitStepper::previous_state() {
  gather();
  return previous_x_;
}

double ExplicitStepper::storage(int block) {
  gather();
  const int part = block_parts_[at(block)];
  return network_.system().parts()[at(part)].port_hamiltonian()->storage(
      x_.data() + network_.first_state(part));
}

void ExplicitStepper::fail(const InputFault& fault) const {
  const NetworkInput& input = network_.inputs[at(fault.input)];
  if (fault.threw) throw NetworkFault(input.part, -1, StepFault::threw, fault.detail);
  throw NetworkFault(input.part, -1, StepFault::not_finite,
                     fmt::format("input \"{}\" is not finite", network_.system()
                                                                   .parts()[at(input.part)]
                                                                   .component->signature()
                                                                   .inputs[at(input.input)]
                                                                   .name));
}

NetworkStep ExplicitStepper::step(const ForEach& each) {
  const double start_s = clock_.time_s();
  sample(start_s, 0);
  for_islands(each, [&](std::size_t i) {
    energies_[i] = {};
    thrown_[i] = nullptr;
    succeeded_[i] = 0;
    try {
      const bool is_met = !islands_[i]->is_too_long(step_s_) && !islands_[i]->is_sudden(0) &&
                          islands_[i]->attempt(now_[i], next_[i], 0, energies_[i]);
      succeeded_[i] = is_met ? 1 : 0;
    } catch (...) {  // of a gradient; no task may throw
      thrown_[i] = std::current_exception();
    }
  });
  const auto repair = [&](std::size_t i) {
    if (succeeded_[i] != 0 && !halves_once_more_) return;
    if (thrown_[i] != nullptr) fail_by(i, thrown_[i]);
    halve(i, start_s);
  };
  for (std::size_t i = 0; i < islands_.size(); ++i) {
    if (is_of_all(i)) repair(i);
  }
  if (has_whole_islands_) {
    together([&] {
      for (std::size_t i = 0; i < islands_.size(); ++i) {
        if (is_own(i)) repair(i);
      }
    });
  }
  share_energies();
  NetworkStep result;
  result.converged = true;
  close(result);
  has_before_ = has_now_;
  has_now_ = peers_ == nullptr;
  before_.swap(now_);
  now_.swap(next_);
  clock_.advance(step_s_);
  is_gathered_ = false;
  return result;
}

/// Of the islands that this process steps. On ranks all know of a fault before they begin to exchange.
void ExplicitStepper::sample(double start_s, int depth) {
  if (!has_inputs_) return;
  together([&] {
    try {
      for (std::size_t i = 0; i < islands_.size(); ++i) {
        if (islands_[i]->has_inputs() && (is_own(i) || is_of_all(i))) {
          islands_[i]->sample(start_s, depth);
        }
      }
    } catch (const InputFault& fault) {
      fail(fault);
    }
  });
}

void ExplicitStepper::set_step(double step_s) {
  if (step_s == step_s_) return;
  for (const auto& island : islands_) island->set_step(step_s);
  step_s_ = step_s;
}

void ExplicitStepper::set_state(std::span<const double> x) {
  gather();
  // H of an island goes on by the change of each part, as it does in steps.
  std::vector<double> more_J(at(network_.system().island_count()), 0.0);
  std::vector<double> before_J;
  for (int block = 0; block < static_cast<int>(block_parts_.size()); ++block) {
    before_J.push_back(storage(block));
  }
  std::ranges::copy(x, x_.begin());
  previous_x_ = x_;
  for (int block = 0; block < static_cast<int>(block_parts_.size()); ++block) {
    const double more = storage(block) - before_J[at(block)];
    stored_.add(more);
    more_J[at(network_.system().island_of_part(block_parts_[at(block)]))] += more;
  }
  load();
  for (std::size_t i = 0; i < islands_.size(); ++i) {
    now_[i].stored_J += more_J[at(network_.system().island_of_part(part_of_island_[i]))];
  }
  if (trial_ != nullptr && compares_) trial_->committed_middle_x = x_;
  depth_ = 0;
}

void ExplicitStepper::take_over(ExplicitStepper& before, int part, double more_J) {
  x_ = before.state();
  previous_x_ = x_;
  load();
  const int island = network_.system().island_of_part(part);
  for (std::size_t i = 0; i < islands_.size(); ++i) {
    now_[i].tank_J = before.now_[i].tank_J;
    now_[i].stored_J = before.now_[i].stored_J;
    if (network_.system().island_of_part(part_of_island_[i]) == island) now_[i].stored_J += more_J;
  }
  stored_ = before.stored_;
  stored_.add(more_J);
  clock_ = before.clock_;
  halvings_ = before.halvings_;
  halved_steps_ = before.halved_steps_;
  if (compares_ && before.trial_ != nullptr) trial().committed_middle_x = x_;
  set_step(before.step_s_);
}

void ExplicitStepper::halve(std::size_t island, double start_s) {
  bool is_met = false;
  try {
    is_met =
        islands_[island]->halve(now_[island], next_[island], start_s, step_s_,
                                halves_once_more_ && succeeded_[island] == 0, energies_[island]);
  } catch (const InputFault& fault) {
    fail(fault);
  } catch (...) {
    fail_by(island, std::current_exception());
  }
  if (!is_met) refuse(island);
}

int ExplicitStepper::part_to_blame(std::size_t island) const {
  return islands_.size() == 1 ? -1 : part_of_island_[island];
}

/// A gradient has thrown in an island.
void ExplicitStepper::fail_by(std::size_t island, const std::exception_ptr& own) const {
  std::string what = "an unknown exception";
  try {
    std::rethrow_exception(own);
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
  }
  throw NetworkFault(part_to_blame(island), -1, StepFault::threw, what);
}

/// What to do about a step that cannot be taken.
std::string ExplicitStepper::advice_of(std::size_t island) const {
  const double start_s = clock_.time_s(), rounding_s = 1e-9 * step_s_;
  const System& system = network_.system();
  for (const NetworkInput& input : network_.inputs) {
    const auto jump =
        input.signal->displacement_jump(start_s - rounding_s, start_s + step_s_ - rounding_s);
    const Part& part = system.parts()[at(input.part)];
    if (!jump ||
        system.island_of_part(input.part) != system.island_of_part(part_of_island_[island])) {
      continue;
    }
    return fmt::format(
        "the displacement of \"{}.{}\" jumps from {:.6g} to {:.6g} at {:.9g} s; let it rise within "
        "a time",
        part.name, part.component->signature().inputs[at(input.input)].name, jump->before,
        jump->after, jump->time_s);
  }
  return islands_[island]->advice();
}

void ExplicitStepper::refuse(std::size_t island) const {
  throw NetworkFault(
      part_to_blame(island), -1, StepFault::too_inaccurate,
      fmt::format("even steps of h/{} are too long: {}. Take shorter steps, or wave coupling "
                  "({{\"kind\": \"auto\"}})",
                  1 << ExplicitIsland::kMostHalvings, advice_of(island)));
}

void ExplicitStepper::close(NetworkStep& result) {
  CompensatedSum changed, supplied, dissipated, tank;
  double size = 0.0;
  depth_ = 0;
  for (std::size_t i = 0; i < islands_.size(); ++i) {
    const IslandEnergies& own = energies_[i];
    changed.add(own.changed_J);
    supplied.add(own.supplied_J);
    dissipated.add(own.dissipated_J);
    tank.add(next_[i].tank_J);
    size += own.size_J;
    halvings_ += own.halvings;
    depth_ = std::max(depth_, own.depth);
    if (own.halvings > 0) ++halved_steps_;
  }
  stored_.add(changed.value());
  StepLedger& energy = result.energy;
  energy.stored_J = stored_.value();
  energy.changed_J = changed.value();
  energy.supplied_J = supplied.value();
  energy.dissipated_J = dissipated.value();
  energy.tank_J = tank.value();
  energy.mismatch_J = energy.supplied_J - energy.dissipated_J - energy.changed_J;
  energy.max_passivity_residual_J = energy.changed_J - energy.supplied_J;
  result.energy_scale_J = std::abs(energy.stored_J) + size;
}

int ExplicitStepper::tasks() const {
  auto most = static_cast<int>(alone_.size());
  for (const int i : sharing_) most = std::max(most, islands_[at(i)]->tasks());
  return most;
}

double ExplicitStepper::cost_ns() const {
  double sum = 0.0;
  for (const auto& island : islands_) sum += island->cost_ns();
  return sum;
}

std::size_t ExplicitStepper::bytes() const {
  std::size_t sum = (x_.capacity() + previous_x_.capacity()) * sizeof(double);
  for (std::size_t i = 0; i < islands_.size(); ++i) {
    sum += islands_[i]->bytes() + islands_[i]->bytes_of_halvings() + now_[i].bytes() +
           next_[i].bytes() + before_[i].bytes();
  }
  return trial_ == nullptr ? sum : sum + trial_->bytes();
}

std::string ExplicitStepper::remarks() const {
  if (halvings_ == 0) return {};
  return fmt::format(
      "{} step{} of an island {} halved, {} time{} in all: the balance of energy, what is "
      "damped, or an input that changes suddenly asks for shorter steps",
      halved_steps_, halved_steps_ == 1 ? "" : "s", halved_steps_ == 1 ? "was" : "were", halvings_,
      halvings_ == 1 ? "" : "s");
}

void ExplicitStepper::archive(StateArchive& archive) {
  if (!archive.reads()) gather();
  for (std::vector<double>* own : {&x_, &previous_x_}) archive.array(*own);
  for (IslandState& state : now_) archive.values(state.tank_J, state.stored_J);
  archive.values(stored_, clock_, halvings_, halved_steps_, depth_);
  for (const std::vector<double>* own : {&x_, &previous_x_}) {
    archive.expect_finite(*own, "a state");
  }
  for (const IslandState& state : now_) {
    archive.expect(std::isfinite(state.tank_J) && std::isfinite(state.stored_J), "a tank");
  }
  archive.expect_counts({halvings_, halved_steps_}, "the number of halved steps");
  archive.expect(depth_ >= 0 && depth_ <= ExplicitIsland::kMostHalvings, "the number of halvings");
  archive.expect(clock_.is_sound(), "the time");
  if (archive.reads()) load();
  // What is kept shifted has digits that its states do not show.
  for (std::vector<IslandState>* own : {&now_, &before_}) {
    for (std::size_t i = 0; i < own->size(); ++i) {
      IslandState& state = (*own)[i];
      archive.array(state.u);
      archive.array(state.decaying);
      if (archive.reads()) islands_[i]->clear_gaps(state);
      archive.expect_finite(state.u, "a momentum");
      archive.expect_finite(state.decaying, "a damped position");
    }
  }
}

}  // namespace portwave
