#include "waves/interface_equation.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include <Eigen/SparseCore>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

/// Reflections of more ports get an unknown of their own.
constexpr std::size_t kFewPorts = 3;
/// Of smaller islands no part is taken by its motion: their solves are short.
constexpr std::size_t kManyPorts = 512;

bool has_unknown(const Interconnection& coupling, int junction) {
  return coupling.form(junction) == JunctionForm::reflection &&
         coupling.waves(junction).size() > kFewPorts;
}

/// D = σI + c sᵀ as σ, c, s: of a part all of whose ports have one velocity or one force. False: it is none.
bool split(const double* D, int size, std::vector<double>& out) {
  constexpr double kRounding = 1e-13;
  const auto entry = [&](int i, int j) { return D[i * size + j]; };
  // The largest of the entries beside the diagonal: in row r, column m.
  int r = 0, m = 1;
  double largest = 0.0;
  for (int i = 0; i < size; ++i) {
    for (int j = 0; j < size; ++j) {
      if (i == j || !(std::abs(entry(i, j)) > std::abs(entry(r, m)))) continue;
      r = i;
      m = j;
    }
  }
  for (int k = 0; k < size * size; ++k) largest = std::max(largest, std::abs(D[k]));
  if (entry(r, m) == 0.0 || !std::isfinite(largest)) return false;
  out.resize(at(1 + 2 * size));
  double* const c = out.data() + 1;
  double* const s = c + size;
  int across = -1, along = -1;  // the largest c and s of the other ports
  for (int k = 0; k < size; ++k) {
    c[k] = k == r ? 1.0 : entry(k, m) / entry(r, m);
    s[k] = entry(r, k);
    if (k == r || k == m) continue;
    if (across < 0 || std::abs(c[k]) > std::abs(c[across])) across = k;
    if (along < 0 || std::abs(s[k]) > std::abs(s[along])) along = k;
  }
  if (across < 0 || c[across] == 0.0 || s[along] == 0.0) return false;
  s[r] = entry(across, r) / c[across];
  c[m] = entry(m, along) / s[along];
  out[0] = entry(r, r) - c[r] * s[r];
  for (int i = 0; i < size; ++i) {
    for (int j = 0; j < size; ++j) {
      const double own = (i == j ? out[0] : 0.0) + c[i] * s[j];
      if (!(std::abs(entry(i, j) - own) <= kRounding * largest)) return false;
    }
  }
  return true;
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

int InterfaceEquation::size_of(int part) const {
  return system_.parts()[at(part)].component->signature().wave_size();
}

std::size_t InterfaceEquation::place_of(int part) const {
  return at(
      static_cast<int>(std::ranges::lower_bound(network_.parts, part) - network_.parts.begin()));
}

bool InterfaceEquation::has_one_motion(const double* D, int size) {
  std::vector<double> numbers;
  return size > static_cast<int>(kFewPorts) && split(D, size, numbers);
}

/// Gives an unknown to parts with one motion; of two neighbours to one, since otherwise the rows of the joint between
/// them need not have a pivot.
void InterfaceEquation::find_motions(const Interconnection& coupling, const PartMatrix& D) {
  std::vector<int>& unknown = forms_[kByMotions].unknown;
  unknown.clear();
  if (network_.ports.size() < kManyPorts) return;
  std::vector<char> is_one(network_.parts.size(), 0);
  for (std::size_t own = 0; own < is_one.size(); ++own) {
    const int part = network_.parts[own];
    if (changes_[own] == 0 && has_one_motion(D(part), size_of(part))) is_one[own] = 1;
  }
  for (const int junction : network_.junctions) {
    bool is_taken = false;
    for (const int port : system_.junctions()[at(junction)].waves) {
      char& own = is_one[place_of(system_.scalar_ports()[at(port)].part)];
      if (own != 0 && std::exchange(is_taken, true)) own = 0;
    }
  }
  if (std::ranges::find(is_one, 1) == is_one.end()) return;
  int next = static_cast<int>(network_.ports.size());
  for (const int junction : network_.junctions) next += has_unknown(coupling, junction) ? 1 : 0;
  for (const char own : is_one) unknown.push_back(own != 0 ? next++ : -1);
}

/// The numbers that the terms of a part are made of: D, or σ, c and s. Null: D has no such form any more.
const double* InterfaceEquation::numbers_of(const Form& form, std::size_t own, const double* D) {
  if (form.unknown.empty() || form.unknown[own] < 0) return D;
  return split(D, size_of(network_.parts[own]), split_) ? split_.data() : nullptr;
}

/// factor times the row of D that makes the outgoing wave of a port.
template <class Emit>
void InterfaceEquation::emit_row(const Form& form, int port, double factor, int row,
                                 const Emit& emit) const {
  if (factor == 0.0) return;
  const int part = system_.scalar_ports()[at(port)].part;
  const int first = system_.first_scalar_port(part);
  const int size = size_of(part);
  if (const int unknown = form.unknown.empty() ? -1 : form.unknown[place_of(part)]; unknown >= 0) {
    emit(row, local_[at(port)], factor, part, 0);
    emit(row, unknown, factor, part, 1 + port - first);
    return;
  }
  for (int j = 0; j < size; ++j) {
    emit(row, local_[at(first + j)], factor, part, (port - first) * size + j);
  }
}

/// emit(row, column, factor, part, entry): `factor` times a number of a part; part −1: `factor` itself.
template <class Emit>
void InterfaceEquation::assemble(const Interconnection& coupling, const Form& form,
                                 const Emit& emit) const {
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
      emit_row(form, own[1], -1.0, row_of(0), emit);
      emit_row(form, own[0], -1.0, row_of(1), emit);
    } else if (has_unknown(coupling, junction)) {
      emit_number(unknown, unknown, 1.0);
      for (std::size_t i = 0; i < size; ++i) {
        emit_row(form, own[i], sign, row_of(i), emit);
        emit_number(row_of(i), unknown, -2.0 * sign * values[i]);
        emit_row(form, own[i], -values[i], unknown, emit);
      }
      ++unknown;
    } else {
      const bool is_reflection = coupling.form(junction) == JunctionForm::reflection;
      for (std::size_t i = 0; i < size; ++i) {
        for (std::size_t j = 0; j < size; ++j) {
          const double P = is_reflection
                               ? sign * (2.0 * values[i] * values[j] - (i == j ? 1.0 : 0.0))
                               : values[i * size + j];
          emit_row(form, own[j], -P, row_of(i), emit);
        }
      }
    }
  }
  for (std::size_t i = 0; i < form.unknown.size(); ++i) {
    const int row = form.unknown[i], part = network_.parts[i];
    if (row < 0) continue;
    emit_number(row, row, 1.0);
    const int size = size_of(part), first = local_[at(system_.first_scalar_port(part))];
    for (int j = 0; j < size; ++j) emit(row, first + j, -1.0, part, 1 + size + j);
  }
}

