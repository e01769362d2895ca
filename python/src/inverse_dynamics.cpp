// The model of a mechanism for controllers, for Python.

#include "inverse_dynamics.hpp"

#include <cstddef>
#include <memory>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <span>
#include <string>
#include <vector>

#include "matrices.hpp"
#include "names.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/catalogue/inverse_dynamics.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using portwave::InverseDynamics;
using Rows = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Written = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

std::span<const double> row(const Rows& rows, std::size_t i) {
  return {rows.data() + i * rows.shape(1), rows.shape(1)};
}

class PyInverseDynamics {
 public:
  PyInverseDynamics(const std::string& text, const std::string& folder,
                    const std::vector<HandedMatrix>& matrices, const std::string& part,
                    bool allows_plugins)
      : model_(part_of(portwave::parse_scenario(text, "scenario", folder, {},
                                                plugins_of(allows_plugins), matrices_of(matrices)),
                       part)) {}

  int positions() const { return model_.positions(); }
  int velocities() const { return model_.velocities(); }
  void torques(const Rows& q, const Rows& v, const Rows& a, const Written& out) {
    for_rows(out, [&](std::size_t i, std::span<double> own) {
      model_.torques(row(q, i), row(v, i), row(a, i), own);
    });
  }
  void gravity(const Rows& q, const Written& out) {
    for_rows(out, [&](std::size_t i, std::span<double> own) { model_.gravity(row(q, i), own); });
  }
  void momenta(const Rows& q, const Rows& v, const Written& out) {
    for_rows(out, [&](std::size_t i, std::span<double> own) {
      model_.momenta(row(q, i), row(v, i), own);
    });
  }
  void velocities_of(const Rows& q, const Rows& p, const Written& out) {
    for_rows(out, [&](std::size_t i, std::span<double> own) {
      model_.velocities_of(row(q, i), row(p, i), own);
    });
  }

 private:
  static std::shared_ptr<const portwave::Component> part_of(const portwave::Scenario& scenario,
                                                            const std::string& name) {
    std::vector<std::string> names;
    for (const portwave::Part& part : scenario.system.parts()) {
      if (part.name == name) return part.component;
      names.push_back(part.name);
    }
    throw nb::index_error(("there is no part " + portwave::in_quotes(name) + "." +
                           portwave::did_you_mean(name, names))
                              .c_str());
  }
  template <class Act>
  static void for_rows(const Written& out, const Act& act) {
    const std::size_t size = out.shape(1);
    for (std::size_t i = 0; i < out.shape(0); ++i) act(i, {out.data() + i * size, size});
  }

  InverseDynamics model_;
};

}  // namespace

void bind_inverse_dynamics(nb::module_& m) {
  nb::class_<PyInverseDynamics>(m, "InverseDynamics")
      .def(nb::init<const std::string&, const std::string&, const std::vector<HandedMatrix>&,
                    const std::string&, bool>(),
           "text"_a, "folder"_a, "matrices"_a, "part"_a, "allow_plugins"_a)
      .def_prop_ro("positions", &PyInverseDynamics::positions)
      .def_prop_ro("velocities", &PyInverseDynamics::velocities)
      .def("torques", &PyInverseDynamics::torques, "q"_a, "v"_a, "a"_a, "out"_a)
      .def("gravity", &PyInverseDynamics::gravity, "q"_a, "out"_a)
      .def("momenta", &PyInverseDynamics::momenta, "q"_a, "v"_a, "out"_a)
      .def("velocities_of", &PyInverseDynamics::velocities_of, "q"_a, "p"_a, "out"_a);
}
