#include "portwave/runtime/ranks/slice_builder.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "portwave/coupling/waves/part_order_reduction.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "ranks/slice_sums.hpp"

namespace portwave {
namespace {

static_assert(SliceBuilder::kUnit == PartOrderReduction::kChunk);

template <class Value>
std::vector<Value> gather_all(Ranks& ranks, const std::vector<Value>& own,
                              std::vector<std::size_t>* counts = nullptr) {
  static_assert(std::is_trivially_copyable_v<Value>);
  const std::vector<std::byte> bytes = gather_bytes(ranks, std::as_bytes(std::span(own)), counts);
  std::vector<Value> all(bytes.size() / sizeof(Value));
  if (!bytes.empty()) std::memcpy(all.data(), bytes.data(), bytes.size());
  for (std::size_t i = 0; counts != nullptr && i < counts->size(); ++i) {
    (*counts)[i] /= sizeof(Value);
  }
  return all;
}

/// Sets of part numbers; each is known by its smallest.
class NumberSets {
 public:
  void join(std::int64_t a, std::int64_t b) {
    a = find(a);
    b = find(b);
    if (a != b) parent_[std::max(a, b)] = std::min(a, b);
  }
  std::int64_t find(std::int64_t number) {
    const auto found = parent_.try_emplace(number, number).first;
    if (found->second == number) return number;
    const std::int64_t root = find(found->second);
    return parent_[number] = root;
  }

 private:
  std::unordered_map<std::int64_t, std::int64_t> parent_;
};

/// Puts the slices of all ranks together, as far as every rank has to know.
class Assembly {
 public:
  Assembly(const System& system, Ranks& ranks, std::int64_t first_part, int own_parts,
           std::vector<std::int64_t> outside)
      : system_(system), ranks_(ranks) {
    slice_.rank = ranks.rank();
    slice_.own_parts = own_parts;
    for (int i = 0; i < own_parts; ++i) slice_.numbers.push_back(first_part + i);
    slice_.numbers.insert(slice_.numbers.end(), outside.begin(), outside.end());
  }

  void put_together() {
    find_owners();
    find_first_parts();
    number_islands();
    find_shares();
  }

  void apply(System& system) && {
    make_slice(system, std::move(slice_), std::move(island_of_part_));
  }

 private:
  [[noreturn]] static void refuse(std::string what) {
    throw ConfigError("/slices", std::move(what));
  }

  void find_owners() {
    struct Range {
      std::int64_t first, count;
    };
    const std::vector<Range> all =
        gather_values(ranks_, Range{slice_.numbers.front(), slice_.own_parts});
    std::int64_t next = 0;
    for (std::size_t r = 0; r < all.size(); ++r) {
      if (all[r].first != next) {
        refuse(fmt::format("rank {} begins with part {}, where {} is the next that has no rank", r,
                           all[r].first, next));
      }
      next += all[r].count;
      begin_.push_back(next);
    }
    if (next > std::numeric_limits<int>::max()) {
      refuse(fmt::format("{} parts are more than {} can count", next, "portwave"));
    }
    slice_.ranks.assign(slice_.numbers.size(), slice_.rank);
    int bad = -1;
    for (std::size_t i = at(slice_.own_parts); i < slice_.numbers.size(); ++i) {
      const std::int64_t number = slice_.numbers[i];
      const auto end = std::ranges::upper_bound(begin_, number);
      slice_.ranks[i] = static_cast<int>(end - begin_.begin());
      const bool is_elsewhere =
          number >= 0 && end != begin_.end() && slice_.ranks[i] != slice_.rank;
      if (!is_elsewhere && bad < 0) bad = static_cast<int>(i);
    }
    const std::vector<std::int64_t> wrong =
        gather_values(ranks_, bad < 0 ? std::int64_t{-1} : slice_.numbers[at(bad)]);
    const std::vector<int> is_wrong = gather_values(ranks_, bad < 0 ? 0 : 1);
    for (std::size_t r = 0; r < wrong.size(); ++r) {
      if (is_wrong[r] == 0) continue;
      refuse(fmt::format("part {} is no part of another rank, and outside the slice of rank {}",
                         wrong[r], r));
    }
  }

