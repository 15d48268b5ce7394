/* A JSON parser: makes a text, parses it into trees, prints them back, compares. Strings are allocated by
 * C code that managed code calls, and arrays are parsed by C code that calls back into managed code, so
 * stacks go managed, C, managed, C, ... The text is one large block that compaction may move. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../runtime/rt.h"

enum { TAG_CONS = 1, TAG_OBJECT = 2, TAG_ARRAY = 3, TAG_LITERAL = 4 };

static rt_value text; /* the block being parsed */
static size_t at;     /* position in it */

static char peek(void) { return rt_bytes(text)[at]; }
static void expect(char c) {
  if (rt_bytes(text)[at++] != c) abort(); /* we made the text: the heap is damaged */
}

static rt_value value(rt_mutator *m, rt_value unused);

/* C code. A string is its length, then its bytes. */
static rt_value string(rt_mutator *m) {
  expect('"');
  size_t length = 0;
  while (rt_bytes(text)[at + length] != '"') length++;
  rt_value block = rt_alloc_n(m, NULL, RT_TAG_RAW, 2 + length / sizeof(uintptr_t));
  rt_fields(block)[0] = length;
  memcpy(rt_bytes(block) + sizeof(uintptr_t), rt_bytes(text) + at, length);
  at += length + 1;
  return block;
}

static rt_value cons(rt_mutator *m, rt_value head, rt_value tail) {
  RT_FRAME(m, 2);
  R[0] = head;
  R[1] = tail;
  rt_value cell = RT_ALLOC(m, TAG_CONS, 2);
  rt_fields(cell)[0] = R[0];
  rt_fields(cell)[1] = R[1];
  RT_RETURN(m, cell);
}

/* C code that calls back for every element; `list` is a root of its caller. */
static bool elements(rt_mutator *m, rt_value *list, rt_function element) {
  expect('[');
  while (peek() != ']') {
    *list = rt_callback(m, element, *list);
    if (peek() == ',') at++;
  }
  expect(']');
  return true;
}

static rt_value element(rt_mutator *m, rt_value list) {
  RT_FRAME(m, 2);
  R[0] = list;
  R[1] = RT_CALL(m, value(m, RT_NIL));
  RT_RETURN(m, RT_CALL(m, cons(m, R[1], R[0])));
}

static rt_value array(rt_mutator *m) {
  RT_FRAME(m, 1);
  RT_CALL_C(m, elements(m, &R[0], element));
  rt_value block = RT_ALLOC(m, TAG_ARRAY, 1);
  rt_fields(block)[0] = R[0];
  RT_RETURN(m, block);
}

static rt_value object(rt_mutator *m) {
  RT_FRAME(m, 3);
  expect('{');
  while (peek() != '}') {
    R[1] = RT_CALL_C(m, string(m));
    expect(':');
    R[2] = RT_CALL(m, value(m, RT_NIL));
    R[1] = RT_CALL_INLINED(m, "pair", 11, cons(m, R[1], R[2]));
    R[0] = RT_CALL(m, cons(m, R[1], R[0]));
    if (peek() == ',') at++;
  }
  expect('}');
  rt_value block = RT_ALLOC(m, TAG_OBJECT, 1);
  rt_fields(block)[0] = R[0];
  RT_RETURN(m, block);
}

static rt_value literal(rt_mutator *m, const char *name) {
  RT_FRAME(m, 0);
  at += strlen(name);
  rt_value block = RT_ALLOC(m, TAG_LITERAL, 1);
  rt_fields(block)[0] = rt_from_int(name[0]);
  RT_RETURN(m, block);
}

static rt_value value(rt_mutator *m, rt_value unused) {
  (void)unused;
  RT_FRAME(m, 0);
  switch (peek()) {
  case '{': RT_RETURN(m, RT_CALL(m, object(m)));
  case '[': RT_RETURN(m, RT_CALL(m, array(m)));
  case '"': RT_RETURN(m, RT_CALL_C(m, string(m)));
  case 't': RT_RETURN(m, RT_CALL(m, literal(m, "true")));
  case 'n': RT_RETURN(m, RT_CALL(m, literal(m, "null")));
  default: {
    char *end;
    long number = strtol(rt_bytes(text) + at, &end, 10);
    at = (size_t)(end - rt_bytes(text));
    RT_RETURN(m, rt_from_int(number));
  }
  }
}

