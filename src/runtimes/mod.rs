//! Language runtimes that are traced as they are, without their knowing the C
//! ABI.
//!
//! Each runtime has a folder that knows its layouts, and nobody else does. What
//! is common is this: when the library is loaded into a program whose
//! environment asks for a trace, its constructor looks whether the program holds
//! a runtime it knows, or waits for one if it was preloaded. Where nobody asks,
//! nothing happens at all.

#![allow(unsafe_code, reason = "attaches to programs that were not made for it")]

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
pub(crate) mod attach;
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod ocaml;

/// Elsewhere nothing is attached to.
#[cfg(not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")))]
mod ocaml {
    pub(super) fn label(_: &[u8]) -> u32 {
        0
    }

    pub(super) fn set_label(_: u32) -> u32 {
        0
    }
}

/// Runs when the library is loaded, before the program's `main`.
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
#[used]
// SAFETY: glibc calls what this section holds, with the arguments of `main`.
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = at_load;

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
extern "C" fn at_load() {
    let is_set = |name: &std::ffi::CStr| {
        // SAFETY: a C string. Nobody changes the environment before `main`.
        let value = unsafe { libc::getenv(name.as_ptr()) };
        // SAFETY: NULL or a C string.
        !value.is_null() && unsafe { value.read() } != 0
    };
    if is_set(c"HEAPTAP") || is_set(c"MEMTRACE") {
        // A defect here must not keep the program from running.
        drop(std::panic::catch_unwind(ocaml::at_load));
    }
}

/// The label of this name, for the runtime we are attached to; 0 if there is none.
pub(crate) fn label(name: &[u8]) -> u32 {
    ocaml::label(name)
}

/// What the calling thread of that runtime is doing from now on; returns what it
/// was doing.
pub(crate) fn set_label(label: u32) -> u32 {
    ocaml::set_label(label)
}
