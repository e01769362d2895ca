#include "ranks/slice_agreement.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "portwave/subsystems/base/digest.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "ranks/slice_sums.hpp"

namespace portwave {
namespace {

std::uint64_t hash_of(const WaveDiscretisation& waves, int junction) {
  const Interconnection& coupling = waves.interconnection();
  Digest hash;
  hash.add(static_cast<int>(coupling.form(junction)));
  const Interconnection::Coefficients coefficients = coupling.coefficients(junction);
  hash.add(coefficients.sign);
  for (const double value : coefficients.values) hash.add(value);
  for (const int offset : coupling.waves(junction)) {
    const auto [number, wave] = wave_of_slice(waves, offset);
    hash.add(static_cast<double>(number));
    hash.add(wave);
    hash.add(waves.impedance()[at(offset)]);
  }
  return hash.value();
}

}  // namespace

SliceWave wave_of_slice(const WaveDiscretisation& waves, int offset) {
  const int part = waves.part_of_wave(offset);
  const PartSlot& slot = waves.slot(part);
  return {waves.system().slice()->numbers[at(part)], (offset - slot.wave) / slot.stride};
}

void expect_same_cut_junctions(const WaveDiscretisation& waves, Ranks& ranks) {
  const SystemSlice& slice = *waves.system().slice();
  const Interconnection& coupling = waves.interconnection();
  std::map<int, std::vector<std::uint64_t>> by_rank;  // junctions shared with it
  for (int j = 0; j < coupling.size(); ++j) {
    std::set<int> others;
    bool is_own = false;
    for (const int offset : coupling.waves(j)) {
      const int part = waves.part_of_wave(offset);
      is_own = is_own || slice.is_own(part);
      if (!slice.is_own(part)) others.insert(slice.ranks[at(part)]);
    }
    if (!is_own) continue;
    for (const int rank : others) by_rank[rank].push_back(hash_of(waves, j));
  }
  struct Edge {
    int from, to;
    std::uint64_t hash;
  };
  std::vector<Edge> own;
  for (auto& [rank, hashes] : by_rank) {
    std::ranges::sort(hashes);
    Digest all;
    for (const std::uint64_t hash : hashes) {
      std::array<char, sizeof hash> bytes;
      std::memcpy(bytes.data(), &hash, sizeof hash);
      all.add(std::string_view(bytes.data(), bytes.size()));
    }
    own.push_back({slice.rank, rank, all.value()});
  }
  const std::vector<std::byte> bytes = gather_bytes(ranks, std::as_bytes(std::span(own)));
  std::map<std::pair<int, int>, std::uint64_t> edges;
  for (std::size_t i = 0; i + sizeof(Edge) <= bytes.size(); i += sizeof(Edge)) {
    Edge edge;
    std::memcpy(&edge, bytes.data() + i, sizeof(Edge));
    edges[{edge.from, edge.to}] = edge.hash;
  }
  for (const auto& [ends, hash] : edges) {
    const auto other = edges.find({ends.second, ends.first});
    if (other != edges.end() && other->second == hash) continue;
    throw RankError(
        fmt::format("ranks {} and {} differ in what joins their slices: couplings, the order of "
                    "their ports, or impedances",
                    std::min(ends.first, ends.second), std::max(ends.first, ends.second)));
  }
}

}  // namespace portwave
