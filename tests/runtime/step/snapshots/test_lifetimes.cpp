#include <span>
#include <type_traits>

#include <gtest/gtest.h>

#include "portwave/coupling/impedance/tuning.hpp"
#include "portwave/coupling/network/collocation.hpp"
#include "portwave/coupling/network/condensed.hpp"
#include "portwave/coupling/network/dynamic_iteration.hpp"
#include "portwave/coupling/network/splitting.hpp"
#include "portwave/coupling/reference/monolithic.hpp"
#include "portwave/coupling/waves/anderson.hpp"
#include "portwave/coupling/waves/residual.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/runtime/step/stepper.hpp"

// Whatever keeps the address of what it is made from takes no temporary of it.

namespace portwave::test_lifetimes {
namespace {

/// Made from an object that lives on, but not from a temporary.
template <class Made, class From, class... More>
constexpr bool keeps_to_the_living = std::is_constructible_v<Made, From&, More...>&&
                                         std::is_constructible_v<Made, const From&, More...> &&
                                     !std::is_constructible_v<Made, From, More...> &&
                                     !std::is_constructible_v<Made, const From, More...>;

using Impedance = std::span<const double>;
using Grouping = WaveDiscretisation::Grouping;

static_assert(keeps_to_the_living<MonolithicReference, System, double>);
static_assert(
    keeps_to_the_living<MonolithicReference, System, double, MonolithicReference::Options>);
static_assert(keeps_to_the_living<WaveDiscretisation, System, double, Impedance>);
static_assert(keeps_to_the_living<WaveDiscretisation, System, double, Impedance, Grouping>);
static_assert(keeps_to_the_living<PortResponses, System, double>);
static_assert(keeps_to_the_living<CondensedSystem, System>);
static_assert(keeps_to_the_living<WaveformIteration, CondensedSystem, double, DynamicIteration>);
static_assert(
    keeps_to_the_living<DynamicIterationMethod, CondensedSystem, double, DynamicIteration>);
static_assert(keeps_to_the_living<SplittingMethod, CondensedSystem, double, Splitting>);
static_assert(keeps_to_the_living<SplittingMethod, CondensedSystem, double, Splitting, bool>);
static_assert(keeps_to_the_living<CollocationReference, CondensedSystem, double, Integrator>);
static_assert(keeps_to_the_living<CollocationReference, CondensedSystem, double, Tableau>);
static_assert(keeps_to_the_living<InterfaceResidual, WaveDiscretisation>);
static_assert(keeps_to_the_living<Acceleration, WaveDiscretisation, int>);

template <class System>
concept CanMakeNetworkMethod = requires(System&& system, const CouplingMethod& method) {
  make_network_method(std::forward<System>(system), 0.1, method);
};
static_assert(CanMakeNetworkMethod<const CondensedSystem&>);
static_assert(!CanMakeNetworkMethod<CondensedSystem>);

TEST(Lifetimes, SteppersTakeTemporariesOver) {
  EXPECT_TRUE((std::is_constructible_v<Stepper, System, StepperOptions>));
  EXPECT_FALSE((std::is_constructible_v<Stepper, const System, StepperOptions>));
}

}  // namespace
}  // namespace portwave::test_lifetimes
