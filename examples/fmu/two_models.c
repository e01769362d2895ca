/* Two models behind the interface of FMI 2.0 for co-simulation, as small as such a thing can be:
 *
 *   -DMASS     a mass.    Takes a force F, answers its velocity v and position x:  m dv/dt = F
 *   otherwise  a spring.  Takes the velocity v of its end, answers the force F = k x + d v
 *
 * make_fmus.py compiles them and packs them as mass.fmu and spring.fmu.
 */
#include <stdlib.h>

enum { F, V, X, M, K, D, COUNT }; /* value references */

typedef struct {
  double value[COUNT];
} model;

typedef int status; /* 0: ok */

static void answer(model *m) {
#ifndef MASS
  m->value[F] = m->value[K] * m->value[X] + m->value[D] * m->value[V];
#else
  (void)m;
#endif
}

const char *fmi2GetVersion(void) { return "2.0"; }
const char *fmi2GetTypesPlatform(void) { return "default"; }

void *fmi2Instantiate(const char *name, int kind, const char *guid, const char *resources,
                      const void *callbacks, int visible, int logs) {
  model *m = calloc(1, sizeof *m);
  (void)name, (void)kind, (void)guid, (void)resources, (void)callbacks, (void)visible, (void)logs;
  if (m == NULL) return NULL;
  m->value[M] = 1.0;
  m->value[K] = 100.0;
  m->value[D] = 1.0;
  return m;
}
void fmi2FreeInstance(void *m) { free(m); }
status fmi2SetupExperiment(void *m, int a, double b, double c, int d, double e) {
  (void)m, (void)a, (void)b, (void)c, (void)d, (void)e;
  return 0;
}
status fmi2EnterInitializationMode(void *m) { return m == NULL; }
status fmi2ExitInitializationMode(void *m) { return m == NULL; }
status fmi2Terminate(void *m) { return m == NULL; }

status fmi2GetReal(void *m, const unsigned *which, size_t count, double *values) {
  size_t i;
  answer(m);
  for (i = 0; i < count; ++i) values[i] = ((model *)m)->value[which[i]];
  return 0;
}
status fmi2SetReal(void *m, const unsigned *which, size_t count, const double *values) {
  size_t i;
  for (i = 0; i < count; ++i) ((model *)m)->value[which[i]] = values[i];
  return 0;
}
/* There are no variables of these types. */
status fmi2GetInteger(void *m, const unsigned *which, size_t count, int *values) {
  return (void)m, (void)which, (void)values, count != 0;
}
status fmi2SetInteger(void *m, const unsigned *which, size_t count, const int *values) {
  return (void)m, (void)which, (void)values, count != 0;
}
status fmi2GetBoolean(void *m, const unsigned *which, size_t count, int *values) {
  return fmi2GetInteger(m, which, count, values);
}
status fmi2SetBoolean(void *m, const unsigned *which, size_t count, const int *values) {
  return fmi2SetInteger(m, which, count, values);
}

/* A step with its input held: exact for the spring's position, and for the mass. */
status fmi2DoStep(void *instance, double time, double h, int no_return) {
  model *m = instance;
  (void)time, (void)no_return;
#ifdef MASS
  {
    const double acceleration = m->value[F] / m->value[M];
    m->value[X] += h * m->value[V] + 0.5 * h * h * acceleration;
    m->value[V] += h * acceleration;
  }
#else
  m->value[X] += h * m->value[V];
#endif
  answer(m);
  return 0;
}

/* What lets a coupling iterate: the state is saved and restored. */
status fmi2GetFMUstate(void *m, void **saved) {
  if (*saved == NULL) *saved = malloc(sizeof(model));
  if (*saved == NULL) return 3;
  *(model *)*saved = *(model *)m;
  return 0;
}
status fmi2SetFMUstate(void *m, void *saved) {
  *(model *)m = *(model *)saved;
  return 0;
}
status fmi2FreeFMUstate(void *m, void **saved) {
  (void)m;
  free(*saved);
  *saved = NULL;
  return 0;
}
