/* Snapshots of a heap that has everything. `snapshots N --do WHAT --file FILE [--sync] [--strings BYTES]`:
 *
 *   take       says what the heap has ("all"), takes a snapshot ("taken"), collects and says what is kept
 *   busy       N threads allocate while another one takes --count snapshots, at safe points of theirs
 *   stuck      nobody comes to a safe point within 100 ms
 *   strangers  the same as take; while the heap is walked, nobody waits for the copy or hears of it
 *   signals    the same as take; handlers of many signals write the process that they run in to --log FILE
 *
 *   --with-young      take: with blocks in the young heap
 *   --refuse-clone    the process cannot be copied
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <heaptap.h>

#include "../runtime/runtime.h"
#include "../runtime/trace.h"

enum { TAG_TABLE = 1, TAG_PAIR = 2, TAG_FRAME = 3 };

static rt_value table, spare;
static size_t elements;

/* --- The heap -------------------------------------------------------------------------- */

static rt_value no_finaliser(rt_mutator *m, rt_value block) {
  (void)m;
  return block;
}

/* pair = { text, the pair before, the table or a strange block } */
static rt_value pair(rt_mutator *m, size_t i) {
  RT_FRAME(m, 2);
  R[0] = RT_ALLOC_N(m, RT_TAG_RAW, 1 + i % 5);
  memset(rt_bytes(R[0]), 'a' + (int)(i % 26), rt_size(R[0]) * sizeof(uintptr_t));
  if (i % 11 == 0) R[1] = RT_ALLOC_EXTERNAL(m, 100 + i % 50);
  rt_value fresh = RT_ALLOC(m, TAG_PAIR, 3);
  rt_fields(fresh)[0] = R[0];
  rt_fields(fresh)[1] = i == 0 ? RT_NIL : rt_get(table, (i - 1) % elements);
  rt_fields(fresh)[2] = i % 11 == 0 ? R[1] : i % 3 == 0 ? table : rt_from_int((intptr_t)i);
  R[0] = fresh;
  if (i % 7 == 0) rt_finalise(m, R[0], no_finaliser);
  if (i % 5 == 0) R[1] = RT_CALL(m, rt_alloc_weak(m, R[0]));
  if (i % 10 == 0) rt_set(m, spare, i / 10 % rt_size(spare), R[1]);
  RT_RETURN(m, R[0]);
}

/* Half of the pairs are garbage in the end, and of the rest some only live in chains. */
static rt_value fill(rt_mutator *m, size_t from, size_t to) {
  RT_FRAME(m, 1);
  for (size_t i = from; i < to; i++) {
    R[0] = RT_CALL(m, pair(m, i));
    rt_set(m, table, i % elements, i % 1000 == 999 ? RT_NIL : R[0]);
  }
  RT_RETURN(m, RT_NIL);
}

/* Frames with roots of their own, and `act` at the bottom. */
static rt_value deep(rt_mutator *m, size_t depth, rt_function act) {
  RT_FRAME(m, 2);
  R[0] = RT_ALLOC(m, TAG_FRAME, 1);
  rt_fields(R[0])[0] = rt_from_int((intptr_t)depth);
  R[1] = rt_get(table, depth % elements);
  if (depth > 0) RT_RETURN(m, RT_CALL(m, deep(m, depth - 1, act)));
  RT_RETURN(m, RT_CALL_C(m, act(m, RT_NIL)));
}

/* --- What the runtime itself knows ------------------------------------------------------- */

typedef struct truth {
  uint64_t blocks, words, outside, hash;
} truth;

static uint64_t mix(uint64_t a, uint64_t b, uint64_t c) {
  return a * UINT64_C(0x9E3779B97F4A7C15) ^ b * UINT64_C(0xC2B2AE3D27D4EB4F) ^ c * UINT64_C(0x165667B19E3779F9);
}

