/* The major collection: mark from the roots, then sweep the chunks. The world is stopped, and the young
 * heaps are empty, so nothing needs to be marked there. */
#include <stdlib.h>

#include "runtime.h"
#include "trace.h"

static rt_array grey;

static void mark(rt_value value) {
  if (!rt_is_block(value) || (*rt_header_of(value) & RT_MARKED)) return;
  *rt_header_of(value) |= RT_MARKED;
  if (rt_tag(value) <= RT_TAG_LAST_SCANNED) rt_array_push(&grey, value);
}

static void mark_reachable(void) {
  while (grey.count > 0) {
    rt_value block = grey.items[--grey.count];
    for (size_t i = 0; i < rt_size(block); i++) mark(rt_get(block, i));
  }
}

static void mark_root(rt_value *root) { mark(*root); }

/* Marks what is alive: from the roots, then from the blocks whose finalisers have yet to run. */
void rt_mark_all(void) {
  rt_roots_visit(mark_root);
  for (size_t i = 0; i < rt.finalise_now.count; i += 2) mark(rt.finalise_now.items[i]);
  mark_reachable();
  rt_ghosts_resurrect(mark);
  mark_reachable();
}

/* Joins dead blocks and holes, unmarks the rest. Gives the words that are alive. */
static size_t sweep_chunk(rt_chunk *chunk) {
  size_t alive = 0;
  uintptr_t *hole = NULL;
  uintptr_t *at = chunk->first;
  while (at < chunk->end) {
    uintptr_t *next = at + rt_header_fields(*at) + 1;
    if (*at & RT_MARKED) {
      *at &= ~RT_MARKED;
      alive += (size_t)(next - at);
      if (hole != NULL) rt_hole_add(hole, at);
      hole = NULL;
    } else {
      if (rt_header_tag(*at) != RT_TAG_FREE) rt.counters.collected_blocks++;
      if (hole == NULL) hole = at;
    }
    at = next;
  }
  if (hole != NULL && alive > 0) rt_hole_add(hole, at);
  return alive;
}

static size_t sweep(void) {
  size_t alive = 0;
  rt_holes_clear();
  rt_chunk **link = &rt.major.chunks;
  while (*link != NULL) {
    rt_chunk *chunk = *link;
    size_t words = sweep_chunk(chunk);
    alive += words;
    if (words > 0) {
      link = &chunk->next;
    } else { /* nothing left in it */
      *link = chunk->next;
      chunk->next = NULL;
      rt_chunks_free(chunk);
    }
  }
  return alive;
}

void rt_major_stopped(rt_mutator *m) {
  rt.counters.major_collections++;
  if (rt.compact_every != 0 && rt.counters.major_collections % rt.compact_every == 0) {
    rt_compact_stopped(m);
    return;
  }
  rt_mark_all();
  rt_ghosts_after_mark(m);
  rt_trace_after_mark();
  size_t alive = sweep();
  rt.major.words_since_collection = 0;
  rt.major.threshold = alive < 65536 ? 65536 : alive;
}

void rt_collect_major(rt_mutator *m) {
  rt_world_stop(m);
  rt_minor_stopped(m);
  rt_major_stopped(m);
  rt_world_start(m);
  rt_finalisers_run(m);
}
