/* Functions of parts, for the tests of compiled ones. */

#include <math.h>
#include <pthread.h>
#include <stddef.h>

/* A pendulum of 1 kg at 1 m. */
double energy(const double* x) {
  const double s = sin(0.5 * x[0]);
  return 0.5 * x[1] * x[1] + 2.0 * 9.81 * s * s;
}

void gradient(const double* x, double* g) {
  g[0] = 9.81 * sin(x[0]);
  g[1] = x[1];
}

void hessian(const double* x, double* h) {
  h[0] = 9.81 * cos(x[0]);
  h[1] = h[2] = 0.0;
  h[3] = 1.0;
}

/* The mean gradient along a step. */
void step_gradient(const double* x, const double* x_next, double* g) {
  const double half = 0.5 * (x_next[0] - x[0]);
  const double share = fabs(half) < 1e-4 ? 1.0 - half * half / 6.0 : sin(half) / half;
  g[0] = 9.81 * sin(0.5 * (x[0] + x_next[0])) * share;
  g[1] = 0.5 * (x[1] + x_next[1]);
}

/* The same at another gravity, which comes as user data. */
double energy_by(const double* x, void* gravity) {
  const double s = sin(0.5 * x[0]);
  return 0.5 * x[1] * x[1] + 2.0 * *(const double*)gravity * s * s;
}

void gradient_by(const double* x, double* g, void* gravity) {
  g[0] = *(const double*)gravity * sin(x[0]);
  g[1] = x[1];
}

/* Friction that grows with the angle, and a lever arm that does, row by row. */
void dissipation(const double* x, double* R) {
  R[0] = R[1] = R[2] = 0.0;
  R[3] = 0.3 * x[0] * x[0];
}

void input(const double* x, double* G) {
  G[0] = 0.0;
  G[1] = cos(x[0]);
}

/* Beyond 1 rad it has no answer. */
void gradient_within(const double* x, double* g) {
  gradient(x, g);
  if (fabs(x[0]) > 1.0) g[0] = NAN;
}

/* Calls, and of these how many held the lock of the interpreter, as the function that it is told says. */
static int (*holds_lock)(void) = NULL;
static long calls = 0, with_lock = 0;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void watch(int (*given)(void)) {
  holds_lock = given;
  calls = with_lock = 0;
}
long call_count(void) { return calls; }
long lock_count(void) { return with_lock; }

void watched_gradient(const double* x, double* g) {
  gradient(x, g);
  pthread_mutex_lock(&mutex);
  calls += 1;
  if (holds_lock != NULL && holds_lock()) with_lock += 1;
  pthread_mutex_unlock(&mutex);
}
