//! Which program this process runs.
//!
//! That is the executable, unless the executable is an interpreter: a runtime that knows says so
//! before anything is named after the program.

use std::path::PathBuf;
use std::sync::OnceLock;

static INTERPRETED: OnceLock<PathBuf> = OnceLock::new();

/// The executable interprets the program in this file. Before `main`; the first call counts.
pub(crate) fn set_interpreted(program: PathBuf) {
    let _ = INTERPRETED.set(program);
}

/// The file of the program that the executable interprets, if it does.
pub(crate) fn interpreted() -> Option<&'static PathBuf> {
    INTERPRETED.get()
}

/// The file of the program; empty if it is not known. The name of an executable that was deleted
/// ends in ` (deleted)`.
pub(crate) fn path() -> PathBuf {
    match interpreted() {
        Some(program) => program.clone(),
        None => std::env::current_exe().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_executable_is_its_own_program() {
        assert_eq!(interpreted(), None);
        assert_eq!(path(), std::env::current_exe().unwrap());
    }
}