std::size_t InterfaceEquation::expected_entries(const Interconnection& coupling) const {
  std::size_t count = 0;  // of the matrix itself
  int unknowns = 0;
  assemble(coupling, forms_[kByD], [&](int row, int, double, int, int) {
    ++count;
    unknowns = std::max(unknowns, row + 1);
  });
  if (count > kMostEntries / 4) return kMostEntries + 1;
  std::vector<Eigen::Triplet<double>> entries;
  entries.reserve(count);
  assemble(coupling, forms_[kByD],
           [&](int row, int column, double, int, int) { entries.emplace_back(row, column, 1.0); });
  SparseMatrix pattern(unknowns, unknowns);
  pattern.setFromTriplets(entries.begin(), entries.end());
  return expected_lu_entries(pattern, kMostEntries);
}

void InterfaceEquation::analyse(Form& form, const PartMatrix& D) {
  struct Emitted {
    int part;  // its place in network_.parts; −1: a number
    Term term;
    UnpivotedLu::Place place;
  };
  std::vector<Emitted> all;
  int unknowns = 0;
  assemble(*coupling_, form, [&](int row, int column, double factor, int part, int entry) {
    all.push_back(
        {part < 0 ? -1 : static_cast<int>(place_of(part)), {0, entry, factor}, {row, column}});
    unknowns = std::max(unknowns, row + 1);
  });
  std::ranges::stable_sort(all, {}, &Emitted::part);
  form.terms.clear();
  form.begin.clear();
  std::vector<UnpivotedLu::Place> places;
  const double* zeros = nullptr;  // numbers of a part whose zeros stay
  for (const Emitted& emitted : all) {
    while (static_cast<int>(form.begin.size()) <= emitted.part) {
      const std::size_t own = form.begin.size();
      zeros = changes_[own] != 0 || keeps_zeros_ ? nullptr
                                                 : numbers_of(form, own, D(network_.parts[own]));
      form.begin.push_back(form.terms.size());
    }
    if (emitted.part >= 0 && zeros != nullptr && zeros[at(emitted.term.entry)] == 0.0) continue;
    form.terms.push_back(emitted.term);
    places.push_back(emitted.place);
  }
  form.begin.resize(network_.parts.size() + 1, form.terms.size());
  std::vector<int> slots(places.size());
  form.lu.analyse(unknowns, places, slots);
  std::vector<int> outside = places_;
  outside.resize(at(unknowns), -1);
  form.lu.take_places(outside);
  for (std::size_t i = 0; i < slots.size(); ++i) form.terms[i].slot = slots[i];
  form.constants.assign(form.lu.nonzeros(), 0.0);
  for (const Term& term : std::span(form.terms).first(form.begin[0])) {
    form.constants[at(term.slot)] += term.factor;
  }
  form.filled.clear();
  right_.resize(std::max(right_.size(), at(unknowns)));
  scratch_.resize(right_.size());
}

