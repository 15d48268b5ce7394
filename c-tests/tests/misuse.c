/* Every function of heaptap called as it should not be: it says so with the right status, writes none of
 * its outputs, and nothing breaks. `misuse GROUP DIRECTORY`, one group a process. */
#include <errno.h>
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bare.h"

static const char *directory;
static char path[4096];
static bare host;

static const char *in(const char *name) {
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return path;
}

#define OK HEAPTAP_STATUS_OK
#define IS_NULL HEAPTAP_STATUS_NULL
#define OFF HEAPTAP_STATUS_OFF
#define HANDLE HEAPTAP_STATUS_HANDLE
#define ORDER HEAPTAP_STATUS_ORDER
#define OPTION HEAPTAP_STATUS_OPTION
#define FRAMES HEAPTAP_STATUS_FRAMES
#define MISALIGNED(type, pointer) ((type *)(void *)((char *)(pointer) + 1))

/* The tracer must not start, nor write the handle. */
#define REFUSES(options, ...) do { \
  heaptap_tracer *sentinel_ = (heaptap_tracer *)&host, *tracer_ = sentinel_; \
  GIVES(heaptap_tracer_start(options, &tracer_), __VA_ARGS__); \
  CHECK(tracer_ == sentinel_); } while (0)

static void group_options(void) {
  heaptap_tracer *tracer = NULL;
  heaptap_options good = bare_options(in("options.ctf"), 1), bad;
  REFUSES(NULL, IS_NULL);
  GIVES(heaptap_tracer_start(&good, NULL), IS_NULL);
  GIVES(heaptap_tracer_start(&good, MISALIGNED(heaptap_tracer *, &tracer)), IS_NULL);
  char room[sizeof good + 8];
  memcpy(room + 1, &good, sizeof good);
  REFUSES((heaptap_options *)(void *)(room + 1), IS_NULL);

  const size_t sizes[] = {0, 1, 8, 1 << 20, SIZE_MAX};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    bad = good;
    bad.size = sizes[i];
    REFUSES(&bad, HEAPTAP_STATUS_SIZE);
  }
  struct { heaptap_options known; uint64_t unknown; } newer = {good, 1}; /* a host newer than the library */
  newer.known.size = sizeof newer;
  REFUSES(&newer.known, HEAPTAP_STATUS_RESERVED, HEAPTAP_STATUS_SIZE);
  for (size_t i = 0; i < sizeof bad.reserved; i += 21) {
    bad = good;
    bad.reserved[i] = 1;
    REFUSES(&bad, HEAPTAP_STATUS_RESERVED);
  }
  const double rates[] = {-1, -0.5, 2, 1.0000001, 1e-9, NAN, INFINITY, -INFINITY};
  for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
    bad = good;
    bad.rate = rates[i];
    REFUSES(&bad, HEAPTAP_STATUS_RATE);
  }
  bad = good, bad.when_full = 7;
  REFUSES(&bad, OPTION);
  bad = good, bad.follow = 7;
  REFUSES(&bad, OPTION);
  bad = good, bad.native_frames = 7;
  REFUSES(&bad, OPTION);
  bad = good, bad.max_mutators = 65536;
  REFUSES(&bad, OPTION, HEAPTAP_STATUS_MUTATORS);
  bad = good, bad.header_words = UINT32_MAX;
  REFUSES(&bad, OPTION);
  bad = good, bad.file = NULL;
  REFUSES(&bad, IS_NULL);
  CHECK(access(in("options.ctf"), F_OK) != 0); /* nothing was left behind */

  /* After all this a good call still works. */
  bare_start(&host, &good);
  bare_alloc(&host, 2);
  REFUSES(&good, HEAPTAP_STATUS_ALREADY);
  bare_stop(&host);
}

