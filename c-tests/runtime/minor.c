/* The minor collection: what is reachable in the young heaps moves to the major heap. The world is
 * stopped; one thread does it for all mutators, since their young heaps may refer to each other.
 *
 * A block that moved keeps its size, the forwarded bit and its new address in the young heap until the
 * tracer has looked (rt_trace_after_minor). Only then the young heaps are given back to their mutators.
 */
#include <string.h>

#include "runtime.h"
#include "trace.h"

/* Promoted blocks whose fields may still refer to young ones. */
static rt_array grey;

static void promote(rt_value *root) {
  rt_value young = *root;
  if (!rt_is_block(young) || !rt_is_young(young)) return;
  uintptr_t *header = rt_header_of(young);
  if ((*header & RT_FORWARDED) == 0) {
    size_t fields = rt_header_fields(*header);
    rt_value major = rt_major_room(rt_header_tag(*header), fields);
    memcpy(rt_fields(major), rt_fields(young), fields * sizeof(uintptr_t));
    *header |= RT_FORWARDED;
    rt_fields(young)[0] = major;
    if (rt_tag(major) <= RT_TAG_LAST_SCANNED) rt_array_push(&grey, major);
  }
  *root = rt_get(young, 0);
}

static void promote_reachable(void) {
  rt_roots_visit(promote);
  for (size_t i = 0; i < RT_MAX_MUTATORS; i++) {
    rt_mutator *m = rt.mutators[i];
    if (m == NULL) continue;
    for (size_t j = 0; j < m->remembered_count; j++) promote(m->remembered[j]);
    m->remembered_count = 0;
  }
  for (size_t i = 0; i < rt.finalisers.count; i += 2) promote(&rt.finalisers.items[i]);
  for (size_t i = 0; i < rt.finalise_now.count; i += 2) promote(&rt.finalise_now.items[i]);
  while (grey.count > 0) {
    rt_value block = grey.items[--grey.count];
    for (size_t i = 0; i < rt_size(block); i++) promote(&rt_fields(block)[i]);
  }
}

/* Counts what lies in a young heap from header to header, so that allocating need not count. */
static void count_young(const rt_mutator *m) {
  const uintptr_t *at = RT_YOUNG_FIRST(m);
  while (at < RT_YOUNG_LAST(m)) {
    size_t words = rt_header_fields(*at) + 1;
    rt.counters.young_blocks++;
    rt.counters.young_words += words;
    if (*at & RT_FORWARDED) {
      rt.counters.promoted_blocks++;
      rt.counters.promoted_words += words;
    } else {
      rt.counters.collected_blocks++;
    }
    at += words;
  }
}

void rt_minor_stopped(rt_mutator *m) {
  (void)m;
  promote_reachable();
  rt_ghosts_after_minor();
  rt_trace_after_minor();
  for (size_t i = 0; i < RT_MAX_MUTATORS; i++) {
    rt_mutator *each = rt.mutators[i];
    if (each == NULL) continue;
    count_young(each);
    each->young_ptr = RT_YOUNG_EMPTY(each);
    rt_trace_young_renew(each);
  }
  rt.counters.minor_collections++;
}

void rt_collect_minor(rt_mutator *m) {
  rt_world_stop(m);
  rt_minor_stopped(m);
  bool major = rt.major.words_since_collection > rt.major.threshold;
  if (major) rt_major_stopped(m);
  rt_world_start(m);
  if (major) rt_finalisers_run(m);
}
