#include <functional>
#include <limits>
#include <tuple>

#include <gtest/gtest.h>

#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/catalogue/parts.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave::test_system {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// A part with the given ports, two states "q", "v" and one input "force"; its physics is nil.
std::unique_ptr<Subsystem> part(std::vector<Port> ports) {
  Signature signature{"stub", {{"q", "m"}, {"v", "m/s"}}, std::move(ports), {{"force", "N"}}};
  const int n = signature.state_size(), m = signature.wave_size() + signature.input_size();
  LinearPortHamiltonian::Options options;
  options.default_state = {1.0, 2.0};
  return std::make_unique<LinearPortHamiltonian>(std::move(signature), Structure::zero(n, m),
                                                 SparseMatrix(n, n), options);
}

Port port(std::string name, Domain domain = Domain::translation, int dimension = 1,
          Causality causality = Causality::effort_in) {
  return {std::move(name), causality, domain, dimension};
}

/// "motor" with ports "shaft" (rotation) and "terminals" (electrical).
std::unique_ptr<Subsystem> motor() {
  return part({port("shaft", Domain::rotation), port("terminals", Domain::electrical)});
}

std::unique_ptr<Subsystem> bar() { return part({port("left"), port("right")}); }

std::string text_of(const Issues& issues) {
  return issues.empty() ? "" : ConfigError(issues).what();
}

Eigen::MatrixXd matrix2(double a, double b, double c, double d) {
  Eigen::MatrixXd matrix(2, 2);
  matrix << a, b, c, d;
  return matrix;
}

/// A sound system of two bars, A and B: A.left free, A.right to B.left, B.right fixed.
void two_bars(SystemBuilder& builder) {
  builder.add("A", bar()).add("B", bar());
  builder.join(joint::Free{}, {"A.left"}).connect("A.right", "B.left");
  builder.join(joint::Fixed{}, {"B.right"});
}

/// Two bars with one more part that has the given ports, closed by `joint`.
std::function<void(SystemBuilder&)> closed_by(Joint joint, std::vector<Port> ports) {
  return [joint = std::move(joint), ports = std::move(ports)](SystemBuilder& builder) {
    builder.add("X", part(ports));
    std::vector<std::string> paths;
    for (const Port& p : ports) paths.push_back("X." + p.name);
    builder.join(joint, paths);
  };
}

struct Case {
  std::string name;
  std::function<void(SystemBuilder&)> build;
  std::string message;  ///< all of it; empty: the system is sound
};

