#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "portwave/runtime/step/snapshot.hpp"

/// Snapshots that somebody has made up: their checksums are right, so that what is in them is read.
namespace portwave::testing {

using Bytes = std::vector<std::byte>;

/// The bytes of a snapshot in pieces (runtime/src/step/states/snapshot.cpp).
class SnapshotBytes {
 public:
  explicit SnapshotBytes(const Snapshot& snapshot) : SnapshotBytes(snapshot.to_bytes()) {}
  explicit SnapshotBytes(Bytes bytes) : all_(std::move(bytes)) {
    std::memcpy(&identity_size_, all_.data() + kIdentitySize, sizeof(identity_size_));
  }

  /// What it is of, which may be changed but not resized.
  std::span<std::byte> identity() {
    return std::span(all_).subspan(kHead, static_cast<std::size_t>(identity_size_));
  }
  /// Where the run stands.
  Bytes state() const { return {all_.begin() + static_cast<std::ptrdiff_t>(begin()), all_.end()}; }
  void set_state(std::span<const std::byte> state) {
    all_.resize(begin());
    all_.insert(all_.end(), state.begin(), state.end());
  }
  void set_time(double time_s, std::int64_t step_index) {
    std::memcpy(all_.data() + kTime, &time_s, sizeof(time_s));
    std::memcpy(all_.data() + kTime + 8, &step_index, sizeof(step_index));
  }
  /// With a checksum that is right.
  Bytes sealed() const {
    std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
    const auto add = [&hash](std::byte byte) {
      hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3U;
    };
    for (std::size_t i = kIdentitySize; i < all_.size(); ++i) add(all_[i]);
    add(std::byte{0});
    Bytes out = all_;
    std::memcpy(out.data() + kChecksum, &hash, sizeof(hash));
    return out;
  }

 private:
  static constexpr std::size_t kChecksum = 40, kIdentitySize = 48, kTime = 64, kHead = 80;

  std::size_t begin() const { return kHead + static_cast<std::size_t>(identity_size_); }

  Bytes all_;
  std::uint64_t identity_size_ = 0;
};

/// Numbers one after the other, of a seed or of bytes that somebody else gives.
class Choices {
 public:
  explicit Choices(std::uint64_t seed) : state_(seed) {}
  explicit Choices(std::span<const std::byte> bytes) : bytes_(bytes), is_given_(true) {}

  bool are_left() const { return !is_given_ || !bytes_.empty(); }
  /// Less than `count`.
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(next() % count); }
  std::uint64_t next() {
    if (is_given_) {  // three bytes: places in snapshots, and kinds of values
      std::uint64_t out = 0;
      for (int i = 0; i < 3 && !bytes_.empty(); ++i) {
        out = out << 8 | std::to_integer<std::uint64_t>(bytes_.front());
        bytes_ = bytes_.subspan(1);
      }
      return out;
    }
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return state_ >> 33;
  }

 private:
  std::uint64_t state_ = 0;
  std::span<const std::byte> bytes_;
  bool is_given_ = false;
};

/// Changes a piece of some bytes to what no run writes there, or seldom.
inline void change_one(Bytes& bytes, Choices& choices) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  constexpr double kDoubles[] = {std::numeric_limits<double>::quiet_NaN(),
                                 kInfinite,
                                 -kInfinite,
                                 0.0,
                                 -0.0,
                                 -1.0,
                                 1e308,
                                 -1e308,
                                 1e-308,
                                 5e-324,
                                 1.0,
                                 1e17};
  constexpr std::int64_t kIntegers[] = {-1,
                                        0,
                                        1,
                                        2,
                                        3,
                                        7,
                                        1000,
                                        -1000,
                                        std::int64_t{1} << 31,
                                        (std::int64_t{1} << 53) + 1,
                                        std::numeric_limits<std::int64_t>::max(),
                                        std::numeric_limits<std::int64_t>::min()};
  constexpr std::int32_t kInts[] = {-1,
                                    0,
                                    1,
                                    2,
                                    3,
                                    9,
                                    1 << 20,
                                    std::numeric_limits<std::int32_t>::max(),
                                    std::numeric_limits<std::int32_t>::min()};
  if (bytes.empty()) return;
  const std::size_t at = choices.below(bytes.size());
  const auto put = [&](const auto& value) {
    std::memcpy(bytes.data() + at, &value, std::min(sizeof(value), bytes.size() - at));
  };
  switch (choices.below(8)) {
    case 0:
      bytes[at] ^= static_cast<std::byte>(1U << choices.below(8));
      break;
    case 1:
      bytes[at] = static_cast<std::byte>(choices.below(256));
      break;
    case 2:
    case 3:
      put(kDoubles[choices.below(std::size(kDoubles))]);
      break;
    case 4:
      put(kIntegers[choices.below(std::size(kIntegers))]);
      break;
    case 5:
      put(kInts[choices.below(std::size(kInts))]);
      break;
    case 6: {  // from elsewhere
      const std::size_t from = choices.below(bytes.size());
      const std::size_t size = std::min({std::size_t{8}, bytes.size() - at, bytes.size() - from});
      std::memmove(bytes.data() + at, bytes.data() + from, size);
      break;
    }
    default: {  // shorter or longer
      const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
      const std::size_t size = 1 + choices.below(8);
      if (choices.below(2) == 0) {
        bytes.erase(place, place + static_cast<std::ptrdiff_t>(std::min(size, bytes.size() - at)));
      } else {
        bytes.insert(place, size, std::byte{0});
      }
    }
  }
}

}  // namespace portwave::testing
