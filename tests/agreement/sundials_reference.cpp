#if defined(PORTWAVE_TESTS_SUNDIALS)

#include "agreement/sundials_reference.hpp"

#include <algorithm>
#include <arkode/arkode_erkstep.h>
#include <cvode/cvode.h>
#include <nvector/nvector_serial.h>
#include <stdexcept>
#include <string>
#include <sundials/sundials_context.h>
#include <sunnonlinsol/sunnonlinsol_fixedpoint.h>

namespace portwave::agreement {
namespace {

constexpr double kRelative = 1e-12, kAbsolute = 1e-12;
constexpr long kMostSteps = 10'000'000;

void require(int flag) {
  if (flag < 0) throw std::runtime_error("SUNDIALS failed with " + std::to_string(flag));
}

int rate_of(double t, N_Vector y, N_Vector y_dot, void* arm) {
  rate(*static_cast<const RobotArm*>(arm), t, NV_DATA_S(y), NV_DATA_S(y_dot));
  return 0;
}

void by_adams(RobotArm& arm, double time_s, N_Vector y, SUNContext context) {
  void* memory = CVodeCreate(CV_ADAMS, context);
  require(CVodeInit(memory, rate_of, 0.0, y));
  require(CVodeSetUserData(memory, &arm));
  require(CVodeSStolerances(memory, kRelative, kAbsolute));
  require(CVodeSetMaxNumSteps(memory, kMostSteps));
  require(CVodeSetStopTime(memory, time_s));
  SUNNonlinearSolver nonlinear = SUNNonlinSol_FixedPoint(y, 0, context);
  require(CVodeSetNonlinearSolver(memory, nonlinear));
  double reached = 0.0;
  require(CVode(memory, time_s, y, &reached, CV_NORMAL));
  SUNNonlinSolFree(nonlinear);
  CVodeFree(&memory);
}

void by_runge_kutta(RobotArm& arm, double time_s, N_Vector y, SUNContext context) {
  void* memory = ERKStepCreate(rate_of, 0.0, y, context);
  require(ERKStepSetUserData(memory, &arm));
  require(ERKStepSetTableNum(memory, ARKODE_FEHLBERG_13_7_8));
  require(ERKStepSStolerances(memory, kRelative, kAbsolute));
  require(ERKStepSetMaxNumSteps(memory, kMostSteps));
  require(ERKStepSetStopTime(memory, time_s));
  double reached = 0.0;
  require(ERKStepEvolve(memory, time_s, y, &reached, ARK_NORMAL));
  ERKStepFree(&memory);
}

}  // namespace

Unknowns by_sundials(const RobotArm& arm, double time_s, Peer peer) {
  SUNContext context = nullptr;
  require(SUNContext_Create(nullptr, &context));
  N_Vector y = N_VNew_Serial(static_cast<sunindextype>(kUnknowns), context);
  Unknowns state = at_start(arm);
  std::ranges::copy(state, NV_DATA_S(y));
  RobotArm own = arm;
  (peer == Peer::adams ? by_adams : by_runge_kutta)(own, time_s, y, context);
  std::copy_n(NV_DATA_S(y), kUnknowns, state.begin());
  N_VDestroy(y);
  SUNContext_Free(&context);
  return state;
}

}  // namespace portwave::agreement

#endif  // PORTWAVE_TESTS_SUNDIALS
