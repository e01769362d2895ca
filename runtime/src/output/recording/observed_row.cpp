#include "output/recording/observed_row.hpp"

#include <algorithm>

#include "portwave/runtime/ranks/ranked_stepper.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {

std::vector<QuantityTerm> terms_of(const Quantity& quantity) {
  const auto one = [&](QuantityTerm::Kind kind) {
    return std::vector<QuantityTerm>{{kind, quantity.part, quantity.index}};
  };
  switch (quantity.kind) {
    case Quantity::Kind::state:
      return one(QuantityTerm::Kind::state);
    case Quantity::Kind::effort:
      return one(QuantityTerm::Kind::effort);
    case Quantity::Kind::flow:
      return one(QuantityTerm::Kind::flow);
    case Quantity::Kind::incident:
      return one(QuantityTerm::Kind::incident);
    case Quantity::Kind::outgoing:
      return one(QuantityTerm::Kind::outgoing);
    case Quantity::Kind::coenergy:
      return one(QuantityTerm::Kind::coenergy);
    case Quantity::Kind::signal:
      return {};
    case Quantity::Kind::storage:
      break;
  }
  std::vector<QuantityTerm> parts;
  for (int i = 0; i <= quantity.index; ++i) {
    parts.push_back({QuantityTerm::Kind::storage, quantity.part + i, 0});
  }
  return parts;
}

namespace {

int rank_of(const Stepper& stepper, const QuantityTerm& term) {
  return RankedStepper(stepper).rank_of_part(
      is_of_a_part(term) ? term.part : stepper.system().scalar_ports()[at(term.index)].part);
}

}  // namespace

int rank_of(const Stepper& stepper, const Quantity& quantity) {
  const std::vector<QuantityTerm> terms = terms_of(quantity);
  if (terms.empty()) return 0;
  const int first = rank_of(stepper, terms.front());
  const bool is_one = std::ranges::all_of(
      terms, [&](const QuantityTerm& own) { return rank_of(stepper, own) == first; });
  return is_one ? first : 0;
}

ObservedRow::ObservedRow(const Stepper& stepper, std::span<const Quantity> quantities)
    : quantities_(quantities.begin(), quantities.end()), values_(quantities.size()) {
  if (RankedStepper(stepper).ranks() == nullptr) return;
  const int own_rank = RankedStepper(stepper).ranks()->rank();
  for (const Quantity& one : quantities_) {
    for (const QuantityTerm& own : terms_of(one)) {
      is_own_ = is_own_ && rank_of(stepper, own) == own_rank;
      terms_.push_back(own);
    }
    ends_.push_back(terms_.size());
  }
  numbers_.resize(terms_.size());
  if (!is_own_) set_ = RankedStepper(stepper).prepare_terms(terms_);
}

std::span<const double> ObservedRow::read(const Stepper& stepper) {
  if (RankedStepper(stepper).ranks() == nullptr) {
    std::ranges::transform(quantities_, values_.begin(),
                           [&](const Quantity& one) { return observe(stepper, one); });
    return values_;
  }
  if (is_own_) {
    RankedStepper(stepper).read_own(terms_, numbers_);
  } else {
    RankedStepper(stepper).read_terms(set_, numbers_);
  }
  std::size_t next = 0;
  for (std::size_t i = 0; i < quantities_.size(); ++i) {
    if (quantities_[i].kind == Quantity::Kind::signal) {
      values_[i] = observe(stepper, quantities_[i]);
      continue;
    }
    double sum = numbers_[next++];
    while (next < ends_[i]) sum += numbers_[next++];
    values_[i] = sum;
  }
  return values_;
}

}  // namespace portwave
