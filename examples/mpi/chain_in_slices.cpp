// A chain too long for one machine: no process has more of it than it steps.
//   mpirun -n 4 chain_in_slices 10000000 10
// steps a chain of so many blocks so many times, and prints the same energy and the same check sum for any number
// of processes, and what a block takes of time and memory. A third number makes the blocks different by up to that
// share.

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <malloc.h>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include <portwave/mpi/mpi_ranks.hpp>
#include <portwave/portwave.hpp>

namespace {

struct Chain {
  std::int64_t blocks = 0;
  double vary = 0.0;  ///< share by which masses and springs differ
};

std::string name_of(std::int64_t number) { return "b" + std::to_string(number + 1); }

std::shared_ptr<const portwave::Component> block_of(const Chain& chain, std::int64_t number) {
  portwave::ChainParameters p{.masses = 5,
                              .mass_kg = 0.3,
                              .stiffness_N_per_m = 50.0,
                              .damping_Ns_per_m = 0.1,
                              .coupling_stiffness_N_per_m = 50.0};
  if (chain.vary == 0.0) {  // equal blocks share one component
    static const std::shared_ptr<const portwave::Component> all =
        portwave::mass_spring_damper_chain(p);
    return all;
  }
  const double share = chain.vary * std::sin(0.1 + static_cast<double>(number % 1013));
  p.mass_kg *= 1.0 + share;
  p.stiffness_N_per_m *= 1.0 - share;
  return portwave::mass_spring_damper_chain(p);
}

// [slice]
/// The blocks of this rank, and those beside them.
portwave::System slice_of(const Chain& chain, portwave::Ranks& ranks) {
  const auto [first, end] = portwave::even_slice(chain.blocks, ranks.rank(), ranks.size());
  portwave::SliceBuilder builder(first);
  for (std::int64_t i = first; i < end; ++i) {
    portwave::SystemBuilder::PartOptions options;
    if (i % 10 == 0) options.initial_state = {0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    builder.add(name_of(i), block_of(chain, i), options);
    if (i + 1 < chain.blocks) builder.connect(name_of(i) + ".right", name_of(i + 1) + ".left");
  }
  if (first > 0) {
    builder.add_outside(first - 1, name_of(first - 1), block_of(chain, first - 1));
    builder.connect(name_of(first - 1) + ".right", name_of(first) + ".left");
  }
  if (end < chain.blocks) builder.add_outside(end, name_of(end), block_of(chain, end));
  if (first == 0) builder.join(portwave::joint::Free{}, {name_of(0) + ".left"});
  if (end == chain.blocks) builder.join(portwave::joint::Free{}, {name_of(end - 1) + ".right"});
  return builder.build(ranks);
}
// [slice]

/// Of the states of this rank's blocks; those of all ranks are added up.
std::uint64_t check_sum(const portwave::Stepper& stepper, std::int64_t first, std::int64_t end) {
  std::uint64_t sum = 0;
  for (std::int64_t i = first; i < end; ++i) {
    std::uint64_t hash = 0x9E3779B97F4A7C15U * static_cast<std::uint64_t>(i + 1);
    for (const double x : stepper.state(static_cast<int>(i - first))) {
      std::uint64_t bits;
      std::memcpy(&bits, &x, sizeof bits);
      hash = (hash ^ bits) * 0x100000001B3U;
      hash ^= hash >> 29;
    }
    sum += hash;
  }
  return sum;
}

/// Memory of this process that is in use [bytes]: what was freed is given back before.
double resident_bytes() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  std::ifstream file("/proc/self/statm");
  double pages = 0.0, resident = 0.0;
  file >> pages >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

struct Found {
  std::uint64_t check_sum;
  double bytes_per_block;
};

/// When the last step is done, every rank looks at its own blocks.
class AtTheEnd final : public portwave::Follower {
 public:
  AtTheEnd(std::int64_t first, std::int64_t end, std::int64_t steps, double bytes_before)
      : first_(first), end_(end), steps_(steps), bytes_before_(bytes_before) {}
  void stepped(const portwave::Stepper& stepper, const portwave::StepReport& /*report*/) override {
    if (stepper.step_index() < steps_) return;
    found.bytes_per_block = (resident_bytes() - bytes_before_) / static_cast<double>(end_ - first_);
    found.check_sum = check_sum(stepper, first_, end_);
  }
  void told(const portwave::Stepper& /*stepper*/, std::span<const std::byte> /*message*/) override {
  }

  Found found{};

 private:
  std::int64_t first_, end_, steps_;
  double bytes_before_;
};

bool is_number(const char* text, auto& value) {
  const std::string_view all(text);
  const auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), value);
  return error == std::errc{} && end == all.data() + all.size();
}

void run(const Chain& chain, std::int64_t steps) {
  const std::shared_ptr<portwave::Ranks> ranks = portwave::mpi_ranks();
  const auto [first, end] = portwave::even_slice(chain.blocks, ranks->rank(), ranks->size());
  const double bytes_before = resident_bytes();
  const portwave::System slice = slice_of(chain, *ranks);
  portwave::StepperOptions options{.method = portwave::WaveCoupling{}};
  options.step_s = 1e-3;
  options.method.waves().iterations = 10;
  options.method.waves().impedance = {0.8};
  options.method.waves().guard = false;
  options.ranks = ranks;
  std::optional<portwave::Stepper> stepper(std::in_place, slice, options);
  AtTheEnd at_the_end(first, end, steps, bytes_before);
  double step_s = 0.0, time_s = 0.0;
  portwave::EnergyTotals energy;
  if (ranks->rank() == 0) {
    for (std::int64_t n = 0; n < steps; ++n) {
      const auto start = std::chrono::steady_clock::now();
      const portwave::StepReport report = stepper->step();
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      step_s = n == 0 ? taken.count() : std::min(step_s, taken.count());
      at_the_end.stepped(*stepper, report);
    }
    time_s = stepper->time_s();
    energy = stepper->energy();
    stepper.reset();  // which lets the others go on
  } else {
    portwave::RankedStepper(*stepper).follow(at_the_end);
  }
  std::uint64_t sum = 0;
  double most = 0.0;
  for (const Found& own : portwave::gather_values(*ranks, at_the_end.found)) {
    sum += own.check_sum;
    most = std::max(most, own.bytes_per_block);
  }
  if (ranks->rank() != 0) return;
  std::printf("after %g s: %.17g J, of %.17g J at the start\n", time_s, energy.final_J,
              energy.initial_J);
  std::printf("states: %016" PRIx64 "\n", sum);
  std::printf("%d ranks, %lld blocks on the first: %.0f bytes a block at most, %.3g s a step\n",
              ranks->size(), static_cast<long long>(end - first), most, step_s);
}

}  // namespace

int main(int argc, char** argv) {
  Chain chain;
  std::int64_t steps = 0;
  const bool is_right = (argc == 3 || argc == 4) && is_number(argv[1], chain.blocks) &&
                        is_number(argv[2], steps) && (argc == 3 || is_number(argv[3], chain.vary));
  if (!is_right || chain.blocks < 1 || steps < 1 || !(std::abs(chain.vary) < 0.9)) {
    std::fprintf(
        stderr,
        "usage: chain_in_slices BLOCKS STEPS [VARY], numbers >= 1, and a share in (-0.9, 0.9)\n");
    return 2;
  }
  try {
    run(chain, steps);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
