/* heaptap: a sampling allocation tracer for language runtimes.
 *
 * docs/embedding.md explains how a runtime uses this. Generated from the sources of the library:
 * changes here are lost. SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef HEAPTAP_H
#define HEAPTAP_H


#include <stddef.h>
#include <stdint.h>

#define HEAPTAP_VERSION "0.1.0"
#define HEAPTAP_VERSION_MAJOR 0
#define HEAPTAP_VERSION_MINOR 1
#define HEAPTAP_VERSION_PATCH 0

/* A thread or domain that allocates. Created by heaptap_mutator_start; never freed.
 * Only the inline functions below use its field. */
typedef struct heaptap_mutator {
  /* Words until the next sample outside the young heap. */
  intptr_t until_sample;
} heaptap_mutator;


/* `size` of a frame that C code has called: see `heaptap_frame_link`. With a
 * place it is a frame like others; without one it is not shown. */
#define HEAPTAP_FRAME_BOUNDARY 4294967295

/* No place. */
#define HEAPTAP_NO_PLACE 4294967295

/* `format`: an array of `heaptap_frame`. */
#define HEAPTAP_FRAMES_NEUTRAL 0

/* `format`: a table as OCaml 4.12 to 5.1 emits it for a module. */
#define HEAPTAP_FRAMES_OCAML4 4

/* `format`: a table as OCaml 5.2 and later emits it for a module. */
#define HEAPTAP_FRAMES_OCAML5 5

/* `when_full`: wait up to `wait_ms` for the writer, then drop and count. */
#define HEAPTAP_FULL_WAIT 0

/* `when_full`: drop and count at once. */
#define HEAPTAP_FULL_DROP 1

/* `follow`: by `heaptap_young_sweep` and `heaptap_major_sweep`. */
#define HEAPTAP_FOLLOW_SWEEPS 0

/* `follow`: by `heaptap_block_promote`, `_move` and `_collect`. */
#define HEAPTAP_FOLLOW_ADDRESSES 1

/* `native_frames`: C frames are left out of backtraces. */
#define HEAPTAP_NATIVE_OFF 0

/* `native_frames`: C frames between a sample and the innermost managed frame
 * are unwound, if `heaptap_stack` says where they end. */
#define HEAPTAP_NATIVE_ON 1

/* Where a `heaptap_locate_fn` puts the places of a code. */
typedef struct heaptap_places heaptap_places;

/* A trace being taken. Made by `heaptap_tracer_start`; never freed. */
typedef struct heaptap_tracer heaptap_tracer;

/* The result of a call: 0 for success. `heaptap_status_str` explains the others. */
typedef int32_t heaptap_status;

/* A place in a source file. */
typedef struct heaptap_place {
  /* NULL: not known. */
  const char *file;
  /* NULL: not known. */
  const char *function;
  /* From 1; 0: not known. */
  uint32_t line;
  /* First character within the line. */
  uint32_t start_char;
  /* Last character, counted from the same line's start. */
  uint32_t end_char;
  /* An index into the table's places: the call that this is inlined into; or
   * `HEAPTAP_NO_PLACE`. */
  uint32_t inlined_into;
} heaptap_place;

/* A table of frames. */
typedef struct heaptap_frame_table {
  /* `sizeof(heaptap_frame_table)`. */
  size_t size;
  /* `HEAPTAP_FRAMES_`. */
  uint32_t format;
  /* How many places there are. */
  uint32_t place_count;
  /* The frames, or the runtime's own table. */
  const void *frames;
  /* How many frames there are; 0 for a runtime's own table, which knows it. */
  size_t count;
  /* The places, or NULL if there are none. */
  const struct heaptap_place *places;
  /* Zero. */
  uint8_t reserved[32];
} heaptap_frame_table;

/* Explains a code by calling `heaptap_places_add`, for the outermost function
 * first when calls were inlined. Called on the writer thread, once for each
 * code of a domain; it must not call other functions of heaptap. */
typedef void (*heaptap_locate_fn)(void *host, uint64_t code, struct heaptap_places *places);

