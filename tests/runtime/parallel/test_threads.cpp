// Two threads asked for are two threads that work, and they change no bit.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_threads {
namespace {

using namespace std::chrono_literals;

/// Keeps the ids of the threads that come by while it is open. Until there are two, a thread waits
/// for a second one, a few times and not for ever: a run without a second thread then ends too.
class Meeting {
 public:
  Meeting(int waits, std::chrono::milliseconds wait) : waits_left_(waits), wait_(wait) {}

  void open() { open_ = true; }
  void come_by() {
    if (!open_) return;
    std::unique_lock lock(mutex_);
    ids_.insert(std::this_thread::get_id());
    if (ids_.size() >= 2) {
      arrived_.notify_all();
    } else if (waits_left_ > 0) {
      --waits_left_;
      arrived_.wait_until(lock, std::chrono::system_clock::now() + wait_,
                          [&] { return ids_.size() >= 2; });
    }
  }
  std::set<std::thread::id> ids() {
    const std::lock_guard lock(mutex_);
    return ids_;
  }

 private:
  std::atomic<bool> open_ = false;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::set<std::thread::id> ids_;
  int waits_left_;
  std::chrono::milliseconds wait_;
};

/// A mass on a hardening spring whose gradient comes by at the meeting.
std::unique_ptr<Subsystem> attending_oscillator(Meeting* meeting) {
  Structure structure = Structure::zero(2, 1);
  structure.J.insert(0, 1) = 1.0;
  structure.J.insert(1, 0) = -1.0;
  structure.R.insert(1, 1) = 0.1;
  structure.G.insert(1, 0) = -1.0;
  Hamiltonian hamiltonian;
  hamiltonian.value = [](const double* x) {
    return 0.5 * (x[0] * x[0] + x[1] * x[1]) + 0.25 * x[0] * x[0] * x[0] * x[0];
  };
  hamiltonian.gradient = [meeting](const double* x, double* g) {
    meeting->come_by();
    g[0] = x[0] + x[0] * x[0] * x[0];
    g[1] = x[1];
  };
  return std::make_unique<NonlinearPortHamiltonian>(
      Signature{"attending",
                {{"q", "m"}, {"p", "kg m/s"}},
                {{"coupling", Causality::effort_in, Domain::translation, 1}},
                {}},
      std::move(structure), std::move(hamiltonian), NonlinearPortHamiltonian::Options{});
}

System attending_hub(Meeting* meeting) {
  SystemBuilder builder;
  std::vector<std::string> ports;
  for (int i = 0; i < 6; ++i) {
    const std::string name = "limb" + std::to_string(i);
    builder.add(name, attending_oscillator(meeting), {.initial_state = {0.1 * i, 0.3 - 0.1 * i}});
    ports.push_back(name + ".coupling");
  }
  builder.join(joint::CommonEffort{}, std::move(ports));
  return builder.build();
}

/// States, waves and energies of eight steps. oneTBB may use two threads whatever the machine has.
std::vector<double> run(Meeting& meeting, int threads, ExecutorKind executor, int iterations = 6) {
  const tbb::global_control two_at_least(
      tbb::global_control::max_allowed_parallelism,
      std::max<std::size_t>(2, std::thread::hardware_concurrency()));
  const System system = attending_hub(&meeting);
  StepperOptions options{.method = WaveCoupling{}};
  options.start = Start::as_given;
  options.method.waves().impedance = {0.05};
  options.method.waves().iterations = iterations;
  options.threads = threads;
  options.grain = Grain::per_part();
  options.executor = executor;
  Stepper stepper(system, options);
  meeting.open();
  std::vector<double> out;
  for (int n = 0; n < 8; ++n) {
    const StepReport report = stepper.step();
    out.insert(out.end(), {report.energy.stored_J, report.energy.mismatch_J,
                           report.energy.dissipated_J, report.energy.max_passivity_residual_J});
    for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
      out.insert(out.end(), stepper.state(i).begin(), stepper.state(i).end());
      out.insert(out.end(), {stepper.waves()->incident(i), stepper.waves()->outgoing(i)});
    }
  }
  return out;
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

class Threads : public ::testing::TestWithParam<ExecutorKind> {};

TEST_P(Threads, TwoThreadsTakePartAndChangeNoBit) {
  // The wait ends when the second thread arrives; its length matters on a failure only.
  Meeting two(6, 5s), one(0, 0ms);
  const std::vector<double> parallel = run(two, 2, GetParam());
  EXPECT_EQ(two.ids().size(), 2u);
  EXPECT_TRUE(same_bits(run(one, 1, ExecutorKind::serial), parallel));
}

INSTANTIATE_TEST_SUITE_P(Executors, Threads,
                         ::testing::Values(ExecutorKind::async, ExecutorKind::graph),
                         [](const auto& each) { return std::string(to_string(each.param)); });

TEST(ThreadsControl, OneThreadIsTheCallersAndNoOtherComes) {
  for (const ExecutorKind executor : {ExecutorKind::serial, ExecutorKind::automatic}) {
    Meeting meeting(3, 50ms);
    const std::vector<double> serial = run(meeting, 1, executor);
    EXPECT_EQ(meeting.ids(), std::set<std::thread::id>{std::this_thread::get_id()});
    Meeting other(0, 0ms);
    EXPECT_FALSE(same_bits(serial, run(other, 1, executor, 5)))
        << "an iteration fewer changes no bit";
  }
}

}  // namespace
}  // namespace portwave::test_threads