std::vector<Case> naming_cases() {
  return {
      {"sound", two_bars, ""},
      {"nothing", [](SystemBuilder&) {}, "/subsystems: a system needs at least one subsystem"},
      {"empty name", [](SystemBuilder& b) { b.add("", part({})); },
       "/subsystems/0/name: must not be empty"},
      {"dot in a name", [](SystemBuilder& b) { b.add("a.b", part({})); },
       "/subsystems/0/name: must not contain dots, brackets, blanks, commas or quotes (it names "
       "columns of results), got \"a.b\""},
      {"duplicate name",
       [](SystemBuilder& b) {
         two_bars(b);
         b.add("A", bar());
       },
       "/subsystems/2/name: the name \"A\" is already taken by /subsystems/0"},
      {"wrong state size", [](SystemBuilder& b) { b.add("A", part({}), {.initial_state = {1.0}}); },
       "/subsystems/0/initial_state: the initial state must have 2 numbers (q, v), got 1"},
      {"state not finite",
       [](SystemBuilder& b) {
         b.add("A", part({}), {.initial_state = {1.0, kNaN}});
       },
       "/subsystems/0/initial_state/1: v must be finite, got nan"},
      {"unknown input",
       [](SystemBuilder& b) {
         b.add("A", part({}), {.initial_state = {}, .inputs = {{"froce", Signal::constant(1.0)}}});
       },
       "/subsystems/0/inputs/froce: subsystem \"A\" has no input \"froce\".\ninputs: \"force\". "
       "Did "
       "you mean \"force\"?"},
      {"unknown port",
       [](SystemBuilder& b) {
         b.add("motor", motor());
         b.join(joint::Free{}, {"motor.shaft2"}).join(joint::Free{}, {"motor.terminals"});
       },
       "/couplings/0/ports/0: subsystem \"motor\" has no port \"shaft2\".\nports: \"shaft\" "
       "(rotation), \"terminals\" (electrical). Did you mean \"shaft\"?"},
      {"unknown port beside an open one",
       [](SystemBuilder& b) {
         b.add("motor", motor());
         b.join(joint::Free{}, {"motor.shaft2"});
       },
       "/couplings/0/ports/0: subsystem \"motor\" has no port \"shaft2\".\nports: \"shaft\" "
       "(rotation), \"terminals\" (electrical). Did you mean \"shaft\"?\n"
       "/subsystems/0: port \"motor.terminals\" is neither connected nor terminated; connect it or "
       "terminate it with \"free\", \"fixed\" or \"resistive\""},
      {"unknown port that is no slip",
       [](SystemBuilder& b) {
         b.add("motor", motor());
         b.join(joint::Free{}, {"motor.wheel"});
       },
       "/couplings/0/ports/0: subsystem \"motor\" has no port \"wheel\".\nports: \"shaft\" "
       "(rotation), \"terminals\" (electrical)."},
      {"unknown part",
       [](SystemBuilder& b) {
         b.add("motor", motor());
         b.join(joint::Free{}, {"moter.shaft"}).join(joint::Free{}, {"motor.terminals"});
       },
       "/couplings/0/ports/0: there is no subsystem \"moter\".\nsubsystems: \"motor\". Did you "
       "mean "
       "\"motor\"?"},
      {"no dot",
       [](SystemBuilder& b) {
         b.add("motor", motor());
         b.join(joint::Free{}, {"motor"});
       },
       "/couplings/0/ports/0: expected \"part.port\", got \"motor\".\nports: \"shaft\" (rotation), "
       "\"terminals\" (electrical)."},
      {"open port",
       [](SystemBuilder& b) {
         b.add("A", bar());
         b.join(joint::Free{}, {"A.right"});
       },
       "/subsystems/0: port \"A.left\" is neither connected nor terminated; connect it or "
       "terminate "
       "it with \"free\", \"fixed\" or \"resistive\""},
      {"port used twice",
       [](SystemBuilder& b) {
         two_bars(b);
         b.join(joint::Fixed{}, {"A.right"});
       },
       "/couplings/3/ports/0: port \"A.right\" is already used by /couplings/1/ports/0; a port "
       "belongs to exactly one coupling"},
      {"port joined with itself",
       [](SystemBuilder& b) {
         b.add("A", part({port("end")}));
         b.connect("A.end", "A.end");
       },
       "/couplings/0/ports/1: port \"A.end\" is already used by /couplings/0/ports/0; a port "
       "belongs "
       "to exactly one coupling"},
      {"ill-made signature",
       [](SystemBuilder& b) {
         b.add("A", part({port("x"), port("x")}));
       },
       "/subsystems/0: a part of type \"stub\" must give its ports distinct names and dimensions "
       ">= "
       "1; see port \"x\" of dimension 1\n"
       "/subsystems/0: port \"A.x\" is neither connected nor terminated; connect it or terminate "
       "it "
       "with \"free\", \"fixed\" or \"resistive\"\n"
       "/subsystems/0: port \"A.x\" is neither connected nor terminated; connect it or terminate "
       "it "
       "with \"free\", \"fixed\" or \"resistive\""},
  };
}

