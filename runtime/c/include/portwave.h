/* portwave from C: load a scenario, own the loop.
 *
 *   portwave_simulation* simulation = NULL;
 *   if (portwave_load("arm.json", NULL, 0, &simulation) != PORTWAVE_OK) {
 *     fprintf(stderr, "%s\n", portwave_last_error());
 *     return 1;
 *   }
 *   int voltage = portwave_find_input(simulation, "motor.voltage");
 *   int angle = portwave_find_quantity(simulation, "load.angle");
 *   while (portwave_time(simulation) < 5.0) {
 *     portwave_set_input(simulation, voltage, controller(portwave_read(simulation, angle)));
 *     if (portwave_step(simulation) != PORTWAVE_OK) break;
 *   }
 *   portwave_free(simulation);
 *
 * No function throws, and none ends the program. Functions that can fail return a status; what went
 * wrong is then in portwave_last_error(), of the calling thread. A simulation is used by one thread
 * at a time; different ones by different threads at once. Strings are UTF-8 and end with 0; those
 * that are returned belong to the library.
 *
 * Structures that the caller gives begin with their own size, so that later versions may add
 * members at their end: set `size = sizeof(structure)` first.
 */
#ifndef PORTWAVE_H
#define PORTWAVE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PORTWAVE_API __attribute__((visibility("default")))
#else
#define PORTWAVE_API
#endif

/* Raised when a program that was compiled against an older version would not run. */
#define PORTWAVE_ABI_VERSION 1

/* The ABI of the library that is loaded: compare with PORTWAVE_ABI_VERSION. */
PORTWAVE_API int portwave_abi_version(void);
/* The version of the library, such as "0.1.0". */
PORTWAVE_API const char* portwave_version(void);

typedef enum portwave_status {
  PORTWAVE_OK = 0,
  PORTWAVE_INVALID_ARGUMENT = 1, /* a null pointer, a number out of range, an unknown name */
  PORTWAVE_CONFIG_ERROR = 2,     /* defects of a scenario: portwave_issue tells them one by one */
  PORTWAVE_STEP_ERROR = 3,       /* a step failed; the state before it stands */
  PORTWAVE_NOT_POSSIBLE = 4,     /* not with this method or these options */
  PORTWAVE_NO_MEMORY = 5,
  PORTWAVE_FAILED = 6            /* anything else */
} portwave_status;

/* What the last call of this thread that failed had to say; "" before the first. */
PORTWAVE_API const char* portwave_last_error(void);
/* Defects told by the last call of this thread that returned PORTWAVE_CONFIG_ERROR. */
PORTWAVE_API size_t portwave_issue_count(void);
/* JSON pointer and text of one; "" for a number that there is not. */
PORTWAVE_API const char* portwave_issue_where(size_t issue);
PORTWAVE_API const char* portwave_issue_text(size_t issue);

/* Of the last call of this thread that returned PORTWAVE_STEP_ERROR, and of the part that failed, as far
 * as known: its state before the step, its external inputs and the waves incident at its ports [sqrt(J)].
 * Writes at most `room` numbers to `values`, which may be NULL where room is 0, and returns how many there
 * are; 0 where nothing is known. */
PORTWAVE_API size_t portwave_failed_state(double* values, size_t room);
PORTWAVE_API size_t portwave_failed_inputs(double* values, size_t room);
PORTWAVE_API size_t portwave_failed_waves(double* values, size_t room);
/* What was left of the equations of that step, as a share of their terms. NaN: not known. */
PORTWAVE_API double portwave_failed_residual(void);
/* Name of the part; "" where none is known. */
PORTWAVE_API const char* portwave_failed_part(void);

/* A system with its stepper. */
typedef struct portwave_simulation portwave_simulation;

/* A scenario file. `overrides`: `count` strings "/json/pointer=value" as of `portwave run --set`;
 * may be NULL where count is 0. On failure *simulation is NULL. */
PORTWAVE_API portwave_status portwave_load(const char* path, const char* const* overrides,
                                           size_t count, portwave_simulation** simulation);
/* The same from text; relative paths in it are relative to `folder`, NULL: the working folder. */
PORTWAVE_API portwave_status portwave_parse(const char* text, const char* folder,
                                            const char* const* overrides, size_t count,
                                            portwave_simulation** simulation);
/* Of its own state, at the same time; observers are not copied. */
PORTWAVE_API portwave_status portwave_clone(const portwave_simulation* simulation,
                                            portwave_simulation** clone);
/* NULL is ignored. From within an observer it does nothing, and portwave_last_error says so: the
 * simulation is at a step. */
PORTWAVE_API void portwave_free(portwave_simulation* simulation);

/* Threads from now on, >= 1; the state stays. Results do not depend on it. A new simulation has 1. */
PORTWAVE_API portwave_status portwave_set_threads(portwave_simulation* simulation, int threads);

/* One macro-step of the scenario's size; of another size [s], finite and > 0; `steps` of them, from 0 to
 * 2^53; up to a time [s], finite and no more than 2^53 steps away. Of what is neither
 * PORTWAVE_INVALID_ARGUMENT, and nothing has changed. */
