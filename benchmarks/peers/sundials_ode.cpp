#include "sundials_ode.hpp"

#include <algorithm>
#include <arkode/arkode_arkstep.h>
#include <arkode/arkode_erkstep.h>
#include <cstddef>
#include <cvode/cvode.h>
#include <map>
#include <nvector/nvector_serial.h>
#include <stdexcept>
#include <sundials/sundials_context.h>
#include <sunlinsol/sunlinsol_band.h>
#include <sunlinsol/sunlinsol_klu.h>
#include <sunmatrix/sunmatrix_band.h>
#include <sunmatrix/sunmatrix_sparse.h>
#include <sunnonlinsol/sunnonlinsol_fixedpoint.h>

#include "sundials_loops.hpp"

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

/// Matrix, solver and Jacobian of a Newton iteration. Every entry of the Jacobian knows its place
/// in the matrix.
class Newton {
 public:
  Newton(const Ode& ode, StageSolver solver, bool own_loops, N_Vector x, SUNContext context)
      : ode_(ode), banded_(solver == StageSolver::band), values_(ode.places().size()) {
    if (banded_) {
      make_band(context);
      linear_ = created(SUNLinSol_Band(x, matrix_, context));
      if (own_loops) use_own_loops(linear_);
    } else {
      make_sparse(context);
      linear_ = created(SUNLinSol_KLU(x, matrix_, context));
    }
  }
  ~Newton() {
    SUNLinSolFree(linear_);
    SUNMatDestroy(matrix_);
  }
  Newton(const Newton&) = delete;
  Newton& operator=(const Newton&) = delete;

  SUNMatrix matrix() const { return matrix_; }
  SUNLinearSolver linear() const { return linear_; }

  void write(const double* x, SUNMatrix jacobian) {
    ode_.jacobian(x, values_.data());
    double* data = banded_ ? SM_DATA_B(jacobian) : SM_DATA_S(jacobian);
    if (!banded_) write_pattern(jacobian);
    for (std::size_t i = 0; i < values_.size(); ++i) data[at_[i]] = values_[i];
  }

 private:
  void make_band(SUNContext context) {
    sunindextype upper = 0, lower = 0;
    for (const auto& [row, column] : ode_.places()) {
      upper = std::max<sunindextype>(upper, column - row);
      lower = std::max<sunindextype>(lower, row - column);
    }
    matrix_ = created(SUNBandMatrix(static_cast<sunindextype>(ode_.size()), upper, lower, context));
    for (const auto& [row, column] : ode_.places()) {
      const double* entry = SM_COLUMN_B(matrix_, column) + (row - column);
      at_.push_back(static_cast<std::size_t>(entry - SM_DATA_B(matrix_)));
    }
  }
  void make_sparse(SUNContext context) {
    const auto& places = ode_.places();
    std::vector<std::size_t> order(places.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
      return places[a].column != places[b].column ? places[a].column < places[b].column
                                                  : places[a].row < places[b].row;
    });
    const auto n = static_cast<sunindextype>(ode_.size());
    matrix_ =
        created(SUNSparseMatrix(n, n, static_cast<sunindextype>(places.size()), CSC_MAT, context));
    columns_.assign(ode_.size() + 1, 0);
    at_.resize(places.size());
    for (std::size_t k = 0; k < order.size(); ++k) {
      const auto& place = places[order[k]];
      rows_.push_back(place.row);
      ++columns_[static_cast<std::size_t>(place.column) + 1];
      at_[order[k]] = k;
    }
    for (std::size_t j = 0; j < ode_.size(); ++j) columns_[j + 1] += columns_[j];
    write_pattern(matrix_);
  }
  /// SUNDIALS clears it with the values, and adds the diagonal to copies of it.
  void write_pattern(SUNMatrix jacobian) const {
    std::ranges::copy(rows_, SM_INDEXVALS_S(jacobian));
    std::ranges::copy(columns_, SM_INDEXPTRS_S(jacobian));
  }

  const Ode& ode_;
  bool banded_;
  std::vector<double> values_;
  std::vector<std::size_t> at_;  ///< of every entry in the matrix's data
  std::vector<sunindextype> rows_, columns_;
  SUNMatrix matrix_ = nullptr;
  SUNLinearSolver linear_ = nullptr;
};

/// Context and state of one integration, and what SUNDIALS calls back.
class SundialsSolver : public OdeSolver {
 public:
  SundialsSolver(const Ode& ode, double end_s, const Precision& precision)
      : ode_(ode), end_s_(end_s), precision_(precision) {
    require(SUNContext_Create(nullptr, &context_));
    x_ = created(N_VNew_Serial(static_cast<sunindextype>(ode.size()), context_));
    if (!precision.library_loops) use_own_loops(x_);
    to_start();
  }
  ~SundialsSolver() override {
    newton_.reset();
    if (nonlinear_ != nullptr) SUNNonlinSolFree(nonlinear_);
    N_VDestroy(x_);
    SUNContext_Free(&context_);
  }
  SundialsSolver(const SundialsSolver&) = delete;
  SundialsSolver& operator=(const SundialsSolver&) = delete;

