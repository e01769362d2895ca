// The complete state of a run, for Python.

#include "snapshot.hpp"

#include <cstddef>
#include <nanobind/stl/string.h>
#include <vector>

#include "portwave/runtime/step/snapshot.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using portwave::Snapshot;

nb::bytes bytes_of(const Snapshot& snapshot) {
  const std::vector<std::byte> bytes = snapshot.to_bytes();
  return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Snapshot snapshot_of(const nb::bytes& bytes) {
  return Snapshot::from_bytes({reinterpret_cast<const std::byte*>(bytes.c_str()), bytes.size()});
}

constexpr const char* kSnapshotText = R"doc(The complete state of a run between two steps.

`Stepper.snapshot` writes it, `Stepper.restore` reads it; a new one is empty. It fits the stepper
that wrote it, that stepper's clones, and any stepper of the same system and options. Snapshots can
be pickled.)doc";

constexpr const char* kToBytesText = R"doc(Serialise the snapshot.

Returns
-------
bytes
    Input of `from_bytes`, in a process of the same version of portwave.)doc";

constexpr const char* kFromBytesText = R"doc(Restore a snapshot from its bytes.

Parameters
----------
data : bytes
    Output of `to_bytes` of the same version of portwave.

Returns
-------
Snapshot
    The same state.

Raises
------
ValueError
    `data` is damaged, incomplete, or of another version.)doc";

}  // namespace

void bind_snapshot(nb::module_& m) {
  nb::class_<Snapshot>(m, "Snapshot", kSnapshotText)
      .def(nb::init<>())
      .def_prop_ro("time_s", &Snapshot::time_s, "Simulated time of the state [s].")
      .def_prop_ro("step_index", &Snapshot::step_index,
                   "Number of macro-steps that led to the state.")
      .def_prop_ro("size_bytes", &Snapshot::size_bytes, "Memory that the state takes [bytes].")
      .def("to_bytes", &bytes_of, kToBytesText)
      .def_static("from_bytes", &snapshot_of, "data"_a, kFromBytesText)
      .def("__getstate__", &bytes_of)
      .def("__setstate__", [](Snapshot& self, const nb::bytes& state) {
        new (&self) Snapshot(snapshot_of(state));
      });
}