std::vector<Case> joint_cases() {
  const Port x = port("x"), y = port("y"), z = port("z"), wide = port("wide", Domain::generic, 2);
  const Port current = port("current", Domain::electrical), any = port("any", Domain::generic);
  const std::string domains =
      "; different domains meet only in a transformer, gyrator, skew gain or kernel";
  const Eigen::MatrixXd skew = matrix2(0, 3, -3, 0), I = matrix2(1, 0, 0, 1);
  return {
      {"connection", closed_by(joint::Connection{}, {x, y}), ""},
      {"connection of three", closed_by(joint::Connection{}, {x, y, z}),
       "/couplings/0/ports: a connection needs 2 ports, got 3"},
      {"free end of two", closed_by(joint::Free{}, {x, y}),
       "/couplings/0/ports: a free end needs 1 port, got 2"},
      {"junction of one", closed_by(joint::CommonFlow{}, {x}),
       "/couplings/0/ports: a common-flow junction needs at least 2 ports, got 1"},
      {"dimensions", closed_by(joint::CommonEffort{}, {x, wide}),
       "/couplings/0/ports/1: port \"X.wide\" has dimension 2, but \"X.x\" has 1; a common-effort "
       "junction joins ports component by component"},
      {"domains", closed_by(joint::CommonEffort{}, {any, x, y, current}),
       "/couplings/0/ports/3: port \"X.current\" is electrical, but \"X.x\" is translation" +
           domains +
           ". Between electrical and translation: a gyrator whose ratio is the force per current, "
           "as of a voice coil"},
      {"domains without a usual transducer",
       closed_by(joint::Connection{}, {current, port("heat", Domain::thermal)}),
       "/couplings/0/ports/1: port \"X.heat\" is thermal, but \"X.current\" is electrical" +
           domains},
      {"generic meets every domain", closed_by(joint::Connection{}, {any, current}), ""},
      {"a transformer joins domains", closed_by(joint::Transformer{2.0}, {x, current}), ""},
      {"a gyrator joins domains", closed_by(joint::Gyrator{-2.0}, {x, current}), ""},
      {"a skew gain joins domains", closed_by(joint::SkewGain{skew}, {x, current}), ""},
      {"a kernel joins domains", closed_by(joint::Kernel{I, matrix2(0, 3, -3, 0)}, {x, current}),
       ""},
      {"ratio 0", closed_by(joint::Transformer{0.0}, {x, y}),
       "/couplings/0/ratio: must be finite and not 0, got 0"},
      {"ratio nan", closed_by(joint::Gyrator{kNaN}, {x, y}),
       "/couplings/0/ratio: must be finite and not 0, got nan"},
      {"resistance", closed_by(joint::Resistive{2.0}, {x}), ""},
      {"no resistance", closed_by(joint::Resistive{0.0}, {x}), ""},
      {"negative resistance", closed_by(joint::Resistive{-1.0}, {x}),
       "/couplings/0/resistance: must be finite and >= 0, got -1"},
      {"infinite resistance",
       closed_by(joint::Resistive{std::numeric_limits<double>::infinity()}, {x}),
       "/couplings/0/resistance: must be finite and >= 0, got inf"},
      {"symmetric gain", closed_by(joint::SkewGain{matrix2(0, 1, 1, 0)}, {x, y}),
       "/couplings/0/gain: must be skew, but gain(0,1) = 1 and gain(1,0) = 1"},
      {"gain with a diagonal", closed_by(joint::SkewGain{matrix2(0, 1, -1, 5)}, {x, y}),
       "/couplings/0/gain: must be skew, but gain(1,1) = 5"},
      {"gain of another size", closed_by(joint::SkewGain{skew}, {x, y, z}),
       "/couplings/0/gain: must be 3×3, one row and column per scalar port, got 2×2"},
      {"gain over a wide port", closed_by(joint::SkewGain{skew}, {wide}), ""},
      {"gain not finite", closed_by(joint::SkewGain{matrix2(0, kNaN, 1, 0)}, {x, y}),
       "/couplings/0/gain: every entry must be finite"},
      {"kernel of another size", closed_by(joint::Kernel{I, I}, {x}),
       "/couplings/0/E: must be 1×1, one row and column per scalar port, got 2×2"},
      {"kernel that loses power", closed_by(joint::Kernel{I, I}, {x, y}),
       "/couplings/0: E F^T + F E^T must vanish (no power is made or lost), but its entry (0,0) is "
       "2"},
      {"kernel of lower rank",
       closed_by(joint::Kernel{matrix2(1, 1, 1, 1), matrix2(0, 0, 0, 0)}, {x, y}),
       "/couplings/0: [E F] must have rank 2, got 1: its rows leave the ports undetermined"},
      {"kernel not square", closed_by(joint::Kernel{I, Eigen::MatrixXd::Ones(2, 1)}, {x, y}),
       "/couplings/0/F: must be square, one row and column per scalar port (2×2), got 2×1"},
  };
}

