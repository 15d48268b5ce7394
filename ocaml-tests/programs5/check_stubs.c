/* What each domain allocated, by the collector's own counters. Those of a domain
   that ends are read in the runtime's hook for that, behind which it runs no more
   OCaml code: `Gc.quick_stat` forgets what such a domain allocated since its last
   slice (runtime/domain.c, domain_terminate; runtime/gc_stats.c; 5.3.0). In 5.4.1 a
   domain that is given the state of one that has ended begins with that one's counts:
   nobody calls caml_orphan_alloc_stats any more. What it begins with is not its own. */
#define CAML_INTERNALS
#include <stdatomic.h>
#include <caml/domain.h>
#include <caml/misc.h>
#include <caml/mlvalues.h>

enum { MOST = 4096 };
static atomic_llong ended[MOST];
/* For each domain state, the counts before its present domain; used by that domain only. */
static long long before[MOST];
static void (*next_begins)(void);

/* Like caml_gc_counters of runtime/gc_ctrl.c; promoted words are counted twice. */
static long long counted(void)
{
  caml_domain_state *domain = Caml_state;
  return (long long)domain->stat_minor_words + (long long)domain->stat_major_words
         - (long long)domain->stat_promoted_words;
}

static long long words(void)
{
  caml_domain_state *domain = Caml_state;
  return counted() - before[domain->id] + (domain->young_end - domain->young_ptr)
         + (long long)domain->allocated_words;
}

static void domain_begins(void)
{
  before[Caml_state->id] = counted();
  next_begins();
}

static void domain_ends(void) { atomic_fetch_add(&ended[Caml_state->id], words()); }

value check_watch(value unit)
{
  next_begins = caml_domain_initialize_hook;
  caml_domain_initialize_hook = domain_begins;
  atomic_store(&caml_domain_terminated_hook, domain_ends);
  return unit;
}

/* Neither allocates, but the first needs the young pointer where C sees it: not [@@noalloc]. */
value check_here(value unit) { return Val_long(words()); }

value check_ended(value index) { return Val_long(atomic_load(&ended[Long_val(index)])); }
