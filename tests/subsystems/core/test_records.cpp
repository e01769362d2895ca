// What steps a part has of its record all that it needs: a batch that has frozen nothing, and is told the
// regions of a record that another batch has written, goes on with the same bits. Ranks rely on it.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/catalogue/chain.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"

namespace portwave::test_records {
namespace {

using Part = std::shared_ptr<const Component>;

bool same_bits(const AlignedVector& a, const AlignedVector& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

/// A record as one who has only heard of `record` has it.
AlignedVector told(const StepBatch& batch, const AlignedVector& record) {
  AlignedVector out(record.size(), 0.0);
  const int group = batch.lane_group();
  const int groups = (batch.lanes() + group - 1) / group;
  for (const RecordRegion& region : batch.record_regions()) {
    const auto begin = static_cast<std::ptrdiff_t>(region.begin);
    std::copy_n(record.begin() + begin, region.doubles * static_cast<std::size_t>(groups),
                out.begin() + begin);
  }
  return out;
}

/// Equal parts that begin in states, and see waves and inputs, that all differ.
struct Step {
  Step(const Component& part, int lanes, double size_s, unsigned seed) : step_s(size_s) {
    const std::vector<const Component*> parts(static_cast<std::size_t>(lanes), &part);
    batch = part.make_batch(parts);
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> some(-1.0, 1.0);
    const auto fill = [&](AlignedVector& values, std::size_t size, double scale) {
      values.resize(size, 0.0);
      for (double& value : values) value = scale * some(random);
    };
    fill(impedance, static_cast<std::size_t>(batch->wave_count()), 0.0);
    for (double& gamma : impedance) gamma = 1.0 + 0.5 * some(random);
    fill(a, impedance.size(), 0.3);
    fill(input, static_cast<std::size_t>(lanes * batch->input_size()), 1.0);
    const std::vector<double> centre = part.default_state();
    fill(states, centre.size() * static_cast<std::size_t>(lanes), 0.05);
    for (std::size_t i = 0; i < states.size(); ++i) states[i] += centre[i % centre.size()];
    prepare(*batch);
    record.resize(batch->record_size(), 0.0);
    for (int l = 0; l < lanes; ++l) {
      batch->set_state(l, states.data() + static_cast<std::size_t>(l) * centre.size(),
                       record.data());
    }
  }
  void prepare(StepBatch& other) const {
    other.expect({.stage_increments = true});
    other.prepare(step_s, impedance.data());
  }

  double step_s;
  std::unique_ptr<StepBatch> batch;
  AlignedVector impedance, a, input, states, record;
};

/// Of the stages of a step that was committed; none of substeps, which nobody asks for.
AlignedVector increments_of(const StepBatch& batch, const AlignedVector& record,
                            const AlignedVector& a, const AlignedVector& next, bool has_substeps) {
  AlignedVector out(has_substeps ? 0
                                 : static_cast<std::size_t>(stages_of(batch) * batch.state_size() *
                                                            batch.stride()),
                    0.0);
  if (has_substeps) return out;
  stage_increments(batch, {0, batch.lanes()}, record.data(), a.data(), next.data(), out.data());
  return out;
}

/// What a commit gives, and the increments of its stages.
struct Committed {
  bool sound = false;
  AlignedVector next, b, energies, increments;
};

Committed advance(const StepBatch& batch, AlignedVector& record, const AlignedVector& a,
                  bool has_substeps) {
  const auto lanes = static_cast<std::size_t>(batch.stride());
  const LaneRange all{0, batch.lanes()};
  Committed out;
  AlignedVector next(record.size(), 0.0);
  out.b.resize(a.size(), 0.0);
  out.energies.resize(3 * lanes, 0.0);
  out.sound = batch
                  .advance(all, record.data(), a.data(), next.data(), out.b.data(),
                           {out.energies.data(), out.energies.data() + lanes,
                            out.energies.data() + 2 * lanes})
                  .ok();
  out.increments = increments_of(batch, record, a, next, has_substeps);
  out.next = told(batch, next);
  return out;
}

/// Whether a step could be made at all.
bool expect_record_is_enough(const Component& part, bool has_substeps, int lanes, double step_s,
                             bool driven, unsigned seed) {
  Step step(part, lanes, step_s, seed);
  EXPECT_FALSE(step.batch->record_regions().empty());
  const LaneRange all{0, lanes};
  step.batch->freeze(all, step.record.data(), driven ? step.input.data() : nullptr);
  AlignedVector b(step.a.size(), 0.0), nearby = step.a;
  for (double& wave : nearby) wave *= 1.01;
  if (!step.batch->inexact_scatter(all, step.record.data(), nearby.data(), b.data()).ok()) {
    return false;
  }
  const std::vector<const Component*> parts(static_cast<std::size_t>(lanes), &part);
  const std::unique_ptr<StepBatch> listener = part.make_batch(parts);
  step.prepare(*listener);

  // The inner iteration goes on elsewhere.
  AlignedVector heard = told(*step.batch, step.record), heard_b(b.size(), 0.0);
  const bool goes_on =
      step.batch->inexact_scatter(all, step.record.data(), step.a.data(), b.data()).ok();
  EXPECT_EQ(goes_on,
            listener->inexact_scatter(all, heard.data(), step.a.data(), heard_b.data()).ok());
  EXPECT_TRUE(same_bits(b, heard_b)) << "scatter";
  // The commit is made elsewhere.
  heard = told(*step.batch, step.record);
  const Committed own = advance(*step.batch, step.record, step.a, has_substeps);
  const Committed theirs = advance(*listener, heard, step.a, has_substeps);
  EXPECT_EQ(own.sound, theirs.sound);
  if (!own.sound) return false;
  EXPECT_TRUE(same_bits(own.b, theirs.b)) << "b";
  EXPECT_TRUE(same_bits(own.next, theirs.next)) << "next";
  EXPECT_TRUE(same_bits(own.energies, theirs.energies)) << "energies";
  EXPECT_TRUE(same_bits(own.increments, theirs.increments)) << "increments, committed elsewhere";
  // What was committed is looked at elsewhere, by one who has stepped nothing.
  const std::unique_ptr<StepBatch> onlooker = part.make_batch(parts);
  step.prepare(*onlooker);
  heard = told(*step.batch, step.record);
  EXPECT_TRUE(
      same_bits(own.increments, increments_of(*onlooker, heard, step.a, own.next, has_substeps)))
      << "increments, looked at elsewhere";
  return true;
}

/// Whether any step of it could be made.
bool expect_records_are_enough(const Part& part) {
  int made = 0;
  for (const int stages : {1, 2, 3}) {
    for (const int substeps : {1, 2}) {
      const bool is_staged = stages > 1 || substeps > 1;
      if (is_staged && !staging_defect(*part).empty()) continue;
      if (substeps > 1 && !substepping_defect(*part).empty()) continue;
      const Part stepped = is_staged ? staged_part(part, stages, substeps) : part;
      const std::vector<int> lanes =
          stepped->batch_key().empty() ? std::vector<int>{1} : std::vector<int>{1, 11};
      for (const int count : lanes) {
        for (const bool driven : {false, true}) {
          SCOPED_TRACE(part->signature().type + ", " + std::to_string(stages) + " stages, " +
                       std::to_string(substeps) + " substeps, " + std::to_string(count) + " lanes" +
                       (driven ? ", driven" : ""));
          for (const unsigned seed : {1U, 2U}) {
            const bool is_made =
                expect_record_is_enough(*stepped, substeps > 1, count, 1e-3, driven, seed);
            made += is_made ? 1 : 0;
          }
        }
      }
    }
  }
  return made > 0;
}

class RecordLaw : public ::testing::TestWithParam<std::string> {};

TEST_P(RecordLaw, AnotherBatchGoesOnFromARecord) {
  const PartType& type = *find_part_type(GetParam());
  EXPECT_TRUE(expect_records_are_enough(make_part(type.name, type.example)));
}

std::vector<std::string> types() {
  std::vector<std::string> names;
  for (const PartType& type : catalogue()) names.push_back(type.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, RecordLaw, ::testing::ValuesIn(types()),
                         [](const auto& each) { return each.param; });

/// The same matrices with dense and with sparse step maps, and larger than what fits on the stack.
TEST(RecordLawOfMatrices, HoldsHoweverTheyAreSolved) {
  for (const int masses : {1, 3, 9}) {
    const auto chain = mass_spring_damper_chain({.masses = masses, .damping_Ns_per_m = 0.2});
    for (const StepMapStorage storage : {StepMapStorage::dense, StepMapStorage::sparse}) {
      SCOPED_TRACE(std::to_string(masses) + " masses");
      EXPECT_TRUE(expect_records_are_enough(std::make_shared<const LinearPortHamiltonian>(
          chain->signature(), chain->structure(), *chain->linear_form().Q,
          LinearPortHamiltonian::Options{.storage = storage})));
    }
  }
}

}  // namespace
}  // namespace portwave::test_records
