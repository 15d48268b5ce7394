/* Mutators, threads, and stopping the world.
 *
 * A thread that wants the world stopped takes the lock, sets `stopping` and sets every mutator's
 * young_limit so that every allocation is beyond it, so that each enters its slow path at its next allocation and waits
 * in rt_safepoint. `running` counts those still to come; a mutator in blocking C code is not among them,
 * and waits when it returns. The lock is held while the world is stopped.
 *
 * A mutator that sets its own limit (rt_limit_install) looks at `stopping` afterwards: either it sees
 * the request, or the request comes later and raises the limit again.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime.h"
#include "trace.h"

rt_runtime rt = {
  .lock = PTHREAD_MUTEX_INITIALIZER,
  .stopped = PTHREAD_COND_INITIALIZER,
  .resumed = PTHREAD_COND_INITIALIZER,
};

#define ASK_TO_STOP RT_ALL_BEYOND

void rt_limit_install(rt_mutator *m) {
  atomic_store(&m->young_limit, m->trace_limit);
  if (atomic_load(&rt.stopping)) atomic_store(&m->young_limit, ASK_TO_STOP);
}

/* With the lock: this mutator counts as stopped until nobody stops the world. */
static void wait_while_stopping(void) {
  while (atomic_load(&rt.stopping)) pthread_cond_wait(&rt.resumed, &rt.lock);
}

static void not_running(void) {
  if (--rt.running == 0) pthread_cond_signal(&rt.stopped);
}

void rt_safepoint(rt_mutator *m) {
  (void)m;
  pthread_mutex_lock(&rt.lock);
  not_running();
  wait_while_stopping();
  rt.running++;
  pthread_mutex_unlock(&rt.lock);
}

void rt_limits_raise(void) {
  for (size_t i = 0; i < RT_MAX_MUTATORS; i++)
    if (rt.mutators[i] != NULL) atomic_store(&rt.mutators[i]->young_limit, ASK_TO_STOP);
}

void rt_world_stop(rt_mutator *m) {
  (void)m;
  pthread_mutex_lock(&rt.lock);
  not_running();
  wait_while_stopping();
  atomic_store(&rt.stopping, true);
  rt_limits_raise();
  while (rt.running > 0) pthread_cond_wait(&rt.stopped, &rt.lock);
}

void rt_world_start(rt_mutator *m) {
  (void)m;
  atomic_store(&rt.stopping, false);
  for (size_t i = 0; i < RT_MAX_MUTATORS; i++)
    if (rt.mutators[i] != NULL) rt_limit_install(rt.mutators[i]);
  rt.running++;
  pthread_cond_broadcast(&rt.resumed);
  pthread_mutex_unlock(&rt.lock);
}

void rt_blocking_enter(rt_mutator *m) {
  pthread_mutex_lock(&rt.lock);
  m->blocked = true;
  not_running();
  pthread_mutex_unlock(&rt.lock);
}

void rt_blocking_leave(rt_mutator *m) {
  pthread_mutex_lock(&rt.lock);
  wait_while_stopping();
  m->blocked = false;
  rt.running++;
  pthread_mutex_unlock(&rt.lock);
}

static uintptr_t *reserve(size_t words) {
  void *memory = mmap(NULL, words * sizeof(uintptr_t), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) rt_fatal("out of memory");
  return memory;
}

rt_mutator *rt_mutator_start(void) {
  rt_mutator *m = rt_memory(sizeof *m);
  memset(m, 0, sizeof *m);
  m->stack_low = reserve(rt.stack_words);
  m->stack_high = m->sp = m->stack_low + rt.stack_words;
  pthread_mutex_lock(&rt.lock);
  wait_while_stopping();
  if (rt.young_low == NULL) {
    rt.young_low = reserve(rt.young_words * RT_MAX_MUTATORS);
    rt.young_high = rt.young_low + rt.young_words * RT_MAX_MUTATORS;
  }
  while (m->number < RT_MAX_MUTATORS && rt.mutators[m->number] != NULL) m->number++;
  if (m->number == RT_MAX_MUTATORS) rt_fatal("too many threads");
  rt.mutators[m->number] = m;
  m->young_start = rt.young_low + rt.young_words * m->number;
  m->young_end = m->young_start + rt.young_words;
  m->young_ptr = RT_YOUNG_EMPTY(m);
  rt_trace_mutator_start(m);
  rt_trace_young_renew(m);
  rt_limit_install(m);
  rt.running++;
  pthread_mutex_unlock(&rt.lock);
  return m;
}

/* With the world stopped and an empty young heap. */
static void forget(rt_mutator *m, rt_mutator *heir) {
  rt_trace_mutator_end(m, heir);
  rt.mutators[m->number] = NULL;
}

static void release(rt_mutator *m) {
  munmap(m->stack_low, rt.stack_words * sizeof(uintptr_t));
  free(m->remembered);
  free(m);
}

void rt_mutator_end(rt_mutator *m, rt_mutator *heir) {
  rt_world_stop(m);
  rt_minor_stopped(m);
  forget(m, heir);
  rt_world_start(m);
  pthread_mutex_lock(&rt.lock);
  not_running();
  pthread_mutex_unlock(&rt.lock);
  release(m);
}

int rt_fork(rt_mutator *m) {
  rt_world_stop(m);
  rt_minor_stopped(m);
  int child = fork();
  if (child == 0) {
    pthread_cond_init(&rt.stopped, NULL);
    pthread_cond_init(&rt.resumed, NULL);
    for (size_t i = 0; i < RT_MAX_MUTATORS; i++) {
      rt_mutator *other = rt.mutators[i];
      if (other == NULL || other == m) continue;
      forget(other, m);
      release(other);
    }
  }
  rt_world_start(m);
  return child;
}

/* --- Threads --------------------------------------------------------------------------- */

struct rt_thread {
  pthread_t id;
  rt_function function;
  rt_value argument, result;
};

/* With the lock: any other mutator. */
static rt_mutator *any_other(const rt_mutator *m) {
  for (size_t i = 0; i < RT_MAX_MUTATORS; i++)
    if (rt.mutators[i] != NULL && rt.mutators[i] != m) return rt.mutators[i];
  return NULL;
}

static void *thread_main(void *argument) {
  rt_thread *thread = argument;
  rt_mutator *m = rt_mutator_start();
  thread->result = rt_callback(m, thread->function, thread->argument);
  pthread_mutex_lock(&rt.lock);
  /* Both ways a runtime may choose: a mutator inherits, or the tracer keeps the blocks. Mutator 0 is the
   * main thread, which outlives the others. */
  rt_mutator *heir = m->number % 2 == 1 ? any_other(m) : NULL;
  if (heir != NULL && heir->number != 0) heir = NULL;
  pthread_mutex_unlock(&rt.lock);
  rt_mutator_end(m, heir);
  return NULL;
}

rt_thread *rt_thread_start(rt_mutator *m, rt_function function, rt_value argument) {
  (void)m;
  rt_thread *thread = rt_memory(sizeof *thread);
  thread->function = function;
  thread->argument = argument;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, rt_c_stack_bytes());
  if (pthread_create(&thread->id, &attributes, thread_main, thread) != 0) rt_fatal("no thread");
  pthread_attr_destroy(&attributes);
  return thread;
}

rt_value rt_thread_join(rt_mutator *m, rt_thread *thread) {
  rt_blocking_enter(m);
  pthread_join(thread->id, NULL);
  rt_blocking_leave(m);
  rt_value result = thread->result;
  free(thread);
  return result;
}
