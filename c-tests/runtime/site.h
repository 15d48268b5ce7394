/* Frames, and the sites managed code can be at when the collector or the tracer looks.
 *
 * Managed code is C written with the macros below, which do what a compiler would: keep every value that
 * lives across a call in a frame on the mutator's managed stack, and describe every call and allocation
 * in a static table. The stack grows down:
 *
 *     caller's frame   sp + size ->  root 0, root 1, ...
 *                                    return address into the caller
 *     this frame       sp ->         root 0, root 1, ...
 *                      sp - 8        return address into this frame   (there while it calls something)
 *
 * A "return address" is the address of the site's own descriptor: unique, and found by casting.
 * Descriptors lie together in the section rt_sites of an executable or shared object.
 */
#ifndef RT_SITE_H
#define RT_SITE_H

#include "value.h"

/* Where a site is in the source. */
typedef struct rt_place {
  const char *file;
  const char *function;
  uint32_t line, start_char, end_char;
  const struct rt_place *inlined_into; /* the call it was inlined at, or NULL */
} rt_place;

/* The frame was entered from C: at its sp lie the sp and the return address where managed code goes on
 * behind the C code, or two zeros. */
#define RT_BOUNDARY UINT32_MAX

typedef struct rt_site {
  uint64_t frame_words; /* roots and one return address; or RT_BOUNDARY */
  const rt_place *place;
} rt_site;

/* The sites of the executable or shared object that this is written in. */
typedef struct rt_sites {
  const rt_site *start, *stop;
} rt_sites;
extern const rt_site __start_rt_sites[] __attribute__((visibility("hidden")));
extern const rt_site __stop_rt_sites[] __attribute__((visibility("hidden")));
#define RT_SITES_HERE() ((rt_sites){__start_rt_sites, __stop_rt_sites})

/* A block scope's own site. GCC and Clang: statement expression, section attribute. `aligned` keeps the
 * compiler from padding descriptors apart. */
#define RT_SITE_IN(words, file, function, line, start, end, into) __extension__({ \
  static const rt_place place_ = {file, function, line, start, end, into}; \
  static const rt_site site_ __attribute__((section("rt_sites"), aligned(8), used)) = {words, &place_}; \
  &site_; })

/* Here, with the columns the text would have on a line indented by 2. */
#define RT_SITE(text) \
  RT_SITE_IN(rt_frame_words_, __FILE__, __func__, __LINE__, 2, 2 + sizeof(text) - 1, NULL)

/* Here, as if the body of `function` (line `inner_line` of this file) had been inlined. */
#define RT_SITE_INLINED(inner, inner_line, text) __extension__({ \
  static const rt_place outer_ = {__FILE__, __func__, __LINE__, 2, 2 + sizeof(text) - 1, NULL}; \
  RT_SITE_IN(rt_frame_words_, __FILE__, inner, inner_line, 4, 4 + sizeof(text) - 1, &outer_); })

#endif
