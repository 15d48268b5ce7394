/* What runtimes without a young heap use: kinds, functions that die, frees that were not sampled,
 * reallocation, stacks that were captured before. `interpreter WAY FILE [RATE [SEED]]`. What it has
 * counted itself is on standard output; interpreter.py compares.
 *
 *   kinds       blocks of all sources, of named kinds and of none, under stacks of several depths
 *   parts       the same in a series of two files, between which most blocks stay alive
 *   functions   functions that are described, die and are loaded again; C functions beside them
 *   frees       many blocks, freed by the inline function
 *   reallocs    memory that moves, grows, shrinks, fails to, while another thread takes old addresses
 *   captured    stacks that were walked before, words that go by unseen, blocks that are asked for first
 *   scattered   young blocks without a young heap, and memory that belongs to blocks
 */
#include <pthread.h>

#include "bare.h"

static bare host;
static const char *file;
static double rate = 1;
static uint64_t seed = 1;
static uint32_t keep; /* files of a series; 0: one file */
static uint64_t codes[8];
static size_t depth;

static size_t walk(void *unused, uint64_t *room, size_t capacity) {
  (void)unused;
  for (size_t i = 0; i < depth && i < capacity; i++) room[i] = codes[i];
  return depth;
}

static void locate(void *unused, uint64_t code, heaptap_places *places) {
  (void)unused;
  if (code < 0x5000 || code >= 0x6000) return; /* C functions: the debug information knows them */
  char name[16];
  snprintf(name, sizeof name, "code%u", (unsigned)(code - 0x5000));
  heaptap_place place = {"host.lua", name, (uint32_t)(code - 0x5000), 0, 0, HEAPTAP_NO_PLACE};
  GIVES_OK(heaptap_places_add(places, &place));
}

static void begin(uint32_t follow, heaptap_walk_fn walker) {
  heaptap_options options = bare_options(file, rate);
  options.seed = seed;
  options.follow = follow;
  options.locate = locate;
  options.keep = keep;
  memset(&host, 0, sizeof host);
  GIVES_OK(heaptap_tracer_start(&options, &host.tracer));
  heaptap_mutator_options mutator = {.size = sizeof mutator, .walk = walker};
  GIVES_OK(heaptap_mutator_start(host.tracer, &mutator, &host.mutator));
}

static heaptap_stats stats(void) {
  heaptap_stats now = {.size = sizeof now};
  GIVES_OK(heaptap_tracer_stats(host.tracer, &now));
  return now;
}

/* --- Kinds ----------------------------------------------------------------------------- */

enum { TABLE = 1, STRING = 2, CLOSURE = 200, UNNAMED = 77 };

static void kinds(void) {
  static char memory[1 << 20];
  uint64_t words[256] = {0};
  begin(HEAPTAP_FOLLOW_ADDRESSES, walk);
  GIVES_OK(heaptap_kind_name(host.tracer, TABLE, "table"));
  GIVES_OK(heaptap_kind_name(host.tracer, TABLE, "table"));
  GIVES(heaptap_kind_name(host.tracer, TABLE, "list"), HEAPTAP_STATUS_ORDER);
  GIVES(heaptap_kind_name(host.tracer, 0, "none"), HEAPTAP_STATUS_OPTION);
  GIVES(heaptap_kind_name(host.tracer, 3, NULL), HEAPTAP_STATUS_NULL);
  GIVES_OK(heaptap_kind_name(host.tracer, STRING, "string"));
  GIVES_OK(heaptap_kind_name(host.tracer, CLOSURE, "closure"));
  static const uint8_t all[] = {TABLE, STRING, CLOSURE, UNNAMED, 0};
  uint64_t state = 1;
  for (size_t i = 0; i < 20000; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint8_t kind = all[(state >> 33) % 5];
    size_t size = 1 + (state >> 40) % 9;
    void *block = memory + i * 16;
    depth = 1 + i / 11 % 4; /* blocks of several kinds and of none under one stack */
    for (size_t at = 0; at < depth; at++) codes[at] = 0x5001 + (i / 11 + at) % 20;
    if ((state >> 50) % 3 == 0) {
      heaptap_external_alloc_kind(host.mutator, block, size * sizeof(void *), kind);
    } else if (kind == 0) {
      heaptap_major_alloc(host.mutator, block, size);
    } else {
      heaptap_major_alloc_kind(host.mutator, block, size, kind);
    }
    words[kind] += size;
    if (keep != 0 && i == 10000) GIVES_OK(heaptap_tracer_next_part(host.tracer, 0));
    if (i % 2 == 0) heaptap_block_release(host.mutator, block);
  }
  /* Young blocks, two at a time. */
  bare_renew(&host);
  size_t parts[] = {3, 5};
  uint8_t two[] = {STRING, TABLE};
  for (int i = 0; i < 300; i++) {
    host.young_ptr -= 8;
    if ((void *)host.young_ptr < host.limit)
      GIVES_OK(heaptap_young_hit_kinds(host.mutator, host.young_ptr, parts, two, 2, &host.limit));
    words[STRING] += 3, words[TABLE] += 5;
  }
  /* Codes without room for a kind, and no stack: nothing but the kind is lost. */
  depth = 1, codes[0] = (uint64_t)1 << 48;
  heaptap_major_alloc_kind(host.mutator, memory + 1, 7, TABLE);
  depth = 0;
  heaptap_major_alloc_kind(host.mutator, memory + 2, 7, TABLE);
  words[0] += 14;
  bare_stop(&host);
  printf("kinds table=%llu string=%llu closure=%llu unnamed=%llu none=%llu\n",
         (unsigned long long)words[TABLE], (unsigned long long)words[STRING],
         (unsigned long long)words[CLOSURE], (unsigned long long)words[UNNAMED],
         (unsigned long long)words[0]);
}