bool InterfaceEquation::factorise(const Interconnection& coupling, const PartMatrix& D,
                                  const std::function<bool(int part)>& changes, const ForEach& each,
                                  bool keeps_zeros) {
  coupling_ = &coupling;
  keeps_zeros_ = keeps_zeros;
  changes_.clear();
  begin_of_D_.assign(1, 0);
  for (const int part : network_.parts) {
    changes_.push_back(changes && changes(part) ? 1 : 0);
    begin_of_D_.push_back(begin_of_D_.back() + at(size_of(part) * size_of(part)));
  }
  for (Form& form : forms_) form.lu = {};
  find_motions(coupling, D);
  return renew(D, kShift, each);
}

bool InterfaceEquation::fits(int part, const double* before, const double* after) {
  const int size = size_of(part);
  const std::size_t own = place_of(part);
  if (has_one_motion(before, size) != has_one_motion(after, size)) return false;
  const auto is_zero = [](double value) { return value == 0.0; };
  for (const Form& form : forms_) {
    if (!form.lu.is_analysed() || keeps_zeros_) continue;
    const std::size_t count =
        form.unknown.empty() || form.unknown[own] < 0 ? at(size * size) : at(1 + 2 * size);
    const double* const old_numbers = numbers_of(form, own, before);
    if (old_numbers == nullptr) return false;
    const std::vector<double> old(old_numbers, old_numbers + count);
    const double* const now = numbers_of(form, own, after);
    if (now == nullptr || !std::ranges::equal(old, std::span(now, count), {}, is_zero, is_zero)) {
      return false;
    }
  }
  return true;
}

/// The matrix of a form. False: it has none with these D.
bool InterfaceEquation::fill(Form& form, const PartMatrix& D, double shift) {
  if (!form.lu.is_analysed()) analyse(form, D);
  if (shift == kShift && !form.filled.empty()) return fill_again(form, D);
  form.filled.clear();
  const std::span<double> matrix = form.lu.values();
  std::ranges::copy(form.constants, matrix.begin());
  if (shift != kShift) {  // the diagonal of the ports comes first
    for (const Term& term : std::span(form.terms).first(network_.ports.size())) {
      matrix[at(term.slot)] += shift - kShift;
    }
  }
  std::vector<double> filled;
  filled.reserve(begin_of_D_.back());
  for (std::size_t i = 0; i < network_.parts.size(); ++i) {
    const double* const own = D(network_.parts[i]);
    filled.insert(filled.end(), own, own + (begin_of_D_[i + 1] - begin_of_D_[i]));
    const double* const values = numbers_of(form, i, own);
    if (values == nullptr) return false;
    for (std::size_t t = form.begin[i]; t < form.begin[i + 1]; ++t) {
      matrix[at(form.terms[t].slot)] += form.terms[t].factor * values[at(form.terms[t].entry)];
    }
  }
  if (!std::ranges::all_of(matrix, [](double x) { return std::isfinite(x); })) return false;
  if (shift == kShift) form.filled = std::move(filled);
  return true;
}

