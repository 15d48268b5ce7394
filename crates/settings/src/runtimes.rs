//! The language runtimes that are traced unmodified, and their releases.
//!
//! The plugin names them when it refuses another release, `heaptap run` in its help
//! and when a program was not traced.

/// A language runtime that is traced unmodified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SupportedRuntime {
    /// The language, as messages name it.
    pub name: &'static str,
    /// The releases that are known to work, as alternatives.
    pub releases: &'static str,
}

/// OCaml.
pub const OCAML: SupportedRuntime =
    SupportedRuntime { name: "OCaml", releases: "4.12 to 4.14, 5.3 or 5.4" };

/// Ruby.
pub const RUBY: SupportedRuntime = SupportedRuntime { name: "Ruby", releases: "3.1.2" };

/// Lua.
pub const LUA: SupportedRuntime = SupportedRuntime { name: "Lua", releases: "5.4.4" };

/// All of them.
pub const RUNTIMES: [SupportedRuntime; 3] = [OCAML, RUBY, LUA];

/// All of them in a phrase, such as `OCaml 4.14 or 5.3`.
pub fn supported_runtimes() -> String {
    RUNTIMES.map(|SupportedRuntime { name, releases }| format!("{name} {releases}")).join("; ")
}
