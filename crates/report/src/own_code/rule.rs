//! What is library code.
//!
//! This is the one rule. It goes by what a location says, its function and its file, and only
//! takes for library code what is certain to be. A frame of which nothing is known is not own code:
//! mostly it is a stub that the compiler made. What `dune` builds for an installed package has a file such as `src/list.ml`, relative to a
//! workspace that is gone, so packages are recognised only if they lie in the workspace or have
//! an absolute path.

use heaptap_trace::Location;

use crate::select::is_label;

/// Whether a location is library code.
pub(crate) fn is_library(location: &Location<'_>) -> bool {
    let Location { file, definition, .. } = *location;
    is_stand_in(location)
        || is_of_ocaml(definition, file)
        || is_of_native_library(definition)
        || is_foreign_path(file)
}

/// Whether the tracer made it up: for a label, for frames that it left out, or for one that it knows nothing of.
fn is_stand_in(location: &Location<'_>) -> bool {
    is_label(location)
        || location.file == b"heaptap" && location.line == 0
        || *location == Location::UNKNOWN
}

/// OCaml's standard library, the libraries that come with the compiler, and its runtime.
fn is_of_ocaml(definition: &[u8], file: &[u8]) -> bool {
    let unit = definition.split(|&byte| byte == b'.').next().unwrap_or(definition);
    match unit {
        b"Stdlib" | b"Std_exit" => true,
        // What Menhir puts into each parser.
        _ if file == b"<standard.mly>" => true,
        // The compiler's own library directory has these files by their bare names.
        b"Str" => file == b"str.ml",
        b"Thread" => file == b"thread.ml",
        b"ThreadUnix" => file == b"threadUnix.ml",
        b"Unix" => file == b"unix.ml",
        b"UnixLabels" => file == b"unixLabels.ml",
        _ => {
            unit.starts_with(b"Stdlib__")
                || is_camlinternal(unit)
                || definition.starts_with(b"caml_") && is_of_runtime(file)
        }
    }
}

/// `CamlinternalFormat` and its like.
fn is_camlinternal(unit: &[u8]) -> bool {
    unit.strip_prefix(b"Camlinternal")
        .is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_uppercase))
}

/// Whether a function named `caml_…` is the runtime's. Stubs of a program may have such names
/// too, but then their files are in a directory of the program.
fn is_of_runtime(file: &[u8]) -> bool {
    if !file.ends_with(b".c") {
        return true;
    }
    let directory = file.rsplit(|&byte| byte == b'/').nth(1);
    directory.is_none_or(|directory| directory == b"runtime")
}

/// The standard libraries of Rust and C++, by the names of their functions, and what starts
/// processes and threads.
fn is_of_native_library(definition: &[u8]) -> bool {
    const PREFIXES: [&[u8]; 6] =
        [b"std::", b"core::", b"alloc::", b"__gnu_cxx::", b"operator new", b"<alloc::"];
    match definition {
        b"_start" | b"start_thread" | b"clone3" | b"__clone3" => true,
        b"__libc_start_main" | b"__libc_start_main_impl" | b"__libc_start_call_main" => true,
        // OCaml's names, which are most, begin with a capital letter.
        [b'A'..=b'Z', ..] => false,
        _ => PREFIXES.iter().any(|prefix| definition.starts_with(prefix)),
    }
}

/// Whether a path leads to installed or vendored code.
fn is_foreign_path(file: &[u8]) -> bool {
    /// Where systems install libraries and their headers.
    const SYSTEM: [&[u8]; 9] = [
        b"/gnu/store/",
        b"/lib/",
        b"/lib32/",
        b"/lib64/",
        b"/nix/store/",
        b"/usr/include/",
        b"/usr/lib",
        b"/usr/local/include/",
        b"/usr/local/lib/",
    ];
    if file.starts_with(b"/") && SYSTEM.iter().any(|prefix| file.starts_with(prefix)) {
        return true;
    }
    let (mut before, mut rest): (&[u8], _) = (b"", file);
    // What comes after the last slash is the file.
    while let Some(slash) = rest.iter().position(|&byte| byte == b'/') {
        let directory = &rest[..slash];
        if is_foreign_directory(directory) || (before, directory) == (b"lib", b"ocaml") {
            return true;
        }
        (before, rest) = (directory, &rest[slash + 1..]);
    }
    false
}

