/* The address of a block, with the lowest bit set if it is young. */
#define CAML_INTERNALS
#include <caml/address_class.h>
#include <caml/mlvalues.h>

value reuse_place(value block)
{
  return Val_long((intnat)((uintnat)block >> 3 << 1 | (Is_young(block) ? 1 : 0)));
}
