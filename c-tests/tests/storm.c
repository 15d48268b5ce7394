/* Hooks in a storm of signals. A timer interrupts the mutator thousands of times a second; the handler
 * does nothing, or calls malloc and free, which would hang or break if it came in the middle of a malloc
 * of the hook's. The thread calls nothing that allocates but the handler. `storm nothing|malloc FILE N` */
#include <signal.h>
#include <sys/time.h>

#include "bare.h"

static volatile sig_atomic_t signals, with_malloc;
static bare host;
static uintptr_t major[8];

static void handler(int signal) {
  (void)signal;
  signals++;
  if (!with_malloc) return;
  void *volatile memory = malloc(64 + (size_t)signals % 4096);
  free(memory);
}

static heaptap_fate every_other(void *count, void **block) {
  *block = (char *)*block + sizeof host;
  return (*(size_t *)count)++ % 2 == 0 ? HEAPTAP_FATE_PROMOTED : HEAPTAP_FATE_DEAD;
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  with_malloc = strcmp(argv[1], "malloc") == 0;
  heaptap_options options = bare_options(argv[2], 1);
  bare_start(&host, &options);
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigaction(SIGPROF, &action, NULL);
  sigaction(SIGALRM, &action, NULL);
  struct itimerval often = {{0, 100}, {0, 100}};
  setitimer(ITIMER_PROF, &often, NULL);
  setitimer(ITIMER_REAL, &often, NULL);

  size_t made = 0, count = 0, rounds = strtoull(argv[3], NULL, 10);
  for (size_t round = 0; round < rounds || signals < 2000; round++) {
    for (size_t i = 0; i < 100; i++, made++) bare_alloc(&host, 1 + i % 7);
    heaptap_major_alloc(host.mutator, major + 1, 4);
    heaptap_external_alloc(host.mutator, major, 64);
    heaptap_external_free(host.mutator, major);
    made += 2;
    GIVES_OK(heaptap_tracer_young_sweep(host.tracer, every_other, &count));
    GIVES_OK(heaptap_tracer_major_sweep(host.tracer, bare_all_die, NULL));
    bare_renew(&host);
  }
  struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_PROF, &never, NULL);
  setitimer(ITIMER_REAL, &never, NULL);

  heaptap_stats stats = {.size = sizeof stats};
  GIVES_OK(heaptap_tracer_stats(host.tracer, &stats));
  CHECK(stats.allocations == made && stats.collections == made && stats.dropped == 0);
  bare_stop(&host);
  printf("made %zu signals %d\n", made, (int)signals);
  return bare_end();
}
