#include "ranks/shared_sums.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <iterator>
#include <numeric>

#include "portwave/subsystems/base/index.hpp"
#include "ranks/rank_cut.hpp"

namespace portwave {
namespace {

int width_of(const IslandSums& sums) { return sums.sums() + sums.maxima(); }

std::size_t doubles_of(std::size_t bytes) { return (bytes + sizeof(double) - 1) / sizeof(double); }

}  // namespace

/// The chunks of the whole system, and who looks at their parts. A group is that of a rank (`of_rank`).
class SharedSums::Chunks {
 public:
  virtual ~Chunks() = default;
  virtual int count() const = 0;
  virtual std::pair<int, int> of_island(int island) const = 0;
  /// Whether every rank has all of an island.
  virtual bool is_everyones(int island) const = 0;
  virtual int group_of(const std::vector<int>& of_rank, int chunk) const = 0;
  /// visit(entry, group) for the parts of a chunk that several groups have parts of.
  virtual void for_entries(const std::vector<int>& of_rank, int chunk,
                           const std::function<void(int, int)>& visit) const = 0;
};

class SharedSums::ChunksOfEntries final : public Chunks {
 public:
  ChunksOfEntries(const PartOrderReduction& parts, std::span<const int> rank_of_entry)
      : parts_(parts), rank_of_entry_(rank_of_entry) {}

  int count() const override { return parts_.chunk_count(); }
  std::pair<int, int> of_island(int island) const override { return parts_.chunks_of(island); }
  bool is_everyones(int island) const override {
    return std::ranges::all_of(parts_.entries_of(island), [&](int entry) {
      return rank_of_entry_[at(entry)] == RankCut::kEvery;
    });
  }
  int group_of(const std::vector<int>& of_rank, int chunk) const override {
    const auto [shift, index, count] = parts_.entries_of_chunk(chunk);
    int group = kNobody;
    for (int i = 0; i < count; ++i) {
      const int own = group_of_entry(of_rank, index == nullptr ? shift + i : index[i]);
      if (i > 0 && own != group) return kMixed;
      group = own;
    }
    return group;
  }
  void for_entries(const std::vector<int>& of_rank, int chunk,
                   const std::function<void(int, int)>& visit) const override {
    const auto [shift, index, count] = parts_.entries_of_chunk(chunk);
    for (int i = 0; i < count; ++i) {
      const int entry = index == nullptr ? shift + i : index[i];
      visit(entry, group_of_entry(of_rank, entry));
    }
  }

 private:
  /// Parts that every rank has count as those of the first.
  int group_of_entry(const std::vector<int>& of_rank, int entry) const {
    return of_rank[at(std::max(rank_of_entry_[at(entry)], 0))];
  }

  const PartOrderReduction& parts_;
  std::span<const int> rank_of_entry_;
};

/// Of slices a rank has whole chunks.
class SharedSums::ChunksOfSlices final : public Chunks {
 public:
  explicit ChunksOfSlices(const SystemSlice& slice) : begin_of_island_{0} {
    constexpr std::int64_t kChunk = PartOrderReduction::kChunk;
    for (const auto& shares : slice.islands) {
      for (const SystemSlice::Share& share : shares) {
        const auto chunks = static_cast<std::size_t>((share.parts + kChunk - 1) / kChunk);
        rank_of_chunk_.resize(rank_of_chunk_.size() + chunks, share.rank);
      }
      begin_of_island_.push_back(count());
    }
  }

  int count() const override { return static_cast<int>(rank_of_chunk_.size()); }
  std::pair<int, int> of_island(int island) const override {
    return {begin_of_island_[at(island)], begin_of_island_[at(island) + 1]};
  }
  bool is_everyones(int /*island*/) const override { return false; }
  int group_of(const std::vector<int>& of_rank, int chunk) const override {
    return of_rank[at(rank_of_chunk_[at(chunk)])];
  }
  void for_entries(const std::vector<int>& /*of_rank*/, int /*chunk*/,
                   const std::function<void(int, int)>& /*visit*/) const override {}

  /// Of a chunk of this rank: how much larger its number is than among this rank's own chunks.
  int ahead(const PartOrderReduction& own, int rank, int chunk) const {
    const auto after = std::ranges::upper_bound(begin_of_island_, chunk);
    const int island = static_cast<int>(after - begin_of_island_.begin()) - 1;
    int first = begin_of_island_[at(island)];
    while (rank_of_chunk_[at(first)] != rank) ++first;
    return first - own.chunks_of(island).first;
  }

 private:
  std::vector<int> begin_of_island_, rank_of_chunk_;
};

/// Finds what groups have.
class SharedSums::Planner {
 public:
  explicit Planner(const Chunks& chunks) : chunks_(chunks) {}

