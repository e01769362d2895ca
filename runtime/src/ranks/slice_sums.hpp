#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "portwave/coupling/waves/island_sums.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/runtime/ranks/ranks.hpp"
#include "ranks/shared_sums.hpp"

namespace portwave {

/// Sums, names and checks that ranks with slices of one system find together.
class SliceSums final : public SlicesTogether {
 public:
  SliceSums(const WaveDiscretisation& waves, std::shared_ptr<Ranks> ranks);

  void share(IslandSums& sums) override;
  std::vector<std::byte> gather(std::span<const std::byte> own) override;
  std::int64_t number_of(int part) const override {
    return slice_.numbers[static_cast<std::size_t>(part)];
  }

  /// The name of the part with that number in the whole system, on whatever rank it is. All ranks call it.
  std::string name_of(std::int64_t number);
  /// Keeps the name of a part for `use`, which is below kNamed. The name is gathered only if the part is
  /// another one than before. All ranks call it.
  void keep_name(int use, std::int64_t number);
  static constexpr std::size_t kNamed = 2;
  /// The name of a part whose name was kept; "number 7" for others.
  std::string kept_name(std::int64_t number) const;

  /// Runs `check`. If it throws ConfigError on one rank, all ranks throw. All ranks call it.
  /// Errors: the ConfigError of `check`; SliceDefects if that of another rank says more.
  void check_together(const std::function<void()>& check);

 private:
  struct NamedPart {
    std::int64_t number = -1;
    std::string name;
  };

  const WaveDiscretisation& waves_;
  const SystemSlice& slice_;
  std::shared_ptr<Ranks> ranks_;
  std::map<std::pair<int, int>, SharedSums> sums_;  // by how many sums and maxima
  std::array<NamedPart, kNamed> named_;             // by use
};

/// The bytes of all ranks one after another, any number from each. `own`: those of this rank.
std::vector<std::byte> gather_bytes(Ranks& ranks, std::span<const std::byte> own,
                                    std::vector<std::size_t>* sizes = nullptr);

}  // namespace portwave
