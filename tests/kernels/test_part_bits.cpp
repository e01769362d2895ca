// Parts whose steps are kernels give the same bits on every instruction set, and those that are set
// up without Eigen on every architecture.

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/numbers.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/catalogue/parts.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_resistance.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"
#include "support/instruction_sets.hpp"
#include "support/lane_major.hpp"

namespace portwave {
namespace {

using testing::Digest;
using Random = testing::Numbers;
using Parts = std::vector<std::shared_ptr<const Component>>;

DuffingOscillatorParameters duffing_parameters(Random& random) {
  return {.mass_kg = random(0.5, 8.0),
          .stiffness_N_per_m = random(0.0, 100.0),
          .cubic_stiffness_N_per_m3 = random(0.0, 8000.0),
          .damping_Ns_per_m = random(0.0, 0.5),
          .coupling_stiffness_N_per_m = random(0.0, 120.0),
          .coupling_damping_Ns_per_m = random(0.0, 0.1)};
}

/// A linear part without a zero anywhere: `ports` scalar ports of either causality, two inputs.
std::unique_ptr<Subsystem> linear_part(int ports, Random& random) {
  const int n = ports + 2, inputs = ports + 2;
  Eigen::MatrixXd root(n + inputs, n + inputs);
  for (double& v : root.reshaped()) v = random(-0.6, 0.6);
  const Eigen::MatrixXd dissipation = root * root.transpose();
  Structure s = Structure::zero(n, inputs);
  const auto fill = [](SparseMatrix& to, const Eigen::MatrixXd& from) { to = from.sparseView(); };
  Eigen::MatrixXd J(n, n), N(inputs, inputs), G(n, inputs), Q(n, n);
  for (double& v : J.reshaped()) v = random(-1, 1);
  for (double& v : N.reshaped()) v = random(-1, 1);
  for (double& v : G.reshaped()) v = random(-1, 1);
  for (double& v : Q.reshaped()) v = random(-1, 1);
  fill(s.J, J - J.transpose());
  fill(s.R, dissipation.topLeftCorner(n, n));
  fill(s.G, G);
  fill(s.P, dissipation.topRightCorner(n, inputs));
  fill(s.S, dissipation.bottomRightCorner(inputs, inputs));
  fill(s.N, N - N.transpose());
  Signature signature{"dense", {}, {}, {{"u1", ""}, {"u2", ""}}};
  for (int i = 0; i < n; ++i) signature.states.push_back({"x" + std::to_string(i), ""});
  for (int j = 0; j < ports; ++j) {
    signature.ports.push_back({"p" + std::to_string(j),
                               j % 2 == 0 ? Causality::effort_in : Causality::flow_in,
                               Domain::generic, 1});
  }
  SparseMatrix storage = (Q * Q.transpose() + Eigen::MatrixXd::Identity(n, n)).sparseView();
  LinearPortHamiltonian::Options options;
  options.storage = StepMapStorage::dense;
  return std::make_unique<LinearPortHamiltonian>(signature, s, storage, options);
}

/// Friction that sticks, slides and does both, at ports of either causality.
std::unique_ptr<Subsystem> saturating_part(int ports, Random& random) {
  Signature signature{"saturating", {}, {}, {}};
  for (int j = 0; j < ports; ++j) {
    signature.ports.push_back({"p" + std::to_string(j),
                               j % 2 == 0 ? Causality::flow_in : Causality::effort_in,
                               Domain::generic, 1});
  }
  return std::make_unique<NonlinearResistance>(
      std::move(signature),
      SaturatingLaw{
          .saturation = random(0.0, 4.0), .reach = random(1e-4, 0.5), .slope = random(0.0, 0.2)});
}

/// A free body with limbs on each kind of joint.
std::shared_ptr<const Component> robot(Random& random) {
  Parameters p;
  p["joints"] = std::vector<std::string>{"revolute", "prismatic", "spherical", "revolute"};
  p["parents"] = std::vector<double>{0, 1, 1, 3};
  p["places_m"] = MatrixRows{{0, 0, 0}, {0.3, 0, 0.1}, {-0.3, 0.1, 0}, {0, 0, -0.4}};
  p["axes"] = MatrixRows{{0, 1, 0}, {0, 0, 1}, {0, 0, 1}, {1, 1, 0}};
  p["masses_kg"] = std::vector<double>{random(3, 5), random(1, 2), 1.5, 0.7};
  p["centres_m"] =
      MatrixRows{{0.05, 0, 0.1}, {0.2, 0, 0}, {-0.2, 0, 0.1}, {0, 0, random(-0.3, -0.2)}};
  p["inertias_kgm2"] = MatrixRows{{0.4, 0, 0.02, 0.5, 0, 0.3},
                                  {0.03, 0, 0, 0.06, 0, 0.06},
                                  {0.12, 0, 0, 0.15, 0, 0.15},
                                  {0.06, 0, 0, 0.06, 0, 0.01}};
  p["damping"] = std::vector<double>{0.3, 0.2, 0.1, 0.1};
  return make_part("articulated", std::move(p));
}

/// Its mean gradient is a program with exponentials.
std::shared_ptr<const Component> toda_spring() {
  return parts::port_hamiltonian({.states = {{"q", "m"}, {"p", "kg m/s"}},
                                  .ports = {{"port", Causality::effort_in, Domain::translation, 1}},
                                  .energy = "p^2/2 + exp(q) - q - 1 + sin(q)^2",
                                  .J = {{0, 1}, {-1, 0}},
                                  .R = {{0, 0}, {0, 0.1}},
                                  .G = {{0}, {-1}}});
}

std::shared_ptr<const Component> pendulum(Random& random) {
  return parts::pendulum({.mass_kg = random(0.5, 2.0),
                          .length_m = random(0.2, 0.8),
                          .damping_Nms_per_rad = random(0.0, 0.1)});
}

/// Equal parts share their coefficients, different ones do not.
template <class Make>
Parts make_parts(int lanes, bool shared, const Make& make) {
  Parts parts;
  Random random(17);
  Random same = random;
  for (int l = 0; l < lanes; ++l) {
    if (shared) random = same;
    parts.push_back(make(random));
  }
  return parts;
}

/// Freezes, scatters many times, advances; `nudge` moves the incident waves of one
/// step by one bit.
Digest run(const Parts& parts, bool shared, bool nudge) {
  std::vector<const Component*> pointers;
  for (const auto& part : parts) pointers.push_back(part.get());
  testing::LaneMajor map(parts[0]->make_batch(pointers));
  StepBatch& batch = map.batch();
  const int lanes = batch.lanes();
  const LaneRange all{0, lanes};
  const auto size = [&](int per_lane) { return static_cast<std::size_t>(lanes * per_lane); };
  Random random(5);
  const auto draw = [&](std::size_t count, double low, double high) {
    return random.draw(static_cast<int>(count), low, high);
  };
  std::vector<double> gamma = draw(size(batch.wave_size()), 0.2, 5.0);
  if (shared) std::fill(gamma.begin(), gamma.end(), 0.7);
  map.prepare(0.02, gamma.data());
  std::vector<double> x = draw(size(batch.state_size()), -1, 1), b(gamma.size()), x_next(x.size());
  std::vector<StepEnergy> energy(size(1));
  Digest digest;
  for (int n = 0; n < 12; ++n) {
    const std::vector<double> input = draw(size(batch.input_size()), -1, 1);
    map.freeze(all, x.data(), n % 3 == 0 ? nullptr : input.data());
    double spread = 1.0;
    for (int k = 0; k < 8; ++k, spread *= 0.05) {
      // From far apart to close together, as an iteration converges.
      std::vector<double> a = draw(gamma.size(), -1, 1);
      for (double& v : a) v = 0.3 + spread * v;
      if (nudge && n == 3) {
        for (double& v : a) testing::nudge(v);
      }
      const bool commit = k == 7;
      const LaneStatus status =
          commit ? map.advance(all, a.data(), x_next.data(), b.data(), energy.data())
                 : map.scatter(all, a.data(), b.data());
      EXPECT_TRUE(status.ok());
      digest.add_all(b);
    }
    digest.add_all(x_next);
    for (const StepEnergy& e : energy) {
      digest.add_all(std::vector{e.change_J, e.external_supply_J, e.dissipated_J});
    }
    x = x_next;
  }
  return digest;
}

template <class Make>
void print(const std::string& name, const Make& make) {
  for (const int lanes : {1, 8, 21}) {
    for (const bool shared : {true, false}) {
      const Parts parts = make_parts(lanes, shared, make);
      const std::string full =
          name + "_" + std::to_string(lanes) + (shared ? "_shared" : "_different");
      run(parts, shared, false).print(full);
      run(parts, shared, true).print(full + "'");
    }
  }
}

// Run in processes of its own.
const testing::DigestSuite kPartBitsDigests("PartBits", [] {
  print("duffing_oscillator", [](Random& r) { return duffing_oscillator(duffing_parameters(r)); });
  print("duffing_node", [](Random& r) { return duffing_node(duffing_parameters(r)); });
  for (const int stages : {2, 3}) {
    const std::string suffix = "_" + std::to_string(stages) + "_stages";
    print("duffing_oscillator" + suffix, [stages](Random& r) {
      return staged_part(duffing_oscillator(duffing_parameters(r)), stages);
    });
    print("duffing_node" + suffix,
          [stages](Random& r) { return staged_part(duffing_node(duffing_parameters(r)), stages); });
  }
  for (const int stages : {2, 3}) {
    print("articulated_" + std::to_string(stages) + "_stages",
          [stages](Random& r) { return staged_part(robot(r), stages); });
  }
  print("pendulum", pendulum);
  print("toda_spring", [](Random& /*r*/) { return toda_spring(); });
  for (const int ports : {1, 2}) {
    print("saturating_" + std::to_string(ports),
          [ports](Random& r) { return saturating_part(ports, r); });
  }
  for (const int ports : {1, 2, 3, 4, 5}) {
    print("linear_" + std::to_string(ports), [ports](Random& r) { return linear_part(ports, r); });
  }
});

TEST(PartBits, AreTheSameOnEveryInstructionSet) { testing::expect_equal_digests("PartBits", 204); }

#ifdef PORTWAVE_OTHER_PROGRAM
TEST(PartBits, AreTheSameOnAnotherArchitecture) {
  // Step maps of linear parts are products and factors of Eigen, which fuses multiply and add where
  // the architecture has it, as do the maps of pendula and parts by expressions; and robots and exponentials that
  // do not cancel take functions of the C library.
  testing::expect_digests_of(PORTWAVE_OTHER_PROGRAM, "PartBits", 48, [](const std::string& name) {
    return !name.starts_with("linear_") && !name.starts_with("articulated_") &&
           !name.starts_with("pendulum") && !name.starts_with("toda_spring");
  });
}
#endif

}  // namespace
}  // namespace portwave
