/* Measures the cost of a sampled block on its mutator: a host that only calls hooks.
 *
 *   hook FILE RATE DEPTH CHANGE BATCHES [BATCH]
 *
 * Every hook is a call of heaptap_young_hit for a block of 3 words with one sample (at rate 1: three), with
 * DEPTH frames on a synthetic managed stack. CHANGE says what is new since the last sample:
 *
 *   same       nothing                           suspended   like same, but samples are not recorded
 *   top        the innermost 4 frames            empty       there is no stack
 *   all        the call site of every frame      recursion   like same, with all frames of one call site
 *   turns      nothing, but two stacks take turns
 *
 * After each batch the blocks are swept and the file is flushed, outside the measured time, so that no hook
 * waits for the writer. Prints, for each batch, the thread's processor time for one hook and for one swept
 * block, in nanoseconds; then the tracer's own count of the samples, and its time.
 *
 * The young heap is addresses only: neither the host nor the tracer accesses it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <heaptap.h>

enum { SITES = 700, TOP = 4, BLOCK = 3, WARM_UP = 4, RECORD = 5 };
/* The words that a batch may write into the buffers before the writer is woken. */
enum { BATCH_WORDS = 200000, MOST_BATCH = 5000 };

static uint64_t seed = 1;
static size_t random_below(size_t bound) {
  seed = seed * UINT64_C(6364136223846793005) + 1;
  return (seed >> 33) % bound;
}

/* Call sites at irregular distances, as in real code, with frames of 2 to 14 words. */
static uintptr_t addresses[SITES];
static const uintptr_t last = 0x3F0000;

static void make_sites(void) {
  uintptr_t address = 0x555555554000;
  for (size_t i = 0; i < SITES; i++) addresses[i] = address += 5 + random_below(200);
}
static size_t words_of(size_t site) { return 2 * (1 + site % 7); }

static void fail(const char *what) {
  fprintf(stderr, "hook: %s\n", what);
  exit(1);
}
static void ok(heaptap_status status) {
  if (status != HEAPTAP_STATUS_OK) fail(heaptap_status_str(status));
}

/* --- Stacks ---------------------------------------------------------------------------- */

typedef struct stack {
  uintptr_t *sp; /* of the innermost frame; sp[-1] is its return address */
  uintptr_t **return_address; /* of each frame, innermost first */
  uintptr_t *other; /* the return addresses for next time */
} stack;

/* The call site that a function calls next: mostly the same one, since the stacks of a program are not random. */
static size_t callee_of(size_t site) {
  return random_below(4) != 0 ? (site * 241 + 97) % SITES : random_below(SITES);
}

static stack make_stack(size_t depth, int recursion) {
  size_t words = depth * 14 + 8;
  uintptr_t *memory = calloc(words, sizeof *memory);
  /* Two zero words at the end: no managed code outside. */
  stack made = {memory + words - 4, calloc(depth, sizeof *made.return_address), calloc(depth, sizeof *made.other)};
  if (memory == NULL || (depth != 0 && (made.return_address == NULL || made.other == NULL))) fail("no memory");
  made.sp[-1] = last;
  size_t site = 3;
  for (size_t i = 0; i < depth; i++) {
    if (!recursion) site = callee_of(site);
    made.sp -= words_of(site);
    made.sp[-1] = addresses[site];
    made.return_address[depth - i - 1] = made.sp - 1;
    /* A site with frames of the same size: SITES is a multiple of 7. */
    made.other[depth - i - 1] = addresses[(site + 7) % SITES];
  }
  return made;
}

static void change_innermost(stack *s, size_t frames) {
  for (size_t i = 0; i < frames; i++) {
    uintptr_t now = *s->return_address[i];
    *s->return_address[i] = s->other[i];
    s->other[i] = now;
  }
}

static stack stacks[2];
static stack *stack_now = stacks;

static void where(void *host, heaptap_stack *at) {
  const stack *s = *(stack **)host;
  at->return_address = s->sp[-1];
  at->sp = (uintptr_t)s->sp;
  at->native_limit = 0;
}

/* --- The host -------------------------------------------------------------------------- */

static heaptap_tracer *tracer;
static heaptap_mutator *mutator;
static void *limit;

/* A heap that no batch fills. */
static char *const young_start = (char *)((uintptr_t)1 << 20);
static char *const young_end = (char *)((uintptr_t)1 << 45);

