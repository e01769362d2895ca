#include "portwave/mpi/mpi_ranks.hpp"

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdio>
#include <mpi.h>
#include <numeric>
#include <thread>
#include <utility>

#include "node_memory.hpp"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace portwave {
namespace {

/// MPI as it was found, or initialised and to be finalised.
class Library {
 public:
  Library() {
    int is_initialised = 0;
    MPI_Initialized(&is_initialised);
    if (is_initialised != 0) return;
    int provided = MPI_THREAD_SINGLE;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    is_own_ = true;
    if (provided < MPI_THREAD_FUNNELED) {
      throw RankError("this MPI does not allow threads within a rank (MPI_THREAD_FUNNELED)");
    }
  }
  ~Library() {
    int is_finalised = 0;
    MPI_Finalized(&is_finalised);
    if (is_own_ && is_finalised == 0) MPI_Finalize();
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

 private:
  bool is_own_ = false;
};

constexpr int kNoTag = 0, kFirstTag = 1, kLastTag = 32767;  // what MPI allows at least

/// Until done() holds. `communicator`: messages of others through MPI go on meanwhile.
template <class Done>
void wait_until(const Done& done, MPI_Comm communicator) {
  constexpr int kPatience = 500;  // before others get the core, and MPI its turn
  for (int turns = 0; !done(); ++turns) {
    if (turns < kPatience) {
#if defined(__x86_64__) || defined(__i386__)
      _mm_pause();
#endif
      continue;
    }
    // Lets MPI make progress. With a tag that nobody uses: a probe that finds a message returns at
    // once, and nothing else moves.
    int is_any = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, kNoTag, communicator, &is_any, MPI_STATUS_IGNORE);
    std::this_thread::yield();
  }
}

/// Where there are more ranks than cores, whoever waits has to let the others have one. The waits of Open MPI
/// do so, and those of MPICH do not.
#ifdef MPICH
constexpr bool kWaitsGiveWay = false;
#else
constexpr bool kWaitsGiveWay = true;
#endif

/// As MPI_Waitall, and gives way.
void wait_for(std::span<MPI_Request> requests) {
  const int count = static_cast<int>(requests.size());
  if (kWaitsGiveWay) {
    MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
    return;
  }
  constexpr int kPatience = 100;
  int is_done = 0;
  for (int turns = 0; is_done == 0; ++turns) {
    if (turns > kPatience) std::this_thread::yield();
    MPI_Testall(count, requests.data(), &is_done, MPI_STATUSES_IGNORE);
  }
}

/// To and from neighbours on the same machine by inboxes, as far as there is memory for them; to all
/// others by persistent requests, one for each slot, neighbour and direction.
class MpiMessages final : public NeighbourMessages {
 public:
  struct Made {
    MPI_Comm communicator;
    NodeMemory& memory;
    int tag;  ///< and those after, one for each slot
    RankTraffic& traffic;
    Carries carries;
  };

