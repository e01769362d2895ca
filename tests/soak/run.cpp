#include "soak/run.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>
#include <limits>
#include <malloc.h>
#include <memory>
#include <unistd.h>

#include <fmt/format.h>

#include <portwave/runtime/output/file_recorder.hpp>

#include "soak/recorded.hpp"

namespace portwave::soak {
namespace {

using Wide = long double;

constexpr int kLooks = 500;  // at energies, memory and samples, spread over the run
constexpr std::int64_t kRows = 20000;
/// Pages that the allocator and the writing thread may come to need late.
constexpr std::ptrdiff_t kAllowedGrowth_bytes = 256 * 1024;

double processor_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Memory {
  std::ptrdiff_t resident_bytes = 0, heap_bytes = 0;

  static Memory now() {
    Memory memory;
    std::ifstream statm("/proc/self/statm");
    std::ptrdiff_t all = 0, resident = 0;
    statm >> all >> resident;
    memory.resident_bytes = resident * sysconf(_SC_PAGESIZE);
    const struct mallinfo2 heap = mallinfo2();
    memory.heap_bytes = static_cast<std::ptrdiff_t>(heap.uordblks + heap.hblkhd);
    return memory;
  }
};

std::size_t subnormal_numbers(const Stepper& stepper) {
  std::size_t count = 0;
  const auto add = [&count](double v) { count += std::fpclassify(v) == FP_SUBNORMAL ? 1 : 0; };
  const System& system = stepper.system();
  for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
    for (const double v : stepper.state(part)) add(v);
  }
  for (int port = 0; port < static_cast<int>(system.scalar_ports().size()); ++port) {
    add(stepper.effort(port));
    add(stepper.flow(port));
  }
  return count;
}

double median(std::vector<double>& values) {
  if (values.empty()) return 0.0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Soak {
 public:
  Soak(const Case& what, std::int64_t steps, Defect defect, std::filesystem::path folder)
      : setup_(what.make(defect == Defect::energy ? kActive_Ns_per_m : 0.0)),
        steps_(steps),
        defect_(defect),
        folder_(std::move(folder)),
        stepper_(setup_.scenario.system, setup_.scenario.options),
        chooses_(stepper_.step_sizes() != nullptr) {
    if (!chooses_) {
      setup_.scenario.recording.every = static_cast<int>(std::max<std::int64_t>(1, steps / kRows));
    }
    subnormal_ns_.reserve(kLooks + 1);
    normal_ns_.reserve(kLooks + 1);
    const std::int64_t looks = std::min<std::int64_t>(kLooks, steps);
    look_every_ = (steps + looks - 1) / looks;
  }

  Outcome run() {
    FileRecorder recorder(folder_, setup_.scenario.recording);
    recorder.record_initial(stepper_);
    setup_.physics->begin(stepper_);
    Figures& f = out_.figures;
    f.stored_at_start_J = start_J_ = setup_.physics->stored_J(stepper_);
    const double initial_J = stepper_.energy().initial_J;
    if (std::abs(start_J_ - initial_J) > 1e-12L * std::abs(start_J_)) {
      find("H at the start is {:.17g} J and not {:.17g} J", initial_J,
           static_cast<double>(start_J_));
    }
    const std::int64_t tenth = std::max<std::int64_t>(1, steps_ / 10);
    double mark_s = processor_s();
    stretch_s_ = mark_s;
    for (std::int64_t n = 1; n <= steps_; ++n) {
      const StepReport report =
          chooses_ ? stepper_.step_towards(setup_.scenario.end_s) : stepper_.step();
      recorder.record(stepper_, report);
      supply(report);
      if (defect_ == Defect::memory) kept_.push_back(std::make_unique<std::byte[]>(64));
      if (n == tenth) f.first_ns = 1e9 * (processor_s() - mark_s) / static_cast<double>(tenth);
      if (n == steps_ - tenth) mark_s = processor_s();
      if (n % look_every_ != 0 && n != steps_) continue;
      note_stretch();
      look(n);
      stretch_s_ = processor_s();
    }
    f.last_ns = 1e9 * (processor_s() - mark_s) / static_cast<double>(tenth);
    recorder.finish();
    judge_files();
    finish_figures();
    return std::move(out_);
  }

 private:
  /// Per step a hundredth of what a part's residual may be; of the account a hundred times.
  static constexpr double kActive_Ns_per_m = 1e-11;

  template <class... Values>
  void find(fmt::format_string<Values...> text, Values&&... values) {
    if (out_.findings.size() < 20) {
      out_.findings.push_back(fmt::format(text, std::forward<Values>(values)...));
    }
  }

  void supply(const StepReport& report) {
    const Wide work = setup_.physics->supplied_J(stepper_);
    out_.figures.supplied_J += work;
    moved_J_ += std::abs(work);
    if (!chooses_) return;
    reached_s_ += report.step_s;
  }

  void note_stretch() {
    const double step_ns = 1e9 * (processor_s() - stretch_s_) / static_cast<double>(look_every_);
    const std::size_t subnormal = subnormal_numbers(stepper_);
    out_.figures.most_subnormal = std::max(out_.figures.most_subnormal, subnormal);
    (subnormal > 0 ? subnormal_ns_ : normal_ns_).push_back(step_ns);
  }

  void look(std::int64_t n) {
    look_at_clock(n);
    look_at_energy(n);
    look_at_memory(n);
    if (const std::string wrong = setup_.physics->samples(stepper_); !wrong.empty())
      find("{}", wrong);
    if (const auto error = setup_.physics->error(stepper_)) {
      out_.figures.error = static_cast<double>(*error);
      if (!(out_.figures.error <= setup_.physics->allowed_error(n))) {
        find("after {} steps the state is off by {:.3g} of its amplitude", n, out_.figures.error);
      }
    }
  }

  void look_at_clock(std::int64_t n) {
    if (stepper_.step_index() != n)
      find("{} steps were made, and {} counted", n, stepper_.step_index());
    if (!chooses_) {
      const double expected = static_cast<double>(n) * setup_.scenario.options.step_s;
      if (stepper_.time_s() != expected) {
        find("after {} steps it is {:.17g} s and not {:.17g} s", n, stepper_.time_s(), expected);
      }
    } else if (std::abs(stepper_.time_s() - reached_s_) >
               1e-15L * static_cast<Wide>(n) * reached_s_) {
      find("after {} steps it is {:.17g} s, and the steps are {:.17g} s together", n,
           stepper_.time_s(), static_cast<double>(reached_s_));
    }
  }

  /// H + T ≤ H₀ + T₀ + supply with H and the supply by formulas, and the rounding that the certificate
  /// allows for; and that the ledger's H is H.
  void look_at_energy(std::int64_t n) {
    const EnergyTotals& ledger = stepper_.energy();
    const Wide stored = setup_.physics->stored_J(stepper_);
    const Wide supplied = out_.figures.supplied_J;
    const Wide moved = std::abs(start_J_) + std::abs(stored) + moved_J_ + ledger.initial_tank_J;
    // Where there is no such bound: some ε per step.
    const Wide own_rounding =
        stepper_.waves() == nullptr ? 1e-15L * static_cast<Wide>(n) * moved : 0.0L;
    // The ledger raises the bound when its own sum has reached it, and H may be ahead of that sum.
    const Wide rounding = 1.25L * ledger.rounding_J + own_rounding + 1e-12L * moved;
    out_.figures.stored_J = stored;
    out_.figures.rounding_J = static_cast<double>(rounding);
    const Wide tank = std::max(0.0, ledger.tank_J);
    const Wide beyond = stored + tank - (start_J_ + ledger.initial_tank_J + supplied);
    const auto share = static_cast<double>(beyond / rounding);
    out_.figures.largest_beyond = std::max(out_.figures.largest_beyond, share);
    if (share > 1.0) {
      find(
          "after {} steps H + T exceeds what was there and supplied by {:.3g} J, rounding is "
          "{:.3g} J",
          n, static_cast<double>(beyond), static_cast<double>(rounding));
    }
    if (setup_.conserves && std::abs(stored - start_J_) > 2.0L * rounding) {
      find("after {} steps H is {:.17g} J and not {:.17g} J, rounding is {:.3g} J", n,
           static_cast<double>(stored), static_cast<double>(start_J_),
           static_cast<double>(rounding));
    }
    const auto off = static_cast<double>(std::abs(ledger.final_J - stored) / moved);
    const auto off_supply = static_cast<double>(std::abs(ledger.supplied_J - supplied) / moved);
    out_.figures.ledger_difference = std::max({out_.figures.ledger_difference, off, off_supply});
    const auto allowed = static_cast<double>(rounding / moved);
    if (off > allowed) find("after {} steps the ledger's H is off by {:.3g}", n, off);
    if (off_supply > allowed)
      find("after {} steps the ledger's supply is off by {:.3g}", n, off_supply);
    const Certificate& certificate = stepper_.certificate();
    if (certificate.status != CertificateStatus::holds) {
      find("after {} steps the certificate is {}", n, to_string(certificate.status));
    }
  }

  void look_at_memory(std::int64_t n) {
    const Memory now = Memory::now();
    if (n * 5 <= steps_) {
      warm_ = now;
      return;
    }
    Figures& f = out_.figures;
    f.resident_growth_bytes = now.resident_bytes - warm_.resident_bytes;
    f.heap_growth_bytes = now.heap_bytes - warm_.heap_bytes;
    if (f.resident_growth_bytes > kAllowedGrowth_bytes) {
      find("after {} steps {} bytes more are resident than after a fifth of them", n,
           f.resident_growth_bytes);
    }
    if (f.heap_growth_bytes > kAllowedGrowth_bytes) {
      find("after {} steps {} bytes more are allocated than after a fifth of them", n,
           f.heap_growth_bytes);
    }
  }

  void judge_files() {
    RecordedTable trajectory = read_table(folder_ / "trajectory.csv");
    const RecordedTable energy = read_table(folder_ / "energy.csv");
    std::vector<double>& times = trajectory.columns.front();
    const RecordingOptions& recording = setup_.scenario.recording;
    const double every_s =
        chooses_ ? recording.every_s
                 : static_cast<double>(recording.every) * setup_.scenario.options.step_s;
    if (defect_ == Defect::clock) {
      for (std::size_t i = 1; i < times.size(); ++i) times[i] = times[i - 1] + every_s;
    }
    std::size_t expected = 1;
    const auto covered = static_cast<std::int64_t>(steps_ / recording.every);
    if (!chooses_) {
      expected = 1 + static_cast<std::size_t>(covered);
    } else {
      while (static_cast<double>(expected) * every_s <= stepper_.time_s()) ++expected;
    }
    if (times.size() != expected) find("{} rows were recorded and not {}", times.size(), expected);
    for (std::size_t i = 0; i < times.size(); ++i) {
      // As a multiple of the step, rounded once.
      const double own = chooses_
                             ? static_cast<double>(i) * every_s
                             : static_cast<double>(static_cast<std::int64_t>(i) * recording.every) *
                                   setup_.scenario.options.step_s;
      if (times[i] != own) find("row {} is of {:.17g} s and not {:.17g} s", i, times[i], own);
    }
    out_.figures.rows = times.size();
    const std::vector<double>& stored = energy.column("stored_J");
    const std::size_t rows = chooses_ ? static_cast<std::size_t>(steps_) + 1 : expected;
    if (energy.rows() != rows) find("energy.csv has {} rows and not {}", energy.rows(), rows);
    if (!chooses_ && steps_ % recording.every == 0 && stored.back() != stepper_.energy().final_J) {
      find("the last row of energy.csv says {:.17g} J, and the ledger {:.17g} J", stored.back(),
           stepper_.energy().final_J);
    }
  }

  void finish_figures() {
    Figures& f = out_.figures;
    f.subnormal_ns = median(subnormal_ns_);
    f.normal_ns = median(normal_ns_);
    f.subnormal_stretches = subnormal_ns_.size();
    f.steps = stepper_.step_index();
    f.time_s = stepper_.time_s();
    f.certificate = to_string(stepper_.certificate().status);
    const WaveView* const waves = stepper_.waves();
    if (waves != nullptr && waves->guard() != nullptr) f.guarded_steps = waves->guard()->steps;
  }

  Setup setup_;
  std::int64_t steps_;
  Defect defect_;
  std::filesystem::path folder_;
  Stepper stepper_;
  bool chooses_;
  std::int64_t look_every_ = 1;
  Outcome out_;
  Wide start_J_ = 0.0L, moved_J_ = 0.0L, reached_s_ = 0.0L;
  Memory warm_;
  double stretch_s_ = 0.0;
  std::vector<double> subnormal_ns_, normal_ns_;
  std::vector<std::unique_ptr<std::byte[]>> kept_;
};

}  // namespace

Outcome run(const Case& what, std::int64_t steps, Defect defect,
            const std::filesystem::path& folder) {
  return Soak(what, steps, defect, folder).run();
}

}  // namespace portwave::soak
