//! Names of source files and directories in the data and debug information of a program.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::linked::find;
use super::marshal::{Marshalled, Value, length};

/// More names of either kind are not kept.
const MOST_NAMES: usize = 2048;

/// Longer names are none.
const LONGEST_NAME: usize = 1024;

/// dune says this instead of the directory that it built in.
const DUNE_ROOT: &str = "/workspace_root";

/// Where source files are, as the program says.
#[derive(Debug, Default)]
pub(crate) struct SourceNames {
    /// Absolute directories.
    pub(crate) absolute: BTreeSet<PathBuf>,
    /// Directories below a root that is not known; empty for the root itself.
    pub(crate) relative: BTreeSet<PathBuf>,
    /// The runtime that bytecode names in its first line.
    pub(crate) interpreter: Option<PathBuf>,
}

impl SourceNames {
    /// From strings that end with a zero: names of `.ml` files, and directories in which
    /// something was compiled.
    pub(super) fn add_all(&mut self, bytes: &[u8]) {
        let mut from = 0;
        while let Some(found) = find(bytes, b".ml\0", from) {
            from = found + 4;
            if let Some(name) = bytes.get(..found).and_then(last_name) {
                self.add_file(name);
            }
        }
        for mark in [&b"/_build/"[..], b"/.opam"] {
            let mut from = 0;
            while let Some(found) = find(bytes, mark, from) {
                from = found + mark.len();
                let before = bytes.get(..found).and_then(last_name);
                let after = bytes.get(found..).map(|rest| rest.split(|byte| *byte == 0).next());
                if let (Some(before), Some(Some(after))) = (before, after)
                    && let Ok(after) = std::str::from_utf8(after)
                {
                    self.add_directory(Path::new(&format!("{before}{after}")));
                }
            }
        }
    }

    /// From the debug information of bytecode: lists of directories among its events
    /// (`bytecomp/emitcode.ml`).
    pub(super) fn add_lists(&mut self, bytes: &[u8]) {
        let mut from = 0;
        while let Some(found) = find(bytes, b"\x84\x95\xa6\xbe", from) {
            from = found + 4;
            let Some(rest) = bytes.get(found..) else { return };
            let is_short = length(rest).is_some_and(|(_, data)| data < 1 << 16);
            let Some(value) = is_short.then(|| Marshalled::read(rest)).flatten() else { continue };
            for text in value.list(value.root()).unwrap_or_default() {
                if let Value::Text(text) = text
                    && let Ok(text) = std::str::from_utf8(text)
                {
                    self.add_directory(Path::new(text));
                }
            }
        }
    }

    fn add_file(&mut self, name: &str) {
        self.add_directory(Path::new(name).parent().unwrap_or(Path::new("")));
    }

    fn add_directory(&mut self, directory: &Path) {
        let text = directory.as_os_str().len();
        if text > LONGEST_NAME {
            return;
        }
        let inner = directory.strip_prefix(DUNE_ROOT).unwrap_or(directory);
        let set = if inner.is_absolute() { &mut self.absolute } else { &mut self.relative };
        let is_plain = |part| !matches!(part, Component::ParentDir | Component::Prefix(_));
        if set.len() < MOST_NAMES && inner.components().all(is_plain) {
            let clean = inner.components().filter(|part| !matches!(part, Component::CurDir));
            set.insert(clean.collect());
        }
    }
}

/// The name that ends the bytes.
fn last_name(bytes: &[u8]) -> Option<&str> {
    let is_part = |byte: &u8| *byte >= b' ' && *byte != 0x7f;
    let length = bytes.iter().rev().take(LONGEST_NAME).take_while(|byte| is_part(byte)).count();
    std::str::from_utf8(bytes.get(bytes.len().checked_sub(length)?..)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(bytes: &[u8]) -> (Vec<String>, Vec<String>) {
        let mut names = SourceNames::default();
        names.add_all(bytes);
        let text = |set: BTreeSet<PathBuf>| {
            set.iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        (text(names.absolute), text(names.relative))
    }

    #[test]
    fn directories_of_sources_are_found() {
        let bytes =
            b"\x01list.ml\0\x02./src/a.ml\0/home/me/p/b.ml\0/workspace_root/lib/c.ml\0x.mli\0";
        assert_eq!(
            names(bytes),
            (vec!["/home/me/p".into()], vec![String::new(), "lib".into(), "src".into()])
        );
    }

    #[test]
    fn directories_of_builds_are_found() {
        let bytes = b"x\0/home/me/p/_build/default/src\0y";
        assert_eq!(names(bytes), (vec!["/home/me/p/_build/default/src".into()], vec![]));
    }

    #[test]
    fn no_name_leads_upwards() {
        assert_eq!(names(b"\0../../../etc/x.ml\0/a/../../b/x.ml\0").0, Vec::<String>::new());
    }

    #[test]
    fn lists_of_directories_are_found() {
        // `[ "/tmp/n" ]`, as OCaml 4.13.1 writes it.
        let mut bytes = b"events\x84\x95\xa6\xbe\0\0\0\x09".to_vec();
        bytes.extend([0; 12]);
        bytes.extend(b"\xa0\x26/tmp/n\x40");
        let mut names = SourceNames::default();
        names.add_lists(&bytes);
        assert_eq!(names.absolute, BTreeSet::from([PathBuf::from("/tmp/n")]));
    }
}
