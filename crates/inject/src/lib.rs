//! Loads a library into a running OCaml program and calls a function of it.
//!
//! For OCaml 4.12 to 4.14, native code and bytecode, with glibc 2.34 or later, on amd64. By
//! memory writes only: no register is changed and no call is forced on a thread. The runtime
//! itself calls the injected code, through `caml_minor_gc_begin_hook`, at a point where it holds
//! the master lock and is outside of malloc, of the loader and of the profiler.
//!
//! # How
//!
//! 1. `examine` finds out what the process is: `elf` and `images` find symbols in its memory,
//!    `runtime` proves by the machine code (`code`) that they are what they are called, `room`
//!    finds space for code and state. Nothing is stopped or written yet; `library` brings the
//!    library to where the program sees it.
//! 2. `stopped` makes all threads stand still. `site` writes the state and the code
//!    (`stub`), points the hook to it, and asks for a collection (`runtime`). The threads go on,
//!    after a tenth of a millisecond or so.
//! 3. At its next allocation, the program collects and calls the stub. That puts the hook back,
//!    changes to a stack of its own, calls `dlopen` and the library's entry, and goes on with
//!    the hook that was there before.
//! 4. `wait` watches the state meanwhile, repeats the request where the program has undone it,
//!    and takes everything back if the program does not call in time. At the end all threads
//!    stand still once more, and the zeros are restored that code and state were written over.
//!
//! # What holds at any moment
//!
//! This process may be killed between any two instructions. The kernel lets the threads go; the
//! writes are in an order that leaves the program sound after each of them (`site`); what is
//! left is found and cleared away by the next attach. A loop of 4.14 that polls and
//! does not allocate is slower while a request is open, since it enters the runtime at each poll.
//!
//! Everything that is read from the program is untrusted. Sizes are bounded, and nothing is
//! written but the words and ranges that `runtime` and `room` proved (`Writable`).
//!
//! Dependencies: `wait → {examine, site, library}`, `examine → {runtime, room} → images → elf`,
//! all of them to `memory`, `maps` and `refusal`; `site → {runtime, room, stub, stopped}`.

mod code;
mod elf;
mod examine;
#[cfg(test)]
mod hostile_tests;
mod images;
mod library;
mod maps;
mod memory;
mod process;
mod refusal;
mod room;
mod runtime;
mod site;
mod stopped;
mod stub;
mod wait;

pub use refusal::Refusal;
pub use wait::{Injected, Injection, clear, inject};

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("heaptap runs on Linux, on amd64");