static void parts(void) {
  keep = 5;
  kinds();
}

/* --- Functions ------------------------------------------------------------------------- */

__attribute__((noinline)) void a_c_function(void) { __asm__ volatile("" ::: "memory"); }

static void functions(void) {
  begin(HEAPTAP_FOLLOW_ADDRESSES, walk);
  static char block[64];
  uint64_t known = 0, first = 0;
  for (unsigned i = 0; i < 1000; i++) {
    /* As a loaded chunk: made, run once, dead before anything of it is written. */
    char *name = malloc(32), *source = malloc(32);
    uint32_t *lines = malloc(3 * sizeof *lines);
    snprintf(name, 32, "chunk%u", i % 10);
    snprintf(source, 32, "loaded.lua");
    for (unsigned at = 0; at < 3; at++) lines[at] = 100 * (i % 10) + at;
    heaptap_function function = {.size = sizeof function, .file = source, .name = name, .lines = lines,
                                 .count = 3};
    GIVES_OK(heaptap_function_add(host.tracer, &function, &first));
    if (i % 10 == 0) {
      CHECK(known == 0 || known == first); /* loaded again: the same codes */
      known = first;
    }
    memset(name, 'x', 31), memset(source, 'x', 31), memset(lines, 0xff, 3 * sizeof *lines);
    free(name), free(source), free(lines);
    depth = 2, codes[0] = first + i % 3, codes[1] = 0x5007;
    heaptap_major_alloc(host.mutator, block, 2);
    heaptap_block_release(host.mutator, block);
  }
  heaptap_function none = {.size = sizeof none};
  uint64_t untouched = 5;
  GIVES(heaptap_function_add(host.tracer, &none, &untouched), HEAPTAP_STATUS_NULL);
  uint32_t line = 1;
  none.lines = &line;
  GIVES(heaptap_function_add(host.tracer, &none, &untouched), HEAPTAP_STATUS_OPTION);
  none.count = 1;
  GIVES(heaptap_function_add(host.tracer, &none, NULL), HEAPTAP_STATUS_NULL);
  CHECK(untouched == 5);
  /* `locate` knows nothing of a C function. */
  depth = 2, codes[0] = (uint64_t)(uintptr_t)a_c_function + 1, codes[1] = 0x5007;
  heaptap_major_alloc(host.mutator, block, 2);
  bare_stop(&host);
}

/* --- Frees that were not sampled --------------------------------------------------------- */

__attribute__((noinline)) void release_block(heaptap_mutator *mutator, void *block) {
  heaptap_block_release(mutator, block);
}

