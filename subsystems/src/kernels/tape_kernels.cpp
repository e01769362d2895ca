#include "kernels/tape_kernels.hpp"

#include "kernels/lane_tape.hpp"
#include "portwave/subsystems/base/lane_group.hpp"

namespace portwave::PORTWAVE_ISA {
namespace {

template <int W>
void run_tape(const TapeProgram& program, const double* x, double* out, double* registers) {
  LaneTape<W> tape(program, registers);
  for (int i = 0; i < program.variables; ++i) {
    Vec<W>::load(x + i * W).store(tape.variable(i));
  }
  tape.run();
  for (int i = 0; i < program.results; ++i) tape.result(i).store(out + i * W);
}

}  // namespace

const tape::Kernels kTape = {run_tape<kLaneGroup>, run_tape<1>};

}  // namespace portwave::PORTWAVE_ISA
