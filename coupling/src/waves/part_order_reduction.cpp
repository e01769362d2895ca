#include "portwave/coupling/waves/part_order_reduction.hpp"

#include "kernels/ledger_kernels.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"

namespace portwave {

PartOrderReduction::PartOrderReduction(const System& system, std::span<const int> entry_of_part)
    : sum_(ledger_kernels().sum),
      islands_(static_cast<std::size_t>(system.island_count())),
      parts_(entry_of_part.size()),
      entries_(entry_of_part.size()) {
  const int count = static_cast<int>(entry_of_part.size());
  const auto list_of = [&](int part) -> List& {
    return islands_[static_cast<std::size_t>(system.island_of_part(part))];
  };
  for (int part = 0; part < count; ++part) ++list_of(part).count;
  int first = 0;
  for (List& list : islands_) {
    list.first = first;
    first += list.count;
    list.count = 0;
  }
  for (int part = 0; part < count; ++part) {
    List& list = list_of(part);
    const auto next = static_cast<std::size_t>(list.first + list.count++);
    parts_[next] = part;
    entries_[next] = entry_of_part[static_cast<std::size_t>(part)];
  }
  for (int island = 0; island < island_count(); ++island) {
    find_shift(entries_of(island), islands_[static_cast<std::size_t>(island)]);
  }
  all_ = {.count = count, .of_system = true};
  find_shift(entry_of_part, all_);
  if (!all_.adjacent) entry_of_part_.assign(entry_of_part.begin(), entry_of_part.end());
}

void PartOrderReduction::find_shift(std::span<const int> entries, List& list) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    list.adjacent = list.adjacent && entries[i] == entries[0] + static_cast<int>(i);
  }
  list.shift = list.adjacent && !entries.empty() ? entries[0] : 0;
}

std::size_t PartOrderReduction::bytes() const {
  return islands_.capacity() * sizeof(List) +
         (parts_.capacity() + entries_.capacity() + entry_of_part_.capacity()) * sizeof(int);
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