static void frees(void) {
  enum { BLOCKS = 50000 };
  static void *blocks[BLOCKS];
  begin(HEAPTAP_FOLLOW_ADDRESSES, walk);
  depth = 1, codes[0] = 0x5001;
  for (int round = 0; round < 2; round++) {
    for (size_t i = 0; i < BLOCKS; i++) {
      blocks[i] = malloc(40);
      heaptap_major_alloc(host.mutator, blocks[i], 5);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
      release_block(host.mutator, blocks[i]);
      free(blocks[i]);
    }
  }
  heaptap_stats now = stats();
  CHECK(now.collections == now.allocations && now.live_blocks == 0);
  for (size_t i = 0; i < BLOCKS; i++) CHECK(!heaptap_sampled(host.mutator, blocks[i]));
  bare_stop(&host);
  CHECK(!heaptap_sampled(host.mutator, blocks[0])); /* the handle has ended, and may be read */
  printf("frees blocks=%d allocations=%llu\n", 2 * BLOCKS, (unsigned long long)now.allocations);
}

/* --- Reallocation ---------------------------------------------------------------------- */

/* Of three numbers that take turns as addresses: never two threads' at a time. */
static char places_[3][4096];
static _Atomic int stop_taking;
static _Atomic unsigned long taken;
static pthread_mutex_t heap = PTHREAD_MUTEX_INITIALIZER;
static int owner[3]; /* 0: free */

static int take_place(int who, int but) {
  int found = -1;
  pthread_mutex_lock(&heap);
  for (int i = 0; i < 3 && found < 0; i++)
    if (owner[i] == 0 && i != but) owner[i] = who, found = i;
  pthread_mutex_unlock(&heap);
  return found;
}

static void give_back(int place) {
  pthread_mutex_lock(&heap);
  owner[place] = 0;
  pthread_mutex_unlock(&heap);
}

static void *taker(void *unused) {
  heaptap_mutator *mutator;
  heaptap_mutator_options options = {.size = sizeof options, .walk = walk};
  (void)unused;
  GIVES_OK(heaptap_mutator_start(host.tracer, &options, &mutator));
  while (!stop_taking) {
    int place = take_place(2, -1);
    if (place < 0) continue;
    heaptap_external_alloc(mutator, places_[place], 16);
    heaptap_external_release(mutator, places_[place]);
    give_back(place);
    taken++;
  }
  GIVES_OK(heaptap_mutator_end(mutator, NULL));
  return NULL;
}

static void reallocs(void) {
  begin(HEAPTAP_FOLLOW_SWEEPS, walk);
  depth = 1, codes[0] = 0x5001;
  pthread_t thread;
  pthread_create(&thread, NULL, taker, NULL);
  uint64_t words = 0, kept = 0;
  for (int round = 0; round < 500 || taken < 300; round++) {
    int place = take_place(1, -1);
    if (place < 0) continue;
    size_t bytes = 80;
    heaptap_external_alloc(host.mutator, places_[place], bytes);
    words += 10;
    for (int step = 0; step < 6; step++) {
      uint64_t moving = heaptap_realloc_begin(host.mutator, places_[place]);
      CHECK(rate < 1 || moving != 0);
      if (step == 2) { /* fails */
        GIVES_OK(heaptap_realloc_end(host.mutator, moving, places_[place]));
        continue;
      }
      size_t wanted = step == 4 ? bytes / 2 : bytes + 64 + (size_t)step; /* 4: shrinks */
      int next = take_place(1, place);
      if (next >= 0) give_back(place); /* from now on the other thread may have it */
      else next = place;
      GIVES_OK(heaptap_realloc_end(host.mutator, moving, places_[next]));
      if (wanted > bytes) {
        heaptap_external_grow(host.mutator, places_[next], bytes, wanted);
        words += (wanted + 7) / 8 - (bytes + 7) / 8;
        kept += bytes / 8;
      }
      place = next, bytes = wanted;
    }
    heaptap_external_release(host.mutator, places_[place]);
    give_back(place);
  }
  stop_taking = 1;
  pthread_join(thread, NULL);
  heaptap_stats now = stats();
  CHECK(now.collections == now.allocations);
  GIVES(heaptap_realloc_end(host.mutator, 12345, places_[0]), HEAPTAP_STATUS_OPTION);
  GIVES_OK(heaptap_realloc_end(host.mutator, 0, places_[0]));
  CHECK(heaptap_realloc_begin(NULL, places_[0]) == 0);
  bare_stop(&host);
  CHECK(heaptap_realloc_begin(host.mutator, places_[0]) == 0);
  printf("reallocs words=%llu carried=%llu taken=%lu\n", (unsigned long long)words,
         (unsigned long long)kept, (unsigned long)(taken * 2));
}

/* --- Stacks that were walked before, and words that go by unseen ------------------------- */

