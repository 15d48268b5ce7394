/* Handlers of moments.ml that write their process into its log. */
#include <caml/mlvalues.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[4096];
static volatile sig_atomic_t ended;

/* The log is opened each time: a copy closes all descriptors. */
static void line(const char *text)
{
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (file < 0 || write(file, text, strlen(text)) < 0)
        abort();
    close(file);
}

static void handler_ran(const char *name)
{
    char text[64], digits[24], *digit = digits + sizeof digits;
    long pid = getpid();
    *--digit = 0;
    do
        *--digit = '0' + pid % 10;
    while (pid /= 10);
    strcpy(text, digit);
    strcat(strcat(strcat(text, " "), name), "\n");
    line(text);
}

static void on_signal(int number)
{
    int before = errno;
    ended += number == SIGCHLD;
    handler_ran("signal");
    errno = before;
}

static void before_fork(void) { handler_ran("before fork"); }
static void in_parent(void) { handler_ran("in parent"); }
static void in_child(void) { handler_ran("in child"); }
static void on_exit_(void) { handler_ran("atexit"); }

value moments_watch(value file)
{
    static const int numbers[] = {SIGCHLD, SIGUSR1, SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    strncpy(path, String_val(file), sizeof path - 1);
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
    pthread_atfork(before_fork, in_parent, in_child);
    atexit(on_exit_);
    return Val_unit;
}

value moments_log(value text)
{
    char copy[128];
    snprintf(copy, sizeof copy, "%s\n", String_val(text));
    line(copy);
    return Val_unit;
}

value moments_children_ended(value unit)
{
    (void)unit;
    return Val_long(ended);
}