/* What a trace is to be. Zero in a field means the usual value. */
typedef struct heaptap_options {
  /* `sizeof(heaptap_options)`. */
  size_t size;
  /* The file to write. `%p` stands for the process id, `%e` for the
   * executable's name, `%t` for the time in seconds, `%%` for a percent
   * sign. With `%p`, a forked child goes on in a file of its own. */
  const char *file;
  /* The probability with which each word is sampled, from 1e-7 to 1. Usually
   * 1e-5. */
  double rate;
  /* The same seed gives the same samples in a program that does the same.
   * Usually from the system. */
  uint64_t seed;
  /* Words in front of a block that belong to it: its address as the runtime
   * sees it is so much behind its beginning. At most 8. */
  uint32_t header_words;
  /* 1: one mutator at a time, and a file that every reader opens (version
   * 2). 0: any number, and a file with a domain for each (version 3). */
  uint32_t max_mutators;
  /* The most frames in a backtrace: outer ones are cut. Usually 262,144,
   * which is also the most. */
  uint32_t max_frames;
  /* `HEAPTAP_FULL_`: what to do when the writer has fallen behind. */
  uint32_t when_full;
  /* The longest wait for the writer, in milliseconds. Usually 1,000. */
  uint32_t wait_ms;
  /* `HEAPTAP_FOLLOW_`: how blocks are followed to their end. */
  uint32_t follow;
  /* `HEAPTAP_NATIVE_`: whether C frames are unwound. */
  uint32_t native_frames;
  /* Memory for events on their way to the writer. Usually 8,192. */
  uint32_t buffer_kib;
  /* A name for the trace, or NULL. */
  const char *context;
  /* The runtime's parameters as it prints them, or NULL. */
  const char *runtime_params;
  /* Explains codes that are in no frame table, or NULL: they are then looked
   * up as return addresses in the debug information of the program. */
  heaptap_locate_fn locate;
  /* Handed to `locate`. */
  void *locate_host;
  /* Zero. */
  uint8_t reserved[64];
} heaptap_options;

/* Where the managed stack is. */
typedef struct heaptap_stack {
  /* By which the innermost managed frame is known; 0: there is none. */
  size_t return_address;
  /* That frame's stack pointer. */
  size_t sp;
  /* Where the C frames inside it end: the C stack's pointer when managed
   * code last called C. 0: they are not looked at. */
  size_t native_limit;
} heaptap_stack;

/* Tells where the stack is. Called on the mutator's thread when a sample is
 * taken; must be quick, and must not call heaptap. */
typedef void (*heaptap_where_fn)(void *host, struct heaptap_stack *stack);

/* A runtime's own walker. Writes the codes of at most `capacity` frames,
 * innermost first, each from 1 to 2^60 - 1, and returns how many frames there
 * are, which may be more. Called on the mutator's thread when a sample is
 * taken; must not call heaptap. */
typedef size_t (*heaptap_walk_fn)(void *host, uint64_t *codes, size_t capacity);

/* How a mutator's stack is found. */
typedef struct heaptap_mutator_options {
  /* `sizeof(heaptap_mutator_options)`. */
  size_t size;
  /* Handed to the functions. */
  void *host;
  /* Backtraces by the frame tables, from where this says; or */
  heaptap_where_fn where;
  /* by the runtime's own walker. Both NULL: backtraces are empty. */
  heaptap_walk_fn walk;
  /* Zero. */
  uint8_t reserved[32];
} heaptap_mutator_options;

/* What a collection did to a block. */
typedef int32_t heaptap_fate;

/* Tells the fate of the block at `*block`, and changes that if it was moved.
 * Must not call heaptap. */
typedef heaptap_fate (*heaptap_fate_fn)(void *host, void **block);

/* Numbers of a trace. */
typedef struct heaptap_stats {
  /* `sizeof(heaptap_stats)`, set by the caller. */
  size_t size;
  /* 0 while tracing, else why not. */
  heaptap_status state;
  /* Mutators there are now. */
  uint32_t mutators;
  /* Samples that fell. */
  uint64_t samples;
  /* Blocks in which they fell. */
  uint64_t sampled_blocks;
  /* Events recorded. */
  uint64_t allocations;
  /* Events recorded. */
  uint64_t promotions;
  /* Events recorded. */
  uint64_t collections;
  /* Sampled blocks that were not recorded. */
  uint64_t dropped;
  /* Times that a hook waited for the writer. */
  uint64_t waits;
  /* Bytes written to files. */
  uint64_t bytes;
  /* Time spent in hooks, by all mutators, in nanoseconds: an estimate, since
   * of allocations only one hook in 32 is timed. */
  uint64_t hook_ns;
  /* Sampled blocks that are alive as far as is known. */
  uint64_t live_blocks;
  /* Zero. */
  uint64_t reserved[4];
} heaptap_stats;