static void captured(void) {
  static char memory[1 << 16];
  begin(HEAPTAP_FOLLOW_ADDRESSES, NULL);
  uint64_t told = 0, place = 0, again = 0, words = 0, unseen = 0;
  GIVES_OK(heaptap_place_intern(host.tracer, "rb.rbXX", 5, "Widget#newXX", 10, 42, &place));
  GIVES_OK(heaptap_place_intern(host.tracer, "rb.rb", 5, "Widget#new", 10, 42, &again));
  CHECK(place == again && place != 0);
  GIVES_OK(heaptap_kind_name(host.tracer, 9, "Widget"));
  for (size_t i = 0; i < 3000; i++) {
    size_t size = 1 + i % 7;
    uint64_t own[3] = {place, 0x5000 + i % 5, 0x5010};
    words += size;
    if (rate < 1 && i % 10 == 0) { /* the runtime's own fast path, which says nothing */
      size_t free = heaptap_words_free(host.mutator);
      size_t skipped = free < 5 ? free : 5;
      heaptap_skip(host.mutator, skipped);
      unseen += skipped;
    }
    if (!heaptap_due(host.mutator, size)) {
      CHECK(!heaptap_major_take(host.mutator, size));
      continue;
    }
    CHECK(heaptap_major_take(host.mutator, size));
    GIVES_OK(heaptap_major_hit_at(host.mutator, memory + i * 16, size, 9, own, 1 + i % 3));
    told++;
  }
  CHECK(told == stats().allocations);
  /* Beyond what is known to be free. */
  heaptap_skip(host.mutator, heaptap_words_free(host.mutator) + 100);
  CHECK(heaptap_words_free(host.mutator) < (size_t)1 << 40);
  heaptap_major_alloc(host.mutator, memory + 5, 1);
  GIVES(heaptap_major_hit_at(host.mutator, memory, 1, 0, NULL, 1), HEAPTAP_STATUS_NULL);
  bare_stop(&host);
  printf("captured words=%llu unseen=%llu told=%llu\n", (unsigned long long)words,
         (unsigned long long)unseen, (unsigned long long)told);
}

/* --- Young blocks among others, and memory that belongs to blocks ------------------------ */

static heaptap_fate every_third_lives(void *promoted, void **block) {
  if ((uintptr_t)*block / 64 % 3 != 0) return HEAPTAP_FATE_DEAD;
  ++*(uint64_t *)promoted;
  return HEAPTAP_FATE_PROMOTED; /* where it is */
}

static void scattered(void) {
  static char memory[1 << 18] __attribute__((aligned(64)));
  uint64_t promoted = 0, outside = 0;
  begin(HEAPTAP_FOLLOW_SWEEPS, walk);
  depth = 1, codes[0] = 0x5003;
  for (size_t i = 0; i < 1000; i++) {
    heaptap_young_alloc(host.mutator, memory + i * 64, 5, 0);
    if (i % 5 == 0) {
      heaptap_block_outside(host.mutator, memory + i * 64, 300, 1);
      outside += (300 + 7) / 8;
    }
  }
  GIVES_OK(heaptap_young_sweep(host.mutator, every_third_lives, &promoted));
  heaptap_block_outside(host.mutator, memory, 80, 0);
  outside += 10;
  heaptap_stats now = stats();
  CHECK(now.allocations == 1000 + 200 + 1 || rate < 1);
  CHECK(now.collections + promoted == 1200 || rate < 1);
  GIVES_OK(heaptap_major_sweep(host.mutator, bare_all_die, NULL));
  now = stats();
  CHECK(now.collections == now.allocations);
  bare_stop(&host);
  printf("scattered outside=%llu promoted=%llu\n", (unsigned long long)outside, (unsigned long long)promoted);
}

int main(int argc, char **argv) {
  static const struct { const char *name; void (*run)(void); } ways[] = {
    {"kinds", kinds}, {"parts", parts}, {"functions", functions}, {"frees", frees}, {"reallocs", reallocs},
    {"captured", captured}, {"scattered", scattered}};
  if (argc < 3) return 2;
  file = argv[2];
  if (argc > 3) rate = atof(argv[3]);
  if (argc > 4) seed = strtoull(argv[4], NULL, 10);
  for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
    if (strcmp(argv[1], ways[i].name) == 0) {
      ways[i].run();
      return bare_end();
    }
  return 2;
}
