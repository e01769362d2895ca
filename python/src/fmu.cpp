// Systems as FMUs.

#include "fmu.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <string>
#include <utility>
#include <vector>

#include "portwave/runtime/export/fmu_export.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Names = std::vector<std::string>;

Names write_fmu(const std::string& text, const std::string& folder, const std::string& out,
                const Names& inputs, const Names& outputs, const Names& parameters,
                const Names& ports, int fmi, const std::string& name, const std::string& library) {
  const portwave::FmuExportOptions options = {.inputs = inputs,
                                              .outputs = outputs,
                                              .parameters = parameters,
                                              .ports = ports,
                                              .fmi = fmi,
                                              .name = name,
                                              .library = library};
  return portwave::export_fmu({text, "system", folder}, options, out).notes;
}

}  // namespace

void bind_fmu(nb::module_& m) {
  m.def("write_fmu", &write_fmu, "text"_a, "folder"_a, "out"_a, "inputs"_a, "outputs"_a,
        "parameters"_a, "ports"_a, "fmi"_a, "name"_a, "library"_a);
}
