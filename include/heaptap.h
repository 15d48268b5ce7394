/* heaptap: a sampling allocation tracer for language runtimes.
 *
 * docs/embedding.md explains how a runtime uses it. Each function says on which thread and when it may
 * be called, and what it costs. Outputs are written only if the status is HEAPTAP_STATUS_OK, unless
 * stated otherwise. Structs with a `size` may grow: set it to sizeof the struct, and zero the rest.
 *
 * Generated from src/abi: do not edit. SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef HEAPTAP_H
#define HEAPTAP_H


#include <stddef.h>
#include <stdint.h>

#define HEAPTAP_VERSION "0.1.0"
#define HEAPTAP_VERSION_MAJOR 0
#define HEAPTAP_VERSION_MINOR 1
#define HEAPTAP_VERSION_PATCH 0

/* A thread or domain that allocates. Created by heaptap_mutator_start; never freed.
 * Only the inline functions below use its fields. */
typedef struct heaptap_mutator {
  /* Words until the next sample outside the young heap. */
  intptr_t until_sample;
  /* For each value of bits 4 to 19 of an address, how many sampled blocks may be there. */
  const uint16_t *sampled;
} heaptap_mutator;

/* Callers of heaptap_probe_count_in at a time. */
#define HEAPTAP_PROBE_STRIPES 16

/* A quantity of the program's own. Created by heaptap_probe_open; never freed. Only the inline
 * functions below use its fields. */
typedef struct heaptap_probe {
  /* What any thread has counted. */
  uint64_t count;
  uint64_t reserved[7];
  /* What one caller at a time has counted, each on a cache line of its own. */
  uint64_t stripes[HEAPTAP_PROBE_STRIPES][8];
} heaptap_probe;


/* `size` of a frame that was called from C code: see `heaptap_frame_link`. With a
 * place it shows in backtraces; without one it does not. */
#define HEAPTAP_FRAME_BOUNDARY 4294967295

/* No place. */
#define HEAPTAP_NO_PLACE 4294967295

/* `format`: an array of `heaptap_frame`. */
#define HEAPTAP_FRAMES_NEUTRAL 0

/* `format`: the frame table of a module, as OCaml 4.12 to 5.1 emits it. */
#define HEAPTAP_FRAMES_OCAML4 4

/* `format`: the frame table of a module, as OCaml 5.2 and later emit it. */
#define HEAPTAP_FRAMES_OCAML5 5

/* `when_full`: wait up to `wait_ms` for the writer, then drop the sample and
 * count it. */
#define HEAPTAP_FULL_WAIT 0

/* `when_full`: drop the sample and count it at once. */
#define HEAPTAP_FULL_DROP 1

/* `follow`: with `heaptap_young_sweep` and `heaptap_major_sweep`. */
#define HEAPTAP_FOLLOW_SWEEPS 0

/* `follow`: with `heaptap_block_promote`, `heaptap_block_move` and
 * `heaptap_block_collect`. */
#define HEAPTAP_FOLLOW_ADDRESSES 1

/* `native_frames`: C frames are left out of backtraces. */
#define HEAPTAP_NATIVE_OFF 0

/* `native_frames`: C frames between a sample and the innermost managed frame
 * are unwound, if `native_limit` in `heaptap_stack` is set. */
#define HEAPTAP_NATIVE_ON 1

/* Counts how often the program passes points: `heaptap_probe_count`. */
#define HEAPTAP_PROBE_COUNT 0

/* Measures time: `heaptap_probe_timer_start`. */
#define HEAPTAP_PROBE_TIMER 1

/* Records a number: `heaptap_probe_value`. */
#define HEAPTAP_PROBE_VALUE 2

/* Records a text: `heaptap_probe_text`. */
#define HEAPTAP_PROBE_TEXT 3

/* Counts the blocks that are alive among those it marks: `heaptap_probe_tag`. */
#define HEAPTAP_PROBE_TAG 4

/* A collection of the young heap. */
#define HEAPTAP_SLICE_MINOR 0

/* A collection of the major heap, or a part of one. */
#define HEAPTAP_SLICE_MAJOR 1

/* Finalisers. */
#define HEAPTAP_SLICE_FINALISERS 2

/* `method`: the heap is walked in a copy of the process, while the program goes on. If the
 * process cannot be copied, in the program. */
#define HEAPTAP_SNAPSHOT_COPY 0

/* `method`: the heap is walked in the program, which stands still meanwhile. No memory is needed
 * for pages that the program changes. */
#define HEAPTAP_SNAPSHOT_SYNCHRONOUS 1

/* `moment`: the calling thread is at a safe point, where the heap can be walked. */
#define HEAPTAP_SNAPSHOT_HERE 0

/* `moment`: the calling thread is not, and waits until another one is. */
#define HEAPTAP_SNAPSHOT_AT_POINT 1

/* A part of the major heap. */
#define HEAPTAP_SEGMENT_MAJOR 0

/* A young heap. */
#define HEAPTAP_SEGMENT_YOUNG 1

/* Memory for one large block. */
#define HEAPTAP_SEGMENT_LARGE 2

/* Memory of another kind. */
#define HEAPTAP_SEGMENT_OTHER 3

/* `kind` of a finaliser that gets the block itself, which lives until it has run. */
#define HEAPTAP_FINALISER_FIRST 0

/* `kind` of a finaliser that runs when the block is gone. */
#define HEAPTAP_FINALISER_LAST 1

/* `kind` of a finaliser that is due: it keeps the block until it has run. */
#define HEAPTAP_FINALISER_PENDING 2

/* `subject` of a name: a tag of blocks. */
#define HEAPTAP_KIND_TAG 0

/* `subject` of a name: a kind of roots. */
#define HEAPTAP_KIND_ROOT 1

/* The places of a code, which a `heaptap_locate_fn` fills in. */
typedef struct heaptap_places heaptap_places;

/* A snapshot that is being taken. A `heaptap_snapshot_walk_fn` is given one, which is valid
 * until it returns. */
typedef struct heaptap_snapshot heaptap_snapshot;

/* A trace that is being written. Created by `heaptap_tracer_start`; never freed. */
typedef struct heaptap_tracer heaptap_tracer;

/* The result of a call: 0 for success. `heaptap_status_str` explains the others. */
typedef int32_t heaptap_status;

/* A place in a source file. Its layout never changes. */
typedef struct heaptap_place {
  /* The file's name. NULL: unknown. */
  const char *file;
  /* The function's name. NULL: unknown. */
  const char *function;
  /* The line, from 1. 0: unknown. */
  uint32_t line;
  /* The first character within the line. */
  uint32_t start_char;
  /* The last character, counted from the start of the same line. */
  uint32_t end_char;
  /* An index into the table's places: the call into which this one is inlined.
   * `HEAPTAP_NO_PLACE`: not inlined. */
  uint32_t inlined_into;
} heaptap_place;

