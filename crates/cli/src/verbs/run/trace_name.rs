//! The names of the trace and of snapshots, from the options.
//!
//! The traced processes open the files, each wherever it is at that time. So a relative
//! name is made absolute here, in the directory where the user typed it.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use heaptap_settings::file_name;

use crate::exit_status::Failure;

/// The absolute pattern for the environment of the traced program.
pub(super) fn resolve(option: &str, output: &OsStr) -> Result<OsString, Failure> {
    refuse_no_file(option, output)?;
    if Path::new(output).is_absolute() {
        return Ok(output.to_owned());
    }
    let directory = std::env::current_dir().map_err(|error| {
        let name = crate::text::escape::path(Path::new(output));
        Failure::Trouble(format!(
            "{option} {name}: the current directory is unknown: {error}; give an absolute name"
        ))
    })?;
    Ok(below(&directory, output))
}

/// Refuses values that name no file.
fn refuse_no_file(option: &str, output: &OsStr) -> Result<(), Failure> {
    let message = match output.as_encoded_bytes() {
        b"" => "'' names no file: give a name such as trace.ctf",
        b"-" => {
            "-: standard output belongs to the program, so nothing can be written there: name a \
             file or a FIFO (a file called - is ./-)"
        }
        _ => return Ok(()),
    };
    Err(Failure::Trouble(format!("{option} {message}")))
}

/// The pattern for a file below `directory`, whose own name has no placeholders.
fn below(directory: &Path, output: &OsStr) -> OsString {
    Path::new(&file_name::literal(directory.as_os_str())).join(output).into_os_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_name_is_below_the_current_directory() {
        let here = std::env::current_dir().unwrap();
        let resolved = |name: &str| resolve("-o", name.as_ref()).unwrap();
        assert_eq!(resolved("t/%e-%p.ctf"), below(&here, "t/%e-%p.ctf".as_ref()));
        assert_eq!(resolved("/t/%p"), "/t/%p");
        assert_eq!(resolved("./-"), below(&here, "./-".as_ref()));
    }

    #[test]
    fn percent_signs_of_the_directory_are_no_placeholders() {
        assert_eq!(below(Path::new("/a/50%p"), "x-%p.ctf".as_ref()), "/a/50%%p/x-%p.ctf");
    }

    #[test]
    fn what_names_no_file_is_refused() {
        for name in ["", "-"] {
            let failure = resolve("-o", name.as_ref()).unwrap_err();
            assert!(failure.message().unwrap().starts_with("-o "), "{failure:?}");
        }
    }
}
