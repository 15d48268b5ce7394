/* Map churn: a persistent balanced tree (AVL) under random insertions, updates and deletions. Old
 * versions are kept in a ring for a while, so blocks die in the major heap in no particular order. */
#include "../runtime/rt.h"

enum { TAG_NODE = 1, TAG_RING = 2, RING = 16 };
enum { LEFT, KEY, VALUE, RIGHT, HEIGHT };

static intptr_t height(rt_value node) { return node == RT_NIL ? 0 : rt_to_int(rt_get(node, HEIGHT)); }

static rt_value create(rt_mutator *m, rt_value left, rt_value key, rt_value value, rt_value right) {
  RT_FRAME(m, 3);
  R[0] = left;
  R[1] = value;
  R[2] = right;
  rt_value node = RT_ALLOC(m, TAG_NODE, 5);
  intptr_t l = height(R[0]), r = height(R[2]);
  uintptr_t *field = rt_fields(node);
  field[LEFT] = R[0];
  field[KEY] = key;
  field[VALUE] = R[1];
  field[RIGHT] = R[2];
  field[HEIGHT] = rt_from_int((l > r ? l : r) + 1);
  RT_RETURN(m, node);
}

/* R: left, value, right, then what a rotation makes. */
static rt_value balance(rt_mutator *m, rt_value left, rt_value key, rt_value value, rt_value right) {
  RT_FRAME(m, 5);
  R[0] = left;
  R[1] = value;
  R[2] = right;
  intptr_t lean = height(left) - height(right);
  if (lean > 2) {
    rt_value l = R[0], lr = rt_get(l, RIGHT);
    if (height(rt_get(l, LEFT)) >= height(lr)) {
      R[3] = RT_CALL(m, create(m, lr, key, R[1], R[2]));
      l = R[0];
      RT_RETURN(m, RT_CALL(m, create(m, rt_get(l, LEFT), rt_get(l, KEY), rt_get(l, VALUE), R[3])));
    }
    R[3] = RT_CALL(m, create(m, rt_get(l, LEFT), rt_get(l, KEY), rt_get(l, VALUE), rt_get(lr, LEFT)));
    R[4] = RT_CALL(m, create(m, rt_get(rt_get(R[0], RIGHT), RIGHT), key, R[1], R[2]));
    lr = rt_get(R[0], RIGHT);
    RT_RETURN(m, RT_CALL(m, create(m, R[3], rt_get(lr, KEY), rt_get(lr, VALUE), R[4])));
  }
  if (lean < -2) {
    rt_value r = R[2], rl = rt_get(r, LEFT);
    if (height(rt_get(r, RIGHT)) >= height(rl)) {
      R[3] = RT_CALL(m, create(m, R[0], key, R[1], rl));
      r = R[2];
      RT_RETURN(m, RT_CALL(m, create(m, R[3], rt_get(r, KEY), rt_get(r, VALUE), rt_get(r, RIGHT))));
    }
    R[3] = RT_CALL(m, create(m, R[0], key, R[1], rt_get(rl, LEFT)));
    r = R[2];
    rl = rt_get(r, LEFT);
    R[4] = RT_CALL(m, create(m, rt_get(rl, RIGHT), rt_get(r, KEY), rt_get(r, VALUE), rt_get(r, RIGHT)));
    rl = rt_get(R[2], LEFT);
    RT_RETURN(m, RT_CALL(m, create(m, R[3], rt_get(rl, KEY), rt_get(rl, VALUE), R[4])));
  }
  RT_RETURN(m, RT_CALL_INLINED(m, "create_balanced", 3, create(m, R[0], key, R[1], R[2])));
}