/* A table of frames. */
typedef struct heaptap_frame_table {
  /* `sizeof(heaptap_frame_table)`. */
  size_t size;
  /* One of `HEAPTAP_FRAMES_...`. */
  uint32_t format;
  /* The number of places. */
  uint32_t place_count;
  /* The frames, or the table in the runtime's own format. */
  const void *frames;
  /* The number of frames. 0 for a table in the runtime's own format, which
   * contains it. */
  size_t count;
  /* The places. NULL if there are none. */
  const struct heaptap_place *places;
  /* Must be zero. */
  uint8_t reserved[32];
} heaptap_frame_table;

/* Finds the places of a code and passes each to `heaptap_places_add`. If calls
 * are inlined, the outermost function comes first. Called on the writer thread,
 * once for each code of a domain. It must not call other functions of heaptap. */
typedef void (*heaptap_locate_fn)(void *host, uint64_t code, struct heaptap_places *places);

/* The options of a trace. Zero in a field means its default. */
typedef struct heaptap_options {
  /* `sizeof(heaptap_options)`. */
  size_t size;
  /* The trace file. In its name `%p` stands for the process id, `%e` for the
   * executable's name, `%t` for the time in seconds and `%%` for a percent
   * sign. With `%p`, a forked child is traced into its own file; without, it
   * is not traced. */
  const char *file;
  /* The probability with which each allocated word is sampled, from 1e-7 to
   * 1. Default: 1e-5. */
  double rate;
  /* The seed of the sampler. With the same seed, a program that does the same
   * gives the same samples. Default: a new seed in each run. */
  uint64_t seed;
  /* The number of header words of a block: the address by which the runtime
   * knows a block is this many words after its start. At most 8. */
  uint32_t header_words;
  /* 1: one mutator at a time, and a file that every reader opens (version
   * 2). 0: any number of mutators, and a file with a domain for each (version
   * 3). */
  uint32_t max_mutators;
  /* The most frames in a backtrace, of which the innermost are kept. Default
   * and upper bound: 262,144. */
  uint32_t max_frames;
  /* One of `HEAPTAP_FULL_...`: what to do when the writer has fallen behind. */
  uint32_t when_full;
  /* The longest wait for the writer, in milliseconds. Default: 1,000; at most
   * 60,000. */
  uint32_t wait_ms;
  /* One of `HEAPTAP_FOLLOW_...`: how the host reports what becomes of blocks. */
  uint32_t follow;
  /* One of `HEAPTAP_NATIVE_...`: whether C frames are unwound. */
  uint32_t native_frames;
  /* Memory for events on their way to the writer, in KiB. Default: 8,192; from
   * 256 to 4,194,304. */
  uint32_t buffer_kib;
  /* A name for the trace, or NULL. */
  const char *context;
  /* The runtime's parameters, for the trace's readers, or NULL. */
  const char *runtime_params;
  /* Finds the places of codes that are in no frame table. NULL: such codes are
   * return addresses, and the program's debug information has their places. */
  heaptap_locate_fn locate;
  /* Passed to `locate`. */
  void *locate_host;
  /* The trace is a series of files, each of which has at most so many bytes, its sidecars
   * included; from 64,000. 0: no limit. */
  uint64_t rotate_bytes;
  /* The trace is a series of files, each of which covers at most so many seconds. 0: no limit. */
  uint32_t rotate_seconds;
  /* The trace is a series of files, of which so many are kept, from 2 to 1,000,000. Without a
   * limit for a file the next one begins with `heaptap_tracer_next_part` only. Default, if
   * there is one: 20. If all three are 0 the trace is one file. */
  uint32_t keep;
  /* What the trace may cost, by the processor time of the program: 0.01 for one per cent, from 0.0001
   * to 0.5. The rate then changes as the program does, up to `rate`, whose default is then 0.01. 0:
   * the rate stays as it is. */
  double budget;
  /* The trace is kept in memory, of which this many of the last seconds, and written to a
   * directory of files when the command `recorder` asks for it (`heaptap_control_command`), when
   * memory runs short, or when a signal ends the process that has no handler. At most 604,800.
   * Not together with the limits of a series. 0: the trace is written all the time. */
  uint32_t recorder_seconds;
  /* The most memory of a recorder, in MiB, from 8 to 16,384. Default: 64. Less time is kept if it
   * does not fit. */
  uint32_t recorder_mib;
  /* Must be zero. */
  uint8_t reserved[32];
} heaptap_options;

/* The top of the managed stack. Its layout never changes. */
typedef struct heaptap_stack {
  /* The return address of the innermost managed frame. 0: there is none. */
  size_t return_address;
  /* The stack pointer of that frame. */
  size_t sp;
  /* The C stack pointer at the time when managed code last called C, where the
   * C frames inside that frame end. 0: C frames are left out. */
  size_t native_limit;
} heaptap_stack;

/* Writes the top of the managed stack to `*stack`. Called on the mutator's
 * thread when a sample is taken. It must be quick and must not call heaptap. */
typedef void (*heaptap_where_fn)(void *host, struct heaptap_stack *stack);

/* The runtime's own stack walker. Writes the codes of at most `capacity` frames
 * to `codes`, innermost first, each from 1 to 2^60 - 1. Returns the number of
 * frames on the stack, which may be larger than `capacity`. Called on the
 * mutator's thread when a sample is taken. It must not call heaptap. */
typedef size_t (*heaptap_walk_fn)(void *host, uint64_t *codes, size_t capacity);

/* Options of a mutator: how its stack is walked. */
typedef struct heaptap_mutator_options {
  /* `sizeof(heaptap_mutator_options)`. */
  size_t size;
  /* Passed to `where` and `walk`. */
  void *host;
  /* Finds the top of the stack, which is then walked with the frame tables. */
  heaptap_where_fn where;
  /* Walks the stack instead. Set at most one of `where` and `walk`; if both
   * are NULL, backtraces are empty. */
  heaptap_walk_fn walk;
  /* Must be zero. */
  uint8_t reserved[32];
} heaptap_mutator_options;

/* What a collection did to a block. */
typedef int32_t heaptap_fate;

/* Returns the fate of the block at `*block`, and writes its new address there if
 * it was moved. It must not call heaptap. */
typedef heaptap_fate (*heaptap_fate_fn)(void *host, void **block);

/* A function of an interpreter, and the lines of its instructions. */
typedef struct heaptap_function {
  /* `sizeof(heaptap_function)`. */
  size_t size;
  /* The file's name. NULL: unknown. */
  const char *file;
  /* The function's name. NULL: unknown. */
  const char *name;
  /* The line of each instruction; 0: unknown. */
  const uint32_t *lines;
  /* The number of instructions, from 1 to 2^32. */
  size_t count;
  /* Must be zero. */
  uint8_t reserved[32];
} heaptap_function;

