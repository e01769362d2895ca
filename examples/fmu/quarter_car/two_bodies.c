/* Two models behind the interface of FMI 2.0 for co-simulation: a body on a spring and a damper, and what carries it.
 * With the values by default they are a quarter of a car on a step of the road.
 *
 *   -DCHASSIS  takes the velocity v of what carries it, answers the force F on that:
 *              q' = vc - v,  m vc' = -F,  x' = vc,  F = k q + d (vc - v)
 *   otherwise  the wheel. Takes the force F, answers its velocity v and position x:
 *              x' = v,  m v' = F - k (x - road) - d v
 *
 * Steps are exact for inputs that are held: the exponential of the equations, kept for the last step size.
 * make_quarter_car.py compiles and packs them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Value references. The states are the first ones, so that a start value of a state is that state. */
#ifdef CHASSIS
enum { Q, VC, X, V, F, IMPULSE, M, K, D, COUNT };
#define INPUT V
static const double kStart[COUNT] = {[M] = 400.0, [K] = 15000.0, [D] = 1000.0};
enum { STATES = 3 };
#else
enum { X, V, F, M, K, D, ROAD, COUNT };
#define INPUT F
static const double kStart[COUNT] = {[M] = 40.0, [K] = 150000.0, [ROAD] = 0.1};
enum { STATES = 2 };
#endif
enum { SIZE = STATES + 2 }; /* states, the input, 1 */

typedef double matrix[SIZE][SIZE];
typedef struct {
  double value[COUNT];
  double h; /* of the exponential; 0: there is none */
  matrix exponential;
} model;

typedef int status; /* 0: ok, 3: error */

static void answer(model *m) {
#ifdef CHASSIS
  double *const v = m->value;
  v[F] = v[K] * v[Q] + v[D] * (v[VC] - v[V]);
  v[IMPULSE] = -v[M] * v[VC]; /* its rate is F */
#else
  (void)m;
#endif
}

static void multiply(matrix a, matrix b, matrix out) {
  matrix sum;
  int i, j, k;
  for (i = 0; i < SIZE; ++i)
    for (j = 0; j < SIZE; ++j)
      for (sum[i][j] = 0.0, k = 0; k < SIZE; ++k) sum[i][j] += a[i][k] * b[k][j];
  memcpy(out, sum, sizeof sum);
}

/* exp(h A) by a Taylor series of a part of the step, squared. */
static void prepare(model *m, double h) {
  const double *const v = m->value;
  matrix a = {{0.0}}, term;
  double norm = 0.0;
  int i, j, n, squarings = 0;
  if (m->h == h) return;
#ifdef CHASSIS
  a[Q][VC] = 1.0, a[Q][STATES] = -1.0;
  a[VC][Q] = -v[K] / v[M], a[VC][VC] = -v[D] / v[M], a[VC][STATES] = v[D] / v[M];
  a[X][VC] = 1.0;
#else
  a[X][V] = 1.0;
  a[V][X] = -v[K] / v[M], a[V][V] = -v[D] / v[M], a[V][STATES] = 1.0 / v[M];
  a[V][STATES + 1] = v[K] * v[ROAD] / v[M];
#endif
  for (i = 0; i < SIZE; ++i)
    for (j = 0; j < SIZE; ++j) norm = fmax(norm, fabs(h * a[i][j]));
  while (norm > 0.1) norm /= 2.0, ++squarings;
  for (i = 0; i < SIZE; ++i)
    for (j = 0; j < SIZE; ++j) {
      a[i][j] *= ldexp(h, -squarings);
      m->exponential[i][j] = term[i][j] = i == j;
    }
  for (n = 1; n <= 14; ++n) {
    multiply(term, a, term);
    for (i = 0; i < SIZE; ++i)
      for (j = 0; j < SIZE; ++j) {
        term[i][j] /= n;
        m->exponential[i][j] += term[i][j];
      }
  }
  while (squarings-- > 0) multiply(m->exponential, m->exponential, m->exponential);
  m->h = h;
}

#define EXPORT __attribute__((visibility("default")))

EXPORT const char *fmi2GetVersion(void) { return "2.0"; }
EXPORT const char *fmi2GetTypesPlatform(void) { return "default"; }

