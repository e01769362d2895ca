#include "portwave/runtime/ranks/ranked_stepper.hpp"

#include <stdexcept>

#include "parallel/expect_number.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "ranks/rank_together.hpp"
#include "step/step_engine.hpp"

namespace portwave {
namespace {

void check_term(const Stepper& stepper, const QuantityTerm& term) {
  const System& system = stepper.system();
  bool fits = is_of_a_part(term) ? term.part >= 0 && at(term.part) < system.parts().size()
                                 : term.index >= 0 && at(term.index) < system.scalar_ports().size();
  if (fits && is_of_a_part(term) && term.kind != QuantityTerm::Kind::storage) {
    const Signature& signature = system.parts()[at(term.part)].component->signature();
    fits = term.index >= 0 && term.index < signature.state_size();
  }
  if (!fits) throw std::out_of_range("the system has no such term");
  const bool is_wave =
      term.kind == QuantityTerm::Kind::incident || term.kind == QuantityTerm::Kind::outgoing;
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

int RankedStepper::prepare_terms(std::span<const QuantityTerm> terms) const {
  for (const QuantityTerm& own : terms) check_term(*stepper_, own);
  return expect_ranks(sharing(*stepper_->engine_)).prepare_terms(terms);
}

void RankedStepper::read_terms(int set, std::span<double> values) const {
  expect_ranks(sharing(*stepper_->engine_)).read_terms(set, values);
}

void RankedStepper::read_own(std::span<const QuantityTerm> terms, std::span<double> values) const {
  expect_room(terms.size(), values.size());
  for (const QuantityTerm& own : terms) check_term(*stepper_, own);
  expect_ranks(sharing(*stepper_->engine_)).read_own(terms, values);
}

}  // namespace portwave
