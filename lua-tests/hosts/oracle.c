/* Counts what Lua asks of its allocator, in the C library's place: preloaded beside libheaptap.so, or alone.
 *
 * `l_alloc` (lauxlib.c) makes and resizes blocks by realloc, and frees them by free. So a block of Lua's is one that
 * realloc has made of none for code of the program, of liblua or of heaptap, which calls l_alloc for Lua. Others are
 * left out. At the end a line goes to the file ORACLE: blocks, words, ended blocks, live words.
 *
 * As a module of Lua it has a function that notes the line of each instruction (a count hook), and logs for each block
 * its words and that line, to the file ORACLE_LINES. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <lua5.4/lauxlib.h>
#include <lua5.4/lua.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

#define SLOTS (1u << 22)
static struct { uintptr_t block; size_t words; } *slots;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t blocks, words, ended, live;
static int counting;

static struct { uintptr_t start, end; } images[8];
static int image_count;

static int line;
static struct { uint32_t words; int line; } *log_of_lines;
static size_t log_length;
#define LOG_SIZE (1u << 22)

static int note_image(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  (void)data;
  const char *name = info->dlpi_name;
  if (image_count == 8 || !(name[0] == 0 || strstr(name, "liblua") || strstr(name, "libheaptap"))) {
    return 0;
  }
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *header = &info->dlpi_phdr[i];
    if (header->p_type == PT_LOAD && (header->p_flags & PF_X) && image_count < 8) {
      images[image_count].start = info->dlpi_addr + header->p_vaddr;
      images[image_count++].end = info->dlpi_addr + header->p_vaddr + header->p_memsz;
    }
  }
  return 0;
}

static int is_ours(void *caller) {
  for (int i = 0; i < image_count; i++) {
    if ((uintptr_t)caller - images[i].start < images[i].end - images[i].start) {
      return 1;
    }
  }
  return 0;
}

/* Where a block is, or where it would be. Blocks that were removed keep their slot, with 0 words. */
static size_t slot_of(void *block) {
  size_t at = ((uintptr_t)block >> 4) * 0x9e3779b97f4a7c15u >> 42;
  while (slots[at].block != 0 && slots[at].block != (uintptr_t)block) {
    at = (at + 1) % SLOTS;
  }
  return at;
}

static void add(void *block, size_t bytes) {
  size_t at = slot_of(block);
  slots[at].block = (uintptr_t)block;
  slots[at].words = (bytes + 7) / 8;
  blocks++;
  words += slots[at].words;
  live += slots[at].words;
  if (log_of_lines && log_length < LOG_SIZE) {
    log_of_lines[log_length].words = (uint32_t)slots[at].words;
    log_of_lines[log_length++].line = line;
  }
}

/* Whether it was one of Lua's. */
static int take(void *block) {
  size_t at = slot_of(block);
  if (slots[at].words == 0) {
    return 0;
  }
  live -= slots[at].words;
  slots[at].words = 0;
  ended++;
  return 1;
}

void *realloc(void *block, size_t bytes) {
  if (!counting || !is_ours(__builtin_return_address(0))) {
    return __libc_realloc(block, bytes);
  }
  pthread_mutex_lock(&lock);
  void *made = __libc_realloc(block, bytes);
  if (made && (block == NULL || take(block))) {
    add(made, bytes);
  }
  pthread_mutex_unlock(&lock);
  return made;
}

void free(void *block) {
  if (counting && block && is_ours(__builtin_return_address(0))) {
    pthread_mutex_lock(&lock);
    take(block);
    pthread_mutex_unlock(&lock);
  }
  __libc_free(block);
}

/* Libraries have been initialised, and the program has not begun. */
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end) {
  int (*original)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *) =
      (int (*)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *))
          dlsym(RTLD_NEXT, "__libc_start_main");
  if (getenv("ORACLE")) {
    slots = calloc(SLOTS, sizeof *slots);
    dl_iterate_phdr(note_image, NULL);
    counting = 1;
  }
  return original(main, argc, argv, init, fini, rtld_fini, stack_end);
}

static void note_line(lua_State *L, lua_Debug *call) {
  lua_getinfo(L, "Sl", call);
  line = call->currentline;
}

/* package.loadlib("oracle.so", "oracle_lines")(): from now on. */
int oracle_lines(lua_State *L) {
  if (getenv("ORACLE_LINES")) {
    lua_sethook(L, note_line, LUA_MASKCOUNT, 1);
    log_of_lines = calloc(LOG_SIZE, sizeof *log_of_lines);
  }
  return 0;
}

__attribute__((destructor)) static void report(void) {
  counting = 0;
  const char *name = getenv("ORACLE_LINES");
  FILE *file = name && log_of_lines ? fopen(name, "w") : NULL;
  if (file) {
    for (size_t i = 0; i < log_length; i++) {
      fprintf(file, "%u %d\n", log_of_lines[i].words, log_of_lines[i].line);
    }
    fclose(file);
  }
  name = getenv("ORACLE");
  file = name && blocks ? fopen(name, "w") : NULL;
  if (file) {
    fprintf(file, "%zu %zu %zu %zu\n", blocks, words, ended, live);
    fclose(file);
  }
}
