/* Managed code in a shared object, with a section of sites of its own. */
#include "plugin.h"

static rt_sites sites(void) { return RT_SITES_HERE(); }

static rt_value plugged_in(rt_mutator *m, rt_value count) {
  RT_FRAME(m, 1);
  for (intptr_t i = 0; i < rt_to_int(count); i++) {
    R[0] = RT_ALLOC(m, 1, 2);
    rt_fields(R[0])[0] = rt_fields(R[0])[1] = rt_from_int(i);
  }
  RT_RETURN(m, R[0]);
}

const plugin_interface plugin = {sites, plugged_in};
