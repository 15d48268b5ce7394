//! sys: the operating system and the processor, as this package uses them.
//!
//! | module | job | runs on |
//! |---|---|---|
//! | `clock`, `clock_source` | time stamps on mutators and their conversion to wall-clock time | both |
//! | `memory` | arrays in anonymous mappings, never from malloc | both |
//! | `futex` | the event count that wakes a sleeping thread | both |
//! | `copy_process` | a copy of the process that the program does not notice; `shared_memory`: what it returns | both |
//! | `instruction_sync` | has all threads execute code that was changed | both |
//! | `errno` | preserves the host's `errno` | both |
//! | `thread` | threads of our own, with all signals blocked | both |
//! | `thread_flag` | a flag of each thread, and what happens when the thread ends; `thread_word`: a word of each | mutators |
//! | `program` | which program this process runs, and since when | both |
//! | `name_pattern` | expands `%p`, `%e` and `%t` in a file name | the starting thread |
//! | `file` | creates a trace file without destroying another file | the starting thread |
//! | `part_files` | the files of a series in their directory: names, and which are kept | the starting thread, the writer thread |
//! | `recording` | the same in memory, the last parts only; writes them to a directory | the writer thread, signal handlers |
//! | `fatal_signals` | something is done before a signal ends the process | the starting thread, signal handlers |
//! | `lock` | waiting for a lock until a deadline | both |
//! | `race_once` | a value that is made once and that nobody waits for, not even in a forked child | both |
//! | `listener` | a socket that listens, and its clients; `poll`: waits for several | the control thread |
//! | `descriptor` | locks, numbers and identities of open files | both |
//! | `prefetch` | tells the processor which memory will be read | the writer thread |
//! | `process_memory` | this process's memory, read by the kernel | the writer thread; walks of a heap |
//! | `process_stats` | memory, threads and limits of this process | the writer thread, the trigger thread |
//! | `processor_time` | that of this process, and that of our own threads | both |
//! | `memory_pressure` | whether that memory runs short | the writer thread, the trigger thread |
//! | `output` | writes each packet whole or not at all | the writer thread |
//! | `write_signals` | writes on threads of the host without SIGPIPE and SIGXFSZ | the starting thread, exit handlers |
//!
//! Only `file` knows what a trace is: it must recognise one in order not to overwrite
//! other files. Linux only; amd64 first.

pub(crate) mod append_file;
pub(crate) mod clock;
mod clock_source;
pub(crate) mod copy_process;
mod descriptor;
pub(crate) mod errno;
#[cfg(not(loom))]
pub(crate) mod fatal_signals;
pub(crate) mod file;
pub(crate) mod futex;
pub(crate) mod instruction_sync;
pub(crate) mod listener;
pub(crate) mod lock;
pub(crate) mod memory;
#[cfg(not(loom))]
pub(crate) mod memory_pressure;
pub(crate) mod name_pattern;
pub(crate) mod output;
#[cfg(not(loom))]
pub(crate) mod part_files;
pub(crate) mod poll;
pub(crate) mod prefetch;
pub(crate) mod process_memory;
#[cfg(not(loom))]
pub(crate) mod process_stats;
pub(crate) mod processor_time;
pub(crate) mod program;
pub(crate) mod race_once;
#[cfg(not(loom))]
pub(crate) mod recording;
pub(crate) mod shared_memory;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod thread;
pub(crate) mod thread_flag;
pub(crate) mod thread_word;
pub(crate) mod write_signals;
