/* Functions for snapshots called as they should not be: each gives the right status, a snapshot that a host
 * describes wrongly is not taken, and nothing breaks. `misuse_snapshots GROUP DIRECTORY`. */
#include <pthread.h>
#include <unistd.h>

#include "bare.h"

#define IS_NULL HEAPTAP_STATUS_NULL
#define HANDLE HEAPTAP_STATUS_HANDLE
#define ORDER HEAPTAP_STATUS_ORDER
#define OPTION HEAPTAP_STATUS_OPTION
#define MISALIGNED(type, pointer) ((type *)(void *)((char *)(pointer) + 1))

static const char *directory;
static char path[4096];
static int host_word; /* what a host's functions are given */

static const char *in(const char *name) {
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return path;
}

static uintptr_t heap[64];
static heaptap_snapshot *kept_handle;
static heaptap_status (*misuse_walk)(heaptap_snapshot *s);
static unsigned requests;

static heaptap_status snapshot_walk(void *host, heaptap_snapshot *s) {
  CHECK(host == &host_word);
  kept_handle = s;
  return misuse_walk(s);
}

static void snapshot_request(void *host) {
  CHECK(host == &host_word);
  requests++;
}

/* A good heap: two blocks that point to each other, and a root. */
static heaptap_status good_walk(heaptap_snapshot *s) {
  heaptap_pointer to_second[] = {{1, &heap[4]}}, to_first[] = {{0, &heap[1]}};
  GIVES_OK(heaptap_snapshot_segment(s, HEAPTAP_SEGMENT_MAJOR, heap, 64));
  GIVES_OK(heaptap_snapshot_block(s, &heap[1], 2, 5, to_second, 1));
  GIVES_OK(heaptap_snapshot_block_begin(s, &heap[4], 1, 6));
  GIVES_OK(heaptap_snapshot_pointer(s, 0, &heap[1]));
  GIVES_OK(heaptap_snapshot_contents(s, NULL, 0));
  GIVES_OK(heaptap_snapshot_outside(s, 77));
  GIVES_OK(heaptap_snapshot_block_end(s));
  GIVES_OK(heaptap_snapshot_block(s, &heap[6], 0, UINT32_MAX, NULL, 0));
  GIVES_OK(heaptap_snapshot_root(s, 1, 2, &heap[1]));
  GIVES_OK(heaptap_snapshot_finaliser(s, HEAPTAP_FINALISER_LAST, &heap[4], NULL));
  GIVES_OK(heaptap_snapshot_weak(s, &heap[4], to_first, 1, &heap[4]));
  GIVES_OK(heaptap_snapshot_kind_name(s, HEAPTAP_KIND_TAG, 5, "five"));
  return HEAPTAP_STATUS_OK;
}

/* One wrong call after a good beginning. Later calls give the same status. */
#define WRONG(name, call, status) \
  static heaptap_status name(heaptap_snapshot *s) { \
    heaptap_pointer pointer = {0, &heap[1]}, two[] = {{1, &heap[1]}, {1, &heap[1]}}, odd = {0, (char *)heap + 1}; \
    (void)pointer, (void)two, (void)odd; \
    GIVES_OK(heaptap_snapshot_segment(s, HEAPTAP_SEGMENT_OTHER, heap, 32)); \
    GIVES_OK(heaptap_snapshot_block(s, &heap[1], 2, 5, &pointer, 1)); \
    GIVES(call, status); \
    GIVES(heaptap_snapshot_segment(s, HEAPTAP_SEGMENT_MAJOR, heap, 32), status); \
    GIVES(heaptap_snapshot_root(s, 1, 2, &heap[1]), status); \
    return HEAPTAP_STATUS_OK; /* a host that does not look */ \
  }
