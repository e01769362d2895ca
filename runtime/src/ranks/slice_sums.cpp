#include "ranks/slice_sums.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "portwave/runtime/ranks/slice_builder.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {

SliceSums::SliceSums(const WaveDiscretisation& waves, std::shared_ptr<Ranks> ranks)
    : waves_(waves), slice_(*waves.system().slice()), ranks_(std::move(ranks)) {}

void SliceSums::share(IslandSums& sums) {
  const std::pair key(sums.sums(), sums.maxima());
  auto found = sums_.find(key);
  if (found == sums_.end()) {
    std::vector<int> all(slice_.islands.size());
    std::iota(all.begin(), all.end(), 0);
    found = sums_.try_emplace(key, waves_.reduction(), slice_, all, ranks_->size()).first;
  }
  IslandSums* const one[] = {&sums};
  const std::vector<std::size_t> no_notes(at(ranks_->size()), 0);
  found->second.exchange(*ranks_, one, {}, no_notes);
}

std::vector<std::byte> SliceSums::gather(std::span<const std::byte> own) {
  const std::vector<std::size_t> sizes(at(ranks_->size()), own.size());
  std::vector<std::byte> all(sizes.size() * own.size());
  ranks_->gather(own, sizes, all);
  return all;
}

std::string SliceSums::name_of(std::int64_t number) {
  std::string name;
  const auto end = slice_.numbers.begin() + slice_.own_parts;
  if (const auto found = std::lower_bound(slice_.numbers.begin(), end, number);
      found != end && *found == number) {
    const auto part = static_cast<std::size_t>(found - slice_.numbers.begin());
    name = waves_.system().parts()[part].name;
  }
  const std::vector<std::byte> all = gather_bytes(*ranks_, std::as_bytes(std::span(name)));
  return {reinterpret_cast<const char*>(all.data()), all.size()};
}

void SliceSums::keep_name(int use, std::int64_t number) {
  NamedPart& named = named_[at(use)];
  if (named.number != number) named = {number, name_of(number)};
}

std::string SliceSums::kept_name(std::int64_t number) const {
  for (const NamedPart& named : named_) {
    if (named.number == number) return named.name;
  }
  return fmt::format("number {}", number);
}

void SliceSums::check_together(const std::function<void()>& check) {
  std::optional<ConfigError> own;
  try {
    check();
  } catch (const ConfigError& error) {
    own = error;
  }
  const bool is_of_part = own && own->issues().front().where.starts_with("/subsystems");
  // A defect of a part also spoils the sums that every rank checks: the rank of the part explains it best.
  const bool is_any_of_part = any(is_of_part), is_any = any(own.has_value());
  if (own && (is_of_part || !is_any_of_part)) throw *std::move(own);
  if (is_any) throw SliceDefects("the slice of another rank has defects");
}

std::vector<std::byte> gather_bytes(Ranks& ranks, std::span<const std::byte> own,
                                    std::vector<std::size_t>* sizes) {
  const std::vector<std::size_t> bytes = gather_values(ranks, own.size());
  std::vector<std::byte> all(std::accumulate(bytes.begin(), bytes.end(), std::size_t{0}));
  ranks.gather(own, bytes, all);
  if (sizes != nullptr) *sizes = bytes;
  return all;
}

}  // namespace portwave
