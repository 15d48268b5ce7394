/* Heap snapshots: how the runtime reports its heap to heaptap, and where its safe points are.
 *
 * The world is stopped whenever the heap is walked, and the walk runs in a copy of the process most of the
 * time, so it calls nothing that allocates or locks. Between headers there is no gap: a young heap is
 * walked from the last block to its end, a chunk of the major heap from its first header, without holes.
 */
#include <pthread.h>
#include <unistd.h>

#include <heaptap.h>

#include "runtime.h"
#include "trace.h"

enum { ROOT_STACK = 1, ROOT_GLOBAL = 2, AT_ONCE = 64 };

static heaptap_snapshot *snapshot; /* during a walk */
static heaptap_status first_failure;
static uint64_t global_index;
static rt_snapshot_fault fault;
static pid_t program;

static void reported(heaptap_status status) {
  if (first_failure == HEAPTAP_STATUS_OK) first_failure = status;
}

static void report_many_pointers(rt_value block, size_t from) {
  for (size_t i = from; i < rt_size(block); i++)
    if (rt_is_block(rt_get(block, i)))
      reported(heaptap_snapshot_pointer(snapshot, i, (void *)rt_get(block, i)));
}

static void report_block(rt_value block) {
  unsigned tag = rt_tag(block);
  size_t size = rt_size(block), count = 0;
  if (tag <= RT_TAG_LAST_SCANNED && size <= AT_ONCE) {
    heaptap_pointer pointers[AT_ONCE];
    for (size_t i = 0; i < size; i++)
      if (rt_is_block(rt_get(block, i))) pointers[count++] = (heaptap_pointer){i, (void *)rt_get(block, i)};
    reported(heaptap_snapshot_block(snapshot, (void *)block, size, tag, pointers, count));
    return;
  }
  reported(heaptap_snapshot_block_begin(snapshot, (void *)block, size, tag));
  if (tag <= RT_TAG_LAST_SCANNED) report_many_pointers(block, 0);
  if (tag == RT_TAG_RAW)
    reported(heaptap_snapshot_contents(snapshot, rt_bytes(block), size * sizeof(uintptr_t)));
  if (tag == RT_TAG_EXTERNAL && rt_external(block) != NULL)
    reported(heaptap_snapshot_outside(snapshot, rt_get(block, 1)));
  reported(heaptap_snapshot_block_end(snapshot));
}

static void report_segment(uint32_t kind, uintptr_t *from, const uintptr_t *end) {
  reported(heaptap_snapshot_segment(snapshot, kind, from, (size_t)(end - from)));
  while (from < end && first_failure == HEAPTAP_STATUS_OK) {
    if (rt_header_tag(*from) != RT_TAG_FREE) report_block((rt_value)(from + 1));
    from += rt_header_fields(*from) + 1;
  }
}

static void report_root(rt_value *root) {
  uint32_t kind = ROOT_GLOBAL;
  uint64_t index = global_index;
  for (size_t i = 0; i < RT_MAX_MUTATORS; i++) {
    const rt_mutator *m = rt.mutators[i];
    if (m == NULL || root < m->stack_low || root >= m->stack_high) continue;
    kind = ROOT_STACK;
    index = (uint64_t)i << 32 | (uint64_t)(m->stack_high - root);
  }
  if (kind == ROOT_GLOBAL) global_index++;
  if (rt_is_block(*root)) reported(heaptap_snapshot_root(snapshot, kind, index, (void *)*root));
}

static void report_ghosts(void) {
  for (size_t i = 0; i < rt.finalisers.count; i += 2)
    reported(heaptap_snapshot_finaliser(snapshot, HEAPTAP_FINALISER_FIRST, (void *)rt.finalisers.items[i], NULL));
  for (size_t i = 0; i < rt.finalise_now.count; i += 2)
    reported(heaptap_snapshot_finaliser(snapshot, HEAPTAP_FINALISER_PENDING, (void *)rt.finalise_now.items[i],
                                        NULL));
  for (size_t i = 0; i < rt.weak.count; i++) {
    rt_value weak = rt.weak.items[i];
    heaptap_pointer key = {0, (void *)rt_get(weak, 0)};
    size_t count = rt_is_block(rt_get(weak, 0)) ? 1 : 0;
    reported(heaptap_snapshot_weak(snapshot, (void *)weak, &key, count, NULL));
  }
}

static void name(uint32_t subject, uint32_t kind, const char *text) {
  reported(heaptap_snapshot_kind_name(snapshot, subject, kind, text));
}

/* What tests want to go wrong, in the copy of the process if there is one. */
static void go_wrong(void) {
  bool in_copy = getpid() != program;
  for (unsigned i = 0; i < fault.delay_ms; i++) usleep(1000);
  if (fault.segv && in_copy) {
    volatile int *volatile nowhere = NULL;
    *nowhere = 0;
  }
}

static heaptap_status walk(void *host, heaptap_snapshot *into) {
  (void)host;
  snapshot = into;
  first_failure = HEAPTAP_STATUS_OK;
  global_index = 0;
  go_wrong();
  name(HEAPTAP_KIND_TAG, RT_TAG_RAW, "raw");
  name(HEAPTAP_KIND_TAG, RT_TAG_WEAK, "weak");
  name(HEAPTAP_KIND_TAG, RT_TAG_EXTERNAL, "external");
  name(HEAPTAP_KIND_ROOT, ROOT_STACK, "stack");
  name(HEAPTAP_KIND_ROOT, ROOT_GLOBAL, "global variable");
  for (size_t i = 0; i < RT_MAX_MUTATORS; i++)
    if (rt.mutators[i] != NULL)
      report_segment(HEAPTAP_SEGMENT_YOUNG, RT_YOUNG_FIRST(rt.mutators[i]), RT_YOUNG_LAST(rt.mutators[i]));
  for (const rt_chunk *chunk = rt.major.chunks; chunk != NULL; chunk = chunk->next)
    report_segment(HEAPTAP_SEGMENT_MAJOR, chunk->first, chunk->end);
  rt_roots_visit(report_root);
  report_ghosts();
  return first_failure;
}

/* On a thread of heaptap: mutators come to their slow path at their next allocation. When the lock is
 * taken, somebody stops the world, and this is called again soon. */
static void request(void *host) {
  (void)host;
  if (pthread_mutex_trylock(&rt.lock) != 0) return;
  rt_limits_raise();
  pthread_mutex_unlock(&rt.lock);
}

void rt_snapshot_register(rt_snapshot_fault with) {
  fault = with;
  program = getpid();
  heaptap_snapshot_source source = {
    .size = sizeof source, .runtime = "minirt", .walk = walk, .request = request, .header_words = 1};
  heaptap_snapshot_source_register(&source);
}

bool rt_snapshot_wanted(void) { return heaptap_snapshot_wanted() != 0; }

void rt_snapshot_point(rt_mutator *m) {
  rt_world_stop(m);
  heaptap_snapshot_point();
  rt_world_start(m);
}
