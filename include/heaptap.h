/* heaptap: a sampling allocation tracer for language runtimes. (contract draft; will be generated) */
#ifndef HEAPTAP_H
#define HEAPTAP_H

#include <stddef.h>
#include <stdint.h>

#define HEAPTAP_VERSION_MAJOR 0
#define HEAPTAP_VERSION_MINOR 1
#define HEAPTAP_VERSION_PATCH 0
#define HEAPTAP_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t heaptap_status;
#define HEAPTAP_STATUS_OK 0
#define HEAPTAP_STATUS_NULL 1            /* a pointer that may not be NULL is, or is misaligned */
#define HEAPTAP_STATUS_SIZE 2            /* a struct's size field is not one we know */
#define HEAPTAP_STATUS_RESERVED 3        /* reserved bytes are not zero */
#define HEAPTAP_STATUS_RATE 4            /* rate not in [1e-7, 1] */
#define HEAPTAP_STATUS_OPTION 5          /* some other option out of range */
#define HEAPTAP_STATUS_FILE 6            /* the file cannot be made; the message says why */
#define HEAPTAP_STATUS_MEMORY 7
#define HEAPTAP_STATUS_THREAD 8          /* the writer thread cannot be started */
#define HEAPTAP_STATUS_ALREADY 9         /* a tracer runs in this process */
#define HEAPTAP_STATUS_OFF 10            /* the tracer was stopped, or turned itself off */
#define HEAPTAP_STATUS_MUTATORS 11       /* more mutators than promised, or over 65,535 */
#define HEAPTAP_STATUS_HANDLE 12         /* not a handle of ours, or ended */
#define HEAPTAP_STATUS_FRAMES 13         /* a frame table that makes no sense */
#define HEAPTAP_STATUS_NOT_ASKED 14      /* the environment asks for no trace */
#define HEAPTAP_STATUS_ORDER 15          /* called at a moment when it may not be */
#define HEAPTAP_STATUS_PANIC 16          /* a defect of ours: the tracer turned itself off */
#define HEAPTAP_STATUS_LOST 17           /* a sample was dropped and counted */
const char *heaptap_status_str(heaptap_status status);
const char *heaptap_version(void);

typedef struct heaptap_tracer heaptap_tracer;

/* Only the first field is the host's business, and only through the inline functions below. */
typedef struct heaptap_mutator {
  intptr_t until_sample;
} heaptap_mutator;

/* What to do when no event buffer is free. */
#define HEAPTAP_FULL_WAIT 0              /* wait at most wait_ms, then drop and count */
#define HEAPTAP_FULL_DROP 1              /* drop and count at once */

/* How blocks are followed. */
#define HEAPTAP_FOLLOW_SWEEPS 0          /* heaptap_young_sweep, heaptap_major_sweep */
#define HEAPTAP_FOLLOW_ADDRESSES 1       /* heaptap_block_promote, _collect, _move */

/* Frames of C code between the sample and the innermost managed frame. */
#define HEAPTAP_NATIVE_OFF 0
#define HEAPTAP_NATIVE_ON 1

typedef struct heaptap_options {
  size_t size;                  /* sizeof(heaptap_options) */
  const char *file;             /* %p pid, %e executable, %t start time in seconds; UTF-8 or any bytes */
  double rate;                  /* 0 = 1e-5 */
  uint64_t seed;                /* 0 = from the system; else a reproducible run */
  uint32_t header_words;        /* words in front of a block that belong to it but not to its length */
  uint32_t max_mutators;        /* 1 = one only, a version 2 file; 0 = any number, version 3 */
  uint32_t max_frames;          /* 0 = 262,144 */
  uint32_t when_full;           /* HEAPTAP_FULL_ */
  uint32_t wait_ms;             /* 0 = 1,000 */
  uint32_t follow;              /* HEAPTAP_FOLLOW_ */
  uint32_t native_frames;       /* HEAPTAP_NATIVE_ */
  uint32_t buffer_kib;          /* memory for events on their way, 0 = 8,192 */
  const char *context;          /* may be NULL */
  const char *runtime_params;   /* may be NULL */
  uint8_t reserved[64];         /* zero */
} heaptap_options;

/* Starts a trace. Any thread, not inside a collection. Costs a thread and buffer_kib of memory. */
heaptap_status heaptap_tracer_start(const heaptap_options *options, heaptap_tracer **tracer);
/* Same with file, rate, seed ... from HEAPTAP, HEAPTAP_RATE, HEAPTAP_SEED (or MEMTRACE, MEMTRACE_RATE)
 * in place of those of `options`; HEAPTAP_STATUS_NOT_ASKED if neither HEAPTAP nor MEMTRACE is set. */