EXPORT void *fmi2Instantiate(const char *name, int kind, const char *guid, const char *resources, const void *callbacks,
                             int visible, int logs) {
  model *m = calloc(1, sizeof *m);
  (void)name, (void)kind, (void)guid, (void)resources, (void)callbacks, (void)visible, (void)logs;
  if (m != NULL) memcpy(m->value, kStart, sizeof kStart);
  return m;
}
EXPORT void fmi2FreeInstance(void *m) { free(m); }
EXPORT status fmi2SetDebugLogging(void *m, int on, size_t count, const char *const *categories) {
  (void)on, (void)count, (void)categories;
  return m == NULL;
}
EXPORT status fmi2SetupExperiment(void *m, int a, double b, double c, int d, double e) {
  (void)a, (void)b, (void)c, (void)d, (void)e;
  return m == NULL;
}
EXPORT status fmi2EnterInitializationMode(void *m) { return m == NULL; }
EXPORT status fmi2ExitInitializationMode(void *m) { return m == NULL; }
EXPORT status fmi2Terminate(void *m) { return m == NULL; }
EXPORT status fmi2Reset(void *instance) {
  model *m = instance;
  memcpy(m->value, kStart, sizeof kStart);
  m->h = 0.0;
  return 0;
}

EXPORT status fmi2GetReal(void *instance, const unsigned *which, size_t count, double *values) {
  model *m = instance;
  size_t i;
  answer(m);
  for (i = 0; i < count; ++i) {
    if (which[i] >= COUNT) return 3;
    values[i] = m->value[which[i]];
  }
  return 0;
}
EXPORT status fmi2SetReal(void *instance, const unsigned *which, size_t count, const double *values) {
  model *m = instance;
  size_t i;
  for (i = 0; i < count; ++i) {
    if (which[i] >= COUNT) return 3;
    if (which[i] >= M) m->h = 0.0; /* other parameters */
    m->value[which[i]] = values[i];
  }
  return 0;
}

EXPORT status fmi2DoStep(void *instance, double time, double h, int no_return) {
  model *m = instance;
  double x[SIZE];
  int i, j;
  (void)time, (void)no_return;
  prepare(m, h);
  for (i = 0; i < STATES; ++i) x[i] = m->value[i];
  x[STATES] = m->value[INPUT], x[STATES + 1] = 1.0;
  for (i = 0; i < STATES; ++i)
    for (m->value[i] = 0.0, j = 0; j < SIZE; ++j) m->value[i] += m->exponential[i][j] * x[j];
  answer(m);
  return 0;
}

/* What lets a coupling iterate: the state is saved and restored. */
EXPORT status fmi2GetFMUstate(void *m, void **saved) {
  if (*saved == NULL) *saved = malloc(sizeof(model));
  if (*saved == NULL) return 3;
  *(model *)*saved = *(model *)m;
  return 0;
}
EXPORT status fmi2SetFMUstate(void *m, void *saved) {
  *(model *)m = *(model *)saved;
  return 0;
}
EXPORT status fmi2FreeFMUstate(void *m, void **saved) {
  (void)m;
  free(*saved);
  *saved = NULL;
  return 0;
}

/* Not offered, or for variables of types that there are none of; some importers load only what has them all. */
#define NOT_OFFERED(name) \
  EXPORT status name(void *m) { return (void)m, 3; }
#define NO_VARIABLES(name) \
  EXPORT status name(void *m, const unsigned *which, size_t count) { return (void)m, (void)which, count > 0 ? 3 : 0; }
NO_VARIABLES(fmi2GetInteger)
NO_VARIABLES(fmi2SetInteger)
NO_VARIABLES(fmi2GetBoolean)
NO_VARIABLES(fmi2SetBoolean)
NO_VARIABLES(fmi2GetString)
NO_VARIABLES(fmi2SetString)
NOT_OFFERED(fmi2SerializedFMUstateSize)
NOT_OFFERED(fmi2SerializeFMUstate)
NOT_OFFERED(fmi2DeSerializeFMUstate)
NOT_OFFERED(fmi2GetDirectionalDerivative)
NOT_OFFERED(fmi2SetRealInputDerivatives)
NOT_OFFERED(fmi2GetRealOutputDerivatives)
NOT_OFFERED(fmi2CancelStep)
NOT_OFFERED(fmi2GetStatus)
NOT_OFFERED(fmi2GetRealStatus)
NOT_OFFERED(fmi2GetIntegerStatus)
NOT_OFFERED(fmi2GetBooleanStatus)
NOT_OFFERED(fmi2GetStringStatus)
