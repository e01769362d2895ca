#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "portwave/runtime/step/stepper.hpp"

namespace portwave {

class StateArchive;

/// Everything that determines the steps of a stepper, beside its state: the system, with the parameters of
/// its parts, its inputs and the laws of its couplings, and the options that steps depend on. Two
/// steppers with equal identities continue alike from one snapshot.
///
/// It is kept as numbers that stand for these; the system has their names. It leaves out the start of a run
/// (initial states and waves, the first energy of tanks, initial values of blocks of a signal graph), as a
/// snapshot brings its own; threads and the like, on which no result depends; and the behaviour of
/// callbacks, which is unknown.
class StepIdentity {
 public:
  StepIdentity() = default;
  /// `given`: the options of the stepper. `resolved`: the method in use.
  StepIdentity(const System& system, const StepperOptions& given, const CouplingMethod& resolved);
  /// The same with other components of some parts.
  StepIdentity with(const std::map<int, std::shared_ptr<const Component>>& components) const;
  /// Parts whose parameters differ; empty also where something else does, and where nothing does.
  std::vector<int> parts_that_differ(const StepIdentity& other) const;
  /// The parameters of a part, as they were recorded (BuiltFrom).
  std::vector<std::uint64_t> parameters_of(std::size_t part) const;
  /// The identity of the options alone.
  StepIdentity(const StepperOptions& given, const CouplingMethod& resolved);

  friend bool operator==(const StepIdentity&, const StepIdentity&) = default;
  std::uint64_t digest() const;
  /// The differences to another one, part by part and option by option, the first few by name. This one is
  /// that of the arguments. Empty if they are equal.
  std::string difference(const StepIdentity& other, const System& system,
                         const StepperOptions& given, const CouplingMethod& resolved) const;
  /// Errors, reading: StateArchive::Mismatch.
  void archive(StateArchive& archive);

 private:
  class Sets;
  void add_parts(const System& system);
  void add_junctions(const System& system);

  std::vector<std::uint64_t> options_;
  std::vector<std::uint64_t> shapes_;  // by part: its name, type, states, ports, inputs
  // Parameters, by part: one of some sets, each of which begins somewhere in `values_`. Sets are in the
  // order of the parts that have them first, and no two are equal.
  std::vector<std::uint32_t> set_of_part_;
  std::vector<std::uint64_t> set_begin_;
  std::vector<std::uint64_t> values_;
  std::vector<std::uint64_t> inputs_;                          // of all parts, input by input
  std::vector<std::uint64_t> junction_ports_, junction_laws_;  // by junction
};

/// The digest of what all processes that step a system together have alike before it is discretised: the
/// system with its initial states, and options. Slices are systems of their own, with impedances for
/// their own ports; of them only the other options count.
std::uint64_t digest_of_inputs(const System& system, const StepperOptions& options);

}  // namespace portwave