heaptap_status heaptap_tracer_start_from_env(const heaptap_options *options, heaptap_tracer **tracer);
/* Writes everything, ends the writer thread. Other threads' hooks become no-ops. Also happens at exit(). */
heaptap_status heaptap_tracer_stop(heaptap_tracer *tracer);
/* Returns when all events committed so far are in the file. */
heaptap_status heaptap_tracer_flush(heaptap_tracer *tracer);
/* Ends the current file and goes on in a new one, that holds what is sampled from then on. */
heaptap_status heaptap_tracer_rotate(heaptap_tracer *tracer, const char *file);

typedef struct heaptap_stats {
  size_t size;                  /* set by the caller: sizeof(heaptap_stats) */
  heaptap_status state;         /* OK while tracing, else why not */
  uint32_t mutators;            /* now registered */
  uint64_t samples;             /* samples that fell */
  uint64_t sampled_blocks;      /* blocks they fell in */
  uint64_t allocations;         /* events recorded, by kind */
  uint64_t promotions;
  uint64_t collections;
  uint64_t dropped;             /* sampled blocks not recorded */
  uint64_t waits;               /* times a mutator waited for the writer */
  uint64_t bytes;               /* written to the file(s) */
  uint64_t hook_ns;             /* time mutators spent in hooks */
  uint64_t live_blocks;         /* tracked now */
  uint64_t reserved[4];
} heaptap_stats;
heaptap_status heaptap_tracer_stats(const heaptap_tracer *tracer, heaptap_stats *stats);

/* A name for what a mutator is doing; the same name gives the same label. 0 is "no label". */
heaptap_status heaptap_label_intern(heaptap_tracer *tracer, const char *name, uint32_t *label);
heaptap_status heaptap_mutator_label(heaptap_mutator *mutator, uint32_t label);

/* --- Mutators ---------------------------------------------------------------------- */

/* Where the managed stack is when a sample is taken. */
typedef struct heaptap_stack {
  uintptr_t return_address;     /* of the innermost managed frame; 0 = no managed frame */
  uintptr_t sp;                 /* the stack pointer of that frame: see heaptap_frame */
  uintptr_t native_limit;       /* C stack address where native frames end (exclusive), 0 = do not unwind */
} heaptap_stack;
/* Called on the mutator's thread when a sample is taken. */
typedef void (*heaptap_where_fn)(void *host, heaptap_stack *stack);
/* A runtime's own walker: writes at most `capacity` non-zero codes below 2^60, innermost first, and
 * returns how many frames there are (it may be more than `capacity`). */
typedef size_t (*heaptap_walk_fn)(void *host, uint64_t *codes, size_t capacity);

typedef struct heaptap_mutator_options {
  size_t size;
  void *host;                   /* handed to the callbacks */
  heaptap_where_fn where;       /* walk by frame tables from there; or */
  heaptap_walk_fn walk;         /* the runtime's own walker; both NULL = empty backtraces */
  uint8_t reserved[32];
} heaptap_mutator_options;

/* A mutator is used by one thread at a time: its own, or another while it is stopped. */
heaptap_status heaptap_mutator_start(heaptap_tracer *tracer, const heaptap_mutator_options *options,
                                     heaptap_mutator **mutator);
/* Ends it; its tracked blocks pass to `heir`, or with NULL stay with the tracer (heaptap_tracer_*_sweep
 * still visit them, and the next mutator that starts inherits them). */
heaptap_status heaptap_mutator_end(heaptap_mutator *mutator, heaptap_mutator *heir);
heaptap_status heaptap_mutator_suspend(heaptap_mutator *mutator);   /* nests */
heaptap_status heaptap_mutator_resume(heaptap_mutator *mutator);

/* --- Allocation -------------------------------------------------------------------- */

/* The young heap is filled downwards from young_ptr to young_start. An allocation moves young_ptr down
 * and takes its slow path when young_ptr < limit. Call this whenever young_ptr changed other than by
 * allocating (at start, after each minor collection) and install *limit: it is >= young_start. */
heaptap_status heaptap_young_renew(heaptap_mutator *mutator, void *young_ptr, void *young_start,
                                   void **limit);
/* The allocation just made (young_ptr already lowered, >= young_start) went below the limit. `words`
 * has the size in words, header included, of each of the `count` parts in address order from young_ptr.
 * The block of a part is header_words above its start. Call it when the blocks' places are final and
 * before the next allocation; headers need not be written yet. Install *limit. */
heaptap_status heaptap_young_hit(heaptap_mutator *mutator, void *young_ptr, const size_t *words,
                                 size_t count, void **limit);
