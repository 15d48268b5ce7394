/* A host compiled with the header of version 0.1.0 (the Makefile includes old/heaptap-0.1.0.h first) and
 * linked with today's library: everything works, and nothing behind its structs is touched.
 * `old_host FILE`. */
#include "bare.h"

_Static_assert(HEAPTAP_VERSION_MAJOR == 0 && HEAPTAP_VERSION_MINOR == 1 && HEAPTAP_VERSION_PATCH == 0,
               "this is compiled with the old header");

static bare host;

/* A struct of the old header, and what the host keeps behind it. */
static struct {
  heaptap_stats stats;
  unsigned char behind[256];
} room;

int main(int argc, char **argv) {
  static uintptr_t major[5], external[8];
  if (argc != 2) return 2;
  heaptap_options options = bare_options(argv[1], 1);
  bare_start(&host, &options);
  for (size_t i = 0; i < 100; i++) bare_alloc(&host, 2);
  heaptap_major_alloc(host.mutator, major + 1, 5);
  heaptap_external_alloc(host.mutator, external, sizeof external);
  GIVES_OK(heaptap_external_free(host.mutator, external));
  GIVES_OK(heaptap_tracer_young_sweep(host.tracer, bare_all_die, NULL));

  memset(&room, 0xA5, sizeof room);
  room.stats.size = sizeof room.stats;
  GIVES_OK(heaptap_tracer_stats(host.tracer, &room.stats));
  CHECK(room.stats.size == sizeof room.stats);
  CHECK(room.stats.state == HEAPTAP_STATUS_OK && room.stats.mutators == 1);
  CHECK(room.stats.samples == 100 * 3 + 5 + 8);
  CHECK(room.stats.allocations == 102 && room.stats.collections == 101 && room.stats.dropped == 0);
  for (size_t i = 0; i < sizeof room.behind; i++) CHECK(room.behind[i] == 0xA5);
  bare_stop(&host);
  return bare_end();
}
