/* What the files of the runtime share. The lock protects what says so; everything else of the runtime is
 * touched only with the world stopped, or by the one thread there is at the start and the end. */
#ifndef RT_RUNTIME_H
#define RT_RUNTIME_H

#include <pthread.h>

#include "rt.h"

#define RT_MAX_MUTATORS 128

/* What happened, exactly: the oracle for a trace at rate 1. Words include headers. */
typedef struct rt_counters {
  uint64_t young_blocks, young_words;
  uint64_t major_blocks, major_words;       /* allocated there, not promoted */
  uint64_t external_blocks, external_words; /* whole words of memory outside the heaps */
  uint64_t promoted_blocks, promoted_words;
  uint64_t collected_blocks;                /* young, major and external ones */
  uint64_t minor_collections, major_collections, compactions, finalised, weak_cleared;
} rt_counters;

/* A piece of the major heap: blocks and holes from first to end. */
typedef struct rt_chunk {
  struct rt_chunk *next;
  uintptr_t *first, *end;
} rt_chunk;

/* Holes of exactly this many fields, and in the last class all larger ones. */
#define RT_SIZE_CLASSES 64

typedef struct rt_major_heap {
  rt_chunk *chunks;
  rt_value holes[RT_SIZE_CLASSES + 1];
  size_t words_since_collection, threshold;
} rt_major_heap;

/* A growable array of words. */
typedef struct rt_array {
  uintptr_t *items;
  size_t count, room;
} rt_array;

typedef struct rt_runtime {
  pthread_mutex_t lock;
  pthread_cond_t stopped, resumed;
  atomic_bool stopping;                     /* a thread wants the world stopped, or has it */
  unsigned running;                         /* by lock: mutators that are not stopped or blocked */
  rt_mutator *mutators[RT_MAX_MUTATORS];    /* by lock */
  uintptr_t *young_low, *young_high;        /* all young heaps */
  size_t young_words, stack_words;          /* of each mutator */
  size_t compact_every;                     /* major collections between compactions, 0 = never */
  rt_major_heap major;
  rt_array roots;                           /* by lock: addresses of global variables */
  rt_array weak;                            /* weak blocks, all major */
  rt_array externals;                       /* external blocks, all major */
  rt_array finalisers;                      /* by lock: pairs of block and function */
  rt_array finalise_now;                    /* by lock: pairs whose function is to be run */
  rt_counters counters;                     /* by lock, or with the world stopped */
} rt_runtime;
extern rt_runtime rt;

/* One comparison, so that what a program executes does not depend on which heap the system has put
   above the other. */
static inline bool rt_is_young(rt_value value) {
  uintptr_t low = (uintptr_t)rt.young_low; /* where no block begins: a header does */
  return value - low < (uintptr_t)rt.young_high - low;
}

void *rt_memory(size_t bytes);              /* malloc that does not fail */
void rt_array_push(rt_array *array, uintptr_t item);
void rt_fatal(const char *what) __attribute__((noreturn));

/* world.c */
void rt_world_stop(rt_mutator *m);          /* takes the lock */
void rt_world_start(rt_mutator *m);         /* releases it */
void rt_limits_raise(void);                 /* with the lock: all mutators enter their slow path */
void rt_safepoint(rt_mutator *m);
/* Young heaps are filled downwards, or upwards if built with RT_UPWARD. Here is what differs: where the
 * pointer of an empty heap is, where it must not go beyond, a limit that every allocation is beyond, and
 * the blocks that are there. */
#ifdef RT_UPWARD
#define RT_YOUNG_EMPTY(m) ((m)->young_start)
#define RT_YOUNG_FULL(m) ((m)->young_end)
#define RT_YOUNG_ROOM(m) ((size_t)((m)->young_end - (m)->young_ptr))
#define RT_ALL_BEYOND ((uintptr_t *)0)
#define RT_YOUNG_FIRST(m) ((m)->young_start)
#define RT_YOUNG_LAST(m) ((m)->young_ptr)
#else
#define RT_YOUNG_EMPTY(m) ((m)->young_end)
#define RT_YOUNG_FULL(m) ((m)->young_start)
#define RT_YOUNG_ROOM(m) ((size_t)((m)->young_ptr - (m)->young_start))
#define RT_ALL_BEYOND ((uintptr_t *)UINTPTR_MAX)
#define RT_YOUNG_FIRST(m) ((m)->young_ptr)
#define RT_YOUNG_LAST(m) ((m)->young_end)
#endif

void rt_limit_install(rt_mutator *m);       /* trace_limit, unless asked to stop */
rt_mutator *rt_mutator_start(void);
void rt_mutator_end(rt_mutator *m, rt_mutator *heir);

/* With the world stopped. */
void rt_minor_stopped(rt_mutator *m);
void rt_major_stopped(rt_mutator *m);
void rt_compact_stopped(rt_mutator *m);
void rt_mark_all(void);

/* chunks.c */
rt_value rt_major_room(unsigned tag, size_t fields); /* with the lock, or the world stopped */
void rt_hole_add(uintptr_t *start, uintptr_t *end);
void rt_holes_clear(void);
void rt_chunks_free(rt_chunk *chunks);

/* managed.c */
typedef void (*rt_root_visitor)(rt_value *root);
void rt_roots_visit(rt_root_visitor visit); /* stacks and global variables */
extern const rt_site rt_boundary;

/* ghosts.c: what refers to a block without keeping it */
void rt_ghosts_after_minor(void);
void rt_ghosts_resurrect(void (*mark)(rt_value));
void rt_ghosts_after_mark(rt_mutator *m);
void rt_ghosts_after_move(void);
void rt_finalisers_run(rt_mutator *m);

/* The runtime's own record of every allocation's stack, for tests. */
void rt_stacks_open(const char *path);
void rt_stacks_note(const rt_mutator *m, const char *source, size_t length);
void rt_stacks_close(void);

/* driver.c */
size_t rt_c_stack_bytes(void);

#endif
