#include "portwave/coupling/method/method.hpp"

#include <fmt/format.h>

#include "portwave/coupling/method/method_table.hpp"
#include "portwave/subsystems/base/error.hpp"

namespace portwave {
namespace {

/// See CouplingMethod::with_kind.
struct WithKind {
  const CouplingMethod& own;

  CouplingMethod operator()(WaveUpdate kind) const { return changed<WaveCoupling>(kind); }
  CouplingMethod operator()(SplittingKind kind) const { return changed<Splitting>(kind); }
  CouplingMethod operator()(IterationKind kind) const { return changed<DynamicIteration>(kind); }

 private:
  template <typename Family, typename Kind>
  CouplingMethod changed(Kind kind) const {
    const auto* const options = own.as<Family>();
    Family with_kind = options != nullptr ? *options : Family{};
    with_kind.kind = kind;
    return with_kind;
  }
};

/// See CouplingMethod::of_kind.
struct OfKind {
  CouplingMethod operator()(WaveUpdate kind) const { return WaveCoupling::of_kind(kind); }
  CouplingMethod operator()(SplittingKind kind) const { return Splitting{.kind = kind}; }
  CouplingMethod operator()(IterationKind kind) const { return DynamicIteration{.kind = kind}; }
};

}  // namespace

CouplingMethod CouplingMethod::of_kind(MethodKind kind) { return kind.visit(OfKind{}); }

CouplingMethod CouplingMethod::with_kind(MethodKind kind) const {
  const WithKind with{*this};
  return kind.visit(with);
}

template <typename Family>
void CouplingMethod::refuse() const {
  const MethodFamily& wanted = family_of(MethodKind(Family{}.kind));
  throw ConfigError("/method/kind",
                    fmt::format("the method is \"{}\" ({}): it has no options of {}",
                                to_string(kind()), family_of(kind()).title, wanted.title));
}
template void CouplingMethod::refuse<WaveCoupling>() const;
template void CouplingMethod::refuse<Splitting>() const;
template void CouplingMethod::refuse<DynamicIteration>() const;

std::string_view name_of(const CouplingMethod& method) {
  const auto* const waves = method.as<WaveCoupling>();
  return waves != nullptr ? name_of(*waves) : to_string(method.kind());
}

int iterations_of(const CouplingMethod& method) {
  if (const auto* const waves = method.as<WaveCoupling>()) return waves->iterations;
  const auto* const dynamic = method.as<DynamicIteration>();
  return dynamic != nullptr ? dynamic->iterations : 0;
}

void set_iterations(CouplingMethod& method, int iterations) {
  if (auto* const waves = method.as<WaveCoupling>()) waves->iterations = iterations;
  if (auto* const dynamic = method.as<DynamicIteration>()) dynamic->iterations = iterations;
}

bool has_tolerance(const CouplingMethod& method) {
  if (const auto* const waves = method.as<WaveCoupling>()) {
    return waves->tolerance > 0.0 || waves->energy_tolerance_J > 0.0;
  }
  const auto* const dynamic = method.as<DynamicIteration>();
  return dynamic != nullptr && dynamic->tolerance > 0.0;
}

}  // namespace portwave