  /// Of what hangs together in this slice, the first part of the island in the whole.
  void find_first_parts() {
    const int pieces = system_.island_count();
    first_.assign(at(pieces), std::numeric_limits<std::int64_t>::max());
    for (std::size_t i = 0; i < slice_.numbers.size(); ++i) {
      if (!slice_.is_own(static_cast<int>(i))) continue;
      std::int64_t& first = first_[at(system_.island_of_part(static_cast<int>(i)))];
      first = std::min(first, slice_.numbers[i]);
    }
    struct Pair {
      std::int64_t a, b;
    };
    std::vector<Pair> together;
    for (const Junction& junction : system_.junctions()) {
      const bool is_cut = std::ranges::any_of(
          junction.waves, [&](int port) { return !slice_.is_own(part_of(port)); });
      if (!is_cut) continue;
      for (const int port : junction.waves) {
        const int part = part_of(port);
        const std::int64_t first = first_[at(system_.island_of_part(part))];
        together.push_back({first, slice_.numbers[at(part)]});
      }
    }
    NumberSets sets;
    for (const Pair& pair : gather_all(ranks_, together)) sets.join(pair.a, pair.b);
    for (std::int64_t& first : first_) first = sets.find(first);
  }
  int part_of(int port) const { return system_.scalar_ports()[at(port)].part; }

  void number_islands() {
    std::vector<std::int64_t> own;
    for (const std::int64_t first : first_) {
      if (first >= slice_.numbers.front()) own.push_back(first);
    }
    std::ranges::sort(own);
    own.erase(std::unique(own.begin(), own.end()), own.end());
    firsts_ = gather_all(ranks_, own);
    island_of_part_.resize(slice_.numbers.size());
    for (std::size_t i = 0; i < slice_.numbers.size(); ++i) {
      const std::int64_t first = first_[at(system_.island_of_part(static_cast<int>(i)))];
      const auto found = std::ranges::lower_bound(firsts_, first);
      island_of_part_[i] = static_cast<int>(found - firsts_.begin());
    }
  }

  void find_shares() {
    struct Own {
      int island;
      int parts;
    };
    std::map<int, int> parts;
    for (int i = 0; i < slice_.own_parts; ++i) ++parts[island_of_part_[at(i)]];
    std::vector<Own> own;
    for (const auto& [island, count] : parts) own.push_back({island, count});
    std::vector<std::size_t> counts;
    const std::vector<Own> all = gather_all(ranks_, own, &counts);
    slice_.islands.resize(firsts_.size());
    auto next = all.begin();
    for (std::size_t r = 0; r < counts.size(); ++r) {
      for (std::size_t i = 0; i < counts[r]; ++i, ++next) {
        slice_.islands[at(next->island)].push_back({static_cast<int>(r), next->parts});
      }
    }
    for (const auto& shares : slice_.islands) {
      for (std::size_t i = 0; i + 1 < shares.size(); ++i) {
        if (shares[i].parts % SliceBuilder::kUnit == 0) continue;
        refuse(fmt::format(
            "rank {} has {} parts of an island that goes on on rank {}: sums of the same bits need "
            "a multiple of {}",
            shares[i].rank, shares[i].parts, shares[i + 1].rank, SliceBuilder::kUnit));
      }
    }
  }

