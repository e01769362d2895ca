#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <variant>

#include "portwave/coupling/method/dynamic_iteration.hpp"
#include "portwave/coupling/method/splitting.hpp"
#include "portwave/coupling/method/wave_coupling.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The kind of a coupling method, out of the three families.
class MethodKind {
 public:
  // NOLINTBEGIN(google-explicit-constructor): a kind of a family is a kind
  constexpr MethodKind(WaveUpdate kind) : kind_(kind) {}
  constexpr MethodKind(SplittingKind kind) : kind_(kind) {}
  constexpr MethodKind(IterationKind kind) : kind_(kind) {}
  // NOLINTEND(google-explicit-constructor)

  constexpr bool couples_by_waves() const { return is<WaveUpdate>(); }
  /// Whether the kind is of a family: is<SplittingKind>().
  template <typename Kind>
  constexpr bool is() const {
    return std::holds_alternative<Kind>(kind_);
  }
  /// Calls `visitor` with the kind as its family has it.
  template <typename Visitor>
  constexpr decltype(auto) visit(Visitor&& visitor) const {
    return std::visit(std::forward<Visitor>(visitor), kind_);
  }

  constexpr bool operator==(const MethodKind&) const = default;

 private:
  std::variant<WaveUpdate, SplittingKind, IterationKind> kind_;
};

/// The word of scenario files.
std::string_view to_string(MethodKind kind);

/// The coupling of parts, with its options: by waves, by splitting or by dynamic iteration.
/// A family converts to it: `CouplingMethod method = Splitting{.kind = SplittingKind::impulse};`
/// The default is `automatic`, which chooses; `WaveCoupling{}` is plain Douglas–Rachford.
class CouplingMethod {
 public:
  CouplingMethod() : options_(WaveCoupling::automatic()) {}
  // NOLINTBEGIN(google-explicit-constructor): the options of a family are a method
  CouplingMethod(WaveCoupling waves) : options_(std::move(waves)) {}
  CouplingMethod(Splitting splitting) : options_(std::move(splitting)) {}
  CouplingMethod(const DynamicIteration& dynamic) : options_(dynamic) {}
  // NOLINTEND(google-explicit-constructor)

  /// WaveCoupling::automatic.
  static CouplingMethod automatic(double to_tolerance = 1e-10) {
    return WaveCoupling::automatic(to_tolerance);
  }
  /// WaveCoupling::automatic_with_stages.
  static CouplingMethod automatic_with_stages(int stages) {
    return WaveCoupling::automatic_with_stages(stages);
  }
  /// The method of a scenario file that gives the kind alone.
  static CouplingMethod of_kind(MethodKind kind);
  /// The same options with another kind of the family; the defaults of another family's.
  CouplingMethod with_kind(MethodKind kind) const;

  MethodKind kind() const {
    return std::visit([](const auto& options) { return MethodKind(options.kind); }, options_);
  }
  bool couples_by_waves() const { return is<WaveCoupling>(); }

  /// Whether the method is of a family: is<Splitting>().
  template <typename Family>
  bool is() const {
    return std::holds_alternative<Family>(options_);
  }
  /// The options of a family; null when the method is of another one.
  template <typename Family>
  Family* as() {
    return std::get_if<Family>(&options_);
  }
  template <typename Family>
  const Family* as() const {
    return std::get_if<Family>(&options_);
  }

  /// The options of the method's family.
  /// Errors   ConfigError ("/method/kind") when it is of another family.
  WaveCoupling& waves() { return of<WaveCoupling>(); }
  const WaveCoupling& waves() const { return of<WaveCoupling>(); }
  Splitting& splitting() { return of<Splitting>(); }
  const Splitting& splitting() const { return of<Splitting>(); }
  DynamicIteration& dynamic() { return of<DynamicIteration>(); }
  const DynamicIteration& dynamic() const { return of<DynamicIteration>(); }

 private:
  template <typename Family>
  [[noreturn]] void refuse() const;
  template <typename Family>
  Family& of() {
    auto* const options = as<Family>();
    if (options == nullptr) refuse<Family>();
    return *options;
  }
  template <typename Family>
  const Family& of() const {
    const auto* const options = as<Family>();
    if (options == nullptr) refuse<Family>();
    return *options;
  }

  std::variant<WaveCoupling, Splitting, DynamicIteration> options_;
};

/// Its name: the word for its kind, or the name of its own update rule.
std::string_view name_of(const CouplingMethod& method);

/// The budget of an inner iteration, or of each window; 0 for methods that do not iterate.
int iterations_of(const CouplingMethod& method);
/// No effect on methods that do not iterate.
void set_iterations(CouplingMethod& method, int iterations);
/// True when an iteration may end before its budget does.
bool has_tolerance(const CouplingMethod& method);

/// How much evidence a run gathers about its own correctness.
enum class Certify {
  none,    ///< no ledger at all (unless the guard needs one): a step is its states and waves only
  energy,  ///< energy ledger and per-part passivity, every step (nearly free)
  full,    ///< also sampled nonexpansiveness and the Theorem 1 residual, every step
};

}  // namespace portwave
