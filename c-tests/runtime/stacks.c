/* The runtime's own record of where every allocation happened, one line each, in the words of
 * `heaptap dump`: source, length, frames from the outermost to the innermost. Written without the tracer's
 * tables, so a test can hold the two against each other. For programs of one thread. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime.h"

static FILE *out;
static rt_array sites;

void rt_stacks_open(const char *path) {
  if (path == NULL) return;
  out = fopen(path, "w");
  if (out == NULL) rt_fatal("cannot write the stacks file");
}

static void print_place(const rt_place *place) {
  if (place->inlined_into != NULL) {
    print_place(place->inlined_into);
    putc(';', out);
  }
  fprintf(out, "%s@%s:%u:%u-%u", place->function, place->file, place->line, place->start_char,
          place->end_char);
}

static void collect_sites(const rt_mutator *m) {
  sites.count = 0;
  const uintptr_t *sp = m->sp;
  for (uintptr_t at = sp[-1]; at != 0;) {
    const rt_site *site = (const rt_site *)at;
    if (site->frame_words == RT_BOUNDARY) {
      at = sp[1];
      sp = (const uintptr_t *)sp[0];
    } else {
      rt_array_push(&sites, at);
      sp += site->frame_words;
      at = sp[-1];
    }
  }
}

void rt_stacks_note(const rt_mutator *m, const char *source, size_t length) {
  if (out == NULL) return;
  collect_sites(m);
  fprintf(out, "%s %zu", source, length);
  for (size_t i = sites.count; i-- > 0;) {
    putc(' ', out);
    print_place(((const rt_site *)sites.items[i])->place);
  }
  putc('\n', out);
}

void rt_stacks_close(void) {
  if (out != NULL) fclose(out);
  out = NULL;
  free(sites.items);
}