  const System& system_;
  Ranks& ranks_;
  SystemSlice slice_;
  std::vector<std::int64_t> begin_;  // of the slice after each rank's
  std::vector<std::int64_t>
      first_;  // by island within this slice: the first part of it in the whole
  std::vector<std::int64_t> firsts_;  // by island of the whole
  std::vector<int> island_of_part_;
};

}  // namespace

SliceBuilder& SliceBuilder::add(std::string name, std::shared_ptr<const Component> component,
                                SystemBuilder::PartOptions options) {
  builder_.add(std::move(name), std::move(component), std::move(options));
  ++own_parts_;
  return *this;
}

SliceBuilder& SliceBuilder::add_outside(std::int64_t number, std::string name,
                                        std::shared_ptr<const Component> component) {
  outside_.push_back({number, std::move(name), std::move(component)});
  return *this;
}

SliceBuilder& SliceBuilder::join(Joint joint, std::vector<std::string> ports) {
  if (std::holds_alternative<joint::Resistive>(joint)) {
    issues_.push_back({fmt::format("/couplings/{}", joints_),
                       "a resistive end is a part without a number: add a resistor as a part, and "
                       "connect it"});
  }
  ++joints_;
  builder_.join(std::move(joint), std::move(ports));
  return *this;
}

Issues SliceBuilder::check() const {
  Issues issues = issues_;
  if (own_parts_ == 0) issues.push_back({"/subsystems", "a slice needs at least one part"});
  SystemBuilder all = builder_;
  for (const Outside& part : outside_) all.add_outside(part.name, part.component);
  append(issues, "", all.check());
  return issues;
}

System SliceBuilder::build(Ranks& ranks) {
  std::optional<System> system;
  Issues issues = std::move(issues_);
  if (own_parts_ == 0) issues.push_back({"/subsystems", "a slice needs at least one part"});
  std::vector<std::int64_t> numbers;
  for (Outside& part : outside_) {
    numbers.push_back(part.number);
    builder_.add_outside(std::move(part.name), std::move(part.component));
  }
  append(issues, "", builder_.check());
  if (issues.empty()) {
    try {
      system.emplace(builder_.build());
    } catch (const ConfigError& error) {
      issues = error.issues();
    }
  }
  if (system) {
    std::vector<char> has_own(at(system->island_count()), 0);
    for (int i = 0; i < own_parts_; ++i) has_own[at(system->island_of_part(i))] = 1;
    for (std::size_t i = at(own_parts_); i < system->parts().size(); ++i) {
      if (has_own[at(system->island_of_part(static_cast<int>(i)))] != 0) continue;
      issues.push_back({fmt::format("/subsystems/{}", i),
                        fmt::format("part {} is outside, and shares no coupling with this slice",
                                    in_quotes(system->parts()[i].name))});
    }
  }
  const std::vector<int> defects = gather_values(ranks, static_cast<int>(issues.size()));
  throw_if_any(std::move(issues));
  for (std::size_t r = 0; r < defects.size(); ++r) {
    if (defects[r] > 0) throw SliceDefects(fmt::format("the slice of rank {} has defects", r));
  }
  Assembly assembly(*system, ranks, first_part_, own_parts_, std::move(numbers));
  assembly.put_together();
  if (ranks.size() > 1) std::move(assembly).apply(*system);  // alone it is the whole
  return *std::move(system);
}

Issue placed_in_whole(Issue issue, const System& slice) {
  constexpr std::string_view kBegin = "/subsystems/";
  if (slice.slice() == nullptr || !issue.where.starts_with(kBegin)) return issue;
  const char* const end = issue.where.data() + issue.where.size();
  std::size_t part = 0;
  const auto [rest, error] = std::from_chars(issue.where.data() + kBegin.size(), end, part);
  const std::vector<std::int64_t>& numbers = slice.slice()->numbers;
  if (error != std::errc{} || part >= numbers.size()) return issue;
  issue.where = fmt::format("{}{}{}", kBegin, numbers[part],
                            std::string_view(rest, static_cast<std::size_t>(end - rest)));
  return issue;
}

std::pair<std::int64_t, std::int64_t> even_slice(std::int64_t parts, int rank, int ranks) {
  constexpr std::int64_t kUnit = SliceBuilder::kUnit;
  const std::int64_t units = (parts + kUnit - 1) / kUnit;
  const auto begin_of = [&](int r) { return std::min(parts, units * r / ranks * kUnit); };
  return {begin_of(rank), begin_of(rank + 1)};
}

}  // namespace portwave
