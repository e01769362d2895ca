#include <math.h>
#include <portwave.h>
#include <stdio.h>

/* Steps a scenario with nothing but the installed C library: consumer_c <scenario>. */
int main(int argc, char** argv) {
  portwave_simulation* simulation = NULL;
  if (argc != 2) return 2;
  if (portwave_load(argv[1], NULL, 0, &simulation) != PORTWAVE_OK ||
      portwave_step_n(simulation, 10) != PORTWAVE_OK) {
    printf("%s\n", portwave_last_error());
    return 1;
  }
  portwave_energy energy;
  energy.size = sizeof energy;
  portwave_get_energy(simulation, &energy);
  printf("portwave %s: H = %.3f J after %.2f s\n", portwave_version(), energy.final_J,
         portwave_time(simulation));
  portwave_free(simulation);
  return isfinite(energy.final_J) ? 0 : 1;
}
