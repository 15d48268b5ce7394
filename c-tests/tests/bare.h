/* A host that is nothing but calls: a young heap, a made-up managed stack, checks. For scenarios about
 * single functions of heaptap, where a runtime would be in the way. */
#ifndef BARE_H
#define BARE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heaptap.h>

static int bare_failures;

static inline void bare_check(int holds, const char *what, int line) {
  if (holds) return;
  bare_failures++;
  fprintf(stdout, "line %d: not so: %s\n", line, what);
}
#define CHECK(condition) bare_check(condition, #condition, __LINE__)

/* That a call gives one of the statuses. */
static inline void bare_status(heaptap_status got, const heaptap_status *wanted, size_t count,
                               const char *call, int line) {
  for (size_t i = 0; i < count; i++)
    if (got == wanted[i]) return;
  bare_failures++;
  fprintf(stdout, "line %d: %s gave %d (%s), wanted", line, call, (int)got, heaptap_status_str(got));
  for (size_t i = 0; i < count; i++) fprintf(stdout, " %d (%s)", (int)wanted[i], heaptap_status_str(wanted[i]));
  fprintf(stdout, "\n");
}
#define GIVES(call, ...) do { \
  const heaptap_status wanted_[] = {__VA_ARGS__}; \
  bare_status(call, wanted_, sizeof wanted_ / sizeof wanted_[0], #call, __LINE__); } while (0)
#define GIVES_OK(call) GIVES(call, HEAPTAP_STATUS_OK)

enum { YOUNG_WORDS = 4096, STACK_FRAMES = 16 };

/* A stack of STACK_FRAMES frames of 4 words each; return addresses 0x1001, 0x1002, ... from the
 * innermost, then a boundary (0x2000). */
typedef struct bare {
  heaptap_tracer *tracer;
  heaptap_mutator *mutator;
  uintptr_t young[YOUNG_WORDS];
  uintptr_t *young_ptr;
  void *limit;
  uintptr_t stack[STACK_FRAMES * 4 + 4];
  heaptap_frame frames[STACK_FRAMES + 1];
  heaptap_place places[STACK_FRAMES];
  char names[STACK_FRAMES][16];
} bare;

static inline heaptap_options bare_options(const char *file, double rate) {
  heaptap_options options = {.size = sizeof options, .file = file, .rate = rate, .seed = 1,
                             .header_words = 1};
  return options;
}

static inline void bare_where(void *host, heaptap_stack *stack) {
  bare *b = host;
  stack->return_address = b->stack[0];
  stack->sp = (uintptr_t)&b->stack[1];
  stack->native_limit = 0;
}

static inline void bare_make_stack(bare *b) {
  for (size_t i = 0; i < STACK_FRAMES; i++) {
    b->stack[i * 4] = 0x1001 + i;
    snprintf(b->names[i], sizeof b->names[i], "frame%zu", i);
    b->frames[i] = (heaptap_frame){0x1001 + i, 4 * sizeof(uintptr_t), (uint32_t)i};
    b->places[i] = (heaptap_place){"bare.c", b->names[i], (uint32_t)i + 1, 1, 9, HEAPTAP_NO_PLACE};
  }
  b->stack[STACK_FRAMES * 4] = 0x2000;
  b->stack[STACK_FRAMES * 4 + 1] = b->stack[STACK_FRAMES * 4 + 2] = 0;
  b->frames[STACK_FRAMES] = (heaptap_frame){0x2000, HEAPTAP_FRAME_BOUNDARY, HEAPTAP_NO_PLACE};
}

static inline heaptap_frame_table bare_table(const bare *b) {
  heaptap_frame_table table = {.size = sizeof table, .format = HEAPTAP_FRAMES_NEUTRAL,
                               .frames = b->frames, .count = STACK_FRAMES + 1,
                               .places = b->places, .place_count = STACK_FRAMES};
  return table;
}

static inline heaptap_mutator_options bare_mutator_options(bare *b) {
  heaptap_mutator_options options = {.size = sizeof options, .host = b, .where = bare_where};
  return options;
}

/* With an empty young heap. */
static inline void bare_renew(bare *b) {
  b->young_ptr = b->young + YOUNG_WORDS;
  GIVES_OK(heaptap_young_renew(b->mutator, b->young_ptr, b->young, &b->limit));
}

static inline void bare_start(bare *b, const heaptap_options *options) {
  memset(b, 0, sizeof *b);
  bare_make_stack(b);
  GIVES_OK(heaptap_tracer_start(options, &b->tracer));
  heaptap_frame_table table = bare_table(b);
  GIVES_OK(heaptap_frames_add(b->tracer, &table));
  heaptap_mutator_options mutator = bare_mutator_options(b);
  GIVES_OK(heaptap_mutator_start(b->tracer, &mutator, &b->mutator));
  bare_renew(b);
}

/* A block of `fields` in the young heap, which has room for it. */
static inline uintptr_t *bare_alloc(bare *b, size_t fields) {
  size_t words = fields + 1;
  b->young_ptr -= words;
  if ((void *)b->young_ptr < b->limit)
    GIVES_OK(heaptap_young_hit(b->mutator, b->young_ptr, &words, 1, &b->limit));
  *b->young_ptr = words;
  return b->young_ptr + 1;
}

static inline heaptap_fate bare_all_die(void *host, void **block) {
  (void)host;
  (void)block;
  return HEAPTAP_FATE_DEAD;
}

static inline void bare_stop(bare *b) {
  GIVES_OK(heaptap_mutator_end(b->mutator, NULL));
  GIVES_OK(heaptap_tracer_stop(b->tracer));
}

static inline int bare_end(void) {
  if (bare_failures == 0) puts("all as it should be");
  return bare_failures == 0 ? 0 : 1;
}

#endif
