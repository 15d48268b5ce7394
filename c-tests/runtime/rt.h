/* minirt: a small generational runtime, as a host for heaptap.
 *
 * What it is: several mutator threads, each with a young heap that is filled downwards by moving a
 * pointer; a shared major heap with free lists, mark and sweep, and compaction; precise roots from
 * managed stacks; finalisers, weak references, external memory; calls through C and back. It is built to
 * be looked at, and so that its own counters say exactly what a tracer at rate 1 must have seen.
 *
 *   value.h    values, headers            alloc.c     slow path, major and external allocation
 *   site.h     frames and call sites      world.c     mutators, threads, stopping the world
 *   rt.h       what programs use          minor.c     promotion of what survives a young heap
 *   runtime.h  what the files share       chunks.c    the major heap's memory
 *   trace.c    the tracer's side          snapshot.c  heap snapshots
 *                                         major.c     mark, sweep;  compact.c  moving everything
 *   driver.c   main(), options            managed.c   the managed stack;  ghosts.c  finalisers, weak
 *
 * Rules for managed code, which a compiler would keep by itself: a value that lives across a call or an
 * allocation is in a root of the frame (R[i]); arguments are put there first; the fields of a new block
 * are filled before the next call; a block that is not new is written with rt_set; macros with a site do
 * not nest, since each leaves its return address in the same word.
 */
#ifndef RT_H
#define RT_H

#include <stdatomic.h>

#include "site.h"

struct heaptap_mutator;

/* Blocks with more fields go to the major heap at once. */
#define RT_MAX_YOUNG_FIELDS 256

/* One managed thread. Used by its own thread, or by the collector's while it is stopped. */
typedef struct rt_mutator {
  uintptr_t *young_ptr;                /* the last block's header; upwards, the end of the last block */
  _Atomic(uintptr_t *) young_limit;    /* beyond it: slow path. So far away that all are, when asked to stop */
  uintptr_t *sp;                       /* of the innermost managed frame */
  void *native_limit;                  /* C stack where managed code last called C; NULL in managed code */
  uintptr_t *young_start, *young_end;  /* its part of the young area */
  uintptr_t *trace_limit;              /* where the next sample falls, or the end of the room */
  struct heaptap_mutator *tap;         /* NULL when not traced */
  uintptr_t *stack_low, *stack_high;   /* the managed stack */
  uintptr_t **remembered;              /* fields of major blocks that may point to young ones */
  size_t remembered_count, remembered_room;
  unsigned number;                     /* its slot in the young area */
  bool blocked;                        /* in C code that touches no value: counts as stopped */
} rt_mutator;

/* --- Frames and calls ---------------------------------------------------------------- */

void rt_stack_overflow(void) __attribute__((noreturn));

static inline uintptr_t *rt_frame_push(rt_mutator *m, size_t words) {
  uintptr_t *sp = m->sp - words;
  if (sp - 1 < m->stack_low) rt_stack_overflow();
  for (size_t i = 0; i + 1 < words; i++) sp[i] = RT_NIL;
  return m->sp = sp;
}

/* The C stack's pointer: below the caller's frame, above those of what it calls. */
static inline __attribute__((always_inline)) void *rt_stack_pointer(void) {
  void *sp;
#if defined(__x86_64__)
  __asm__ volatile("mov %%rsp, %0" : "=r"(sp));
#elif defined(__aarch64__)
  __asm__ volatile("mov %0, sp" : "=r"(sp));
#else
  sp = NULL; /* C frames are not unwound */
#endif
  return sp;
}

/* Opens a managed function with `roots` roots R[0], R[1], ...; RT_RETURN closes it. */
#define RT_FRAME(m, roots) \
  enum { rt_frame_words_ = (roots) + 1 }; \
  uintptr_t *const R __attribute__((unused)) = rt_frame_push(m, rt_frame_words_)
#define RT_RETURN(m, value) do { \
  __typeof__(value) result_ = (value); \
  (m)->sp += rt_frame_words_; \
  return result_; } while (0)

