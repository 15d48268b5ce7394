/* A server-like mix: --threads workers (4 by default) serve `size` requests each. Sessions live in a table
 * that all workers share under a lock, responses in a cache of weak references, bodies in external memory,
 * and a session says goodbye in a finaliser. Every kind of request has its label.
 *
 * What a worker answers does not depend on the others, so the checksum is the same however they run. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../runtime/rt.h"

enum { TAG_SESSION = 1, TAG_TABLE = 2, TAG_ITEM = 3, TAG_CONS = 4, SESSIONS = 64 };
/* session = { number, visits, history, body } */

static rt_value tables; /* one table of sessions for each worker, reached by all through one block */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_ulong goodbyes;

/* C code: waiting for the lock is no reason to hold up a collection. */
static bool lock_tables(rt_mutator *m) {
  rt_blocking_enter(m);
  pthread_mutex_lock(&table_lock);
  rt_blocking_leave(m);
  return true;
}

static rt_value goodbye(rt_mutator *m, rt_value session) {
  RT_FRAME(m, 1);
  R[0] = session;
  rt_value note = RT_ALLOC(m, TAG_ITEM, 1); /* finalisers may allocate */
  rt_fields(note)[0] = rt_get(R[0], 0);
  atomic_fetch_add(&goodbyes, 1);
  RT_RETURN(m, RT_NIL);
}

static rt_value login(rt_mutator *m, size_t number) {
  RT_FRAME(m, 2);
  R[1] = RT_ALLOC_EXTERNAL(m, 64 + number % 512);
  memset(rt_external(R[1]), (int)number, 64);
  R[0] = RT_ALLOC(m, TAG_SESSION, 4);
  rt_fields(R[0])[0] = rt_from_int((intptr_t)number);
  rt_fields(R[0])[1] = rt_from_int(0);
  rt_fields(R[0])[2] = RT_NIL;
  rt_fields(R[0])[3] = R[1];
  if (number % 8 == 0) rt_finalise(m, R[0], goodbye);
  RT_RETURN(m, R[0]);
}

static rt_value browse(rt_mutator *m, rt_value session, size_t number) {
  RT_FRAME(m, 2);
  R[0] = session;
  R[1] = RT_ALLOC2(m, TAG_CONS, 2, TAG_ITEM, 1);
  rt_fields(R[1])[0] = RT_NEXT(R[1]);
  rt_fields(RT_NEXT(R[1]))[0] = rt_from_int((intptr_t)number);
  rt_fields(R[1])[1] = rt_get(R[0], 2);
  rt_set(m, R[0], 2, R[1]);
  rt_set(m, R[0], 1, rt_from_int(rt_to_int(rt_get(R[0], 1)) + 1));
  RT_RETURN(m, rt_get(R[0], 1));
}

/* A large answer, and a weak reference to it as a cache would keep. */
static rt_value report(rt_mutator *m, rt_value session, size_t number) {
  RT_FRAME(m, 3);
  R[0] = session;
  R[1] = RT_ALLOC_N(m, TAG_TABLE, 200 + number % 200);
  for (size_t i = 0; i < rt_size(R[1]); i++) rt_set(m, R[1], i, rt_get(R[0], 2));
  R[2] = RT_ALLOC_WEAK(m, R[1]);
  rt_value cached = rt_get(R[2], 0);
  RT_RETURN(m, rt_from_int(cached == R[1] ? (intptr_t)rt_size(R[1]) : -1));
}

static rt_value request(rt_mutator *m, size_t worker, size_t number) {
  RT_FRAME(m, 2);
  size_t slot = number * 7 % SESSIONS;
  RT_CALL_C(m, lock_tables(m));
  R[0] = rt_get(tables, worker);
  pthread_mutex_unlock(&table_lock);
  R[1] = rt_get(R[0], slot);
  rt_value answer = rt_from_int(1);
  if (R[1] == RT_NIL || number % 97 == 0) {
    rt_label(m, "login");
    R[1] = RT_CALL(m, login(m, number));
    rt_set(m, R[0], slot, R[1]);
  } else if (number % 31 == 0) {
    rt_label(m, "report");
    answer = RT_CALL(m, report(m, R[1], number));
  } else {
    rt_label(m, "browse");
    answer = RT_CALL(m, browse(m, R[1], number));
  }
  rt_label(m, NULL);
  RT_RETURN(m, answer);
}

static size_t requests, workers, begun;
static pthread_mutex_t begin_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_begun = PTHREAD_COND_INITIALIZER;

/* C code: on a busy machine the first worker would be through before the last one begins. */
static bool wait_for_all(rt_mutator *m) {
  rt_blocking_enter(m);
  pthread_mutex_lock(&begin_lock);
  if (++begun == workers) pthread_cond_broadcast(&all_begun);
  while (begun < workers) pthread_cond_wait(&all_begun, &begin_lock);
  pthread_mutex_unlock(&begin_lock);
  rt_blocking_leave(m);
  return true;
}

static rt_value worker_main(rt_mutator *m, rt_value worker) {
  RT_FRAME(m, 1);
  uint64_t sum = 0;
  RT_CALL_C(m, wait_for_all(m));
  for (size_t i = 0; i < requests; i++) {
    rt_value answer = RT_CALL(m, request(m, (size_t)rt_to_int(worker), i));
    sum = sum * 31 + (uint64_t)rt_to_int(answer);
  }
  RT_RETURN(m, rt_from_int((intptr_t)(sum >> 1)));
}

static uint64_t run(rt_mutator *m, size_t size) {
  RT_FRAME(m, 1);
  const char *option = rt_option("--threads");
  workers = option == NULL ? 4 : strtoull(option, NULL, 10);
  requests = size;
  rt_root(&tables);
  tables = RT_ALLOC_N(m, TAG_TABLE, workers);
  for (size_t i = 0; i < workers; i++) {
    R[0] = RT_ALLOC_N(m, TAG_TABLE, SESSIONS);
    rt_set(m, tables, i, R[0]);
  }
  rt_thread **threads = calloc(workers, sizeof *threads);
  for (size_t i = 0; i < workers; i++)
    threads[i] = RT_CALL_C(m, rt_thread_start(m, worker_main, rt_from_int((intptr_t)i)));
  uint64_t sum = 0;
  for (size_t i = 0; i < workers; i++)
    sum = sum * 31 + (uint64_t)rt_to_int(RT_CALL_C(m, rt_thread_join(m, threads[i])));
  free(threads);
  RT_RETURN(m, sum);
}

const rt_program rt_the_program = {"server", run, 20000, true};
