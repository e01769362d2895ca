#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <portwave/subsystems/core/signal.hpp>

#include "soak/physics.hpp"
#include "support/files/source_folder.hpp"

namespace portwave::soak {
namespace {

using Wide = long double;
using Json = nlohmann::json;

constexpr double kStep_s = 0.01;

/// A scenario of the examples. How long it takes is up to whoever steps it.
Json example(const std::string& name) {
  std::ifstream file(testing::source_file("examples/" + name + ".json"));
  Json json = Json::parse(file);
  json["time"] = {{"step_s", kStep_s}, {"steps", 1}};
  return json;
}

Setup setup(const Json& json, std::unique_ptr<Physics> physics, bool conserves) {
  return {parse_scenario(json.dump(), "soak", {}), std::move(physics), conserves};
}

Wide square(Wide v) { return v * v; }

/// The two oscillators of examples/lossless_pair.json: joined mass to mass they are one, with the sum
/// of masses and of stiffnesses, and the midpoint step turns its phase by 2 atan(ωh/2).
class PairOfOscillators final : public Physics {
 public:
  PairOfOscillators(double step_s, double offset_m) : offset_m_(offset_m) {
    angle_ = 2.0L * std::atan(0.5L * step_s * std::sqrt((kA + kB) / (mA + mB)));
  }

  Wide stored_J(const Stepper& stepper) const override {
    const auto a = stepper.state(0), b = stepper.state(1);
    return 0.5L * (kA * square(a[0]) + mA * square(a[1]) + kB * square(b[0]) + mB * square(b[1]));
  }
  std::optional<Wide> error(const Stepper& stepper) const override {
    if (offset_m_ == 0.0) return std::nullopt;
    const Wide phase = angle_ * static_cast<Wide>(stepper.step_index());
    const Wide expected = offset_m_ * std::cos(phase);
    const auto a = stepper.state(0), b = stepper.state(1);
    return std::max(std::abs(a[0] - expected), std::abs(b[0] + expected)) / offset_m_;
  }
  /// An ε of the step map is the same in every step, and adds up.
  double allowed_error(std::int64_t steps) const override {
    return 1e-13 + 4e-16 * static_cast<double>(steps);
  }

 private:
  static constexpr Wide kA = 10, kB = 20, mA = 1, mB = 1.5L;
  double offset_m_;
  Wide angle_;
};

Setup lossless_pair(double active_Ns_per_m) {
  Json json = example("lossless_pair");
  json["method"] = {{"kind", "auto"}};
  Json& parameters = json["subsystems"][1]["parameters"];
  if (active_Ns_per_m > 0.0) {
    parameters["damping_Ns_per_m"] = -active_Ns_per_m;
    json["subsystems"][1]["allow_active"] = true;
  }
  return setup(json, std::make_unique<PairOfOscillators>(kStep_s, 1.0), true);
}

/// As published, with a budget that leaves an error in every step: the guard has to keep the account.
Setup pair_in_a_hurry(double) {
  Json json = example("lossless_pair");
  json["method"] = {{"kind", "douglas-rachford"},
                    {"iterations", 3},
                    {"impedance", {{"kind", "uniform"}, {"value", 20}}}};
  return setup(json, std::make_unique<PairOfOscillators>(kStep_s, 0.0), false);
}

/// Masses, each joined with a damper that brings it to rest, by way of numbers too small to have all
/// their digits. Every other one hangs on a spring; the others stay where they are, and slow down for
/// as long as there is a number less than their speed.
class MassesWithDampers final : public Physics {
 public:
  static constexpr int kCount = 16;
  static double stiffness(int i) { return i % 2 == 0 ? 10.0 : 0.0; }

  Wide stored_J(const Stepper& stepper) const override {
    Wide energy = 0.0L;
    for (int i = 0; i < kCount; ++i) {
      const auto x = stepper.state(2 * i);
      energy += 0.5L * (stiffness(i) * square(x[0]) + 2.0L * square(x[1]));
    }
    return energy;
  }
};

Setup coming_to_rest(double) {
  Json json = example("lossless_pair");
  json["method"] = {{"kind", "auto"}};
  Json parts = Json::array(), couplings = Json::array();
  for (int i = 0; i < MassesWithDampers::kCount; ++i) {
    parts.push_back({{"name", fmt::format("mass_{}", i)},
                     {"type", "linear_oscillator"},
                     {"parameters",
                      {{"mass_kg", 2},
                       {"stiffness_N_per_m", MassesWithDampers::stiffness(i)},
                       {"damping_Ns_per_m", 0}}},
                     {"initial_state", {{"q2", 1.0 + i}, {"v2", 1.0}}}});
    parts.push_back({{"name", fmt::format("damper_{}", i)},
                     {"type", "damper"},
                     {"parameters", {{"damping_Ns_per_m", 2}}}});
    couplings.push_back(
        {{"kind", "connection"},
         {"ports", {fmt::format("mass_{}.coupling", i), fmt::format("damper_{}.left", i)}}});
    couplings.push_back({{"kind", "fixed"}, {"ports", {fmt::format("damper_{}.right", i)}}});
  }
  json["subsystems"] = parts;
  json["couplings"] = couplings;
  json["outputs"]["observe"] = {"mass_0.q2"};
  return setup(json, std::make_unique<MassesWithDampers>(), false);
}

/// examples/chain_64.json: blocks of five masses, the last without a spring at its end, and forces on
/// the first masses of some blocks.
class Chain final : public Physics {
 public:
  static constexpr std::array<int, 4> kDriven = {0, 20, 41, 63};