static void group_environment(void) {
  heaptap_options options = bare_options(NULL, 1);
  heaptap_tracer *sentinel = (heaptap_tracer *)&host, *tracer = sentinel;
  unsetenv("HEAPTAP"), unsetenv("MEMTRACE");
  GIVES(heaptap_tracer_start_from_env(&options, &tracer), HEAPTAP_STATUS_NOT_ASKED);
  GIVES(heaptap_tracer_start_from_env(NULL, &tracer), IS_NULL);
  GIVES(heaptap_tracer_start_from_env(&options, NULL), IS_NULL);
  setenv("HEAPTAP", in("environment.ctf"), 1);
  const char *rates[] = {"abc", "2", "-1", "nan", "1e-9", "0.5x"};
  for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
    setenv("HEAPTAP_RATE", rates[i], 1);
    GIVES(heaptap_tracer_start_from_env(&options, &tracer), HEAPTAP_STATUS_RATE);
  }
  setenv("HEAPTAP_RATE", "0.5", 1);
  setenv("HEAPTAP_SEED", "seven", 1);
  GIVES(heaptap_tracer_start_from_env(&options, &tracer), OPTION);
  unsetenv("HEAPTAP_SEED");
  CHECK(tracer == sentinel);
  GIVES_OK(heaptap_tracer_start_from_env(&options, &tracer));
  GIVES_OK(heaptap_tracer_stop(tracer));
  CHECK(access(in("environment.ctf"), F_OK) == 0);
}

/* Another process traces into the file. */
static void locked(void) {
  int ready[2], done[2];
  char byte = 0;
  CHECK(pipe(ready) == 0 && pipe(done) == 0);
  heaptap_options options = bare_options(in("locked.ctf"), 1);
  pid_t child = fork();
  if (child == 0) {
    bare_start(&host, &options);
    for (int i = 0; i < 100; i++) bare_alloc(&host, 2);
    if (write(ready[1], "x", 1) != 1) _exit(1);
    while (read(done[0], &byte, 1) < 0 && errno == EINTR) {}
    bare_stop(&host);
    _exit(bare_end());
  }
  CHECK(read(ready[0], &byte, 1) == 1);
  REFUSES(&options, HEAPTAP_STATUS_FILE);
  CHECK(write(done[1], "x", 1) == 1);
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  close(ready[0]), close(ready[1]), close(done[0]), close(done[1]);
}

static void group_files(void) {
  heaptap_options options = bare_options(in("no/such/directory/trace.ctf"), 1);
  REFUSES(&options, HEAPTAP_STATUS_FILE);
  options.file = directory;
  REFUSES(&options, HEAPTAP_STATUS_FILE);
  options.file = "";
  REFUSES(&options, HEAPTAP_STATUS_FILE, OPTION);
  options.file = "/proc/self/status"; /* not even root writes there */
  REFUSES(&options, HEAPTAP_STATUS_FILE);
  locked();

  /* A device without room: refused, or turned off at the first write; never the program's trouble. */
  options.file = "/dev/full";
  heaptap_tracer *tracer = NULL;
  heaptap_status status = heaptap_tracer_start(&options, &tracer);
  CHECK(status == OK || status == HEAPTAP_STATUS_FILE);
  if (status == OK) GIVES(heaptap_tracer_stop(tracer), OK, OFF, HEAPTAP_STATUS_FILE);
}

