#include "waves/interface_equation.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <Eigen/OrderingMethods>
#include <Eigen/SparseCore>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

constexpr double kShift = 1e-14;
/// Reflections of more ports get an unknown of their own.
constexpr std::size_t kFewPorts = 3;

bool has_unknown(const Interconnection& coupling, int junction) {
  return coupling.form(junction) == JunctionForm::reflection &&
         coupling.waves(junction).size() > kFewPorts;
}

/// Entries of a Cholesky factor of a matrix with the pattern of A + Aᵀ in the order of minimal
/// degree, by its elimination tree. Stops beyond `most`.
std::size_t cholesky_entries(const SparseMatrix& A, std::size_t most) {
  Eigen::PermutationMatrix<Eigen::Dynamic, Eigen::Dynamic, int> inverse;
  Eigen::AMDOrdering<int>()(A, inverse);
  const int n = static_cast<int>(A.rows());
  const auto order = Eigen::PermutationMatrix<Eigen::Dynamic, Eigen::Dynamic, int>(
      inverse.inverse());                       // old → new
  std::vector<std::vector<int>> before(at(n));  // neighbours that are eliminated before
  for (int j = 0; j < n; ++j) {
    for (SparseMatrix::InnerIterator it(A, j); it; ++it) {
      const int r = order.indices()[it.row()], c = order.indices()[j];
      if (r != c) before[at(std::max(r, c))].push_back(std::min(r, c));
    }
  }
  std::vector<int> parent(at(n), -1), mark(at(n), -1);
  std::size_t count = at(n);
  for (int k = 0; k < n && count <= most; ++k) {
    mark[at(k)] = k;
    for (int i : before[at(k)]) {
      for (; mark[at(i)] != k; i = parent[at(i)]) {
        if (parent[at(i)] < 0) parent[at(i)] = k;
        mark[at(i)] = k;
        ++count;
      }
    }
  }
  return count;
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
                                     int island)
    : system_(system), network_(networks.of[at(island)]), local_(networks.local) {}

int InterfaceEquation::unknowns(const Interconnection& coupling) const {
  const auto more = std::ranges::count_if(
      network_.junctions, [&](int junction) { return has_unknown(coupling, junction); });
  return static_cast<int>(network_.ports.size()) + static_cast<int>(more);
}

/// factor times the row of D that makes the outgoing wave of a port.
template <class Emit>
void InterfaceEquation::emit_row(int port, double factor, int row, const PartMatrix& D,
                                 const Emit& emit) const {
  if (factor == 0.0) return;
  const int part = system_.scalar_ports()[at(port)].part;
  const int first = system_.first_scalar_port(part);
  const int size = system_.parts()[at(part)].component->signature().wave_size();
  const double* values = D ? D(part) + at(port - first) * at(size) : nullptr;
  for (int j = 0; j < size; ++j) {
    const double value = values != nullptr ? values[j] : 1.0;
    if (value != 0.0) emit(row, local_[at(first + j)], factor * value);
  }
}

template <class Emit>
void InterfaceEquation::assemble(const Interconnection& coupling, const PartMatrix& D,
                                 const Emit& emit) const {
  const int ports = static_cast<int>(network_.ports.size());
  for (int row = 0; row < ports; ++row) emit(row, row, 1.0 + kShift);
  int unknown = ports;
  for (const int junction : network_.junctions) {
    const std::vector<int>& own = system_.junctions()[at(junction)].waves;
    const auto [sign, values] = coupling.coefficients(junction);
    const std::size_t size = own.size();
    const auto row_of = [&](std::size_t i) { return local_[at(own[i])]; };
    if (coupling.form(junction) == JunctionForm::swap) {
      emit_row(own[1], -1.0, row_of(0), D, emit);
      emit_row(own[0], -1.0, row_of(1), D, emit);
    } else if (has_unknown(coupling, junction)) {
      emit(unknown, unknown, 1.0);
      for (std::size_t i = 0; i < size; ++i) {
        emit_row(own[i], sign, row_of(i), D, emit);
        emit(row_of(i), unknown, -2.0 * sign * values[i]);
        emit_row(own[i], -values[i], unknown, D, emit);
      }
      ++unknown;
    } else {
      const bool is_reflection = coupling.form(junction) == JunctionForm::reflection;
      for (std::size_t i = 0; i < size; ++i) {
        for (std::size_t j = 0; j < size; ++j) {
          const double P = is_reflection
                               ? sign * (2.0 * values[i] * values[j] - (i == j ? 1.0 : 0.0))
                               : values[i * size + j];
          emit_row(own[j], -P, row_of(i), D, emit);
        }
      }
    }
  }
}

std::size_t InterfaceEquation::expected_entries(const Interconnection& coupling) const {
  std::size_t count = 0;  // of the matrix itself
  assemble(coupling, {}, [&](int, int, double) { ++count; });
  if (count > kMostEntries / 4) return kMostEntries + 1;
  std::vector<Eigen::Triplet<double>> entries;
  entries.reserve(count);
  assemble(coupling, {},
           [&](int row, int column, double) { entries.emplace_back(row, column, 1.0); });
  SparseMatrix pattern(unknowns(coupling), unknowns(coupling));
  pattern.setFromTriplets(entries.begin(), entries.end());
  return 2 * cholesky_entries(pattern, kMostEntries / 2);
}

bool InterfaceEquation::factorise(const Interconnection& coupling, const PartMatrix& D) {
  std::vector<Eigen::Triplet<double>> entries;
  bool finite = true;
  assemble(coupling, D, [&](int row, int column, double value) {
    finite = finite && std::isfinite(value);
    entries.emplace_back(row, column, value);
  });
  if (!finite) return false;
  SparseMatrix matrix(unknowns(coupling), unknowns(coupling));
  matrix.setFromTriplets(entries.begin(), entries.end());
  right_.assign(at(static_cast<int>(matrix.rows())), 0.0);
  if (!factors_.factorise(matrix)) return false;
  scratch_.assign(at(factors_.scratch_size()), 0.0);
  return true;
}

void InterfaceEquation::solve(const double* gap, double* change) {
  const std::size_t ports = network_.ports.size();
  std::copy_n(gap, ports, right_.data());
  std::fill(right_.begin() + static_cast<std::ptrdiff_t>(ports), right_.end(), 0.0);
  factors_.solve(right_.data(), right_.data(), scratch_.data());
  std::copy_n(right_.data(), ports, change);
}

std::size_t InterfaceEquation::bytes() const {
  return 12 * factors_.nonzeros() + 16 * right_.capacity() + 16 * scratch_.capacity();
}

}  // namespace portwave
