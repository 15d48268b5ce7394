/* A stack of a thousand frames that are all different, so that the backtrace of the first sample does not
 * fit an event: each of 1,024 sites calls the next. `sites N`: N blocks at the bottom of it. */
#include "../runtime/rt.h"

enum { TAG = 1, SITES = 1024 };

static rt_value bottom(rt_mutator *m, size_t count) {
  RT_FRAME(m, 1);
  for (size_t i = 0; i < count; i++) {
    R[0] = RT_ALLOC(m, TAG, 1);
    rt_fields(R[0])[0] = rt_from_int((intptr_t)i);
  }
  RT_RETURN(m, R[0]);
}

static rt_value step(rt_mutator *m, size_t site, size_t count) {
  RT_FRAME(m, 0);
  rt_value result = RT_NIL;
#define ONE case __COUNTER__: result = RT_CALL(m, step(m, site + 1, count)); break;
#define FOUR ONE ONE ONE ONE
#define SIXTEEN FOUR FOUR FOUR FOUR
#define SIXTY_FOUR SIXTEEN SIXTEEN SIXTEEN SIXTEEN
#define MANY SIXTY_FOUR SIXTY_FOUR SIXTY_FOUR SIXTY_FOUR
  switch (site) {
    MANY MANY MANY MANY
    default: result = RT_CALL(m, bottom(m, count));
  }
  RT_RETURN(m, result);
}

static uint64_t run(rt_mutator *m, size_t size) {
  RT_FRAME(m, 0);
  rt_value last = RT_CALL(m, step(m, 0, size));
  RT_RETURN(m, (uint64_t)rt_to_int(rt_get(last, 0)));
}

const rt_program rt_the_program = {"sites", run, 10, false};
