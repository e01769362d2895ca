#include "portwave/coupling/waves/part_order_reduction.hpp"

#include <algorithm>

#include "kernels/ledger_kernels.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"

namespace portwave {

PartOrderReduction::PartOrderReduction(const System& system, std::span<const int> entry_of_part)
    : sum_(ledger_kernels().sum),
      islands_(static_cast<std::size_t>(system.island_count())),
      part_count_(system.slice() != nullptr ? system.slice()->own_parts
                                            : static_cast<int>(entry_of_part.size())),
      parts_(static_cast<std::size_t>(part_count_)),
      entries_(parts_.size()) {
  const auto list_of = [&](int part) -> List& {
    return islands_[static_cast<std::size_t>(system.island_of_part(part))];
  };
  for (int part = 0; part < part_count_; ++part) ++list_of(part).count;
  int first = 0;
  for (List& list : islands_) {
    list.first = first;
    first += list.count;
    list.count = 0;
  }
  for (int part = 0; part < part_count_; ++part) {
    List& list = list_of(part);
    const auto next = static_cast<std::size_t>(list.first + list.count++);
    parts_[next] = part;
    entries_[next] = entry_of_part[static_cast<std::size_t>(part)];
  }
  for (List& list : islands_) {
    const int* const entries = entries_.data() + list.first;
    for (int i = 1; i < list.count; ++i) {
      list.adjacent = list.adjacent && entries[i] == entries[0] + i;
    }
    list.shift = list.adjacent && list.count > 0 ? entries[0] : 0;
    list.first_chunk = chunk_count();
    make_chunks(list);
  }
  const auto begin_of = [this](int chunk) {
    return chunks_[static_cast<std::size_t>(chunk)].shift;
  };
  for (int chunk = 0; chunk < chunk_count(); ++chunk) {
    if (begin_of(chunk) >= 0) adjacent_.push_back(chunk);
  }
  std::ranges::sort(adjacent_, {}, begin_of);
}

void PartOrderReduction::make_chunks(const List& list) {
  for (int first = 0; first < list.count; first += kChunk) {
    Chunk chunk{list.first + first, std::min(list.count - first, kChunk), -1};
    const int* const entries = entries_.data() + chunk.first;
    bool adjacent = true;
    for (int i = 1; i < chunk.count; ++i) adjacent = adjacent && entries[i] == entries[0] + i;
    if (adjacent) chunk.shift = entries[0];
    chunks_.push_back(chunk);
  }
}

std::vector<int>::const_iterator PartOrderReduction::adjacent_from(int entry) const {
  return std::lower_bound(adjacent_.begin(), adjacent_.end(), entry, [this](int chunk, int value) {
    return chunks_[static_cast<std::size_t>(chunk)].shift < value;
  });
}

double PartOrderReduction::sum_of_many(int island, const double* by_entry) const {
  const auto [first, last] = chunks_of(island);
  return tree<double>(
      first, last, [&](int chunk) { return sum_of_chunk(chunk, by_entry); },
      [](double a, double b) { return a + b; });
}

std::size_t PartOrderReduction::bytes() const {
  return islands_.capacity() * sizeof(List) + chunks_.capacity() * sizeof(Chunk) +
         (parts_.capacity() + entries_.capacity() + adjacent_.capacity()) * sizeof(int);
}

const LedgerKernels& ledger_kernels() {
  static const LedgerKernels& kernels = PORTWAVE_KERNELS(kLedgerKernels);
  return kernels;
}

}  // namespace portwave