  const double* state() const override { return NV_DATA_S(x_); }

 protected:
  static int slope(double t, N_Vector x, N_Vector x_dot, void* self) {
    static_cast<SundialsSolver*>(self)->ode_.slope(t, NV_DATA_S(x), NV_DATA_S(x_dot));
    return 0;
  }
  static int jacobian(double, N_Vector x, N_Vector, SUNMatrix matrix, void* self, N_Vector,
                      N_Vector, N_Vector) {
    static_cast<SundialsSolver*>(self)->newton_->write(NV_DATA_S(x), matrix);
    return 0;
  }

  void to_start() { std::ranges::copy(ode_.start(), NV_DATA_S(x_)); }
  bool fixed() const { return precision_.steps > 0; }
  double step_s() const { return end_s_ / static_cast<double>(precision_.steps); }

  const Ode& ode_;
  double end_s_;
  Precision precision_;
  SUNContext context_ = nullptr;
  N_Vector x_ = nullptr;
  std::unique_ptr<Newton> newton_;
  SUNNonlinearSolver nonlinear_ = nullptr;
};

class Cvode final : public SundialsSolver {
 public:
  Cvode(const Ode& ode, double end_s, Multistep family, StageSolver solver, const Precision& p)
      : SundialsSolver(ode, end_s, p) {
    memory_ = created(CVodeCreate(family == Multistep::bdf ? CV_BDF : CV_ADAMS, context_));
    require(CVodeInit(memory_, slope, 0.0, x_));
    require(CVodeSetUserData(memory_, static_cast<SundialsSolver*>(this)));
    require(CVodeSStolerances(memory_, p.relative, p.absolute));
    require(CVodeSetMaxNumSteps(memory_, kMostSteps));
    require(CVodeSetErrFile(memory_, nullptr));
    if (solver == StageSolver::fixed_point) {
      nonlinear_ = created(SUNNonlinSol_FixedPoint(x_, 0, context_));
      require(CVodeSetNonlinearSolver(memory_, nonlinear_));
    } else {
      newton_ = std::make_unique<Newton>(ode, solver, !p.library_loops, x_, context_);
      require(CVodeSetLinearSolver(memory_, newton_->linear(), newton_->matrix()));
      require(CVodeSetJacFn(memory_, jacobian));
    }
  }
  ~Cvode() override { CVodeFree(&memory_); }

  void restart() override {
    to_start();
    require(CVodeReInit(memory_, 0.0, x_));
    require(CVodeSetStopTime(memory_, end_s_));
  }
  void solve() override {
    double t = 0.0;
    require(CVode(memory_, end_s_, x_, &t, CV_NORMAL));
  }
  long steps() const override {
    long steps = 0;
    require(CVodeGetNumSteps(memory_, &steps));
    return steps;
  }

 private:
  void* memory_ = nullptr;
};

class Erk final : public SundialsSolver {
 public:
  Erk(const Ode& ode, double end_s, int table, const Precision& p) : SundialsSolver(ode, end_s, p) {
    memory_ = created(ERKStepCreate(slope, 0.0, x_, context_));
    require(ERKStepSetUserData(memory_, static_cast<SundialsSolver*>(this)));
    if (fixed()) {
      require(ERKStepSetFixedStep(memory_, step_s()));
    } else {
      require(ERKStepSStolerances(memory_, p.relative, p.absolute));
    }
    require(ERKStepSetTableNum(memory_, static_cast<ARKODE_ERKTableID>(table)));
    require(ERKStepSetMaxNumSteps(memory_, kMostSteps));
    require(ERKStepSetErrFile(memory_, nullptr));
  }
  ~Erk() override { ERKStepFree(&memory_); }

  void restart() override {
    to_start();
    require(ERKStepReInit(memory_, slope, 0.0, x_));
    require(ERKStepSetStopTime(memory_, end_s_));
  }
  void solve() override {
    double t = 0.0;
    require(ERKStepEvolve(memory_, end_s_, x_, &t, ARK_NORMAL));
  }
  long steps() const override {
    long steps = 0;
    require(ERKStepGetNumSteps(memory_, &steps));
    return steps;
  }

 private:
  void* memory_ = nullptr;
};

