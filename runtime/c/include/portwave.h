/* portwave from C: load a scenario or build a network, own the loop.
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
 * Errors   Functions that can fail return a status; portwave_last_error() then has the text, per
 *          thread. No function throws an exception or ends the program. A null pointer is
 *          PORTWAVE_INVALID_ARGUMENT unless stated otherwise. A call that fails changes nothing
 *          unless stated otherwise.
 * Threads  One thread at a time may use a simulation; different threads may use different
 *          simulations at once.
 * Strings  All are UTF-8 and end with 0. Returned strings belong to the library and stay valid until
 *          the next call of the same thread.
 * Structs  A structure that the caller provides begins with its own size, so that later versions can
 *          append members: set `size = sizeof(structure)` before the call.
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

/* ABI of this header. It increases when programs compiled against an older header can no longer run. */
#define PORTWAVE_ABI_VERSION 1

/* Returns the ABI of the loaded library, to compare with PORTWAVE_ABI_VERSION. */
PORTWAVE_API int portwave_abi_version(void);
/* Returns the version of the library, such as "0.1.0". */
PORTWAVE_API const char* portwave_version(void);

typedef enum portwave_status {
  PORTWAVE_OK = 0,
  PORTWAVE_INVALID_ARGUMENT = 1, /* a null pointer, a value out of range, or an unknown name */
  PORTWAVE_CONFIG_ERROR = 2,     /* the scenario has defects, which portwave_issue_text lists */
  PORTWAVE_STEP_ERROR = 3,       /* a step failed; the state before it stands */
  PORTWAVE_NOT_POSSIBLE = 4,     /* the method, the options or the moment do not allow the call */
  PORTWAVE_NO_MEMORY = 5,        /* memory is exhausted */
  PORTWAVE_FAILED = 6            /* any other failure */
} portwave_status;

/* Returns the text of this thread's last error; "" before the first one. */
PORTWAVE_API const char* portwave_last_error(void);

/* Defects of this thread's last PORTWAVE_CONFIG_ERROR: their number, and for each one, from 0, its JSON
 * pointer into the scenario and its text. The strings are "" for an index out of range. */
PORTWAVE_API size_t portwave_issue_count(void);
PORTWAVE_API const char* portwave_issue_where(size_t issue);
PORTWAVE_API const char* portwave_issue_text(size_t issue);

/* Facts on the part that failed in this thread's last PORTWAVE_STEP_ERROR: its state before the step [units
 * of the states], its external inputs [units of the inputs], and the incident waves at its ports [sqrt(J)].
 * Each function writes at most `capacity` numbers to `values` and returns how many there are; 0 where
 * nothing is known. `values` may be NULL where `capacity` is 0. */
PORTWAVE_API size_t portwave_failed_state(double* values, size_t capacity);
PORTWAVE_API size_t portwave_failed_inputs(double* values, size_t capacity);
PORTWAVE_API size_t portwave_failed_waves(double* values, size_t capacity);
/* Returns the residual of the equations of that step, relative to their terms; NaN where unknown. */
PORTWAVE_API double portwave_failed_residual(void);
/* Returns the name of that part; "" where unknown. */
PORTWAVE_API const char* portwave_failed_part(void);

/* A system and its stepper. */
typedef struct portwave_simulation portwave_simulation;

/* Worker threads that several simulations and ensembles share: together they use no more threads than it has. */
typedef struct portwave_arena portwave_arena;
/* Creates an arena of `threads` >= 1: a caller and the workers that help it. portwave_arena_free releases it;
 * what was made with it keeps its threads. */
PORTWAVE_API portwave_status portwave_arena_new(int threads, portwave_arena** arena);
/* Releases an arena; NULL is ignored. */
PORTWAVE_API void portwave_arena_free(portwave_arena* arena);

