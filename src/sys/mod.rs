//! sys: clock, memory, threads and files.
