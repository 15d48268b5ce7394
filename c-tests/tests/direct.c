/* Ways of using heaptap that the runtime does not take. `direct WAY FILE`, rate 1:
 *
 *   addresses   blocks followed one by one by their addresses
 *   walker      a stack walker of the host's own
 *   deep-walker the same with more frames than the limit
 *   no-stacks   neither tables nor walker
 *   own-sweeps  two mutators, each swept by itself, one ending with the other as heir
 *   drops       a writer that falls behind, since the host explains codes slowly; samples are dropped
 *   waits       the same, but mutators wait
 */
#include <unistd.h>

#include "bare.h"

static bare host, other;
static const char *file;
static uintptr_t major[1024];

static void addresses(void) {
  heaptap_options options = bare_options(file, 1);
  options.follow = HEAPTAP_FOLLOW_ADDRESSES;
  bare_start(&host, &options);
  uintptr_t *kept = bare_alloc(&host, 2), *dead = bare_alloc(&host, 3);
  GIVES_OK(heaptap_block_promote(host.mutator, kept, major + 1));
  GIVES_OK(heaptap_block_collect(host.mutator, dead));
  GIVES_OK(heaptap_block_collect(host.mutator, major + 500)); /* not tracked */
  GIVES_OK(heaptap_block_move(host.mutator, major + 1, major + 101));
  GIVES_OK(heaptap_block_move(host.mutator, major + 101, major + 201));
  heaptap_major_alloc(host.mutator, major + 1, 5); /* where another block was */
  GIVES_OK(heaptap_block_collect(host.mutator, major + 201));
  GIVES_OK(heaptap_block_collect(host.mutator, major + 201)); /* no longer tracked */
  heaptap_stats stats = {.size = sizeof stats};
  GIVES_OK(heaptap_tracer_stats(host.tracer, &stats));
  CHECK(stats.allocations == 3 && stats.promotions == 1 && stats.collections == 2);
  CHECK(stats.live_blocks == 1);
  bare_stop(&host);
}

static size_t depth;

static size_t walk(void *unused, uint64_t *codes, size_t capacity) {
  (void)unused;
  for (size_t i = 0; i < depth && i < capacity; i++) codes[i] = 0x5000 + i;
  return depth;
}

static void with_walker(size_t frames, uint32_t max_frames) {
  heaptap_options options = bare_options(file, 1);
  options.max_frames = max_frames;
  memset(&host, 0, sizeof host);
  depth = frames;
  GIVES_OK(heaptap_tracer_start(&options, &host.tracer));
  heaptap_mutator_options mutator = {.size = sizeof mutator, .walk = frames == 0 ? NULL : walk};
  GIVES_OK(heaptap_mutator_start(host.tracer, &mutator, &host.mutator));
  bare_renew(&host);
  for (int i = 0; i < 3; i++) {
    bare_alloc(&host, 2);
    if (depth > 1) depth--;
  }
  bare_stop(&host);
}

static void walker(void) { with_walker(5, 0); }
static void deep_walker(void) { with_walker(5000, 64); }
static void no_stacks(void) { with_walker(0, 0); }

static heaptap_fate promote_to_major(void *next, void **block) {
  *block = *(uintptr_t **)next;
  *(uintptr_t **)next += 8;
  return HEAPTAP_FATE_PROMOTED;
}

