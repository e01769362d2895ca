#include "rank_study/rank_entrants.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string_view>
#include <unistd.h>

#include "portwave/runtime/ranks/ranked_stepper.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

std::uint64_t name_of_host() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return std::hash<std::string_view>()(name);
}

int cores_of_machine() { return std::max(static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)), 1); }

}  // namespace

RankEntrants::RankEntrants(const RankScalingOptions& options)
    : options_(options), world_(options.world) {
  const int own = cores_of_process(options.cores);
  const Host host{name_of_host(), options.cores > 0 ? options.cores : cores_of_machine(), own};
  hosts_ = world_ == nullptr ? std::vector<Host>{host} : gather_values(*world_, host);
}

RankEntrants::~RankEntrants() { dismiss(); }

bool RankEntrants::is_oversubscribed(int ranks, int threads) const {
  std::map<std::uint64_t, int> wanted;
  for (const Host& host : std::span(hosts_).first(at(ranks))) {
    wanted[host.name] += threads;
    if (wanted[host.name] > host.cores || threads > host.own_cores) return true;
  }
  return false;
}

void RankEntrants::together(const std::function<void()>& act) {
  std::exception_ptr failure;
  try {
    act();
  } catch (...) {
    failure = std::current_exception();
  }
  const int own = failure ? 1 : 0;
  const std::vector<int> all =
      world_ == nullptr ? std::vector<int>{own} : gather_values(*world_, own);
  if (failure) std::rethrow_exception(failure);
  if (std::ranges::find(all, 1) != all.end()) throw RankError("another rank could not begin");
}

std::size_t RankEntrants::add(const Scenario& scenario, int ranks, int threads) {
  RankEntrant& entrant = entrants_.emplace_back();
  entrant.scenario = &scenario;
  entrant.ranks = ranks;
  entrant.threads = threads;
  StepperOptions settings = Subject::settings(
      scenario, threads == 1 && ranks == 1 ? ExecutorKind::serial : ExecutorKind::automatic,
      options_.grain, threads);
  if (ranks > 1) {
    if (!first_of_.contains(ranks)) first_of_[ranks] = world_->first(ranks);
    settings.ranks = first_of_[ranks];
  }
  if (ranks > 1 ? settings.ranks != nullptr : is_leading()) {
    entrant.subject = std::make_unique<Subject>(scenario, settings);
  }
  return entrants_.size() - 1;
}

void RankEntrants::follow() {
  for (;;) {
    int number = kEnd;
    world_->rest();
    world_->broadcast(std::as_writable_bytes(std::span(&number, 1)));
    if (number == kEnd) return;
    if (auto& subject = entrants_[at(number)].subject; subject != nullptr) {
      RankedStepper(subject->stepper()).follow();
    }
  }
}

void RankEntrants::announce(int number) {
  world_->rest();
  world_->broadcast(std::as_writable_bytes(std::span(&number, 1)));
}

void RankEntrants::with(std::size_t i, const std::function<void(Subject&)>& act) {
  RankEntrant& entrant = entrants_[i];
  if (entrant.ranks == 1) return act(*entrant.subject);
  announce(static_cast<int>(i));
  struct Turn {
    explicit Turn(Stepper& led) : stepper(led) {}
    ~Turn() {
      try {
        RankedStepper(stepper).release_followers();
      } catch (const RankError&) {  // then nobody waits for it
      }
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    Stepper& stepper;
  };
  const Turn turn(entrant.subject->stepper());
  act(*entrant.subject);
}

void RankEntrants::dismiss() noexcept {
  if (!leads_) return;
  try {
    for (std::size_t i = 0; i < entrants_.size(); ++i) {
      if (entrants_[i].ranks == 1) continue;
      announce(static_cast<int>(i));
      entrants_[i].subject.reset();  // its followers are told
    }
    announce(kEnd);
  } catch (const RankError&) {
  }
}

}  // namespace portwave
