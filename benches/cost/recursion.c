/* The reference runtime's `deep`, repeated as often as requested and only as deep as usual programs are. One very deep
 * run, as `deep` does, would take hours at a high rate, since every sample walks the whole stack. */
#include "runtime/rt.h"

#define rt_the_program deep_program
#define run deep_run
#include "programs/deep.c"
#undef rt_the_program
#undef run

enum { DEPTH = 200 };

static uint64_t run(rt_mutator *m, size_t size) {
  RT_FRAME(m, 0);
  uint64_t sum = 0;
  for (size_t i = 0; i < size; i++) sum = sum * 31 + RT_CALL(m, deep_run(m, DEPTH));
  RT_RETURN(m, sum);
}

const rt_program rt_the_program = {"recursion", run, 100, false};