#define BLOCK(address, words) heaptap_snapshot_block(s, address, words, 0, NULL, 0)
WRONG(before, BLOCK(&heap[0], 1), OPTION)
WRONG(no_header, BLOCK(&heap[3], 1), OPTION) /* its header would be in the block before */
WRONG(twice, BLOCK(&heap[1], 2), OPTION)
WRONG(behind, BLOCK(&heap[30], 3), OPTION)
WRONG(endless, BLOCK(&heap[30], SIZE_MAX), OPTION)
WRONG(unaligned, BLOCK((char *)&heap[8] + 4, 1), OPTION)
WRONG(null_block, BLOCK(NULL, 1), OPTION)
WRONG(field_outside, heaptap_snapshot_block(s, &heap[8], 0, 0, &pointer, 1), OPTION)
WRONG(field_twice, heaptap_snapshot_block(s, &heap[8], 3, 0, two, 2), OPTION)
WRONG(odd_target, heaptap_snapshot_block(s, &heap[8], 3, 0, &odd, 1), OPTION)
WRONG(null_pointers, heaptap_snapshot_block(s, &heap[8], 3, 0, NULL, 1), IS_NULL)
WRONG(huge_count, heaptap_snapshot_block(s, &heap[8], 3, 0, &pointer, SIZE_MAX), IS_NULL)
WRONG(bad_segment, heaptap_snapshot_segment(s, 4, heap, 1), OPTION)
WRONG(odd_segment, heaptap_snapshot_segment(s, HEAPTAP_SEGMENT_MAJOR, (char *)heap + 1, 1), OPTION)
WRONG(endless_segment, heaptap_snapshot_segment(s, HEAPTAP_SEGMENT_MAJOR, heap, SIZE_MAX / 8), OPTION)
WRONG(stray_pointer, heaptap_snapshot_pointer(s, 0, &heap[1]), ORDER)
WRONG(stray_end, heaptap_snapshot_block_end(s), ORDER)
WRONG(stray_contents, heaptap_snapshot_contents(s, "a", 1), ORDER)
WRONG(stray_outside, heaptap_snapshot_outside(s, 1), ORDER)
WRONG(null_root, heaptap_snapshot_root(s, 0, 0, NULL), OPTION)
WRONG(bad_finaliser, heaptap_snapshot_finaliser(s, 3, &heap[1], NULL), OPTION)
WRONG(odd_finaliser, heaptap_snapshot_finaliser(s, 0, (char *)heap + 1, NULL), OPTION)
WRONG(weak_order, heaptap_snapshot_weak(s, &heap[1], two, 2, NULL), OPTION)
WRONG(null_keys, heaptap_snapshot_weak(s, &heap[1], NULL, 2, NULL), IS_NULL)
WRONG(null_name, heaptap_snapshot_kind_name(s, HEAPTAP_KIND_TAG, 0, NULL), IS_NULL)
WRONG(bad_name, heaptap_snapshot_kind_name(s, 2, 0, "a"), OPTION)

static heaptap_status no_segment(heaptap_snapshot *s) {
  GIVES(BLOCK(&heap[1], 1), ORDER);
  return HEAPTAP_STATUS_OK;
}

static heaptap_status open_block(heaptap_snapshot *s) {
  GIVES_OK(heaptap_snapshot_segment(s, HEAPTAP_SEGMENT_MAJOR, heap, 64));
  GIVES_OK(heaptap_snapshot_block_begin(s, &heap[1], 2, 0));
  return HEAPTAP_STATUS_OK;
}

static heaptap_status inside_block(heaptap_snapshot *s) {
  open_block(s);
  GIVES(heaptap_snapshot_root(s, 0, 0, &heap[1]), ORDER);
  GIVES(heaptap_snapshot_block_end(s), ORDER); /* it failed before */
  return HEAPTAP_STATUS_OK;
}

static heaptap_status only_fails(heaptap_snapshot *s) {
  (void)s;
  return HEAPTAP_STATUS_MEMORY;
}

static void *other_thread(void *s) {
  GIVES(heaptap_snapshot_block_end(s), ORDER);
  GIVES(heaptap_snapshot_segment(s, 0, heap, 1), ORDER);
  return NULL;
}

static heaptap_status from_two_threads(heaptap_snapshot *s) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, other_thread, s) == 0);
  pthread_join(thread, NULL);
  return good_walk(s); /* nothing happened */
}

static heaptap_status taken_by(heaptap_status (*walk)(heaptap_snapshot *), char *text) {
  heaptap_snapshot_options options = {.size = sizeof options, .method = HEAPTAP_SNAPSHOT_SYNCHRONOUS};
  misuse_walk = walk;
  return heaptap_snapshot_take(in("misuse.heap"), &options, text, 300);
}

static void outside_a_walk(heaptap_snapshot *s, heaptap_status status) {
  GIVES(heaptap_snapshot_segment(s, 0, heap, 1), status);
  GIVES(heaptap_snapshot_block(s, &heap[1], 1, 0, NULL, 0), status);
  GIVES(heaptap_snapshot_block_begin(s, &heap[1], 1, 0), status);
  GIVES(heaptap_snapshot_pointer(s, 0, heap), status);
  GIVES(heaptap_snapshot_contents(s, heap, 1), status);
  GIVES(heaptap_snapshot_outside(s, 1), status);
  GIVES(heaptap_snapshot_block_end(s), status);
  GIVES(heaptap_snapshot_root(s, 0, 0, heap), status);
  GIVES(heaptap_snapshot_finaliser(s, 0, heap, NULL), status);
  GIVES(heaptap_snapshot_weak(s, heap, NULL, 0, NULL), status);
  GIVES(heaptap_snapshot_kind_name(s, 0, 0, "a"), status);
}

