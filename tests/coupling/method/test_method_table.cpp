// The tables of methods and their options agree with the methods.

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/coupling/method/method_table.hpp>

namespace portwave::test_method_table {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A sound method of that kind.
CouplingMethod sound(MethodKind kind) {
  CouplingMethod method = CouplingMethod::of_kind(kind);
  if (kind == SplittingKind::impulse) method.splitting().fast = {"some"};
  return method;
}

std::vector<std::string> places_of(const Issues& issues) {
  std::vector<std::string> places;
  for (const Issue& issue : issues) places.push_back(issue.where);
  return places;
}

/// Gives a number to an option that takes numbers; false for others.
bool set_number(CouplingMethod& method, const OptionInfo& option, double value) {
  if (const auto* const place = std::get_if<OptionField<int>>(&option.value)) {
    place->in(method) = static_cast<int>(value);
    return true;
  }
  if (const auto* const place = std::get_if<OptionField<double>>(&option.value)) {
    place->in(method) = value;
    return true;
  }
  const auto* const place = std::get_if<OptionField<std::optional<double>>>(&option.value);
  if (place != nullptr) place->in(method) = value;
  return place != nullptr;
}

/// Calls `visit` with every option of a family and its place, those of groups among them.
template <typename Visit>
void each_option(std::span<const OptionInfo> options, const std::string& place,
                 const Visit& visit) {
  for (const OptionInfo& option : options) {
    const std::string own = place + "/" + std::string(option.key);
    visit(option, own);
    if (const auto* const group = std::get_if<OptionGroup>(&option.value)) {
      each_option(group->options(), own, visit);
    }
  }
}

TEST(MethodTable, EveryKindHasANameOfItsOwnThatIsFound) {
  std::set<std::string_view> names;
  for (const MethodInfo& method : all_methods()) {
    EXPECT_TRUE(names.insert(method.name).second) << method.name;
    EXPECT_EQ(to_string(method.kind), method.name);
    ASSERT_TRUE(find_method_kind(method.name)) << method.name;
    EXPECT_EQ(*find_method_kind(method.name), method.kind);
    EXPECT_EQ(CouplingMethod::of_kind(method.kind).kind(), method.kind) << method.name;
    EXPECT_EQ(family_of(method.kind).couples_by_waves, method.kind.couples_by_waves());
    EXPECT_FALSE(method.summary.empty()) << method.name;
  }
  EXPECT_EQ(names.size(), 11U);
  EXPECT_FALSE(find_method_kind("euler")) << "control";
}

TEST(MethodTable, TheDefaultsOfEveryKindAreSound) {
  for (const MethodInfo& method : all_methods()) {
    EXPECT_EQ(places_of(check_method(sound(method.kind))), std::vector<std::string>{})
        << method.name;
  }
  EXPECT_EQ(places_of(check_method(Splitting{.kind = SplittingKind::impulse})),
            std::vector<std::string>{"/method/fast"})
      << "control";
}

// Every number of every kind: one issue at its own place where it is out of its range, none where
// the kind makes no use of it.
TEST(MethodTable, EveryNumberIsHeldToItsRange) {
  int judged = 0;
  for (const MethodInfo& kind : all_methods()) {
    each_option(
        family_of(kind.kind).options, "/method",
        [&](const OptionInfo& option, const std::string& place) {
          const NumberRange& range = option.range;
          const bool is_integer = std::holds_alternative<OptionField<int>>(option.value);
          std::vector<double> bad = {std::isfinite(range.minimum) ? range.minimum - 1.0
                                                                  : -kInfinity};
          if (std::isfinite(range.maximum)) bad.push_back(range.maximum + 1.0);
          if (range.minimum_excluded) bad.push_back(range.minimum);
          if (!is_integer) bad.push_back(std::nan(""));
          if (!is_integer && !option.may_be_infinite) bad.push_back(kInfinity);
          const bool is_judged = option.is_for(kind.kind) &&
                                 (option.range_of == nullptr || option.range_of(sound(kind.kind)));
          // What a word stands for is no number of the range, but sound.
          if (is_integer && !option.word.empty()) std::erase(bad, 0.0);
          for (const double value : bad) {
            CouplingMethod method = sound(kind.kind);
            if (!set_number(method, option, value)) return;
            const std::vector<std::string> expected =
                is_judged ? std::vector<std::string>{place} : std::vector<std::string>{};
            EXPECT_EQ(places_of(check_method(method)), expected)
                << kind.name << " " << place << " = " << value;
            judged += is_judged ? 1 : 0;
          }
          CouplingMethod method = sound(kind.kind);  // control: an edge that is inside
          const NumberRange inside =
              is_judged && option.range_of != nullptr ? option.range_of(method)->range : range;
          const double edge = inside.minimum_excluded ? inside.minimum + 1e-9 : inside.minimum;
          set_number(method, option, edge);
          EXPECT_EQ(places_of(check_method(method)), std::vector<std::string>{})
              << kind.name << " " << place << " = " << edge;
        });
  }
  EXPECT_GT(judged, 100);
}

TEST(MethodTable, EveryChoiceKeepsItsNames) {
  int choices = 0;
  for (const MethodInfo& kind : all_methods()) {
    for (const OptionInfo& option : family_of(kind.kind).options) {
      const auto* const choice = std::get_if<OptionChoice>(&option.value);
      if (choice == nullptr) continue;
      for (int i = 0; i < static_cast<int>(choice->names.size()); ++i) {
        CouplingMethod method = sound(kind.kind);
        choice->set(method, i);
        EXPECT_EQ(choice->get(method), i) << option.key;
      }
      ++choices;
    }
  }
  EXPECT_GT(choices, 0);
  EXPECT_EQ(to_string(CouplingFlow::low_rank), "low-rank");
  EXPECT_EQ(to_string(Integrator::radau_iia), "radau-iia");
  EXPECT_EQ(to_string(IterationMetric::energy), "energy");
  EXPECT_EQ(to_string(ImpedanceKind::adapted), "adapted");
}

TEST(CouplingMethod, ChoosesUnlessItIsTold) {
  const CouplingMethod method;
  EXPECT_EQ(method.kind(), WaveUpdate::automatic);
  EXPECT_EQ(method.waves().impedance_kind, ImpedanceKind::automatic);
  EXPECT_EQ(method.waves().tolerance, WaveCoupling::automatic().tolerance);
  EXPECT_TRUE(check_method(method).empty());
  EXPECT_EQ(CouplingMethod(WaveCoupling{}).kind(), WaveUpdate::douglas_rachford);
}

TEST(CouplingMethod, HasTheOptionsOfOneFamily) {
  CouplingMethod method = WaveCoupling{};
  EXPECT_EQ(method.kind(), WaveUpdate::douglas_rachford);
  EXPECT_NO_THROW(method.waves());
  EXPECT_EQ(method.as<Splitting>(), nullptr);
  method = Splitting{.kind = SplittingKind::impulse, .factor = 7};
  EXPECT_EQ(method.kind(), SplittingKind::impulse);
  EXPECT_FALSE(method.couples_by_waves());
  EXPECT_TRUE(method.is<Splitting>());
  EXPECT_EQ(method.splitting().factor, 7);
  EXPECT_THROW(method.dynamic(), ConfigError);
  try {
    method.waves().iterations = 3;
    ADD_FAILURE() << "a splitting has no waves";
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.issues().size(), 1U);
    EXPECT_EQ(error.issues()[0].where, "/method/kind");
    EXPECT_EQ(error.issues()[0].what,
              "the method is \"impulse\" (splitting): it has no options of wave coupling");
  }
}

