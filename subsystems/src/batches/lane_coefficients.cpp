#include "batches/lane_coefficients.hpp"

#include <algorithm>
#include <unordered_map>

namespace portwave {

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
  const auto place = [this](std::size_t size) {
    const std::size_t at = values_.size();
    constexpr std::size_t kLine = kAlignment / sizeof(double);
    values_.resize(at + (size + kLine - 1) / kLine * kLine);
    return at;
  };
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

}  // namespace portwave