/* How a simulation steps. Members that are 0 are not given. */
typedef struct portwave_options {
  size_t size;
  int threads;       /* number of threads; 0: 1 */
  double deadline_s; /* a step is committed within this time of its beginning [s]; 0: no deadline */
  double pace;       /* simulated time per wall time; 0: as fast as possible */
  portwave_arena* arena; /* whose workers help; NULL: the simulation's own */
  int allow_plugins; /* not 0: FMUs and plugins that a scenario names are loaded: code with all your rights */
} portwave_options;

/* Loads a plugin: a shared library that adds types of parts, for the life of the program. It must bring its own
 * copy of portwave. Not while another thread builds or loads. Errors: PORTWAVE_CONFIG_ERROR. */
PORTWAVE_API portwave_status portwave_load_plugin(const char* path);

/* Loads a scenario file. `overrides` are `count` strings "/json/pointer=value", as for
 * `portwave run --set`; NULL where `count` is 0. On success *simulation is a new simulation, which
 * portwave_free releases; on failure it is NULL.
 * Errors: PORTWAVE_CONFIG_ERROR, also where the file cannot be read. */
PORTWAVE_API portwave_status portwave_load(const char* path, const char* const* overrides,
                                           size_t count, portwave_simulation** simulation);
/* Loads a scenario from text. Relative paths in it refer to `folder`; NULL: the working folder. */
PORTWAVE_API portwave_status portwave_parse(const char* text, const char* folder,
                                            const char* const* overrides, size_t count,
                                            portwave_simulation** simulation);
/* The same with options; NULL: none. */
PORTWAVE_API portwave_status portwave_load_with(const char* path, const char* const* overrides,
                                                size_t count, const portwave_options* options,
                                                portwave_simulation** simulation);
PORTWAVE_API portwave_status portwave_parse_with(const char* text, const char* folder,
                                                 const char* const* overrides, size_t count,
                                                 const portwave_options* options,
                                                 portwave_simulation** simulation);

/* A network in the making. Its functions collect what they are told, and portwave_builder_build reports every
 * defect at once and names the parts. What cannot be taken at all (a text that is no JSON, an unknown number of a
 * part) is PORTWAVE_INVALID_ARGUMENT at once, and a defect of the network too. Types, parameters, kinds of joints
 * and keys are those of scenario files. */
typedef struct portwave_builder portwave_builder;
/* Creates an empty network with macro-steps of `step_s` > 0 [s], which portwave_builder_free releases. */
PORTWAVE_API portwave_status portwave_builder_new(const char* name, double step_s,
                                                  portwave_builder** builder);
/* Releases a builder; NULL is ignored. */
PORTWAVE_API void portwave_builder_free(portwave_builder* builder);
/* Adds a part of a type of the catalogue. `parameters` is a JSON object, such as "{\"mass_kg\": 2}"; NULL: none.
 * Returns the number of the part, from 0 in the order of addition; -1 for a null pointer. */
PORTWAVE_API int portwave_builder_add(portwave_builder* builder, const char* name, const char* type,
                                      const char* parameters);
/* Gives one parameter of a part, in its unit. */
PORTWAVE_API portwave_status portwave_builder_set_parameter(portwave_builder* builder, int part,
                                                            const char* parameter, double value);
/* Gives the initial value of a state, in its unit. */
PORTWAVE_API portwave_status portwave_builder_set_state(portwave_builder* builder, int part,
                                                        const char* state, double value);
/* Gives an external input: a signal in JSON, as in scenario files; NULL: settable by portwave_set_input. */
PORTWAVE_API portwave_status portwave_builder_set_input(portwave_builder* builder, int part,
                                                        const char* input, const char* signal);
/* Cuts a linear part into `pieces`, 1 to 10 000, that are stepped in parallel. It keeps its names: "plate.q1",
 * "plate.tip.flow". */
PORTWAVE_API portwave_status portwave_builder_cut(portwave_builder* builder, int part, int pieces);
/* A port of a part, by its name. */
typedef struct portwave_port {
  int part;
  const char* port;
} portwave_port;
/* Joins `count` ports by a joint of a kind such as "common_flow". `options` is a JSON object with further keys,
 * such as "{\"ratio\": 3}"; NULL: none. */