static void group_handles(void) {
  heaptap_options options = bare_options(in("handles.ctf"), 1);
  options.max_mutators = 1;
  bare_start(&host, &options);
  uint32_t label = 77;
  heaptap_stats stats = {.size = sizeof stats};
  void *sentinel = &host, *limit = sentinel;
  size_t words = 2;
  heaptap_mutator_options one_more = bare_mutator_options(&host);
  heaptap_mutator *mutator = sentinel;
  heaptap_frame_table table = bare_table(&host);

  GIVES(heaptap_tracer_stop(NULL), IS_NULL);
  GIVES(heaptap_tracer_flush(NULL), IS_NULL);
  GIVES(heaptap_tracer_rotate(NULL, in("x.ctf")), IS_NULL);
  GIVES(heaptap_tracer_stats(NULL, &stats), IS_NULL);
  GIVES(heaptap_label_intern(NULL, "a", &label), IS_NULL);
  GIVES(heaptap_mutator_label(NULL, 0), IS_NULL);
  GIVES(heaptap_mutator_start(NULL, &one_more, &mutator), IS_NULL);
  GIVES(heaptap_mutator_end(NULL, NULL), IS_NULL);
  GIVES(heaptap_mutator_suspend(NULL), IS_NULL);
  GIVES(heaptap_mutator_resume(NULL), IS_NULL);
  GIVES(heaptap_young_renew(NULL, host.young_ptr, host.young, &limit), IS_NULL);
  GIVES(heaptap_young_hit(NULL, host.young_ptr, &words, 1, &limit), IS_NULL);
  GIVES(heaptap_major_hit(NULL, host.young, 2), IS_NULL);
  GIVES(heaptap_external_hit(NULL, host.young, 2), IS_NULL);
  GIVES(heaptap_external_free(NULL, host.young), IS_NULL);
  GIVES(heaptap_young_sweep(NULL, bare_all_die, NULL), IS_NULL);
  GIVES(heaptap_major_sweep(NULL, bare_all_die, NULL), IS_NULL);
  GIVES(heaptap_tracer_young_sweep(NULL, bare_all_die, NULL), IS_NULL);
  GIVES(heaptap_tracer_major_sweep(NULL, bare_all_die, NULL), IS_NULL);
  GIVES(heaptap_block_promote(NULL, host.young, host.young), IS_NULL);
  GIVES(heaptap_block_collect(NULL, host.young), IS_NULL);
  GIVES(heaptap_block_move(NULL, host.young, host.young), IS_NULL);
  GIVES(heaptap_frames_add(NULL, &table), IS_NULL);
  uint8_t kinds[] = {1};
  uint64_t codes[] = {1}, code = 77;
  uint32_t line = 1;
  heaptap_function function = {.size = sizeof function, .lines = &line, .count = 1};
  GIVES(heaptap_young_hit_kinds(NULL, host.young_ptr, &words, kinds, 1, &limit), IS_NULL);
  GIVES(heaptap_young_up_renew(NULL, host.young, host.young_ptr, &limit), IS_NULL);
  GIVES(heaptap_young_up_hit(NULL, host.young_ptr, &words, NULL, 1, &limit), IS_NULL);
  GIVES(heaptap_major_hit_kind(NULL, host.young, 2, 1), IS_NULL);
  GIVES(heaptap_external_hit_kind(NULL, host.young, 2, 1), IS_NULL);
  GIVES(heaptap_major_hit_at(NULL, host.young, 2, 1, codes, 1), IS_NULL);
  GIVES(heaptap_young_alloc_hit(NULL, host.young, 2, 1), IS_NULL);
  GIVES(heaptap_block_outside_hit(NULL, host.young, 2, 1), IS_NULL);
  GIVES(heaptap_skip_hit(NULL), IS_NULL);
  GIVES(heaptap_realloc_end(NULL, 0, host.young), IS_NULL);
  CHECK(heaptap_realloc_begin(NULL, host.young) == 0);
  GIVES(heaptap_kind_name(NULL, 1, "a"), IS_NULL);
  GIVES(heaptap_place_intern(NULL, "a", 1, "b", 1, 1, &code), IS_NULL);
  GIVES(heaptap_function_add(NULL, &function, &code), IS_NULL);
  /* The young heap is filled downwards; and what is above it ends below it. */
  GIVES(heaptap_young_up_hit(host.mutator, host.young_ptr, &words, NULL, 1, &limit), HEAPTAP_STATUS_ORDER);
  GIVES(heaptap_young_up_renew(host.mutator, host.young_ptr, host.young, &limit), OPTION);
  GIVES(heaptap_young_hit_kinds(host.mutator, host.young_ptr, &words, NULL, 1, &limit), IS_NULL);
  /* A function that is not right. */
  GIVES(heaptap_function_add(host.tracer, &function, NULL), IS_NULL);
  function.count = 0;
  GIVES(heaptap_function_add(host.tracer, &function, &code), OPTION);
  function.count = 1, function.size = 8;
  GIVES(heaptap_function_add(host.tracer, &function, &code), HEAPTAP_STATUS_SIZE);
  function.size = sizeof function, function.reserved[31] = 1;
  GIVES(heaptap_function_add(host.tracer, &function, &code), HEAPTAP_STATUS_RESERVED);
  CHECK(code == 77);

  /* Memory that is ours and no handle; and handles that are not aligned. */
  static uintptr_t zeros[4096 / sizeof(uintptr_t)];
  heaptap_tracer *no_tracer = (heaptap_tracer *)(void *)(zeros + 64);
  heaptap_mutator *no_mutator = (heaptap_mutator *)(void *)(zeros + 64);
  GIVES(heaptap_tracer_stop(no_tracer), HANDLE);
  GIVES(heaptap_tracer_flush(no_tracer), HANDLE);
  GIVES(heaptap_tracer_stats(no_tracer, &stats), HANDLE);
  GIVES(heaptap_mutator_end(no_mutator, NULL), HANDLE);
  GIVES(heaptap_young_hit(no_mutator, host.young_ptr, &words, 1, &limit), HANDLE);
  GIVES(heaptap_young_renew(no_mutator, host.young_ptr, host.young, &limit), HANDLE);
  GIVES(heaptap_tracer_stop(MISALIGNED(heaptap_tracer, zeros)), IS_NULL);
  GIVES(heaptap_mutator_end(MISALIGNED(heaptap_mutator, zeros), NULL), IS_NULL);
  CHECK(limit == sentinel && label == 77 && mutator == sentinel);

  /* Structs that are not right. */
  GIVES(heaptap_mutator_start(host.tracer, NULL, &mutator), IS_NULL);
  GIVES(heaptap_mutator_start(host.tracer, &one_more, NULL), IS_NULL);
  GIVES(heaptap_mutator_start(host.tracer, &one_more, &mutator), HEAPTAP_STATUS_MUTATORS);
  one_more.walk = (heaptap_walk_fn)0x1000; /* and where: which one? */
  GIVES(heaptap_mutator_start(host.tracer, &one_more, &mutator), OPTION);
  one_more.walk = NULL, one_more.size = 8;
  GIVES(heaptap_mutator_start(host.tracer, &one_more, &mutator), HEAPTAP_STATUS_SIZE);
  one_more.size = sizeof one_more;
  one_more.reserved[31] = 1;
  GIVES(heaptap_mutator_start(host.tracer, &one_more, &mutator), HEAPTAP_STATUS_RESERVED);
  CHECK(mutator == sentinel);
  stats.size = 8;
  GIVES(heaptap_tracer_stats(host.tracer, &stats), HEAPTAP_STATUS_SIZE);
  GIVES(heaptap_tracer_stats(host.tracer, NULL), IS_NULL);
  stats.size = SIZE_MAX;
  GIVES(heaptap_tracer_stats(host.tracer, &stats), HEAPTAP_STATUS_SIZE);
  /* A host newer than the library: it learns how much was written. */
  struct { heaptap_stats known; uint64_t unknown; } newer = {.unknown = 77};
  newer.known.size = sizeof newer;
  GIVES_OK(heaptap_tracer_stats(host.tracer, &newer.known));
  CHECK(newer.known.size == sizeof newer.known && newer.known.mutators == 1 && newer.unknown == 77);
  stats.size = sizeof stats;
  GIVES_OK(heaptap_tracer_stats(host.tracer, &stats));
  CHECK(stats.state == OK && stats.mutators == 1);
  GIVES(heaptap_label_intern(host.tracer, NULL, &label), IS_NULL);
  GIVES(heaptap_label_intern(host.tracer, "a", NULL), IS_NULL);
  GIVES(heaptap_mutator_label(host.mutator, 12345), OK, OPTION); /* a label that nobody interned */
  GIVES_OK(heaptap_mutator_label(host.mutator, 0));
  GIVES(heaptap_label_intern(host.tracer, "", &label), OPTION);
  GIVES(heaptap_tracer_rotate(host.tracer, NULL), IS_NULL);
  GIVES(heaptap_tracer_rotate(host.tracer, in("no/such/trace.ctf")), HEAPTAP_STATUS_FILE);

  bare_alloc(&host, 3); /* still works */
  GIVES_OK(heaptap_tracer_stats(host.tracer, &stats));
  CHECK(stats.allocations == 1 && stats.samples == 4);
  bare_stop(&host);
}

