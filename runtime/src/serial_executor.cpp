#include <cstddef>

#include "inner_loop.hpp"

namespace portwave {
namespace {

class SerialExecutor final : public Executor {
 public:
  explicit SerialExecutor(WaveDiscretisation& waves) : waves_(waves), residual_(waves) {}

  int threads() const override { return 1; }

  PhaseStatus freeze(const double* x, const double* input) override {
    PhaseStatus status;
    for (int i = 0; i < batch_count(); ++i) status.merge(waves_.freeze(i, lanes(i), x, input));
    return status;
  }
  InnerResult iterate(const InnerIteration& inner, double* u, double* b, double* a) override {
    return run_inner_loop(*this, residual_, waves_.wave_size(), inner, u, b, a);
  }
  PhaseStatus advance(const double* a, double* x_next, double* b, StepEnergy* energy) override {
    PhaseStatus status;
    for (int i = 0; i < batch_count(); ++i) {
      status.merge(waves_.advance(i, lanes(i), a, x_next, b, energy));
    }
    return status;
  }
  void exchange(const double* b, double* a) override {
    waves_.interconnection().exchange(waves_.interconnection().all(), b, a);
  }

  PhaseStatus scatter(const double* a, double* b) { return waves_.scatter_all(a, b); }
  void douglas_rachford(double relaxation, const double* b, double* u) {
    waves_.interconnection().douglas_rachford(waves_.interconnection().all(), relaxation, b, u);
  }

 private:
  int batch_count() const { return static_cast<int>(waves_.batches().size()); }
  LaneRange lanes(int batch) const {
    return {0, waves_.batches()[static_cast<std::size_t>(batch)].batch->lanes()};
  }

  WaveDiscretisation& waves_;
  InterfaceResidual residual_;
};

}  // namespace

std::unique_ptr<Executor> make_serial_executor(WaveDiscretisation& waves) {
  return std::make_unique<SerialExecutor>(waves);
}

}  // namespace portwave
