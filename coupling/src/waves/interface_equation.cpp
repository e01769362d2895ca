#include "waves/interface_equation.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include <Eigen/SparseCore>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

/// Reflections of more ports get an unknown of their own.
constexpr std::size_t kFewPorts = 3;

bool has_unknown(const Interconnection& coupling, int junction) {
  return coupling.form(junction) == JunctionForm::reflection &&
         coupling.waves(junction).size() > kFewPorts;
}

}  // namespace

IslandNetworks::IslandNetworks(const System& system)
    : of(at(system.island_count())), local(system.scalar_ports().size()) {
  int known = -1;
  for (int port = 0; port < static_cast<int>(local.size()); ++port) {
    const int part = system.scalar_ports()[at(port)].part;
    IslandNetwork& island = of[at(system.island_of_part(part))];
    if (part != known) island.parts.push_back(known = part);
    local[at(port)] = static_cast<int>(island.ports.size());
    island.ports.push_back(port);
  }
  for (int j = 0; j < static_cast<int>(system.junctions().size()); ++j) {
    const int port = system.junctions()[at(j)].waves.front();
    of[at(system.island_of_part(system.scalar_ports()[at(port)].part))].junctions.push_back(j);
  }
}

InterfaceEquation::InterfaceEquation(const System& system, const IslandNetworks& networks,
                                     int island, std::vector<int> places)
    : system_(system),
      network_(networks.of[at(island)]),
      local_(networks.local),
      places_(std::move(places)) {
  if (!places_.empty()) return;
  places_.resize(network_.ports.size());
  std::iota(places_.begin(), places_.end(), 0);
}

int InterfaceEquation::unknowns(const Interconnection& coupling) const {
  const auto more = std::ranges::count_if(
      network_.junctions, [&](int junction) { return has_unknown(coupling, junction); });
  return static_cast<int>(network_.ports.size()) + static_cast<int>(more);
}

/// factor times the row of D that makes the outgoing wave of a port.
template <class Emit>
void InterfaceEquation::emit_row(int port, double factor, int row, const Emit& emit) const {
  if (factor == 0.0) return;
  const int part = system_.scalar_ports()[at(port)].part;
  const int first = system_.first_scalar_port(part);
  const int size = system_.parts()[at(part)].component->signature().wave_size();
  for (int j = 0; j < size; ++j) {
    emit(row, local_[at(first + j)], factor, part, (port - first) * size + j);
  }
}

/// emit(row, column, factor, part, entry): `factor` times an entry of D of a part; part −1: `factor` itself.
template <class Emit>
void InterfaceEquation::assemble(const Interconnection& coupling, const Emit& emit) const {
  const auto emit_number = [&](int row, int column, double value) {
    emit(row, column, value, -1, 0);
  };
  const int ports = static_cast<int>(network_.ports.size());
  for (int row = 0; row < ports; ++row) emit_number(row, row, 1.0 + kShift);
  int unknown = ports;
  for (const int junction : network_.junctions) {
    const std::vector<int>& own = system_.junctions()[at(junction)].waves;
    const auto [sign, values] = coupling.coefficients(junction);
    const std::size_t size = own.size();
    const auto row_of = [&](std::size_t i) { return local_[at(own[i])]; };
    if (coupling.form(junction) == JunctionForm::swap) {
      emit_row(own[1], -1.0, row_of(0), emit);
      emit_row(own[0], -1.0, row_of(1), emit);
    } else if (has_unknown(coupling, junction)) {
      emit_number(unknown, unknown, 1.0);
      for (std::size_t i = 0; i < size; ++i) {
        emit_row(own[i], sign, row_of(i), emit);
        emit_number(row_of(i), unknown, -2.0 * sign * values[i]);
        emit_row(own[i], -values[i], unknown, emit);
      }
      ++unknown;
    } else {
      const bool is_reflection = coupling.form(junction) == JunctionForm::reflection;
      for (std::size_t i = 0; i < size; ++i) {
        for (std::size_t j = 0; j < size; ++j) {
          const double P = is_reflection
                               ? sign * (2.0 * values[i] * values[j] - (i == j ? 1.0 : 0.0))
                               : values[i * size + j];
          emit_row(own[j], -P, row_of(i), emit);
        }
      }
    }
  }
}

