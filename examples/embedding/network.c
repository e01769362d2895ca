/* A network of 2000 parts that is built in code, stepped under a deadline, changed and rolled back.
 * See docs/tutorial/network-in-code.md. */

#include <portwave.h>
#include <stdio.h>

enum { kCells = 500, kWatched = 100 };

static int failed(void) {
  fprintf(stderr, "%s\n", portwave_last_error());
  return 1;
}

/* [build] */
static int add(portwave_builder* network, int cell, const char* name, const char* type,
               const char* parameters) {
  char own[64];
  snprintf(own, sizeof own, "cell%d/%s", cell, name);
  return portwave_builder_add(network, own, type, parameters);
}

static portwave_builder* build_ring(void) {
  portwave_builder* network = NULL;
  if (portwave_builder_new("ring", 1e-3, &network) != PORTWAVE_OK) return NULL;
  int masses[kCells];
  for (int i = 0; i < kCells; ++i) {
    masses[i] = add(network, i, "mass", "mass", "{\"ports\": 4}");
    portwave_builder_set_parameter(network, masses[i], "mass_kg", 1.0 + 0.001 * i);
  }
  for (int i = 0; i < kCells; ++i) {
    int spring = add(network, i, "spring", "spring_damper",
                     "{\"stiffness_N_per_m\": 400, \"damping_Ns_per_m\": 0.1}");
    int oscillator =
        add(network, i, "oscillator", "duffing_oscillator",
            "{\"mass_kg\": 0.5, \"stiffness_N_per_m\": 20,"
            " \"cubic_stiffness_N_per_m3\": 2000, \"coupling_stiffness_N_per_m\": 50}");
    int friction = add(network, i, "friction", "coulomb_damper",
                       "{\"friction_N\": 0.05, \"creep_speed_m_per_s\": 0.01}");
    portwave_builder_connect(network, masses[i], "port_1", spring, "left");
    portwave_builder_connect(network, masses[(i + 1) % kCells], "port_2", spring, "right");
    portwave_builder_connect(network, masses[i], "port_3", oscillator, "coupling");
    portwave_builder_connect(network, masses[i], "port_4", friction, "end");
  }
  portwave_builder_set_state(network, masses[0], "velocity", 2.0);
  portwave_builder_set_input(network, masses[250], "force", NULL); /* settable */
  return network;
}
/* [build] */

int main(void) {
  /* [options] */
  portwave_arena* arena = NULL;
  if (portwave_arena_new(2, &arena) != PORTWAVE_OK) return failed();
  portwave_options options = {
      .size = sizeof options, .threads = 2, .deadline_s = 2e-3, .arena = arena};
  portwave_builder* network = build_ring();
  if (network == NULL) return failed();
  portwave_simulation* ring = NULL;
  if (portwave_builder_build(network, &options, &ring) != PORTWAVE_OK) return failed();
  portwave_builder_free(network);
  /* [options] */

  /* [loop] */
  int watched[kWatched];
  for (int k = 0; k < kWatched; ++k) {
    char name[64];
    snprintf(name, sizeof name, "cell%d/mass.velocity", 5 * k);
    watched[k] = portwave_find_quantity(ring, name);
    if (watched[k] < 0) return failed();
  }
  int force = portwave_find_input(ring, "cell250/mass.force");
  if (force < 0) return failed();

  double values[kWatched];
  for (int step = 0; step < 200; ++step) {
    portwave_set_input(ring, force, step < 100 ? 5.0 : 0.0);
    if (portwave_step(ring) != PORTWAVE_OK) return failed();
    portwave_read_all(ring, watched, kWatched, values);
  }
  /* [loop] */

  /* [rollback] */
  if (portwave_set_parameter(ring, "cell0/oscillator.stiffness_N_per_m", 80.0) != PORTWAVE_OK) {
    return failed();
  }
  portwave_snapshot* now = NULL;
  if (portwave_snapshot_new(&now) != PORTWAVE_OK) return failed();
  if (portwave_snapshot_save(ring, now) != PORTWAVE_OK) return failed();
  portwave_set_input(ring, force, 50.0);
  if (portwave_step_n(ring, 100) != PORTWAVE_OK) return failed();
  double if_pushed = portwave_read(ring, watched[50]);
  if (portwave_restore(ring, now) != PORTWAVE_OK) return failed();
  /* [rollback] */

  portwave_deadline deadline = {.size = sizeof deadline};
  if (portwave_get_deadline(ring, &deadline) != PORTWAVE_OK) return failed();
  portwave_energy energy = {.size = sizeof energy};
  if (portwave_get_energy(ring, &energy) != PORTWAVE_OK) return failed();
  printf("%d velocities, %g m/s at %g s, %g m/s if pushed, %lld steps under a deadline\n", kWatched,
         portwave_read(ring, watched[50]), portwave_time(ring), if_pushed,
         (long long)deadline.steps);
  portwave_snapshot_free(now);
  portwave_free(ring);
  portwave_arena_free(arena);
  return energy.certificate == 2 ? 1 : 0;
}
