#include <caml/alloc.h>
#include <caml/callback.h>
#include <caml/memory.h>
#include <signal.h>

value call_it(value function, value argument)
{
  CAMLparam2(function, argument);
  CAMLlocal1(before);
  before = caml_copy_string("before the callback");
  CAMLreturn(caml_callback(function, argument));
}

value make_list(value length)
{
  CAMLparam1(length);
  CAMLlocal3(list, cell, item);
  list = Val_emptylist;
  for (int i = 0; i < Int_val(length); i++) {
    item = caml_copy_string("an item");
    cell = caml_alloc(2, 0);
    Store_field(cell, 0, item);
    Store_field(cell, 1, list);
    list = cell;
  }
  CAMLreturn(list);
}

/* Without allocating: the handler waits until OCaml code lets it run. */
value ring(value unit)
{
  raise(SIGUSR1);
  return unit;
}
