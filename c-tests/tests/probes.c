/* Probes of a C host. `probes GROUP DIRECTORY`, one group a process; probes.py knows the truth. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bare.h"

static bare host;
static char path[4096];

static heaptap_probe *open_probe(uint32_t kind, const char *name) {
  heaptap_probe *probe = NULL;
  GIVES_OK(heaptap_probe_open(host.tracer, kind, name, &probe));
  CHECK(probe != NULL);
  return probe;
}

enum { THREADS = 4, PASSES = 500000 };
static heaptap_probe *passes, *busy;

static void *pass(void *number) {
  uint32_t stripe = (uint32_t)(uintptr_t)number;
  for (int i = 0; i < PASSES; i++) {
    heaptap_probe_count(passes, 1);
    heaptap_probe_count_in(passes, stripe, 2);
    /* Beyond the stripes it is like any thread. */
    heaptap_probe_count_in(passes, HEAPTAP_PROBE_STRIPES + stripe, 1);
    GIVES_OK(heaptap_probe_timer_start(busy));
    GIVES_OK(heaptap_probe_timer_stop(busy));
  }
  return NULL;
}

static void kinds(void) {
  passes = open_probe(HEAPTAP_PROBE_COUNT, "threads/passes");
  busy = open_probe(HEAPTAP_PROBE_TIMER, "threads/busy");
  CHECK(open_probe(HEAPTAP_PROBE_COUNT, "threads/passes") == passes);
  CHECK(open_probe(HEAPTAP_PROBE_VALUE, "threads/passes") != passes);
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, pass, (void *)i);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  heaptap_probe *temperature = open_probe(HEAPTAP_PROBE_VALUE, "temperature");
  const double values[] = {20.5, -3, 19};
  for (int i = 0; i < 3; i++) GIVES_OK(heaptap_probe_value(temperature, values[i]));
  heaptap_probe *state = open_probe(HEAPTAP_PROBE_TEXT, "state");
  GIVES_OK(heaptap_probe_text(state, "ready\xff", 6));
  GIVES_OK(heaptap_probe_log(host.tracer, "line 1", 6));
  GIVES_OK(heaptap_probe_pause(host.tracer, "here", 4));
  /* Is told while it runs. */
  heaptap_probe *endless = open_probe(HEAPTAP_PROBE_TIMER, "endless");
  GIVES_OK(heaptap_probe_timer_start(endless));
  usleep(20000);
}

/* The last block of the sweep survives. */
static heaptap_fate one_lives(void *keep, void **block) {
  return *block == keep ? HEAPTAP_FATE_PROMOTED : HEAPTAP_FATE_DEAD;
}

static void swept(void) {
  heaptap_probe *tag = open_probe(HEAPTAP_PROBE_TAG, "blocks"), *other = open_probe(HEAPTAP_PROBE_TAG, "others");
  uintptr_t *kept = NULL;
  static uintptr_t major[64];
  for (int i = 0; i < 10; i++) {
    kept = bare_alloc(&host, 3);
    GIVES_OK(heaptap_probe_tag(host.mutator, tag, kept, 1));
    GIVES_OK(heaptap_probe_tag(host.mutator, other, kept, 1));
  }
  GIVES_OK(heaptap_probe_tag(host.mutator, tag, &major[8], 0));
  GIVES_OK(heaptap_young_sweep(host.mutator, one_lives, kept));
  /* 1 promoted and 1 major live; another mutator takes them over. */
  heaptap_mutator *second = NULL;
  heaptap_mutator_options options = bare_mutator_options(&host);
  GIVES_OK(heaptap_mutator_start(host.tracer, &options, &second));
  GIVES_OK(heaptap_mutator_end(host.mutator, second));
  host.mutator = second;
  GIVES_OK(heaptap_major_sweep(host.mutator, one_lives, kept));
  heaptap_stats stats = {.size = sizeof stats};
  GIVES_OK(heaptap_tracer_stats(host.tracer, &stats));
  CHECK(stats.live_blocks <= 1); /* tagged blocks are no samples */
}

