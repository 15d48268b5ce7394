/* A program on the runtime that ends in every way a program can. `endings N --end WAY`: makes N blocks,
 * says how many ("made M"), then
 *
 *   return      comes back from main
 *   exit        calls exit() on the managed thread
 *   _exit       waits 300 ms, then _exit()
 *   kill        makes blocks until it is killed; --progress FILE has the time of the last one, in
 *               microseconds, for whoever maps or reads it
 *   fork        forks; the child makes 2 N blocks and exits; the parent makes N more
 *   exec        forks; the child executes /bin/true; the parent makes N more
 *   closefds    closes every descriptor above 2, opens --mine FILE under all low numbers, makes N more
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../runtime/rt.h"

enum { TAG = 1, KEPT = 64 };

static size_t made;

/* A block that lives for a while. */
static rt_value block(rt_mutator *m, rt_value ring) {
  RT_FRAME(m, 1);
  R[0] = ring;
  rt_value fresh = RT_ALLOC(m, TAG, 3);
  for (size_t i = 0; i < 3; i++) rt_fields(fresh)[i] = rt_from_int((intptr_t)made);
  rt_set(m, R[0], made++ % KEPT, fresh);
  RT_RETURN(m, R[0]);
}

static rt_value work(rt_mutator *m, rt_value ring, size_t blocks) {
  RT_FRAME(m, 1);
  R[0] = ring;
  for (size_t i = 0; i < blocks; i++) R[0] = RT_CALL(m, block(m, R[0]));
  RT_RETURN(m, R[0]);
}

static void say_made(const char *who) {
  printf("%s %zu\n", who, made);
  fflush(stdout);
}

static uint64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static rt_value until_killed(rt_mutator *m, rt_value ring) {
  RT_FRAME(m, 1);
  R[0] = ring;
  int fd = open(rt_option("--progress"), O_RDWR | O_CREAT | O_TRUNC, 0600);
  volatile uint64_t *progress = MAP_FAILED;
  if (fd >= 0 && ftruncate(fd, 8) == 0)
    progress = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (progress == MAP_FAILED) abort();
  for (;;) {
    R[0] = RT_CALL(m, work(m, R[0], 200));
    *progress = now_us();
    usleep(200);
  }
  RT_RETURN(m, R[0]);
}

static void close_and_reopen(const char *path) {
  for (int fd = 3; fd < 256; fd++) close(fd);
  for (int i = 0; i < 32; i++)
    if (open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) < 0) abort();
}

static uint64_t run(rt_mutator *m, size_t size) {
  RT_FRAME(m, 1);
  const char *end = rt_option("--end");
  R[0] = RT_ALLOC_N(m, TAG, KEPT);
  made++;
  R[0] = RT_CALL(m, work(m, R[0], size));
  if (strcmp(end, "exit") == 0) {
    say_made("made");
    exit(0);
  } else if (strcmp(end, "_exit") == 0) {
    say_made("made");
    usleep(300000);
    _exit(0);
  } else if (strcmp(end, "kill") == 0) {
    RT_CALL(m, until_killed(m, R[0]));
  } else if (strcmp(end, "fork") == 0 || strcmp(end, "exec") == 0) {
    pid_t child = RT_CALL_C(m, rt_fork(m));
    if (child == 0) {
      if (strcmp(end, "exec") == 0) execl("/bin/true", "true", (char *)NULL);
      R[0] = RT_CALL(m, work(m, R[0], 2 * size));
      say_made("child");
      exit(0);
    }
    int status = 1;
    R[0] = RT_CALL(m, work(m, R[0], size));
    if (waitpid(child, &status, 0) != child || status != 0) abort();
    printf("pid %d\n", (int)child);
  } else if (strcmp(end, "closefds") == 0) {
    close_and_reopen(rt_option("--mine"));
    R[0] = RT_CALL(m, work(m, R[0], size));
  }
  say_made("made");
  RT_RETURN(m, made);
}

const rt_program rt_the_program = {"endings", run, 1000, false};
