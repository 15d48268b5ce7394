/* A program that exports the names of Lua's functions, and is another one: of the release LUA_IDENT, or with a state of
 * another size. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef void *(*allocator)(void *, void *, size_t, size_t);

const char lua_ident[] = "$LuaVersion: " LUA_IDENT "  Copyright (C) 1994-2024 Lua.org, PUC-Rio $$LuaAuthors: nobody $";

static void *standard(void *data, void *block, size_t old, size_t size) {
  (void)data;
  (void)old;
  if (size == 0) {
    free(block);
    return NULL;
  }
  return realloc(block, size);
}

static allocator given;
static void *given_data;

void *lua_newstate(allocator f, void *data) {
  given = f;
  given_data = data;
  return f(data, NULL, 8, 1640);
}

void lua_close(void *L) { given(given_data, L, 1640, 0); }
void *luaL_newstate(void) { return lua_newstate(standard, NULL); }
allocator lua_getallocf(void *L, void **data) {
  (void)L;
  *data = given_data;
  return given;
}
void lua_setallocf(void *L, allocator f, void *data) {
  (void)L;
  given = f;
  given_data = data;
}
#define NEVER(name) int name(void *L, ...) { (void)L; puts("called: " #name); return abs(rand()); }
NEVER(lua_resume)
NEVER(lua_getinfo)
NEVER(lua_getstack)
NEVER(lua_gc)
NEVER(luaL_loadbufferx)
NEVER(lua_pushcclosure)
NEVER(lua_setglobal)
NEVER(lua_newthread)

int main(void) {
  void *L = luaL_newstate();
  lua_close(L);
  puts("a stranger");
  return 6;
}
