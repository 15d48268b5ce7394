/* The major heap's memory: chunks that are walked from header to header, holes on free lists by size.
 * With the lock, or with the world stopped. */
#include <stdlib.h>

#include "runtime.h"

#define CHUNK_WORDS ((size_t)32 * 1024)

static size_t class_of(size_t fields) { return fields < RT_SIZE_CLASSES ? fields : RT_SIZE_CLASSES; }

/* Makes a hole of the words from start to end. One without fields stays off the lists until a neighbour
 * dies. */
void rt_hole_add(uintptr_t *start, uintptr_t *end) {
  size_t fields = (size_t)(end - start) - 1;
  *start = rt_header(RT_TAG_FREE, fields);
  if (fields == 0) return;
  rt_value *list = &rt.major.holes[class_of(fields)];
  start[1] = *list;
  *list = (rt_value)(start + 1);
}

void rt_holes_clear(void) {
  for (size_t i = 0; i <= RT_SIZE_CLASSES; i++) rt.major.holes[i] = RT_NIL;
}

static void add_chunk(size_t words) {
  if (words < CHUNK_WORDS) words = CHUNK_WORDS;
  rt_chunk *chunk = rt_memory(sizeof *chunk);
  chunk->first = rt_memory(words * sizeof(uintptr_t));
  chunk->end = chunk->first + words;
  chunk->next = rt.major.chunks;
  rt.major.chunks = chunk;
  rt_hole_add(chunk->first, chunk->end);
}

void rt_chunks_free(rt_chunk *chunks) {
  while (chunks != NULL) {
    rt_chunk *next = chunks->next;
    free(chunks->first);
    free(chunks);
    chunks = next;
  }
}

/* Takes the first hole of a list with room for `fields`, or RT_NIL. */
static rt_value take(rt_value *list, size_t fields) {
  for (; *list != RT_NIL; list = &rt_fields(*list)[0]) {
    if (rt_size(*list) < fields) continue;
    rt_value hole = *list;
    *list = rt_get(hole, 0);
    return hole;
  }
  return RT_NIL;
}

static rt_value find_hole(size_t fields) {
  rt_value hole = take(&rt.major.holes[class_of(fields)], fields);
  if (hole == RT_NIL) hole = take(&rt.major.holes[RT_SIZE_CLASSES], fields);
  for (size_t i = class_of(fields) + 1; hole == RT_NIL && i < RT_SIZE_CLASSES; i++)
    hole = take(&rt.major.holes[i], fields);
  return hole;
}

rt_value rt_major_room(unsigned tag, size_t fields) {
  rt_value hole = find_hole(fields);
  if (hole == RT_NIL) {
    add_chunk(fields + 1);
    hole = find_hole(fields);
  }
  uintptr_t *end = rt_fields(hole) + rt_size(hole);
  uintptr_t *rest = rt_fields(hole) + fields;
  *rt_header_of(hole) = rt_header(tag, fields);
  if (rest < end) rt_hole_add(rest, end);
  rt.major.words_since_collection += fields + 1;
  return hole;
}
