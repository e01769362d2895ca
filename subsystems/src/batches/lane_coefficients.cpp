#include "batches/lane_coefficients.hpp"

#include <algorithm>

namespace portwave {

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
  std::size_t end = 0;
  for (int g = 0; g < sets.groups(); ++g) {
    constexpr std::size_t kLine = kAlignment / sizeof(double);
    shared_.push_back(sets.shared(g));
    if (sets.home(g) != g) {
      begin_.push_back(begin_[static_cast<std::size_t>(sets.home(g))]);
      continue;
    }
    begin_.push_back(end);
    const std::size_t own = size * static_cast<std::size_t>(sets.shared(g) ? 1 : sets.width());
    end += (own + kLine - 1) / kLine * kLine;
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

}  // namespace portwave