/* A frame of the neutral layout, for stacks that grow down.
 *
 * With sp the stack pointer of a frame, the word at sp - 8 is the return
 * address by which the frame is known. Its caller's stack pointer is sp + size,
 * and so the caller's return address is at sp + size - 8. */
typedef struct heaptap_frame {
  /* From 4,096 to 2^60 - 1, and in no other frame of any table. */
  size_t return_address;
  /* In bytes, a multiple of 8; or `HEAPTAP_FRAME_BOUNDARY`. */
  uint32_t size;
  /* An index into the table's places, or `HEAPTAP_NO_PLACE`. */
  uint32_t place;
} heaptap_frame;

/* Lies at the stack pointer of a frame of size `HEAPTAP_FRAME_BOUNDARY`, which
 * C code has called: says where managed code goes on behind that C code. */
typedef struct heaptap_frame_link {
  /* The stack pointer of the frame that called the C code. */
  size_t sp;
  /* That frame's return address; 0: there is none, the stack ends here. */
  size_t return_address;
} heaptap_frame_link;

/* Success. */
#define HEAPTAP_STATUS_OK 0

/* A pointer is NULL or misaligned. */
#define HEAPTAP_STATUS_NULL 1

/* A struct's size is not that of any version: set it to sizeof the struct. */
#define HEAPTAP_STATUS_SIZE 2

/* Reserved bytes are not zero, or the host uses fields that this library does
 * not know. */
#define HEAPTAP_STATUS_RESERVED 3

/* The sampling rate is not between 1e-7 and 1. */
#define HEAPTAP_STATUS_RATE 4

/* An option or argument is out of range. */
#define HEAPTAP_STATUS_OPTION 5

/* The trace file cannot be created or written. Standard error has the reason. */
#define HEAPTAP_STATUS_FILE 6

/* Not enough memory. */
#define HEAPTAP_STATUS_MEMORY 7

/* The writer thread cannot be started. */
#define HEAPTAP_STATUS_THREAD 8

/* This process is already being traced. */
#define HEAPTAP_STATUS_ALREADY 9

/* Tracing is off: it was stopped, or ended after a failure. */
#define HEAPTAP_STATUS_OFF 10

/* Too many mutators. More than `max_mutators`, or more than 65,535. */
#define HEAPTAP_STATUS_MUTATORS 11

/* Not a handle, or one that has ended. */
#define HEAPTAP_STATUS_HANDLE 12

/* The frame table is malformed. Nothing of it was added. */
#define HEAPTAP_STATUS_FRAMES 13

/* The environment does not ask for a trace. */
#define HEAPTAP_STATUS_NOT_ASKED 14

/* The call is not allowed at this point. It came from inside a hook or from two
 * threads at once, or it does not fit the option `follow`. */
#define HEAPTAP_STATUS_ORDER 15

/* An internal error in heaptap: tracing is off. */
#define HEAPTAP_STATUS_PANIC 16

/* A sampled block was not recorded. It is counted as dropped. */
#define HEAPTAP_STATUS_LOST 17

/* It is gone. */
#define HEAPTAP_FATE_DEAD 0

/* It stays in its generation, at the address that `*block` says. */
#define HEAPTAP_FATE_ALIVE 1

/* It was young and is now in the major heap, at the address that `*block` says. */
#define HEAPTAP_FATE_PROMOTED 2

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/* Returns the meaning of a status, in English. Never NULL; the string is static.
 * Any thread. */
const char *heaptap_status_str(heaptap_status status);

/* Returns the version of the library that is loaded. `HEAPTAP_VERSION` is the
 * version of this header. */
const char *heaptap_version(void);

/* Adds a table. It and its strings stay as they are until the tracer stops.
 *
 * Any thread, also while others take samples; not inside a hook. Costs some
 * 20 ns a frame. */
heaptap_status heaptap_frames_add(struct heaptap_tracer *tracer,
                                  const struct heaptap_frame_table *table);

/* Adds a place of the code that is being explained. Only inside a
 * `heaptap_locate_fn`, with what that was given. The strings are copied, and
 * `inlined_into` is not looked at. */
heaptap_status heaptap_places_add(struct heaptap_places *places, const struct heaptap_place *place);

/* Starts a trace.
 *
 * Any thread, not inside a collection; once at a time in a process. Costs a
 * thread and the options' `buffer_kib` of memory, of which only what is used is
 * ever touched. When it fails the host runs on untraced. */
heaptap_status heaptap_tracer_start(const struct heaptap_options *options,
                                    struct heaptap_tracer **tracer);

