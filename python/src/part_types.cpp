// Types of parts whose physics are functions: of Python, or compiled.

#include "part_types.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Dense>

#include "callbacks.hpp"
#include "own_gradient_part.hpp"
#include "part_functions.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"
#include "state_structure.hpp"

using namespace nb::literals;

namespace {

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using NameAndUnit = std::pair<std::string, std::string>;
using PortOf =
    std::tuple<std::string, std::string, std::string, int>;  // name, domain, causality, size

portwave::Domain domain_of(const std::string& name) {
  using enum portwave::Domain;
  for (const portwave::Domain domain :
       {generic, translation, rotation, electrical, magnetic, hydraulic, thermal}) {
    if (name == to_string(domain)) return domain;
  }
  throw std::invalid_argument("no domain is named \"" + name + "\"");
}

portwave::Signature signature_of(const std::string& type, const std::vector<NameAndUnit>& states,
                                 const std::vector<PortOf>& ports,
                                 const std::vector<NameAndUnit>& inputs) {
  portwave::Signature signature;
  signature.type = type;
  std::set<std::pair<std::string, std::string>> names;
  const auto take = [&](const std::string& what, const std::string& own) {
    if (names.emplace(what, own).second) return;
    throw std::invalid_argument("\"" + type + "\": two " + what + "s have the name \"" + own +
                                "\"");
  };
  for (const auto& state : states) take("state", state.first);
  for (const auto& port : ports) take("port", std::get<0>(port));
  for (const auto& input : inputs) take("input", input.first);
  for (const auto& [state, unit] : states) signature.states.push_back({state, unit});
  for (const auto& [port, domain, causality, size] : ports) {
    if (causality != "effort_in" && causality != "flow_in") {
      throw std::invalid_argument("a port is \"effort_in\" or \"flow_in\", got \"" + causality +
                                  "\"");
    }
    signature.ports.push_back(
        {port,
         causality == "effort_in" ? portwave::Causality::effort_in : portwave::Causality::flow_in,
         domain_of(domain), size});
  }
  for (const auto& [input, unit] : inputs) signature.inputs.push_back({input, unit});
  return signature;
}

portwave::DiscreteGradient discrete_gradient_of(const std::string& name) {
  using portwave::DiscreteGradient;
  for (const auto kind :
       {DiscreteGradient::gonzalez, DiscreteGradient::mean_value, DiscreteGradient::itoh_abe}) {
    if (name == portwave::to_string(kind)) return kind;
  }
  throw std::invalid_argument(
      "a discrete gradient is \"gonzalez\", \"mean_value\", \"itoh_abe\" or a function, got \"" +
      name + "\"");
}

using Build = std::function<std::unique_ptr<portwave::Component>()>;

/// The builders of types from Python. The catalogue keeps a type for good; a notebook cell that runs
/// again replaces its builder.
std::map<std::string, std::shared_ptr<Build>>& part_types() {
  static std::map<std::string, std::shared_ptr<Build>> all;
  return all;
}

/// A matrix of constants, or a function of the state.
MatrixOfState matrix_of(const nb::object& given, int n, int columns, const char* name) {
  MatrixOfState out{.name = name, .rows = n, .columns = columns};
  Matrix constant;
  if (nb::try_cast(given, constant)) {
    out.constant.assign(constant.data(), constant.data() + constant.size());
  } else {
    out.function = matrix_function(given, static_cast<std::size_t>(n), static_cast<std::size_t>(n),
                                   static_cast<std::size_t>(columns), name);
  }
  return out;
}

/// Adds a type without parameters to the catalogue; all parts of the type share the functions.
void add_part_type(const std::string& name, const std::string& summary,
                   const std::vector<NameAndUnit>& states, const std::vector<PortOf>& ports,
                   const std::vector<NameAndUnit>& inputs, const nb::object& energy,
                   const nb::object& gradient, const nb::object& hessian, const nb::object& J,
                   const nb::object& R, const nb::object& G,
                   const std::vector<double>& default_state,
                   const std::vector<double>& typical_state, const nb::object& discrete_gradient) {
  const portwave::Signature signature = signature_of(name, states, ports, inputs);
  const int n = signature.state_size();
  const int m = signature.wave_size() + signature.input_size();
  const auto size = static_cast<std::size_t>(n);

  portwave::Hamiltonian hamiltonian;
  hamiltonian.value = number_function(energy, size);
  hamiltonian.gradient = array_function(gradient, size, size, "the gradient");
  // Symmetric: the order of rows and columns does not matter.
  if (!hessian.is_none()) {
    hamiltonian.hessian = array_function(hessian, size, size * size, "the Hessian");
  }
  portwave::NonlinearPortHamiltonian::Options options;
  options.default_state = default_state;
  options.typical_state = typical_state;
  StepGradient own_gradient;
  if (std::string kind; nb::try_cast(discrete_gradient, kind)) {
    options.discrete_gradient = discrete_gradient_of(kind);
  } else {
    options.discrete_gradient = portwave::DiscreteGradient::mean_value;  // where no step is taken
    own_gradient = step_function(discrete_gradient, size, "the discrete gradient");
  }
  const StateStructure structure(signature, matrix_of(J, n, n, "J"), matrix_of(R, n, n, "R"),
                                 matrix_of(G, n, m, "G"));
  if (!structure.is_constant()) options.structure_at = structure;

  const Build build = [=]() -> std::unique_ptr<portwave::Component> {
    portwave::Structure first = structure.first(default_state);
    if (!own_gradient) {
      return std::make_unique<portwave::NonlinearPortHamiltonian>(signature, std::move(first),
                                                                  hamiltonian, options);
    }
    return std::make_unique<OwnGradientPart>(signature, std::move(first), hamiltonian, options,
                                             own_gradient);
  };
  forget_raised();
  try {
    (void)build();  // reports defects here
  } catch (const std::exception&) {
    raise_interrupt();  // Ctrl-C within a function is no defect of it
    throw;
  }
  if (const auto known = part_types().find(name); known != part_types().end()) {
    *known->second = build;
    return;
  }
  portwave::PartType type;
  type.name = name;
  type.group = "python";
  type.summary = summary;
  type.equations = "H(x), its gradient and structure matrices from Python";
  const auto own = std::make_shared<Build>(build);
  type.build = [own](const portwave::Parameters&) { return (*own)(); };
  portwave::Catalogue::add(std::move(type));
  part_types().emplace(name, own);
}

}  // namespace

void bind_part_types(nb::module_& m) {
  m.def("add_part_type", &add_part_type, "name"_a, "summary"_a, "states"_a, "ports"_a, "inputs"_a,
        "energy"_a, "gradient"_a, "hessian"_a.none(), "J"_a, "R"_a, "G"_a, "default_state"_a,
        "typical_state"_a, "discrete_gradient"_a);
}
