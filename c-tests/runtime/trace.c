/* The runtime's side of heaptap: the one file that a runtime's author writes.
 *
 * Each function here is called from one place in the runtime; trace.h says when. Without a tracer they do
 * nothing, and the allocation fast path is the same either way: it compares with a limit that is higher
 * than the end of the young heap while a sample lies ahead.
 *
 * No failure of the tracer is one of the program: it says on standard error what went wrong, and the
 * program goes on untraced.
 */
#include <stdlib.h>
#include <string.h>

#include <heaptap.h>

#include "runtime.h"
#include "trace.h"

static heaptap_tracer *tracer; /* set and cleared with the world stopped, or before there is one */

/* Tables handed to the tracer, which reads them until it stops. */
typedef struct tables {
  struct tables *next;
  heaptap_frame *frames;
  heaptap_place *places;
} tables;
static tables *all_tables;

/* --- Start and end --------------------------------------------------------------------- */

bool rt_trace_start(const rt_trace_options *options) {
  heaptap_options with = {
    .size = sizeof with,
    .file = options->file,
    .rate = options->rate,
    .seed = options->seed,
    .header_words = 1,
    .max_mutators = options->one_mutator ? 1 : 0,
    .max_frames = options->max_frames,
    .when_full = options->drop_when_full ? HEAPTAP_FULL_DROP : HEAPTAP_FULL_WAIT,
    .follow = HEAPTAP_FOLLOW_SWEEPS,
    .native_frames = options->native_frames ? HEAPTAP_NATIVE_ON : HEAPTAP_NATIVE_OFF,
    .buffer_kib = options->buffer_kib,
    .context = options->context,
    .runtime_params = "minirt",
  };
  heaptap_status status = options->file != NULL ? heaptap_tracer_start(&with, &tracer)
                                                : heaptap_tracer_start_from_env(&with, &tracer);
  if (status != HEAPTAP_STATUS_OK) {
    tracer = NULL; /* if it matters, heaptap has said why */
    return false;
  }
  rt_trace_add_sites(RT_SITES_HERE());
  for (size_t i = 0; i < RT_MAX_MUTATORS; i++) {
    if (rt.mutators[i] == NULL) continue;
    rt_trace_mutator_start(rt.mutators[i]);
    rt_trace_young_renew(rt.mutators[i]);
  }
  return true;
}

/* Ends the mutators first, so that their handles are not used afterwards, and takes back their limits. */
void rt_trace_stop(void) {
  if (tracer == NULL) return;
  for (size_t i = 0; i < RT_MAX_MUTATORS; i++) {
    if (rt.mutators[i] == NULL) continue;
    rt_trace_mutator_end(rt.mutators[i], NULL);
    rt_trace_young_renew(rt.mutators[i]);
  }
  heaptap_tracer_stop(tracer);
  tracer = NULL;
  while (all_tables != NULL) {
    tables *next = all_tables->next;
    free(all_tables->frames);
    free(all_tables->places);
    free(all_tables);
    all_tables = next;
  }
}

struct heaptap_tracer *rt_trace_tracer(void) { return tracer; }

/* --- Frame tables ---------------------------------------------------------------------- */

/* Appends a place and those it is inlined into; gives its index. */
static uint32_t add_place(heaptap_place *places, uint32_t *count, const rt_place *place) {
  if (place == NULL) return HEAPTAP_NO_PLACE;
  uint32_t into = add_place(places, count, place->inlined_into);
  places[*count] = (heaptap_place){place->file,       place->function, place->line,
                                   place->start_char, place->end_char, into};
  return (*count)++;
}

static size_t place_count(const rt_place *place) {
  size_t count = 0;
  for (; place != NULL; place = place->inlined_into) count++;
  return count;
}

/* Puts the sites of an executable or shared object into the form that heaptap reads. */
void rt_trace_add_sites(rt_sites sites) {
  if (tracer == NULL || sites.start == sites.stop) return;
  size_t count = (size_t)(sites.stop - sites.start), places = 0;
  for (size_t i = 0; i < count; i++) places += place_count(sites.start[i].place);

  tables *both = rt_memory(sizeof *both);
  both->frames = rt_memory(count * sizeof *both->frames);
  both->places = rt_memory(places * sizeof *both->places);
  uint32_t filled = 0;
  for (size_t i = 0; i < count; i++) {
    const rt_site *site = &sites.start[i];
    bool boundary = site->frame_words == RT_BOUNDARY;
    both->frames[i] = (heaptap_frame){
      .return_address = (uintptr_t)site,
      .size = boundary ? HEAPTAP_FRAME_BOUNDARY : (uint32_t)(site->frame_words * sizeof(uintptr_t)),
      .place = add_place(both->places, &filled, site->place),
    };
  }
  heaptap_frame_table table = {
    .size = sizeof table,
    .format = HEAPTAP_FRAMES_NEUTRAL,
    .frames = both->frames,
    .count = count,
    .places = both->places,
    .place_count = filled,
  };
  heaptap_frames_add(tracer, &table);
  both->next = all_tables;
  all_tables = both;
}

