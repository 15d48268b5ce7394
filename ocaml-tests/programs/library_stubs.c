#include <caml/callback.h>

void start_ocaml(char **argv) { caml_startup(argv); }
