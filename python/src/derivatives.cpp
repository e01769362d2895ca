// Derivatives of steps, for Python.

#include "derivatives.hpp"

#include <cstddef>
#include <stdexcept>
#include <string>

#include "arrays.hpp"

using namespace nb::literals;

namespace {

using portwave::StepDerivatives;
using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Eigen::VectorXd vector_of(const Doubles& values, int size) {
  if (values.shape(0) != static_cast<std::size_t>(size)) {
    throw std::invalid_argument(std::to_string(size) + " numbers are needed, got " +
                                std::to_string(values.shape(0)));
  }
  return Eigen::Map<const Eigen::VectorXd>(values.data(), size);
}

nb::ndarray<nb::numpy, double> array(const Eigen::VectorXd& values) {
  double* data = nullptr;
  auto out = new_array({static_cast<std::size_t>(values.size())}, &data);
  Eigen::Map<Eigen::VectorXd>(data, values.size()) = values;
  return out;
}

nb::ndarray<nb::numpy, double> array(const Eigen::MatrixXd& values) {
  double* data = nullptr;
  auto out = new_array(
      {static_cast<std::size_t>(values.rows()), static_cast<std::size_t>(values.cols())}, &data);
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Eigen::Map<RowMajor>(data, values.rows(), values.cols()) = values;
  return out;
}

}  // namespace

void bind_derivatives(nb::module_& m) {
  nb::class_<StepDerivatives>(m, "StepDerivatives", "The derivatives of one step.")
      .def("by_state", [](const StepDerivatives& self) { return array(self.by_state()); })
      .def("by_input", [](const StepDerivatives& self) { return array(self.by_input()); })
      .def("by_parameter", [](const StepDerivatives& self) { return array(self.by_parameter()); })
      .def(
          "tangent",
          [](const StepDerivatives& self, const Doubles& x, const Doubles& u,
             const Doubles& theta) {
            return array(self.tangent(vector_of(x, self.states()), vector_of(u, self.inputs()),
                                      vector_of(theta, self.parameters())));
          },
          "x"_a, "u"_a, "parameters"_a)
      .def(
          "adjoint",
          [](const StepDerivatives& self, const Doubles& next) {
            const auto out = self.adjoint(vector_of(next, self.states()));
            return nb::make_tuple(array(out.state), array(out.input), array(out.parameter));
          },
          "ahead"_a);
}
