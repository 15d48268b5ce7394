/* A program that uses liblua, in the way that its first argument says. Each way prints what it did. */
#include <lua5.4/lauxlib.h>
#include <lua5.4/lualib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char work[] =
    "local kept = {}\n"
    "for i = 1, 3000 do\n"
    "  local t = { i, { i } }\n"
    "  if i % 10 == 0 then kept[#kept + 1] = t end\n"
    "end\n"
    "keep = kept\n"
    "return #kept\n";

static int run(lua_State *L, const char *text) {
  if (luaL_loadbufferx(L, text, strlen(text), "=work", "t") || lua_pcall(L, 0, 1, 0)) {
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    exit(9);
  }
  int result = (int)lua_tointeger(L, -1);
  lua_pop(L, 1);
  return result;
}

static lua_State *made(lua_State *L) {
  if (!L) {
    exit(8);
  }
  luaL_openlibs(L);
  return L;
}

/* A state of its own in each of several threads, all at once. */
static void *in_thread(void *unused) {
  (void)unused;
  long sum = 0;
  for (int i = 0; i < 3; i++) {
    lua_State *L = made(luaL_newstate());
    sum += run(L, work);
    lua_close(L);
  }
  return (void *)sum;
}

static void threads(void) {
  lua_State *L = made(luaL_newstate());
  pthread_t all[4];
  long sum = 0;
  for (int i = 0; i < 4; i++) {
    pthread_create(&all[i], NULL, in_thread, NULL);
  }
  for (int i = 0; i < 4; i++) {
    void *result;
    pthread_join(all[i], &result);
    sum += (long)result;
  }
  printf("%ld %d\n", sum, run(L, work));
}

/* One state after the other: what each one kept is dead when it is closed. */
static void reopened(void) {
  for (int i = 0; i < 3; i++) {
    lua_State *L = made(luaL_newstate());
    printf("%d\n", run(L, work));
    lua_close(L);
  }
}

static void *counting(void *count, void *block, size_t old, size_t size) {
  (void)old;
  ++*(size_t *)count;
  if (size == 0) {
    free(block);
    return NULL;
  }
  return realloc(block, size);
}

static void own_allocator(void) {
  size_t count = 0;
  lua_State *L = made(lua_newstate(counting, &count));
  void *data;
  int same = lua_getallocf(L, &data) == counting && data == &count;
  printf("%d %d\n", run(L, work), same);
  lua_close(L);
  printf("%d\n", count > 6000);
}

static void *(*before)(void *, void *, size_t, size_t);
static void *before_data;

static void *around(void *count, void *block, size_t old, size_t size) {
  ++*(size_t *)count;
  return before(before_data, block, old, size);
}

/* An allocator around the one that is there. */
static void set_allocator(void) {
  size_t count = 0;
  lua_State *L = made(luaL_newstate());
  printf("%d\n", run(L, work));
  before = lua_getallocf(L, &before_data);
  lua_setallocf(L, around, &count);
  printf("%d\n", run(L, work));
  printf("%d\n", count > 6000);
  lua_close(L);
}

/* Some blocks cannot be had: Lua collects, and says so in the end. */
static void refused(void) {
  lua_State *L = made(luaL_newstate());
  printf("%d\n", run(L, "local n = 0\n"
                        "for i = 1, 50 do\n"
                        "  if not pcall(string.rep, 'x', 1 << 46) then n = n + 1 end\n"
                        "end\n"
                        "return n\n"));
  lua_close(L);
}

static void forked(void) {
  lua_State *L = made(luaL_newstate());
  printf("%d\n", run(L, work));
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    printf("%d\n", run(L, work));
    fflush(stdout);
    lua_close(L);
    exit(3);
  }
  int status;
  waitpid(child, &status, 0);
  printf("%d\n%d\n", WEXITSTATUS(status), run(L, work));
  lua_close(L);
}

/* Errors that end a thread which the program resumes itself. */
static int throws(lua_State *L) { return luaL_error(L, "thrown"); }

static void errors(void) {
  lua_State *L = made(luaL_newstate());
  int caught = 0;
  for (int i = 0; i < 100; i++) {
    lua_State *co = lua_newthread(L);
    lua_pushcfunction(co, throws);
    int results;
    caught += lua_resume(co, L, 0, &results) == LUA_ERRRUN;
    lua_pop(L, 1);
  }
  printf("%d %d\n", caught, run(L, work));
  lua_close(L);
}

int main(int argc, char **argv) {
  static const struct { const char *name; void (*function)(void); } ways[] = {
      {"threads", threads}, {"reopened", reopened},           {"own_allocator", own_allocator},
      {"forked", forked},   {"set_allocator", set_allocator}, {"refused", refused},
      {"errors", errors}};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    if (argc == 2 && !strcmp(argv[1], ways[i].name)) {
      ways[i].function();
      return 0;
    }
  }
  return 7;
}