static void group_hooks(void) {
  heaptap_options options = bare_options(in("hooks.ctf"), 1);
  bare_start(&host, &options);
  void *sentinel = &host, *limit = sentinel;
  uintptr_t *young = host.young, *end = host.young + YOUNG_WORDS;
  void *below = (void *)((uintptr_t)young - 64);
  size_t words[] = {2, 3}, zero[] = {0}, huge[] = {SIZE_MAX / 2, SIZE_MAX / 2}, wide[] = {YOUNG_WORDS + 1};
  GIVES(heaptap_young_renew(host.mutator, NULL, young, &limit), IS_NULL, OPTION);
  GIVES(heaptap_young_renew(host.mutator, end, young, NULL), IS_NULL);
  GIVES(heaptap_young_renew(host.mutator, MISALIGNED(void, end), young, &limit), IS_NULL, OPTION);
  GIVES(heaptap_young_renew(host.mutator, young, end, &limit), OPTION);
  GIVES(heaptap_young_hit(host.mutator, end - 5, NULL, 2, &limit), IS_NULL);
  GIVES(heaptap_young_hit(host.mutator, end - 5, words, 2, NULL), IS_NULL);
  GIVES(heaptap_young_hit(host.mutator, MISALIGNED(void, end - 5), words, 2, &limit), IS_NULL, OPTION);
  GIVES(heaptap_young_hit(host.mutator, end - 5, MISALIGNED(size_t, words), 1, &limit), IS_NULL);
  CHECK(limit == sentinel);
  /* Sizes that make no sense, or a pointer outside the heap: whatever is made of it, it is harmless, and
   * the limit stays a limit. */
  heaptap_young_hit(host.mutator, NULL, words, 2, &limit);
  heaptap_young_hit(host.mutator, end - 5, words, 0, &limit);
  heaptap_young_hit(host.mutator, end - 5, zero, 1, &limit);
  heaptap_young_hit(host.mutator, end - 5, huge, 2, &limit);
  heaptap_young_hit(host.mutator, end - 5, wide, 1, &limit);
  heaptap_young_hit(host.mutator, below, words, 2, &limit);
  CHECK(limit == sentinel || ((uintptr_t *)limit >= young && (uintptr_t *)limit <= end));
  /* The slow halves belong behind their inline halves, which have made the count negative. */
  GIVES(heaptap_major_hit(host.mutator, young, 3), ORDER);
  GIVES(heaptap_external_hit(host.mutator, young, 3), ORDER);
  host.mutator->until_sample = -1;
  GIVES(heaptap_major_hit(host.mutator, young, SIZE_MAX), OPTION);
  GIVES(heaptap_external_free(host.mutator, NULL), OK, IS_NULL);
  GIVES_OK(heaptap_external_free(host.mutator, young)); /* not tracked: nothing to do */
  GIVES(heaptap_young_sweep(host.mutator, NULL, NULL), IS_NULL);
  GIVES(heaptap_major_sweep(host.mutator, NULL, NULL), IS_NULL);
  GIVES(heaptap_tracer_young_sweep(host.tracer, NULL, NULL), IS_NULL);
  GIVES(heaptap_tracer_major_sweep(host.tracer, NULL, NULL), IS_NULL);
  GIVES(heaptap_block_promote(host.mutator, young, young), ORDER); /* not with FOLLOW_SWEEPS */
  GIVES(heaptap_block_collect(host.mutator, young), ORDER);
  GIVES(heaptap_block_move(host.mutator, young, young), ORDER);
  bare_renew(&host);
  heaptap_stats before = {.size = sizeof before}, after = {.size = sizeof after};
  GIVES_OK(heaptap_tracer_stats(host.tracer, &before));
  bare_alloc(&host, 5);
  GIVES_OK(heaptap_tracer_stats(host.tracer, &after));
  CHECK(after.state == OK && after.dropped == 0 && after.allocations == before.allocations + 1);
  CHECK(after.samples == before.samples + 6);
  GIVES_OK(heaptap_tracer_young_sweep(host.tracer, bare_all_die, NULL));
  bare_stop(&host);
}