/// Whether a directory of this name holds the code of others, wherever it is.
fn is_foreign_directory(name: &[u8]) -> bool {
    matches!(
        name,
        b".cargo"
            | b".opam"
            | b".rustup"
            | b"_opam"
            | b"dist-packages"
            | b"duniverse"
            | b"node_modules"
            | b"rustc"
            | b"site-packages"
            | b"third-party"
            | b"third_party"
            | b"vendor"
            | b"vendored"
            | b"vendored_packages"
            | b"vendors"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(definition: &str, file: &str) -> bool {
        let (definition, file) = (definition.as_bytes(), file.as_bytes());
        is_library(&Location { file, line: 1, start_char: 0, end_char: 0, definition })
    }

    #[test]
    fn what_comes_with_the_compiler_is_library_code() {
        for (definition, file) in [
            ("Stdlib__List.map", "list.ml"),
            ("Stdlib.@", "stdlib.ml"),
            // From a symbol, without debug information.
            ("Stdlib.List.map", "/home/me/words"),
            ("Stdlib__Map.Make.bal", "map.ml"),
            ("Stdlib__set.Make.bal", "set.ml"),
            ("CamlinternalFormat.make_printf", "camlinternalFormat.ml"),
            ("CamlinternalLazy.force", ""),
            ("Std_exit", "std_exit.ml"),
            ("Str.bounded_split", "str.ml"),
            ("Unix.read", "unix.ml"),
            ("Thread.create.(fun)", "thread.ml"),
            ("caml_program", "words"),
            ("caml_alloc_string", "alloc.c"),
            ("caml_alloc_string", "runtime/alloc.c"),
            ("caml_start_program", "/home/me/words"),
        ] {
            assert!(library(definition, file), "{definition} in {file}");
        }
    }

    #[test]
    fn a_programs_own_modules_may_have_names_like_those_of_the_library() {
        for (definition, file) in [
            ("List.map", "list.ml"),
            ("Dune__exe__List.map", "bin/list.ml"),
            ("My_stdlib.List.map", "my_stdlib.ml"),
            ("Stdlib_ext__List.map", "src/list.ml"),
            ("Unix.read", "src/unix.ml"),
            ("Str.parse", "lib/str.ml"),
            ("Camlinternals.f", "camlinternals.ml"),
            ("Dune__exe__Thread.create", "bin/thread.ml"),
            ("caml_zstd_compress", "src/stubs/zstd_stubs.c"),
            ("Std.f", "std.ml"),
            ("alloc", "alloc.c"),
            ("main", "main.c"),
            ("Vendor.list", "src/vendor.ml"),
        ] {
            assert!(!library(definition, file), "{definition} in {file}");
        }
    }

    #[test]
    fn installed_and_vendored_code_is_recognised_by_its_path() {
        for file in [
            "/home/me/.opam/5.3.0/lib/yojson/yojson.ml",
            "_opam/lib/base/list0.ml",
            "/home/me/work/_opam/lib/base/list0.ml",
            "duniverse/yojson/lib/read.ml",
            "vendor/fmt/fmt.ml",
            "src/vendored/fmt.ml",
            "_build/default/third_party/a.c",
            "/usr/lib/ocaml/list.ml",
            "/opt/lib/ocaml/list.ml",
            "/usr/include/c++/13/bits/stl_vector.h",
            "/usr/lib/x86_64-linux-gnu/libc.so.6",
            "/home/me/.cargo/registry/src/index/serde-1.0/src/lib.rs",
            "/rustc/9fc6b43126469e3858e2fe86cafb4f0fd5068869/library/alloc/src/vec.rs",
            "/nix/store/abc-ocaml/x.ml",
        ] {
            assert!(library("f", file), "{file}");
        }
        for file in
            ["src/main.rs", "/home/me/lib/ocaml.ml", "lib/ocaml_parser.ml", "vendor", "./a.ml"]
        {
            assert!(!library("f", file), "{file}");
        }
    }

    #[test]
    fn standard_libraries_are_recognised_without_a_path() {
        for name in [
            "std::vector<int, std::allocator<int> >::push_back",
            "alloc::vec::Vec<T>::push",
            "_start",
        ] {
            assert!(library(name, "prog"), "{name}");
        }
        for name in ["stdx::f", "mystd::vec", "my::std::f", "coremain"] {
            assert!(!library(name, "prog"), "{name}");
        }
    }

    #[test]
    fn what_the_tracer_puts_into_a_stack_is_no_code_of_the_program() {
        let stand_in =
            |file, definition| Location { file, line: 0, start_char: 0, end_char: 0, definition };
        assert!(is_library(&stand_in(b"label", b"GET /")));
        assert!(is_library(&stand_in(b"heaptap", b"(12 frames left out)")));
        assert!(is_library(&Location::UNKNOWN));
    }
}