void expect_messages(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    SystemBuilder builder;
    c.build(builder);
    EXPECT_EQ(text_of(builder.check()), c.message) << c.name;
    if (c.message.empty()) {
      EXPECT_NO_THROW(builder.build()) << c.name;
    } else {
      EXPECT_THROW(builder.build(), ConfigError) << c.name;
    }
  }
}

TEST(SystemBuilder, NamesDefectsOfPartsAndPorts) { expect_messages(naming_cases()); }

TEST(SystemBuilder, NamesDefectsOfCouplings) { expect_messages(joint_cases()); }

TEST(SystemBuilder, HintsAtWhatJoinsTwoDomains) {
  struct Hint {
    Domain first, second;
    std::string text;
  };
  const std::vector<Hint> hints = {
      {Domain::electrical, Domain::rotation,
       ". Between electrical and rotation: a part of type \"dc_motor\", or a gyrator whose ratio "
       "is "
       "the motor constant"},
      {Domain::electrical, Domain::magnetic,
       ". Between electrical and magnetic: a gyrator whose ratio is the number of turns of the "
       "winding"},
      {Domain::rotation, Domain::translation,
       ". Between rotation and translation: a part of type \"rack_and_pinion\", or a transformer, "
       "the rotation port first, whose ratio is the radius"},
      {Domain::hydraulic, Domain::translation,
       ". Between hydraulic and translation: a transformer, the translation port first, whose "
       "ratio "
       "is the area of the piston"},
      {Domain::hydraulic, Domain::rotation,
       ". Between hydraulic and rotation: a transformer, the rotation port first, whose ratio is "
       "the "
       "volume that the pump moves per radian"},
      {Domain::hydraulic, Domain::thermal, "skew gain or kernel"},
  };
  for (const Hint& hint : hints) {
    for (const bool swapped : {false, true}) {
      SystemBuilder builder;
      closed_by(joint::Connection{}, {port("a", swapped ? hint.second : hint.first),
                                      port("b", swapped ? hint.first : hint.second)})(builder);
      const std::string text = text_of(builder.check());
      EXPECT_TRUE(text.ends_with(hint.text)) << text;
    }
  }
}

// A hint that names a part must name one of the catalogue, with ports of both domains.
TEST(SystemBuilder, HintsNamePartsOfTheCatalogue) {
  for (const auto& [name, first, second] :
       {std::tuple{"dc_motor", Domain::electrical, Domain::rotation},
        std::tuple{"rack_and_pinion", Domain::rotation, Domain::translation}}) {
    ASSERT_NE(find_part_type(name), nullptr) << name;
    const auto part = make_part(name, find_part_type(name)->example);
    ASSERT_EQ(part->signature().ports.size(), 2U) << name;
    EXPECT_EQ(part->signature().ports[0].domain, first) << name;
    EXPECT_EQ(part->signature().ports[1].domain, second) << name;
  }
}

