// Structures that turn with the state, in steps far longer than what they rule takes.

#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/subsystems/catalogue/parts.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"
#include "support/free_motion.hpp"
#include "support/lane_major.hpp"

namespace portwave::test_heat_exchange {
namespace {

using Numbers = std::vector<double>;
using Given = parts::PortHamiltonianParameters;

/// Four bodies that exchange heat, T = exp(S/c), so fast that they are at one temperature after a thousandth of a step;
/// then differences of temperatures are rounding, which fast exchange makes large. The steps are the equations' own,
/// S⁺ = S + h (J(middle) T + u), written again, with T⁺ for T where they are damped, else its mean.
TEST(HeatExchange, IsSolvedWhereItIsFarFasterThanAStep) {
  constexpr int kBodies = 4, kSteps = 204;
  constexpr double c[] = {0.939253785772319, 6.171795380465242, 0.24334014614198254,
                          0.14048883430044862};
  constexpr double g[] = {8651.44503807153, 0.04921596594962577, 44206.27509041078};
  constexpr double h = 1.0 / kSteps;
  const auto temperature = [&](std::size_t k) { return fmt::format("exp(S{}/{})", k, c[k]); };
  Given given{.states = {}, .ports = {}, .inputs = {{"entropy", "W/K"}}, .energy = "0"};
  std::vector<std::vector<std::string>> J(kBodies, std::vector<std::string>(kBodies, "0"));
  given.G = {{1}, {0}, {0}, {0}};
  for (std::size_t k = 0; k < kBodies; ++k) {
    given.states.push_back({fmt::format("S{}", k), "J/K"});
    given.energy += fmt::format(" + {}*{}", c[k], temperature(k));
  }
  for (std::size_t k = 0; k + 1 < kBodies; ++k) {
    const std::string cold = temperature(k), hot = temperature(k + 1);
    const std::string flow = fmt::format("{0}*({2} - {1})/({1}*{2})", g[k], cold, hot);
    J[k][k + 1] = flow;
    J[k + 1][k] = fmt::format("-({})", flow);
  }
  given.J = J;
  for (const bool is_damped : {true, false}) {
    const StageRule rule = is_damped ? damped(gauss_stages(1)) : gauss_stages(1);
    const auto part = staged_part(parts::port_hamiltonian(given).build(), rule);
    testing::LaneMajor map = testing::batch_of_one(*part);
    map.prepare(h, nullptr);
    Numbers x = {-0.2354980513798109, 0.3736595839017129, -0.10895135048881817,
                 0.03464478008676662};
    for (int step = 0; step < kSteps; ++step) {
      const double u = step < 2    ? 0.7537738286052748
                       : step < 61 ? 0.07056062301494154
                                   : 0.8153571094596725;
      Numbers next(kBodies);
      StepEnergy energy;
      map.freeze({0, 1}, x.data(), &u);
      ASSERT_TRUE(map.advance({0, 1}, nullptr, next.data(), nullptr, &energy).ok()) << step;
      for (std::size_t k = 0; k < kBodies; ++k) {
        double change = k == 0 ? h * u : 0.0, noise = std::abs(change);
        for (const std::size_t i : {k - 1, k}) {  // the exchange of i with i + 1
          if (i >= kBodies - 1) continue;
          const auto middle = [&](std::size_t j) {
            return std::exp(0.5 * (x[j] + next[j]) / c[j]);
          };
          const auto felt = [&](std::size_t j) {
            const double moved = (next[j] - x[j]) / c[j];
            if (is_damped || moved == 0.0) return std::exp(next[j] / c[j]);
            return std::exp(x[j] / c[j]) * std::expm1(moved) / moved;
          };
          const double cold = middle(i), hot = middle(i + 1);
          const std::size_t other = k == i ? i + 1 : i;
          const double rate = h * g[i] * felt(other) / (cold * hot);
          change += (k == i ? 1.0 : -1.0) * rate * (hot - cold);
          noise += rate * (hot + cold);
        }
        EXPECT_NEAR(next[k] - x[k], change, 1e-14 * noise + 1e-12)
            << "body " << k << " step " << step;
      }
      x = next;
    }
  }
}

}  // namespace
}  // namespace portwave::test_heat_exchange
