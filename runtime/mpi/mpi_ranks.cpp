#include "portwave/mpi/mpi_ranks.hpp"

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdio>
#include <mpi.h>
#include <numeric>
#include <thread>
#include <utility>

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

/// Persistent requests, one for each slot, neighbour and direction.
class MpiMessages final : public NeighbourMessages {
 public:
  MpiMessages(MPI_Comm communicator, std::span<const Ranks::Neighbour> neighbours, int slots,
              int tag, RankTraffic& traffic, Carries carries)
      : traffic_(traffic),
        carries_(carries),
        neighbours_(neighbours.begin(), neighbours.end()),
        slots_(static_cast<std::size_t>(slots)) {
    for (int slot = 0; slot < slots; ++slot) {
      Slot& own = slots_[static_cast<std::size_t>(slot)];
      own.sent.resize(neighbours.size());
      own.received.resize(neighbours.size());
      own.sends.resize(neighbours.size(), MPI_REQUEST_NULL);
      own.receives.resize(neighbours.size(), MPI_REQUEST_NULL);
      for (std::size_t i = 0; i < neighbours.size(); ++i) {
        own.sent[i].resize(neighbours[i].sent);
        own.received[i].resize(neighbours[i].received);
        MPI_Send_init(own.sent[i].data(), static_cast<int>(own.sent[i].size()), MPI_DOUBLE,
                      neighbours[i].rank, tag + slot, communicator, &own.sends[i]);
        MPI_Recv_init(own.received[i].data(), static_cast<int>(own.received[i].size()), MPI_DOUBLE,
                      neighbours[i].rank, tag + slot, communicator, &own.receives[i]);
      }
      start(own.receives);
    }
  }
  ~MpiMessages() override {
    int is_finalised = 0;
    MPI_Finalized(&is_finalised);
    if (is_finalised != 0) return;
    for (Slot& slot : slots_) {
      for (MPI_Request& request : slot.receives) {
        MPI_Cancel(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
      }
      for (MPI_Request& request : slot.sends) MPI_Request_free(&request);
    }
  }
  MpiMessages(const MpiMessages&) = delete;
  MpiMessages& operator=(const MpiMessages&) = delete;

  std::span<double> outgoing(int i, std::uint64_t number) override {
    Slot& slot = slot_of(number);
    MPI_Wait(&slot.sends[static_cast<std::size_t>(i)], MPI_STATUS_IGNORE);
    return slot.sent[static_cast<std::size_t>(i)];
  }
  void send(std::uint64_t number) override {
    start(slot_of(number).sends);
    for (const Ranks::Neighbour& own : neighbours_) traffic_.count_message(carries_, own.sent);
  }
  void receive(std::uint64_t number) override {
    auto& requests = slot_of(number).receives;
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  }
  std::span<const double> incoming(int i, std::uint64_t number) override {
    return slot_of(number).received[static_cast<std::size_t>(i)];
  }
  bool arrived(int i, std::uint64_t number, std::uint64_t /*now*/) override {
    int is_here = 0;
    MPI_Test(&slot_of(number).receives[static_cast<std::size_t>(i)], &is_here, MPI_STATUS_IGNORE);
    return is_here != 0;
  }
  void release(std::uint64_t number) override { start(slot_of(number).receives); }
  void release(int i, std::uint64_t number) override {
    MPI_Start(&slot_of(number).receives[static_cast<std::size_t>(i)]);
  }

 private:
  struct Slot {
    std::vector<std::vector<double>> sent, received;  // by neighbour
    std::vector<MPI_Request> sends, receives;
  };

  Slot& slot_of(std::uint64_t number) { return slots_[number % slots_.size()]; }
  static void start(std::vector<MPI_Request>& requests) {
    if (!requests.empty()) MPI_Startall(static_cast<int>(requests.size()), requests.data());
  }

  RankTraffic& traffic_;
  Carries carries_;
  std::vector<Ranks::Neighbour> neighbours_;
  std::vector<Slot> slots_;
};

class MpiRanks final : public Ranks {
 public:
  MpiRanks() {
    MPI_Comm_dup(MPI_COMM_WORLD, &communicator_);
    look();
  }
  /// Takes the communicator over.
  explicit MpiRanks(MPI_Comm communicator) : communicator_(communicator) { look(); }
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
    MPI_Allgatherv(own.data(), static_cast<int>(own.size()), MPI_BYTE, all.data(), counts_.data(),
                   begins_.data(), MPI_BYTE, communicator_);
    ++traffic_.gathers;
    traffic_.gathered_bytes += static_cast<std::int64_t>(own.size());
  }

  void broadcast(std::span<std::byte> bytes) override {
    while (!bytes.empty()) {
      const std::size_t count = std::min<std::size_t>(bytes.size(), INT_MAX);
      MPI_Bcast(bytes.data(), static_cast<int>(count), MPI_BYTE, 0, communicator_);
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
    return std::make_unique<MpiMessages>(communicator_, neighbours, slots, tag, traffic_, carries);
  }

  std::shared_ptr<Ranks> first(int count) override {
    MPI_Comm some = MPI_COMM_NULL;
    MPI_Comm_split(communicator_, rank_ < count ? 0 : MPI_UNDEFINED, rank_, &some);
    return some == MPI_COMM_NULL ? nullptr : std::make_shared<MpiRanks>(some);
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
  static constexpr int kFirstTag = 1, kLastTag = 32767;  // what MPI allows at least

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
