#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "portwave/subsystems/base/aligned.hpp"

namespace portwave {

/// Which of several sets of coefficients each lane has, and which lane groups have one for all their
/// lanes. Padding repeats the last lane.
class LaneSets {
 public:
  LaneSets(std::span<const int> of_lane, int sets, int width);

  int width() const { return width_; }
  int groups() const { return static_cast<int>(shared_.size()); }
  bool shared(int group) const { return shared_[static_cast<std::size_t>(group)]; }
  /// The group whose copy a group uses: of those with the same set for all lanes the first, else itself.
  int home(int group) const { return home_[static_cast<std::size_t>(group)]; }

  /// Where a set goes: to one lane of a group that has several, or to all of a group (lane −1).
  struct Place {
    int group;
    int lane;
  };
  std::span<const Place> places(int set) const {
    const auto begin = static_cast<std::size_t>(begin_[static_cast<std::size_t>(set)]);
    const auto end = static_cast<std::size_t>(begin_[static_cast<std::size_t>(set) + 1]);
    return std::span(places_).subspan(begin, end - begin);
  }

 private:
  int width_;
  std::vector<bool> shared_;
  std::vector<int> home_, begin_;
  std::vector<Place> places_;
};

/// Coefficients of the lanes of a batch as the kernels read them: W lanes side by side per
/// coefficient, or once where all lanes of a group have the same. Groups with the same coefficients
/// share one copy.
class LaneCoefficients {
 public:
  /// `distinct` sets of equal length, `of_lane` the set of each lane.
  void build(std::span<const std::vector<double>> distinct, std::span<const int> of_lane,
             int width);

  /// The same set by set: first room for sets of `size` coefficients, then each of them.
  void arrange(const LaneSets& sets, std::size_t size);
  void put(const LaneSets& sets, int set, std::span<const double> values);

  /// The same group by group: makes room for `groups` of them, of which none is there yet. Memory is
  /// kept, so that no more is allocated where there are no more different ones than ever before.
  void begin(int groups);
  /// The next group: of each coefficient W values side by side or, where they are shared, one.
  void add(std::span<const double> values, bool shared);

  /// Lanes [lane, lane + count) of a group receive other values. A group that shares its coefficients is
  /// given memory of its own first; others stay where they are. `width`: as it was built with; a batch of
  /// one lane is overwritten where it is.
  void replace(int group, int lane, int count, int width, std::span<const double> values);
  /// The values of a group are others: W side by side per coefficient or, where they are shared, one.
  void replace_group(int group, std::span<const double> values, bool shared);

  const double* group(int g) const {
    const auto own = apart_.find(g);
    if (own != apart_.end()) return own->second.data();
    return values_.data() + begin_[static_cast<std::size_t>(g)];
  }
  bool shared(int g) const { return shared_[static_cast<std::size_t>(g)]; }

 private:
  std::size_t place(std::size_t size);
  /// Where shared coefficients of an earlier group are; if there are none it is noted where these
  /// are going to be.
  std::size_t found_or_next(std::span<const double> values, bool& is_new);

  AlignedVector values_;
  std::vector<std::size_t> begin_;
  std::vector<bool> shared_;
  std::vector<std::size_t> table_;      // 1 + begin of shared coefficients, by hash; 0: free
  std::map<int, AlignedVector> apart_;  // of groups whose lanes were exchanged
};

}  // namespace portwave