/* Statistics of a trace. */
typedef struct heaptap_stats {
  /* `sizeof(heaptap_stats)`, set by the caller. Afterwards the number of bytes
   * that were written: fewer if the library is older than this header. */
  size_t size;
  /* `HEAPTAP_STATUS_OK` while tracing, otherwise why tracing ended. */
  heaptap_status state;
  /* Mutators that exist now. */
  uint32_t mutators;
  /* Samples taken. */
  uint64_t samples;
  /* Blocks with at least one sample. */
  uint64_t sampled_blocks;
  /* Allocations recorded. */
  uint64_t allocations;
  /* Promotions recorded. */
  uint64_t promotions;
  /* Collections recorded. */
  uint64_t collections;
  /* Sampled blocks that were not recorded. */
  uint64_t dropped;
  /* How often a hook waited for the writer. */
  uint64_t waits;
  /* Bytes written to the trace's files. */
  uint64_t bytes;
  /* Time that all mutators spent in hooks, in nanoseconds. An estimate: only
   * one in 32 hooks of allocations is timed. */
  uint64_t hook_ns;
  /* Sampled blocks not known to be dead. */
  uint64_t live_blocks;
  /* Processor time of the threads of this library, in nanoseconds. Exact. */
  uint64_t threads_ns;
  /* Processor time of the program: of the process without `threads_ns` and `hook_ns`. */
  uint64_t program_ns;
  /* Zero. */
  uint64_t reserved[2];
} heaptap_stats;

/* Returns the number of a probe. Called on a thread of heaptap, on which all signals are blocked,
 * and of whose stack it may use some kilobytes.
 *
 * It must return at once: while it runs, nothing is written. So it reads numbers of the program, and
 * waits for nothing. It must not call heaptap, nor the runtime, and must not unwind. */
typedef double (*heaptap_observe_fn)(void *context);

/* How a snapshot is taken. Zero means the default. */
typedef struct heaptap_snapshot_options {
  /* `sizeof(heaptap_snapshot_options)`. */
  size_t size;
  /* One of `HEAPTAP_SNAPSHOT_COPY` and `HEAPTAP_SNAPSHOT_SYNCHRONOUS`. */
  uint32_t method;
  /* One of `HEAPTAP_SNAPSHOT_HERE` and `HEAPTAP_SNAPSHOT_AT_POINT`. */
  uint32_t moment;
  /* How many bytes of the contents of each string are included. Default: none; at most
   * 4,096. */
  uint32_t string_bytes;
  /* The longest wait for a safe point and for a snapshot that is being taken, in
   * milliseconds. Default: 10,000. */
  uint32_t wait_ms;
  /* Must be zero. */
  uint8_t reserved[40];
} heaptap_snapshot_options;

/* Reports the whole heap by the functions that take a `heaptap_snapshot`: each segment
 * and then its blocks, all roots, names of tags and kinds of roots. Returns
 * `HEAPTAP_STATUS_OK`, or what one of these functions returned; then no snapshot is taken.
 *
 * It is called at a safe point of the host (`heaptap_snapshot_point`,
 * `heaptap_snapshot_take`), usually in a copy of the process, which has no other thread: a
 * lock that another thread held stays locked for ever there. So it must neither
 * allocate nor take a lock, must only read, and must not leave by an exception or `longjmp`. */
typedef heaptap_status (*heaptap_snapshot_walk_fn)(void *host, struct heaptap_snapshot *snapshot);

/* Asks the host to call `heaptap_snapshot_point` soon. Called on a thread of heaptap while
 * the host runs, every few milliseconds until it has; it must return at once and touch no
 * block. Raising the limit of the young heap, as for stopping the world, is a good way. */
typedef void (*heaptap_snapshot_request_fn)(void *host);

/* A heap that its host can walk. */
typedef struct heaptap_snapshot_source {
  /* `sizeof(heaptap_snapshot_source)`. */
  size_t size;
  /* The runtime and its version, for readers of snapshots. */
  const char *runtime;
  /* Reports the heap. */
  heaptap_snapshot_walk_fn walk;
  /* Asks for a safe point. NULL: the host comes to one often enough. */
  heaptap_snapshot_request_fn request;
  /* Passed to both functions. */
  void *host;
  /* Words of a block's header, which lie before its address. At most 8. */
  uint32_t header_words;
  /* Must be zero. */
  uint8_t reserved[60];
} heaptap_snapshot_source;

/* A field that points to a block. Its layout never changes. */
typedef struct heaptap_pointer {
  /* The index of the field in its block, from 0. */
  uint64_t field;
  /* The block that it points to. */
  const void *target;
} heaptap_pointer;

/* A frame of the neutral format, for stacks that grow down. Its layout never
 * changes.
 *
 * If sp is the stack pointer of a frame, the word at sp - 8 is the return address
 * that identifies the frame. Its caller's stack pointer is sp + size, so that the
 * caller's return address is at sp + size - 8. */
typedef struct heaptap_frame {
  /* From 4,096 to 2^60 - 1, unique among all tables. */
  size_t return_address;
  /* In bytes, a multiple of 8; or `HEAPTAP_FRAME_BOUNDARY`. */
  uint32_t size;
  /* An index into the table's places, or `HEAPTAP_NO_PLACE`. */
  uint32_t place;
} heaptap_frame;

/* Lies at the stack pointer of a frame of size `HEAPTAP_FRAME_BOUNDARY` and says
 * where the managed stack continues beyond the C code that called that frame. Its
 * layout never changes. */