static void count_blocks(truth *t, const uintptr_t *at, const uintptr_t *end) {
  for (; at < end; at += rt_header_fields(*at) + 1) {
    if (rt_header_tag(*at) == RT_TAG_FREE) continue;
    rt_value block = (rt_value)(at + 1);
    t->blocks++;
    t->words += rt_size(block);
    t->hash += mix(block, rt_size(block), rt_tag(block));
    if (rt_tag(block) == RT_TAG_EXTERNAL && rt_external(block) != NULL) t->outside += rt_get(block, 1);
    if (rt_tag(block) > RT_TAG_LAST_SCANNED) continue;
    for (size_t i = 0; i < rt_size(block); i++)
      if (rt_is_block(rt_get(block, i))) t->hash += mix(block, i + 1, rt_get(block, i));
  }
}

/* With the world stopped. */
static void say_truth(const char *word) {
  truth t = {0, 0, 0, 0};
  for (size_t i = 0; i < RT_MAX_MUTATORS; i++)
    if (rt.mutators[i] != NULL) count_blocks(&t, RT_YOUNG_FIRST(rt.mutators[i]), RT_YOUNG_LAST(rt.mutators[i]));
  for (const rt_chunk *chunk = rt.major.chunks; chunk != NULL; chunk = chunk->next)
    count_blocks(&t, chunk->first, chunk->end);
  printf("%s blocks=%" PRIu64 " words=%" PRIu64 " outside=%" PRIu64 " hash=%" PRIu64 "\n", word, t.blocks,
         t.words, t.outside, t.hash);
}

/* --- Taking ------------------------------------------------------------------------------ */

static heaptap_status take(const char *file, uint32_t moment) {
  const char *strings = rt_option("--strings");
  heaptap_snapshot_options options = {
    .size = sizeof options,
    .method = rt_option("--sync") != NULL ? HEAPTAP_SNAPSHOT_SYNCHRONOUS : HEAPTAP_SNAPSHOT_COPY,
    .moment = moment,
    .string_bytes = strings == NULL ? 0 : (uint32_t)atoi(strings),
    .wait_ms = strcmp(rt_option("--do"), "stuck") == 0 ? 100 : 0,
  };
  char text[1000] = "";
  heaptap_status status = heaptap_snapshot_take(file, &options, text, sizeof text);
  printf("taken %d %s\n", (int)status, text);
  fflush(stdout);
  return status;
}

/* Has the kernel refuse a plain clone, as a limit on processes would; threads are made with other flags. */
static void refuse_clone(void) {
  struct sock_filter code[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {sizeof code / sizeof code[0], code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
    rt_fatal("no seccomp");
}

static rt_value do_take(rt_mutator *m, rt_value nothing) {
  rt_world_stop(m);
  if (rt_option("--with-young") == NULL) rt_minor_stopped(m); /* so that nothing moves below */
  say_truth("all");
  take(rt_option("--file"), HEAPTAP_SNAPSHOT_HERE);
  rt_minor_stopped(m);
  rt_major_stopped(m);
  say_truth("kept");
  rt_world_start(m);
  return nothing;
}

/* --- Busy threads -------------------------------------------------------------------------- */

static atomic_bool done;

static rt_value busy_thread(rt_mutator *m, rt_value number) {
  RT_FRAME(m, 1);
  for (size_t i = (size_t)rt_to_int(number); !atomic_load(&done); i++) {
    rt_value fresh = RT_ALLOC_N(m, TAG_FRAME, 1 + i % 9);
    for (size_t field = 0; field < rt_size(fresh); field++) rt_fields(fresh)[field] = R[0];
    R[0] = i % 100 == 0 ? RT_NIL : fresh;
  }
  RT_RETURN(m, RT_NIL);
}

static void *taker(void *count) {
  char name[4096];
  for (size_t i = 0; i < *(size_t *)count; i++) {
    snprintf(name, sizeof name, "%s.%zu", rt_option("--file"), i);
    take(name, HEAPTAP_SNAPSHOT_AT_POINT);
  }
  atomic_store(&done, true);
  return NULL;
}

static void start_taker(pthread_t *thread, size_t *count) {
  const char *text = rt_option("--count");
  *count = text == NULL ? 1 : strtoull(text, NULL, 10);
  if (pthread_create(thread, NULL, taker, count) != 0) rt_fatal("no thread");
}

static rt_value busy(rt_mutator *m, size_t threads) {
  RT_FRAME(m, 0);
  rt_thread *all[RT_MAX_MUTATORS];
  for (size_t i = 0; i < threads; i++)
    all[i] = RT_CALL_C(m, rt_thread_start(m, busy_thread, rt_from_int((intptr_t)i)));
  pthread_t thread;
  size_t count;
  start_taker(&thread, &count);
  for (size_t i = 0; i < threads; i++) RT_CALL_C(m, rt_thread_join(m, all[i]));
  pthread_join(thread, NULL);
  RT_RETURN(m, RT_NIL);
}

/* --- Signals and children ------------------------------------------------------------------ */

static int log_file = -1;
static volatile sig_atomic_t heard;

/* Each line is the process in which a handler runs, and the signal. */
static void handler(int number) {
  char line[40];
  int length = snprintf(line, sizeof line, "%d %d\n", (int)getpid(), number);
  if (log_file >= 0 && write(log_file, line, (size_t)length) < 0) _exit(9);
  heard++;
}

static void handle(int number) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigaction(number, &action, NULL);
}

static rt_value do_signals(rt_mutator *m, rt_value nothing) {
  static const int all[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD, SIGSEGV};
  log_file = open(rt_option("--log"), O_WRONLY | O_CREAT | O_APPEND, 0600);
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) handle(all[i]);
  struct itimerval often = {{0, 2000}, {0, 2000}};
  setitimer(ITIMER_REAL, &often, NULL);
  puts("ready");
  fflush(stdout);
  do_take(m, nothing);
  setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
  return nothing;
}