static heaptap_fate rubbish(void *unused, void **block) {
  (void)unused;
  *block = (void *)3;
  return 99;
}

static void group_order(void) {
  heaptap_options options = bare_options(in("order.ctf"), 1);
  bare_start(&host, &options);
  heaptap_mutator_options mutator_options = bare_mutator_options(&host);
  heaptap_mutator *second = NULL;
  void *sentinel = &host, *limit = sentinel;
  size_t words = 2;
  GIVES_OK(heaptap_mutator_start(host.tracer, &mutator_options, &second));
  GIVES(heaptap_young_hit(second, host.young_ptr - 2, &words, 1, &limit), ORDER); /* no renew yet */
  CHECK(limit == sentinel);
  GIVES(heaptap_mutator_resume(second), ORDER); /* no suspend */
  GIVES_OK(heaptap_mutator_suspend(second));
  GIVES_OK(heaptap_mutator_suspend(second));
  GIVES_OK(heaptap_mutator_resume(second));
  GIVES_OK(heaptap_mutator_resume(second));
  GIVES(heaptap_mutator_resume(second), ORDER);
  GIVES(heaptap_mutator_end(second, second), HANDLE, OPTION, ORDER);
  GIVES_OK(heaptap_mutator_end(second, host.mutator));
  GIVES(heaptap_mutator_end(second, NULL), HANDLE);
  GIVES(heaptap_mutator_suspend(second), HANDLE);
  GIVES(heaptap_young_renew(second, host.young_ptr, host.young, &limit), HANDLE);
  GIVES(heaptap_young_sweep(second, bare_all_die, NULL), HANDLE);
  GIVES(heaptap_major_hit(second, host.young, 2), HANDLE);
  GIVES(heaptap_mutator_end(host.mutator, second), HANDLE); /* an heir that is no more */
  bare_alloc(&host, 2);
  heaptap_tracer_young_sweep(host.tracer, rubbish, NULL); /* any status, no crash */
  heaptap_tracer_major_sweep(host.tracer, rubbish, NULL);
  heaptap_mutator_end(host.mutator, NULL);
  heaptap_tracer_stop(host.tracer);
}