static void by_address(void) {
  heaptap_probe *tag = open_probe(HEAPTAP_PROBE_TAG, "blocks");
  static uintptr_t room[64];
  for (int i = 1; i <= 10; i++) GIVES_OK(heaptap_probe_tag(host.mutator, tag, &room[i], 0));
  GIVES_OK(heaptap_probe_tag(host.mutator, tag, &room[1], 0)); /* twice */
  GIVES_OK(heaptap_block_move(host.mutator, &room[1], &room[21]));
  GIVES_OK(heaptap_block_collect(host.mutator, &room[21]));
  GIVES_OK(heaptap_block_collect(host.mutator, &room[2]));
  GIVES_OK(heaptap_block_collect(host.mutator, &room[40]));
}

/* Nested slices of two kinds; an end without a beginning is none. */
static void slices(void) {
  open_probe(HEAPTAP_PROBE_COUNT, "any");
  for (int i = 0; i < 5; i++) {
    GIVES_OK(heaptap_slice_begin(host.mutator, HEAPTAP_SLICE_MAJOR));
    GIVES_OK(heaptap_slice_begin(host.mutator, HEAPTAP_SLICE_MINOR));
    usleep(1000);
    GIVES_OK(heaptap_slice_end(host.mutator, HEAPTAP_SLICE_MINOR));
    GIVES_OK(heaptap_slice_end(host.mutator, HEAPTAP_SLICE_MAJOR));
    GIVES_OK(heaptap_slice_end(host.mutator, HEAPTAP_SLICE_MAJOR));
  }
  GIVES(heaptap_slice_begin(host.mutator, 3), HEAPTAP_STATUS_OPTION);
  GIVES(heaptap_slice_end(NULL, HEAPTAP_SLICE_MINOR), HEAPTAP_STATUS_NULL);
}

/* What a function that is observed knows of itself. Atomic, since ThreadSanitizer does not see heaptap's own order. */
static heaptap_probe *_Atomic asked;
static atomic_int calls, running;
static atomic_int inside_status = -1;
static _Atomic pthread_t main_thread;

static double next_call(void *context) {
  CHECK(context == &calls);
  CHECK(!pthread_equal(pthread_self(), main_thread));
  if (atomic_load(&inside_status) == -1) atomic_store(&inside_status, (int)heaptap_probe_observe(asked, NULL, NULL));
  return atomic_fetch_add(&calls, 1) + 1;
}

static double slow(void *context) {
  atomic_store(&running, 1);
  usleep(atomic_load((atomic_uint *)context));
  atomic_store(&running, 0);
  return -1;
}

