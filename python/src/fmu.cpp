// Systems as FMUs and packages of system structures, and system structures as systems.

#include "fmu.hpp"

#include <memory>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "portwave/runtime/adapters/structure.hpp"
#include "portwave/runtime/export/fmu_export.hpp"
#include "portwave/runtime/export/ssp_export.hpp"

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

portwave::Plugins permission(bool allows_plugins) {
  return allows_plugins ? portwave::Plugins::allowed : portwave::Plugins::refused;
}

Names write_ssp(const std::string& text, const std::string& folder, const std::string& out,
                bool allows_plugins) {
  return portwave::export_ssp({text, "system", folder}, permission(allows_plugins), out).notes;
}

/// The scenario, notes, and what keeps the files that were unpacked.
std::tuple<std::string, std::vector<std::pair<std::string, std::string>>, nb::capsule>
read_structure(const std::string& file, bool allows_plugins) {
  portwave::StructureScenario made =
      portwave::read_structure(file, {.may_run_fmus = allows_plugins});
  std::vector<std::pair<std::string, std::string>> notes;
  for (const portwave::Issue& note : made.notes) notes.emplace_back(note.where, note.what);
  using Kept = std::shared_ptr<const void>;
  auto kept = std::make_unique<Kept>(std::move(made.files));
  nb::capsule owner(kept.get(), [](void* own) noexcept { delete static_cast<Kept*>(own); });
  static_cast<void>(kept.release());
  return {std::move(made.text), std::move(notes), std::move(owner)};
}

}  // namespace

void bind_fmu(nb::module_& m) {
  m.def("write_fmu", &write_fmu, "text"_a, "folder"_a, "out"_a, "inputs"_a, "outputs"_a,
        "parameters"_a, "ports"_a, "fmi"_a, "name"_a, "library"_a);
  m.def("write_ssp", &write_ssp, "text"_a, "folder"_a, "out"_a, "allow_plugins"_a);
  m.def("read_structure", &read_structure, "file"_a, "allow_plugins"_a);
  m.def(
      "is_structure_file",
      [](const std::string& file) { return portwave::is_structure_file(file); }, "file"_a);
}
