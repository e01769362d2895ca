#include <array>
#include <utility>
#include <vector>

#include "catalogue/general/linear_elements.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/descriptor/descriptor_part.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"

namespace portwave {
namespace {

using ElementMatrix = std::array<std::array<double, 4>, 4>;

// The stiffness matrix has a condition of about n^4: with a thousand elements 1e12, beyond which
// rounding makes it singular. Long before that the error of the elements is below rounding.
constexpr int kMostElements = 1000;

/// What holds the ends; in every case no rigid motion is left, so that the stiffness is regular.
struct Supports {
  std::string_view name;
  bool left_slope_is_held;
  bool right_end_is_held;
  bool right_slope_is_held;
};
constexpr std::array kSupports = {
    Supports{"cantilever", true, false, false}, Supports{"clamped", true, true, true},
    Supports{"propped", true, true, false}, Supports{"simple", false, true, false}};

const Supports& supports_of(const Parameters& p) {
  const std::string& name = value_of<std::string>(p, "supports");
  for (const Supports& supports : kSupports) {
    if (supports.name == name) return supports;
  }
  return kSupports.front();
}

// Cubic Hermite elements of length l with displacement and slope at either end.
ElementMatrix element_stiffness(double bending, double l) {
  const double a = 12.0 * bending / (l * l * l), b = 6.0 * bending / (l * l);
  const double c = 4.0 * bending / l, d = 2.0 * bending / l;
  return {{{a, b, -a, b}, {b, c, -b, d}, {-a, -b, a, -b}, {b, d, -b, c}}};
}

ElementMatrix element_mass(double density, double l) {
  const double m = density * l / 420.0;
  const double a = 156.0 * m, b = 22.0 * l * m, c = 54.0 * m, d = 13.0 * l * m;
  const double e = 4.0 * l * l * m, f = -3.0 * l * l * m;
  return {{{a, b, c, -d}, {b, e, d, f}, {c, d, a, -b}, {-d, f, -b, e}}};
}

/// Numbers the displacements and slopes that are not held.
class Freedoms {
 public:
  Freedoms(int elements, const Supports& supports) : number_(2 * (elements + 1)) {
    for (int i = 0; i < static_cast<int>(number_.size()); ++i) number_[at(i)] = i;
    hold(0);
    if (supports.left_slope_is_held) hold(1);
    if (supports.right_end_is_held) hold(2 * elements);
    if (supports.right_slope_is_held) hold(2 * elements + 1);
    for (int& number : number_) number = number < 0 ? -1 : count_++;
  }
  int count() const { return count_; }
  /// -1 where it is held.
  int displacement(int node) const { return number_[at(2 * node)]; }
  int slope(int node) const { return number_[at(2 * node + 1)]; }
  int of_element(int element, int i) const { return number_[at(2 * element + i)]; }

 private:
  void hold(int i) { number_[at(i)] = -1; }

  std::vector<int> number_;
  int count_ = 0;
};

void add_element(SparseEntries& entries, const Freedoms& freedoms, int element,
                 const ElementMatrix& m, double factor, int shift) {
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      const int row = freedoms.of_element(element, i), column = freedoms.of_element(element, j);
      if (row < 0 || column < 0 || factor == 0.0) continue;
      entries.emplace_back(shift + row, shift + column,
                           factor * m[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)]);
    }
  }
}

Signature beam_signature(const Freedoms& freedoms, int elements) {
  Signature signature;
  signature.type = "euler_bernoulli_beam";
  for (const bool rates : {false, true}) {
    for (int node = 0; node <= elements; ++node) {
      const std::string number = std::to_string(node);
      if (freedoms.displacement(node) >= 0) {
        signature.states.push_back(rates ? StateVariable{"v" + number, "m/s"}
                                         : StateVariable{"w" + number, "m"});
      }
      if (freedoms.slope(node) >= 0) {
        signature.states.push_back(rates ? StateVariable{"slope_rate" + number, "rad/s"}
                                         : StateVariable{"slope" + number, "rad"});
      }
    }
  }
  signature.ports = {{"force", Causality::effort_in, Domain::translation, 1},
                     {"moment", Causality::effort_in, Domain::rotation, 1}};
  signature.inputs = {{"load", "N/m"}};
  return signature;
}

