/* Stands before the library of an FMU, and counts its steps: 8 bytes of the file that the environment names by
 * FMU_DO_STEPS are raised by one in every call of doStep, whoever makes it. All other functions are found in the
 * library itself, which this one is linked with (count_steps.py). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void count(void) {
  static uint64_t *steps = NULL;
  if (steps == NULL) {
    const char *const name = getenv("FMU_DO_STEPS");
    const int file = name == NULL ? -1 : open(name, O_RDWR);
    if (file < 0) abort(); /* a count that is not taken is none */
    steps = mmap(NULL, sizeof *steps, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (steps == MAP_FAILED) abort();
  }
  __atomic_fetch_add(steps, 1, __ATOMIC_RELAXED);
}

int fmi2DoStep(void *instance, double time, double step, int no_return) {
  static int (*next)(void *, double, double, int) = NULL;
  if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "fmi2DoStep");
  count();
  return next(instance, time, step, no_return);
}

int fmi3DoStep(void *instance, double time, double step, bool no_return, bool *event, bool *terminate, bool *early,
               double *last) {
  static int (*next)(void *, double, double, bool, bool *, bool *, bool *, double *) = NULL;
  if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "fmi3DoStep");
  count();
  return next(instance, time, step, no_return, event, terminate, early, last);
}
