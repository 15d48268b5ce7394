/* A C program that opens a library that contains OCaml: LIBRARY [threads]. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *idle(void *unused)
{
  (void)unused;
  for (;;) pause();
}

int main(int argc, char **argv)
{
  pthread_t thread;
  if (argc > 2) pthread_create(&thread, NULL, idle, NULL);
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  void (*start)(char **) = library ? (void (*)(char **))dlsym(library, "start_ocaml") : NULL;
  if (!start) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  start(argv);
  return 0;
}
