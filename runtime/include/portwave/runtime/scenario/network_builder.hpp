#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "portwave/coupling/system/system.hpp"
#include "portwave/runtime/scenario/part_recipes.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/options.hpp"
#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/catalogue/catalogue_part.hpp"

namespace PORTWAVE_EXPORT portwave {

/// A port of a part in a NetworkBuilder, by its name or by its number from 0.
struct PortHandle {
  std::uint64_t network = 0;
  int part = -1;
  std::variant<int, std::string> port = 0;
};

/// A part in a NetworkBuilder. `index()` is its number in the system that is built, where no part before it is cut.
class PartHandle {
 public:
  PartHandle() = default;

  int index() const { return index_; }
  PortHandle port(std::string name) const { return {network_, index_, std::move(name)}; }
  PortHandle port(const char* name) const { return port(std::string(name)); }
  PortHandle port(int number) const { return {network_, index_, number}; }

 private:
  friend class NetworkBuilder;
  PartHandle(std::uint64_t network, int index) : network_(network), index_(index) {}

  std::uint64_t network_ = 0;
  int index_ = -1;
};

/// Builds a network in code: parts by name, joints between their ports. It checks nothing until `build`, which
/// reports every defect at once and names the parts.
///
///   NetworkBuilder network("pair");
///   const PartHandle A = network.add("A", parts::mass({.mass_kg = 2, .ports = 2}));
///   const PartHandle B = network.add("B", parts::spring({.stiffness_N_per_m = 50}));
///   network.connect(A.port("port_1"), B.port("left"));
///   …
///   Scenario scenario = network.build({.step_s = 1e-3});
///   Stepper stepper(std::move(scenario.system), scenario.options);
///   set_parameter(stepper, scenario, "A.mass_kg", 3.0);
///
/// Parts of equal type and parameters share one component. A builder over SystemBuilder, which takes components
/// and names. One thread at a time may use it.
class NetworkBuilder {
 public:
  using PartOptions = SystemBuilder::PartOptions;

  explicit NetworkBuilder(std::string name = "network");
  /// Handles of a builder that was moved are those of the new one.
  NetworkBuilder(NetworkBuilder&&) = default;
  NetworkBuilder& operator=(NetworkBuilder&&) = default;

  /// Adds a part. Names are without dots, brackets, blanks, commas and quotes; "cell3/mass" is one.
  PartHandle add(std::string name, CataloguePart part, PartOptions options = {});
  /// The same with a component of the program's own, which has no parameters to change. Null is an error.
  PartHandle add(std::string name, std::shared_ptr<const Component> component,
                 PartOptions options = {});
  /// Adds `count` parts, part i being part_of(i); in `name` "{}" stands for i.
  /// Errors: std::invalid_argument for a name without "{}"; the exceptions of `part_of`.
  std::vector<PartHandle> add_array(int count, std::string_view name,
                                    const std::function<CataloguePart(int)>& part_of);

  /// The initial value of a state by its name, in its unit. States that are not named keep their defaults.
  NetworkBuilder& set_state(PartHandle part, std::string state, double value);
  /// An external input by its name; 0 unless given.
  NetworkBuilder& set_input(PartHandle part, std::string input, Signal signal);

  /// Cuts a linear part into `pieces`, 1 to 10 000, that are stepped in parallel (cut_part). It keeps its names:
  /// "plate.q1", "plate.tip.flow". It takes the steps of the system, so that `substeps` and `damping.conserved` are errors.
  NetworkBuilder& cut(PartHandle part, int pieces);

  /// Joins ports by any joint.
  NetworkBuilder& join(Joint joint, std::vector<PortHandle> ports);
  /// Two ports: equal efforts, opposite flows.
  NetworkBuilder& connect(PortHandle first, PortHandle second);
  /// Two or more ports: one effort, flows that add up to 0; parallel in circuits.
  NetworkBuilder& common_effort(std::vector<PortHandle> ports);
  /// Two or more ports: one flow, efforts that add up to 0; in series in circuits.
  NetworkBuilder& common_flow(std::vector<PortHandle> ports);
  /// Ends a port: effort 0, or flow 0.
  NetworkBuilder& free(PortHandle port);
  NetworkBuilder& fix(PortHandle port);

  int part_count() const { return static_cast<int>(parts_.size()); }
  /// Errors: std::out_of_range for a part of another network.
  const std::string& name_of(PartHandle part) const;

  /// The system with the parameters of its parts (set_parameter) and with `options`; all states are recorded.
  /// Errors: ConfigError with every defect. `where` is "/subsystems/3/parameters/mass_kg" or
  /// "/couplings/0/ports/1", numbers being those of the order of addition; `what` names the parts. It may be
  /// called again, also after more was added: systems that were built share their components.
  Scenario build(const StepperOptions& options = {});

 private:
  struct PendingPart {
    std::string name;
    std::string type;                            ///< for messages
    std::shared_ptr<const Component> component;  ///< null: could not be built
    PartOptions options;
    std::map<std::string, double> states;
    int pieces = 0;  ///< 0: whole
  };
  struct PendingJoint {
    Joint joint;
    std::vector<PortHandle> ports;
  };

  PartHandle keep(PendingPart part);
  /// Null, and noted, where it has defects.
  std::shared_ptr<const Component> component_of(const CataloguePart& part, int index);
  PendingPart* find(PartHandle part, std::string_view to_do);
  std::string path_of(const PortHandle& port, std::size_t joint, std::size_t place);
  void settle_states(int part);
  bool is_any_cut() const;
  System build_cut(const std::vector<std::vector<std::string>>& ports);
  void add_issue(std::string where, std::string what);
  std::string parts_in_words(const Issue& issue) const;
  void name_parts(Issues& issues) const;

  std::string name_;
  std::uint64_t network_;
  std::vector<PendingPart> parts_;
  std::vector<PendingJoint> joints_;
  std::shared_ptr<PartRecipes> recipes_ = std::make_shared<PartRecipes>();
  std::unordered_map<std::string, std::shared_ptr<const Component>> alike_;
  Issues issues_;
};

}  // namespace portwave