TEST(SystemBuilder, ReportsEveryDefectInOnePass) {
  SystemBuilder builder;
  builder.add("A", bar(), {.initial_state = {0.0}}).add("A", bar()).add("C", motor());
  builder.add("D", bar());
  builder.join(joint::Resistive{-1.0}, {"C.shaft"})
      .connect("C.terminals", "D.left")
      .join(joint::Transformer{0.0}, {"D.right", "C.shaft", "E.x"});
  std::vector<std::string> where;
  for (const Issue& issue : builder.check()) where.push_back(issue.where);
  EXPECT_EQ(where, (std::vector<std::string>{"/subsystems/0/initial_state", "/subsystems/1/name",
                                             "/couplings/0/resistance", "/couplings/1/ports/1",
                                             "/couplings/2/ports/1", "/couplings/2/ports/2",
                                             "/couplings/2/ports", "/couplings/2/ratio"}));
}

// A part that could not be built is reported by whoever tried; here it must not cause more noise.
TEST(SystemBuilder, PartsThatFailedElsewhereCauseNoFurtherIssues) {
  SystemBuilder builder;
  builder.add("A", bar()).add("broken", nullptr);
  builder.join(joint::Free{}, {"A.left"}).connect("A.right", "broken.anything");
  EXPECT_EQ(text_of(builder.check()), "");
  try {
    builder.build();
    FAIL() << "a system with a missing part must not be built";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "/subsystems/1: subsystem \"broken\" could not be built");
  }
}

TEST(SystemBuilder, NamesThePartsWhoseParametersAreNotAllowed) {
  SystemBuilder builder;
  builder.add("cell3/mass", parts::mass({.mass_kg = -1.0}));
  builder.add("A", bar(), {.initial_state = {0.0}});
  builder.add("S", parts::spring_damper({.stiffness_N_per_m = -2.0, .damping_Ns_per_m = kNaN}),
              {.initial_state = {0.1}});
  builder.add("what", CataloguePart("mas"));
  builder.connect("cell3/mass.port", "A.left").connect("A.right", "S.left");
  builder.join(joint::Fixed{}, {"S.right"});
  const Issues issues = builder.check();
  std::vector<std::string> where;
  for (const Issue& issue : issues) where.push_back(issue.where);
  ASSERT_EQ(where, (std::vector<std::string>{"/subsystems/0/parameters/mass_kg",
                                             "/subsystems/2/parameters/stiffness_N_per_m",
                                             "/subsystems/2/parameters/damping_Ns_per_m",
                                             "/subsystems/3/type", "/subsystems/1/initial_state"}))
      << text_of(issues);
  EXPECT_EQ(issues[0].what, "\"cell3/mass\" (mass): must be > 0 kg, got -1");
  EXPECT_TRUE(issues[1].what.starts_with("\"S\" (spring_damper): must be > 0 N/m, got -2"))
      << issues[1].what;
  EXPECT_TRUE(issues[3].what.starts_with("\"what\" (mas): ")) << issues[3].what;
  try {
    builder.build();
    FAIL() << "it has defects";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.issues().size(), 5U);
    EXPECT_NE(std::string(error.what()).find("\"cell3/mass\""), std::string::npos);
  }
  // The control: right ones are built, with their options.
  SystemBuilder right;
  right.add("m", parts::mass({.mass_kg = 2.0}), {.initial_state = {0.5, -1.0}});
  right.join(joint::Free{}, {"m.port"});
  const System system = right.build();
  EXPECT_EQ(system.parts()[0].initial_state, (std::vector<double>{0.5, -1.0}));
  EXPECT_TRUE(description_of(*system.parts()[0].component));
}