/// The same, of a matrix that is filled: the parts with another D. The entries of a part, in the columns of its waves,
/// are those of no other.
bool InterfaceEquation::fill_again(Form& form, const PartMatrix& D) {
  for (std::size_t i = 0; i < network_.parts.size(); ++i) {
    const double* const own = D(network_.parts[i]);
    double* const before = form.filled.data() + begin_of_D_[i];
    const std::size_t count = begin_of_D_[i + 1] - begin_of_D_[i];
    if (count == 0 || std::memcmp(own, before, count * sizeof(double)) == 0) continue;
    std::copy_n(own, count, before);
    const double* const values = numbers_of(form, i, own);
    bool is_finite = values != nullptr;
    const std::span<const Term> terms =
        std::span(form.terms).subspan(form.begin[i], form.begin[i + 1] - form.begin[i]);
    for (const Term& term : terms) form.lu.value(term.slot) = form.constants[at(term.slot)];
    for (std::size_t t = 0; t < terms.size() && is_finite; ++t) {
      double& entry = form.lu.value(terms[t].slot);
      entry += terms[t].factor * values[at(terms[t].entry)];
      is_finite = std::isfinite(entry);
    }
    if (is_finite) continue;
    form.filled.clear();
    return false;
  }
  return true;
}

bool InterfaceEquation::renew(const PartMatrix& D, double shift, const ForEach& each) {
  is_pivoted_ = false;
  form_ = kByMotions;
  Form& by_motions = forms_[kByMotions];
  if (!by_motions.unknown.empty() && fill(by_motions, D, shift) && by_motions.lu.factorise(each)) {
    return true;
  }
  form_ = kByD;
  Form& by_D = forms_[kByD];
  if (!fill(by_D, D, shift)) return false;
  is_pivoted_ = !by_D.lu.factorise(each);
  return !is_pivoted_ || factors_.factorise(by_D.lu.matrix());
}

void InterfaceEquation::expect_changes() {
  for (Form& form : forms_) {
    if (form.filled.empty()) continue;
    for (std::size_t i = 0; i < changes_.size(); ++i) {
      if (changes_[i] == 0 || begin_of_D_[i] == begin_of_D_[i + 1]) continue;
      form.filled[begin_of_D_[i]] = std::numeric_limits<double>::quiet_NaN();
    }
  }
}

double InterfaceEquation::solve(const double* gap, double* change, const ForEach& each) {
  UnpivotedLu& lu = forms_[form_].lu;
  if (!is_pivoted_) return lu.solve(gap, change, scratch_.data(), each);
  for (int i = 0; i < lu.size(); ++i) right_[at(i)] = i < ports() ? gap[places_[at(i)]] : 0.0;
  factors_.solve(right_.data(), right_.data(), scratch_.data());
  double square = 0.0;
  for (int i = 0; i < ports(); ++i) {
    change[places_[at(i)]] = right_[at(i)];
    square += right_[at(i)] * right_[at(i)];
  }
  return square;
}

std::size_t InterfaceEquation::bytes() const {
  std::size_t sum = 12 * factors_.nonzeros() + 16 * right_.capacity() +
                    places_.capacity() * sizeof(int) + changes_.capacity();
  for (const Form& form : forms_) {
    sum += form.terms.capacity() * sizeof(Term) + form.lu.bytes() +
           form.unknown.capacity() * sizeof(int) +
           (form.constants.capacity() + form.filled.capacity()) * sizeof(double);
  }
  return sum;
}

}  // namespace portwave
