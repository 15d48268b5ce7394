/* Where a block is, and in the lowest bit whether it is young there. */
#define CAML_INTERNALS
#include <caml/address_class.h>
#include <caml/mlvalues.h>

value reuse_place(value block)
{
  return Val_long((intnat)((uintnat)block >> 3 << 1 | (Is_young(block) ? 1 : 0)));
}
