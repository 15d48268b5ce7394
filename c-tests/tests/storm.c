/* Hooks in a storm of signals. A thread sends the mutator one SIGPROF or SIGALRM after the other; the
 * handler does nothing, or calls malloc and free, which would hang or break if it came in the middle of a
 * malloc of the hook's. The mutator calls nothing that allocates but the handler.
 * `storm nothing|malloc FILE SIGNALS` */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "bare.h"

static volatile sig_atomic_t signals, with_malloc, wanted;
static bare host;
static uintptr_t major[8];

static void handler(int signal) {
  (void)signal;
  signals++;
  if (!with_malloc) return;
  void *volatile memory = malloc(64 + (size_t)signals % 4096);
  free(memory);
}

static void *sender(void *mutator) {
  for (int i = 0; signals < wanted; i++) {
    pthread_kill(*(pthread_t *)mutator, i % 2 == 0 ? SIGPROF : SIGALRM);
    usleep(20);
  }
  return NULL;
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
  /* Neither signal comes in the middle of the other's handler, whose malloc it would find locked. */
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigaddset(&action.sa_mask, SIGPROF);
  sigaddset(&action.sa_mask, SIGALRM);
  sigaction(SIGPROF, &action, NULL);
  sigaction(SIGALRM, &action, NULL);
  wanted = atoi(argv[3]);
  pthread_t self = pthread_self(), thread;
  CHECK(pthread_create(&thread, NULL, sender, &self) == 0);

  size_t made = 0, count = 0;
  while (signals < wanted) {
    for (size_t i = 0; i < 100; i++, made++) bare_alloc(&host, 1 + i % 7);
    heaptap_major_alloc(host.mutator, major + 1, 4);
    heaptap_external_alloc(host.mutator, major, 64);
    heaptap_external_free(host.mutator, major);
    made += 2;
    GIVES_OK(heaptap_tracer_young_sweep(host.tracer, every_other, &count));
    GIVES_OK(heaptap_tracer_major_sweep(host.tracer, bare_all_die, NULL));
    bare_renew(&host);
  }
  pthread_join(thread, NULL);

  heaptap_stats stats = {.size = sizeof stats};
  GIVES_OK(heaptap_tracer_stats(host.tracer, &stats));
  CHECK(stats.allocations == made && stats.collections == made && stats.dropped == 0);
  bare_stop(&host);
  printf("made %zu signals %d\n", made, (int)signals);
  return bare_end();
}
