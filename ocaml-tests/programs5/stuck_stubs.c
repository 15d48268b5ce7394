/* C code that keeps the lock of its domain. */
#include <poll.h>
#include <unistd.h>
#include <caml/mlvalues.h>

/* Returns when there is a byte. */
value stuck_read(value descriptor)
{
  char byte;
  return Val_bool(read(Int_val(descriptor), &byte, 1) == 1);
}

value stuck_has_input(value unit)
{
  struct pollfd input = { STDIN_FILENO, POLLIN, 0 };
  return Val_bool(poll(&input, 1, 0) > 0);
}
