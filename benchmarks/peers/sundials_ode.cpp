#include <algorithm>
#include <arkode/arkode_erkstep.h>
#include <chrono>
#include <cstddef>
#include <cvode/cvode.h>
#include <nvector/nvector_serial.h>
#include <stdexcept>
#include <sundials/sundials_context.h>
#include <sunlinsol/sunlinsol_band.h>
#include <sunmatrix/sunmatrix_band.h>
#include <sunnonlinsol/sunnonlinsol_fixedpoint.h>

#include "ode.hpp"

namespace portwave::bench {
namespace {

constexpr long kMostSteps = 10'000'000;

void require(int flag) {
  if (flag < 0) throw std::runtime_error("SUNDIALS failed with " + std::to_string(flag));
}

template <class T>
T* created(T* object) {
  if (object == nullptr) throw std::runtime_error("SUNDIALS could not create something");
  return object;
}

/// v' = (k/m)(q₋ − 2q + q₊) − (r/m) v; a free end has no spring beyond it.
struct Coefficients {
  std::size_t masses;
  double spring;   ///< k/m
  double damping;  ///< r/m

  explicit Coefficients(const Chain& chain)
      : masses(chain.masses()),
        spring(chain.blocks[0].stiffness_N_per_m / chain.blocks[0].mass_kg),
        damping(chain.blocks[0].damping_Ns_per_m / chain.blocks[0].mass_kg) {
    const Block& first = chain.blocks[0];
    for (const Block& b : chain.blocks) {
      if (b.stiffness_N_per_m != first.stiffness_N_per_m ||
          b.coupling_stiffness_N_per_m != first.stiffness_N_per_m || b.mass_kg != first.mass_kg ||
          b.damping_Ns_per_m != first.damping_Ns_per_m) {
        throw std::runtime_error("the SUNDIALS peers need a chain of equal masses and springs");
      }
    }
  }
};

/// x = (q₁ … q_n, v₁ … v_n): what vectorises best.
int apart(double, N_Vector x, N_Vector x_dot, void* data) {
  const auto& c = *static_cast<const Coefficients*>(data);
  const std::size_t n = c.masses;
  const double *q = NV_DATA_S(x), *v = q + n;
  double* __restrict q_dot = NV_DATA_S(x_dot), * __restrict v_dot = q_dot + n;
  std::copy(v, v + n, q_dot);
  v_dot[0] = c.spring * (q[1] - q[0]) - c.damping * v[0];
  for (std::size_t i = 1; i + 1 < n; ++i) {
    v_dot[i] = c.spring * (q[i - 1] - 2.0 * q[i] + q[i + 1]) - c.damping * v[i];
  }
  v_dot[n - 1] = c.spring * (q[n - 2] - q[n - 1]) - c.damping * v[n - 1];
  return 0;
}

/// x = (q₁, v₁, q₂, v₂, …): what makes the Jacobian a narrow band.
int interleaved(double, N_Vector x_vector, N_Vector x_dot, void* data) {
  const auto& c = *static_cast<const Coefficients*>(data);
  const std::size_t n = c.masses;
  const double* x = NV_DATA_S(x_vector);
  double* __restrict d = NV_DATA_S(x_dot);
  d[0] = x[1];
  d[1] = c.spring * (x[2] - x[0]) - c.damping * x[1];
  for (std::size_t i = 2; i + 2 < 2 * n; i += 2) {
    d[i] = x[i + 1];
    d[i + 1] = c.spring * (x[i - 2] - 2.0 * x[i] + x[i + 2]) - c.damping * x[i + 1];
  }
  d[2 * n - 2] = x[2 * n - 1];
  d[2 * n - 1] = c.spring * (x[2 * n - 4] - x[2 * n - 2]) - c.damping * x[2 * n - 1];
  return 0;
}

int interleaved_jacobian(double, N_Vector, N_Vector, SUNMatrix jacobian, void* data, N_Vector,
                         N_Vector, N_Vector) {
  const auto& c = *static_cast<const Coefficients*>(data);
  const auto n = static_cast<sunindextype>(c.masses);
  for (sunindextype i = 0; i < n; ++i) {
    const bool end = i == 0 || i + 1 == n;
    double* position = SM_COLUMN_B(jacobian, 2 * i);
    double* velocity = SM_COLUMN_B(jacobian, 2 * i + 1);
    SM_COLUMN_ELEMENT_B(position, 2 * i + 1, 2 * i) = -(end ? 1.0 : 2.0) * c.spring;
    if (i > 0) SM_COLUMN_ELEMENT_B(position, 2 * i - 1, 2 * i) = c.spring;
    if (i + 1 < n) SM_COLUMN_ELEMENT_B(position, 2 * i + 3, 2 * i) = c.spring;
    SM_COLUMN_ELEMENT_B(velocity, 2 * i, 2 * i + 1) = 1.0;
    SM_COLUMN_ELEMENT_B(velocity, 2 * i + 1, 2 * i + 1) = -c.damping;
  }
  return 0;
}

/// Context, state and start of one integration.
class SundialsPeer : public OdePeer {
 public:
  SundialsPeer(const Chain& chain, double end_s, bool is_interleaved)
      : end_s_(end_s), interleaved_(is_interleaved), coefficients_(chain) {
    require(SUNContext_Create(nullptr, &context_));
    x_ = created(N_VNew_Serial(static_cast<sunindextype>(2 * chain.masses()), context_));
    for (std::size_t i = 0; i < chain.masses(); ++i) {
      NV_Ith_S(x_, place(i)) = chain.q[i];
      NV_Ith_S(x_, place(i) + velocity()) = chain.v[i];
    }
    start_ = created(N_VClone(x_));
    N_VScale(1.0, x_, start_);
  }
  ~SundialsPeer() override {
    N_VDestroy(start_);
    N_VDestroy(x_);
    SUNContext_Free(&context_);
  }
  SundialsPeer(const SundialsPeer&) = delete;
  SundialsPeer& operator=(const SundialsPeer&) = delete;

