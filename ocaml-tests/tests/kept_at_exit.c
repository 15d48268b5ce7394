/* Preloaded into programs on OCaml 5: after the snapshot at exit, has the runtime collect everything that is dead, and
   writes the blocks and words that it keeps into the file PID.kept in the directory $KEPT_AT_EXIT. */
#define _GNU_SOURCE
#include "../programs5/at_rest.h"
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef intptr_t value;
#define UNIT ((value)1)

/* In programs that are not OCaml they are NULL. */
extern value caml_gc_full_major(value) __attribute__((weak));
extern value caml_gc_stat(value) __attribute__((weak));

/* Fields of Gc.stat. */
enum { LIVE_WORDS = 7, LIVE_BLOCKS = 8 };

static void count(void)
{
    char name[4096];
    snprintf(name, sizeof name, "%s/%ld.kept", getenv("KEPT_AT_EXIT"), (long)getpid());
    for (int i = 0; i < 3; i++)
        caml_gc_full_major(UNIT);
    const value *stat = (const value *)caml_gc_stat(UNIT);
    long blocks = stat[LIVE_BLOCKS] >> 1, words = stat[LIVE_WORDS] >> 1;
    FILE *file = fopen(name, "w");
    if (file == NULL || fprintf(file, "%ld %ld\n", blocks, words - blocks) < 0 || fclose(file) != 0)
        abort();
}

/* Registered before the handler of heaptap, which takes the snapshot: handlers run in the reverse order. */
__attribute__((constructor)) static void watch(void)
{
    if (getenv("KEPT_AT_EXIT") && caml_gc_full_major && caml_gc_stat)
        atexit(count);
}

/* Before any handler: nothing may go between the snapshot and the count. */
void exit(int status)
{
    void (*go_on)(int) = (void (*)(int))dlsym(RTLD_NEXT, "exit");
    wait_until_others_sleep();
    go_on(status);
    abort();
}