PORTWAVE_API portwave_status portwave_builder_join(portwave_builder* builder, const char* kind,
                                                   const portwave_port* ports, size_t count,
                                                   const char* options);
/* Joins two ports by a connection: equal efforts, opposite flows. */
PORTWAVE_API portwave_status portwave_builder_connect(portwave_builder* builder, int part_1,
                                                      const char* port_1, int part_2,
                                                      const char* port_2);
/* Sets any other value of the scenario by its JSON pointer, such as "/method" to "{\"kind\": \"auto\"}". */
PORTWAVE_API portwave_status portwave_builder_set(portwave_builder* builder, const char* pointer,
                                                  const char* value);
/* Builds a simulation, with options unless these are NULL. The builder stays as it is and may build again.
 * Errors: PORTWAVE_CONFIG_ERROR with every defect. */
PORTWAVE_API portwave_status portwave_builder_build(const portwave_builder* builder,
                                                    const portwave_options* options,
                                                    portwave_simulation** simulation);

/* Return the number of notes on the scenario, then the place (a JSON pointer) and the text of each: what is allowed
 * but probably not meant, such as shafts that turn against each other. They live as long as the simulation;
 * 0 for NULL, "" for a number out of range. */
PORTWAVE_API size_t portwave_note_count(const portwave_simulation* simulation);
PORTWAVE_API const char* portwave_note_where(const portwave_simulation* simulation, size_t note);
PORTWAVE_API const char* portwave_note_text(const portwave_simulation* simulation, size_t note);

/* Creates an independent copy with the same state and time. The observer is not copied. */
PORTWAVE_API portwave_status portwave_clone(const portwave_simulation* simulation,
                                            portwave_simulation** clone);
/* Releases a simulation; NULL is ignored. Within the simulation's own observer it does nothing but set
 * portwave_last_error. */
PORTWAVE_API void portwave_free(portwave_simulation* simulation);

/* Sets the number of threads, >= 1, for the following steps; 1 at first. The state stays, and results do
 * not depend on it. */
PORTWAVE_API portwave_status portwave_set_threads(portwave_simulation* simulation, int threads);

/* Each step is all or nothing. Errors of these four: PORTWAVE_STEP_ERROR where a step fails (earlier steps
 * of the same call stand); PORTWAVE_INVALID_ARGUMENT for a value out of range. A call returns after the step in
 * which an event with "end_run" happens, with PORTWAVE_OK: portwave_ended_by then has its name. A later call goes
 * on from there. */
/* Advances by one macro-step of the scenario's size. */
PORTWAVE_API portwave_status portwave_step(portwave_simulation* simulation);
/* Advances by one macro-step of size `step_s` [s], finite and > 0. */
PORTWAVE_API portwave_status portwave_step_by(portwave_simulation* simulation, double step_s);
/* Advances by `steps` macro-steps of the scenario's size, from 0 to 2^53. */
PORTWAVE_API portwave_status portwave_step_n(portwave_simulation* simulation, int64_t steps);
/* Advances to `time_s` [s], finite and at most 2^53 steps away; the last step is shortened to end there. */
PORTWAVE_API portwave_status portwave_run_until(portwave_simulation* simulation, double time_s);

/* An event of the scenario: a quantity passed its level. */
typedef struct portwave_event {
  size_t size;
  double time_s;    /* when [s] */
  const char* name; /* of the entry of "events", or of the part whose equations changed there */
  const char* direction; /* "rising", "falling", or what a part calls it: "closes", "opens" */
  int rising;            /* 1: from below the level to above it, 0: from above */
  int ends_run;          /* 1: the entry has "end_run" */
} portwave_event;
/* Returns the number of events in the last call that stepped; 0 for NULL. After portwave_restore: of the last
 * step. */
PORTWAVE_API size_t portwave_event_count(const portwave_simulation* simulation);
/* Writes one of them, from 0 in order of time, to *out; its texts are valid until the simulation is stepped, given
 * threads, or freed. Errors: PORTWAVE_INVALID_ARGUMENT for a number out of range. */