static void own_sweeps(void) {
  heaptap_options options = bare_options(file, 1);
  bare_start(&host, &options);
  heaptap_mutator_options second = bare_mutator_options(&other);
  bare_make_stack(&other);
  GIVES_OK(heaptap_mutator_start(host.tracer, &second, &other.mutator));
  bare_renew(&other);
  bare_alloc(&host, 2);
  bare_alloc(&other, 2);
  bare_alloc(&other, 2);
  uintptr_t *next = major;
  GIVES_OK(heaptap_young_sweep(other.mutator, promote_to_major, &next)); /* its own two only */
  heaptap_stats stats = {.size = sizeof stats};
  GIVES_OK(heaptap_tracer_stats(host.tracer, &stats));
  CHECK(stats.promotions == 2 && stats.collections == 0 && stats.live_blocks == 3);
  GIVES_OK(heaptap_mutator_end(other.mutator, host.mutator));
  GIVES_OK(heaptap_major_sweep(host.mutator, bare_all_die, NULL)); /* the inherited two */
  GIVES_OK(heaptap_young_sweep(host.mutator, bare_all_die, NULL));
  GIVES_OK(heaptap_tracer_stats(host.tracer, &stats));
  CHECK(stats.collections == 3 && stats.live_blocks == 0 && stats.mutators == 1);
  bare_stop(&host);
}

/* A stack that is another each time, and names that take a while. */
static size_t walk_anew(void *unused, uint64_t *codes, size_t capacity) {
  static uint64_t next = 0x10000;
  (void)unused;
  if (capacity > 0) codes[0] = next++;
  return 1;
}

static void locate(void *unused, uint64_t code, heaptap_places *places) {
  char name[32];
  (void)unused;
  snprintf(name, sizeof name, "slow%llx", (unsigned long long)code);
  heaptap_place place = {"slow.c", name, 1, 2, 3, HEAPTAP_NO_PLACE};
  heaptap_places_add(places, &place);
  usleep(100);
}

static void slow_writer(uint32_t when_full, size_t rounds) {
  heaptap_options options = bare_options(file, 1);
  options.when_full = when_full;
  options.wait_ms = 60000;
  options.buffer_kib = 256;
  options.locate = locate;
  memset(&host, 0, sizeof host);
  GIVES_OK(heaptap_tracer_start(&options, &host.tracer));
  heaptap_mutator_options mutator = {.size = sizeof mutator, .walk = walk_anew};
  GIVES_OK(heaptap_mutator_start(host.tracer, &mutator, &host.mutator));
  static const size_t parts[] = {2};
  size_t lost = 0;
  for (size_t round = 0; round < rounds; round++) {
    for (bare_renew(&host); host.young_ptr > host.young;) {
      host.young_ptr -= 2;
      CHECK((void *)host.young_ptr < host.limit); /* rate 1, also after a loss */
      heaptap_status status = heaptap_young_hit(host.mutator, host.young_ptr, parts, 1, &host.limit);
      lost += status == HEAPTAP_STATUS_LOST;
      CHECK(status == HEAPTAP_STATUS_OK || status == HEAPTAP_STATUS_LOST);
    }
    GIVES_OK(heaptap_young_sweep(host.mutator, bare_all_die, NULL));
  }
  heaptap_stats stats = {.size = sizeof stats};
  GIVES_OK(heaptap_tracer_stats(host.tracer, &stats));
  CHECK(stats.sampled_blocks == rounds * YOUNG_WORDS / 2);
  CHECK(stats.allocations + stats.dropped == stats.sampled_blocks && stats.dropped == lost);
  CHECK(when_full == HEAPTAP_FULL_DROP ? lost > 0 : lost == 0 && stats.waits > 0);
  printf("recorded %llu\nlost %zu\n", (unsigned long long)stats.allocations, lost);
  bare_stop(&host);
}

static void drops(void) { slow_writer(HEAPTAP_FULL_DROP, 10); }
static void waits(void) { slow_writer(HEAPTAP_FULL_WAIT, 4); }

int main(int argc, char **argv) {
  static const struct { const char *name; void (*run)(void); } ways[] = {
    {"addresses", addresses}, {"walker", walker},         {"deep-walker", deep_walker},
    {"no-stacks", no_stacks}, {"own-sweeps", own_sweeps},
    {"drops", drops},         {"waits", waits},
  };
  if (argc != 3) return 2;
  file = argv[2];
  for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
    if (strcmp(ways[i].name, argv[1]) != 0) continue;
    ways[i].run();
    return bare_end();
  }
  return 2;
}
