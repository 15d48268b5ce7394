/* What the runtime reports to heaptap, and when. Only trace.c and snapshot.c know heaptap. The functions
 * rt_trace_... do nothing while no trace is being made. */
#ifndef RT_TRACE_H
#define RT_TRACE_H

#include "rt.h"

typedef struct rt_trace_options {
  const char *file;            /* NULL: as the environment says */
  double rate;
  uint64_t seed;
  bool one_mutator, native_frames, drop_when_full;
  uint32_t max_frames, buffer_kib;
  const char *context;
} rt_trace_options;

/* Before the first mutator, or with the world stopped. False if nothing is being traced. */
bool rt_trace_start(const rt_trace_options *options);
void rt_trace_stop(void); /* with the world stopped, or after the last mutator */
void rt_trace_add_sites(rt_sites sites);
/* For flush, rotate and statistics; NULL if nothing is being traced. */
struct heaptap_tracer *rt_trace_tracer(void);

/* On the mutator's thread, or while it is stopped. */
void rt_trace_mutator_start(rt_mutator *m);
void rt_trace_mutator_end(rt_mutator *m, rt_mutator *heir);
void rt_trace_label(rt_mutator *m, const char *name);

/* Sets m->trace_limit: after young_ptr was set back. */
void rt_trace_young_renew(rt_mutator *m);
/* Sets m->trace_limit: an allocation went beyond it. */
void rt_trace_young_hit(rt_mutator *m, const size_t *parts, size_t count);
void rt_trace_major_alloc(rt_mutator *m, rt_value block);
void rt_trace_external_alloc(rt_mutator *m, void *memory, size_t bytes);
void rt_trace_external_free(rt_mutator *m, void *memory);

/* With the world stopped. */
void rt_trace_after_minor(void);   /* forwarding addresses still stand in the young heaps */
void rt_trace_after_mark(void);    /* marks are complete, nothing is swept */
void rt_trace_after_compact(void); /* forwarding addresses stand in the old chunks */

/* Heap snapshots. What tests want to go wrong while the heap is walked: */
typedef struct rt_snapshot_fault {
  unsigned delay_ms; /* it takes longer */
  bool segv;         /* the copy of the process dies of SIGSEGV */
} rt_snapshot_fault;

void rt_snapshot_register(rt_snapshot_fault fault); /* once */
bool rt_snapshot_wanted(void);                      /* any thread */
void rt_snapshot_point(rt_mutator *m);              /* stops the world and has the heap walked */

#endif