PORTWAVE_API portwave_status portwave_get_event(const portwave_simulation* simulation, size_t event,
                                                portwave_event* out);
/* Returns the name of the event with "end_run" that happened in the last step; "" where none did. */
PORTWAVE_API const char* portwave_ended_by(const portwave_simulation* simulation);

/* Returns the simulated time [s]; NaN for NULL. */
PORTWAVE_API double portwave_time(const portwave_simulation* simulation);
/* Returns the number of macro-steps made; -1 for NULL. */
PORTWAVE_API int64_t portwave_step_index(const portwave_simulation* simulation);

/* Returns the index, from 0, of an input of the kind "settable" by its name "part.input"; -1 for an
 * unknown name, and portwave_last_error then suggests the nearest one. */
PORTWAVE_API int portwave_find_input(const portwave_simulation* simulation, const char* name);
/* Returns the number of settable inputs; -1 for NULL. */
PORTWAVE_API int portwave_input_count(const portwave_simulation* simulation);
/* Sets one input, in its unit, for the following steps. `value` must be finite. */
PORTWAVE_API portwave_status portwave_set_input(portwave_simulation* simulation, int input,
                                                double value);
/* Sets all inputs by index; `count` must be portwave_input_count. */
PORTWAVE_API portwave_status portwave_set_inputs(portwave_simulation* simulation,
                                                 const double* values, size_t count);
/* Returns the present value of an input, in its unit; NaN for an index out of range. */
PORTWAVE_API double portwave_get_input(const portwave_simulation* simulation, int input);

/* Changes a parameter of a part, such as "load.inertia_kgm2" or "arm.masses_kg[1]", between two steps. The
 * states stay; the change of the stored energy counts as supplied. Snapshots hold the value; restoring one
 * from before undoes the change. Errors: PORTWAVE_CONFIG_ERROR for a value that is not allowed. */
PORTWAVE_API portwave_status portwave_set_parameter(portwave_simulation* simulation,
                                                    const char* path, double value);
/* Writes the present value of a parameter, in its unit, to *value. */
PORTWAVE_API portwave_status portwave_get_parameter(const portwave_simulation* simulation,
                                                    const char* path, double* value);

/* Returns the index of a quantity by its name: "part.state", "part.port.effort", ".flow", ".incident",
 * ".outgoing", "part.storage" [J], or a signal of the controller. Efforts and flows are means over the last
 * step. The same name always has the same index. -1 for an unknown name; portwave_last_error then suggests
 * the nearest one. */
PORTWAVE_API int portwave_find_quantity(portwave_simulation* simulation, const char* name);
/* Returns the unit of a quantity, such as "rad/s"; "" for an index out of range. */
PORTWAVE_API const char* portwave_unit(const portwave_simulation* simulation, int quantity);
/* Returns the present value of a quantity, in its unit; NaN and an error for an index out of range. */
PORTWAVE_API double portwave_read(const portwave_simulation* simulation, int quantity);
/* Writes the values of `count` quantities to `values`. Errors: PORTWAVE_INVALID_ARGUMENT for an index out of
 * range. */
PORTWAVE_API portwave_status portwave_read_all(const portwave_simulation* simulation,
                                               const int* quantities, size_t count, double* values);

/* Returns the number of states of all parts; 0 for NULL. */
PORTWAVE_API size_t portwave_state_count(const portwave_simulation* simulation);
/* Writes all states, part by part in the order of the scenario, in their units. A part that is cut into
 * pieces has each of its states once. `count` must be portwave_state_count. */
PORTWAVE_API portwave_status portwave_states(const portwave_simulation* simulation, double* values,
                                             size_t count);
/* Writes all states, in the same order, at a time `time_s` [s] within the last step.
 * Errors: PORTWAVE_NOT_POSSIBLE where steps are of one size, but for the methods "kick-drift" and "taylor":
 * there are states at their ends only; PORTWAVE_INVALID_ARGUMENT for another time or `count`. */