  Groups groups(std::vector<int> of_rank) const {
    Groups out{std::move(of_rank), {}, {}};
    for (int chunk = 0; chunk < chunks_.count(); ++chunk) {
      out.of_chunk.push_back(chunks_.group_of(out.of_rank, chunk));
    }
    out.same_until.resize(out.of_chunk.size());
    for (int chunk = chunks_.count() - 1; chunk >= 0; --chunk) {
      const bool goes_on = chunk + 1 < chunks_.count() && out.of_chunk[at(chunk)] != kMixed &&
                           out.of_chunk[at(chunk + 1)] == out.of_chunk[at(chunk)];
      out.same_until[at(chunk)] = goes_on ? out.same_until[at(chunk + 1)] : chunk + 1;
    }
    return out;
  }
  /// What of these islands each of `count` groups has.
  std::vector<Known> known(const Groups& groups, std::span<const int> islands, int count) const {
    std::vector<Known> all(at(count));
    for (const int island : islands) {
      const auto [first, last] = chunks_.of_island(island);
      add(groups, first, last, all);
    }
    for (std::size_t r = 0; r < groups.of_rank.size(); ++r) {
      if (groups.of_rank[r] == kNobody) continue;
      Known& own = all[at(groups.of_rank[r])];
      if (own.last_rank == 0) own.first_rank = static_cast<int>(r);
      own.last_rank = static_cast<int>(r) + 1;
    }
    return all;
  }
  /// How those who had `own` and `other` form what they have together.
  static void merge(Round& round, const Known& own, const Known& after) {
    const auto numbers = [](const Known& known) {
      std::map<Branch, int> out;
      for (const Branch& branch : known.branches) out.emplace(branch, static_cast<int>(out.size()));
      return out;
    };
    const auto of_own = numbers(own), of_other = numbers(round.received);
    for (const Branch& branch : after.branches) {
      round.first_act.push_back(static_cast<int>(round.acts.size()));
      form(branch, of_own, of_other, round.acts);
    }
    round.first_act.push_back(static_cast<int>(round.acts.size()));
  }

 private:
  void add(const Groups& groups, int first, int last, std::vector<Known>& all) const {
    const int group = groups.of_chunk[at(first)];
    if (groups.same_until[at(first)] >= last && group != kMixed) {
      if (group != kNobody) all[at(group)].branches.push_back({first, last});
      return;
    }
    if (last - first == 1) {
      chunks_.for_entries(groups.of_rank, first, [&](int entry, int own) {
        if (own != kNobody) all[at(own)].entries.push_back(entry);
      });
      return;
    }
    const int middle = PartOrderReduction::middle_of(first, last);
    add(groups, first, middle, all);
    add(groups, middle, last, all);
  }
  static void form(Branch branch, const std::map<Branch, int>& own,
                   const std::map<Branch, int>& other, std::vector<Act>& acts) {
    if (const auto found = own.find(branch); found != own.end()) {
      return acts.push_back({Act::own, found->second});
    }
    if (const auto found = other.find(branch); found != other.end()) {
      return acts.push_back({Act::other, found->second});
    }
    if (branch.last - branch.first == 1) return acts.push_back({Act::chunk, branch.first});
    const int middle = PartOrderReduction::middle_of(branch.first, branch.last);
    form({branch.first, middle}, own, other, acts);
    form({middle, branch.last}, own, other, acts);
    acts.push_back({Act::add, 0});
  }

