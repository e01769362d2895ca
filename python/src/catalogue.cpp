// The types of parts, and the arenas of threads, for Python.

#include "catalogue.hpp"

#include <exception>
#include <memory>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <string>

#include <nlohmann/json.hpp>

#include "callbacks.hpp"
#include "portwave/runtime/parallel/arena.hpp"
#include "portwave/runtime/scenario/catalogue_json.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/// Null where the functions of a type from Python fail.
std::unique_ptr<portwave::Component> example_of(const portwave::PartType& type) {
  try {
    return portwave::make_part(type.name, type.example);
  } catch (const std::exception&) {
    (void)take_raised();
    return nullptr;
  }
}

/// The types that there are now, as `portwave list --json` writes them.
std::string part_types() {
  auto types = nlohmann::ordered_json::array();
  for (const portwave::PartType& type : portwave::catalogue()) {
    types.push_back(portwave::part_type_json(type, example_of(type).get()));
  }
  return types.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

constexpr const char* kArenaText = R"doc(Worker threads that several steppers share.

Together they use no more threads than the arena has. Results do not depend on it.

Parameters
----------
threads : int
    Number of threads, at least 1: a caller and the workers that help it.)doc";

}  // namespace

void bind_catalogue(nb::module_& m) {
  nb::class_<portwave::Arena>(m, "Arena", kArenaText)
      .def(nb::init<int>(), "threads"_a)
      .def_prop_ro("threads", &portwave::Arena::threads, "Number of threads.");
  m.def("part_types", &part_types);
}
