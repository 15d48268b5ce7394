/* The managed stack: entering it from C, and walking it for roots. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime.h"

/* All entries from C share this site. */
const rt_site rt_boundary __attribute__((section("rt_sites"), aligned(8), used)) = {RT_BOUNDARY, NULL};

void rt_stack_overflow(void) { rt_fatal("managed stack overflow"); }

rt_value rt_callback(rt_mutator *m, rt_function function, rt_value argument) {
  uintptr_t *outer = m->sp;
  void *outer_limit = m->native_limit;
  /* At the very top of the stack there is no managed code to go on with. */
  bool first = outer == m->stack_high;
  uintptr_t *sp = outer - 3; /* two words of our own below the interrupted frame's return address */
  if (sp - 1 < m->stack_low) rt_stack_overflow();
  sp[0] = first ? 0 : (uintptr_t)outer;
  sp[1] = first ? 0 : outer[-1];
  sp[-1] = (uintptr_t)&rt_boundary;
  m->sp = sp;
  m->native_limit = NULL;
  rt_value result = function(m, argument);
  m->native_limit = outer_limit;
  m->sp = outer;
  return result;
}

static void visit_stack(const rt_mutator *m, rt_root_visitor visit) {
  if (m->sp == m->stack_high) return; /* no managed code */
  uintptr_t *sp = m->sp;
  uintptr_t return_address = sp[-1];
  while (return_address != 0) {
    const rt_site *site = (const rt_site *)return_address;
    if (site->frame_words == RT_BOUNDARY) {
      return_address = sp[1];
      sp = (uintptr_t *)sp[0];
      continue;
    }
    for (size_t i = 0; i + 1 < site->frame_words; i++) visit(&sp[i]);
    sp += site->frame_words;
    return_address = sp[-1];
  }
}

void rt_roots_visit(rt_root_visitor visit) {
  for (size_t i = 0; i < RT_MAX_MUTATORS; i++)
    if (rt.mutators[i] != NULL) visit_stack(rt.mutators[i], visit);
  for (size_t i = 0; i < rt.roots.count; i++) visit((rt_value *)rt.roots.items[i]);
}

void rt_root(rt_value *variable) {
  pthread_mutex_lock(&rt.lock);
  *variable = RT_NIL;
  rt_array_push(&rt.roots, (uintptr_t)variable);
  pthread_mutex_unlock(&rt.lock);
}