  double solve() override {
    N_VScale(1.0, start_, x_);
    restart();
    const auto start = std::chrono::steady_clock::now();
    integrate();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  void read(std::span<double> q, std::span<double> v) const override {
    for (std::size_t i = 0; i < q.size(); ++i) {
      q[i] = NV_Ith_S(x_, place(i));
      v[i] = NV_Ith_S(x_, place(i) + velocity());
    }
  }

 protected:
  virtual void restart() = 0;
  virtual void integrate() = 0;

  std::size_t place(std::size_t mass) const { return interleaved_ ? 2 * mass : mass; }
  std::size_t velocity() const { return interleaved_ ? 1 : coefficients_.masses; }

  double end_s_;
  bool interleaved_;
  Coefficients coefficients_;
  SUNContext context_ = nullptr;
  N_Vector x_ = nullptr, start_ = nullptr;
};

class Cvode final : public SundialsPeer {
 public:
  Cvode(const Chain& chain, double end_s, double tolerance, int family)
      : SundialsPeer(chain, end_s, family == CV_BDF) {
    memory_ = created(CVodeCreate(family, context_));
    require(CVodeInit(memory_, interleaved_ ? interleaved : apart, 0.0, x_));
    require(CVodeSetUserData(memory_, &coefficients_));
    require(CVodeSStolerances(memory_, tolerance, 0.1 * tolerance));
    require(CVodeSetMaxNumSteps(memory_, kMostSteps));
    if (interleaved_) {
      matrix_ = created(
          SUNBandMatrix(static_cast<sunindextype>(2 * chain.masses()), kUpper, kLower, context_));
      linear_ = created(SUNLinSol_Band(x_, matrix_, context_));
      require(CVodeSetLinearSolver(memory_, linear_, matrix_));
      require(CVodeSetJacFn(memory_, interleaved_jacobian));
    } else {
      nonlinear_ = created(SUNNonlinSol_FixedPoint(x_, 0, context_));
      require(CVodeSetNonlinearSolver(memory_, nonlinear_));
    }
  }
  ~Cvode() override {
    CVodeFree(&memory_);
    if (nonlinear_ != nullptr) SUNNonlinSolFree(nonlinear_);
    if (linear_ != nullptr) SUNLinSolFree(linear_);
    if (matrix_ != nullptr) SUNMatDestroy(matrix_);
  }
  long steps() const override {
    long steps = 0;
    require(CVodeGetNumSteps(memory_, &steps));
    return steps;
  }

 private:
  void restart() override {
    require(CVodeReInit(memory_, 0.0, x_));
    require(CVodeSetStopTime(memory_, end_s_));
  }
  void integrate() override {
    double t = 0.0;
    require(CVode(memory_, end_s_, x_, &t, CV_NORMAL));
  }

  static constexpr sunindextype kUpper = 1, kLower = 3;
  void* memory_ = nullptr;
  SUNMatrix matrix_ = nullptr;
  SUNLinearSolver linear_ = nullptr;
  SUNNonlinearSolver nonlinear_ = nullptr;
};

class Erk final : public SundialsPeer {
 public:
  Erk(const Chain& chain, double end_s, double tolerance, int table)
      : SundialsPeer(chain, end_s, false) {
    memory_ = created(ERKStepCreate(apart, 0.0, x_, context_));
    require(ERKStepSetUserData(memory_, &coefficients_));
    require(ERKStepSStolerances(memory_, tolerance, 0.1 * tolerance));
    require(ERKStepSetTableNum(memory_, static_cast<ARKODE_ERKTableID>(table)));
    require(ERKStepSetMaxNumSteps(memory_, kMostSteps));
  }
  ~Erk() override { ERKStepFree(&memory_); }
  long steps() const override {
    long steps = 0;
    require(ERKStepGetNumSteps(memory_, &steps));
    return steps;
  }

 private:
  void restart() override {
    require(ERKStepReInit(memory_, apart, 0.0, x_));
    require(ERKStepSetStopTime(memory_, end_s_));
  }
  void integrate() override {
    double t = 0.0;
    require(ERKStepEvolve(memory_, end_s_, x_, &t, ARK_NORMAL));
  }

  void* memory_ = nullptr;
};

}  // namespace

std::unique_ptr<OdePeer> cvode_bdf(const Chain& chain, double end_s, double tolerance) {
  return std::make_unique<Cvode>(chain, end_s, tolerance, CV_BDF);
}
std::unique_ptr<OdePeer> cvode_adams(const Chain& chain, double end_s, double tolerance) {
  return std::make_unique<Cvode>(chain, end_s, tolerance, CV_ADAMS);
}
std::unique_ptr<OdePeer> arkode_erk(const Chain& chain, double end_s, double tolerance, int table) {
  return std::make_unique<Erk>(chain, end_s, tolerance, table);
}

std::vector<ErkTable> erk_tables() {
  // Bogacki–Shampine 3 and Verner 6 were tried too: never within a factor of two of the best.
  return {{"zonneveld_4", ARKODE_ZONNEVELD_5_3_4},
          {"fehlberg_5", ARKODE_FEHLBERG_6_4_5},
          {"cash_karp_5", ARKODE_CASH_KARP_6_4_5},
          {"dormand_prince_5", ARKODE_DORMAND_PRINCE_7_4_5},
          {"fehlberg_8", ARKODE_FEHLBERG_13_7_8}};
}

}  // namespace portwave::bench