TEST(CouplingMethod, AnotherKindKeepsTheOptionsOfItsFamily) {
  const CouplingMethod strang = Splitting{.factor = 7};
  EXPECT_EQ(strang.with_kind(SplittingKind::impulse).splitting().factor, 7);
  const CouplingMethod jacobi = strang.with_kind(IterationKind::jacobi);
  EXPECT_EQ(jacobi.kind(), IterationKind::jacobi);
  EXPECT_EQ(jacobi.dynamic().iterations, DynamicIteration{}.iterations);
  EXPECT_EQ(jacobi.with_kind(SplittingKind::strang).splitting().factor, Splitting{}.factor);
}

TEST(CouplingMethod, IterationsAndToleranceAreThoseOfWhatIterates) {
  for (const MethodInfo& kind : all_methods()) {
    CouplingMethod method = CouplingMethod::of_kind(kind.kind);
    const bool iterates = !method.is<Splitting>();
    set_iterations(method, 5);
    EXPECT_EQ(iterations_of(method), iterates ? 5 : 0) << kind.name;
    const bool has_own = kind.kind == WaveUpdate::automatic || kind.kind == WaveUpdate::interface;
    EXPECT_EQ(has_tolerance(method), has_own) << kind.name;
    if (auto* const waves = method.as<WaveCoupling>()) waves->energy_tolerance_J = 1.0;
    if (auto* const dynamic = method.as<DynamicIteration>()) dynamic->tolerance = 1.0;
    EXPECT_EQ(has_tolerance(method), iterates) << kind.name;
  }
}

}  // namespace
}  // namespace portwave::test_method_table