PORTWAVE_API portwave_status portwave_state_at(const portwave_simulation* simulation, double time_s,
                                               double* values, size_t count);
/* Sets all states, in the same order, between two steps. Time, inputs and accounts go on; the change of the stored
 * energy counts as supplied. Errors: PORTWAVE_INVALID_ARGUMENT for another `count`, and naming all parts with a
 * state that is not finite, or in which a part cannot be; PORTWAVE_NOT_POSSIBLE with methods without waves but
 * "kick-drift" and "taylor", and for parts of foreign programs. */
PORTWAVE_API portwave_status portwave_set_states(portwave_simulation* simulation,
                                                 const double* values, size_t count);

/* Energy ledger of the run [J]: final - initial = supplied - dissipated - numerical dissipation - mismatch - impact,
 * up to rounding. */
typedef struct portwave_energy {
  size_t size;
  double initial_J, final_J, supplied_J, dissipated_J, mismatch_J;
  double tank_J;                  /* what the passivity guard holds in reserve */
  int certificate;                /* 0: holds, 1: conditional, 2: violated */
  double impact_J;                /* taken by impulses, at states that violated rigid joints */
  double numerical_dissipation_J; /* what damped steps took */
} portwave_energy;
/* Writes the ledger to *energy. */
PORTWAVE_API portwave_status portwave_get_energy(const portwave_simulation* simulation,
                                                 portwave_energy* energy);

/* Report of the last step. */
typedef struct portwave_report {
  size_t size;
  double step_s;      /* its size [s] */
  double residual;    /* of the inner iteration; 0 where the method does not compute it */
  int iterations;     /* inner iterations */
  int converged;      /* 1: a tolerance was met, 0: it was not, or there is none */
  int rejected_steps; /* attempts before this step, where steps choose their size */
} portwave_report;
/* Writes the report to *report. */
PORTWAVE_API portwave_status portwave_get_report(const portwave_simulation* simulation,
                                                 portwave_report* report);

/* Returns what is wrong with the steps so far, in phrases separated by "; ": steps that missed their tolerance, parts
 * that agree poorly, motion that the steps do not resolve, a certificate that does not hold. "" where every check
 * holds, as for `portwave run --strict`; "" and portwave_last_error for NULL. Not for a loop: it looks at every part. */
PORTWAVE_API const char* portwave_shortcomings(const portwave_simulation* simulation);

/* How well steps kept to the deadline. */
typedef struct portwave_deadline {
  size_t size;
  int64_t steps;            /* made under the deadline */
  int64_t misses;           /* committed after it */
  int64_t preempted_misses; /* those among them in which the processor was lost */
  double worst_slack_s;     /* smallest deadline - duration [s] */
  double slack_p01_s, slack_p50_s,
      slack_p99_s; /* its quantiles over the last steps: 1 %, 50 %, 99 % [s] */
  int64_t
      guard_misses; /* of the other misses: in time but for the guard, or own work beside the steps */
  int64_t late_misses; /* of the others: in time but for a late beginning, due to the step before */
  int64_t
      trial_misses; /* of the others: an iteration or a solve was tried that did not seem to fit */
  double unused_share; /* mean share of the time that was left in steps that could have used it */
  double jitter_s;     /* slack_p99_s - slack_p01_s */
} portwave_deadline;
/* Writes it to *deadline. Errors: PORTWAVE_NOT_POSSIBLE without a deadline. */
PORTWAVE_API portwave_status portwave_get_deadline(const portwave_simulation* simulation,
                                                   portwave_deadline* deadline);

/* The complete state of a run between two steps. */
typedef struct portwave_snapshot portwave_snapshot;
/* Creates an empty snapshot, which portwave_snapshot_free releases. */
PORTWAVE_API portwave_status portwave_snapshot_new(portwave_snapshot** snapshot);
/* Releases a snapshot; NULL is ignored. */
PORTWAVE_API void portwave_snapshot_free(portwave_snapshot* snapshot);
/* Saves the state of a simulation; earlier contents of the snapshot are overwritten, its memory reused. */
PORTWAVE_API portwave_status portwave_snapshot_save(const portwave_simulation* simulation,
                                                    portwave_snapshot* snapshot);