  explicit Chain(double step_s) : step_s_(step_s) {
    for (std::size_t i = 0; i < kDriven.size(); ++i) {
      noise_[i] = Signal::noise({.standard_deviation = 2.0, .interval_s = 0.05, .seed = i + 1});
    }
  }

  Wide stored_J(const Stepper& stepper) const override {
    Wide energy = 0.0L;
    for (int block = 0; block < kBlocks; ++block) {
      const auto x = stepper.state(block);
      for (std::size_t i = 0; i < 5; ++i) {
        energy += 0.5L * 0.3 * square(x[2 * i + 1]);
        if (i < 4) energy += 0.5L * 50.0L * square(static_cast<Wide>(x[2 * i + 2]) - x[2 * i]);
      }
      if (block < kBlocks - 1) energy += 0.5L * 50.0L * square(x[10]);
    }
    return energy;
  }
  /// Of a step of the midpoint rule: h F(t + h/2) times the mean velocity.
  Wide supplied_J(const Stepper& stepper) override {
    const Wide middle_s = (static_cast<Wide>(stepper.step_index()) - 0.5L) * step_s_;
    Wide work = 0.0L;
    for (std::size_t i = 0; i < kDriven.size(); ++i) {
      const Wide speed = stepper.state(kDriven[i])[1];
      work += step_s_ * noise_[i](static_cast<double>(middle_s)) * 0.5L * (speed + before_[i]);
      before_[i] = speed;
    }
    return work;
  }

 private:
  static constexpr int kBlocks = 64;
  Wide step_s_;
  std::array<Signal, kDriven.size()> noise_;
  std::array<Wide, kDriven.size()> before_ = {};
};

Setup chain_64_noise(double) {
  Json json = example("chain_64");
  json["method"] = {{"kind", "auto"}};
  for (std::size_t i = 0; i < Chain::kDriven.size(); ++i) {
    json["subsystems"][static_cast<std::size_t>(Chain::kDriven[i])]["inputs"]["force_1"] = {
        {"kind", "noise"}, {"standard_deviation", 2}, {"interval_s", 0.05}, {"seed", i + 1}};
  }
  return setup(json, std::make_unique<Chain>(kStep_s), false);
}

/// The same chain without forces.
class UndrivenChain final : public Physics {
 public:
  Wide stored_J(const Stepper& stepper) const override { return chain_.stored_J(stepper); }

 private:
  Chain chain_{kStep_s};
};

/// Without dampers and forces, by splitting.
Setup split_chain(double) {
  Json json = example("chain_64");
  json["method"] = {{"kind", "strang"}};
  for (Json& block : json["subsystems"]) block["parameters"]["damping_Ns_per_m"] = 0;
  return setup(json, std::make_unique<UndrivenChain>(), true);
}

/// Far from the origin and ever farther.
Setup coasting_chain(double) {
  Json json = example("chain_64");
  json["method"] = {{"kind", "auto"}};
  for (Json& block : json["subsystems"]) {
    block["parameters"]["damping_Ns_per_m"] = 0;
    Json& start = block["initial_state"] = Json::object();
    for (int i = 1; i <= 5; ++i) {
      start[fmt::format("q{}", i)] = 1e6;
      start[fmt::format("v{}", i)] = 10.0;
    }
  }
  json["subsystems"][0]["initial_state"]["q1"] = 1e6 - 0.125;
  return setup(json, std::make_unique<UndrivenChain>(), true);
}

/// examples/crane.json to and fro without end, into its buffer and its stop in every period.
class Crane final : public Physics {
 public:
  static constexpr int kEvery = 5;

  explicit Crane(double step_s) : step_s_(step_s) {}

