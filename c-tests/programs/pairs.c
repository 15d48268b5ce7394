/* Known amounts at known sites, for the statistics of sampling: a combined allocation of blocks of 2 and
 * 3 words, single blocks of 2, 5 and 17 words, large blocks, external memory. With size N each of the
 * young sites allocates N times; large blocks and external memory come N / 64 times. All is garbage at
 * once, so runs are fast. `--sites` prints what each site allocated: name, source, times, words each. */
#include <stdio.h>
#include <string.h>

#include "../runtime/rt.h"

enum { TAG = 1 };

static rt_value pair(rt_mutator *m) {
  RT_FRAME(m, 0);
  rt_value two = RT_ALLOC2(m, TAG, 1, TAG, 2), three = RT_NEXT(two);
  rt_fields(two)[0] = rt_from_int(2);
  rt_fields(three)[0] = rt_fields(three)[1] = rt_from_int(3);
  RT_RETURN(m, two);
}

static rt_value small(rt_mutator *m) {
  RT_FRAME(m, 0);
  rt_value block = RT_ALLOC(m, TAG, 1);
  rt_fields(block)[0] = rt_from_int(2);
  RT_RETURN(m, block);
}

static rt_value medium(rt_mutator *m) {
  RT_FRAME(m, 0);
  rt_value block = RT_ALLOC(m, TAG, 4);
  for (size_t i = 0; i < 4; i++) rt_fields(block)[i] = rt_from_int(5);
  RT_RETURN(m, block);
}

static rt_value wide(rt_mutator *m) {
  RT_FRAME(m, 0);
  rt_value block = RT_ALLOC(m, TAG, 16);
  for (size_t i = 0; i < 16; i++) rt_fields(block)[i] = rt_from_int(17);
  RT_RETURN(m, block);
}

static rt_value large(rt_mutator *m) {
  RT_FRAME(m, 0);
  RT_RETURN(m, RT_ALLOC_N(m, RT_TAG_RAW, 299));
}

static rt_value external(rt_mutator *m) {
  RT_FRAME(m, 1);
  R[0] = RT_ALLOC_EXTERNAL(m, 1600);
  rt_external_release(m, R[0]);
  RT_RETURN(m, R[0]);
}

static uint64_t run(rt_mutator *m, size_t size) {
  RT_FRAME(m, 0);
  uint64_t sum = 0;
  for (size_t i = 0; i < size; i++) {
    sum += rt_size(RT_CALL(m, pair(m)));
    sum += rt_size(RT_CALL(m, small(m)));
    sum += rt_size(RT_CALL(m, medium(m)));
    sum += rt_size(RT_CALL(m, wide(m)));
    if (i % 64 != 0) continue;
    sum += rt_size(RT_CALL(m, large(m)));
    sum += rt_size(RT_CALL(m, external(m)));
  }
  if (rt_option("--sites") != NULL) {
    size_t rare = (size + 63) / 64;
    printf("site pair minor %zu 2\nsite pair minor %zu 3\nsite small minor %zu 2\n", size, size, size);
    printf("site medium minor %zu 5\nsite wide minor %zu 17\n", size, size);
    printf("site large major %zu 300\nsite external major %zu 3\nsite external external %zu 200\n", rare,
           rare, rare);
  }
  RT_RETURN(m, sum);
}

const rt_program rt_the_program = {"pairs", run, 100000, false};
