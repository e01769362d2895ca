#include "portwave/coupling/part_list.hpp"

#include <cstddef>
#include <numeric>

#include "kernels/book_kernels.hpp"
#include "portwave/subsystems/instruction_set.hpp"

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
  return entries_.empty() ? book_kernels().sum(by_entry + first_, nullptr, count_)
                          : book_kernels().sum(by_entry, entries_.data(), count_);
}

double PartList::largest(const double* by_entry) const {
  return entries_.empty() ? book_kernels().largest(by_entry + first_, nullptr, count_)
                          : book_kernels().largest(by_entry, entries_.data(), count_);
}

double PartList::largest_ratio(const double* numerator, const double* denominator) const {
  return entries_.empty()
             ? book_kernels().largest_ratio(numerator + first_, denominator + first_, nullptr,
                                            count_)
             : book_kernels().largest_ratio(numerator, denominator, entries_.data(), count_);
}

std::vector<PartList> island_lists(const WaveDiscretisation& waves) {
  const System& system = waves.system();
  std::vector<std::vector<int>> parts(static_cast<std::size_t>(system.island_count()));
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    parts[static_cast<std::size_t>(system.island_of_part(i))].push_back(i);
  }
  std::vector<PartList> lists;
  for (const std::vector<int>& island : parts) lists.emplace_back(waves, island);
  return lists;
}

PartList all_parts(const WaveDiscretisation& waves) {
  std::vector<int> parts(waves.system().parts().size());
  std::iota(parts.begin(), parts.end(), 0);
  return {waves, parts};
}

const BookKernels& book_kernels() {
#ifdef PORTWAVE_X86_64_KERNELS
  static const InstructionSet set = instruction_set();
  if (set == InstructionSet::x86_64_v4) return v4::kBookKernels;
  if (set == InstructionSet::x86_64_v3) return v3::kBookKernels;
#endif
  return baseline::kBookKernels;
}

}  // namespace portwave
