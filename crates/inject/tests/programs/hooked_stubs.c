#define CAML_INTERNALS
#include <caml/mlvalues.h>
#include <caml/misc.h>

static long calls;

void hooked_begin(void) { calls++; }

value hooked_install(value unit) { caml_minor_gc_begin_hook = hooked_begin; return Val_unit; }

value hooked_calls(value unit) { return Val_long(calls); }

value hooked_is_installed(value unit) { return Val_bool(caml_minor_gc_begin_hook == hooked_begin); }
