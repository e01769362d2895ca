#include "output/recording/observed_row.hpp"

#include <algorithm>

#include "portwave/runtime/ranks/ranked_stepper.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {

std::vector<ScalarChannel> channels_of(const Observable& observable) {
  const auto one = [&](ScalarChannel::Kind kind) {
    return std::vector<ScalarChannel>{{kind, observable.part, observable.index}};
  };
  switch (observable.kind) {
    case Observable::Kind::state:
      return one(ScalarChannel::Kind::state);
    case Observable::Kind::effort:
      return one(ScalarChannel::Kind::effort);
    case Observable::Kind::flow:
      return one(ScalarChannel::Kind::flow);
    case Observable::Kind::incident:
      return one(ScalarChannel::Kind::incident);
    case Observable::Kind::outgoing:
      return one(ScalarChannel::Kind::outgoing);
    case Observable::Kind::signal:
      return {};
    case Observable::Kind::storage:
      break;
  }
  std::vector<ScalarChannel> parts;
  for (int i = 0; i <= observable.index; ++i) {
    parts.push_back({ScalarChannel::Kind::storage, observable.part + i, 0});
  }
  return parts;
}

namespace {

int rank_of(const Stepper& stepper, const ScalarChannel& channel) {
  const bool is_of_part =
      channel.kind == ScalarChannel::Kind::state || channel.kind == ScalarChannel::Kind::storage;
  return RankedStepper(stepper).rank_of_part(
      is_of_part ? channel.part : stepper.system().scalar_ports()[at(channel.index)].part);
}

}  // namespace

int rank_of(const Stepper& stepper, const Observable& observable) {
  const std::vector<ScalarChannel> channels = channels_of(observable);
  if (channels.empty()) return 0;
  const int first = rank_of(stepper, channels.front());
  const bool is_one = std::ranges::all_of(
      channels, [&](const ScalarChannel& own) { return rank_of(stepper, own) == first; });
  return is_one ? first : 0;
}

ObservedRow::ObservedRow(const Stepper& stepper, std::span<const Observable> observables)
    : observables_(observables.begin(), observables.end()), values_(observables.size()) {
  if (RankedStepper(stepper).ranks() == nullptr) return;
  const int own_rank = RankedStepper(stepper).ranks()->rank();
  for (const Observable& one : observables_) {
    for (const ScalarChannel& own : channels_of(one)) {
      is_own_ = is_own_ && rank_of(stepper, own) == own_rank;
      channels_.push_back(own);
    }
    ends_.push_back(channels_.size());
  }
  numbers_.resize(channels_.size());
  if (!is_own_) set_ = RankedStepper(stepper).prepare_channels(channels_);
}

std::span<const double> ObservedRow::read(const Stepper& stepper) {
  if (RankedStepper(stepper).ranks() == nullptr) {
    std::ranges::transform(observables_, values_.begin(),
                           [&](const Observable& one) { return observe(stepper, one); });
    return values_;
  }
  if (is_own_) {
    RankedStepper(stepper).read_own(channels_, numbers_);
  } else {
    RankedStepper(stepper).read_channels(set_, numbers_);
  }
  std::size_t next = 0;
  for (std::size_t i = 0; i < observables_.size(); ++i) {
    if (observables_[i].kind == Observable::Kind::signal) {
      values_[i] = observe(stepper, observables_[i]);
      continue;
    }
    double sum = numbers_[next++];
    while (next < ends_[i]) sum += numbers_[next++];
    values_[i] = sum;
  }
  return values_;
}

}  // namespace portwave
