/* Values and blocks.
 *
 * A value is one word: an integer with its lowest bit set, or the address of a block's first field, or
 * RT_NIL. A block is one header word and at least one field:
 *
 *   bits 16..63  number of fields
 *   bits  8..15  tag, below
 *   bit   0      marked: reached by the major collection under way
 *   bit   1      forwarded: the block moved, field 0 has its new address; the size above stays readable,
 *                so a heap can be walked from header to header at any time
 */
#ifndef RT_VALUE_H
#define RT_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uintptr_t rt_value;
#define RT_NIL ((rt_value)0)

/* Tags up to RT_TAG_LAST_SCANNED are the programs' own: their fields are values. */
enum {
  RT_TAG_LAST_SCANNED = 0xEF,
  RT_TAG_RAW = 0xF0,      /* bytes; the collector does not look inside */
  RT_TAG_WEAK = 0xF1,     /* field 0 refers to a block without keeping it; always in the major heap */
  RT_TAG_EXTERNAL = 0xF2, /* field 0 is memory outside the heaps, field 1 its bytes; major heap */
  RT_TAG_FREE = 0xFF      /* a hole in the major heap; field 0 links the free list */
};

#define RT_MARKED ((uintptr_t)1)
#define RT_FORWARDED ((uintptr_t)2)

static inline uintptr_t rt_header(unsigned tag, size_t fields) {
  return (uintptr_t)fields << 16 | (uintptr_t)tag << 8;
}
static inline size_t rt_header_fields(uintptr_t header) { return header >> 16; }
static inline unsigned rt_header_tag(uintptr_t header) { return header >> 8 & 0xFF; }

static inline rt_value rt_from_int(intptr_t number) { return (uintptr_t)number << 1 | 1; }
static inline intptr_t rt_to_int(rt_value value) { return (intptr_t)value >> 1; }
static inline bool rt_is_block(rt_value value) { return value != RT_NIL && (value & 1) == 0; }

static inline uintptr_t *rt_fields(rt_value block) { return (uintptr_t *)block; }
static inline uintptr_t *rt_header_of(rt_value block) { return (uintptr_t *)block - 1; }
static inline size_t rt_size(rt_value block) { return rt_header_fields(*rt_header_of(block)); }
static inline unsigned rt_tag(rt_value block) { return rt_header_tag(*rt_header_of(block)); }
static inline rt_value rt_get(rt_value block, size_t field) { return rt_fields(block)[field]; }
static inline char *rt_bytes(rt_value block) { return (char *)block; }

#endif