  MpiMessages(const Made& made, std::span<const Ranks::Neighbour> neighbours, int slots)
      : communicator_(made.communicator),
        traffic_(made.traffic),
        carries_(made.carries),
        neighbours_(neighbours.begin(), neighbours.end()),
        slots_(static_cast<std::size_t>(slots)) {
    open_inboxes(made, slots);
    for (int slot = 0; slot < slots; ++slot) {
      Slot& own = slots_[static_cast<std::size_t>(slot)];
      own.sent.resize(neighbours.size());
      own.received.resize(neighbours.size());
      own.sends.resize(neighbours.size(), MPI_REQUEST_NULL);
      own.receives.resize(neighbours.size(), MPI_REQUEST_NULL);
      for (std::size_t i = 0; i < neighbours.size(); ++i) {
        const int rank = neighbours[i].rank;
        if (!to_[i]) {
          own.sent[i].resize(neighbours[i].sent);
          MPI_Send_init(own.sent[i].data(), static_cast<int>(own.sent[i].size()), MPI_DOUBLE, rank,
                        made.tag + slot, communicator_, &own.sends[i]);
        }
        if (!from_[i]) {
          own.received[i].resize(neighbours[i].received);
          MPI_Recv_init(own.received[i].data(), static_cast<int>(own.received[i].size()),
                        MPI_DOUBLE, rank, made.tag + slot, communicator_, &own.receives[i]);
        }
      }
      start(own.receives);
    }
  }
  ~MpiMessages() override {
    for (const Inbox& own : to_) {
      if (own) own.close();
    }
    for (const Inbox& own : from_) {
      if (own) own.close();
    }
    int is_finalised = 0;
    MPI_Finalized(&is_finalised);
    if (is_finalised != 0) return;
    for (Slot& slot : slots_) {
      for (MPI_Request& request : slot.receives) {
        if (request == MPI_REQUEST_NULL) continue;
        MPI_Cancel(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
      }
      for (MPI_Request& request : slot.sends) {
        if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
      }
    }
  }
  MpiMessages(const MpiMessages&) = delete;
  MpiMessages& operator=(const MpiMessages&) = delete;

  std::span<double> outgoing(int i, std::uint64_t number) override {
    const auto n = static_cast<std::size_t>(i);
    if (const Inbox& inbox = to_[n]) {
      wait_until([&] { return !inbox.is_here(number); }, communicator_);
      return inbox.message(number);
    }
    Slot& slot = slot_of(number);
    wait_for(std::span(&slot.sends[n], 1));
    return slot.sent[n];
  }
  void send(std::uint64_t number) override {
    for (const Inbox& inbox : to_) {
      if (inbox) inbox.publish(number);
    }
    start(slot_of(number).sends);
    for (const Ranks::Neighbour& own : neighbours_) traffic_.count_message(carries_, own.sent);
  }
  void receive(std::uint64_t number) override {
    if (has_far_senders_) {
      wait_for(slot_of(number).receives);
    }
    for (const Inbox& inbox : from_) {
      if (inbox) wait_until([&] { return inbox.is_here(number); }, communicator_);
    }
  }
  std::span<const double> incoming(int i, std::uint64_t number) override {
    const auto n = static_cast<std::size_t>(i);
    if (from_[n]) return from_[n].message(number);
    return slot_of(number).received[n];
  }
  bool arrived(int i, std::uint64_t number, std::uint64_t /*now*/) override {
    const auto n = static_cast<std::size_t>(i);
    if (from_[n]) return from_[n].is_here(number);
    int is_here = 0;
    MPI_Test(&slot_of(number).receives[n], &is_here, MPI_STATUS_IGNORE);
    return is_here != 0;
  }
  void release(std::uint64_t number) override {
    for (const Inbox& inbox : from_) {
      if (inbox) inbox.release(number);
    }
    start(slot_of(number).receives);
  }
  void release(int i, std::uint64_t number) override {
    const auto n = static_cast<std::size_t>(i);
    if (from_[n]) return from_[n].release(number);
    MPI_Start(&slot_of(number).receives[n]);
  }

 private:
  struct Slot {
    std::vector<std::vector<double>> sent, received;  // by neighbour, of those that are far
    std::vector<MPI_Request> sends, receives;         // null for those that are near
  };

  Slot& slot_of(std::uint64_t number) { return slots_[number % slots_.size()]; }
  static void start(std::vector<MPI_Request>& requests) {
    for (MPI_Request& request : requests) {
      if (request != MPI_REQUEST_NULL) MPI_Start(&request);
    }
  }
  /// Receivers make them, and tell senders where.
  void open_inboxes(const Made& made, int slots) {
    const std::size_t count = neighbours_.size();
    std::vector<std::int64_t> own(count), theirs(count);
    std::vector<MPI_Request> requests(2 * count);
    for (std::size_t i = 0; i < count; ++i) {
      const Ranks::Neighbour& other = neighbours_[i];
      own[i] = made.memory.make_inbox(other.rank, slots, other.received);
      MPI_Irecv(&theirs[i], 1, MPI_INT64_T, other.rank, made.tag, communicator_, &requests[2 * i]);
      MPI_Isend(&own[i], 1, MPI_INT64_T, other.rank, made.tag, communicator_, &requests[2 * i + 1]);
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    int rank = 0;
    MPI_Comm_rank(communicator_, &rank);
    for (std::size_t i = 0; i < count; ++i) {
      const Ranks::Neighbour& other = neighbours_[i];
      to_.push_back(made.memory.inbox(other.rank, theirs[i], slots, other.sent));
      from_.push_back(made.memory.inbox(rank, own[i], slots, other.received));
      has_far_senders_ = has_far_senders_ || !from_.back();
    }
  }

  MPI_Comm communicator_;
  RankTraffic& traffic_;
  Carries carries_;
  std::vector<Ranks::Neighbour> neighbours_;
  std::vector<Inbox> to_, from_;  // by neighbour; none where messages go through MPI
  bool has_far_senders_ = false;
  std::vector<Slot> slots_;
};

class MpiRanks final : public Ranks {
 public:
  MpiRanks() {
    MPI_Comm_dup(MPI_COMM_WORLD, &communicator_);
    look();
    memory_ = std::make_shared<NodeMemory>(communicator_);
  }
  /// Takes the communicator over, whose ranks have the numbers that they have in `memory`.
  MpiRanks(MPI_Comm communicator, std::shared_ptr<NodeMemory> memory)
      : communicator_(communicator), memory_(std::move(memory)) {
    look();
  }
  ~MpiRanks() override {
    int is_finalised = 0;
    MPI_Finalized(&is_finalised);
    if (is_finalised == 0) MPI_Comm_free(&communicator_);
  }
  MpiRanks(const MpiRanks&) = delete;
  MpiRanks& operator=(const MpiRanks&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void gather(std::span<const std::byte> own, std::span<const std::size_t> bytes,
              std::span<std::byte> all) override {
    if (all.size() > INT_MAX) {
      throw RankError("ranks share more than 2 GiB at once, which MPI 3.1 cannot count");
    }
    counts_.clear();
    begins_.clear();
    int begin = 0;
    for (const std::size_t count : bytes) {
      begins_.push_back(begin);
      counts_.push_back(static_cast<int>(count));
      begin += counts_.back();
    }
    const int own_bytes = static_cast<int>(own.size());
    if (kWaitsGiveWay) {
      MPI_Allgatherv(own.data(), own_bytes, MPI_BYTE, all.data(), counts_.data(), begins_.data(),
                     MPI_BYTE, communicator_);
    } else {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Iallgatherv(own.data(), own_bytes, MPI_BYTE, all.data(), counts_.data(), begins_.data(),
                      MPI_BYTE, communicator_, &request);
      wait_for(std::span(&request, 1));
    }
    ++traffic_.gathers;
    traffic_.gathered_bytes += static_cast<std::int64_t>(own.size());
  }

  void broadcast(std::span<std::byte> bytes) override {
    while (!bytes.empty()) {
      const std::size_t count = std::min<std::size_t>(bytes.size(), INT_MAX);
      if (kWaitsGiveWay) {
        MPI_Bcast(bytes.data(), static_cast<int>(count), MPI_BYTE, 0, communicator_);
      } else {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Ibcast(bytes.data(), static_cast<int>(count), MPI_BYTE, 0, communicator_, &request);
        wait_for(std::span(&request, 1));
      }
      bytes = bytes.subspan(count);
    }
    ++traffic_.gathers;
  }

  std::unique_ptr<NeighbourMessages> connect(std::span<const Neighbour> neighbours, int slots,
                                             Carries carries) override {
    for (const Neighbour& own : neighbours) {
      if (std::max(own.sent, own.received) > INT_MAX) {
        throw RankError("a message between two ranks has more than 2^31 numbers");
      }
    }
    // Receives are posted ahead: each connection has tags of its own, so that it takes no other's.
    if (next_tag_ + slots > kLastTag) next_tag_ = kFirstTag;
    const int tag = std::exchange(next_tag_, next_tag_ + slots);
    const MpiMessages::Made made{communicator_, *memory_, tag, traffic_, carries};
    return std::make_unique<MpiMessages>(made, neighbours, slots);
  }

  std::shared_ptr<Ranks> first(int count) override {
    MPI_Comm some = MPI_COMM_NULL;
    MPI_Comm_split(communicator_, rank_ < count ? 0 : MPI_UNDEFINED, rank_, &some);
    return some == MPI_COMM_NULL ? nullptr : std::make_shared<MpiRanks>(some, memory_);
  }

  void rest() override { wait_asleep(Clock::time_point::max()); }

  RankTraffic traffic() const override { return traffic_; }

  void end(int exit_code) override {
    if (wait_asleep(Clock::now() + std::chrono::seconds(kPatience_s))) return;
    std::fprintf(stderr, "portwave: rank %d ended alone; all ranks are ended\n", rank_);
    std::fflush(nullptr);
    MPI_Abort(communicator_, exit_code == 0 ? 3 : exit_code);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kPatience_s = 10;

  void look() {
    MPI_Comm_rank(communicator_, &rank_);
    MPI_Comm_size(communicator_, &size_);
  }
  /// For all ranks to come here; false where they have not by then.
  bool wait_asleep(Clock::time_point until) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(communicator_, &request);
    for (;;) {
      int is_done = 0;
      MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
      if (is_done != 0) return true;
      if (Clock::now() >= until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  Library library_;  // first, so that it goes last
  MPI_Comm communicator_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  std::shared_ptr<NodeMemory> memory_;
  int next_tag_ = kFirstTag;
  RankTraffic traffic_;
  std::vector<int> counts_, begins_;
};

}  // namespace

std::shared_ptr<Ranks> mpi_ranks() { return std::make_shared<MpiRanks>(); }

}  // namespace portwave

/// For programs that load this library at run time. Null, and a text, where it failed.
extern "C" PORTWAVE_EXPORT void* portwave_mpi_ranks(char* text, std::size_t size) {
  try {
    return new std::shared_ptr<portwave::Ranks>(portwave::mpi_ranks());
  } catch (const std::exception& error) {
    std::snprintf(text, size, "%s", error.what());
    return nullptr;
  }
}