TEST(System, NumbersScalarPortsInPartOrder) {
  SystemBuilder builder;
  builder.add("A", part({port("one"), port("two", Domain::generic, 3)}));
  builder.add("B", part({port("only")}));
  builder.connect("A.one", "B.only").join(joint::Free{}, {"A.two"});
  const System system = builder.build();
  ASSERT_EQ(system.scalar_ports().size(), 5U);
  EXPECT_EQ(system.first_scalar_port(0), 0);
  EXPECT_EQ(system.first_scalar_port(0, 1), 1);
  EXPECT_EQ(system.first_scalar_port(1), 4);
  const std::vector<std::string> labels = {"A.one", "A.two[0]", "A.two[1]", "A.two[2]", "B.only"};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(system.port_label(i), labels[i]);
  EXPECT_EQ(system.scalar_ports()[3].entry, 2);

  // One junction per component.
  ASSERT_EQ(system.junctions().size(), 4U);
  EXPECT_EQ(system.junctions()[0].waves, (std::vector<int>{0, 4}));
  for (int i = 1; i < 4; ++i) EXPECT_EQ(system.junctions()[i].waves, std::vector<int>{i});
}

TEST(System, JoinsComponentByComponentExceptMatrices) {
  SystemBuilder builder;
  builder.add("A", part({port("u", Domain::generic, 2)}));
  builder.add("B", part({port("u", Domain::generic, 2)}));
  builder.add("C", part({port("u", Domain::generic, 2)}));
  builder.add("D", part({port("u", Domain::generic, 2)}));
  builder.connect("A.u", "B.u");
  Eigen::MatrixXd gain = Eigen::MatrixXd::Zero(4, 4);
  gain(0, 3) = 1.0;
  gain(3, 0) = -1.0;
  builder.join(joint::SkewGain{gain}, {"D.u", "C.u"});
  const System system = builder.build();
  ASSERT_EQ(system.junctions().size(), 3U);
  EXPECT_EQ(system.junctions()[0].waves, (std::vector<int>{0, 2}));
  EXPECT_EQ(system.junctions()[1].waves, (std::vector<int>{1, 3}));
  EXPECT_EQ(system.junctions()[2].waves, (std::vector<int>{6, 7, 4, 5}));
  for (const Junction& junction : system.junctions()) {
    EXPECT_EQ(junction.dirac.size(), static_cast<int>(junction.waves.size()));
    EXPECT_EQ(text_of(validate(junction.dirac)), "");
  }
}

TEST(System, PartsAndJunctionsMayShareWhatIsEqual) {
  const std::shared_ptr<const Subsystem> shared = bar();
  SystemBuilder builder;
  builder.add("A", shared, {.initial_state = std::vector<double>(shared->default_state().size())});
  builder.add("B", shared);
  builder.connect("A.right", "B.left").connect("B.right", "A.left");
  const System system = builder.build();
  EXPECT_EQ(system.parts()[0].component, system.parts()[1].component);
  EXPECT_EQ(&system.junctions()[0].dirac, &system.junctions()[1].dirac);
  EXPECT_NE(system.junctions()[0].waves, system.junctions()[1].waves);
}

TEST(System, JunctionsOfOtherArityOrRatioDoNotShare) {
  SystemBuilder builder;
  for (const std::string name : {"A", "B", "C"}) builder.add(name, bar());
  builder.join(joint::CommonEffort{}, {"A.left", "B.left", "C.left"});
  builder.join(joint::Transformer{2.0}, {"A.right", "B.right"});
  builder.join(joint::Free{}, {"C.right"});
  const System system = builder.build();
  EXPECT_EQ(system.junctions()[0].dirac.size(), 3);
  EXPECT_EQ(system.junctions()[1].dirac.E(0, 1), -2.0);
  EXPECT_EQ(system.junctions()[2].dirac.E(0, 0), 1.0);
}

TEST(System, FindsPartsAndPortsByName) {
  SystemBuilder builder;
  two_bars(builder);
  const System system = builder.build();
  EXPECT_EQ(system.find_part("B"), 1);
  EXPECT_EQ(system.find_part("b"), -1);
  EXPECT_EQ(system.find_port("B.right"), std::make_pair(1, 1));
  for (const std::string path : {"B.middle", "C.left", "B", ""}) {
    EXPECT_EQ(system.find_port(path), std::make_pair(-1, -1)) << path;
  }
}

