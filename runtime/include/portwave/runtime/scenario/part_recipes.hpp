#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"

namespace PORTWAVE_EXPORT portwave {

class Ensemble;
struct EnsembleOptions;
struct Scenario;
class Stepper;
struct StepperOptions;

/// The parameters from which the parts of a scenario were built, so that they can be rebuilt with other
/// numbers. Several threads may use it.
class PartRecipes {
 public:
  /// Parts with matrices are left out: matrices are not changed number by number.
  void add(const std::shared_ptr<const Component>& part, const PartType& type,
           Parameters parameters, bool allow_active);

  /// A number of a part: "mass_kg", or "masses_kg[1]" of a list.
  /// Errors: std::out_of_range with the nearest name; std::invalid_argument where it is no number;
  /// std::logic_error for a part that is not known.
  double value(const Component& part, std::string_view parameter) const;
  /// The part rebuilt with that number changed, and recorded from now on.
  /// Errors: also ConfigError where the number is not allowed.
  std::shared_ptr<const Component> with(const Component& part, std::string_view parameter,
                                        double value);

 private:
  struct Recipe {
    std::weak_ptr<const Component> part;
    const PartType* type;
    bool allow_active;
    /// If all parameters of the type are given and are numbers, truth values or choices: their values in its
    /// order, choices by their index; systems of many parts have little else. Otherwise `others`.
    std::vector<double> numbers;
    std::unique_ptr<const Parameters> others;

    Parameters parameters() const;
  };
  static Recipe recipe(const std::shared_ptr<const Component>& part, const PartType& type,
                       Parameters parameters, bool allow_active);
  /// What a part was built from. Parts that others have built, as from a snapshot, say it themselves, as far
  /// as all of it are numbers, truth values and choices. Errors: std::logic_error.
  struct Known {
    const PartType* type;
    bool allow_active;
    Parameters parameters;
  };
  Known find(const Component& part) const;
  void keep(const std::shared_ptr<const Component>& part, Recipe recipe);

  mutable std::mutex mutex_;
  std::unordered_map<const Component*, Recipe> recipes_;
  std::size_t most_ = 1024;  // before those of destroyed parts are removed
};

/// Changes a number of a part between steps, "load.inertia_kgm2" or "arm.masses_kg[1]"
/// (Stepper::set_component). `stepper` steps the system of `scenario`, or had it given away to it.
/// Errors, nothing having changed: those of PartRecipes and set_component; std::out_of_range for an
/// unknown part, with the nearest name.
void set_parameter(Stepper& stepper, const Scenario& scenario, std::string_view path, double value);
/// Such a number, found once by its path: for changes in a loop.
struct ParameterSlot {
  int part = -1;
  std::string parameter;
};
/// Errors: as set_parameter.
ParameterSlot find_parameter(const Stepper& stepper, const Scenario& scenario,
                             std::string_view path);
void set_parameter(Stepper& stepper, const Scenario& scenario, const ParameterSlot& slot,
                   double value);
/// The same of one replica of an ensemble of this scenario, from its next run on (Ensemble::set_component);
/// the others keep theirs. Errors: those of PartRecipes and of Ensemble::set_component, naming the replica.
void set_parameter(Ensemble& ensemble, const Scenario& scenario, int replica, std::string_view path,
                   double value);
double parameter(const Ensemble& ensemble, const Scenario& scenario, int replica,
                 std::string_view path);
/// One such number and its new value.
struct ParameterChange {
  std::string path;
  double value = 0.0;
};
/// A copy of the scenario's system with some numbers changed, as the replicas of an Ensemble are.
/// Errors: as set_parameter; ConfigError with every number that is not allowed, "part.parameter: …".
System changed_system(const System& system, const Scenario& scenario,
                      std::span<const ParameterChange> changes);
/// An ensemble of the scenario's system: in replica i the parameters `paths` have the values of row i of
/// `values`, [replicas, paths].
/// Errors: those of Ensemble; std::out_of_range for an unknown name; ConfigError with every number that is not
/// allowed, naming replica, part and parameter; std::invalid_argument for another length of `values`.
Ensemble make_ensemble(const System& system, const Scenario& scenario, int replicas,
                       std::span<const std::string> paths, std::span<const double> values,
                       const StepperOptions& options, const EnsembleOptions& ensemble);

/// Its present value. Errors: the same.
double parameter(const Stepper& stepper, const Scenario& scenario, std::string_view path);

}  // namespace portwave
