/* The layout of the public structs as compiled hosts know it: `make header` compiles this with today's
 * header and with every old one. src/abi/layout.rs has the same numbers. A struct without a size never
 * changes; one with a size may grow behind its first version, but not in a header that was released. */
#include <stddef.h>

#ifdef RELEASED
#define STARTS_WITH(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#else
#define STARTS_WITH(type, bytes) _Static_assert(sizeof(type) >= (bytes), #type)
#endif
#define IS(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#define AT(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #type "." #field)

STARTS_WITH(heaptap_options, 160);
AT(heaptap_options, size, 0);
AT(heaptap_options, file, 8);
AT(heaptap_options, rate, 16);
AT(heaptap_options, seed, 24);
AT(heaptap_options, header_words, 32);
AT(heaptap_options, max_mutators, 36);
AT(heaptap_options, max_frames, 40);
AT(heaptap_options, when_full, 44);
AT(heaptap_options, wait_ms, 48);
AT(heaptap_options, follow, 52);
AT(heaptap_options, native_frames, 56);
AT(heaptap_options, buffer_kib, 60);
AT(heaptap_options, context, 64);
AT(heaptap_options, runtime_params, 72);
AT(heaptap_options, locate, 80);
AT(heaptap_options, locate_host, 88);
#ifndef RELEASED
AT(heaptap_options, rotate_bytes, 96);
AT(heaptap_options, rotate_seconds, 104);
AT(heaptap_options, keep, 108);
AT(heaptap_options, budget, 112);
AT(heaptap_options, recorder_seconds, 120);
AT(heaptap_options, recorder_mib, 124);
#endif

#ifndef RELEASED
STARTS_WITH(heaptap_function, 72);
AT(heaptap_function, size, 0);
AT(heaptap_function, file, 8);
AT(heaptap_function, name, 16);
AT(heaptap_function, lines, 24);
AT(heaptap_function, count, 32);
AT(heaptap_mutator, until_sample, 0);
AT(heaptap_mutator, sampled, 8);
#endif

STARTS_WITH(heaptap_mutator_options, 64);
AT(heaptap_mutator_options, size, 0);
AT(heaptap_mutator_options, host, 8);
AT(heaptap_mutator_options, where, 16);
AT(heaptap_mutator_options, walk, 24);

STARTS_WITH(heaptap_frame_table, 72);
AT(heaptap_frame_table, size, 0);
AT(heaptap_frame_table, format, 8);
AT(heaptap_frame_table, place_count, 12);
AT(heaptap_frame_table, frames, 16);
AT(heaptap_frame_table, count, 24);
AT(heaptap_frame_table, places, 32);

#ifndef RELEASED
STARTS_WITH(heaptap_snapshot_options, 64);
AT(heaptap_snapshot_options, size, 0);
AT(heaptap_snapshot_options, method, 8);
AT(heaptap_snapshot_options, moment, 12);
AT(heaptap_snapshot_options, string_bytes, 16);
AT(heaptap_snapshot_options, wait_ms, 20);

STARTS_WITH(heaptap_snapshot_source, 104);
AT(heaptap_snapshot_source, size, 0);
AT(heaptap_snapshot_source, runtime, 8);
AT(heaptap_snapshot_source, walk, 16);
AT(heaptap_snapshot_source, request, 24);
AT(heaptap_snapshot_source, host, 32);
AT(heaptap_snapshot_source, header_words, 40);

IS(heaptap_pointer, 16);
AT(heaptap_pointer, field, 0);
AT(heaptap_pointer, target, 8);
#endif

STARTS_WITH(heaptap_stats, 128);
AT(heaptap_stats, size, 0);
AT(heaptap_stats, state, 8);
AT(heaptap_stats, mutators, 12);
AT(heaptap_stats, samples, 16);
AT(heaptap_stats, sampled_blocks, 24);
AT(heaptap_stats, allocations, 32);
AT(heaptap_stats, promotions, 40);
AT(heaptap_stats, collections, 48);
AT(heaptap_stats, dropped, 56);
AT(heaptap_stats, waits, 64);
AT(heaptap_stats, bytes, 72);
AT(heaptap_stats, hook_ns, 80);
AT(heaptap_stats, live_blocks, 88);
#ifndef RELEASED
AT(heaptap_stats, threads_ns, 96);
AT(heaptap_stats, program_ns, 104);
#endif

IS(heaptap_frame, 16);
AT(heaptap_frame, return_address, 0);
AT(heaptap_frame, size, 8);
AT(heaptap_frame, place, 12);

IS(heaptap_frame_link, 16);
AT(heaptap_frame_link, sp, 0);
AT(heaptap_frame_link, return_address, 8);

IS(heaptap_place, 32);
AT(heaptap_place, file, 0);
AT(heaptap_place, function, 8);
AT(heaptap_place, line, 16);
AT(heaptap_place, start_char, 20);
AT(heaptap_place, end_char, 24);
AT(heaptap_place, inlined_into, 28);

IS(heaptap_stack, 24);
AT(heaptap_stack, return_address, 0);
AT(heaptap_stack, sp, 8);
AT(heaptap_stack, native_limit, 16);

AT(heaptap_mutator, until_sample, 0);
