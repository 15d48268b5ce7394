/* Deep recursion that is not a tail call: as many managed frames as asked for, allocating on the way
 * down and on the way up, so collections and samples see stacks of every depth. */
#include "../runtime/rt.h"

enum { TAG_CONS = 1 };

static rt_value cons(rt_mutator *m, rt_value head, rt_value tail) {
  RT_FRAME(m, 2);
  R[0] = head;
  R[1] = tail;
  rt_value cell = RT_ALLOC(m, TAG_CONS, 2);
  rt_fields(cell)[0] = R[0];
  rt_fields(cell)[1] = R[1];
  RT_RETURN(m, cell);
}

static rt_value odd(rt_mutator *m, size_t depth);

static rt_value even(rt_mutator *m, size_t depth) {
  RT_FRAME(m, 2);
  if (depth == 0) RT_RETURN(m, RT_NIL);
  R[0] = RT_CALL(m, cons(m, rt_from_int((intptr_t)depth), RT_NIL));
  R[1] = RT_CALL(m, odd(m, depth - 1));
  R[1] = RT_CALL(m, cons(m, R[0], R[1]));
  RT_RETURN(m, R[1]);
}

static rt_value odd(rt_mutator *m, size_t depth) {
  RT_FRAME(m, 1);
  if (depth == 0) RT_RETURN(m, RT_NIL);
  R[0] = RT_CALL(m, even(m, depth - 1));
  R[0] = RT_CALL(m, cons(m, rt_from_int((intptr_t)depth), R[0]));
  RT_RETURN(m, R[0]);
}

static uint64_t run(rt_mutator *m, size_t size) {
  RT_FRAME(m, 1);
  uint64_t sum = 0;
  R[0] = RT_CALL(m, even(m, size));
  for (rt_value cell = R[0]; cell != RT_NIL; cell = rt_get(cell, 1)) {
    rt_value head = rt_get(cell, 0);
    sum = sum * 31 + (uint64_t)rt_to_int(rt_is_block(head) ? rt_get(head, 0) : head);
  }
  RT_RETURN(m, sum);
}

const rt_program rt_the_program = {"deep", run, 100000, false};
