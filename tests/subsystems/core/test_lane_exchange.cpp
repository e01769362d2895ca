// A part that takes the place of another one in its lane: what every lane computes is what a batch made of
// all parts anew computes, bit by bit.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <portwave/subsystems/base/aligned.hpp>
#include <portwave/subsystems/base/index.hpp>
#include <portwave/subsystems/base/lane_group.hpp>
#include <portwave/subsystems/catalogue/catalogue.hpp>
#include <portwave/subsystems/core/batch_facets.hpp>
#include <portwave/subsystems/core/lane_exchange.hpp>
#include <portwave/subsystems/stages/staged_part.hpp>

namespace portwave::test_lane_exchange {
namespace {

using Parts = std::vector<std::shared_ptr<const Component>>;

constexpr double kStep_s = 3e-3;

std::unique_ptr<StepBatch> batch_of(const Parts& parts) {
  std::vector<const Component*> pointers;
  for (const auto& part : parts) pointers.push_back(part.get());
  return pointers[0]->make_batch(pointers);
}

std::vector<double> impedances(const StepBatch& batch, bool equal) {
  std::vector<double> out(at(batch.wave_count()), 1.0);
  for (int l = 0; l < batch.lanes() && !equal; ++l) {
    for (int j = 0; j < batch.wave_size(); ++j) {
      out[at(j * batch.stride() + l)] = 1.0 + 0.25 * (l % 3) + 0.5 * j;
    }
  }
  return out;
}

/// Everything that some steps of a batch write, and the sizes of roundings.
std::vector<double> steps_of(const StepBatch& batch, const Parts& parts) {
  AlignedVector record(batch.record_size(), 0.0), next = record;
  const auto waves = at(batch.wave_count());
  AlignedVector a(waves, 0.0), b(waves, 0.0), columns(at(3 * batch.stride()), 0.0);
  const EnergyColumns energy{columns.data(), columns.data() + batch.stride(),
                             columns.data() + 2 * batch.stride()};
  for (int l = 0; l < batch.lanes(); ++l) {
    std::vector<double> x = parts[at(l)]->default_state();
    for (std::size_t k = 0; k < x.size(); ++k) x[k] += 0.01 * static_cast<double>(l + 1 + 2 * k);
    batch.set_state(l, x.data(), record.data());
  }
  const LaneRange all{0, batch.lanes()};
  batch.freeze(all, record.data(), nullptr);
  std::vector<double> out, x(at(batch.state_size()));
  for (int n = 0; n < 3; ++n) {
    for (int l = 0; l < batch.lanes(); ++l) {
      for (int j = 0; j < batch.wave_size(); ++j) {
        a[at(j * batch.stride() + l)] = 0.1 * (n + 1) - 0.02 * l + 0.05 * j;
      }
    }
    EXPECT_TRUE(batch.scatter(all, record.data(), a.data(), b.data()).ok());
    const auto note = [&] {
      for (int l = 0; l < batch.lanes(); ++l) {
        for (int j = 0; j < batch.wave_size(); ++j) out.push_back(b[at(j * batch.stride() + l)]);
      }
    };
    note();
    EXPECT_TRUE(batch.inexact_scatter(all, record.data(), a.data(), b.data()).ok());
    note();
    EXPECT_TRUE(batch.advance(all, record.data(), a.data(), next.data(), b.data(), energy).ok());
    note();
    for (int l = 0; l < batch.lanes(); ++l) {
      batch.get_state(l, next.data(), x.data());
      out.insert(out.end(), x.begin(), x.end());
      for (int k = 0; k < 3; ++k) out.push_back(columns[at(k * batch.stride() + l)]);
      if (const StepRoundings* const own = batch.roundings(); own != nullptr) {
        const auto size = own->step_rounding(l, record.data(), a.data(), next.data());
        out.push_back(size.value_or(-1.0));
        double bounds[kLaneGroup] = {};
        if (l % batch.lane_group() == 0 &&
            own->step_rounding_bounds(l, record.data(), a.data(), next.data(), bounds)) {
          out.push_back(bounds[0]);
        }
      }
    }
    std::swap(record, next);
  }
  return out;
}

/// The example of a type with some number of it changed.
std::shared_ptr<const Component> varied(const PartType& type, double factor) {
  Parameters parameters = type.example;
  for (const ParameterInfo& info : type.parameters) {
    const auto found = parameters.find(info.name);
    if (info.kind != ParameterKind::number || found == parameters.end()) continue;
    auto* const number = std::get_if<double>(&found->second);
    if (number == nullptr || *number == 0.0) continue;
    *number *= factor;
    if (!check_parameters(type, parameters, false).empty()) {
      *number /= factor;
      continue;
    }
    break;
  }
  if (!check_parameters(type, parameters, false).empty()) return nullptr;
  return build_part(type, parameters);
}

struct Case {
  const PartType* type;
  int lanes;
  int stages;
  bool equal;  // all of them, before the exchange
};

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const PartType& type : catalogue()) {
    const std::shared_ptr<const Component> part = varied(type, 1.0);
    if (part == nullptr || !part->capabilities().knows_energy || part->batch_key().empty())
      continue;
    for (const int stages : {1, 2}) {
      if (stages > 1 && !staging_defect(*part).empty()) continue;
      for (const int lanes : {1, 3, 8, 21}) {
        for (const bool equal : {true, false}) out.push_back({&type, lanes, stages, equal});
      }
    }
  }
  return out;
}