// E = diag(1, M), Q = diag(K, 1): the states are displacements and slopes, then their rates.
std::unique_ptr<Subsystem> build_euler_bernoulli_beam(const Parameters& p) {
  const int elements = value_of<int>(p, "elements");
  const double l = number_of(p, "length_m") / elements;
  const Supports& supports = supports_of(p);
  const Freedoms freedoms(elements, supports);
  const int n = freedoms.count();
  const ElementMatrix stiffness = element_stiffness(number_of(p, "bending_stiffness_Nm2"), l);
  const ElementMatrix mass = element_mass(number_of(p, "density_kg_per_m"), l);

  SparseEntries E, J, R, Q, B;
  for (int i = 0; i < n; ++i) {
    E.emplace_back(i, i, 1.0);
    Q.emplace_back(n + i, n + i, 1.0);
    J.emplace_back(i, n + i, 1.0);
    J.emplace_back(n + i, i, -1.0);
  }
  const std::array load = {0.5 * l, l * l / 12.0, 0.5 * l, -l * l / 12.0};
  for (int element = 0; element < elements; ++element) {
    add_element(E, freedoms, element, mass, 1.0, n);
    add_element(Q, freedoms, element, stiffness, 1.0, 0);
    add_element(R, freedoms, element, mass, number_of(p, "mass_damping_1_per_s"), n);
    add_element(R, freedoms, element, stiffness, number_of(p, "stiffness_damping_s"), n);
    for (int i = 0; i < 4; ++i) {
      const int row = freedoms.of_element(element, i);
      if (row >= 0) B.emplace_back(n + row, 2, load[static_cast<std::size_t>(i)]);
    }
  }
  const int node = supports.right_end_is_held ? elements / 2 : elements;
  B.emplace_back(n + freedoms.displacement(node), 0, -1.0);
  B.emplace_back(n + freedoms.slope(node), 1, -1.0);

  DescriptorPortHamiltonian::Options options;
  options.allow_active = allows_active(p);
  return std::make_unique<DescriptorPortHamiltonian>(
      beam_signature(freedoms, elements),
      DescriptorForm{.E = sparse_matrix(2 * n, 2 * n, E),
                     .J = sparse_matrix(2 * n, 2 * n, J),
                     .R = sparse_matrix(2 * n, 2 * n, R),
                     .Q = sparse_matrix(2 * n, 2 * n, Q),
                     .B = sparse_matrix(2 * n, 3, B)},
      std::move(options));
}

}  // namespace

PartType euler_bernoulli_beam_type() {
  PartType type;
  type.name = "euler_bernoulli_beam";
  type.group = "translation";
  type.summary = "Slender beam that bends in a plane, by cubic finite elements.";
  type.equations =
      "rho w_tt + EI w_xxxx = load, and damping by mass and stiffness: a M + b K\n"
      "H = v^T M v/2 + w^T K w/2,  w' = v,  M v' = -K w - (a M + b K) v + forces\n"
      "w: displacement and slope of the nodes 0 to n that are not held; M: consistent mass matrix\n"
      "The ports act on node n of a cantilever, else on node n/2 rounded down, like those of a "
      "mass:\n"
      "f_force = -v,  f_moment = -slope_rate.  The load is the same all over the beam.";
  ParameterInfo elements =
      cell_count("elements", "number of elements n; the error of a frequency falls as 1/n^4");
  elements.minimum = 2.0;
  elements.maximum = kMostElements;
  ParameterInfo supports;
  supports.name = "supports";
  supports.kind = ParameterKind::choice;
  supports.summary =
      "left and right end: clamped and free, both clamped, clamped and pinned, both pinned";
  for (const Supports& each : kSupports) supports.choices.emplace_back(each.name);
  supports.default_value = std::string(kSupports.front().name);
  type.parameters = {
      std::move(elements),
      positive_number("length_m", "m", "length"),
      positive_number("bending_stiffness_Nm2", "N m^2",
                      "bending stiffness EI: modulus times second moment of area"),
      positive_number("density_kg_per_m", "kg/m", "mass per length rho"),
      damper("mass_damping_1_per_s", "1/s", "damping a in proportion to the mass"),
      damper("stiffness_damping_s", "s", "damping b in proportion to the stiffness"),
      std::move(supports),
  };
  type.build = build_euler_bernoulli_beam;
  type.example = {{"elements", 3},
                  {"length_m", 2.0},
                  {"bending_stiffness_Nm2", 5.0},
                  {"density_kg_per_m", 0.6},
                  {"mass_damping_1_per_s", 0.1},
                  {"stiffness_damping_s", 0.01}};
  return type;
}

}  // namespace portwave