static void group_stopped(void) {
  heaptap_options options = bare_options(in("stopped.ctf"), 1);
  bare_start(&host, &options);
  bare_alloc(&host, 2);
  GIVES_OK(heaptap_tracer_stop(host.tracer));
  void *limit = host.young;
  size_t words = 2;
  uint32_t label = 0;
  heaptap_mutator *mutator = NULL;
  heaptap_mutator_options mutator_options = bare_mutator_options(&host);
  heaptap_frame_table table = bare_table(&host);
  heaptap_stats stats = {.size = sizeof stats};
  /* The host need not know: its hooks do nothing, and its handles stay good to call. */
  GIVES(heaptap_tracer_stop(host.tracer), OFF);
  GIVES(heaptap_tracer_flush(host.tracer), OFF);
  GIVES(heaptap_tracer_rotate(host.tracer, in("other.ctf")), OFF);
  GIVES(heaptap_label_intern(host.tracer, "a", &label), OK, OFF);
  GIVES(heaptap_frames_add(host.tracer, &table), OFF);
  GIVES(heaptap_mutator_start(host.tracer, &mutator_options, &mutator), OFF);
  GIVES(heaptap_tracer_stats(host.tracer, &stats), OK, OFF);
  GIVES(heaptap_mutator_label(host.mutator, 0), OK, OFF);
  GIVES(heaptap_mutator_suspend(host.mutator), OK, OFF);
  GIVES(heaptap_mutator_resume(host.mutator), OK, OFF);
  GIVES(heaptap_young_renew(host.mutator, host.young_ptr, host.young, &limit), OK, OFF);
  CHECK(limit == host.young);
  GIVES(heaptap_young_hit(host.mutator, host.young_ptr - 2, &words, 1, &limit), OK, OFF);
  CHECK(limit == host.young);
  GIVES(heaptap_major_hit(host.mutator, host.young + 1, 2), OK, OFF);
  for (size_t i = 0; i < 1000; i++) heaptap_major_alloc(host.mutator, host.young + 1, 2);
  GIVES(heaptap_external_free(host.mutator, host.young), OK, OFF);
  CHECK(heaptap_realloc_begin(host.mutator, host.young) == 0);
  CHECK(!heaptap_sampled(host.mutator, host.young));
  GIVES(heaptap_tracer_young_sweep(host.tracer, bare_all_die, NULL), OK, OFF);
  GIVES(heaptap_tracer_major_sweep(host.tracer, bare_all_die, NULL), OK, OFF);
  GIVES(heaptap_mutator_end(host.mutator, NULL), OK, OFF);
  CHECK(access(in("other.ctf"), F_OK) != 0);

  /* And another trace may begin. */
  options.file = in("again.ctf");
  bare_start(&host, &options);
  bare_alloc(&host, 2);
  bare_stop(&host);
}

