#pragma once

#include <cstddef>
#include <unordered_map>

namespace portwave {

/// Numbers the classes of equal things in order of first appearance, so that one preparation serves all
/// members. The caller keeps an example of each class and compares with it.
class EqualClasses {
 public:
  int count() const { return static_cast<int>(by_hash_.size()); }

  /// The class of a thing: one whose example it `equals(class)`, or a new one. Equal things have
  /// equal hashes; the caller decides how `equals` treats two NaN or two zeros.
  template <class Equals>
  int find_or_add(std::size_t hash, const Equals& equals) {
    const auto [first, last] = by_hash_.equal_range(hash);
    for (auto known = first; known != last; ++known) {
      if (equals(known->second)) return known->second;
    }
    const int added = count();
    by_hash_.emplace(hash, added);
    return added;
  }

 private:
  std::unordered_multimap<std::size_t, int> by_hash_;
};

}  // namespace portwave