  const Chunks& chunks_;
};

int SharedSums::rounds_of(int ranks) {
  const auto count = static_cast<unsigned>(ranks);
  return std::bit_width(count) - 1 + (std::has_single_bit(count) ? 0 : 2);
}

SharedSums::SharedSums(const PartOrderReduction& parts, std::span<const int> rank_of_entry,
                       std::span<const int> islands, int ranks, int rank) {
  plan(ChunksOfEntries(parts, rank_of_entry), islands, ranks, rank);
}

SharedSums::SharedSums(const PartOrderReduction& parts, const SystemSlice& slice,
                       std::span<const int> islands, int ranks) {
  const ChunksOfSlices chunks(slice);
  plan(chunks, islands, ranks, slice.rank);
  for (Branch& branch : first_) {
    const int ahead = chunks.ahead(parts, slice.rank, branch.first);
    branch.first -= ahead;
    branch.last -= ahead;
  }
}

void SharedSums::plan(const Chunks& chunks, std::span<const int> islands, int ranks, int rank) {
  const Planner planner(chunks);
  for (const int island : islands) {
    const auto [first, last] = chunks.of_island(island);
    if (chunks.is_everyones(island)) {
      everyones_.push_back({island, {first, last}});
    } else {
      shared_.push_back(island);
    }
  }
  std::vector<int> of_rank(at(ranks));
  std::iota(of_rank.begin(), of_rank.end(), 0);
  Groups groups = planner.groups(of_rank);
  std::vector<Known> known = planner.known(groups, shared_, ranks);
  first_ = known[at(rank)].branches;
  // Of the first 2e ranks, e being how many there are beyond a power of two, the odd ones give what they
  // have to those before them, and are told in the end.
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
  const int beyond = ranks - power;
  const auto place_of = [beyond](int r) { return r < 2 * beyond ? r / 2 : r - beyond; };
  const auto rank_at = [beyond](int place) { return place < beyond ? 2 * place : place + beyond; };
  const bool gives = rank < 2 * beyond && rank % 2 == 1;
  const bool takes = rank < 2 * beyond && rank % 2 == 0;
  const int place = place_of(rank);
  const auto next = [&](const auto& group_of_place, int count, int own, int other, int partner) {
    for (int r = 0; r < ranks; ++r) of_rank[at(r)] = group_of_place(place_of(r));
    Groups after = planner.groups(of_rank);
    std::vector<Known> known_after = planner.known(after, shared_, count);
    Round& round = rounds_.emplace_back();
    round.partner = partner;
    if (!gives && partner >= 0) {
      round.sent = known[at(own)];
      round.received = known[at(other)];
      Planner::merge(round, round.sent, known_after[at(group_of_place(place))]);
    }
    groups = std::move(after);
    known = std::move(known_after);
  };
  if (beyond > 0) {
    next([](int p) { return p; }, power, rank, rank + 1, takes ? rank + 1 : gives ? rank - 1 : -1);
    Round& round = rounds_.back();
    if (takes) {
      round.sent = {};  // an empty answer
    } else if (gives) {
      of_rank.assign(at(ranks), kNobody);
      of_rank[at(rank)] = 0;
      round.sent = planner.known(planner.groups(of_rank), shared_, 1)[0];
    }
  }
  for (int half = 1; half < power; half *= 2) {
    next([half](int p) { return p / (2 * half); }, power / (2 * half), place / half,
         (place ^ half) / half, gives ? -1 : rank_at(place ^ half));
  }
  if (beyond > 0) {
    Round& round = rounds_.emplace_back();
    if (takes) {
      round.partner = rank + 1;
      round.sent = known[0];
    } else if (gives) {
      round.partner = rank - 1;
      round.received = known[0];
      Planner::merge(round, {}, known[0]);
    }
  }
}

void SharedSums::connect(Ranks& ranks, std::span<IslandSums* const> sums,
                         std::span<const std::size_t> notes) {
  begin_of_note_ = {0};
  for (const std::size_t bytes : notes) begin_of_note_.push_back(begin_of_note_.back() + bytes);
  const auto size_of = [&](const Known& known) {
    std::size_t size =
        doubles_of(begin_of_note_[at(known.last_rank)] - begin_of_note_[at(known.first_rank)]);
    for (IslandSums* const own : sums) {
      size +=
          known.branches.size() * at(width_of(*own)) + known.entries.size() * own->terms().size();
    }
    return size;
  };
  for (Round& round : rounds_) {
    std::vector<Ranks::Neighbour> partner;
    if (round.partner >= 0) {
      partner.push_back({round.partner, size_of(round.sent), size_of(round.received)});
    }
    round.messages = ranks.connect(partner, 2, Carries::sums);
  }
  values_.resize(sums.size());
}

void SharedSums::exchange(Ranks& ranks, std::span<IslandSums* const> sums, std::span<std::byte> all,
                          std::span<const std::size_t> notes) {
  begin(ranks, sums, all, notes);
  finish(sums, all);
}

void SharedSums::begin(Ranks& ranks, std::span<IslandSums* const> sums, std::span<std::byte> all,
                       std::span<const std::size_t> notes) {
  if (begin_of_note_.empty()) connect(ranks, sums, notes);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const int width = width_of(*sums[i]);
    values_[i].own.resize(first_.size() * at(width));
    double* to = values_[i].own.data();
    for (const Branch& branch : first_) {
      evaluate(*sums[i], branch.first, branch.last, to);
      to += width;
    }
  }
  const auto first = std::ranges::find_if(rounds_, &SharedSums::has_partner);
  if (first != rounds_.end()) send(*first, sums, all);
}

