//! Language runtimes that are traced unmodified, without knowing the C ABI.
//!
//! When the library is loaded into a program whose environment asks for a trace,
//! its constructor looks for one of the known runtimes in the program, or, if it
//! was preloaded, waits for one. Without such a request it does nothing.
//!
//! `attach` holds what every runtime needs, and the trait that a runtime
//! implements. Each runtime has a folder that alone knows its memory layouts. To
//! add one, add its folder and its entry in `KNOWN`.
//! Dependencies: `{lua, ocaml, ruby} → attach → tracer`.

#![allow(unsafe_code, reason = "patches programs that were not built for it")]

pub(crate) mod attach;
mod lua;
pub(crate) mod ocaml;
mod ruby;

pub(crate) use attach::attached;

/// The runtimes that are looked for, in this order.
static KNOWN: [&dyn attach::Runtime; 4] =
    [&ocaml::OCAML4, &ocaml::OCAML5, &ruby::RUBY, &lua::LUA54];

/// Runs when the library is loaded, before the program's `main`.
#[used]
// SAFETY: glibc calls each function of this section, with the arguments of `main`,
// which the C calling convention lets a function ignore.
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = at_load;

/// Attaches to the runtime of a program that runs already. See `attach::while_running`.
pub(crate) fn attach_while_running() -> Result<(), String> {
    attach::while_running(&KNOWN)
}

extern "C" fn at_load() {
    crate::tracer::guard(|| attach::at_load(&KNOWN));
}