/* --- Printing: allocates nothing ------------------------------------------------------- */

static char *print(char *out, rt_value v);

/* Lists are in reverse. */
static char *print_list(char *out, rt_value list, bool pairs) {
  if (list == RT_NIL) return out;
  out = print_list(out, rt_get(list, 1), pairs);
  if (rt_get(list, 1) != RT_NIL) *out++ = ',';
  rt_value item = rt_get(list, 0);
  if (!pairs) return print(out, item);
  out = print(out, rt_get(item, 0));
  *out++ = ':';
  return print(out, rt_get(item, 1));
}

static char *print(char *out, rt_value v) {
  if (!rt_is_block(v)) return out + sprintf(out, "%ld", (long)rt_to_int(v));
  switch (rt_tag(v)) {
  case TAG_OBJECT: *out++ = '{'; out = print_list(out, rt_get(v, 0), true); *out++ = '}'; return out;
  case TAG_ARRAY: *out++ = '['; out = print_list(out, rt_get(v, 0), false); *out++ = ']'; return out;
  case TAG_LITERAL: return out + sprintf(out, "%s", rt_to_int(rt_get(v, 0)) == 't' ? "true" : "null");
  default: {
    size_t length = rt_get(v, 0);
    *out++ = '"';
    memcpy(out, rt_bytes(v) + sizeof(uintptr_t), length);
    out += length;
    *out++ = '"';
    return out;
  }
  }
}

/* --- The text ---------------------------------------------------------------------------- */

static uint64_t seed;
static unsigned draw(unsigned below) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(seed >> 33) % below;
}

static char *generate(char *out, unsigned depth) {
  unsigned kind = depth == 0 ? 2 + draw(4) : draw(6), count = 1 + draw(5);
  switch (kind) {
  case 0:
    *out++ = '{';
    for (unsigned i = 0; i < count; i++) {
      out += sprintf(out, "%s\"key%u\":", i == 0 ? "" : ",", draw(1000));
      out = generate(out, depth - 1);
    }
    *out++ = '}';
    return out;
  case 1:
    *out++ = '[';
    for (unsigned i = 0; i < count; i++) {
      if (i > 0) *out++ = ',';
      out = generate(out, depth - 1);
    }
    *out++ = ']';
    return out;
  case 2: return out + sprintf(out, "\"%.*s\"", (int)draw(40), "the quick brown fox jumps over the dog.");
  case 3: return out + sprintf(out, "%d", (int)draw(2000000) - 1000000);
  case 4: return out + sprintf(out, "true");
  default: return out + sprintf(out, "null");
  }
}

/* One round: a document of at most 64 KiB. */
static uint64_t round_trip(rt_mutator *m, size_t round) {
  RT_FRAME(m, 3);
  static char document[1 << 16];
  seed = round;
  char *end = document;
  *end++ = '[';
  while (end - document < 8192) {
    if (end - document > 1) *end++ = ',';
    end = generate(end, 3);
  }
  *end++ = ']';
  *end = 0;
  size_t length = (size_t)(end - document);
  text = RT_ALLOC_N(m, RT_TAG_RAW, length / sizeof(uintptr_t) + 1);
  memcpy(rt_bytes(text), document, length + 1);
  at = 0;
  R[0] = RT_CALL(m, value(m, RT_NIL));
  R[1] = RT_ALLOC_EXTERNAL(m, length + 1);
  *print(rt_external(R[1]), R[0]) = 0;
  if (strcmp(rt_external(R[1]), document) != 0) abort();
  uint64_t sum = 0;
  for (size_t i = 0; i < length; i++) sum = sum * 31 + (unsigned char)rt_external(R[1])[i];
  if (round % 2 == 0) rt_external_release(m, R[1]);
  RT_RETURN(m, sum);
}

static uint64_t run(rt_mutator *m, size_t size) {
  RT_FRAME(m, 0);
  uint64_t sum = 0;
  rt_root(&text);
  for (size_t i = 0; i < size; i++) sum = sum * 31 + RT_CALL(m, round_trip(m, i));
  RT_RETURN(m, sum);
}

const rt_program rt_the_program = {"parser", run, 200, false};
