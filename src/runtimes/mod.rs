//! Language runtimes that are traced unmodified, without knowing the C ABI.
//!
//! When the library is loaded into a program whose environment asks for a trace,
//! its constructor looks for one of the known runtimes in the program, or, if it
//! was preloaded, waits for one. Without such a request it does nothing.
//!
//! `attach` holds what every runtime needs, and the trait that a runtime
//! implements. Each runtime has a folder that alone knows its memory layouts. To
//! add one, add its folder and its entry in `KNOWN`.
//! Dependencies: `ocaml → attach → tracer`.

#![allow(unsafe_code, reason = "patches programs that were not built for it")]

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
pub(crate) mod attach;
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
pub(crate) mod ocaml;

/// On other systems nothing is ever attached.
#[cfg(not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")))]
#[allow(dead_code, reason = "no runtime implements the trait there")]
mod attach {
    mod attached;
    mod patch {
        pub(crate) enum Replacement {}
    }
    mod refusal;
    mod runtime;

    pub(crate) use attached::attached;
}

/// On other systems, only the format of OCaml's frame tables, for the C ABI.
#[cfg(not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")))]
pub(crate) mod ocaml {
    mod crossings;
    pub(crate) mod frame_table;
    pub(crate) mod version;
}

pub(crate) use attach::attached;

/// The runtimes that are looked for, in this order.
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
static KNOWN: [&dyn attach::Runtime; 2] = [&ocaml::OCAML4, &ocaml::OCAML5];

/// Runs when the library is loaded, before the program's `main`.
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
#[used]
// SAFETY: glibc calls each function of this section, with the arguments of `main`,
// which the C calling convention lets a function ignore.
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = at_load;

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
extern "C" fn at_load() {
    crate::tracer::guard(|| attach::at_load(&KNOWN));
}
