/* A position servo: the program owns the loop and is the controller.
 * See docs/tutorial/embedding.md. */

#include <portwave.h>
#include <stdio.h>

static int failed(void) {
  fprintf(stderr, "%s\n", portwave_last_error());
  return 1;
}

int main(int argc, char** argv) {
  const char* file = argc > 1 ? argv[1] : "examples/embedding/servo.json";
  if (portwave_abi_version() != PORTWAVE_ABI_VERSION) {
    fprintf(stderr, "portwave %s is not the one this was compiled for\n", portwave_version());
    return 1;
  }
  /* [servo] */
  portwave_simulation* servo = NULL;
  if (portwave_load(file, NULL, 0, &servo) != PORTWAVE_OK) return failed();
  int voltage = portwave_find_input(servo, "supply.effort");
  int angle = portwave_find_quantity(servo, "load.angle");
  int speed = portwave_find_quantity(servo, "motor.speed");
  if (voltage < 0 || angle < 0 || speed < 0) return failed();

  while (portwave_time(servo) < 2.0) {
    double error = 1.0 - portwave_read(servo, angle);
    double wanted = 30.0 * error - 0.15 * portwave_read(servo, speed);
    if (wanted > 24.0) wanted = 24.0;
    if (wanted < -24.0) wanted = -24.0;
    portwave_set_input(servo, voltage, wanted);
    if (portwave_step(servo) != PORTWAVE_OK) return failed();
  }

  /* Try half a second at full voltage, then return. */
  portwave_snapshot* now = NULL;
  if (portwave_snapshot_new(&now) != PORTWAVE_OK) return failed();
  if (portwave_snapshot_save(servo, now) != PORTWAVE_OK) return failed();
  portwave_set_input(servo, voltage, 24.0);
  if (portwave_run_until(servo, 2.5) != PORTWAVE_OK) return failed();
  double if_full_voltage = portwave_read(servo, angle);
  if (portwave_restore(servo, now) != PORTWAVE_OK) return failed();
  /* [servo] */

  portwave_energy energy = {.size = sizeof energy};
  if (portwave_get_energy(servo, &energy) != PORTWAVE_OK) return failed();
  printf("%.9f rad at %g s, %.9f rad with full voltage, %g J supplied\n",
         portwave_read(servo, angle), portwave_time(servo), if_full_voltage, energy.supplied_J);
  portwave_snapshot_free(now);
  portwave_free(servo);
  return 0;
}
