/* What a host can do while it is being traced. `control N --do WHAT`, best at rate 1:
 *
 *   suspend    N blocks, N while suspended (twice over), N after
 *   flush      N blocks, flush, copy the trace to --copy FILE, N more
 *   rotate     N blocks, rotate to --next FILE, 2 N more, among them dead ones of before
 *   restart    N blocks, stop; N untraced; a new trace into --next FILE, N more
 *   labels     N blocks as "alpha", N as "beta gamma", N as nothing
 *   columns    N blocks at a site with line and columns that no format holds
 *   native     N blocks allocated two calls deep in C
 *   plugin     N blocks in code loaded from --plugin FILE
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heaptap.h>

#include "../runtime/runtime.h"
#include "../runtime/trace.h"
#include "plugin.h"

enum { TAG = 1 };

static void must(heaptap_status status, const char *what) {
  if (status == HEAPTAP_STATUS_OK) return;
  printf("%s: %s\n", what, heaptap_status_str(status));
  exit(1);
}
#define MUST(call) must(call, #call)

static rt_value blocks(rt_mutator *m, size_t count) {
  RT_FRAME(m, 1);
  for (size_t i = 0; i < count; i++) {
    R[0] = RT_ALLOC(m, TAG, 2);
    rt_fields(R[0])[0] = rt_fields(R[0])[1] = rt_from_int((intptr_t)i);
  }
  RT_RETURN(m, R[0]);
}

static void copy_file(const char *from, const char *to) {
  FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
  if (in == NULL || out == NULL) abort();
  for (int c; (c = getc(in)) != EOF;) putc(c, out);
  fclose(in);
  fclose(out);
}

static rt_value suspend(rt_mutator *m, size_t n) {
  RT_FRAME(m, 0);
  RT_CALL(m, blocks(m, n));
  MUST(heaptap_mutator_suspend(m->tap));
  RT_CALL(m, blocks(m, n));
  MUST(heaptap_mutator_suspend(m->tap));
  MUST(heaptap_mutator_resume(m->tap));
  RT_CALL(m, blocks(m, n)); /* suspended twice, resumed once */
  MUST(heaptap_mutator_resume(m->tap));
  RT_CALL(m, blocks(m, n));
  RT_RETURN(m, RT_NIL);
}

static rt_value flush(rt_mutator *m, size_t n) {
  RT_FRAME(m, 0);
  RT_CALL(m, blocks(m, n));
  MUST(heaptap_tracer_flush(rt_trace_tracer()));
  copy_file(rt_option("--trace"), rt_option("--copy"));
  RT_CALL(m, blocks(m, n));
  RT_RETURN(m, RT_NIL);
}

static rt_value rotate(rt_mutator *m, size_t n) {
  RT_FRAME(m, 0);
  RT_CALL(m, blocks(m, n));
  MUST(heaptap_tracer_rotate(rt_trace_tracer(), rt_option("--next")));
  RT_CALL(m, blocks(m, 2 * n));
  RT_RETURN(m, RT_NIL);
}

/* C code, with the world stopped. */
static bool switch_trace(rt_mutator *m, const char *file) {
  rt_world_stop(m);
  if (file == NULL) {
    rt_trace_stop();
  } else {
    rt_trace_options options = {.file = file, .rate = 1, .seed = 1, .one_mutator = true};
    if (!rt_trace_start(&options)) exit(1);
  }
  rt_world_start(m);
  return true;
}

static rt_value restart(rt_mutator *m, size_t n) {
  RT_FRAME(m, 1);
  R[0] = RT_CALL(m, blocks(m, n));
  RT_CALL_C(m, switch_trace(m, NULL));
  RT_CALL(m, blocks(m, n));
  RT_CALL_C(m, switch_trace(m, rt_option("--next")));
  RT_CALL(m, blocks(m, n));
  RT_RETURN(m, RT_NIL);
}

static rt_value labels(rt_mutator *m, size_t n) {
  RT_FRAME(m, 0);
  rt_label(m, "alpha");
  RT_CALL(m, blocks(m, n));
  rt_label(m, "beta gamma");
  RT_CALL(m, blocks(m, n));
  rt_label(m, NULL);
  RT_CALL(m, blocks(m, n));
  RT_RETURN(m, RT_NIL);
}

static rt_value columns(rt_mutator *m, size_t n) {
  RT_FRAME(m, 0);
  m->sp[-1] = (uintptr_t)RT_SITE_IN(rt_frame_words_, "far.c", "far_right", 3000000, 5000, 70000, NULL);
  blocks(m, n);
  RT_RETURN(m, RT_NIL);
}

__attribute__((noinline)) static rt_value c_inner(rt_mutator *m) {
  rt_value block = rt_alloc_n(m, NULL, TAG, 3);
  __asm__ volatile("" ::: "memory");
  return block;
}
__attribute__((noinline)) static rt_value c_outer(rt_mutator *m) {
  rt_value block = c_inner(m);
  __asm__ volatile("" ::: "memory");
  return block;
}

static rt_value native(rt_mutator *m, size_t n) {
  RT_FRAME(m, 1);
  for (size_t i = 0; i < n; i++) R[0] = RT_CALL_C(m, c_outer(m));
  RT_RETURN(m, R[0]);
}

static rt_value plugin(rt_mutator *m, size_t n) {
  RT_FRAME(m, 1);
  void *loaded = dlopen(rt_option("--plugin"), RTLD_NOW);
  if (loaded == NULL) {
    puts(dlerror());
    exit(1);
  }
  const plugin_interface *interface = dlsym(loaded, "plugin");
  rt_sites_add(interface->sites());
  R[0] = RT_CALL(m, interface->run(m, rt_from_int((intptr_t)n)));
  RT_RETURN(m, R[0]);
}

static uint64_t run(rt_mutator *m, size_t size) {
  static const struct { const char *name; rt_value (*function)(rt_mutator *m, size_t n); } all[] = {
    {"suspend", suspend}, {"flush", flush},     {"rotate", rotate}, {"restart", restart},
    {"labels", labels},   {"columns", columns}, {"native", native}, {"plugin", plugin},
  };
  RT_FRAME(m, 0);
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    if (strcmp(all[i].name, rt_option("--do")) == 0) RT_CALL(m, all[i].function(m, size));
  RT_RETURN(m, (uint64_t)size);
}

const rt_program rt_the_program = {"control", run, 1000, false};