/* Managed code calls managed code. */
#define RT_CALL(m, call) ((m)->sp[-1] = (uintptr_t)RT_SITE(#call), (call))
#define RT_CALL_INLINED(m, inner, inner_line, call) \
  ((m)->sp[-1] = (uintptr_t)RT_SITE_INLINED(inner, inner_line, #call), (call))
/* Managed code calls C code, which may call back with rt_callback. */
#define RT_CALL_C(m, call) __extension__({ \
  (m)->sp[-1] = (uintptr_t)RT_SITE(#call); \
  void *outer_limit_ = (m)->native_limit; \
  (m)->native_limit = rt_stack_pointer(); \
  __typeof__(call) result_ = (call); \
  (m)->native_limit = outer_limit_; \
  result_; })
/* C code calls managed code. */
typedef rt_value (*rt_function)(rt_mutator *m, rt_value argument);
rt_value rt_callback(rt_mutator *m, rt_function function, rt_value argument);

/* --- Allocation ------------------------------------------------------------------------ */

#ifdef RT_ALLOC_OUT_OF_LINE /* so that callgrind shows it by its name */
#define RT_FAST __attribute__((noinline, noclone, unused))
#else
#define RT_FAST inline
#endif

uintptr_t *rt_alloc_slow(rt_mutator *m, const rt_site *site, const size_t *parts, size_t count);

/* Room for `count` blocks at once: the words of all, and of each, headers included. This is what compiled
 * code has at every allocation; tracing adds nothing to it. */
static RT_FAST uintptr_t *rt_young_alloc(rt_mutator *m, size_t words, const rt_site *site,
                                         const size_t *parts, size_t count) {
#ifdef RT_UPWARD
  uintptr_t *end = m->young_ptr += words;
  if (__builtin_expect(end > atomic_load_explicit(&m->young_limit, memory_order_relaxed), 0))
    return rt_alloc_slow(m, site, parts, count);
  return end - words;
#else
  uintptr_t *ptr = m->young_ptr -= words;
  if (__builtin_expect(ptr < atomic_load_explicit(&m->young_limit, memory_order_relaxed), 0))
    ptr = rt_alloc_slow(m, site, parts, count);
  return ptr;
#endif
}

/* One block of a constant number of fields. */
#define RT_ALLOC(m, tag, size) __extension__({ \
  static const size_t parts_[] = {(size) + 1}; \
  uintptr_t *p_ = rt_young_alloc(m, (size) + 1, RT_SITE("RT_ALLOC(m, " #tag ", " #size ")"), parts_, 1); \
  p_[0] = rt_header(tag, size); \
  (rt_value)(p_ + 1); })
/* Two blocks with one move of the pointer; the second is RT_NEXT(first). */
#define RT_ALLOC2(m, tag1, size1, tag2, size2) __extension__({ \
  static const size_t parts_[] = {(size1) + 1, (size2) + 1}; \
  uintptr_t *p_ = rt_young_alloc(m, (size1) + (size2) + 2, \
                                 RT_SITE("RT_ALLOC2(m, " #size1 ", " #size2 ")"), parts_, 2); \
  p_[0] = rt_header(tag1, size1); \
  p_[(size1) + 1] = rt_header(tag2, size2); \
  (rt_value)(p_ + 1); })
/* The block behind this one, of the same allocation. */
#define RT_NEXT(block) ((rt_value)(rt_fields(block) + rt_size(block) + 1))

/* A block of any size, young or major, from managed code (RT_ALLOC_N) or from C (rt_alloc_n with NULL,
 * when sp[-1] is already where managed code called C). Scanned fields are RT_NIL, raw ones are not. */
rt_value rt_alloc_n(rt_mutator *m, const rt_site *site, unsigned tag, size_t fields);
#define RT_ALLOC_N(m, tag, size) rt_alloc_n(m, RT_SITE("RT_ALLOC_N(m, " #tag ", " #size ")"), tag, size)
/* A block with `bytes` of memory outside the heaps, that lives as long as it does. */
rt_value rt_alloc_external(rt_mutator *m, const rt_site *site, size_t bytes);
#define RT_ALLOC_EXTERNAL(m, bytes) rt_alloc_external(m, RT_SITE("RT_ALLOC_EXTERNAL(m, " #bytes ")"), bytes)
static inline char *rt_external(rt_value block) { return (char *)rt_get(block, 0); }
/* Frees the memory before the block dies. */
void rt_external_release(rt_mutator *m, rt_value block);
/* A weak reference; rt_get(weak, 0) is RT_NIL once the block is dead. */
rt_value rt_alloc_weak(rt_mutator *m, rt_value target);
#define RT_ALLOC_WEAK(m, target) RT_CALL(m, rt_alloc_weak(m, target))

/* The write barrier. */
void rt_set(rt_mutator *m, rt_value block, size_t field, rt_value value);

/* When the block is found dead, `finaliser` runs with it on the thread that collected. */
void rt_finalise(rt_mutator *m, rt_value block, rt_function finaliser);
/* A global variable that is a root, RT_NIL at first. */
void rt_root(rt_value *variable);

void rt_collect_minor(rt_mutator *m);
void rt_collect_major(rt_mutator *m);
void rt_compact(rt_mutator *m);

/* --- Threads --------------------------------------------------------------------------- */

typedef struct rt_thread rt_thread;
/* Call these three with RT_CALL_C. Runs `function(argument)` managed on a new thread; `argument` is no
 * block. */
rt_thread *rt_thread_start(rt_mutator *m, rt_function function, rt_value argument);
/* Waits for its end; its result is no block. */
rt_value rt_thread_join(rt_mutator *m, rt_thread *thread);
/* Around C code that waits and touches no value. */
void rt_blocking_enter(rt_mutator *m);
void rt_blocking_leave(rt_mutator *m);
/* fork(): the child has this mutator alone. Call it with RT_CALL_C. */
int rt_fork(rt_mutator *m);

/* Sites of code that was loaded while running. */
void rt_sites_add(rt_sites sites);
/* What this mutator is doing, for the trace; NULL for nothing. */
void rt_label(rt_mutator *m, const char *name);

/* --- The program ------------------------------------------------------------------------- */

/* Every program defines this: its name, and what it does with the size it is given. */
typedef struct rt_program {
  const char *name;
  uint64_t (*run)(rt_mutator *m, size_t size); /* gives a checksum */
  size_t size;                                 /* when none is given */
  bool threads;                                /* more than one mutator */
} rt_program;
extern const rt_program rt_the_program;

/* An option `--name value` that the driver does not know itself, or NULL. */
const char *rt_option(const char *name);

#endif
