#include "portwave/runtime/ranks/ranked_stepper.hpp"

#include <stdexcept>

#include "parallel/expect_number.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "ranks/rank_together.hpp"
#include "step/step_engine.hpp"

namespace portwave {
namespace {

void check_channel(const Stepper& stepper, const ScalarChannel& channel) {
  const System& system = stepper.system();
  const bool is_of_port =
      channel.kind != ScalarChannel::Kind::state && channel.kind != ScalarChannel::Kind::storage;
  bool fits = is_of_port ? channel.index >= 0 && at(channel.index) < system.scalar_ports().size()
                         : channel.part >= 0 && at(channel.part) < system.parts().size();
  if (fits && channel.kind == ScalarChannel::Kind::state) {
    const Signature& signature = system.parts()[at(channel.part)].component->signature();
    fits = channel.index >= 0 && channel.index < signature.state_size();
  }
  if (!fits) throw std::out_of_range("the system has no such channel");
  const bool is_wave = channel.kind == ScalarChannel::Kind::incident ||
                       channel.kind == ScalarChannel::Kind::outgoing;
  if (is_wave && stepper.waves() == nullptr) {
    throw std::invalid_argument("the method couples without waves");
  }
}

/// Null where one process steps the system.
RankTogether* several(const StepEngine& engine) {
  auto* const ranks = dynamic_cast<RankTogether*>(&engine.together());
  return ranks != nullptr && ranks->has_engine() ? ranks : nullptr;
}

/// Null with slices, too: each process then has only the parts that it steps.
RankTogether* sharing(const StepEngine& engine) {
  return engine.together().has_whole() ? several(engine) : nullptr;
}

RankTogether& expect_ranks(RankTogether* ranks) {
  if (ranks == nullptr) throw std::logic_error("one process steps the system, or its slice");
  return *ranks;
}

}  // namespace

Ranks* RankedStepper::ranks() const {
  RankTogether* const all = sharing(*stepper_->engine_);
  return all != nullptr ? &all->ranks() : nullptr;
}

int RankedStepper::rank_of_part(int part) const {
  expect_number("part", part, stepper_->system().parts().size());
  RankTogether* const all = several(*stepper_->engine_);
  return all != nullptr ? all->rank_of_part(part) : 0;
}

void RankedStepper::follow() const {
  StepEngine& engine = *stepper_->engine_;
  const Acting acting(engine.activity(), Activity::Kind::step);
  engine.follow({});
}

void RankedStepper::follow(Follower& follower) const {
  StepEngine& engine = *stepper_->engine_;
  const Acting acting(engine.activity(), Activity::Kind::step);
  engine.follow({[&](const StepReport& report) { follower.stepped(*stepper_, report); },
                 [&](std::span<const std::byte> message) { follower.told(*stepper_, message); }});
}

void RankedStepper::release_followers() const {
  if (RankTogether* const all = several(*stepper_->engine_)) all->release_followers();
}

void RankedStepper::tell_followers(std::span<const std::byte> message) const {
  expect_ranks(several(*stepper_->engine_)).tell_followers(message);
}

int RankedStepper::prepare_channels(std::span<const ScalarChannel> channels) const {
  for (const ScalarChannel& own : channels) check_channel(*stepper_, own);
  return expect_ranks(sharing(*stepper_->engine_)).prepare_channels(channels);
}

void RankedStepper::read_channels(int set, std::span<double> values) const {
  expect_ranks(sharing(*stepper_->engine_)).read_channels(set, values);
}

void RankedStepper::read_own(std::span<const ScalarChannel> channels,
                             std::span<double> values) const {
  expect_room(channels.size(), values.size());
  for (const ScalarChannel& own : channels) check_channel(*stepper_, own);
  expect_ranks(sharing(*stepper_->engine_)).read_own(channels, values);
}

}  // namespace portwave