/* Returns to a saved state; the run then continues bit by bit as it did from there. Errors:
 * PORTWAVE_INVALID_ARGUMENT for an empty snapshot, or one of a run that began with another system, other
 * parameters or options. */
PORTWAVE_API portwave_status portwave_restore(portwave_simulation* simulation,
                                              const portwave_snapshot* snapshot);

/* Function that is called after every step. It may read the simulation, clone it, save snapshots, set inputs
 * and replace the observer. It cannot step, restore, change or free the simulation that calls it: such calls
 * return PORTWAVE_NOT_POSSIBLE. A result other than 0 ends portwave_step_n and portwave_run_until after the
 * step, with PORTWAVE_NOT_POSSIBLE ("stopped by the observer"). */
typedef int (*portwave_observer)(portwave_simulation* simulation, void* context);
/* Sets the observer of a simulation and the `context` that it receives; NULL removes the observer. */
PORTWAVE_API portwave_status portwave_set_observer(portwave_simulation* simulation,
                                                   portwave_observer observer, void* context);

/* The derivatives of T steps with n states, m settable inputs and k parameters, per unit of each. Matrices are
 * row-major; NULL stands for one of zeros where it is read, and for one that is not wanted where it is written. */
typedef struct portwave_derivatives portwave_derivatives;
/* Advances by `steps` >= 0 macro-steps and differentiates each of them, at the fixed point of its equations, by the
 * states before it, the inputs and `count` parameters such as "load.inertia_kgm2". `inputs` [steps, m] are held over
 * one step each; NULL: inputs stay as they are. Fewer steps are made where an event ends the run.
 * Errors: PORTWAVE_STEP_ERROR; PORTWAVE_INVALID_ARGUMENT, naming it, for what has no such derivatives: methods without
 * waves, signal graphs, steps that choose their size, cut parts, foreign programs, parameters that are 0. Steps that
 * were made before an error stand. */
PORTWAVE_API portwave_status portwave_differentiate(portwave_simulation* simulation, int64_t steps,
                                                    const double* inputs,
                                                    const char* const* parameters, size_t count,
                                                    portwave_derivatives** derivatives);
/* Releases derivatives; NULL is ignored. */
PORTWAVE_API void portwave_derivatives_free(portwave_derivatives* derivatives);
/* Returns T, the number of steps that were made; 0 for NULL. */
PORTWAVE_API int64_t portwave_derivatives_steps(const portwave_derivatives* derivatives);
/* Writes the derivatives of the states after step 0 to T - 1 by the states before it [n, n], by the inputs [n, m] and
 * by the parameters [n, k]. */
PORTWAVE_API portwave_status portwave_get_derivatives(const portwave_derivatives* derivatives,
                                                      int64_t step, double* by_state,
                                                      double* by_input, double* by_parameter);
/* Writes the changes of the states before the first step and after each [T + 1, n] that follow from changes of the
 * states at the start [n], of the inputs [T, m] and of the parameters [k]. */
PORTWAVE_API portwave_status portwave_tangent(const portwave_derivatives* derivatives,
                                              const double* state, const double* inputs,
                                              const double* parameters, double* states);
/* Writes the gradient of a scalar by the states at the start [n], the inputs [T, m] and the parameters [k]; `weights`
 * [T + 1, n] are its derivatives by the states before the first step and after each. Cost: that of one roll-out of
 * tangents, whatever T, m and k. */
PORTWAVE_API portwave_status portwave_adjoint(const portwave_derivatives* derivatives,
                                              const double* weights, double* state, double* inputs,
                                              double* parameters);

/* Many replicas of one system, stepped side by side, each with its own parameters, states and inputs. Arrays are
 * row-major with one row per replica. */
