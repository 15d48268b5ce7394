/* Labels and snapshots for the tracer, if there is one: libheaptap, loaded before the program,
   exports these functions (src/tracer/labels.rs describes the protocol of labels). Compiled
   with -fPIC: otherwise the linker of an executable that is not position-independent
   resolves them to NULL for good. */

#include <stddef.h>
#include <stdint.h>
#include <caml/alloc.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>

__attribute__((weak)) uint32_t heaptap_attached_label(const char *name, size_t length);
__attribute__((weak)) uint32_t heaptap_attached_set_label(uint32_t label);
__attribute__((weak)) int32_t heaptap_snapshot_take(const char *file, const void *options, char *text,
                                                     size_t text_size);

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

/* string -> (string, string) result; the empty string stands for the default name. */
value heaptap_ocaml_snapshot(value file)
{
  CAMLparam0();
  CAMLlocal2(text, result);
  char buffer[4608] = "the program is not run under heaptap; start it by `heaptap run`";
  int failed = 1;
  if (heaptap_snapshot_take != NULL)
    /* Copies the name before it has the runtime collect; `file` is not used afterwards. */
    failed = heaptap_snapshot_take(String_val(file), NULL, buffer, sizeof buffer) != 0;
  text = caml_copy_string(buffer);
  result = caml_alloc(1, failed);
  Store_field(result, 0, text);
  CAMLreturn(result);
}