static rt_value do_strangers(rt_mutator *m, rt_value nothing) {
  handle(SIGCHLD);
  pthread_t thread;
  size_t count, looks = 0;
  start_taker(&thread, &count);
  while (!rt_snapshot_wanted()) usleep(100);
  rt_snapshot_point(m); /* from here on the copy walks */
  while (!atomic_load(&done)) {
    int status;
    siginfo_t info;
    if (waitpid(-1, &status, WNOHANG) != -1 || errno != ECHILD) printf("waitpid found a child\n");
    if (waitpid(0, &status, WNOHANG) != -1 || errno != ECHILD) printf("waitpid found a child in the group\n");
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) != -1 || errno != ECHILD) printf("waitid found a child\n");
    looks++;
    usleep(1000);
  }
  pthread_join(thread, NULL);
  printf("looks %zu\nheard %d\n", looks, (int)heard);
  pid_t child = fork();
  if (child == 0) _exit(7);
  int status = 0;
  pid_t waited = waitpid(-1, &status, 0);
  printf("own %d %d\n", waited == child, WEXITSTATUS(status));
  return nothing;
}

static rt_value do_stuck(rt_mutator *m, rt_value nothing) {
  (void)m;
  take(rt_option("--file"), HEAPTAP_SNAPSHOT_AT_POINT);
  return nothing;
}

/* --------------------------------------------------------------------------------------------- */

static uint64_t run(rt_mutator *m, size_t size) {
  static const struct { const char *name; rt_function act; } all[] = {
    {"take", do_take}, {"signals", do_signals}, {"strangers", do_strangers}, {"stuck", do_stuck}};
  RT_FRAME(m, 0);
  const char *what = rt_option("--do");
  rt_root(&table);
  rt_root(&spare);
  if (rt_option("--refuse-clone") != NULL) refuse_clone();
  elements = strcmp(what, "busy") == 0 ? 1000 : size;
  table = RT_ALLOC_N(m, TAG_TABLE, elements);
  spare = RT_ALLOC_N(m, TAG_TABLE, 300);
  RT_CALL(m, fill(m, 0, 2 * elements));
  if (strcmp(what, "busy") == 0) RT_CALL(m, busy(m, size));
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    if (strcmp(all[i].name, what) == 0) RT_CALL(m, deep(m, 12, all[i].act));
  uint64_t sum = 0;
  for (size_t i = 0; i < elements; i++)
    if (rt_get(table, i) != RT_NIL) sum = sum * 31 + (uint8_t)rt_bytes(rt_get(rt_get(table, i), 0))[0];
  RT_RETURN(m, sum);
}

const rt_program rt_the_program = {"snapshots", run, 3000, true};
