#include "linear/distinct_parts.hpp"

#include <algorithm>
#include <functional>

#include "portwave/subsystems/base/equal_classes.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

bool same_entries(const SparseMatrix& a, const SparseMatrix& b) {
  return a.nonZeros() == b.nonZeros() && a.isCompressed() && b.isCompressed() &&
         std::equal(a.outerIndexPtr(), a.outerIndexPtr() + a.outerSize() + 1, b.outerIndexPtr()) &&
         std::equal(a.innerIndexPtr(), a.innerIndexPtr() + a.nonZeros(), b.innerIndexPtr()) &&
         std::equal(a.valuePtr(), a.valuePtr() + a.nonZeros(), b.valuePtr());
}

bool same_physics(const LinearPortHamiltonian& a, const LinearPortHamiltonian& b) {
  if (&a == &b) return true;
  const Structure& s = a.structure();
  const Structure& t = b.structure();
  return same_entries(a.Q(), b.Q()) && same_entries(s.J, t.J) && same_entries(s.R, t.R) &&
         same_entries(s.G, t.G) && same_entries(s.P, t.P) && same_entries(s.S, t.S) &&
         same_entries(s.N, t.N);
}

/// A hash of what is cheap to read; equality is decided by all of it.
std::size_t hash_of(const LinearPortHamiltonian& part, const double* gamma, int p, int stride) {
  std::size_t h = 0;
  const auto mix = [&h](double v) {
    h = (h ^ std::hash<double>{}(v)) * 0x9E3779B97F4A7C15u;
    h ^= h >> 29;
  };
  for (const SparseMatrix* M : {&part.Q(), &part.structure().R}) {
    for (const double value : std::span(M->valuePtr(), static_cast<std::size_t>(M->nonZeros()))) {
      mix(value);
    }
  }
  for (int j = 0; j < p; ++j) mix(gamma[j * stride]);
  return h;
}

}  // namespace

DistinctParts::DistinctParts(std::span<const LinearPortHamiltonian* const> lanes,
                             std::span<const unsigned char> tag_of_lane, const double* impedance,
                             int ports, int stride)
    : ports_(at(ports)) {
  EqualClasses known;
  for (std::size_t l = 0; l < lanes.size(); ++l) {
    const LinearPortHamiltonian& part = *lanes[l];
    const double* const gamma = impedance + l;
    const auto equal = [&](int index) {
      const double* const own = this->impedance(at(index));
      for (int j = 0; j < ports; ++j) {
        if (own[j] != gamma[j * stride]) return false;
      }
      return tags[at(index)] == tag_of_lane[l] && same_physics(*parts[at(index)], part);
    };
    int found = !of_lane.empty() && equal(of_lane.back()) ? of_lane.back() : -1;
    if (found < 0) found = known.find_or_add(hash_of(part, gamma, ports, stride), equal);
    if (found == static_cast<int>(parts.size())) {
      parts.push_back(&part);
      tags.push_back(tag_of_lane[l]);
      for (int j = 0; j < ports; ++j) impedances_.push_back(gamma[j * stride]);
    }
    of_lane.push_back(found);
  }
}

}  // namespace portwave
