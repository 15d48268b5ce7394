/* A domain that was joined still holds its result for a moment: its thread unlocks the result first and removes its
   global root of it afterwards (domain_thread_func, runtime/domain.c). Whoever compares two looks at the heap waits for that. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* Whether a thread of this process waits for something. One that has ended does not keep anybody waiting either. */
static int sleeps(const char *thread)
{
    char name[300], line[512];
    snprintf(name, sizeof name, "/proc/self/task/%s/stat", thread);
    FILE *file = fopen(name, "r");
    if (file == NULL)
        return 1;
    const char *end = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    fclose(file);
    return end == NULL || end[1] != ' ' || end[2] == 'S' || end[2] == 'Z' || end[2] == 'X';
}

/* Waits until every other thread sleeps, but no longer than some ten seconds: threads may run for ever. */
static void wait_until_others_sleep(void)
{
    const pid_t self = (pid_t)syscall(SYS_gettid);
    for (int round = 0; round < 10000; round++) {
        int awake = 0;
        DIR *threads = opendir("/proc/self/task");
        if (threads == NULL)
            return;
        for (struct dirent *entry; (entry = readdir(threads)) != NULL;)
            if (entry->d_name[0] != '.' && atoi(entry->d_name) != self && !sleeps(entry->d_name))
                awake = 1;
        closedir(threads);
        if (!awake)
            return;
        usleep(1000);
    }
}