static void observed(void) {
  static atomic_uint pause = 30000;
  main_thread = pthread_self();
  asked = open_probe(HEAPTAP_PROBE_VALUE, "asked");
  GIVES_OK(heaptap_probe_observe(asked, next_call, &calls));
  usleep(1000000);
  GIVES_OK(heaptap_probe_observe(asked, NULL, NULL));
  int made = atomic_load(&calls);
  CHECK(made >= 3 && made <= 30);
  CHECK(atomic_load(&inside_status) == HEAPTAP_STATUS_ORDER);
  usleep(250000);
  CHECK(atomic_load(&calls) == made);
  printf("calls %d\n", made);
  /* Whoever ends it finds that it does not run: here while it does. */
  heaptap_probe *late = open_probe(HEAPTAP_PROBE_VALUE, "slow");
  int met = 0;
  for (int i = 0; i < 5; i++) {
    GIVES_OK(heaptap_probe_observe(late, slow, &pause));
    for (int wait = 0; wait < 2000 && !atomic_load(&running); wait++) usleep(1000);
    met += atomic_load(&running);
    GIVES_OK(heaptap_probe_observe(late, NULL, NULL));
    CHECK(!atomic_load(&running));
  }
  CHECK(met > 0);
  /* A child that is forked meanwhile has neither the call nor the thread that it would wait for. */
  atomic_store(&pause, 200000);
  GIVES_OK(heaptap_probe_observe(late, slow, &pause));
  for (int wait = 0; wait < 2000 && !atomic_load(&running); wait++) usleep(1000);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(heaptap_probe_observe(late, NULL, NULL) == HEAPTAP_STATUS_OK ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  GIVES_OK(heaptap_probe_observe(late, NULL, NULL));
  CHECK(!atomic_load(&running));
  /* Not ended: it is not called once the tracer has stopped. */
  GIVES_OK(heaptap_probe_observe(open_probe(HEAPTAP_PROBE_VALUE, "until the end"), next_call, &calls));
}

/* Another file begins: nothing but the count and the collector changes in it. */
static void rotated(void) {
  heaptap_probe *count = open_probe(HEAPTAP_PROBE_COUNT, "count"), *timer = open_probe(HEAPTAP_PROBE_TIMER, "timer");
  heaptap_probe *value = open_probe(HEAPTAP_PROBE_VALUE, "depth"), *state = open_probe(HEAPTAP_PROBE_TEXT, "state");
  heaptap_probe *tag = open_probe(HEAPTAP_PROBE_TAG, "blocks");
  open_probe(HEAPTAP_PROBE_VALUE, "never set");
  static uintptr_t major[64];
  for (int i = 1; i <= 3; i++) GIVES_OK(heaptap_probe_tag(host.mutator, tag, &major[i], 0));
  heaptap_probe_count(count, 100);
  GIVES_OK(heaptap_probe_timer_start(timer));
  usleep(2000);
  GIVES_OK(heaptap_probe_timer_stop(timer));
  GIVES_OK(heaptap_probe_value(value, -3));
  GIVES_OK(heaptap_probe_value(value, 20.5));
  GIVES_OK(heaptap_probe_text(state, "ready", 5));
  GIVES_OK(heaptap_probe_log(host.tracer, "line 1", 6));
  for (int i = 0; i < 5; i++) {
    GIVES_OK(heaptap_slice_begin(host.mutator, HEAPTAP_SLICE_MINOR));
    GIVES_OK(heaptap_slice_end(host.mutator, HEAPTAP_SLICE_MINOR));
    if (i == 2) {
      char second[4096 + 16];
      snprintf(second, sizeof second, "%.*s/second.ctf", (int)(strrchr(path, '/') - path), path);
      GIVES_OK(heaptap_tracer_rotate(host.tracer, second));
      heaptap_probe_count(count, 20);
    }
  }
  usleep(250000);
}

static void misuse(void) {
  heaptap_probe *count = open_probe(HEAPTAP_PROBE_COUNT, "a count"), *out = NULL;
  GIVES(heaptap_probe_open(NULL, HEAPTAP_PROBE_COUNT, "x", &out), HEAPTAP_STATUS_OFF);
  GIVES(heaptap_probe_open(host.tracer, 5, "x", &out), HEAPTAP_STATUS_OPTION);
  GIVES(heaptap_probe_open(host.tracer, HEAPTAP_PROBE_COUNT, "", &out), HEAPTAP_STATUS_OPTION);
  GIVES(heaptap_probe_open(host.tracer, HEAPTAP_PROBE_COUNT, NULL, &out), HEAPTAP_STATUS_NULL);
  GIVES(heaptap_probe_open(host.tracer, HEAPTAP_PROBE_COUNT, "x", NULL), HEAPTAP_STATUS_NULL);
  CHECK(out == NULL);
  /* Whatever was there before, a probe that is not opened is NULL, and can be used. */
  out = (heaptap_probe *)&host;
  GIVES(heaptap_probe_open(NULL, HEAPTAP_PROBE_COUNT, "x", &out), HEAPTAP_STATUS_OFF);
  CHECK(out == NULL);
  out = (heaptap_probe *)&host;
  GIVES(heaptap_probe_open(host.tracer, 5, "x", &out), HEAPTAP_STATUS_OPTION);
  CHECK(out == NULL);
  heaptap_probe_count(out, 1);
  GIVES(heaptap_probe_timer_start(out), HEAPTAP_STATUS_NULL);
  GIVES(heaptap_probe_value(NULL, 1), HEAPTAP_STATUS_NULL);
  GIVES(heaptap_probe_value(count, 1), HEAPTAP_STATUS_OPTION);
  GIVES(heaptap_probe_observe(NULL, slow, NULL), HEAPTAP_STATUS_NULL);
  GIVES(heaptap_probe_observe(count, slow, NULL), HEAPTAP_STATUS_OPTION);
  GIVES(heaptap_probe_observe(count, NULL, NULL), HEAPTAP_STATUS_OPTION);
  GIVES(heaptap_probe_text(count, "x", 1), HEAPTAP_STATUS_OPTION);
  GIVES(heaptap_probe_timer_start(count), HEAPTAP_STATUS_OPTION);
  heaptap_probe *timer = open_probe(HEAPTAP_PROBE_TIMER, "a timer"), *tag = open_probe(HEAPTAP_PROBE_TAG, "a tag");
  GIVES(heaptap_probe_timer_stop(timer), HEAPTAP_STATUS_ORDER);
  GIVES(heaptap_probe_tag(host.mutator, tag, NULL, 0), HEAPTAP_STATUS_NULL);
  GIVES(heaptap_probe_tag(NULL, tag, &host, 0), HEAPTAP_STATUS_OFF);
  GIVES(heaptap_probe_tag(host.mutator, count, &host, 0), HEAPTAP_STATUS_OPTION);
  static _Alignas(64) char no_probe[2048];
  GIVES(heaptap_probe_value((heaptap_probe *)no_probe, 1), HEAPTAP_STATUS_HANDLE);
  GIVES(heaptap_probe_observe((heaptap_probe *)no_probe, slow, NULL), HEAPTAP_STATUS_HANDLE);
  GIVES(heaptap_probe_log(host.tracer, NULL, 3), HEAPTAP_STATUS_NULL);
  GIVES(heaptap_probe_log(host.tracer, "x", SIZE_MAX), HEAPTAP_STATUS_OPTION);
  heaptap_probe_count(NULL, 1);
  heaptap_probe_count_in(NULL, 3, 1);
  /* The 4,096th is the last: five are open. */
  char name[32];
  for (int i = 0; i < 4096 - 3; i++) {
    snprintf(name, sizeof name, "many/%d", i);
    open_probe(HEAPTAP_PROBE_COUNT, name);
  }
  GIVES(heaptap_probe_open(host.tracer, HEAPTAP_PROBE_COUNT, "one more", &out), HEAPTAP_STATUS_OPTION);
  for (int i = 0; i < 5000; i++) GIVES_OK(heaptap_probe_log(host.tracer, "much", 4));
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  const struct { const char *name; void (*run)(void); } groups[] = {
    {"kinds", kinds}, {"swept", swept}, {"by_address", by_address}, {"slices", slices}, {"rotated", rotated},
    {"observed", observed}, {"misuse", misuse}};
  for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
    if (strcmp(argv[1], groups[i].name) != 0) continue;
    snprintf(path, sizeof path, "%s/trace.ctf", argv[2]);
    heaptap_options options = bare_options(path, 1);
    if (groups[i].run == by_address) options.follow = HEAPTAP_FOLLOW_ADDRESSES;
    bare_start(&host, &options);
    groups[i].run();
    bare_stop(&host);
    int at_stop = atomic_load(&calls);
    if (groups[i].run == observed) usleep(250000);
    CHECK(atomic_load(&calls) == at_stop);
    return bare_end();
  }
  return 2;
}