std::shared_ptr<const Component> part_of(const Case& own, double factor) {
  auto part = varied(*own.type, factor);
  return own.stages == 1 ? part : staged_part(part, own.stages, 1);
}

TEST(LaneExchange, ComputesWhatABatchMadeAnewDoes) {
  int exchanged = 0, changed = 0;  // cases
  std::vector<std::string> kinds;
  for (const Case& own : cases()) {
    const std::string where = fmt::format("{} lanes {} stages {} equal {}", own.type->name,
                                          own.lanes, own.stages, own.equal);
    Parts parts;
    for (int l = 0; l < own.lanes; ++l) {
      parts.push_back(own.equal && l > 0 ? parts[0]
                                         : part_of(own, own.equal ? 1.0 : 1.0 + 0.01 * (l % 5)));
    }
    const std::unique_ptr<StepBatch> batch = batch_of(parts);
    auto* const lanes = dynamic_cast<LaneExchange*>(batch.get());
    if (lanes == nullptr) continue;
    const std::vector<double> gamma = impedances(*batch, own.equal);
    batch->prepare(kStep_s, gamma.data());
    const std::vector<double> before = steps_of(*batch, parts);
    // One after the other: the first, one within, the last; then the first back.
    const std::shared_ptr<const Component> first = parts[0];
    for (const int lane : {0, own.lanes / 2, own.lanes - 1, 0}) {
      const bool is_back = parts[0] != first && lane == 0;
      Parts other = parts;
      other[at(lane)] = is_back ? first : part_of(own, 1.03 + 0.01 * lane);
      ASSERT_TRUE(lanes->exchange(lane, *batch_of({other[at(lane)]}), gamma.data())) << where;
      parts = other;
      const std::unique_ptr<StepBatch> anew = batch_of(parts);
      anew->prepare(kStep_s, gamma.data());
      EXPECT_EQ(steps_of(*batch, parts), steps_of(*anew, parts)) << where << " lane " << lane;
    }
    // Control: it did change something, if the type has numbers.
    changed += steps_of(*batch, parts) != before ? 1 : 0;
    // What is prepared again is prepared with the new parts.
    batch->prepare(2.0 * kStep_s, gamma.data());
    const std::unique_ptr<StepBatch> anew = batch_of(parts);
    anew->prepare(2.0 * kStep_s, gamma.data());
    EXPECT_EQ(steps_of(*batch, parts), steps_of(*anew, parts)) << where << " prepared again";
    ++exchanged;
    if (kinds.empty() || kinds.back() != own.type->name) kinds.push_back(own.type->name);
  }
  EXPECT_GT(kinds.size(), 20u);
  EXPECT_GT(exchanged, 200);
  EXPECT_GT(changed, exchanged / 2);
}

TEST(LaneExchange, RefusesWhatNeedsAnotherLayout) {
  const PartType& type = *find_part_type("spring_damper");
  const auto made = [&](double damping) {
    return std::shared_ptr<const Component>(
        make_part(type.name, {{"stiffness_N_per_m", 40.0}, {"damping_Ns_per_m", damping}}));
  };
  const Parts parts{made(0.5), made(0.5), made(0.7)};
  const std::unique_ptr<StepBatch> batch = batch_of(parts);
  const std::vector<double> gamma = impedances(*batch, false);
  batch->prepare(kStep_s, gamma.data());
  const std::vector<double> before = steps_of(*batch, parts);
  // Without a damper there are no entries where the others have some.
  EXPECT_FALSE(
      dynamic_cast<LaneExchange&>(*batch).exchange(1, *batch_of({made(0.0)}), gamma.data()));
  EXPECT_EQ(steps_of(*batch, parts), before);
}

}  // namespace
}  // namespace portwave::test_lane_exchange