  void begin(const Stepper& stepper) override {
    clock_ = static_cast<std::size_t>(find_quantity(stepper, "clock").index);
    drive_ = static_cast<std::size_t>(find_quantity(stepper, "drive").index);
    take(stepper);
  }
  Wide stored_J(const Stepper& stepper) const override {
    const auto x = stepper.state(0);
    // [m_t, ml cos q; ml cos q, ml²] v = p
    const Wide cosine = std::cos(static_cast<Wide>(x[1])), half = std::sin(0.5L * x[1]);
    const Wide total = 1500.0L, moment = 6000.0L * cosine, inertia = 36000.0L;
    const Wide determinant = total * inertia - moment * moment;
    const Wide speed = (inertia * x[2] - moment * x[3]) / determinant;
    const Wide rate = (total * x[3] - moment * x[2]) / determinant;
    Wide energy = 0.5L * (x[2] * speed + x[3] * rate) + 2.0L * 6000.0L * kGravity * half * half;
    for (const int part : {1, 2}) {
      const Wide d = stepper.state(part)[0];
      const Wide into = std::max<Wide>(0.0L, part == 1 ? -d - 12.0L : d - 0.5L);
      energy += 0.5L * (20000.0L / 0.1L) * into * into;
    }
    return energy;
  }
  /// The force is held over the step, and its work is what it moves the trolley by.
  Wide supplied_J(const Stepper& stepper) override {
    const Wide work = force_ * (stepper.state(0)[0] - position_);
    take(stepper);
    return work;
  }
  /// After every step the graph has been sampled for the next one if that is a multiple.
  std::string samples(const Stepper& stepper) override {
    const std::int64_t step = stepper.step_index();
    const std::int64_t sample = step - step % kEvery;
    const double expected = static_cast<double>(sample) * step_s_;
    const double found = stepper.signals()[clock_];
    if (found == expected) return {};
    return fmt::format("the controller sampled for step {} at {:.17g} s instead of {:.17g} s", step,
                       found, expected);
  }

 private:
  static constexpr Wide kGravity = 9.81L;

  void take(const Stepper& stepper) {
    position_ = stepper.state(0)[0];
    force_ = stepper.signals()[drive_];
  }

  double step_s_;
  std::size_t clock_ = 0, drive_ = 0;  // signals
  Wide position_ = 0.0L, force_ = 0.0L;
};

Setup controllers_and_contact(double) {
  Json json = example("crane");
  json["time"]["step_s"] = 0.002;
  Json blocks = Json::array();
  blocks.push_back({{"name", "clock"}, {"kind", "ramp"}, {"slope_per_s", 1}});
  blocks.push_back({{"name", "to"},
                    {"kind", "expression"},
                    {"expression", "6 - 7.5*cos(2*pi*u1/30)"},
                    {"signals", {"clock"}}});
  blocks.push_back({{"name", "to_rate"},
                    {"kind", "expression"},
                    {"expression", "0.5*pi*sin(2*pi*u1/30)"},
                    {"signals", {"clock"}}});
  for (const Json& block : json["signals"]["blocks"]) {
    if (block["name"] != "path") blocks.push_back(block);
    if (block["name"] != "feedback") continue;
    blocks.back()["signals"]["to"] = "to";
    blocks.back()["signals"]["to_rate"] = "to_rate";
  }
  json["signals"] = {{"every", Crane::kEvery}, {"blocks", blocks}};
  json["outputs"]["observe"] = {"crane.position", "crane.angle", "drive", "buffer.approach"};
  return setup(json, std::make_unique<Crane>(0.002), false);
}

/// examples/published_douglas_rachford.json without its damper, in steps of its own choice.
class DuffingPair final : public Physics {
 public:
  Wide stored_J(const Stepper& stepper) const override {
    const auto a = stepper.state(0), b = stepper.state(1);
    return 0.5L * (8.0L * square(a[1]) + 100.0L * square(a[0]) + 120.0L * square(a[2]) +
                   4.0L * square(b[1]) + 50.0L * square(b[0])) +
           0.25L * 8000.0L * square(square(a[0]));
  }
};

Setup adaptive_steps(double) {
  Json json = example("published_douglas_rachford");
  json["subsystems"][0]["parameters"]["coupling_damping_Ns_per_m"] = 0;
  json["time"] = {{"step", {{"kind", "adaptive"}, {"tolerance", 1e-4}, {"largest_s", 0.05}}},
                  {"end_s", 1e9}};
  json["method"] = {{"kind", "auto"}, {"stages", 1}};
  json["outputs"]["every_s"] = 0.1;
  return setup(json, std::make_unique<DuffingPair>(), true);
}

}  // namespace

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"lossless_pair", "two undamped oscillators joined mass to mass", 100'000'000, lossless_pair},
      {"pair_in_a_hurry", "the same by three evaluations a step, which the guard has to correct",
       10'000'000, pair_in_a_hurry},
      {"coming_to_rest", "16 masses with dampers, until nothing moves", 10'000'000, coming_to_rest},
      {"chain_64_noise", "64 blocks of five masses, four of them driven by noise", 1'000'000,
       chain_64_noise},
      {"split_chain", "the same blocks without dampers and forces, by splitting", 1'000'000,
       split_chain},
      {"coasting_chain", "the same blocks, not held anywhere, 1000 km away and leaving", 100'000,
       coasting_chain},
      {"controllers_and_contact", "a crane whose controller drives it into buffer and stop",
       100'000, controllers_and_contact},
      {"adaptive_steps", "a Duffing oscillator and a linear one in steps of their choice",
       1'000'000, adaptive_steps},
  };
  return all;
}

}  // namespace portwave::soak
