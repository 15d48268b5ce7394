/* Allocation beyond the fast path, and the write barrier. Runs on mutators. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"
#include "trace.h"

void rt_fatal(const char *what) {
  fprintf(stderr, "minirt: %s\n", what);
  abort();
}

void *rt_memory(size_t bytes) {
  void *memory = malloc(bytes == 0 ? 1 : bytes);
  if (memory == NULL) rt_fatal("out of memory");
  return memory;
}

void rt_array_push(rt_array *array, uintptr_t item) {
  if (array->count == array->room) {
    array->room = array->room == 0 ? 64 : array->room * 2;
    array->items = realloc(array->items, array->room * sizeof *array->items);
    if (array->items == NULL) rt_fatal("out of memory");
  }
  array->items[array->count++] = item;
}

/* The pointer went beyond the limit: someone wants the world stopped or a snapshot, the young heap is full, a
 * sample falls into these blocks, or several of these. */
uintptr_t *rt_alloc_slow(rt_mutator *m, const rt_site *site, const size_t *parts, size_t count) {
  size_t words = 0;
  for (size_t i = 0; i < count; i++) words += parts[i];
  if (site != NULL) m->sp[-1] = (uintptr_t)site;
#ifdef RT_UPWARD
  m->young_ptr -= words; /* as if nothing had happened, for the collector */
#else
  m->young_ptr += words; /* the same */
#endif
  for (;;) {
    if (atomic_load(&rt.stopping)) rt_safepoint(m);
    else if (rt_snapshot_wanted()) rt_snapshot_point(m);
    else if (RT_YOUNG_ROOM(m) < words) rt_collect_minor(m);
    else break;
  }
#ifdef RT_UPWARD
  uintptr_t *ptr = m->young_ptr;
  m->young_ptr += words;
  bool hit = m->young_ptr > m->trace_limit;
#else
  uintptr_t *ptr = m->young_ptr -= words;
  bool hit = ptr < m->trace_limit;
#endif
  if (hit) {
    rt_trace_young_hit(m, parts, count);
    rt_limit_install(m);
#ifdef RT_UPWARD /* as the pointer moved */
    for (size_t i = 0; i < count; i++) rt_stacks_note(m, "minor", parts[i] - 1);
#else
    for (size_t i = count; i-- > 0;) rt_stacks_note(m, "minor", parts[i] - 1);
#endif
  } else {
    rt_limit_install(m); /* it was raised for a snapshot that nobody wants any more */
  }
  return ptr;
}

static rt_value alloc_major(rt_mutator *m, unsigned tag, size_t fields) {
  pthread_mutex_lock(&rt.lock);
  bool collect = rt.major.words_since_collection > rt.major.threshold;
  pthread_mutex_unlock(&rt.lock);
  if (collect) rt_collect_major(m);

  pthread_mutex_lock(&rt.lock);
  rt_value block = rt_major_room(tag, fields);
  if (tag <= RT_TAG_LAST_SCANNED)
    for (size_t i = 0; i < fields; i++) rt_fields(block)[i] = RT_NIL;
  rt.counters.major_blocks++;
  rt.counters.major_words += fields + 1;
  pthread_mutex_unlock(&rt.lock);

  rt_trace_major_alloc(m, block);
  rt_stacks_note(m, "major", fields);
  return block;
}

rt_value rt_alloc_n(rt_mutator *m, const rt_site *site, unsigned tag, size_t fields) {
  if (fields == 0) rt_fatal("a block without fields");
  if (site != NULL) m->sp[-1] = (uintptr_t)site;
  if (fields > RT_MAX_YOUNG_FIELDS) return alloc_major(m, tag, fields);
  size_t words = fields + 1;
  uintptr_t *ptr = rt_young_alloc(m, words, site, &words, 1);
  ptr[0] = rt_header(tag, fields);
  if (tag <= RT_TAG_LAST_SCANNED)
    for (size_t i = 1; i <= fields; i++) ptr[i] = RT_NIL;
  return (rt_value)(ptr + 1);
}

rt_value rt_alloc_external(rt_mutator *m, const rt_site *site, size_t bytes) {
  if (site != NULL) m->sp[-1] = (uintptr_t)site;
  rt_value block = alloc_major(m, RT_TAG_EXTERNAL, 2);
  char *memory = rt_memory(bytes);
  rt_fields(block)[0] = (uintptr_t)memory;
  rt_fields(block)[1] = bytes;
  pthread_mutex_lock(&rt.lock);
  rt_array_push(&rt.externals, block);
  rt.counters.external_blocks++;
  rt.counters.external_words += (bytes + sizeof(void *) - 1) / sizeof(void *);
  pthread_mutex_unlock(&rt.lock);
  rt_trace_external_alloc(m, memory, bytes);
  rt_stacks_note(m, "external", (bytes + sizeof(void *) - 1) / sizeof(void *));
  return block;
}

void rt_external_release(rt_mutator *m, rt_value block) {
  char *memory = rt_external(block);
  if (memory == NULL) return;
  rt_trace_external_free(m, memory);
  free(memory);
  rt_fields(block)[0] = 0;
  pthread_mutex_lock(&rt.lock);
  rt.counters.collected_blocks++;
  pthread_mutex_unlock(&rt.lock);
}

/* Managed, since it holds the target across the allocation. */
rt_value rt_alloc_weak(rt_mutator *m, rt_value target) {
  RT_FRAME(m, 1);
  R[0] = target;
  m->sp[-1] = (uintptr_t)RT_SITE("alloc_major(m, RT_TAG_WEAK, 1)");
  rt_value weak = alloc_major(m, RT_TAG_WEAK, 1);
  rt_fields(weak)[0] = R[0];
  pthread_mutex_lock(&rt.lock);
  rt_array_push(&rt.weak, weak);
  pthread_mutex_unlock(&rt.lock);
  RT_RETURN(m, weak);
}

void rt_set(rt_mutator *m, rt_value block, size_t field, rt_value value) {
  uintptr_t *place = &rt_fields(block)[field];
  *place = value;
  if (rt_is_young(block) || !rt_is_block(value) || !rt_is_young(value)) return;
  if (m->remembered_count == m->remembered_room) {
    m->remembered_room = m->remembered_room == 0 ? 256 : m->remembered_room * 2;
    m->remembered = realloc(m->remembered, m->remembered_room * sizeof *m->remembered);
    if (m->remembered == NULL) rt_fatal("out of memory");
  }
  m->remembered[m->remembered_count++] = place;
}