/* Starts a trace if the environment asks for one, `HEAPTAP_STATUS_NOT_ASKED`
 * if not.
 *
 * `HEAPTAP` (or `MEMTRACE`) names the file, `HEAPTAP_RATE` (or
 * `MEMTRACE_RATE`) the rate, `HEAPTAP_SEED` the seed, in place of those in
 * `options`; `HEAPTAP_FRAMES` the most frames in a backtrace. Otherwise as
 * `heaptap_tracer_start`. */
heaptap_status heaptap_tracer_start_from_env(const struct heaptap_options *options,
                                             struct heaptap_tracer **tracer);

/* Writes everything and ends the trace.
 *
 * Any thread, not inside a hook; end your mutators before, so that nothing they
 * still have to tell is missing. Hooks of other threads that are under way
 * finish; later ones do nothing. Also happens at `exit`. */
heaptap_status heaptap_tracer_stop(struct heaptap_tracer *tracer);

/* Returns when everything recorded so far is in the file.
 *
 * Any thread, not inside a hook. Worth calling before `_exit` and `exec`,
 * which end a process without ceremony; otherwise it happens every 100 ms. */
heaptap_status heaptap_tracer_flush(struct heaptap_tracer *tracer);

/* Ends the file and goes on in another, which holds what is sampled from now
 * on. The ends of blocks in the old file are in neither.
 *
 * Any thread, not inside a hook. When it fails the old file goes on. */
heaptap_status heaptap_tracer_rotate(struct heaptap_tracer *tracer, const char *file);

/* A label for what mutators do: the same name gives the same label. Never 0.
 *
 * Any thread, not inside a hook; takes a lock. There are at most 65,536. */
heaptap_status heaptap_label_intern(struct heaptap_tracer *tracer,
                                    const char *name,
                                    uint32_t *label);

/* What the mutator is doing from now on: the outermost frame of its
 * backtraces. 0: nothing in particular. */
heaptap_status heaptap_mutator_label(heaptap_mutator *mutator, uint32_t label);

/* Makes a mutator: for each thread or domain that allocates.
 *
 * Any thread, not inside a hook. A mutator is used by one thread at a time:
 * its own, or another that has stopped it. Costs the memory of its deepest
 * backtrace. */
heaptap_status heaptap_mutator_start(struct heaptap_tracer *tracer,
                                     const struct heaptap_mutator_options *options,
                                     heaptap_mutator **mutator);

/* Ends a mutator. The blocks it follows pass to `heir`, which the calling
 * thread may use; with NULL they stay with the tracer until a mutator starts or
 * `heaptap_tracer_major_sweep` finds one.
 *
 * Its own thread, or another that has stopped it; not inside a hook. May wait
 * for the writer, if ends of blocks could not be told before. */
heaptap_status heaptap_mutator_end(heaptap_mutator *mutator, heaptap_mutator *heir);

/* Samples are not recorded until the mutator was resumed as often. */
heaptap_status heaptap_mutator_suspend(heaptap_mutator *mutator);

/* Ends what `heaptap_mutator_suspend` began. */
heaptap_status heaptap_mutator_resume(heaptap_mutator *mutator);

/* The young pointer was set: at the start, and after each minor collection.
 *
 * The young heap is filled from above: an allocation lowers the pointer, and
 * takes its slow path if it is then below the limit. Install `*limit`, which
 * is at least `young_start`, as that limit. */
heaptap_status heaptap_young_renew(heaptap_mutator *mutator,
                                   void *young_ptr,
                                   void *young_start,
                                   void **limit);

/* What was just allocated went below the limit, but not below `young_start`.
 *
 * `young_ptr` is where the pointer is now. `words` has the size in words,
 * headers included, of each of the `count` blocks that were allocated together,
 * in the order of their addresses from `young_ptr` on. Each word is sampled for
 * itself, so each block gets the samples on its own words. Call it before the
 * next allocation; headers and fields need not be written yet. Install
 * `*limit`. With `HEAPTAP_STATUS_LOST` the limit is written too.
 *
 * Costs 150 to 400 ns for each sampled block, and a few ns for each frame that is
 * as at the last sample, some 20 for a new one. */
heaptap_status heaptap_young_hit(heaptap_mutator *mutator,
                                 void *young_ptr,
                                 const size_t *words,
                                 size_t count,
                                 void **limit);

/* The slow half of `heaptap_major_alloc`, which has just taken `words` off. */
heaptap_status heaptap_major_hit(heaptap_mutator *mutator, void *block, size_t words);

