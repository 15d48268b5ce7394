/* The library that the tests inject. Its entry does what heaptap's will: it allocates, takes locks, looks symbols up,
 * maps memory, uses much stack, and changes errno. It counts its calls in a file that the argument names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int calls;

int test_entry(const char *argument)
{
    volatile char deep[256 << 10];
    char line[128];
    memset((void *) deep, 0x55, sizeof deep);
    for (int i = 1; i < 200; i++) {
        char *block = malloc(i * 97);
        if (block == NULL) return -1;
        memset(block, 0xaa, i * 97);
        free(block);
    }
    void *map = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || munmap(map, 1 << 16) != 0) return -2;
    if (dlsym(RTLD_DEFAULT, "caml_minor_gc_begin_hook") == NULL) return -3;
    /* The hook is what it was: none, or a function of the program, which has a name. */
    void **hook = dlsym(RTLD_DEFAULT, "caml_minor_gc_begin_hook");
    Dl_info function;
    if (*hook != NULL && (dladdr(*hook, &function) == 0 || function.dli_sname == NULL)) return -4;
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    if (sigismember(&blocked, SIGALRM)) return -5;
    calls++;
    if (argument[0] == '/') {
        int file = open(argument, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
        int size = snprintf(line, sizeof line, "%d %ld %d\n", getpid(), syscall(SYS_gettid), calls);
        if (file < 0 || write(file, line, size) != size) return -6;
        close(file);
    }
    errno = ENOTTY;
    return calls;
}
