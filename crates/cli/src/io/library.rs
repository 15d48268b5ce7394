//! Finds the library that is loaded into programs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use heaptap_settings as settings;

use crate::exit_status::Failure;
use crate::io::executable;

const NAME: &str = "libheaptap.so";

/// The library: named by `HEAPTAP_LIBRARY`, or found beside this
/// program when both are installed or built.
pub(crate) fn find() -> Result<OsString, Failure> {
    let named = std::env::var_os(settings::LIBRARY.name).map(PathBuf::from);
    // Without /proc, as in a chroot: as this program was called.
    let called = || std::env::args_os().next().and_then(|name| executable::locate(&name));
    let program = std::env::current_exe().ok().or_else(called);
    let candidates = match &named {
        Some(named) => vec![named.clone()],
        None => program.as_deref().map(places).unwrap_or_default(),
    };
    let found = candidates.iter().find_map(|path| path.canonicalize().ok().filter(|p| p.is_file()));
    let found = found.ok_or_else(|| {
        let variable = settings::LIBRARY.name;
        if candidates.is_empty() {
            return Failure::Trouble(format!(
                "{NAME} is not found, since the system does not say where this program is (is \
                 /proc mounted?); set {variable} to where it is"
            ));
        }
        let looked: Vec<_> = candidates.iter().map(|path| path.display().to_string()).collect();
        let looked = looked.join(", ");
        Failure::Trouble(format!("{NAME} is not in {looked}; set {variable} to where it is"))
    })?;
    // The loader splits the list at these characters, and they cannot be escaped.
    if found.as_os_str().as_encoded_bytes().iter().any(|byte| matches!(byte, b':' | b' ')) {
        let message =
            format!("{}: a path with a colon or a space cannot be preloaded", found.display());
        return Err(Failure::Trouble(message));
    }
    Ok(found.into_os_string())
}

/// The directories of an installed library, seen from that of the program: the usual
/// one, that of distributions with two word sizes, and that of Debian. A library that
/// was built is beside the program.
const DIRECTORIES: [&str; 4] = ["../lib", "../lib64", "../lib/x86_64-linux-gnu", ""];

/// Where the library of this program may be.
fn places(program: &Path) -> Vec<PathBuf> {
    let Some(directory) = program.parent() else { return Vec::new() };
    DIRECTORIES.iter().map(|library| directory.join(library).join(NAME)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lies_beside_the_program_or_in_lib() {
        let places = places(Path::new("/usr/bin/heaptap"));
        let expected = [
            "/usr/bin/../lib/libheaptap.so",
            "/usr/bin/../lib64/libheaptap.so",
            "/usr/bin/../lib/x86_64-linux-gnu/libheaptap.so",
            "/usr/bin/libheaptap.so",
        ];
        assert_eq!(places, expected.map(PathBuf::from));
    }
}
