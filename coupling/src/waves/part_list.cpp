#include "portwave/coupling/waves/part_list.hpp"

#include <cstddef>
#include <numeric>

#include "kernels/ledger_kernels.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"

namespace portwave {

PartList::PartList(const WaveDiscretisation& waves, std::span<const int> parts)
    : count_(static_cast<int>(parts.size())) {
  bool adjacent = true;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    entries_.push_back(waves.place(parts[i]).entry);
    adjacent = adjacent && entries_.back() == entries_.front() + static_cast<int>(i);
  }
  if (count_ > 0) first_ = entries_.front();
  if (adjacent) entries_ = {};
}

double PartList::sum(const double* by_entry) const {
  return entries_.empty() ? ledger_kernels().sum(by_entry + first_, nullptr, count_)
                          : ledger_kernels().sum(by_entry, entries_.data(), count_);
}

double PartList::largest(const double* by_entry) const {
  return entries_.empty() ? ledger_kernels().largest(by_entry + first_, nullptr, count_)
                          : ledger_kernels().largest(by_entry, entries_.data(), count_);
}

double PartList::largest_ratio(const double* numerator, const double* denominator) const {
  return entries_.empty()
             ? ledger_kernels().largest_ratio(numerator + first_, denominator + first_, nullptr,
                                              count_)
             : ledger_kernels().largest_ratio(numerator, denominator, entries_.data(), count_);
}

IslandParts::IslandParts(const System& system)
    : first_(static_cast<std::size_t>(system.island_count()) + 1, 0),
      parts_(system.parts().size()) {
  const int count = static_cast<int>(parts_.size());
  for (int i = 0; i < count; ++i) {
    ++first_[static_cast<std::size_t>(system.island_of_part(i)) + 1];
  }
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  std::vector<int> next(first_.begin(), first_.end() - 1);
  for (int i = 0; i < count; ++i) {
    const auto island = static_cast<std::size_t>(system.island_of_part(i));
    parts_[static_cast<std::size_t>(next[island]++)] = i;
  }
}

std::vector<PartList> island_lists(const WaveDiscretisation& waves) {
  const IslandParts islands(waves.system());
  std::vector<PartList> lists;
  for (int i = 0; i < islands.count(); ++i) lists.emplace_back(waves, islands.of(i));
  return lists;
}

PartList all_parts(const WaveDiscretisation& waves) {
  std::vector<int> parts(waves.system().parts().size());
  std::iota(parts.begin(), parts.end(), 0);
  return {waves, parts};
}

const LedgerKernels& ledger_kernels() {
#ifdef PORTWAVE_X86_64_KERNELS
  static const InstructionSet set = instruction_set();
  if (set == InstructionSet::x86_64_v4) return v4::kLedgerKernels;
  if (set == InstructionSet::x86_64_v3) return v3::kLedgerKernels;
#endif
  return baseline::kLedgerKernels;
}

}  // namespace portwave
