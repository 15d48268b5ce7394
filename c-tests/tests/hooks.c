/* What hooks cost their host: no malloc once warm, and at most 2 KiB of stack.
 *
 * Memory functions are replaced by ones that count the calls of this thread. Stack use is measured on a
 * stack of our own that was painted before: how far down it changed, less what the same call of a
 * function that does nothing takes. `hooks FILE [native]`, with C frames unwound too; linked with -z now,
 * as binding at the first call would use the stack too. */
#include <ucontext.h>

#include "bare.h"

/* --- Counting malloc ------------------------------------------------------------------- */

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static _Thread_local int counting, calls;

void *malloc(size_t n) { return calls += counting, __libc_malloc(n); }
void *calloc(size_t n, size_t m) { return calls += counting, __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return calls += counting, __libc_realloc(p, n); }
void *aligned_alloc(size_t a, size_t n) { return calls += counting, __libc_memalign(a, n); }
void *memalign(size_t a, size_t n) { return calls += counting, __libc_memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n) {
  calls += counting;
  return (*p = __libc_memalign(a, n)) == NULL;
}
void free(void *p) { calls += counting, __libc_free(p); }

/* --- The hooks, one call each ------------------------------------------------------------ */

static bare host;
static uintptr_t major[64], external[64];
static void *limit;

static void nothing(void) { __asm__ volatile("" ::: "memory"); }
static void young_renew(void) { heaptap_young_renew(host.mutator, host.young_ptr, host.young, &limit); }
static void young_hit_1(void) {
  static const size_t parts[] = {3};
  host.young_ptr -= 3;
  heaptap_young_hit(host.mutator, host.young_ptr, parts, 1, &limit);
}
static void young_hit_5(void) {
  static const size_t parts[] = {3, 2, 9, 5, 2};
  host.young_ptr -= 21;
  heaptap_young_hit(host.mutator, host.young_ptr, parts, 5, &limit);
}
static void major_alloc(void) { heaptap_major_alloc(host.mutator, major + 1, 8); }
static void external_alloc(void) { heaptap_external_alloc(host.mutator, external, 64); }
static void external_free(void) { heaptap_external_free(host.mutator, external); }

static heaptap_fate promote_all(void *unused, void **block) {
  (void)unused;
  *block = (char *)*block + 65536;
  return HEAPTAP_FATE_PROMOTED;
}
static void young_sweep(void) { heaptap_tracer_young_sweep(host.tracer, promote_all, NULL); }
static void young_sweep_own(void) { heaptap_young_sweep(host.mutator, bare_all_die, NULL); }
static void major_sweep(void) { heaptap_tracer_major_sweep(host.tracer, bare_all_die, NULL); }
static void young_hit_kinds(void) {
  static const size_t parts[] = {3, 4};
  static const uint8_t kinds[] = {1, 2};
  host.young_ptr -= 7;
  heaptap_young_hit_kinds(host.mutator, host.young_ptr, parts, kinds, 2, &limit);
}
static uintptr_t upward[64];
static void young_up_renew(void) { heaptap_young_up_renew(host.mutator, upward, upward + 64, &limit); }
static void young_up_hit(void) {
  static const size_t parts[] = {3, 4};
  heaptap_young_up_hit(host.mutator, upward + 7, parts, NULL, 2, &limit);
}
static void young_alloc(void) { heaptap_young_alloc(host.mutator, upward + 9, 3, 1); }
static void major_kind(void) { heaptap_major_alloc_kind(host.mutator, major + 9, 3, 2); }
static void outside(void) { heaptap_block_outside(host.mutator, major + 9, 99, 0); }
static void skip(void) { heaptap_skip(host.mutator, heaptap_words_free(host.mutator) + 1); }
static void reallocate(void) {
  uint64_t moving = heaptap_realloc_begin(host.mutator, external);
  heaptap_realloc_end(host.mutator, moving, external + 32);
  heaptap_external_grow(host.mutator, external + 32, 64, 80);
  heaptap_external_release(host.mutator, external + 32);
}
static void label(void) { heaptap_mutator_label(host.mutator, 0); }

