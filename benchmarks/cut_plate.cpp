// Large models given by matrices, cut into pieces: how long until the first step beside one sparse
// Cholesky factorisation of the whole, and a step beside that of the whole, factorised once.

#include <cmath>
#include <ctime>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "large_structures.hpp"
#include "peers/second_order_midpoint.hpp"
#include "portwave/coupling/system/cut.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "report.hpp"

namespace {

using namespace portwave;
using namespace portwave::bench;

constexpr double kStep_s = 1e-3;
constexpr double kForce_N = 5.0;

ColumnsOf columns_of(const SparseMatrix& M) {
  const auto size = static_cast<std::size_t>(M.nonZeros());
  return {static_cast<int>(M.rows()),
          {M.outerIndexPtr(), static_cast<std::size_t>(M.outerSize()) + 1},
          {M.innerIndexPtr(), size},
          {M.valuePtr(), size}};
}

/// Processor time: all of the set-up is made by one thread.
double seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct CutModel {
  std::unique_ptr<Stepper> stepper;
  Cut cut;  // places of the states
  double part_s = 0, cut_s = 0, build_s = 0, stepper_s = 0;
  double setup_s() const { return part_s + cut_s + build_s + stepper_s; }
};

CutModel cut_model(const SecondOrderForm& form, int parts, int threads) {
  CutModel model;
  double start = seconds();
  const auto n = static_cast<int>(form.M.rows());
  std::vector<StateVariable> coordinates;
  for (int i = 0; i < n; ++i) coordinates.push_back({fmt::format("q{}", i + 1), "m"});
  const Issues issues = validate(form, n, 1);
  if (!issues.empty()) throw std::runtime_error(issues[0].what);
  const auto part = make_second_order_part(
      Signature{"second_order_system", second_order_states(coordinates), {}, {{"load", "N"}}},
      form);
  model.part_s = seconds() - start;
  start = seconds();
  model.cut = cut_part(*part, parts);
  model.cut_s = seconds() - start;
  start = seconds();
  SystemBuilder builder;
  SystemBuilder::PartOptions options;
  options.inputs.emplace("load", Signal::constant(kForce_N));
  add_pieces(builder, "model", *part, model.cut, options);
  join_pieces(builder, "model", model.cut);
  System system = builder.build();
  model.build_s = seconds() - start;
  start = seconds();
  model.stepper = std::make_unique<Stepper>(std::move(system),
                                            StepperOptions{.step_s = kStep_s, .threads = threads});
  model.stepper_s = seconds() - start;
  return model;
}

/// The largest difference of a coordinate, relative to the largest coordinate.
double difference(const CutModel& model, SecondOrderPeer& peer) {
  const std::span<const double> q = peer.positions();
  double most = 0.0, size = 0.0;
  for (std::size_t i = 0; i < q.size(); ++i) {
    const Cut::Place& place = model.cut.states[i];
    const double own = model.stepper->state(place.piece)[static_cast<std::size_t>(place.state)];
    most = std::max(most, std::abs(own - q[i]));
    size = std::max(size, std::abs(q[i]));
  }
  return most / size;
}

void compare(const Report& report, const std::string& name, const SecondOrderForm& form, int parts,
             int repeats) {
  const auto n = static_cast<std::size_t>(form.M.rows());
  const auto peer =
      eigen_second_order(columns_of(form.M), columns_of(form.D), columns_of(form.K), kStep_s);
  std::vector<double> force(n, 0.0);
  for (SparseMatrix::InnerIterator it(form.B, 0); it; ++it) {
    force[static_cast<std::size_t>(it.row())] = kForce_N * it.value();
  }
  std::vector<double> setups;
  std::optional<CutModel> one;
  for (int i = 0; i < repeats; ++i) {
    const double start = seconds();
    peer->factorise();
    const double factorised_s = seconds() - start;
    one.reset();
    one.emplace(cut_model(form, parts, 1));
    setups.push_back(one->setup_s() / factorised_s);
    fmt::print(stderr,
               "{}: {} states, {} pieces, part {:.3f} s, cut {:.3f} s, system {:.3f} s, stepper "
               "{:.3f} s; factorisation {:.3f} s, {:.3g} entries\n",
               name, 2 * n, one->cut.pieces.size(), one->part_s, one->cut_s, one->build_s,
               one->stepper_s, factorised_s, peer->factor_entries());
  }
  for (int i = 0; i < 20; ++i) {
    peer->step(force);
    one->stepper->step();
  }
  const double gap = difference(*one, *peer);
  fmt::print(stderr, "{}: difference after 20 steps {:.2g}, {}\n", name, gap,
             one->stepper->method().reason);
  if (!(gap < 1e-7)) throw std::runtime_error(name + ": wrong answer");
  const std::string size = fmt::format("{} states in {} pieces", 2 * n, parts);
  report.add({.name = fmt::format("cut_plate/{}/setup_over_factorisation", name),
              .sense = Sense::at_most,
              .goal = 5.0,
              .note = size},
             setups, "factorisations");
  CutModel two = cut_model(form, parts, 2);
  const Contest contest =
      take_turns({processor_timed([&] { one->stepper->step(); }),
                  timed([&] { two.stepper->step(); }), processor_timed([&] { peer->step(force); })},
                 {.rounds = 15, .turn_s = 0.05});
  report.add({.name = fmt::format("cut_plate/{}/step_one_thread", name),
              .sense = Sense::at_most,
              .goal = 1.5,
              .note = size},
             contest, 0, 2);
  report.add({.name = fmt::format("cut_plate/{}/step_two_threads", name),
              .sense = Sense::at_most,
              .goal = 1.0,
              .note = size},
             contest, 1, 2);
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("cut_plate", 1);
  if (report.only_lists(argc, argv)) return 0;
  const SecondOrderForm plate = plate_form(101);
  if (argc > 3) {  // steps alone, for a profiler
    cut_model(plate, std::stoi(argv[1]), std::stoi(argv[2])).stepper->step(std::stoi(argv[3]));
    return 0;
  }
  compare(report, "plate/2", plate, 2, 5);
  compare(report, "plate/4", plate, 4, 5);
  compare(report, "plate/8", plate, 8, 5);
  compare(report, "large_plate/16", plate_form(320), 16, 1);
  compare(report, "solid/4", solid_form(15), 4, 1);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "cut_plate: {}\n", error.what());
  return 1;
}
