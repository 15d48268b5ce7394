/* Stops a domain between leaving those that collect and handing over its heap: there it frees what it knows about
   finalisers (domain_terminate, runtime/domain.c, 5.3.0). */
#define CAML_INTERNALS
#include <caml/mlvalues.h>
#include <caml/domain_state.h>
#include <stdatomic.h>
#include <unistd.h>

/* The C library's own. */
extern void __libc_free(void *);

static _Atomic(void *) freed_last;
static atomic_int has_stopped, may_go_on;

void free(void *memory)
{
    if (memory != NULL && memory == atomic_load(&freed_last)) {
        atomic_store(&freed_last, NULL);
        atomic_store(&has_stopped, 1);
        while (!atomic_load(&may_go_on))
            usleep(1000);
    }
    __libc_free(memory);
}

value unswept_stop_in_the_end(value unit)
{
    atomic_store(&freed_last, Caml_state->final_info);
    return unit;
}

value unswept_has_stopped(value unit)
{
    return Val_bool(atomic_load(&has_stopped));
}

value unswept_go_on(value unit)
{
    atomic_store(&may_go_on, 1);
    return unit;
}
