/* Labels for the tracer, if there is one: libheaptap, loaded before the program,
   exports these two functions (src/tracer/labels.rs describes the protocol). Compiled
   with -fPIC: otherwise the linker of an executable that is not position-independent
   resolves them to NULL for good. */

#include <stddef.h>
#include <stdint.h>
#include <caml/mlvalues.h>

__attribute__((weak)) uint32_t heaptap_attached_label(const char *name, size_t length);
__attribute__((weak)) uint32_t heaptap_attached_set_label(uint32_t label);

value heaptap_ocaml_is_here(value unit)
{
  (void)unit;
  return Val_bool(heaptap_attached_label != NULL && heaptap_attached_set_label != NULL);
}

/* The OCaml side calls the following only if heaptap_ocaml_is_here. */

value heaptap_ocaml_label(value name)
{
  return Val_long(heaptap_attached_label(String_val(name), caml_string_length(name)));
}

intnat heaptap_ocaml_swap(intnat label) { return heaptap_attached_set_label((uint32_t)label); }

value heaptap_ocaml_swap_bytecode(value label) { return Val_long(heaptap_ocaml_swap(Long_val(label))); }