static rt_value add(rt_mutator *m, rt_value tree, rt_value key, rt_value value) {
  RT_FRAME(m, 3);
  R[0] = tree;
  R[1] = value;
  if (tree == RT_NIL) RT_RETURN(m, RT_CALL(m, create(m, RT_NIL, key, R[1], RT_NIL)));
  intptr_t here = rt_to_int(rt_get(tree, KEY)), wanted = rt_to_int(key);
  if (wanted == here)
    RT_RETURN(m, RT_CALL(m, create(m, rt_get(tree, LEFT), key, R[1], rt_get(tree, RIGHT))));
  if (wanted < here) {
    R[2] = RT_CALL(m, add(m, rt_get(tree, LEFT), key, R[1]));
    tree = R[0];
    RT_RETURN(m, RT_CALL(m, balance(m, R[2], rt_get(tree, KEY), rt_get(tree, VALUE), rt_get(tree, RIGHT))));
  }
  R[2] = RT_CALL(m, add(m, rt_get(tree, RIGHT), key, R[1]));
  tree = R[0];
  RT_RETURN(m, RT_CALL(m, balance(m, rt_get(tree, LEFT), rt_get(tree, KEY), rt_get(tree, VALUE), R[2])));
}

static rt_value remove_key(rt_mutator *m, rt_value tree, rt_value key) {
  RT_FRAME(m, 3);
  R[0] = tree;
  if (tree == RT_NIL) RT_RETURN(m, RT_NIL);
  intptr_t here = rt_to_int(rt_get(tree, KEY)), wanted = rt_to_int(key);
  if (wanted < here) {
    R[1] = RT_CALL(m, remove_key(m, rt_get(tree, LEFT), key));
    tree = R[0];
    RT_RETURN(m, RT_CALL(m, balance(m, R[1], rt_get(tree, KEY), rt_get(tree, VALUE), rt_get(tree, RIGHT))));
  }
  if (wanted > here) {
    R[1] = RT_CALL(m, remove_key(m, rt_get(tree, RIGHT), key));
    tree = R[0];
    RT_RETURN(m, RT_CALL(m, balance(m, rt_get(tree, LEFT), rt_get(tree, KEY), rt_get(tree, VALUE), R[1])));
  }
  if (rt_get(tree, LEFT) == RT_NIL) RT_RETURN(m, rt_get(tree, RIGHT));
  if (rt_get(tree, RIGHT) == RT_NIL) RT_RETURN(m, rt_get(tree, LEFT));
  rt_value least = rt_get(tree, RIGHT);
  while (rt_get(least, LEFT) != RT_NIL) least = rt_get(least, LEFT);
  R[2] = least;
  R[1] = RT_CALL(m, remove_key(m, rt_get(tree, RIGHT), rt_get(least, KEY)));
  RT_RETURN(m, RT_CALL(m, balance(m, rt_get(R[0], LEFT), rt_get(R[2], KEY), rt_get(R[2], VALUE), R[1])));
}

static uint64_t check(rt_value tree, intptr_t low, intptr_t high) {
  if (tree == RT_NIL) return 7;
  intptr_t key = rt_to_int(rt_get(tree, KEY));
  intptr_t lean = height(rt_get(tree, LEFT)) - height(rt_get(tree, RIGHT));
  if (key <= low || key >= high || lean < -2 || lean > 2) __builtin_trap(); /* the heap is damaged */
  rt_value value = rt_get(tree, VALUE);
  return (uint64_t)key * 31 + (uint64_t)rt_to_int(rt_get(value, 0)) +
         17 * check(rt_get(tree, LEFT), low, key) + 13 * check(rt_get(tree, RIGHT), key, high);
}

static uint64_t run(rt_mutator *m, size_t size) {
  RT_FRAME(m, 3);
  uint64_t random = 88172645463325252u, sum = 0;
  R[1] = RT_ALLOC_N(m, TAG_RING, RING);
  for (size_t i = 0; i < size; i++) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    rt_value key = rt_from_int((intptr_t)(random % (size / 4 + 1)) + 1);
    if (random >> 40 & 1) {
      rt_value value = RT_ALLOC(m, 3, 1);
      rt_fields(value)[0] = rt_from_int((intptr_t)i);
      R[0] = RT_CALL(m, add(m, R[0], key, value));
    } else {
      R[0] = RT_CALL(m, remove_key(m, R[0], key));
    }
    if (i % 512 == 0) rt_set(m, R[1], i / 512 % RING, R[0]);
    if (i % 4096 == 0) sum = sum * 31 + check(R[0], 0, INTPTR_MAX);
  }
  for (size_t i = 0; i < RING; i++) sum = sum * 31 + check(rt_get(R[1], i), 0, INTPTR_MAX);
  RT_RETURN(m, sum);
}

const rt_program rt_the_program = {"maps", run, 100000, false};