static void group_frames(void) {
  heaptap_options options = bare_options(in("frames.ctf"), 1);
  bare_start(&host, &options);
  heaptap_place places[2] = {{"f", "g", 1, 1, 1, HEAPTAP_NO_PLACE}, {"f", "h", 1, 1, 1, 0}};
  heaptap_frame frames[1] = {{0x7001, 16, 0}};
  heaptap_frame_table good = {.size = sizeof good, .frames = frames, .count = 1, .places = places,
                              .place_count = 2}, bad;
  GIVES(heaptap_frames_add(host.tracer, NULL), IS_NULL);
  bad = good, bad.size = 1;
  GIVES(heaptap_frames_add(host.tracer, &bad), HEAPTAP_STATUS_SIZE);
  bad = good, bad.reserved[0] = 1;
  GIVES(heaptap_frames_add(host.tracer, &bad), HEAPTAP_STATUS_RESERVED);
  bad = good, bad.format = 99;
  GIVES(heaptap_frames_add(host.tracer, &bad), FRAMES, OPTION);
  bad = good, bad.frames = NULL;
  GIVES(heaptap_frames_add(host.tracer, &bad), IS_NULL);
  bad = good, bad.frames = MISALIGNED(heaptap_frame, frames);
  GIVES(heaptap_frames_add(host.tracer, &bad), IS_NULL);
  bad = good, bad.places = NULL;
  GIVES(heaptap_frames_add(host.tracer, &bad), IS_NULL, FRAMES);
  frames[0].place = 2;
  GIVES(heaptap_frames_add(host.tracer, &good), FRAMES);
  frames[0].place = 0, frames[0].size = 12;
  GIVES(heaptap_frames_add(host.tracer, &good), FRAMES);
  frames[0].size = 0; /* a walk would not get anywhere */
  GIVES(heaptap_frames_add(host.tracer, &good), FRAMES);
  frames[0].size = 16, frames[0].return_address = 0;
  GIVES(heaptap_frames_add(host.tracer, &good), FRAMES);
  frames[0].return_address = (uintptr_t)1 << 60;
  GIVES(heaptap_frames_add(host.tracer, &good), FRAMES);
  frames[0].return_address = 0x7001, places[0].inlined_into = 1; /* in a circle */
  GIVES(heaptap_frames_add(host.tracer, &good), FRAMES);
  places[0].inlined_into = 2;
  GIVES(heaptap_frames_add(host.tracer, &good), FRAMES);
  places[0].inlined_into = HEAPTAP_NO_PLACE;
  GIVES_OK(heaptap_frames_add(host.tracer, &good));
  bare_alloc(&host, 2);
  bare_stop(&host);
}

/* Stacks that lead nowhere: unknown addresses, wild links. The trace has what could be walked. */
static void group_stacks(void) {
  heaptap_options options = bare_options(in("stacks.ctf"), 1);
  bare_start(&host, &options);
  host.stack[8] = 0xDEAD; /* the third frame is not in any table */
  bare_alloc(&host, 2);
  host.stack[0] = 0; /* no managed frame at all */
  bare_alloc(&host, 2);
  heaptap_stats stats = {.size = sizeof stats};
  GIVES_OK(heaptap_tracer_stats(host.tracer, &stats));
  CHECK(stats.allocations == 2 && stats.dropped == 0);
  bare_stop(&host);
}

static void group_words(void) {
  CHECK(strcmp(heaptap_version(), HEAPTAP_VERSION) == 0);
  for (heaptap_status s = 0; s <= HEAPTAP_STATUS_COMMAND; s++) {
    CHECK(heaptap_status_str(s) != NULL && strlen(heaptap_status_str(s)) > 1);
    for (heaptap_status t = 0; t < s; t++) CHECK(strcmp(heaptap_status_str(s), heaptap_status_str(t)) != 0);
  }
  const heaptap_status strange[] = {-1, 19, 9999, INT32_MIN, INT32_MAX};
  for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++)
    CHECK(heaptap_status_str(strange[i]) != NULL && strlen(heaptap_status_str(strange[i])) > 1);
}

int main(int argc, char **argv) {
  static const struct { const char *name; void (*run)(void); } groups[] = {
    {"options", group_options}, {"environment", group_environment}, {"files", group_files},
    {"handles", group_handles}, {"hooks", group_hooks},             {"order", group_order},
    {"stopped", group_stopped}, {"frames", group_frames},           {"stacks", group_stacks},
    {"words", group_words},
  };
  if (argc != 3) return 2;
  directory = argv[2];
  for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
    if (strcmp(groups[i].name, argv[1]) != 0) continue;
    groups[i].run();
    return bare_end();
  }
  return 2;
}