PORTWAVE_API portwave_status portwave_step(portwave_simulation* simulation);
PORTWAVE_API portwave_status portwave_step_by(portwave_simulation* simulation, double step_s);
PORTWAVE_API portwave_status portwave_run(portwave_simulation* simulation, int64_t steps);
PORTWAVE_API portwave_status portwave_run_until(portwave_simulation* simulation, double time_s);

/* Simulated time [s], and macro-steps made. NULL: NaN and -1. */
PORTWAVE_API double portwave_time(const portwave_simulation* simulation);
PORTWAVE_API int64_t portwave_step_index(const portwave_simulation* simulation);

/* Inputs of the kind "settable", numbered from 0. -1 for a name that is none; portwave_last_error
 * says which was probably meant. */
PORTWAVE_API int portwave_find_input(const portwave_simulation* simulation, const char* name);
PORTWAVE_API int portwave_input_count(const portwave_simulation* simulation);
PORTWAVE_API portwave_status portwave_set_input(portwave_simulation* simulation, int input,
                                                double value);
PORTWAVE_API portwave_status portwave_set_inputs(portwave_simulation* simulation,
                                                 const double* values, size_t count);
/* NaN for a number that is none. */
PORTWAVE_API double portwave_get_input(const portwave_simulation* simulation, int input);

/* A number of a part, "load.inertia_kgm2" or "arm.masses_kg[1]", changed between steps: states go on,
 * and what the part stores more then counts as supplied. Snapshots from before do not fit any more. */
PORTWAVE_API portwave_status portwave_set_parameter(portwave_simulation* simulation,
                                                    const char* path, double value);
PORTWAVE_API portwave_status portwave_get_parameter(const portwave_simulation* simulation,
                                                    const char* path, double* value);

/* A quantity to read: "part.state", "part.port.effort", ".flow", ".incident", ".outgoing",
 * "part.storage", or a signal of the controller. The same name gives the same number. -1 for a name
 * that is none. Efforts and flows are means over the last step. */
PORTWAVE_API int portwave_find_quantity(portwave_simulation* simulation, const char* name);
/* Unit of a quantity, such as "rad/s"; "" for a number that is none. */
PORTWAVE_API const char* portwave_unit(const portwave_simulation* simulation, int quantity);
/* NaN for a number that is none. */
PORTWAVE_API double portwave_read(const portwave_simulation* simulation, int quantity);
PORTWAVE_API portwave_status portwave_read_all(const portwave_simulation* simulation,
                                               const int* quantities, size_t count, double* values);

/* All states, part by part in the order of the scenario; those of a part that is cut once, as the part has
 * them. `count` must be portwave_state_count. */
PORTWAVE_API size_t portwave_state_count(const portwave_simulation* simulation);
PORTWAVE_API portwave_status portwave_states(const portwave_simulation* simulation, double* values,
                                             size_t count);

/* Energies of the run [J]: final - initial = supplied - dissipated - mismatch, up to rounding. */
typedef struct portwave_energy {
  size_t size;
  double initial_J, final_J, supplied_J, dissipated_J, mismatch_J, tank_J;
  int certificate; /* 0: holds, 1: conditional, 2: violated */
} portwave_energy;
PORTWAVE_API portwave_status portwave_get_energy(const portwave_simulation* simulation,
                                                 portwave_energy* energy);

/* What the last step did. */
typedef struct portwave_report {
  size_t size;
  double step_s;   /* its size */
  double residual; /* of the interface; 0 where nobody looks */
  int iterations;
  int converged;      /* a tolerance was met */
  int rejected_steps; /* attempts before this step */
} portwave_report;
PORTWAVE_API portwave_status portwave_get_report(const portwave_simulation* simulation,
                                                 portwave_report* report);

/* A state to come back to: the run then goes on as it did, bit by bit. */
typedef struct portwave_snapshot portwave_snapshot;
PORTWAVE_API portwave_status portwave_snapshot_new(portwave_snapshot** snapshot);
PORTWAVE_API void portwave_snapshot_free(portwave_snapshot* snapshot);
/* Writes over what is in it; its memory is used again. */
PORTWAVE_API portwave_status portwave_take(const portwave_simulation* simulation,
                                           portwave_snapshot* snapshot);
PORTWAVE_API portwave_status portwave_restore(portwave_simulation* simulation,
                                              const portwave_snapshot* snapshot);

/* Called after every step; NULL: no longer. It may read the simulation, clone it, take snapshots, set
 * inputs and put another observer in its place. It cannot step, restore, change or free the simulation
 * that calls it: PORTWAVE_NOT_POSSIBLE, and nothing has changed. Returning other than 0 ends
 * `portwave_run` and `portwave_run_until` after that step with PORTWAVE_NOT_POSSIBLE ("stopped by the
 * observer"). */
typedef int (*portwave_observer)(portwave_simulation* simulation, void* context);
PORTWAVE_API portwave_status portwave_observe(portwave_simulation* simulation,
                                              portwave_observer observer, void* context);

#ifdef __cplusplus
}
#endif

#endif