static void group_sources(void) {
  heaptap_snapshot_source good = {.size = sizeof good, .runtime = "bare", .walk = snapshot_walk,
                                  .request = snapshot_request, .host = &host_word, .header_words = 1};
  heaptap_snapshot_source bad;
  char text[300];
  GIVES(heaptap_snapshot_take(in("none.heap"), NULL, text, sizeof text), HEAPTAP_STATUS_SNAPSHOT);
  CHECK(strstr(text, "register") != NULL);
  GIVES(heaptap_control_command(NULL, text, sizeof text), IS_NULL);
  GIVES(heaptap_control_command("status", text, sizeof text), HEAPTAP_STATUS_COMMAND);
  CHECK(strstr(text, "register") != NULL);
  GIVES(heaptap_control_command("status", NULL, 0), HEAPTAP_STATUS_COMMAND);
  GIVES_OK(heaptap_snapshot_point());
  CHECK(heaptap_snapshot_wanted() == 0);
  GIVES(heaptap_snapshot_source_register(NULL), IS_NULL);
  GIVES(heaptap_snapshot_source_register(MISALIGNED(heaptap_snapshot_source, &good)), IS_NULL);
  bad = good, bad.size = 8;
  GIVES(heaptap_snapshot_source_register(&bad), HEAPTAP_STATUS_SIZE);
  bad = good, bad.reserved[59] = 1;
  GIVES(heaptap_snapshot_source_register(&bad), HEAPTAP_STATUS_RESERVED);
  bad = good, bad.walk = NULL;
  GIVES(heaptap_snapshot_source_register(&bad), IS_NULL);
  bad = good, bad.runtime = NULL;
  GIVES(heaptap_snapshot_source_register(&bad), IS_NULL);
  bad = good, bad.header_words = 9;
  GIVES(heaptap_snapshot_source_register(&bad), OPTION);
  GIVES_OK(heaptap_snapshot_source_register(&good));
  GIVES(heaptap_snapshot_source_register(&good), ORDER);

  GIVES_OK(taken_by(good_walk, text));
  CHECK(strcmp(text, in("misuse.heap")) == 0);
  outside_a_walk(kept_handle, HANDLE);
  outside_a_walk((heaptap_snapshot *)heap, HANDLE);
  outside_a_walk(NULL, IS_NULL);
  GIVES_OK(taken_by(from_two_threads, text));
  GIVES_OK(heaptap_snapshot_take(in("misuse.heap"), NULL, NULL, 0)); /* in a copy, and no text wanted */

  heaptap_snapshot_options options = {.size = sizeof options}, wrong;
  wrong = options, wrong.method = 2;
  GIVES(heaptap_snapshot_take(in("a.heap"), &wrong, text, sizeof text), OPTION);
  wrong = options, wrong.moment = 2;
  GIVES(heaptap_snapshot_take(in("a.heap"), &wrong, text, sizeof text), OPTION);
  wrong = options, wrong.string_bytes = 4097;
  GIVES(heaptap_snapshot_take(in("a.heap"), &wrong, text, sizeof text), OPTION);
  wrong = options, wrong.size = 1;
  GIVES(heaptap_snapshot_take(in("a.heap"), &wrong, text, sizeof text), HEAPTAP_STATUS_SIZE);
  wrong = options, wrong.reserved[0] = 1;
  GIVES(heaptap_snapshot_take(in("a.heap"), &wrong, text, sizeof text), HEAPTAP_STATUS_RESERVED);
  options.moment = HEAPTAP_SNAPSHOT_AT_POINT, options.wait_ms = 60;
  GIVES(heaptap_snapshot_take(in("a.heap"), &options, text, sizeof text), HEAPTAP_STATUS_SNAPSHOT);
  CHECK(requests > 1); /* it was asked again and again */
  CHECK(heaptap_snapshot_wanted() == 0);
}

static void group_walks(void) {
  static heaptap_status (*const walks[])(heaptap_snapshot *) = {
    before, no_header, twice, behind, endless, unaligned, null_block, field_outside, field_twice, odd_target,
    null_pointers, huge_count, bad_segment, odd_segment, endless_segment, stray_pointer, stray_end,
    stray_contents, stray_outside, null_root, bad_finaliser, odd_finaliser, weak_order, null_keys, null_name,
    bad_name, no_segment, open_block, inside_block, only_fails};
  heaptap_snapshot_source source = {.size = sizeof source, .runtime = "bare", .walk = snapshot_walk,
                                    .host = &host_word, .header_words = 1};
  GIVES_OK(heaptap_snapshot_source_register(&source));
  char text[300];
  for (size_t i = 0; i < sizeof walks / sizeof walks[0]; i++) {
    GIVES(taken_by(walks[i], text), HEAPTAP_STATUS_SNAPSHOT);
    CHECK(strstr(text, "the program's own walk of its heap failed: ") == text);
    CHECK(access(in("misuse.heap"), F_OK) != 0);
  }
  GIVES_OK(taken_by(good_walk, text)); /* after all this a good one still works */
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  directory = argv[2];
  if (strcmp(argv[1], "sources") == 0) group_sources();
  else if (strcmp(argv[1], "walks") == 0) group_walks();
  else return 2;
  return bare_end();
}
