/* Binary trees: many short-lived ones while one lives on. Nodes are allocated together with a small
 * block of their own, so nearly every allocation is a combined one. */
#include "../runtime/rt.h"

enum { TAG_NODE = 1, TAG_DEPTH = 2 };

/* node = { left, right, depth box }; box = { depth } */
static rt_value make(rt_mutator *m, size_t depth) {
  RT_FRAME(m, 2);
  if (depth > 0) {
    R[0] = RT_CALL(m, make(m, depth - 1));
    R[1] = RT_CALL(m, make(m, depth - 1));
  }
  rt_value node = RT_ALLOC2(m, TAG_NODE, 3, TAG_DEPTH, 1);
  rt_value box = RT_NEXT(node);
  rt_fields(box)[0] = rt_from_int((intptr_t)depth);
  rt_fields(node)[0] = R[0];
  rt_fields(node)[1] = R[1];
  rt_fields(node)[2] = box;
  RT_RETURN(m, node);
}

static uint64_t check(rt_value node) {
  if (node == RT_NIL) return 0;
  uint64_t depth = (uint64_t)rt_to_int(rt_get(rt_get(node, 2), 0));
  return depth + 1 + 3 * check(rt_get(node, 0)) + 5 * check(rt_get(node, 1));
}

static uint64_t run(rt_mutator *m, size_t size) {
  RT_FRAME(m, 1);
  uint64_t sum = 0;
  R[0] = RT_CALL(m, make(m, size));
  for (size_t depth = 4; depth <= size; depth += 4) {
    size_t repeat = (size_t)1 << (size - depth);
    for (size_t i = 0; i < repeat; i++)
      sum = sum * 31 + check(RT_CALL_INLINED(m, "short_lived", 7, make(m, depth)));
  }
  sum = sum * 31 + check(R[0]);
  RT_RETURN(m, sum);
}

const rt_program rt_the_program = {"trees", run, 16, false};