typedef struct portwave_ensemble portwave_ensemble;
/* Creates `replicas` >= 1 of the system of a simulation, as it starts and with its present parameters; they then
 * stand alone. In replica i the `count` parameters, such as "load.inertia_kgm2", have the values of row i of
 * `values`. Of the options it takes the threads and the arena; NULL: one thread.
 * Errors: PORTWAVE_CONFIG_ERROR, naming replica, part and parameter, and for a scenario with "events", which an
 * ensemble does not know; PORTWAVE_INVALID_ARGUMENT. */
PORTWAVE_API portwave_status portwave_ensemble_new(const portwave_simulation* simulation,
                                                   int replicas, const char* const* parameters,
                                                   size_t count, const double* values,
                                                   const portwave_options* options,
                                                   portwave_ensemble** ensemble);
/* Releases an ensemble; NULL is ignored. */
PORTWAVE_API void portwave_ensemble_free(portwave_ensemble* ensemble);
/* Return the number of replicas, of states and of settable inputs of a replica, of replicas that have failed, and
 * of steps made; -1, and 0 states, for NULL. */
PORTWAVE_API int portwave_ensemble_replicas(const portwave_ensemble* ensemble);
PORTWAVE_API size_t portwave_ensemble_state_count(const portwave_ensemble* ensemble);
PORTWAVE_API int portwave_ensemble_input_count(const portwave_ensemble* ensemble);
PORTWAVE_API int portwave_ensemble_failures(const portwave_ensemble* ensemble);
PORTWAVE_API int64_t portwave_ensemble_step_index(const portwave_ensemble* ensemble);
/* Advances all replicas by `steps` macro-steps. A replica whose step fails stops alone. */
PORTWAVE_API portwave_status portwave_ensemble_step_n(portwave_ensemble* ensemble, int64_t steps);
/* Changes a parameter of a part of one replica, as portwave_set_parameter does, from its next run on, or from now on
 * before the first step; the others keep theirs. Errors, naming the replica: PORTWAVE_CONFIG_ERROR for a value
 * that is not allowed; PORTWAVE_INVALID_ARGUMENT for an unknown name or replica. */
PORTWAVE_API portwave_status portwave_ensemble_set_parameter(portwave_ensemble* ensemble,
                                                             int replica, const char* path,
                                                             double value);
/* Writes the value that it has in the next run, in its unit, to *value. */
PORTWAVE_API portwave_status portwave_ensemble_get_parameter(const portwave_ensemble* ensemble,
                                                             int replica, const char* path,
                                                             double* value);
/* Begins a new run from these states; sets the settable inputs; writes the states, NaN where a replica has
 * failed. `count` is that of all rows. */
PORTWAVE_API portwave_status portwave_ensemble_set_states(portwave_ensemble* ensemble,
                                                          const double* values, size_t count);
PORTWAVE_API portwave_status portwave_ensemble_set_inputs(portwave_ensemble* ensemble,
                                                          const double* values, size_t count);
PORTWAVE_API portwave_status portwave_ensemble_states(const portwave_ensemble* ensemble,
                                                      double* values, size_t count);
/* A new run of `steps` macro-steps from x0 [replicas, states], under u [replicas, steps, inputs], each row of which
 * is held over its step. Writes the states after every `every`-th step, which divides the steps, to x [replicas,
 * steps/every, states]; `count` is the number of all of them. NULL for x0: from the initial states; for u: inputs
 * stay as they are. */
PORTWAVE_API portwave_status portwave_ensemble_rollout(portwave_ensemble* ensemble,
                                                       const double* x0, const double* u, int steps,
                                                       int every, double* x, size_t count);
/* Writes the ledger of a replica to *energy. */
PORTWAVE_API portwave_status portwave_ensemble_get_energy(const portwave_ensemble* ensemble,
                                                          int replica, portwave_energy* energy);
/* Returns why a replica has failed; "" where it has not. */
PORTWAVE_API const char* portwave_ensemble_error(const portwave_ensemble* ensemble, int replica);

#ifdef __cplusplus
}
#endif

#endif
