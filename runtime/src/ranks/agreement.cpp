#include "ranks/agreement.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <link.h>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "portwave/subsystems/base/digest.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/version.hpp"
#include "portwave/subsystems/idle/idle_ports.hpp"
#include "ranks/slice_sums.hpp"

namespace portwave {
namespace {

struct Search {
  std::uintptr_t address;
  std::span<const std::byte> found;
};

std::size_t padded(std::size_t size) { return (size + 3) / 4 * 4; }

/// The description of the note NT_GNU_BUILD_ID, if it is among these.
std::span<const std::byte> build_id_among(std::span<const std::byte> notes) {
  ElfW(Nhdr) note;
  while (notes.size() > sizeof(note)) {
    std::memcpy(&note, notes.data(), sizeof(note));
    const std::size_t name = sizeof(note), description = name + padded(note.n_namesz);
    const std::size_t end = description + padded(note.n_descsz);
    if (end > notes.size()) break;
    const bool is_gnu = note.n_namesz == 4 && std::memcmp(notes.data() + name, "GNU", 4) == 0;
    if (is_gnu && note.n_type == NT_GNU_BUILD_ID) return notes.subspan(description, note.n_descsz);
    notes = notes.subspan(end);
  }
  return {};
}

int look(dl_phdr_info* object, std::size_t /*size*/, void* data) {
  Search& search = *static_cast<Search*>(data);
  bool is_here = false;
  std::span<const std::byte> found;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    const std::uintptr_t begin = object->dlpi_addr + part.p_vaddr;
    is_here = is_here || (part.p_type == PT_LOAD && search.address >= begin &&
                          search.address < begin + part.p_memsz);
    if (part.p_type != PT_NOTE || !found.empty()) continue;
    found = build_id_among({reinterpret_cast<const std::byte*>(begin), part.p_memsz});
  }
  if (is_here) search.found = found;
  return is_here ? 1 : 0;
}

/// The build id that the linker has given this program, or the shared library that contains portwave. Every
/// build has another. Empty if there is none.
std::span<const std::byte> build_id() {
  Search search{reinterpret_cast<std::uintptr_t>(&expect_same_program), {}};
  dl_iterate_phdr(look, &search);
  return search.found;
}

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

void expect_same(Ranks& ranks, std::uint64_t own, const char* what) {
  const std::vector<std::uint64_t> all = gather_values(ranks, own);
  std::string others;
  for (std::size_t r = 1; r < all.size(); ++r) {
    if (all[r] != all[0]) others += fmt::format("{}{}", others.empty() ? "" : ", ", r);
  }
  if (!others.empty()) {
    throw RankError(
        fmt::format("{} differ between ranks: rank 0 has not the same as rank {}", what, others));
  }
}

void expect_same_program(Ranks& ranks) {
  Digest version;
  version.add(kVersion);
  expect_same(ranks, version.value(), "the versions of portwave");
  Digest program;
  const std::span<const std::byte> id = build_id();
  program.add(std::string_view(reinterpret_cast<const char*>(id.data()), id.size()));
  expect_same(ranks, program.value(), "the programs, builds of one version,");
}

void expect_same_cut(const RankCut& cut, Ranks& ranks) {
  Digest hash;
  for (std::size_t t = 0; t < cut.partition.tasks.size(); ++t) {
    hash.add(cut.rank_of_task[t]);
    for (const BatchRange& range : cut.partition.tasks[t].ranges) {
      hash.add(range.batch);
      hash.add(range.lanes.first);
      hash.add(range.lanes.last);
    }
  }
  expect_same(ranks, hash.value(), "the cuts into tasks");
}

SliceWave wave_of_slice(const WaveDiscretisation& waves, int offset) {
  const int part = waves.part_of_wave(offset);
  const PartSlot& slot = waves.slot(part);
  // Of a part of another rank this one does not know which ports are idle.
  const Component& component = *waves.system().parts()[at(part)].component;
  return {waves.system().slice()->numbers[at(part)],
          given_scalar_port(component, (offset - slot.wave) / slot.stride)};
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