std::size_t InterfaceEquation::expected_entries(const Interconnection& coupling) const {
  std::size_t count = 0;  // of the matrix itself
  assemble(coupling, [&](int, int, double, int, int) { ++count; });
  if (count > kMostEntries / 4) return kMostEntries + 1;
  std::vector<Eigen::Triplet<double>> entries;
  entries.reserve(count);
  assemble(coupling,
           [&](int row, int column, double, int, int) { entries.emplace_back(row, column, 1.0); });
  SparseMatrix pattern(unknowns(coupling), unknowns(coupling));
  pattern.setFromTriplets(entries.begin(), entries.end());
  return expected_lu_entries(pattern, kMostEntries);
}

void InterfaceEquation::analyse(const Interconnection& coupling, const PartMatrix& D,
                                const std::function<bool(int part)>& changes) {
  struct Emitted {
    int part;  // its place in network_.parts; −1: a number
    Term term;
    UnpivotedLu::Place place;
  };
  std::vector<Emitted> all;
  assemble(coupling, [&](int row, int column, double factor, int part, int entry) {
    const auto own = std::ranges::lower_bound(network_.parts, part);
    all.push_back({part < 0 ? -1 : static_cast<int>(own - network_.parts.begin()),
                   {0, entry, factor},
                   {row, column}});
  });
  std::ranges::stable_sort(all, {}, &Emitted::part);
  terms_.clear();
  begin_.clear();
  std::vector<UnpivotedLu::Place> places;
  const double* zeros = nullptr;  // D of a part whose zeros stay
  for (const Emitted& emitted : all) {
    while (static_cast<int>(begin_.size()) <= emitted.part) {
      const int part = network_.parts[begin_.size()];
      zeros = changes && changes(part) ? nullptr : D(part);
      begin_.push_back(terms_.size());
    }
    if (emitted.part >= 0 && zeros != nullptr && zeros[at(emitted.term.entry)] == 0.0) continue;
    terms_.push_back(emitted.term);
    places.push_back(emitted.place);
  }
  begin_.resize(network_.parts.size() + 1, terms_.size());
  std::vector<int> slots(places.size());
  lu_.analyse(unknowns(coupling), places, slots);
  places_.resize(at(lu_.size()), -1);
  lu_.take_places(places_);
  for (std::size_t i = 0; i < slots.size(); ++i) terms_[i].slot = slots[i];
  right_.assign(at(lu_.size()), 0.0);
  scratch_.assign(at(lu_.size()), 0.0);
}

bool InterfaceEquation::factorise(const Interconnection& coupling, const PartMatrix& D,
                                  const std::function<bool(int part)>& changes,
                                  const ForEach& each) {
  analyse(coupling, D, changes);
  return renew(D, kShift, each);
}

bool InterfaceEquation::renew(const PartMatrix& D, double shift, const ForEach& each) {
  const std::span<double> matrix = lu_.values();
  std::ranges::fill(matrix, 0.0);
  for (const Term& term : std::span(terms_).first(begin_[0])) {
    matrix[at(term.slot)] += term.factor;
  }
  if (shift != kShift) {  // the diagonal of the ports comes first
    for (const Term& term : std::span(terms_).first(network_.ports.size())) {
      matrix[at(term.slot)] += shift - kShift;
    }
  }
  for (std::size_t i = 0; i < network_.parts.size(); ++i) {
    const double* const values = D(network_.parts[i]);
    for (std::size_t t = begin_[i]; t < begin_[i + 1]; ++t) {
      matrix[at(terms_[t].slot)] += terms_[t].factor * values[at(terms_[t].entry)];
    }
  }
  if (!std::ranges::all_of(matrix, [](double x) { return std::isfinite(x); })) return false;
  is_pivoted_ = !lu_.factorise(each);
  return !is_pivoted_ || factors_.factorise(lu_.matrix());
}

double InterfaceEquation::solve(const double* gap, double* change, const ForEach& each) {
  if (!is_pivoted_) return lu_.solve(gap, change, scratch_.data(), each);
  for (std::size_t i = 0; i < right_.size(); ++i) {
    right_[i] = places_[i] < 0 ? 0.0 : gap[places_[i]];
  }
  factors_.solve(right_.data(), right_.data(), scratch_.data());
  double square = 0.0;
  for (std::size_t i = 0; i < right_.size(); ++i) {
    if (places_[i] < 0) continue;
    change[places_[i]] = right_[i];
    square += right_[i] * right_[i];
  }
  return square;
}

std::size_t InterfaceEquation::bytes() const {
  return terms_.capacity() * sizeof(Term) + lu_.bytes() + 12 * factors_.nonzeros() +
         16 * right_.capacity() + places_.capacity() * sizeof(int);
}

}  // namespace portwave