/* The slow half of `heaptap_external_alloc`, which has just taken `words` off. */
heaptap_status heaptap_external_hit(heaptap_mutator *mutator, void *memory, size_t words);

/* External memory is about to be released.
 *
 * By any mutator, whichever allocated it, and before another allocation can
 * get the same address. Memory that was not sampled costs a look at one place
 * of a table. */
heaptap_status heaptap_external_free(heaptap_mutator *mutator, void *memory);

/* After a minor collection, while it can still be told which young blocks were
 * forwarded where: asks for the fate of each young block of the mutator.
 *
 * The mutator's thread, or the collector's while the mutator stands still.
 * Costs some 10 ns for each sampled young block, nothing for any other. */
heaptap_status heaptap_young_sweep(heaptap_mutator *mutator, heaptap_fate_fn fate, void *host);

/* After marking, before the memory of dead blocks is used again; and after
 * compaction: asks for the fate of each major block of the mutator.
 *
 * As `heaptap_young_sweep`. */
heaptap_status heaptap_major_sweep(heaptap_mutator *mutator, heaptap_fate_fn fate, void *host);

/* `heaptap_young_sweep` over all mutators, while the world stands still. */
heaptap_status heaptap_tracer_young_sweep(struct heaptap_tracer *tracer,
                                          heaptap_fate_fn fate,
                                          void *host);

/* `heaptap_major_sweep` over all mutators, and over the blocks that ended ones
 * have left, while the world stands still. */
heaptap_status heaptap_tracer_major_sweep(struct heaptap_tracer *tracer,
                                          heaptap_fate_fn fate,
                                          void *host);

/* With `HEAPTAP_FOLLOW_ADDRESSES`: a block was promoted, perhaps to another
 * address. Blocks that were not sampled cost a look at one place of a table.
 *
 * Any mutator. */
heaptap_status heaptap_block_promote(heaptap_mutator *mutator, void *from, void *to);

/* With `HEAPTAP_FOLLOW_ADDRESSES`: a block was moved. As `heaptap_block_promote`. */
heaptap_status heaptap_block_move(heaptap_mutator *mutator, void *from, void *to);

/* With `HEAPTAP_FOLLOW_ADDRESSES`: a block is about to be freed. As
 * `heaptap_block_promote`. */
heaptap_status heaptap_block_collect(heaptap_mutator *mutator, void *block);

/* The numbers so far. Also after the tracer has stopped.
 *
 * Any thread. Hooks that are under way may be missing. */
heaptap_status heaptap_tracer_stats(const struct heaptap_tracer *tracer,
                                    struct heaptap_stats *stats);

/* Returns the label with this name, for a program that the library attached itself
 * to. The same name gives the same label. Returns 0 if the program is not traced.
 *
 * `name` has `length` bytes and need not end with a NUL; bytes after the first
 * 1,024 are ignored. For code that runs traced and untraced, and does not call
 * `heaptap_tracer_start`.
 *
 * Any thread, not inside a hook. Takes a lock. There are at most 65,536 labels. */
uint32_t heaptap_attached_label(const char *name, size_t length);

/* Sets the label of the calling thread and returns the one it had before.
 *
 * `label` is from `heaptap_attached_label`, or 0 for none. The label is the
 * outermost frame of the backtraces of this thread's samples. Does nothing and
 * returns 0 if the program is not traced.
 *
 * A thread of the runtime, while it runs the runtime's code or is called from it.
 * Costs a few instructions. */
uint32_t heaptap_attached_set_label(uint32_t label);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/* Allocations outside the young heap: one subtraction and one branch. On the mutator's own thread. */

/* A block was allocated directly in the major heap: `words` with its header, `block` its address as
 * the runtime sees it. */
static inline void heaptap_major_alloc(heaptap_mutator *mutator, void *block, size_t words) {
  if ((mutator->until_sample -= (intptr_t)words) < 0) {
    (void)heaptap_major_hit(mutator, block, words);
  }
}

/* Memory outside the heap was allocated that the heap owns. */
static inline void heaptap_external_alloc(heaptap_mutator *mutator, void *memory, size_t bytes) {
  size_t words = bytes / sizeof(void *) + (bytes % sizeof(void *) != 0);
  if ((mutator->until_sample -= (intptr_t)words) < 0) {
    (void)heaptap_external_hit(mutator, memory, words);
  }
}

#endif /* HEAPTAP_H */
