/* What refers to a block without keeping it alive: weak references, finalisers, external memory. */
#include <stdlib.h>

#include "runtime.h"
#include "trace.h"

static bool is_marked(rt_value block) { return *rt_header_of(block) & RT_MARKED; }

void rt_ghosts_after_minor(void) {
  for (size_t i = 0; i < rt.weak.count; i++) {
    rt_value *target = &rt_fields(rt.weak.items[i])[0];
    if (!rt_is_block(*target) || !rt_is_young(*target)) continue;
    bool alive = *rt_header_of(*target) & RT_FORWARDED;
    *target = alive ? rt_get(*target, 0) : RT_NIL;
    rt.counters.weak_cleared += !alive;
  }
}

/* After marking from the roots: a dead block with a finaliser lives on until that has run. */
void rt_ghosts_resurrect(void (*mark)(rt_value)) {
  size_t kept = 0;
  for (size_t i = 0; i < rt.finalisers.count; i += 2) {
    uintptr_t *pair = &rt.finalisers.items[i];
    if (is_marked(pair[0])) {
      rt.finalisers.items[kept++] = pair[0];
      rt.finalisers.items[kept++] = pair[1];
    } else {
      rt_array_push(&rt.finalise_now, pair[0]);
      rt_array_push(&rt.finalise_now, pair[1]);
    }
  }
  rt.finalisers.count = kept;
  for (size_t i = 0; i < rt.finalise_now.count; i += 2) mark(rt.finalise_now.items[i]);
}

static void clear_weak(void) {
  size_t kept = 0;
  for (size_t i = 0; i < rt.weak.count; i++) {
    rt_value weak = rt.weak.items[i];
    if (!is_marked(weak)) continue;
    rt_value *target = &rt_fields(weak)[0];
    if (rt_is_block(*target) && !is_marked(*target)) {
      *target = RT_NIL;
      rt.counters.weak_cleared++;
    }
    rt.weak.items[kept++] = weak;
  }
  rt.weak.count = kept;
}

static void free_externals(rt_mutator *m) {
  size_t kept = 0;
  for (size_t i = 0; i < rt.externals.count; i++) {
    rt_value block = rt.externals.items[i];
    if (is_marked(block)) {
      rt.externals.items[kept++] = block;
    } else if (rt_external(block) != NULL) {
      rt_trace_external_free(m, rt_external(block));
      free(rt_external(block));
      rt.counters.collected_blocks++;
    }
  }
  rt.externals.count = kept;
}

/* Marks are complete, nothing is swept yet. */
void rt_ghosts_after_mark(rt_mutator *m) {
  clear_weak();
  free_externals(m);
}

static void follow_all(rt_array *array, size_t step) {
  for (size_t i = 0; i < array->count; i += step) {
    rt_value *block = &array->items[i];
    if (*rt_header_of(*block) & RT_FORWARDED) *block = rt_get(*block, 0);
  }
}

/* All survivors of the major heap moved. */
void rt_ghosts_after_move(void) {
  follow_all(&rt.weak, 1);
  follow_all(&rt.externals, 1);
  follow_all(&rt.finalisers, 2);
  follow_all(&rt.finalise_now, 2);
}

void rt_finalise(rt_mutator *m, rt_value block, rt_function finaliser) {
  (void)m;
  pthread_mutex_lock(&rt.lock);
  rt_array_push(&rt.finalisers, block);
  rt_array_push(&rt.finalisers, (uintptr_t)finaliser);
  pthread_mutex_unlock(&rt.lock);
}

/* Calls from C into managed code, one finaliser after the other; they may allocate and collect. */
void rt_finalisers_run(rt_mutator *m) {
  for (;;) {
    pthread_mutex_lock(&rt.lock);
    bool none = rt.finalise_now.count == 0;
    uintptr_t function = none ? 0 : rt.finalise_now.items[--rt.finalise_now.count];
    rt_value block = none ? RT_NIL : rt.finalise_now.items[--rt.finalise_now.count];
    rt.counters.finalised += !none;
    pthread_mutex_unlock(&rt.lock);
    if (none) return;
    rt_callback(m, (rt_function)function, block);
  }
}