/* --- Mutators -------------------------------------------------------------------------- */

/* Called by heaptap when a sample falls: where the managed stack begins. */
static void where(void *host, heaptap_stack *stack) {
  const rt_mutator *m = host;
  bool managed = m->sp != m->stack_high;
  stack->return_address = managed ? m->sp[-1] : 0;
  stack->sp = (uintptr_t)m->sp;
  stack->native_limit = (uintptr_t)m->native_limit;
}

void rt_trace_mutator_start(rt_mutator *m) {
  if (tracer == NULL) return;
  heaptap_mutator_options options = {.size = sizeof options, .host = m, .where = where};
  if (heaptap_mutator_start(tracer, &options, &m->tap) != HEAPTAP_STATUS_OK) m->tap = NULL;
}

void rt_trace_mutator_end(rt_mutator *m, rt_mutator *heir) {
  if (m->tap == NULL) return;
  heaptap_mutator_end(m->tap, heir == NULL ? NULL : heir->tap);
  m->tap = NULL;
}

/* Interning takes a lock. Names are literals, so an address stands for one; each is interned once. */
static uint32_t label_of(const char *name) {
  enum { KNOWN = 8 };
  static _Thread_local struct { heaptap_tracer *tracer; const char *name; uint32_t label; } known[KNOWN];
  size_t i = 0;
  while (i < KNOWN && known[i].tracer == tracer && known[i].name != name) i++;
  if (i == KNOWN) i = 0;
  if (known[i].tracer != tracer || known[i].name != name) {
    uint32_t label = 0; /* no label */
    heaptap_label_intern(tracer, name, &label);
    known[i].tracer = tracer, known[i].name = name, known[i].label = label;
  }
  return known[i].label;
}

void rt_trace_label(rt_mutator *m, const char *name) {
  if (m->tap != NULL) heaptap_mutator_label(m->tap, name == NULL ? 0 : label_of(name));
}

/* --- Allocation ------------------------------------------------------------------------ */

void rt_trace_young_renew(rt_mutator *m) {
  void *limit = RT_YOUNG_FULL(m);
#ifdef RT_UPWARD
  if (m->tap != NULL) heaptap_young_up_renew(m->tap, m->young_ptr, m->young_end, &limit);
#else
  if (m->tap != NULL) heaptap_young_renew(m->tap, m->young_ptr, m->young_start, &limit);
#endif
  m->trace_limit = limit;
}

void rt_trace_young_hit(rt_mutator *m, const size_t *parts, size_t count) {
  void *limit = RT_YOUNG_FULL(m);
#ifdef RT_UPWARD
  if (m->tap != NULL) heaptap_young_up_hit(m->tap, m->young_ptr, parts, NULL, count, &limit);
#else
  if (m->tap != NULL) heaptap_young_hit(m->tap, m->young_ptr, parts, count, &limit);
#endif
  m->trace_limit = limit;
}

void rt_trace_major_alloc(rt_mutator *m, rt_value block) {
  if (m->tap != NULL) heaptap_major_alloc(m->tap, rt_fields(block), rt_size(block) + 1);
}

void rt_trace_external_alloc(rt_mutator *m, void *memory, size_t bytes) {
  if (m->tap != NULL) heaptap_external_alloc(m->tap, memory, bytes);
}

void rt_trace_external_free(rt_mutator *m, void *memory) {
  if (m->tap != NULL) heaptap_external_free(m->tap, memory);
}

/* --- What became of a block ------------------------------------------------------------ */

static uintptr_t header(void **block) { return *rt_header_of((rt_value)*block); }
static void *forward(void **block) { return (void *)rt_get((rt_value)*block, 0); }

static heaptap_fate after_minor(void *host, void **block) {
  (void)host;
  if ((header(block) & RT_FORWARDED) == 0) return HEAPTAP_FATE_DEAD;
  *block = forward(block);
  return HEAPTAP_FATE_PROMOTED;
}

static heaptap_fate after_mark(void *host, void **block) {
  (void)host;
  return header(block) & RT_MARKED ? HEAPTAP_FATE_ALIVE : HEAPTAP_FATE_DEAD;
}

static heaptap_fate after_compact(void *host, void **block) {
  (void)host;
  if ((header(block) & RT_FORWARDED) == 0) return HEAPTAP_FATE_DEAD;
  *block = forward(block);
  return HEAPTAP_FATE_ALIVE;
}

void rt_trace_after_minor(void) {
  if (tracer != NULL) heaptap_tracer_young_sweep(tracer, after_minor, NULL);
}
void rt_trace_after_mark(void) {
  if (tracer != NULL) heaptap_tracer_major_sweep(tracer, after_mark, NULL);
}
void rt_trace_after_compact(void) {
  if (tracer != NULL) heaptap_tracer_major_sweep(tracer, after_compact, NULL);
}