typedef struct heaptap_frame_link {
  /* The stack pointer of the frame that called the C code. */
  size_t sp;
  /* The return address of that frame. 0: the stack ends here. */
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

/* The file cannot be created or written. Of a trace, standard error has the reason. */
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

/* No snapshot of the heap was taken. The call that returns it has the reason. */
#define HEAPTAP_STATUS_SNAPSHOT 18

/* A command was not carried out. The call that returns it has the reason. */
#define HEAPTAP_STATUS_COMMAND 19

/* The block is dead. */
#define HEAPTAP_FATE_DEAD 0

/* The block stays in its generation, at the address in `*block`. */
#define HEAPTAP_FATE_ALIVE 1

/* The block was young and is now in the major heap, at the address in `*block`. */
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

/* Adds a frame table. The table and its strings must stay valid and unchanged
 * until the tracer stops.
 *
 * Any thread, also while others take samples; not inside a hook. Costs about
 * 20 ns for each frame. */
heaptap_status heaptap_frames_add(struct heaptap_tracer *tracer,
                                  const struct heaptap_frame_table *table);

/* Adds a place to `places`. Only inside a `heaptap_locate_fn`, with the `places`
 * that it was given. The strings are copied; `inlined_into` is ignored. */
heaptap_status heaptap_places_add(struct heaptap_places *places, const struct heaptap_place *place);

/* Starts a trace. A process has at most one trace at a time. If the call fails,
 * the host runs untraced.
 *
 * Any thread, not inside a collection. Starts the writer thread and reserves
 * `buffer_kib` of memory, of which only the used part is ever touched. */
heaptap_status heaptap_tracer_start(const struct heaptap_options *options,
                                    struct heaptap_tracer **tracer);

/* Starts a trace if the environment asks for one. Returns
 * `HEAPTAP_STATUS_NOT_ASKED` if it does not.
 *
 * `HEAPTAP` (or `MEMTRACE`) is the file and asks for the trace, `HEAPTAP_RATE`
 * (or `MEMTRACE_RATE`) the rate, `HEAPTAP_BUDGET` the budget, `HEAPTAP_SEED` the seed and `HEAPTAP_FRAMES` the
 * most frames in a backtrace. Each replaces the value in `options`. Otherwise
 * like `heaptap_tracer_start`.
 *
 * If `HEAPTAP_TIMELINE` is 1, figures of the process are recorded over time beside the trace.
 * `HEAPTAP_PROBES_LIMIT` is how large the file of probes and time line may become.
 * `HEAPTAP_ROTATE` makes the trace a series of files, of which `HEAPTAP_KEEP` are kept.
 * `HEAPTAP_RECORDER` keeps the trace in memory until it is asked for, or the process dies.
 * If `HEAPTAP_LISTEN` is 1, the process takes commands; `HEAPTAP_SNAPSHOT` says when
 * snapshots of the heap are taken, and `HEAPTAP_SNAPSHOT_FILE` names them, with or without
 * a trace. Starts a thread for each of the first two. */
heaptap_status heaptap_tracer_start_from_env(const struct heaptap_options *options,
                                             struct heaptap_tracer **tracer);

/* Writes everything recorded so far and ends the trace. Happens by itself at
 * `exit`.
 *
 * Any thread, not inside a hook. End the mutators first, so that all their
 * events are written. Hooks that are running on other threads finish; later ones
 * do nothing. Returns `HEAPTAP_STATUS_FILE` if the end could not be written. */
heaptap_status heaptap_tracer_stop(struct heaptap_tracer *tracer);

/* Returns when everything recorded so far is in the file.
 *
 * Any thread, not inside a hook. Call it before `_exit` and `exec`, which run no
 * exit handlers. Otherwise events reach the file at least every 100 ms. */
heaptap_status heaptap_tracer_flush(struct heaptap_tracer *tracer);

/* Begins the next file of a trace that is a series (`rotate_bytes`, `rotate_seconds` and `keep` in
 * `heaptap_options`). From then on samples are taken at `rate`; 0 stays at the one before. All
 * files of the series are read as one trace.
 *
 * Any thread, not inside a hook. `HEAPTAP_STATUS_ORDER`: the trace is one file. */
heaptap_status heaptap_tracer_next_part(struct heaptap_tracer *tracer, double rate);

/* Ends the current file and continues in `file`, which gets the blocks that are
 * sampled from now on. What happens later to blocks in the old file is recorded
 * in neither.
 *
 * Any thread, not inside a hook. If the call fails, the trace continues in the
 * old file. `HEAPTAP_STATUS_ORDER`: the trace is a series, which has names of its own:
 * `heaptap_tracer_next_part`. */
heaptap_status heaptap_tracer_rotate(struct heaptap_tracer *tracer, const char *file);

/* Writes the label with this name to `*label`. The same name gives the same
 * label, which is never 0.
 *
 * Any thread, not inside a hook. Takes a lock. There are at most 65,536 labels;
 * names beyond them share the last one. */
heaptap_status heaptap_label_intern(struct heaptap_tracer *tracer,
                                    const char *name,
                                    uint32_t *label);

/* Sets what the mutator is working on: the label becomes the outermost frame of
 * its backtraces. 0 for none. The mutator's thread. */
heaptap_status heaptap_mutator_label(heaptap_mutator *mutator, uint32_t label);

/* Creates a mutator. Each thread or domain that allocates needs one.
 *
 * Any thread, not inside a hook. A mutator is used by one thread at a time: its
 * own, or another that has stopped it. It needs memory for its deepest
 * backtrace. */
heaptap_status heaptap_mutator_start(struct heaptap_tracer *tracer,
                                     const struct heaptap_mutator_options *options,
                                     heaptap_mutator **mutator);

/* Ends a mutator. The blocks that it follows pass to `heir`, a mutator that the
 * calling thread may use. If `heir` is NULL they stay with the tracer until a
 * mutator starts or `heaptap_tracer_major_sweep` runs.
 *
 * The mutator's thread, or another that has stopped it; not inside a hook. May
 * wait for the writer, if promotions and collections are still to be recorded. */
heaptap_status heaptap_mutator_end(heaptap_mutator *mutator, heaptap_mutator *heir);

/* Suspends a mutator: no samples are recorded until it has been resumed as often
 * as it was suspended. The mutator's thread. */
heaptap_status heaptap_mutator_suspend(heaptap_mutator *mutator);

/* Undoes one `heaptap_mutator_suspend`. The mutator's thread. */
heaptap_status heaptap_mutator_resume(heaptap_mutator *mutator);

/* Reports that the young pointer was set: at the start, and after each minor
 * collection.
 *
 * The young heap is filled from above: an allocation lowers the pointer and
 * takes its slow path if the pointer is then below the limit. Install `*limit`,
 * which is at least `young_start`, as that limit.
 *
 * The mutator's thread, or another that has stopped it. */
heaptap_status heaptap_young_renew(heaptap_mutator *mutator,
                                   void *young_ptr,
                                   void *young_start,
                                   void **limit);

/* Reports an allocation that went below the limit, but not below `young_start`.
 *
 * `young_ptr` is the pointer after the allocation. `words` holds the size in
 * words, headers included, of each of the `count` blocks that were allocated
 * together, in the order of their addresses from `young_ptr` up. Each word is
 * sampled independently, so each block gets the samples on its own words.
 * Install `*limit`. It is also written with `HEAPTAP_STATUS_LOST`.
 *
 * The mutator's thread, before the next allocation; headers and fields need not
 * be initialised yet. Costs 150 to 400 ns for each sampled block, plus a few ns
 * for each frame that has not changed since the last sample and about 20 ns for
 * each new one. */
heaptap_status heaptap_young_hit(heaptap_mutator *mutator,
                                 void *young_ptr,
                                 const size_t *words,
                                 size_t count,
                                 void **limit);

/* `heaptap_young_hit` for a host that knows the kinds of its blocks: `kinds` holds that of each of
 * the `count` blocks, from `heaptap_kind_name`, or 0. */
heaptap_status heaptap_young_hit_kinds(heaptap_mutator *mutator,
                                       void *young_ptr,
                                       const size_t *words,
                                       const uint8_t *kinds,
                                       size_t count,
                                       void **limit);

/* The slow half of `heaptap_major_alloc`, which has already subtracted `words`.
 * Do not call it directly. */
heaptap_status heaptap_major_hit(heaptap_mutator *mutator, void *block, size_t words);

/* The slow half of `heaptap_external_alloc`, which has already subtracted
 * `words`. Do not call it directly. */
heaptap_status heaptap_external_hit(heaptap_mutator *mutator, void *memory, size_t words);

/* The slow half of `heaptap_major_alloc_kind`, which has already subtracted `words`. A host whose
 * slow half has something else to do first asks `heaptap_due` before it allocates. */
heaptap_status heaptap_major_hit_kind(heaptap_mutator *mutator,
                                      void *block,
                                      size_t words,
                                      uint8_t kind);

/* The slow half of `heaptap_external_alloc_kind`, which has already subtracted `words`. */
heaptap_status heaptap_external_hit_kind(heaptap_mutator *mutator,
                                         void *memory,
                                         size_t words,
                                         uint8_t kind);

/* Reports that external memory is about to be released.
 *
 * Any mutator, not only the one that allocated it. Call it before the memory is
 * released: another thread may be given the same address at once. Memory that
 * was not sampled costs one table lookup. */
heaptap_status heaptap_external_free(heaptap_mutator *mutator, void *memory);

/* `heaptap_young_renew` for a young heap that is filled from below: an allocation raises the
 * pointer and takes its slow path if the pointer is then above the limit. Install `*limit`, which is
 * at most `young_end`, as that limit.
 *
 * A mutator's young heap is filled in the direction of its last `..._renew`. */
heaptap_status heaptap_young_up_renew(heaptap_mutator *mutator,
                                      void *young_ptr,
                                      void *young_end,
                                      void **limit);

/* `heaptap_young_hit` for such a heap: an allocation went above the limit, but not above
 * `young_end`.
 *
 * `young_ptr` is the pointer after the allocation. `words` holds the size of each of the `count`
 * blocks in the order of their addresses, of which the last one ends at `young_ptr`. `kinds` is
 * NULL, or holds the kind of each, as for `heaptap_young_hit_kinds`. Otherwise like
 * `heaptap_young_hit`. */
heaptap_status heaptap_young_up_hit(heaptap_mutator *mutator,
                                    void *young_ptr,
                                    const size_t *words,
                                    const uint8_t *kinds,
                                    size_t count,
                                    void **limit);

/* `heaptap_major_hit_kind` with a stack that the host has walked itself, for instance before it
 * asked malloc: the codes of `count` frames, innermost first, each from 1 to 2^60 - 1. Call it if
 * `heaptap_due` says so, after subtracting `words` by `heaptap_major_take`.
 *
 * The mutator has no `where`: otherwise it returns `HEAPTAP_STATUS_ORDER`, and the block has its
 * stack as always. */
heaptap_status heaptap_major_hit_at(heaptap_mutator *mutator,
                                    void *block,
                                    size_t words,
                                    uint8_t kind,
                                    const uint64_t *codes,
                                    size_t count);

/* The slow half of `heaptap_young_alloc`, which has already subtracted `words`. */
heaptap_status heaptap_young_alloc_hit(heaptap_mutator *mutator,
                                       void *block,
                                       size_t words,
                                       uint8_t kind);

/* The slow half of `heaptap_block_outside`, which has already subtracted `words`. */
heaptap_status heaptap_block_outside_hit(heaptap_mutator *mutator,
                                         void *block,
                                         size_t words,
                                         uint32_t young);

/* The slow half of `heaptap_skip`, which has already subtracted the words. */
heaptap_status heaptap_skip_hit(heaptap_mutator *mutator);

/* Reports that memory is about to be reallocated, and returns a number for `heaptap_realloc_end`;
 * 0 if nothing at this address is followed by its address, and there is nothing to end.
 *
 * Memory outside the heap, and with `HEAPTAP_FOLLOW_ADDRESSES` blocks too. Between the two calls
 * another thread may allocate, and have reported, memory at the old address. Call it only if
 * `heaptap_sampled` says so, to spare the call.
 *
 * Any mutator. Costs a table lookup. */
uint64_t heaptap_realloc_begin(heaptap_mutator *mutator, void *from);

/* Reports that the memory is now at `to`: at its old address if the reallocation has failed or has
 * not moved it. A number of 0 does nothing. What it has grown by are new words, and reported as
 * such, at `to`: `heaptap_external_grow`. Memory that shrinks keeps its size in the trace.
 *
 * Any mutator, the one of `heaptap_realloc_begin` or another. Once for each number. */
heaptap_status heaptap_realloc_end(heaptap_mutator *mutator, uint64_t moving, void *to);

/* Calls `fate` for each sampled young block of the mutator. Call it after a minor
 * collection, while the forwarding pointers of the young blocks can still be read.
 *
 * The mutator's thread, or the collector's while the mutator is stopped. Costs
 * about 10 ns for each sampled young block, nothing for the others. */
heaptap_status heaptap_young_sweep(heaptap_mutator *mutator, heaptap_fate_fn fate, void *host);

/* Calls `fate` for each sampled major block of the mutator. Call it after marking,
 * before the memory of dead blocks is used again, and after compaction.
 *
 * Threads and cost like `heaptap_young_sweep`. */
heaptap_status heaptap_major_sweep(heaptap_mutator *mutator, heaptap_fate_fn fate, void *host);

/* `heaptap_young_sweep` for all mutators. Call it while the world is stopped. */
heaptap_status heaptap_tracer_young_sweep(struct heaptap_tracer *tracer,
                                          heaptap_fate_fn fate,
                                          void *host);

/* `heaptap_major_sweep` for all mutators, and for the blocks of mutators that have
 * ended. Call it while the world is stopped. */
heaptap_status heaptap_tracer_major_sweep(struct heaptap_tracer *tracer,
                                          heaptap_fate_fn fate,
                                          void *host);

/* With `HEAPTAP_FOLLOW_ADDRESSES`: reports that a block was promoted, perhaps to
 * another address.
 *
 * Any mutator. A block that was not sampled costs one table lookup. */
heaptap_status heaptap_block_promote(heaptap_mutator *mutator, void *from, void *to);

/* With `HEAPTAP_FOLLOW_ADDRESSES`: reports that a block was moved.
 *
 * Any mutator. A block that was not sampled costs one table lookup. */
heaptap_status heaptap_block_move(heaptap_mutator *mutator, void *from, void *to);

/* With `HEAPTAP_FOLLOW_ADDRESSES`: reports that a block is about to be freed.
 *
 * Any mutator. A block that was not sampled costs one table lookup. */
heaptap_status heaptap_block_collect(heaptap_mutator *mutator, void *block);

/* Describes a function, and writes the code of its first instruction to `*first`: that of another
 * is `*first` plus its index. A walker returns these codes in place of addresses.
 *
 * Everything is copied: the function may die at once, and its codes still mean the same. They are
 * never given to another function; one with the same names and lines gets the same codes. Keeps
 * four bytes for each instruction until the process ends.
 *
 * Any thread, not inside a hook or a `heaptap_walk_fn`: describe a function when it is loaded, or
 * when a walk first meets it the next time that it can be described. Takes a lock and allocates. */
heaptap_status heaptap_function_add(struct heaptap_tracer *tracer,
                                    const struct heaptap_function *function,
                                    uint64_t *first);

/* Writes a code for a place to `*code`: `heaptap_function_add` for one line, for hosts that walk
 * their stack before they report a block (`heaptap_major_hit_at`). The same place gets the same
 * code. `file` and `name` have so many bytes and need not end with a NUL; bytes after the first
 * 1,024 are ignored.
 *
 * Any thread, not inside a hook. Takes a lock, and allocates for a new place. */
heaptap_status heaptap_place_intern(struct heaptap_tracer *tracer,
                                    const char *file,
                                    size_t file_length,
                                    const char *name,
                                    size_t name_length,
                                    uint32_t line,
                                    uint64_t *code);

/* Names a kind of blocks, from 1 to 255, for readers of the trace: a table, a string, a class.
 * 0 is the kind of blocks whose kind is not known.
 *
 * Kinds are given to `heaptap_major_alloc_kind` and the functions beside it. Name a kind before
 * its first block is allocated. `HEAPTAP_STATUS_ORDER`: it has another name.
 *
 * Any thread, not inside a hook. Takes a lock. */
heaptap_status heaptap_kind_name(struct heaptap_tracer *tracer, uint8_t kind, const char *name);

/* Writes the statistics so far to `*stats`. Also works after the tracer has
 * stopped.
 *
 * Any thread. Hooks that are running may not be counted yet. */
heaptap_status heaptap_tracer_stats(const struct heaptap_tracer *tracer,
                                    struct heaptap_stats *stats);

/* Returns the label with this name, for a program that the library attached itself
 * to. The same name gives the same label, also in a later trace. Returns 0 if the program is neither
 * traced nor waits to be.
 *
 * `name` has `length` bytes and need not end with a NUL; bytes after the first
 * 1,024 are ignored. For code that runs traced and untraced, and does not call
 * `heaptap_tracer_start`.
 *
 * Any thread, not inside a hook. Takes a lock. There are at most 65,536 labels. */
uint32_t heaptap_attached_label(const char *name,
                                size_t length);

/* Sets the label of the calling thread and returns the one it had before.
 *
 * `label` is from `heaptap_attached_label`, or 0 for none. The label is the
 * outermost frame of the backtraces of this thread's samples, also of a trace that begins
 * later. Does nothing and returns 0 if the program is neither traced nor waits to be.
 *
 * A thread of the runtime, while it runs the runtime's code or is called from it.
 * Costs a few instructions. */
uint32_t heaptap_attached_set_label(uint32_t label);

/* Makes a program that runs take commands on a control socket. Called by `heaptap attach`, and of no
 * use to others.
 *
 * Returns 0 if the program takes commands from now on, and otherwise writes the reason to `answer`, cut to
 * `answer_size` bytes with a NUL at its end; then nothing in the program has changed. `argument` is the
 * version of heaptap that asks, which must be this one.
 *
 * A thread of the runtime that holds its lock, at the beginning of a minor collection, with 256 KiB of
 * stack. Allocates and takes locks. */
int heaptap_attached_listen(const char *argument,
                            char *answer,
                            size_t answer_size);

/* Carries out a command of the control socket, such as `status`, `start /tmp/a.ctf 1e-4`, `stop`,
 * `mark TEXT` or `flush` (docs/control.md), and returns when it is done.
 *
 * `answer` is NULL or room for `answer_size` bytes: it receives what the socket would answer behind
 * `ok`, or with `HEAPTAP_STATUS_COMMAND` the reason why the command failed, cut to its size and with
 * a NUL at its end.
 *
 * For programs that the library attached itself to, traced or not, whether they listen on a socket
 * or not. A host that links the library starts and stops its traces by `heaptap_tracer_start`
 * and `heaptap_tracer_stop`; the other commands are for it too. The calling thread was called from the
 * runtime's code and holds its lock if it has one; of a host, the heap can be walked until this returns. Not
 * inside a hook or a collection. Allocates and takes locks. */
heaptap_status heaptap_control_command(const char *command,
                                       char *answer,
                                       size_t answer_size);

/* Writes the probe of this kind (`HEAPTAP_PROBE_COUNT`, …) and name to `*probe`. The same kind and
 * name give the same probe. Parts of a name are separated by `/`, and shown as a tree.
 *
 * `tracer` may be NULL in a program that the library attached itself to. Names have at most
 * 1,024 bytes, and there are at most 4,096 probes: name kinds of work, not single requests.
 *
 * Any thread, not inside a hook. Takes a lock. Returns `HEAPTAP_STATUS_OFF` if the program is
 * not traced. If it fails, `*probe` is NULL, which all other functions of probes take: they do
 * nothing, or return `HEAPTAP_STATUS_NULL`. */
heaptap_status heaptap_probe_open(struct heaptap_tracer *tracer,
                                  uint32_t kind,
                                  const char *name,
                                  heaptap_probe **probe);

/* Sets the number of a probe of the kind `HEAPTAP_PROBE_VALUE`. Any thread, at any time. Takes a
 * few nanoseconds. */
heaptap_status heaptap_probe_value(heaptap_probe *probe, double value);

/* Has a probe of the kind `HEAPTAP_PROBE_VALUE` set by a function, which is called with `context` ten
 * times a second, more often while memory runs short, as long as the program is traced. The same
 * probe can be set by `heaptap_probe_value`, too; the last value counts.
 *
 * NULL for `function` ends it. When a call for this probe returns, the function that was set before
 * does not run any more and is not called again: the host may unload it, and free its context. It
 * is not called after `heaptap_tracer_stop` has returned, nor in a forked child, which may set one
 * for itself.
 *
 * Any thread, not inside a hook. May wait for the function that was set before: do not hold a lock
 * that it takes. Returns `HEAPTAP_STATUS_ORDER` inside such a function. */
heaptap_status heaptap_probe_observe(heaptap_probe *probe,
                                     heaptap_observe_fn function,
                                     void *context);

/* Sets the text of a probe of the kind `HEAPTAP_PROBE_TEXT`, of which at most 1,024 bytes are
 * kept. Any thread, not inside a hook. Allocates memory. */
heaptap_status heaptap_probe_text(heaptap_probe *probe, const char *bytes, size_t length);

/* Begins an interval of a timer. Any number of them may run at once, on any threads; all are
 * added up. Any thread, at any time. */
heaptap_status heaptap_probe_timer_start(heaptap_probe *probe);

/* Ends an interval of a timer. Returns `HEAPTAP_STATUS_ORDER` if none is running. Any thread, at
 * any time. */
heaptap_status heaptap_probe_timer_stop(heaptap_probe *probe);

/* Marks a block with a tag: it is counted as live until the collector reports its end, whether
 * it was sampled or not. A block that is marked twice counts twice. The trace does not change.
 *
 * `young` is 1 if the block is in the young heap, else 0. With the option `follow` set to
 * addresses it does not matter. In a program that the library attached itself to, `mutator` is
 * NULL.
 *
 * The mutator's thread, not inside a hook. Takes some memory for each block. */
heaptap_status heaptap_probe_tag(heaptap_mutator *mutator,
                                 heaptap_probe *probe,
                                 void *block,
                                 uint32_t young);

/* Adds a line to the log of the program, of which at most 1,024 bytes are kept. More than some
 * thousand lines in a tenth of a second are lost and counted. `tracer` as for
 * `heaptap_probe_open`. Any thread, not inside a hook. Takes a lock. */
heaptap_status heaptap_probe_log(struct heaptap_tracer *tracer, const char *line, size_t length);

/* Has views of the program stop at this moment, and show the text. The program runs on.
 * Otherwise like `heaptap_probe_log`. */
heaptap_status heaptap_probe_pause(struct heaptap_tracer *tracer, const char *why, size_t length);

/* Reports that the mutator waits from now on, since the collector works: `HEAPTAP_SLICE_MINOR`, ….
 * The slice is in the time line beside the trace, if there is one (`HEAPTAP_TIMELINE`, or a
 * probe).
 *
 * The mutator's thread, or the collector's while the mutator is stopped. Reads the clock. */
heaptap_status heaptap_slice_begin(heaptap_mutator *mutator,
                                   uint32_t kind);

/* Reports that the mutator goes on. Without a `heaptap_slice_begin` of this kind before it, nothing
 * happens. Threads as there. */
heaptap_status heaptap_slice_end(heaptap_mutator *mutator, uint32_t kind);

/* Takes a snapshot of the heap, and returns when its file is complete.
 *
 * `file` is the file's name, in which nothing is replaced; NULL for the name that
 * `HEAPTAP_SNAPSHOT_FILE` gives, by default `%e-%p-%n.heap` beside the trace. A file of
 * that name is replaced only if it is a snapshot; until the new one is complete it has a
 * temporary name. `options` is NULL for the defaults. `text` is NULL or room for `text_size`
 * bytes: it receives the file's name, or with `HEAPTAP_STATUS_SNAPSHOT` the reason why
 * there is none, cut to its size and with a NUL at its end.
 *
 * For hosts that have registered a source, and for programs that the library attached itself
 * to, traced or not. With `HEAPTAP_SNAPSHOT_HERE` the heap can be walked until this returns: of
 * a host, as for `heaptap_snapshot_point`; of an attached program, the calling thread was called
 * from the runtime's code and holds its lock if it has one. With `HEAPTAP_SNAPSHOT_AT_POINT`
 * it is a thread that no safe point waits for. Not inside a hook or a collection.
 *
 * Allocates and takes locks. The calling thread waits until the file is written; other
 * threads are stopped only if the host has stopped them. */
heaptap_status heaptap_snapshot_take(const char *file,
                                     const struct heaptap_snapshot_options *options,
                                     char *text,
                                     size_t text_size);

/* Makes snapshots of the host's heap possible: those that the host takes itself, and those
 * that its users ask for. The source stays registered as long as the process lives.
 *
 * Returns `HEAPTAP_STATUS_ORDER` if a source was registered before. Any thread, not inside
 * a hook. Costs nothing until a snapshot is taken. */
heaptap_status heaptap_snapshot_source_register(const struct heaptap_snapshot_source *source);

/* Returns 1 if a snapshot waits for a safe point, otherwise 0. A host with several threads
 * stops them then, and calls `heaptap_snapshot_point`.
 *
 * Any thread. Costs one load. */
int32_t heaptap_snapshot_wanted(void);

/* Takes the snapshot that waits for a safe point, if one does.
 *
 * Call it where the heap can be walked: all threads that change it are stopped until this
 * returns, every block has its header, and what lies in its fields can be told apart. At the
 * beginning and the end of a collection is a good place. Not inside a hook.
 *
 * Costs one load and a call if no snapshot is wanted. Otherwise the program stands still
 * while the kernel copies its page tables, about 10 ms for each GiB of memory, or for the whole
 * walk if the process cannot be copied. Needs 100 KiB of stack then. */
heaptap_status heaptap_snapshot_point(void);

/* Begins a segment: a range of memory in which the blocks lie that are reported next.
 * `kind` is one of `HEAPTAP_SEGMENT_...`, `start` a multiple of 8. Segments must not overlap; one of 0
 * words overlaps none.
 *
 * Only inside a `heaptap_snapshot_walk_fn`, like all functions that take a
 * `heaptap_snapshot`: on its thread, with the `snapshot` that it was given, otherwise they
 * return `HEAPTAP_STATUS_HANDLE` or `HEAPTAP_STATUS_ORDER`. None of them allocates or locks.
 * If one fails, all later ones return the same status, and no snapshot is taken. */
heaptap_status heaptap_snapshot_segment(struct heaptap_snapshot *snapshot,
                                        uint32_t kind,
                                        const void *start,
                                        size_t words);

/* Reports a block with its pointers: `heaptap_snapshot_block_begin`,
 * `heaptap_snapshot_pointer` for each and `heaptap_snapshot_block_end` in one call. `pointers`
 * may be NULL if `count` is 0. */
heaptap_status heaptap_snapshot_block(struct heaptap_snapshot *snapshot,
                                      const void *address,
                                      size_t words,
                                      uint32_t tag,
                                      const struct heaptap_pointer *pointers,
                                      size_t count);

/* Begins a block. `address` is the one by which other blocks point to it, behind the header,
 * `words` its size without the header, and `tag` any number that says what kind of block it is.
 *
 * The block and its header lie inside of the segment, behind the block before. */
heaptap_status heaptap_snapshot_block_begin(struct heaptap_snapshot *snapshot,
                                            const void *address,
                                            size_t words,
                                            uint32_t tag);

/* Reports that a field of the block points to a block. Fields ascend and are below the
 * block's size. `target` is the address of a block that is reported too, earlier or later: leave
 * out pointers to anything else. */
heaptap_status heaptap_snapshot_pointer(struct heaptap_snapshot *snapshot,
                                        uint64_t field,
                                        const void *target);

/* Reports the contents of the block, such as the characters of a string. At most once for a
 * block. As many bytes are kept as the user asked for, by default none: call it for every block
 * with contents that may be of interest. */
heaptap_status heaptap_snapshot_contents(struct heaptap_snapshot *snapshot,
                                         const void *contents,
                                         size_t length);

/* Reports memory outside the heap that the block owns. At most once for a block. */
heaptap_status heaptap_snapshot_outside(struct heaptap_snapshot *snapshot, size_t bytes);

/* Ends the block. */
heaptap_status heaptap_snapshot_block_end(struct heaptap_snapshot *snapshot);

/* Reports a root: something outside the heap that keeps the block `target` alive. `kind`
 * says what it is, such as a global variable or a stack, and `index` which one of the kind;
 * both are the host's own numbers. Not between the beginning and the end of a block. */
heaptap_status heaptap_snapshot_root(struct heaptap_snapshot *snapshot,
                                     uint32_t kind,
                                     uint64_t index,
                                     const void *target);

/* Reports a finaliser of the block `value`. `kind` is one of `HEAPTAP_FINALISER_...`,
 * `function` the block of the function, which is kept alive; NULL if the function is no block.
 * Not between the beginning and the end of a block. */
heaptap_status heaptap_snapshot_finaliser(struct heaptap_snapshot *snapshot,
                                          uint32_t kind,
                                          const void *value,
                                          const void *function);

/* Reports that a block refers weakly to others: `keys` do not keep what they point to, and
 * `data` is kept only while the block and all its keys are alive. `data` is NULL if there
 * is none, as in a weak reference. The block itself is reported too, without these
 * pointers. `keys` ascend. Not between the beginning and the end of a block. */
heaptap_status heaptap_snapshot_weak(struct heaptap_snapshot *snapshot,
                                     const void *block,
                                     const struct heaptap_pointer *keys,
                                     size_t count,
                                     const void *data);

/* Names a tag of blocks or a kind of roots for the user. `subject` is one of
 * `HEAPTAP_KIND_...`. Bytes after the first 4,096 are left out. Not between the beginning and the
 * end of a block. */
heaptap_status heaptap_snapshot_kind_name(struct heaptap_snapshot *snapshot,
                                          uint32_t subject,
                                          uint32_t kind,
                                          const char *name);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/* Allocations outside the young heap: one subtraction and one branch. The mutator's thread. */

/* Reports a block that was allocated directly in the major heap. `words` includes the header; `block`
 * is the address by which the runtime knows it. */
static inline void heaptap_major_alloc(heaptap_mutator *mutator, void *block, size_t words) {
  if ((mutator->until_sample -= (intptr_t)words) < 0) {
    (void)heaptap_major_hit(mutator, block, words);
  }
}

/* Reports memory that was allocated outside the heap and is owned by it. */
static inline void heaptap_external_alloc(heaptap_mutator *mutator, void *memory, size_t bytes) {
  size_t words = bytes / sizeof(void *) + (bytes % sizeof(void *) != 0);
  if ((mutator->until_sample -= (intptr_t)words) < 0) {
    (void)heaptap_external_hit(mutator, memory, words);
  }
}

/* The same for a block of a kind, from heaptap_kind_name. */
static inline void heaptap_major_alloc_kind(heaptap_mutator *mutator, void *block, size_t words, uint8_t kind) {
  if ((mutator->until_sample -= (intptr_t)words) < 0) {
    (void)heaptap_major_hit_kind(mutator, block, words, kind);
  }
}

static inline void heaptap_external_alloc_kind(heaptap_mutator *mutator, void *memory, size_t bytes,
                                               uint8_t kind) {
  size_t words = bytes / sizeof(void *) + (bytes % sizeof(void *) != 0);
  if ((mutator->until_sample -= (intptr_t)words) < 0) {
    (void)heaptap_external_hit_kind(mutator, memory, words, kind);
  }
}

/* Reports that memory outside the heap has grown, after heaptap_realloc_end: only what is new counts.
 * Does nothing if it has not grown. */
static inline void heaptap_external_grow(heaptap_mutator *mutator, void *memory, size_t old_bytes,
                                         size_t new_bytes) {
  size_t old_words = old_bytes / sizeof(void *) + (old_bytes % sizeof(void *) != 0);
  size_t new_words = new_bytes / sizeof(void *) + (new_bytes % sizeof(void *) != 0);
  if (new_words > old_words &&
      (mutator->until_sample -= (intptr_t)(new_words - old_words)) < 0) {
    (void)heaptap_external_hit(mutator, memory, new_words - old_words);
  }
}

/* Reports a young block of a runtime whose young blocks are scattered among others: it can be promoted,
 * and heaptap_young_sweep asks for its fate. `kind` may be 0. */
static inline void heaptap_young_alloc(heaptap_mutator *mutator, void *block, size_t words, uint8_t kind) {
  if ((mutator->until_sample -= (intptr_t)words) < 0) {
    (void)heaptap_young_alloc_hit(mutator, block, words, kind);
  }
}

/* Reports that a block owns so many more bytes outside the heap, of which the host learns late. They
 * end with the block, which is asked for as its generation is: `young` is 1 if it is young, else 0.
 * With HEAPTAP_FOLLOW_ADDRESSES it does not matter. */
static inline void heaptap_block_outside(heaptap_mutator *mutator, void *block, size_t bytes,
                                         uint32_t young) {
  size_t words = bytes / sizeof(void *) + (bytes % sizeof(void *) != 0);
  if ((mutator->until_sample -= (intptr_t)words) < 0) {
    (void)heaptap_block_outside_hit(mutator, block, words, young);
  }
}

/* Whether an allocation of so many words outside the young heap would be sampled, for hosts that must
 * do something first. Changes nothing. */
static inline int heaptap_due(const heaptap_mutator *mutator, size_t words) {
  return mutator->until_sample < (intptr_t)words;
}

/* How many words outside the young heap certainly hold no sample. */
static inline size_t heaptap_words_free(const heaptap_mutator *mutator) {
  return mutator->until_sample > 0 ? (size_t)mutator->until_sample : 0;
}

/* Subtracts words that were allocated unseen, of which there are at most heaptap_words_free: what goes
 * beyond is missing in the trace, and nothing else is wrong. */
static inline void heaptap_skip(heaptap_mutator *mutator, size_t words) {
  if ((mutator->until_sample -= (intptr_t)words) < 0) {
    (void)heaptap_skip_hit(mutator);
  }
}

/* Subtracts the words of a block, and returns 1 if it is sampled: then call heaptap_major_hit_kind or
 * heaptap_major_hit_at for it, before anything else of this mutator. */
static inline int heaptap_major_take(heaptap_mutator *mutator, size_t words) {
  return (mutator->until_sample -= (intptr_t)words) < 0;
}

/* Frees and moves: six instructions for a block that was not sampled. */

/* Returns 0 if certainly nothing is followed by this address, else 1. Any thread that has got the
 * address in a way that orders memory, as it must to use what is there: so a plain load will do, which
 * compilers fold into the comparison. */
static inline int heaptap_sampled(const heaptap_mutator *mutator, const void *address) {
  return mutator->sampled[(uint16_t)((uintptr_t)address >> 4)] != 0;
}

/* heaptap_external_free, if it has anything to do. */
static inline void heaptap_external_release(heaptap_mutator *mutator, void *memory) {
  if (heaptap_sampled(mutator, memory)) {
    (void)heaptap_external_free(mutator, memory);
  }
}

/* heaptap_block_collect, if it has anything to do. */
static inline void heaptap_block_release(heaptap_mutator *mutator, void *block) {
  if (heaptap_sampled(mutator, block)) {
    (void)heaptap_block_collect(mutator, block);
  }
}

/* Adds `n` passes to a probe of the kind HEAPTAP_PROBE_COUNT. NULL does nothing. Any thread, at any
 * time: one locked instruction. */
static inline void heaptap_probe_count(heaptap_probe *probe, uint64_t n) {
  if (probe) {
    (void)__atomic_fetch_add(&probe->count, n, __ATOMIC_RELAXED);
  }
}

/* The same for a caller that shares the number `stripe` with no thread that may run beside it: no
 * locked instruction. For a runtime whose threads hold a lock while they run, the number of that lock. */
static inline void heaptap_probe_count_in(heaptap_probe *probe, uint32_t stripe, uint64_t n) {
  if (stripe >= HEAPTAP_PROBE_STRIPES) {
    heaptap_probe_count(probe, n);
  } else if (probe) {
    uint64_t *count = probe->stripes[stripe];
    __atomic_store_n(count, __atomic_load_n(count, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
  }
}

#endif /* HEAPTAP_H */
