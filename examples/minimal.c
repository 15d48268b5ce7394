/* The smallest host for heaptap: one thread, a young heap, one kind of block, and a list that grows.
 *
 *   cc -std=c99 -Iinclude examples/minimal.c -Ltarget/release -lheaptap -o minimal
 *   HEAPTAP=trace.ctf HEAPTAP_RATE=0.01 LD_LIBRARY_PATH=target/release ./minimal
 *   heaptap info trace.ctf
 *
 * docs/embedding.md goes through it line by line. */
#include <heaptap.h>
#include <stdio.h>
#include <stdlib.h>

/* --- The heap: cells of a header, a head and a tail ------------------------------------ */
enum { HEADER, HEAD, TAIL, CELL_WORDS };       /* word 0 is the header: 0, or 1 if the cell moved */
enum { YOUNG_WORDS = 32 * 1024 };
static uintptr_t young[YOUNG_WORDS];
static uintptr_t *young_ptr = young + YOUNG_WORDS;
static uintptr_t *young_limit = young;         /* below it: slow path */
static uintptr_t *list;                        /* the only root; a cell's address is that of its head */

static int is_young(const uintptr_t *cell) { return cell > young && cell < young + YOUNG_WORDS; }

/* --- The managed stack: return addresses only, so every frame has 8 bytes --------------- */
enum { IN_C = 0x1000, IN_MAIN, IN_FILL, IN_CONS }; /* "return addresses": from 4,096 up */
static uintptr_t stack[64] = {[61] = IN_C};    /* the words above it are zero: the stack ends */
static uintptr_t *sp = stack + 61;             /* the innermost return address */

static void call(uintptr_t return_address) { *--sp = return_address; }
static void ret(void) { sp++; }

/* --- What heaptap needs ----------------------------------------------------------------- */
static heaptap_tracer *tracer;
static heaptap_mutator *mutator;

static const heaptap_place places[] = {
  {"minimal.c", "main", 121, 2, 15, HEAPTAP_NO_PLACE},
  {"minimal.c", "fill", 111, 4, 29, HEAPTAP_NO_PLACE},
  {"minimal.c", "cons", 99, 2, 26, HEAPTAP_NO_PLACE},
};
static const heaptap_frame frames[] = {
  {IN_MAIN, 8, 0}, {IN_FILL, 8, 1}, {IN_CONS, 8, 2}, {IN_C, HEAPTAP_FRAME_BOUNDARY, HEAPTAP_NO_PLACE}};

static void where(void *host, heaptap_stack *at) {
  (void)host;
  at->return_address = *sp;                    /* of the innermost frame, */
  at->sp = (uintptr_t)(sp + 1);                /* whose stack pointer is 8 above it */
}

static void start_tracing(void) {
  heaptap_options options = {.size = sizeof options, .header_words = 1, .max_mutators = 1};
  heaptap_frame_table table = {.size = sizeof table, .frames = frames, .count = 4, .places = places,
                               .place_count = 3};
  heaptap_mutator_options ours = {.size = sizeof ours, .where = where};
  void *limit = young;
  if (heaptap_tracer_start_from_env(&options, &tracer) != HEAPTAP_STATUS_OK) return;
  heaptap_frames_add(tracer, &table);
  if (heaptap_mutator_start(tracer, &ours, &mutator) != HEAPTAP_STATUS_OK) return;
  heaptap_young_renew(mutator, young_ptr, young, &limit);
  young_limit = limit;
}

static heaptap_fate after_minor(void *host, void **block) {
  uintptr_t *cell = *block;
  (void)host;
  if (cell[HEADER - 1] == 0) return HEAPTAP_FATE_DEAD;
  *block = (void *)cell[0];                    /* where it moved */
  return HEAPTAP_FATE_PROMOTED;
}

/* --- The collector: what `list` reaches moves out of the young heap ----------------------- */
static void collect(void) {
  void *limit = young;
  for (uintptr_t **link = &list; is_young(*link); link = (uintptr_t **)&(*link)[TAIL - 1]) {
    uintptr_t *from = *link, *to = (uintptr_t *)malloc(CELL_WORDS * sizeof *to) + 1;
    to[HEADER - 1] = 0, to[HEAD - 1] = from[HEAD - 1], to[TAIL - 1] = from[TAIL - 1];
    from[HEADER - 1] = 1, from[0] = (uintptr_t)to;
    *link = to;
  }
  if (mutator) heaptap_young_sweep(mutator, after_minor, NULL);
  young_ptr = young + YOUNG_WORDS;
  if (mutator) heaptap_young_renew(mutator, young_ptr, young, &limit);
  young_limit = limit;
}

static void slow_path(void) {
  static const size_t parts[] = {CELL_WORDS};
  void *limit = young;
  if (young_ptr < young) {                     /* full */
    collect();
    young_ptr -= CELL_WORDS;
  }
  if (young_ptr >= young_limit) return;        /* no sample in this one */
  if (mutator) heaptap_young_hit(mutator, young_ptr, parts, 1, &limit);
  young_limit = limit;
}

static uintptr_t *cons(uintptr_t head) {
  uintptr_t *cell;
  call(IN_CONS);
  young_ptr -= CELL_WORDS;                     /* the fast path: subtract, compare, branch */
  if (young_ptr < young_limit) slow_path();
  cell = young_ptr + 1;
  cell[HEADER - 1] = 0, cell[HEAD - 1] = head, cell[TAIL - 1] = (uintptr_t)list;
  ret();
  return cell;
}

/* --- The program: of every ten cells nine are garbage ------------------------------------- */
static void fill(size_t cells) {
  call(IN_FILL);
  for (size_t i = 0; i < cells; i++) {
    uintptr_t *cell = cons(i);
    if (i % 10 == 0) list = cell;
  }
  ret();
}

int main(void) {
  size_t length = 0;
  start_tracing();
  call(IN_MAIN);
  fill(1000000);
  collect();
  for (uintptr_t *cell = list; cell; cell = (uintptr_t *)cell[TAIL - 1]) length++;
  if (mutator) heaptap_mutator_end(mutator, NULL); /* before the heap is torn down: what is alive now */
  if (tracer) heaptap_tracer_stop(tracer);         /* is alive at the end, which may be a leak */
  while (list) {
    uintptr_t *cell = list;
    list = (uintptr_t *)cell[TAIL - 1];
    free(cell - 1);
  }
  printf("%lu cells\n", (unsigned long)length);
  return 0;
}