void SharedSums::finish(std::span<IslandSums* const> sums, std::span<std::byte> all) {
  bool is_sent = true;  // of the first round
  for (Round& round : rounds_) {
    if (!has_partner(round)) continue;
    if (!is_sent) send(round, sums, all);
    is_sent = false;
    receive(round, sums, all);
    if (round.first_act.empty()) continue;
    for (std::size_t i = 0; i < sums.size(); ++i) merge(round, *sums[i], values_[i]);
  }
  ++number_;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double* values = values_[i].own.data();
    for (const int island : shared_) {
      sums[i]->take(island, values);
      values += width_of(*sums[i]);
    }
    for (const auto& [island, tree] : everyones_) {
      Values own;
      evaluate(*sums[i], tree.first, tree.last, own.data());
      sums[i]->take(island, own.data());
    }
  }
}

void SharedSums::evaluate(const IslandSums& sums, int first, int last, double* values) {
  if (last - first == 1) return sums.form(first, values);
  const int middle = PartOrderReduction::middle_of(first, last);
  Values right;
  evaluate(sums, first, middle, values);
  evaluate(sums, middle, last, right.data());
  sums.add(values, right.data());
}

void SharedSums::send(Round& round, std::span<IslandSums* const> sums,
                      std::span<const std::byte> all) {
  const Known& known = round.sent;
  double* to = round.messages->outgoing(0, number_).data();
  const std::size_t begin = begin_of_note_[at(known.first_rank)];
  const std::size_t bytes = begin_of_note_[at(known.last_rank)] - begin;
  if (bytes > 0) std::memcpy(to, all.data() + begin, bytes);
  to += doubles_of(bytes);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    to = std::copy_n(values_[i].own.data(), known.branches.size() * at(width_of(*sums[i])), to);
    for (const std::span<double> term : sums[i]->terms()) {
      for (const int entry : known.entries) *to++ = term[at(entry)];
    }
  }
  round.messages->send(number_);
}

void SharedSums::receive(Round& round, std::span<IslandSums* const> sums,
                         std::span<std::byte> all) {
  const Known& known = round.received;
  round.messages->receive(number_);
  const double* from = round.messages->incoming(0, number_).data();
  const std::size_t begin = begin_of_note_[at(known.first_rank)];
  const std::size_t bytes = begin_of_note_[at(known.last_rank)] - begin;
  if (bytes > 0) std::memcpy(all.data() + begin, from, bytes);
  from += doubles_of(bytes);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const std::size_t count = known.branches.size() * at(width_of(*sums[i]));
    values_[i].other.assign(from, from + count);
    from += count;
    for (const std::span<double> term : sums[i]->terms()) {
      for (const int entry : known.entries) term[at(entry)] = *from++;
    }
  }
  round.messages->release(number_);
}

/// What both have together, from what each has.
void SharedSums::merge(const Round& round, const IslandSums& sums, OfSum& values) {
  constexpr std::size_t kDeepest = 40;
  std::array<Values, kDeepest> stack;
  const int width = width_of(sums);
  values.next.resize((round.first_act.size() - 1) * at(width));
  for (std::size_t branch = 0; branch + 1 < round.first_act.size(); ++branch) {
    std::size_t depth = 0;
    for (int i = round.first_act[branch]; i < round.first_act[branch + 1]; ++i) {
      const Act& act = round.acts[at(i)];
      switch (act.kind) {
        case Act::own:
          std::copy_n(values.own.data() + act.number * width, width, stack[depth++].data());
          break;
        case Act::other:
          std::copy_n(values.other.data() + act.number * width, width, stack[depth++].data());
          break;
        case Act::chunk:
          sums.form(act.number, stack[depth++].data());
          break;
        case Act::add:
          --depth;
          sums.add(stack[depth - 1].data(), stack[depth].data());
          break;
      }
    }
    std::copy_n(stack[0].data(), width, values.next.data() + branch * at(width));
  }
  values.own.swap(values.next);
}

std::vector<std::int64_t> SharedSums::bytes_of_ranks(const PartOrderReduction& parts,
                                                     std::span<const int> rank_of_entry,
                                                     std::span<const int> islands, int ranks,
                                                     int terms, int values) {
  const ChunksOfEntries chunks(parts, rank_of_entry);
  const Planner planner(chunks);
  std::vector<int> shared, of_rank(at(ranks));
  std::ranges::copy_if(islands, std::back_inserter(shared),
                       [&](int island) { return !chunks.is_everyones(island); });
  std::iota(of_rank.begin(), of_rank.end(), 0);
  std::vector<std::int64_t> bytes;
  for (const Known& own : planner.known(planner.groups(of_rank), shared, ranks)) {
    bytes.push_back(static_cast<std::int64_t>(
        sizeof(double) * (own.branches.size() * at(values) + own.entries.size() * at(terms))));
  }
  return bytes;
}

}  // namespace portwave
