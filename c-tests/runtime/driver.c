/* main(): options, one managed thread with a large C stack, the program, its checksum and counters.
 *
 *   PROGRAM [SIZE] [OPTION ...]
 *   --trace FILE --rate R --seed N       trace; without --trace as HEAPTAP in the environment says
 *   --max-frames N --native --drop --buffer-kib N --context TEXT
 *   --young WORDS                        of each young heap
 *   --compact-every N                    every Nth major collection compacts
 *   --counters                           print the runtime's own counters
 *   --stats                              print the tracer's
 *   --stacks FILE                        the runtime's own view of every allocation's stack
 *   --final-gc                           drop all roots and collect everything at the end
 *   --walk-ms N --walk-segv              snapshots: the walk takes longer, or its process dies
 *   --c-stack-mib N --managed-stack-mib N
 * and what the program asks for with rt_option.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heaptap.h>

#include "runtime.h"
#include "trace.h"

static int argument_count;
static char **arguments;
static uint64_t checksum;

const char *rt_option(const char *name) {
  for (int i = 1; i < argument_count; i++)
    if (strcmp(arguments[i], name) == 0) return i + 1 < argument_count ? arguments[i + 1] : "";
  return NULL;
}

static bool flag(const char *name) { return rt_option(name) != NULL; }

static size_t number(const char *name, size_t otherwise) {
  const char *text = rt_option(name);
  return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

size_t rt_c_stack_bytes(void) {
  return number("--c-stack-mib", rt_the_program.threads ? 8 : 1024) << 20;
}

void rt_sites_add(rt_sites sites) { rt_trace_add_sites(sites); }
void rt_label(rt_mutator *m, const char *name) { rt_trace_label(m, name); }

static void start_trace(void) {
  const char *rate = rt_option("--rate");
  rt_trace_options options = {
    .file = rt_option("--trace"),
    .rate = rate == NULL ? 0 : strtod(rate, NULL),
    .seed = number("--seed", 0),
    .one_mutator = !rt_the_program.threads,
    .native_frames = flag("--native"),
    .drop_when_full = flag("--drop"),
    .max_frames = (uint32_t)number("--max-frames", 0),
    .buffer_kib = (uint32_t)number("--buffer-kib", 0),
    .context = rt_option("--context"),
  };
  rt_trace_start(&options);
}

static void print_counters(void) {
  const rt_counters *c = &rt.counters;
  printf("counters young_blocks=%" PRIu64 " young_words=%" PRIu64 " major_blocks=%" PRIu64
         " major_words=%" PRIu64 " external_blocks=%" PRIu64 " external_words=%" PRIu64,
         c->young_blocks, c->young_words, c->major_blocks, c->major_words, c->external_blocks,
         c->external_words);
  printf(" promoted_blocks=%" PRIu64 " promoted_words=%" PRIu64 " collected_blocks=%" PRIu64
         " minor_collections=%" PRIu64 " major_collections=%" PRIu64 " compactions=%" PRIu64
         " finalised=%" PRIu64 " weak_cleared=%" PRIu64 "\n",
         c->promoted_blocks, c->promoted_words, c->collected_blocks, c->minor_collections,
         c->major_collections, c->compactions, c->finalised, c->weak_cleared);
}

static void print_stats(void) {
  heaptap_stats s = {.size = sizeof s};
  if (rt_trace_tracer() == NULL || heaptap_tracer_stats(rt_trace_tracer(), &s) != HEAPTAP_STATUS_OK) {
    printf("stats none\n");
    return;
  }
  printf("stats state=%d mutators=%u samples=%" PRIu64 " sampled_blocks=%" PRIu64
         " allocations=%" PRIu64 " promotions=%" PRIu64 " collections=%" PRIu64 " dropped=%" PRIu64,
         (int)s.state, s.mutators, s.samples, s.sampled_blocks, s.allocations, s.promotions,
         s.collections, s.dropped);
  printf(" waits=%" PRIu64 " bytes=%" PRIu64 " hook_ns=%" PRIu64 " live_blocks=%" PRIu64 "\n", s.waits,
         s.bytes, s.hook_ns, s.live_blocks);
}

static rt_value run(rt_mutator *m, rt_value size) {
  checksum = rt_the_program.run(m, (size_t)rt_to_int(size));
  return RT_NIL;
}

static void *managed_thread(void *size) {
  rt_mutator *m = rt_mutator_start();
  rt_callback(m, run, rt_from_int((intptr_t)*(size_t *)size));
  if (flag("--final-gc")) {
    rt.roots.count = 0;
    rt_collect_major(m); /* runs finalisers, */
    rt_collect_major(m); /* and finds dead what they were for */
  } else {
    rt_collect_minor(m); /* for the counters */
  }
  if (flag("--stats")) print_stats();
  rt_mutator_end(m, NULL);
  return NULL;
}

int main(int argc, char **argv) {
  argument_count = argc;
  arguments = argv;
  size_t size = argc > 1 && argv[1][0] != '-' ? strtoull(argv[1], NULL, 10) : rt_the_program.size;
  rt.young_words = number("--young", 32 * 1024);
  rt.stack_words = number("--managed-stack-mib", 64) << 17;
  rt.compact_every = number("--compact-every", 0);
  rt.major.threshold = 65536;
  rt_stacks_open(rt_option("--stacks"));
  start_trace();
  rt_snapshot_register((rt_snapshot_fault){(unsigned)number("--walk-ms", 0), flag("--walk-segv")});

  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  size_t stack = rt_c_stack_bytes();
  if (stack < (size_t)64 << 20) stack = (size_t)64 << 20;
  pthread_attr_setstacksize(&attributes, stack);
  if (pthread_create(&thread, &attributes, managed_thread, &size) != 0) rt_fatal("no thread");
  pthread_attr_destroy(&attributes);
  pthread_join(thread, NULL);

  rt_trace_stop();
  rt_stacks_close();
  rt_chunks_free(rt.major.chunks);
  printf("%s %zu checksum %016" PRIx64 "\n", rt_the_program.name, size, checksum);
  if (flag("--counters")) print_counters();
  return 0;
}