class Dirk final : public SundialsSolver {
 public:
  Dirk(const Ode& ode, double end_s, int table, StageSolver solver, const Precision& p)
      : SundialsSolver(ode, end_s, p) {
    memory_ = created(ARKStepCreate(nullptr, slope, 0.0, x_, context_));
    require(ARKStepSetUserData(memory_, static_cast<SundialsSolver*>(this)));
    if (fixed()) {
      require(ARKStepSetFixedStep(memory_, step_s()));
    } else {
      require(ARKStepSStolerances(memory_, p.relative, p.absolute));
    }
    require(ARKStepSetTableNum(memory_, static_cast<ARKODE_DIRKTableID>(table), ARKODE_ERK_NONE));
    newton_ = std::make_unique<Newton>(ode, solver, !p.library_loops, x_, context_);
    require(ARKStepSetLinearSolver(memory_, newton_->linear(), newton_->matrix()));
    require(ARKStepSetJacFn(memory_, jacobian));
    if (ode.is_linear()) require(ARKStepSetLinear(memory_, 0));
    require(ARKStepSetMaxNumSteps(memory_, kMostSteps));
    require(ARKStepSetErrFile(memory_, nullptr));
  }
  ~Dirk() override { ARKStepFree(&memory_); }

  void restart() override {
    to_start();
    require(ARKStepReInit(memory_, nullptr, slope, 0.0, x_));
    require(ARKStepSetStopTime(memory_, end_s_));
  }
  void solve() override {
    double t = 0.0;
    require(ARKStepEvolve(memory_, end_s_, x_, &t, ARK_NORMAL));
  }
  long steps() const override {
    long steps = 0;
    require(ARKStepGetNumSteps(memory_, &steps));
    return steps;
  }

 private:
  void* memory_ = nullptr;
};

}  // namespace

std::unique_ptr<OdeSolver> cvode(const Ode& ode, double end_s, Multistep family, StageSolver solver,
                                 const Precision& precision) {
  return std::make_unique<Cvode>(ode, end_s, family, solver, precision);
}
std::unique_ptr<OdeSolver> arkode_erk(const Ode& ode, double end_s, const Table& table,
                                      const Precision& precision) {
  return std::make_unique<Erk>(ode, end_s, table.number, precision);
}
std::unique_ptr<OdeSolver> arkode_dirk(const Ode& ode, double end_s, const Table& table,
                                       StageSolver solver, const Precision& precision) {
  return std::make_unique<Dirk>(ode, end_s, table.number, solver, precision);
}

/// Some converge more slowly in SUNDIALS 6.4 than their coefficients, which meet the conditions of their order, would
/// let them: Verner 6, Sayfy-Aburub 4 and the explicit halves of additive methods. They take part all the same.
std::vector<Table> explicit_tables() {
  static const std::map<int, std::string> names = {
      {ARKODE_HEUN_EULER_2_1_2, "Heun-Euler 2"},
      {ARKODE_BOGACKI_SHAMPINE_4_2_3, "Bogacki-Shampine 3"},
      {ARKODE_ARK324L2SA_ERK_4_2_3, "ARK 3"},
      {ARKODE_ZONNEVELD_5_3_4, "Zonneveld 4"},
      {ARKODE_ARK436L2SA_ERK_6_3_4, "ARK 4, 6 stages"},
      {ARKODE_SAYFY_ABURUB_6_3_4, "Sayfy-Aburub 4"},
      {ARKODE_CASH_KARP_6_4_5, "Cash-Karp 5"},
      {ARKODE_FEHLBERG_6_4_5, "Fehlberg 5"},
      {ARKODE_DORMAND_PRINCE_7_4_5, "Dormand-Prince 5"},
      {ARKODE_ARK548L2SA_ERK_8_4_5, "ARK 5"},
      {ARKODE_VERNER_8_5_6, "Verner 6"},
      {ARKODE_FEHLBERG_13_7_8, "Fehlberg 8"},
      {ARKODE_KNOTH_WOLKE_3_3, "Knoth-Wolke 3"},
      {ARKODE_ARK437L2SA_ERK_7_3_4, "ARK 4, 7 stages"},
      {ARKODE_ARK548L2SAb_ERK_8_4_5, "ARK 5, second"}};
  std::vector<Table> tables;
  for (int number = ARKODE_MIN_ERK_NUM; number <= ARKODE_MAX_ERK_NUM; ++number) {
    ARKodeButcherTable table = ARKodeButcherTable_LoadERK(static_cast<ARKODE_ERKTableID>(number));
    if (table == nullptr) continue;
    const auto name = names.find(number);
    tables.push_back({name != names.end() ? name->second : "table " + std::to_string(number),
                      number, table->d != nullptr});
    ARKodeButcherTable_Free(table);
  }
  return tables;
}
std::vector<Table> diagonally_implicit_tables() {
  return {{"ESDIRK 3", ARKODE_ESDIRK324L2SA_4_2_3},
          {"SDIRK 4", ARKODE_SDIRK_5_3_4},
          {"Kvaerno 5", ARKODE_KVAERNO_7_4_5},
          {"ESDIRK 5", ARKODE_ESDIRK547L2SA_7_4_5}};
}

}  // namespace portwave::bench
