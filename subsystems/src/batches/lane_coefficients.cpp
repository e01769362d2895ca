#include "batches/lane_coefficients.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <unordered_map>

namespace portwave {

std::size_t LaneCoefficients::place(std::size_t size) {
  const std::size_t at = values_.size();
  constexpr std::size_t kLine = kAlignment / sizeof(double);
  values_.resize(at + (size + kLine - 1) / kLine * kLine);
  return at;
}

void LaneCoefficients::build(std::span<const std::vector<double>> distinct,
                             std::span<const int> of_lane, int width) {
  const int lanes = static_cast<int>(of_lane.size());
  const int groups = (lanes + width - 1) / width;
  const auto set_of = [&](int lane) {
    return static_cast<std::size_t>(of_lane[static_cast<std::size_t>(std::min(lane, lanes - 1))]);
  };
  values_.clear();
  begin_.clear();
  shared_.clear();
  std::unordered_map<std::size_t, std::size_t> placed;  // shared set → begin
  for (int g = 0; g < groups; ++g) {
    const std::size_t first = set_of(g * width);
    bool equal = true;
    for (int l = 1; l < width; ++l) equal = equal && set_of(g * width + l) == first;
    shared_.push_back(equal);
    const std::size_t size = distinct[first].size();
    if (equal) {
      const auto [it, is_new] = placed.try_emplace(first, 0);
      if (is_new) {
        it->second = place(size);
        std::copy(distinct[first].begin(), distinct[first].end(),
                  values_.begin() + static_cast<std::ptrdiff_t>(it->second));
      }
      begin_.push_back(it->second);
      continue;
    }
    const auto lanes_wide = static_cast<std::size_t>(width);
    begin_.push_back(place(size * lanes_wide));
    for (std::size_t l = 0; l < lanes_wide; ++l) {
      const std::vector<double>& values = distinct[set_of(g * width + static_cast<int>(l))];
      for (std::size_t i = 0; i < size; ++i) {
        values_[begin_.back() + i * lanes_wide + l] = values[i];
      }
    }
  }
}

void LaneCoefficients::begin(int groups) {
  values_.clear();
  begin_.clear();
  shared_.clear();
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
