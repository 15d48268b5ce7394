//! sys: what this package asks of the operating system.
//!
//! | module | job | runs on |
//! |---|---|---|
//! | `clock`, `clock_source` | time stamps for mutators, and their conversion to wall-clock time | both |
//! | `memory` | arrays in anonymous mappings, never from malloc | both |
//! | `futex` | the event count that wakes a sleeping thread | both |
//! | `errno` | keeps the host's `errno` as it was | mutators |
//! | `thread` | the writer thread | both |
//! | `name` | what `%p`, `%e` and `%t` in a file's name stand for | the starting thread |
//! | `file` | makes a trace file without harming another's | the starting thread |
//! | `prefetch` | asks the processor for memory before it is read | both |
//! | `process_memory` | this process's memory, read by the kernel | the writer thread |
//! | `output` | writes whole packets or nothing | the writer thread |
//!
//! Nothing here knows what a trace is, but for `file`, which must recognise one
//! so as not to overwrite it. Linux only; amd64 first.

pub(crate) mod clock;
mod clock_source;
pub(crate) mod errno;
pub(crate) mod file;
pub(crate) mod futex;
pub(crate) mod memory;
pub(crate) mod name;
pub(crate) mod output;
pub(crate) mod prefetch;
pub(crate) mod process_memory;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod thread;