/* Slow halves of the inline functions below. */
heaptap_status heaptap_major_hit(heaptap_mutator *mutator, void *block, size_t words);
heaptap_status heaptap_external_hit(heaptap_mutator *mutator, void *memory, size_t words);
/* Call before the memory is released; any mutator may. */
heaptap_status heaptap_external_free(heaptap_mutator *mutator, void *memory);

/* `words` with header; `block` is the address behind the header. */
static inline void heaptap_major_alloc(heaptap_mutator *mutator, void *block, size_t words) {
  if ((mutator->until_sample -= (intptr_t)words) < 0) heaptap_major_hit(mutator, block, words);
}
static inline void heaptap_external_alloc(heaptap_mutator *mutator, void *memory, size_t bytes) {
  size_t words = (bytes + sizeof(void *) - 1) / sizeof(void *);
  if ((mutator->until_sample -= (intptr_t)words) < 0) heaptap_external_hit(mutator, memory, words);
}

/* --- Following blocks -------------------------------------------------------------- */

typedef int32_t heaptap_fate;
#define HEAPTAP_FATE_DEAD 0
#define HEAPTAP_FATE_ALIVE 1             /* stays in its generation; *block updated if it moved */
#define HEAPTAP_FATE_PROMOTED 2          /* young sweeps only: now in the major heap, *block updated */
/* Must not call heaptap functions nor allocate. */
typedef heaptap_fate (*heaptap_fate_fn)(void *host, void **block);

/* After a minor collection, while forwarding addresses can still be read. Young blocks only. */
heaptap_status heaptap_young_sweep(heaptap_mutator *mutator, heaptap_fate_fn fate, void *host);
/* After marking (before the sweep reuses memory), or after compaction. Major blocks only. */
heaptap_status heaptap_major_sweep(heaptap_mutator *mutator, heaptap_fate_fn fate, void *host);
/* The same over every mutator and what ended ones left; the world is stopped. */
heaptap_status heaptap_tracer_young_sweep(heaptap_tracer *tracer, heaptap_fate_fn fate, void *host);
heaptap_status heaptap_tracer_major_sweep(heaptap_tracer *tracer, heaptap_fate_fn fate, void *host);

/* One by one, with HEAPTAP_FOLLOW_ADDRESSES; blocks that are not tracked are ignored. */
heaptap_status heaptap_block_promote(heaptap_mutator *mutator, void *from, void *to);
heaptap_status heaptap_block_collect(heaptap_mutator *mutator, void *block);
heaptap_status heaptap_block_move(heaptap_mutator *mutator, void *from, void *to);

/* --- Frame tables ------------------------------------------------------------------ */

/* A frame of the neutral layout. The stack grows down. With `sp` the stack pointer of a frame, the word
 * at sp - 8 is the return address into it [its own code], and `size` bytes further up, at sp + size, is
 * the stack pointer of its caller, whose return address is at sp + size - 8.
 *
 * size HEAPTAP_FRAME_BOUNDARY: the frame was entered from C. At sp lies a heaptap_frame_link that says
 * where managed code goes on behind the C code; return_address 0 there means: nowhere, this was the last. */
#define HEAPTAP_FRAME_BOUNDARY 0xFFFFFFFFu
#define HEAPTAP_NO_PLACE 0xFFFFFFFFu
typedef struct heaptap_frame {
  uintptr_t return_address;
  uint32_t size;                /* multiple of 8 */
  uint32_t place;               /* index into `places`, or HEAPTAP_NO_PLACE */
} heaptap_frame;
typedef struct heaptap_frame_link {
  uintptr_t sp;
  uintptr_t return_address;
} heaptap_frame_link;
/* Where a return address is in the source. */
typedef struct heaptap_place {
  const char *file;
  const char *function;
  uint32_t line;
  uint32_t start_char;
  uint32_t end_char;
  uint32_t inlined_into;        /* index of the place it is inlined into, or HEAPTAP_NO_PLACE */
} heaptap_place;

#define HEAPTAP_FRAMES_NEUTRAL 0
#define HEAPTAP_FRAMES_OCAML4 4          /* frames = a caml_frametable of a module */
#define HEAPTAP_FRAMES_OCAML5 5
typedef struct heaptap_frame_table {
  size_t size;
  uint32_t format;              /* HEAPTAP_FRAMES_ */
  uint32_t place_count;
  const void *frames;           /* heaptap_frame[count], or the runtime's own table */
  size_t count;                 /* 0 for the OCaml formats, which know it */
  const heaptap_place *places;
  uint8_t reserved[32];
} heaptap_frame_table;
/* Adds a table; it and its strings stay valid and unchanged until the tracer stops. */
heaptap_status heaptap_frames_add(heaptap_tracer *tracer, const heaptap_frame_table *table);

#ifdef __cplusplus
}
#endif
#endif
