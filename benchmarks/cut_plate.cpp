// Large models given by matrices, cut into pieces: how long until the first step beside one sparse
// Cholesky factorisation of the whole, how much memory, and a step beside that of the whole, factorised once. Every
// model is measured in a process of its own. `bench_cut_plate <name>`: cases whose name holds this;
// `bench_cut_plate <pieces> <threads> <steps> [side]`: steps alone, for a profiler.

#include <cmath>
#include <ctime>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "child.hpp"
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

struct Case {
  std::string name;
  SecondOrderForm (*form)(int side);
  int side, pieces;
  int repeats;  ///< of the set-up
};

std::string note_of(const Case& c, std::size_t states) {
  return fmt::format("{} states in {} pieces", states, c.pieces);
}

/// Measures one model beside the whole; rows of the set-up with one thread. Returns the most memory of the set-up, in
/// bytes per state.
double compare(const Report& report, const Case& c, int threads) {
  const SecondOrderForm form = c.form(c.side);
  const auto n = static_cast<std::size_t>(form.M.rows());
  const double before_bytes = peak_bytes();
  std::optional<CutModel> model(cut_model(form, c.pieces, threads));
  const double bytes_per_state = (peak_bytes() - before_bytes) / static_cast<double>(2 * n);
  const auto peer =
      eigen_second_order(columns_of(form.M), columns_of(form.D), columns_of(form.K), kStep_s);
  std::vector<double> force(n, 0.0);
  for (SparseMatrix::InnerIterator it(form.B, 0); it; ++it) {
    force[static_cast<std::size_t>(it.row())] = kForce_N * it.value();
  }
  std::vector<double> setups;
  for (int i = 0; i < c.repeats && threads == 1; ++i) {
    if (i > 0) {
      model.reset();
      model.emplace(cut_model(form, c.pieces, 1));
    }
    const double start = seconds();
    peer->factorise();
    const double factorised_s = seconds() - start;
    setups.push_back(model->setup_s() / factorised_s);
    fmt::print(stderr,
               "{}: {} states, {} pieces, part {:.3f} s, cut {:.3f} s, system {:.3f} s, stepper "
               "{:.3f} s; factorisation {:.3f} s, {:.3g} entries; {:.3g} kB per state\n",
               c.name, 2 * n, model->cut.pieces.size(), model->part_s, model->cut_s, model->build_s,
               model->stepper_s, factorised_s, peer->factor_entries(), 1e-3 * bytes_per_state);
  }
  for (int i = 0; i < 20; ++i) {
    peer->step(force);
    model->stepper->step();
  }
  const double gap = difference(*model, *peer);
  fmt::print(stderr, "{}: difference after 20 steps {:.2g}, {}\n", c.name, gap,
             model->stepper->method().reason);
  if (!(gap < 1e-7)) throw std::runtime_error(c.name + ": wrong answer");
  model->stepper->step(64);  // the first steps of a run are examined
  const auto step = [&] { model->stepper->step(); };
  const Contest contest = take_turns({threads == 1 ? processor_timed(step) : timed(step),
                                      processor_timed([&] { peer->step(force); })},
                                     {.rounds = 15, .turn_s = 0.05});
  if (threads == 1) {
    report.add({.name = fmt::format("cut_plate/{}/setup_over_factorisation", c.name),
                .sense = Sense::at_most,
                .goal = 5.0,
                .note = note_of(c, 2 * n)},
               setups, "factorisations");
  }
  report.add({.name = fmt::format("cut_plate/{}/step_{}", c.name,
                                  threads == 1 ? "one_thread" : "two_threads"),
              .sense = Sense::at_most,
              .goal = threads == 1 ? 1.5 : 1.0,
              .note = note_of(c, 2 * n)},
             contest, 0, 1);
  return bytes_per_state;
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("cut_plate", 1);
  if (report.only_lists(argc, argv)) return 0;
  if (argc > 3) {  // steps alone, for a profiler
    const SecondOrderForm plate = plate_form(argc > 4 ? std::stoi(argv[4]) : 101);
    cut_model(plate, std::stoi(argv[1]), std::stoi(argv[2])).stepper->step(std::stoi(argv[3]));
    return 0;
  }
  const std::vector<Case> cases = {
      {"plate/2", plate_form, 101, 2, 5},         {"plate/4", plate_form, 101, 4, 5},
      {"plate/8", plate_form, 101, 8, 5},         {"solid/4", solid_form, 15, 4, 1},
      {"large_plate/16", plate_form, 320, 16, 1}, {"huge_plate/16", plate_form, 708, 16, 1}};
  std::vector<double> bytes_per_state;
  for (const Case& c : cases) {
    if (argc > 1 && c.name.find(argv[1]) == std::string::npos) continue;
    for (const int threads : {1, 2}) {
      const double bytes = in_child([&] { return compare(report, c, threads); });
      if (threads == 1) bytes_per_state.push_back(bytes);
    }
    report.add(
        {.name = fmt::format("cut_plate/{}/memory_per_state", c.name), .sense = Sense::at_most},
        {bytes_per_state.back()}, "B");
  }
  if (argc == 1) {
    report.add({.name = "cut_plate/memory_per_state_huge_over_large",
                .sense = Sense::at_most,
                .goal = 1.2,
                .note = "of a million states over that of 200 000: linear"},
               {bytes_per_state[5] / bytes_per_state[4]}, "");
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "cut_plate: {}\n", error.what());
  return 1;
}
