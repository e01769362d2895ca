#include "node_memory.hpp"

#include <charconv>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>
#include <system_error>

#include "portwave/runtime/ranks/ranks.hpp"

namespace portwave {

Inbox::Inbox(std::byte* memory, int slots, std::size_t doubles, bool is_new)
    : memory_(memory),
      slots_(static_cast<std::uint64_t>(slots)),
      doubles_(doubles),
      slot_bytes_(slot_bytes(doubles)) {
  if (!is_new) return;
  for (std::uint64_t i = 0; i < slots_; ++i) new (slot(i)) Flag(0);
  new (memory_) Flag(2);
}

std::size_t Inbox::bytes_for(int slots, std::size_t doubles) {
  return kLine + static_cast<std::size_t>(slots) * slot_bytes(doubles);
}

namespace {

/// Of a rank, as the environment has it.
std::size_t wanted_bytes() {
  constexpr std::size_t kUsual_kB = 1024, kMost_kB = 1'048'576;
  std::size_t kilobytes = kUsual_kB;
  if (const char* const given = std::getenv("PORTWAVE_SHARED_MEMORY_KB")) {
    const std::string_view text = given;
    const auto [end, error] = std::from_chars(text.begin(), text.end(), kilobytes);
    if (error != std::errc{} || end != text.end() || kilobytes > kMost_kB) {
      throw RankError("PORTWAVE_SHARED_MEMORY_KB is \"" + std::string(text) +
                      "\": a whole number of kB from 0 to 1048576 is expected");
    }
  }
  return kilobytes * 1024;
}

/// The first line within. Processes map memory page by page, so that all find the same one.
std::byte* at_line(std::byte* memory) {
  return reinterpret_cast<std::byte*>(
      (reinterpret_cast<std::uintptr_t>(memory) + Inbox::kLine - 1) / Inbox::kLine * Inbox::kLine);
}

}  // namespace

NodeMemory::NodeMemory(MPI_Comm communicator) : bytes_(wanted_bytes()) {
  int size = 0;
  MPI_Comm_rank(communicator, &rank_);
  MPI_Comm_size(communicator, &size);
  piece_of_rank_.resize(static_cast<std::size_t>(size), nullptr);
  // Those of one machine who want it.
  MPI_Comm machine = MPI_COMM_NULL;
  MPI_Comm_split_type(communicator, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &machine);
  MPI_Comm_split(machine, bytes_ == 0 ? MPI_UNDEFINED : 0, rank_, &node_);
  MPI_Comm_free(&machine);
  if (node_ == MPI_COMM_NULL) return;
  int ranks_here = 0;
  MPI_Comm_size(node_, &ranks_here);
  if (ranks_here == 1) return;
  // Where there is no room for it, there are messages.
  MPI_Comm_set_errhandler(node_, MPI_ERRORS_RETURN);
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "alloc_shared_noncontig", "true");
  void* own = nullptr;
  const int result = MPI_Win_allocate_shared(static_cast<MPI_Aint>(bytes_ + Inbox::kLine), 1, info,
                                             node_, &own, &window_);
  MPI_Info_free(&info);
  int is_made = result == MPI_SUCCESS ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &is_made, 1, MPI_INT, MPI_MIN, node_);
  if (is_made == 0) return;
  MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
  std::vector<int> ranks(static_cast<std::size_t>(ranks_here));
  MPI_Allgather(&rank_, 1, MPI_INT, ranks.data(), 1, MPI_INT, node_);
  for (int i = 0; i < ranks_here; ++i) {
    MPI_Aint bytes = 0;
    int unit = 0;
    void* piece = nullptr;
    MPI_Win_shared_query(window_, i, &bytes, &unit, &piece);
    piece_of_rank_[static_cast<std::size_t>(ranks[static_cast<std::size_t>(i)])] =
        at_line(static_cast<std::byte*>(piece));
  }
}

NodeMemory::~NodeMemory() {
  int is_finalised = 0;
  MPI_Finalized(&is_finalised);
  if (is_finalised != 0) return;
  if (piece_of_rank_[static_cast<std::size_t>(rank_)] != nullptr) {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }
  if (node_ != MPI_COMM_NULL) MPI_Comm_free(&node_);
}

/// Room is used again when both ends are done with what was there: the other may be late.
void NodeMemory::forget_closed() {
  std::erase_if(made_, [](const auto& own) { return own.second.inbox.is_closed(); });
}

std::int64_t NodeMemory::make_inbox(int rank, int slots, std::size_t doubles) {
  std::byte* const piece = piece_of_rank_[static_cast<std::size_t>(rank_)];
  if (piece == nullptr || piece_of_rank_[static_cast<std::size_t>(rank)] == nullptr) return -1;
  forget_closed();
  const std::size_t bytes = Inbox::bytes_for(slots, doubles);
  std::size_t place = 0;
  for (const auto& [begin, made] : made_) {
    if (begin - place >= bytes) break;
    place = begin + made.bytes;
  }
  if (bytes > bytes_ - place) return -1;
  made_[place] = {bytes, Inbox(piece + place, slots, doubles, /*is_new=*/true)};
  return static_cast<std::int64_t>(place);
}

Inbox NodeMemory::inbox(int owner, std::int64_t place, int slots, std::size_t doubles) const {
  if (place < 0) return {};
  return {piece_of_rank_[static_cast<std::size_t>(owner)] + place, slots, doubles, false};
}

}  // namespace portwave