static const struct { const char *name; void (*call)(void); } hooks[] = {
  {"young_renew", young_renew},       {"young_hit, 1 part", young_hit_1},
  {"young_hit, 5 parts", young_hit_5}, {"major_alloc", major_alloc},
  {"external_alloc", external_alloc}, {"external_free", external_free},
  {"tracer_young_sweep", young_sweep}, {"tracer_major_sweep", major_sweep},
  {"young_hit, 1 part", young_hit_1}, {"young_sweep", young_sweep_own},
  {"mutator_label", label},           {"young_hit_kinds", young_hit_kinds},
  {"major_alloc_kind", major_kind},   {"block_outside", outside},
  {"skip", skip},                     {"external_alloc", external_alloc},
  {"realloc", reallocate},            {"young_up_renew", young_up_renew},
  {"young_up_hit", young_up_hit},     {"young_alloc", young_alloc},
  {"tracer_young_sweep", young_sweep},
};
enum { HOOKS = sizeof hooks / sizeof hooks[0], ROUNDS = 100, MOST_STACK = 2048 };

/* --- Measuring the stack ----------------------------------------------------------------- */

enum { STACK = 256 * 1024 };
static unsigned char stack[STACK];
static ucontext_t here, there;
static void (*volatile function)(void);

static void on_the_stack(void) { function(); }

static size_t stack_of(void (*call)(void)) {
  memset(stack, 0xA5, sizeof stack);
  function = call;
  getcontext(&there);
  there.uc_stack.ss_sp = stack;
  there.uc_stack.ss_size = sizeof stack;
  there.uc_link = &here;
  makecontext(&there, on_the_stack, 0);
  swapcontext(&here, &there);
  size_t untouched = 0;
  while (untouched < STACK && stack[untouched] == 0xA5) untouched++;
  return STACK - untouched;
}

/* Where the C frames of a hook end: on either stack. */
static uintptr_t native_limit;

static void where_native(void *b, heaptap_stack *at) {
  bare_where(b, at);
  at->native_limit = native_limit;
}

static void start(const char *file, int native) {
  heaptap_options options = bare_options(file, 1);
  options.native_frames = native ? HEAPTAP_NATIVE_ON : HEAPTAP_NATIVE_OFF;
  bare_start(&host, &options);
  if (!native) return;
  heaptap_mutator_options mutator = {.size = sizeof mutator, .host = &host, .where = where_native};
  GIVES_OK(heaptap_mutator_end(host.mutator, NULL));
  GIVES_OK(heaptap_mutator_start(host.tracer, &mutator, &host.mutator));
}

static void start_over(void) {
  host.young_ptr = host.young + YOUNG_WORDS;
  heaptap_young_renew(host.mutator, host.young_ptr, host.young, &limit);
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  start(argv[1], argc > 2);
  native_limit = (uintptr_t)__builtin_frame_address(0);
  for (int round = 0; round < 3; round++) { /* warm up */
    start_over();
    for (size_t i = 0; i < HOOKS; i++) hooks[i].call();
  }

  for (int round = 0; round < ROUNDS; round++) {
    start_over();
    for (size_t i = 0; i < HOOKS; i++) {
      counting = 1, calls = 0;
      hooks[i].call();
      counting = 0;
      if (calls != 0) bare_failures++, printf("%s: %d calls of malloc\n", hooks[i].name, calls);
    }
  }

  native_limit = (uintptr_t)(stack + sizeof stack);
  size_t base = stack_of(nothing), most[HOOKS] = {0};
  for (int round = 0; round < ROUNDS; round++) {
    start_over();
    for (size_t i = 0; i < HOOKS; i++) {
      size_t used = stack_of(hooks[i].call);
      if (used - base > most[i]) most[i] = used - base;
    }
  }
  for (size_t i = 0; i < HOOKS; i++) {
    printf("%s: %zu bytes of stack\n", hooks[i].name, most[i]);
    if (most[i] > MOST_STACK) bare_failures++, printf("that is over %d\n", MOST_STACK);
  }
  heaptap_stats stats = {.size = sizeof stats};
  GIVES_OK(heaptap_tracer_stats(host.tracer, &stats));
  CHECK(stats.dropped == 0);
  CHECK(stats.allocations >= ROUNDS * 2 * 7); /* so the hooks did their work */
  bare_stop(&host);
  return bare_end();
}
