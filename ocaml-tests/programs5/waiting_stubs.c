/* A hook for roots beside that of the threads library, as other libraries have one. */
#define CAML_INTERNALS
#include <caml/mlvalues.h>
#include <caml/domain_state.h>
#include <caml/roots.h>

static scan_roots_hook before;
static value root = Val_unit;
static int one_comes_twice;

struct forwarded {
  scanning_action action;
  void *data;
  int count;
};

/* Reports the fifth root twice: the first one that is not a field of a thread's structure. */
static void forward(void *data, value v, value volatile *slot)
{
  struct forwarded *to = data;
  to->action(to->data, v, slot);
  if (++to->count == 5)
    to->action(to->data, *slot, slot);
}

static void scan(scanning_action action, scanning_action_flags flags, void *data, caml_domain_state *state)
{
  struct forwarded to = { action, data, 0 };
  if (state->id == 0)
    action(data, root, &root);
  if (one_comes_twice)
    before(forward, flags, &to, state);
  else
    before(action, flags, data, state);
}

/* The block is in the major heap. */
value waiting_set_hook(value block, value twice)
{
  root = block;
  one_comes_twice = Bool_val(twice);
  before = atomic_exchange(&caml_scan_roots_hook, scan);
  return Val_unit;
}
