/* Faults and signals of recorded.ml. */
#include <caml/mlvalues.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

value recorded_fault(value unit)
{
    *(volatile int *)8 = 1;
    return unit;
}

value recorded_division(value unit)
{
    volatile int zero = 0;
    return Val_int((Int_val(unit) + 7) / zero);
}

value recorded_abort(value unit)
{
    abort();
    return unit;
}

static int deeper(volatile char *outer)
{
    volatile char room[4096];
    room[0] = *outer;
    return deeper(room) + room[0];
}

value recorded_deep(value unit)
{
    volatile char start = 1;
    return Val_int(deeper(&start) + Int_val(unit));
}

/* By the system's number. */
value recorded_send(value number)
{
    kill(getpid(), Int_val(number));
    return Val_unit;
}

static void handle(int number)
{
    (void)number;
    static const char text[] = "handled in C\n";
    if (write(1, text, sizeof text - 1) < 0)
        abort();
}

value recorded_own_handler(value number)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    sigaction(Int_val(number), &action, NULL);
    return Val_unit;
}
