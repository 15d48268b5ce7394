/* Labels, snapshots and probes for the tracer, if there is one: libheaptap, loaded before the program,
   exports these functions (src/tracer/labels.rs describes the protocol of labels). Compiled
   with -fPIC: otherwise the linker of an executable that is not position-independent
   resolves them to NULL for good. */

#define CAML_INTERNALS
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <caml/address_class.h>
#include <caml/alloc.h>
#include <caml/domain_state.h>
#include <caml/memory.h>
#include <caml/minor_gc.h>
#include <caml/mlvalues.h>
#include <caml/version.h>

__attribute__((weak)) uint32_t heaptap_attached_label(const char *name, size_t length);
__attribute__((weak)) uint32_t heaptap_attached_set_label(uint32_t label);
__attribute__((weak)) int32_t heaptap_snapshot_take(const char *file, const void *options, char *text,
                                                     size_t text_size);

__attribute__((weak)) int32_t heaptap_control_command(const char *command, char *answer, size_t answer_size);

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

/* string -> (string, string) result */
value heaptap_ocaml_command(value command)
{
  CAMLparam0();
  CAMLlocal2(text, result);
  char buffer[16896] = "the program is not run under heaptap; start it by `heaptap run`";
  int failed = 1;
  if (heaptap_control_command != NULL)
    /* Copies the command before it has the runtime collect; `command` is not used afterwards. */
    failed = heaptap_control_command(String_val(command), buffer, sizeof buffer) != 0;
  text = caml_copy_string(buffer);
  result = caml_alloc(1, failed);
  Store_field(result, 0, text);
  CAMLreturn(result);
}

/* --- Probes ---------------------------------------------------------------------------- */

/* As include/heaptap.h declares it: only counting looks inside. */
#define STRIPES 16
struct probe {
  uint64_t count;
  uint64_t reserved[7];
  uint64_t stripes[STRIPES][8];
};

__attribute__((weak)) int32_t heaptap_probe_open(void *tracer, uint32_t kind, const char *name, struct probe **probe);
__attribute__((weak)) int32_t heaptap_probe_value(struct probe *probe, double value);
__attribute__((weak)) int32_t heaptap_probe_text(struct probe *probe, const char *bytes, size_t length);
__attribute__((weak)) int32_t heaptap_probe_timer_start(struct probe *probe);
__attribute__((weak)) int32_t heaptap_probe_timer_stop(struct probe *probe);
__attribute__((weak)) int32_t heaptap_probe_tag(void *mutator, struct probe *probe, void *block, uint32_t young);
__attribute__((weak)) int32_t heaptap_probe_log(void *tracer, const char *line, size_t length);
__attribute__((weak)) int32_t heaptap_probe_pause(void *tracer, const char *why, size_t length);

/* A probe is its address as an integer, 0 if the program is not traced: an address has 47 bits. The OCaml
   side calls none of the others with 0. */
value heaptap_ocaml_probe(value kind, value name)
{
  struct probe *probe = NULL;
  if (heaptap_probe_open != NULL && heaptap_probe_open(NULL, Long_val(kind), String_val(name), &probe) != 0)
    probe = NULL;
  return Val_long((intnat)probe);
}

/* Whether the program is traced by a library that knows probes: without a name there is no probe, but
   another status. */
value heaptap_ocaml_has_probes(value unit)
{
  enum { OFF = 10 };
  struct probe *probe;
  (void)unit;
  return Val_bool(heaptap_probe_open != NULL && heaptap_probe_open(NULL, 0, "", &probe) != OFF);
}

/* Threads that run OCaml hold their domain's lock, so that nobody else counts in that stripe. */
static unsigned domain_number(void)
{
#if OCAML_VERSION_MAJOR >= 5
  return (unsigned)Caml_state->id;
#else
  return 0;
#endif
}

value heaptap_ocaml_pass(intnat address, intnat n)
{
  struct probe *probe = (struct probe *)address;
  unsigned domain = domain_number();
  if (domain < STRIPES) {
    uint64_t *count = probe->stripes[domain];
    __atomic_store_n(count, __atomic_load_n(count, __ATOMIC_RELAXED) + (uint64_t)n, __ATOMIC_RELAXED);
  } else {
    __atomic_fetch_add(&probe->count, (uint64_t)n, __ATOMIC_RELAXED);
  }
  return Val_unit;
}

value heaptap_ocaml_pass_bytecode(value address, value n)
{
  return heaptap_ocaml_pass(Long_val(address), Long_val(n));
}

value heaptap_ocaml_set(intnat address, double number)
{
  heaptap_probe_value((struct probe *)address, number);
  return Val_unit;
}

value heaptap_ocaml_set_bytecode(value address, value number)
{
  return heaptap_ocaml_set(Long_val(address), Double_val(number));
}

value heaptap_ocaml_set_text(value address, value text)
{
  heaptap_probe_text((struct probe *)Long_val(address), String_val(text), caml_string_length(text));
  return Val_unit;
}

value heaptap_ocaml_timer(intnat address, intnat start)
{
  struct probe *probe = (struct probe *)address;
  if (start) heaptap_probe_timer_start(probe);
  else heaptap_probe_timer_stop(probe);
  return Val_unit;
}

value heaptap_ocaml_timer_bytecode(value address, value start)
{
  return heaptap_ocaml_timer(Long_val(address), Long_val(start));
}

/* Immediate values and static data are never collected. */
static int is_collected(value block)
{
#if OCAML_VERSION_MAJOR >= 5
  /* NOT_MARKABLE in runtime/caml/shared_heap.h. */
  return (Hd_val(block) & (3 << 8)) != (3 << 8);
#elif defined(Is_in_heap_or_young)
  return Is_in_heap_or_young(block);
#else
  return 1;
#endif
}

value heaptap_ocaml_mark(intnat address, value block)
{
  if (Is_block(block) && is_collected(block)) {
    if (Tag_val(block) == Infix_tag) block -= Infix_offset_val(block);
    heaptap_probe_tag(NULL, (struct probe *)address, (void *)block, Is_young(block) != 0);
  }
  return Val_unit;
}

value heaptap_ocaml_mark_bytecode(value address, value block)
{
  return heaptap_ocaml_mark(Long_val(address), block);
}

value heaptap_ocaml_note(value is_pause, value text)
{
  if (Bool_val(is_pause)) heaptap_probe_pause(NULL, String_val(text), caml_string_length(text));
  else heaptap_probe_log(NULL, String_val(text), caml_string_length(text));
  return Val_unit;
}

/* Whether a tenth of a second has passed since this was last true. */
value heaptap_ocaml_is_due(value unit)
{
  static uint64_t last;
  struct timespec now;
  (void)unit;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  uint64_t tick = (uint64_t)now.tv_sec * 10 + (uint64_t)now.tv_nsec / 100000000;
  return Val_bool(__atomic_exchange_n(&last, tick, __ATOMIC_RELAXED) != tick);
}