TEST(System, NumbersIslandsByTheirFirstPart) {
  SystemBuilder builder;
  for (const std::string name : {"A", "B", "C", "D", "E", "F"}) builder.add(name, bar());
  builder.connect("A.right", "D.left").connect("D.right", "F.left").connect("C.left", "B.right");
  for (const std::string open : {"A.left", "B.left", "C.right", "E.left", "E.right", "F.right"}) {
    builder.join(joint::Free{}, {open});
  }
  const System system = builder.build();
  EXPECT_EQ(system.island_count(), 3);
  const std::vector<int> islands = {0, 1, 1, 0, 2, 0};
  for (int part = 0; part < 6; ++part)
    EXPECT_EQ(system.island_of_part(part), islands[part]) << part;
}

TEST(SystemControl, OneMoreCouplingMergesIslands) {
  for (const bool joined : {false, true}) {
    SystemBuilder builder;
    builder.add("A", part({port("x")})).add("B", part({port("x")}));
    if (joined) {
      builder.connect("A.x", "B.x");
    } else {
      builder.join(joint::Free{}, {"A.x"}).join(joint::Free{}, {"B.x"});
    }
    EXPECT_EQ(builder.build().island_count(), joined ? 1 : 2);
  }
}

TEST(System, EndsResistiveJointsWithAResistor) {
  SystemBuilder builder;
  builder.add("A", part({port("left", Domain::translation, 2), port("right")}));
  builder.add("B", part({port("x")}));
  builder.join(joint::Resistive{3.0}, {"A.left"});
  builder.connect("A.right", "B.x");
  const System system = builder.build();
  ASSERT_EQ(system.parts().size(), 3U);
  const Part& resistor = system.parts()[2];
  EXPECT_EQ(resistor.name, "A.left");
  EXPECT_TRUE(resistor.is_termination);
  EXPECT_FALSE(system.parts()[0].is_termination);
  EXPECT_TRUE(resistor.initial_state.empty());
  EXPECT_EQ(Eigen::MatrixXd(resistor.port_hamiltonian()->structure().S), matrix2(3, 0, 0, 3));
  EXPECT_EQ(resistor.component->signature().ports[0].domain, Domain::translation);

  EXPECT_EQ(system.port_label(5), "A.left.resistor[1]");
  EXPECT_EQ(system.find_port("A.left.resistor"), std::make_pair(2, 0));
  EXPECT_EQ(system.find_port("A.left"), std::make_pair(0, 0));
  EXPECT_EQ(system.island_of_part(2), 0);
  EXPECT_EQ(system.junctions()[0].waves, (std::vector<int>{0, 4}));
  EXPECT_EQ(system.junctions()[1].waves, (std::vector<int>{1, 5}));
}

TEST(System, TakesStatesAndInputsFromTheOptions) {
  SystemBuilder builder;
  builder.add("A", part({}));
  builder.add("B", part({}),
              {.initial_state = {5.0, 6.0}, .inputs = {{"force", Signal::constant(7.0)}}});
  const System system = builder.build();
  EXPECT_EQ(system.parts()[0].initial_state, (std::vector<double>{1.0, 2.0}));  // the default
  EXPECT_EQ(system.parts()[1].initial_state, (std::vector<double>{5.0, 6.0}));
  EXPECT_FALSE(system.parts()[0].input_is_driven[0]);
  EXPECT_TRUE(system.parts()[1].input_is_driven[0]);
  EXPECT_EQ(system.parts()[0].inputs[0](0.0), 0.0);
  EXPECT_EQ(system.parts()[1].inputs[0](0.0), 7.0);
}

}  // namespace
}  // namespace portwave::test_system
