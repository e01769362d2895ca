#include "portwave/coupling/network/network_method.hpp"

#include <fmt/format.h>

#include "portwave/coupling/network/dynamic_iteration.hpp"
#include "portwave/coupling/network/splitting.hpp"
#include "portwave/subsystems/base/error.hpp"

namespace portwave {

std::unique_ptr<NetworkMethod> make_network_method(const CondensedSystem& system, double step_s,
                                                   const CouplingMethod& method, bool ledger) {
  if (const auto* const splitting = method.as<Splitting>()) {
    return std::make_unique<SplittingMethod>(system, step_s, *splitting, ledger);
  }
  if (const auto* const dynamic = method.as<DynamicIteration>()) {
    return std::make_unique<DynamicIterationMethod>(system, step_s, *dynamic);
  }
  throw ConfigError("/method/kind",
                    fmt::format("\"{}\" couples by waves", to_string(method.kind())));
}

}  // namespace portwave
