/* Compaction: every live block of the major heap is copied into new chunks, then the old ones go. The
 * world is stopped and the young heaps are empty. A block that moved has the forwarded bit and its new
 * address in the old chunk until the tracer has looked (rt_trace_after_compact). */
#include <string.h>

#include "runtime.h"
#include "trace.h"

static void follow(rt_value *root) {
  if (rt_is_block(*root) && (*rt_header_of(*root) & RT_FORWARDED)) *root = rt_get(*root, 0);
}

static size_t copy_chunk(const rt_chunk *chunk) {
  size_t alive = 0;
  for (uintptr_t *at = chunk->first; at < chunk->end; at += rt_header_fields(*at) + 1) {
    size_t fields = rt_header_fields(*at);
    if (*at & RT_MARKED) {
      rt_value copy = rt_major_room(rt_header_tag(*at), fields);
      memcpy(rt_fields(copy), at + 1, fields * sizeof(uintptr_t));
      *at = (*at & ~RT_MARKED) | RT_FORWARDED;
      at[1] = copy;
      alive += fields + 1;
    } else if (rt_header_tag(*at) != RT_TAG_FREE) {
      rt.counters.collected_blocks++;
    }
  }
  return alive;
}

static void follow_fields(const rt_chunk *chunk) {
  for (uintptr_t *at = chunk->first; at < chunk->end; at += rt_header_fields(*at) + 1) {
    if (rt_header_tag(*at) > RT_TAG_LAST_SCANNED && rt_header_tag(*at) != RT_TAG_WEAK) continue;
    for (size_t i = 1; i <= rt_header_fields(*at); i++) follow(&at[i]);
  }
}

void rt_compact_stopped(rt_mutator *m) {
  rt.counters.compactions++;
  rt_mark_all();
  rt_ghosts_after_mark(m);
  rt_chunk *old = rt.major.chunks;
  rt.major.chunks = NULL;
  rt_holes_clear();
  size_t alive = 0;
  for (const rt_chunk *chunk = old; chunk != NULL; chunk = chunk->next) alive += copy_chunk(chunk);
  rt_roots_visit(follow);
  rt_ghosts_after_move();
  for (const rt_chunk *chunk = rt.major.chunks; chunk != NULL; chunk = chunk->next) follow_fields(chunk);
  rt_trace_after_compact();
  rt_chunks_free(old);
  rt.major.words_since_collection = 0;
  rt.major.threshold = alive < 65536 ? 65536 : alive;
}

void rt_compact(rt_mutator *m) {
  rt_world_stop(m);
  rt_minor_stopped(m);
  rt.counters.major_collections++;
  rt_compact_stopped(m);
  rt_world_start(m);
  rt_finalisers_run(m);
}