static void start(const char *file, double rate, int no_stack) {
  static heaptap_frame frames[SITES + 1];
  for (size_t i = 0; i < SITES; i++)
    frames[i] = (heaptap_frame){addresses[i], (uint32_t)(words_of(i) * sizeof(uintptr_t)), HEAPTAP_NO_PLACE};
  frames[SITES] = (heaptap_frame){last, HEAPTAP_FRAME_BOUNDARY, HEAPTAP_NO_PLACE};
  heaptap_options options = {.size = sizeof options, .file = file, .rate = rate, .seed = 1,
                             .header_words = 1, .max_mutators = 1};
  ok(heaptap_tracer_start(&options, &tracer));
  heaptap_frame_table table = {.size = sizeof table, .format = HEAPTAP_FRAMES_NEUTRAL,
                               .frames = frames, .count = SITES + 1};
  ok(heaptap_frames_add(tracer, &table));
  heaptap_mutator_options mutator_options = {.size = sizeof mutator_options, .host = &stack_now,
                                             .where = no_stack ? NULL : where};
  ok(heaptap_mutator_start(tracer, &mutator_options, &mutator));
}

/* Allocates a block that ends at the next sample. */
static inline void allocate(void) {
  static const size_t words[] = {BLOCK};
  char *young_ptr = (char *)limit - BLOCK * sizeof(uintptr_t);
  if (heaptap_young_hit(mutator, young_ptr, words, 1, &limit) != HEAPTAP_STATUS_OK) fail("a sample was lost");
}

static heaptap_fate dies(void *host, void **block) {
  (void)host;
  (void)block;
  return HEAPTAP_FATE_DEAD;
}

static double now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static heaptap_stats stats(void) {
  heaptap_stats numbers = {.size = sizeof numbers};
  ok(heaptap_tracer_stats(tracer, &numbers));
  return numbers;
}

int main(int argc, char **argv) {
  if (argc < 6) fail("FILE RATE DEPTH CHANGE BATCHES [BATCH]");
  size_t depth = strtoull(argv[3], NULL, 10), batches = strtoull(argv[5], NULL, 10);
  const char *change = argv[4];
  int all = strcmp(change, "all") == 0, top = strcmp(change, "top") == 0, turns = strcmp(change, "turns") == 0;
  int recursion = strcmp(change, "recursion") == 0, suspended = strcmp(change, "suspended") == 0;
  if (top && depth < TOP) fail("too few frames");

  make_sites();
  for (size_t i = 0; i < 2; i++) stacks[i] = make_stack(depth, recursion);
  start(argv[1], strtod(argv[2], NULL), strcmp(change, "empty") == 0);
  if (suspended) ok(heaptap_mutator_suspend(mutator));

  size_t batch = BATCH_WORDS / (RECORD + (all || turns ? depth : top ? TOP : 0));
  if (batch > MOST_BATCH) batch = MOST_BATCH;
  if (argc > 6) batch = strtoull(argv[6], NULL, 10);
  double *hook_ns = calloc(batches + 1, sizeof *hook_ns), *sweep_ns = calloc(batches + 1, sizeof *sweep_ns);
  if (hook_ns == NULL || sweep_ns == NULL) fail("no memory");
  for (size_t i = 0; i < batches + WARM_UP; i++) {
    ok(heaptap_young_renew(mutator, young_end, young_start, &limit));
    double begin = now_ns();
    for (size_t j = 0; j < batch; j++) {
      if (top) change_innermost(stack_now, TOP);
      if (all) change_innermost(stack_now, depth);
      if (turns) stack_now = stack_now == stacks ? stacks + 1 : stacks;
      allocate();
    }
    double middle = now_ns();
    ok(heaptap_young_sweep(mutator, dies, NULL));
    double end = now_ns();
    ok(heaptap_tracer_flush(tracer));
    if (i < WARM_UP) continue;
    hook_ns[i - WARM_UP] = (middle - begin) / (double)batch;
    sweep_ns[i - WARM_UP] = (end - middle) / (double)batch;
  }

  heaptap_stats numbers = stats();
  size_t hooks = batch * (batches + WARM_UP);
  if (numbers.allocations != (suspended ? 0 : hooks)) fail("not every block was recorded");
  if (numbers.waits != 0 || numbers.dropped != 0) fail("the writer fell behind");
  printf("hooks %zu batch %zu own_ns %.1f\nhook_ns", hooks, batch, (double)numbers.hook_ns / (double)hooks);
  for (size_t i = 0; i < batches; i++) printf(" %.2f", hook_ns[i]);
  printf("\nsweep_ns");
  for (size_t i = 0; i < batches; i++) printf(" %.2f", sweep_ns[i]);
  printf("\n");
  ok(heaptap_mutator_end(mutator, NULL));
  ok(heaptap_tracer_stop(tracer));
  return 0;
}
