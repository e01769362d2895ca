#include "execution/shared_sums.hpp"

#include <algorithm>

#include "execution/rank_cut.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

/// values ← values + other, sums first and then maxima.
void add_to(const IslandSums& sums, double* values, const double* other) {
  for (int i = 0; i < sums.sums(); ++i) values[i] += other[i];
  for (int i = sums.sums(); i < sums.sums() + sums.maxima(); ++i) {
    values[i] = larger_or_nan(values[i], other[i]);
  }
}

}  // namespace

void Places::OfRank::add(std::size_t begin, std::size_t count) {
  if (count == 0) return;
  doubles += count;
  if (!runs.empty() && runs.back().begin + runs.back().count == begin) {
    runs.back().count += count;
  } else {
    runs.push_back({begin, count});
  }
}

SharedSums::SharedSums(const PartOrderReduction& parts, std::span<const int> rank_of_entry,
                       std::span<const int> islands, int ranks, int rank)
    : rank_(rank), entries_{std::vector<Places::OfRank>(at(ranks))} {
  find_owners(parts, rank_of_entry);
  std::vector<std::vector<Branch>> by_rank(at(ranks));
  for (const int island : islands) {
    const auto [first, last] = parts.chunks_of(island);
    const int act = static_cast<int>(acts_.size());
    plan(first, last, by_rank);
    islands_.push_back({island, act, static_cast<int>(acts_.size())});
    for (int chunk = first; chunk < last; ++chunk) {
      if (owner_[at(chunk)] == kMixed) add_entries(parts, chunk, rank_of_entry);
    }
  }
  for (const auto& own : by_rank) {
    first_branch_.push_back(static_cast<int>(branches_.size()));
    branches_.insert(branches_.end(), own.begin(), own.end());
  }
  first_branch_.push_back(static_cast<int>(branches_.size()));
  for (Act& act : acts_) {
    if (act.kind == Act::branch) act.first += first_branch_[at(act.last)];
  }
  int depth = 0, deepest = 0;
  for (const Act& act : acts_) deepest = std::max(deepest, depth += act.kind == Act::add ? -1 : 1);
  stack_.resize(at(deepest));
}

void SharedSums::find_owners(const PartOrderReduction& parts, std::span<const int> rank_of_entry) {
  for (int chunk = 0; chunk < parts.chunk_count(); ++chunk) {
    const auto [shift, index, count] = parts.entries_of_chunk(chunk);
    const auto owner_of = [&, s = shift, in = index](int i) {
      return rank_of_entry[at(in == nullptr ? s + i : in[i])];
    };
    int owner = owner_of(0);
    for (int i = 1; i < count && owner != kMixed; ++i) {
      if (owner_of(i) != owner) owner = kMixed;
    }
    owner_.push_back(owner);
  }
  same_until_.resize(owner_.size());
  for (int chunk = parts.chunk_count() - 1; chunk >= 0; --chunk) {
    const bool goes_on = chunk + 1 < parts.chunk_count() && owner_[at(chunk)] != kMixed &&
                         owner_[at(chunk + 1)] == owner_[at(chunk)];
    same_until_[at(chunk)] = goes_on ? same_until_[at(chunk + 1)] : chunk + 1;
  }
}

void SharedSums::plan(int first, int last, std::vector<std::vector<Branch>>& by_rank) {
  const int owner = owner_[at(first)];
  if (same_until_[at(first)] >= last) {
    if (owner < 0) return acts_.push_back({Act::own, first, last});
    // For now: its number on its rank, and the rank.
    acts_.push_back({Act::branch, static_cast<int>(by_rank[at(owner)].size()), owner});
    return by_rank[at(owner)].push_back({first, last});
  }
  const int middle = PartOrderReduction::middle_of(first, last);
  plan(first, middle, by_rank);
  plan(middle, last, by_rank);
  acts_.push_back({Act::add, 0, 0});
}

void SharedSums::add_entries(const PartOrderReduction& parts, int chunk,
                             std::span<const int> rank_of_entry) {
  const auto [shift, index, count] = parts.entries_of_chunk(chunk);
  for (int i = 0; i < count; ++i) {
    const std::size_t entry = at(index == nullptr ? shift + i : index[i]);
    if (rank_of_entry[entry] != RankCut::kEvery) {
      entries_.ranks[at(rank_of_entry[entry])].add(entry, 1);
    }
  }
}

const Places& SharedSums::branches(int width) {
  Places& places = places_[width];
  if (!places.ranks.empty()) return places;
  places.ranks.resize(first_branch_.size() - 1);
  for (std::size_t r = 0; r < places.ranks.size(); ++r) {
    const auto begin = at(first_branch_[r]), end = at(first_branch_[r + 1]);
    places.ranks[r].add(begin * at(width), (end - begin) * at(width));
  }
  return places;
}

std::int64_t SharedSums::bytes_of(int rank, int terms, int values) const {
  const auto branches = first_branch_[at(rank) + 1] - first_branch_[at(rank)];
  const auto entries = static_cast<std::int64_t>(entries_.ranks[at(rank)].doubles);
  return 8 * (entries * terms + static_cast<std::int64_t>(branches) * values);
}

double* SharedSums::form(const IslandSums& sums, int place) {
  if (values_.size() <= at(place)) values_.resize(at(place) + 1);
  AlignedVector& values = values_[at(place)];
  const int width = sums.sums() + sums.maxima();
  values.resize(branches_.size() * at(width));
  for (int i = first_branch_[at(rank_)]; i < first_branch_[at(rank_) + 1]; ++i) {
    evaluate(sums, branches_[at(i)].first, branches_[at(i)].last, values.data() + i * width);
  }
  return values.data();
}

void SharedSums::evaluate(const IslandSums& sums, int first, int last, double* values) {
  if (last - first == 1) return sums.form(first, values);
  const int middle = PartOrderReduction::middle_of(first, last);
  Values right;
  evaluate(sums, first, middle, values);
  evaluate(sums, middle, last, right.data());
  add_to(sums, values, right.data());
}

void SharedSums::take(IslandSums& sums, int place) {
  const int width = sums.sums() + sums.maxima();
  const double* const values = values_[at(place)].data();
  for (const Island& island : islands_) {
    std::size_t depth = 0;
    for (int i = island.first_act; i < island.last_act; ++i) {
      const Act& act = acts_[at(i)];
      switch (act.kind) {
        case Act::branch:
          std::copy_n(values + act.first * width, width, stack_[depth++].data());
          break;
        case Act::own:
          evaluate(sums, act.first, act.last, stack_[depth++].data());
          break;
        case Act::add:
          --depth;
          add_to(sums, stack_[depth - 1].data(), stack_[depth].data());
          break;
      }
    }
    sums.take(island.number, stack_[0].data());
  }
}

}  // namespace portwave
