#include "core/lane_coefficients.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

namespace portwave {
namespace {

/// To the next line.
std::size_t padded(std::size_t size) {
  constexpr std::size_t kLine = kAlignment / sizeof(double);
  return (size + kLine - 1) / kLine * kLine;
}

}  // namespace

LaneSets::LaneSets(std::span<const int> of_lane, int sets, int width) : width_(width) {
  const int lanes = static_cast<int>(of_lane.size());
  const int groups = (lanes + width - 1) / width;
  const auto set_of = [&](int group, int lane) {
    return of_lane[static_cast<std::size_t>(std::min(group * width + lane, lanes - 1))];
  };
  std::vector<int> home_of(static_cast<std::size_t>(sets), -1);
  for (int g = 0; g < groups; ++g) {
    bool equal = true;
    for (int l = 1; l < width; ++l) equal = equal && set_of(g, l) == set_of(g, 0);
    int& home = home_of[static_cast<std::size_t>(set_of(g, 0))];
    if (equal && home < 0) home = g;
    shared_.push_back(equal);
    home_.push_back(equal ? home : g);
  }
  const auto visit = [&](const auto& at) {
    for (int g = 0; g < groups; ++g) {
      if (home(g) != g) continue;
      for (int l = 0; l < width && !shared(g); ++l) at(set_of(g, l), Place{g, l});
      if (shared(g)) at(set_of(g, 0), Place{g, -1});
    }
  };
  begin_.assign(static_cast<std::size_t>(sets) + 1, 0);
  visit([&](int set, Place) { ++begin_[static_cast<std::size_t>(set) + 1]; });
  for (std::size_t s = 1; s < begin_.size(); ++s) begin_[s] += begin_[s - 1];
  places_.resize(static_cast<std::size_t>(begin_.back()));
  std::vector<int> next(begin_.begin(), begin_.end() - 1);
  visit([&](int set, Place place) {
    places_[static_cast<std::size_t>(next[static_cast<std::size_t>(set)]++)] = place;
  });
}

void LaneCoefficients::build(std::span<const std::vector<double>> distinct,
                             std::span<const int> of_lane, int width) {
  const LaneSets sets(of_lane, static_cast<int>(distinct.size()), width);
  arrange(sets, distinct.empty() ? 0 : distinct[0].size());
  for (std::size_t s = 0; s < distinct.size(); ++s) put(sets, static_cast<int>(s), distinct[s]);
}

void LaneCoefficients::arrange(const LaneSets& sets, std::size_t size) {
  begin_.clear();
  shared_.clear();
  apart_.clear();
  std::size_t end = 0;
  for (int g = 0; g < sets.groups(); ++g) {
    shared_.push_back(sets.shared(g));
    if (sets.home(g) != g) {
      begin_.push_back(begin_[static_cast<std::size_t>(sets.home(g))]);
      continue;
    }
    begin_.push_back(end);
    end += padded(size * static_cast<std::size_t>(sets.shared(g) ? 1 : sets.width()));
  }
  values_.assign(end, 0.0);
}

void LaneCoefficients::put(const LaneSets& sets, int set, std::span<const double> values) {
  for (const LaneSets::Place& place : sets.places(set)) {
    double* const to = values_.data() + begin_[static_cast<std::size_t>(place.group)];
    if (place.lane < 0) {
      std::ranges::copy(values, to);
      continue;
    }
    const auto width = static_cast<std::size_t>(sets.width());
    const auto lane = static_cast<std::size_t>(place.lane);
    for (std::size_t i = 0; i < values.size(); ++i) to[i * width + lane] = values[i];
  }
}

std::size_t LaneCoefficients::place(std::size_t size) {
  const std::size_t at = values_.size();
  values_.resize(at + padded(size));
  return at;
}

void LaneCoefficients::begin(int groups) {
  values_.clear();
  begin_.clear();
  shared_.clear();
  apart_.clear();
  const auto count = static_cast<std::size_t>(groups);
  begin_.reserve(count);
  shared_.reserve(count);
  table_.assign(std::bit_ceil(2 * count), 0);
}

void LaneCoefficients::add(std::span<const double> values, bool shared) {
  bool is_new = true;
  const std::size_t at = shared ? found_or_next(values, is_new) : values_.size();
  if (is_new) {
    place(values.size());
    std::ranges::copy(values, values_.data() + at);
  }
  begin_.push_back(at);
  shared_.push_back(shared);
}

void LaneCoefficients::replace(int group, int lane, int count, int width,
                               std::span<const double> values) {
  const auto g = static_cast<std::size_t>(group), each = static_cast<std::size_t>(width);
  if (shared_[g] && width > 1) {
    AlignedVector own(padded(values.size() * each), 0.0);
    const double* const before = this->group(group);
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::fill_n(own.data() + i * each, each, before[i]);
    }
    apart_.insert_or_assign(group, std::move(own));
    shared_[g] = false;
  }
  // Nobody else reads these.
  double* const to = const_cast<double*>(this->group(group));  // NOLINT(*-const-cast)
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::fill_n(to + i * each + static_cast<std::size_t>(lane), count, values[i]);
  }
}

void LaneCoefficients::replace_group(int group, std::span<const double> values, bool shared) {
  const auto g = static_cast<std::size_t>(group);
  const bool is_own = !shared || begin_.size() == 1 || apart_.contains(group);
  if (shared != shared_[g] || !is_own) {
    AlignedVector own(padded(values.size()), 0.0);
    apart_.insert_or_assign(group, std::move(own));
    shared_[g] = shared;
  }
  std::ranges::copy(values, const_cast<double*>(this->group(group)));  // NOLINT(*-const-cast)
}

std::size_t LaneCoefficients::found_or_next(std::span<const double> values, bool& is_new) {
  const auto is_there = [&](std::size_t at) {
    return std::memcmp(values_.data() + at, values.data(), values.size_bytes()) == 0;
  };
  is_new = false;
  if (!begin_.empty() && shared_.back() && is_there(begin_.back())) return begin_.back();
  std::uint64_t hash = 0;
  for (const double value : values) {
    hash = (std::rotl(hash, 5) ^ std::bit_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15U;
  }
  std::size_t slot = (hash >> 32) & (table_.size() - 1);
  while (table_[slot] != 0) {
    if (is_there(table_[slot] - 1)) return table_[slot] - 1;
    slot = (slot + 1) & (table_.size() - 1);
  }
  is_new = true;
  table_[slot] = 1 + values_.size();
  return values_.size();
}

}  // namespace portwave
