//! The text of source files: those that the trace names, under the directories that were
//! named with `--source-root`, and nothing else.
//!
//! A trace may come from anywhere, so its names are not trusted: a file counts as being
//! under a directory only if it is when all symbolic links are followed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use heaptap_report::diagnosis::SourceLines;
use serde::Serialize;

use crate::exit_status::Failure;
use crate::text::escape;

/// The largest file that is read.
const MOST_BYTES: u64 = 4 << 20;
/// The most bytes of all files in a page.
const MOST_TOGETHER: usize = 32 << 20;

/// Directories in which source files are looked for.
#[derive(Clone, Default)]
pub(crate) struct SourceRoots(Vec<PathBuf>);

/// The text of a file. The field names are those of the JSON.
#[derive(Debug, Serialize)]
pub(crate) struct SourceText {
    file: String,
    pub(crate) lines: Vec<String>,
}

/// The text of several files.
pub(crate) struct SourceFiles {
    /// By the name of the file.
    pub(crate) lines: BTreeMap<String, Vec<String>>,
    /// How many cannot be read, and how many are too much for a page.
    pub(crate) missing: usize,
    pub(crate) too_large: usize,
}

impl SourceRoots {
    pub(crate) fn new(roots: &[PathBuf]) -> Result<SourceRoots, Failure> {
        let resolved = roots.iter().map(|root| {
            let found = fs::canonicalize(root).and_then(|found| match found.is_dir() {
                true => Ok(found),
                false => Err(io::ErrorKind::NotADirectory.into()),
            });
            found.map_err(|error| {
                let name = escape::path(root);
                Failure::Trouble(format!("--source-root {name}: {error}; name a directory"))
            })
        });
        Ok(SourceRoots(resolved.collect::<Result<_, _>>()?))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text of a file that the trace names, or why there is none.
    pub(crate) fn read(&self, file: &str, named: &BTreeSet<String>) -> Result<SourceText, String> {
        if self.0.is_empty() {
            return Err(
                "no source directory was named; start it again: heaptap serve FILE --source-root DIR"
                    .to_owned(),
            );
        }
        if !named.contains(file) {
            return Err(format!("{file:?} is not a source file of this trace"));
        }
        let path = self.find(file)?;
        let text =
            read_text(&path).map_err(|problem| format!("{}: {problem}", escape::path(&path)))?;
        let lines = text.lines().map(str::to_owned).collect();
        Ok(SourceText { file: file.to_owned(), lines })
    }

    /// The lines around one, if the file is found.
    pub(crate) fn around(&self, file: &str, line: u32) -> Option<SourceLines> {
        const AROUND: u32 = 3;
        const MOST_CHARACTERS: usize = 200;
        let path = self.find(file).ok().filter(|_| line > 0)?;
        let text = read_text(&path).ok()?;
        let first = line.saturating_sub(AROUND).max(1);
        let lines = text.lines().skip(first as usize - 1).take(2 * AROUND as usize + 1);
        let lines: Vec<String> =
            lines.map(|line| line.chars().take(MOST_CHARACTERS).collect()).collect();
        (!lines.is_empty()).then_some(SourceLines { first, lines })
    }

    /// The lines of all these files, as far as they are there and fit, and how many are not.
    pub(crate) fn read_all(&self, named: &BTreeSet<String>) -> SourceFiles {
        let mut all = SourceFiles { lines: BTreeMap::new(), missing: 0, too_large: 0 };
        let mut left = MOST_TOGETHER;
        for file in named.iter().filter(|file| !file.is_empty()) {
            let Ok(text) = self.read(file, named) else {
                all.missing += 1;
                continue;
            };
            let size = text.lines.iter().map(|line| line.len() + 1).sum();
            match left.checked_sub(size) {
                Some(rest) => {
                    left = rest;
                    all.lines.insert(text.file, text.lines);
                }
                None => all.too_large += 1,
            }
        }
        all
    }

    /// Where the file is. Compilers record names relative to the directory of the build, or
    /// absolute ones of another machine, so the longest end of the name that exists in a
    /// directory is taken.
    fn find(&self, file: &str) -> Result<PathBuf, String> {
        if file.contains('\0') {
            return Err(format!("{file:?} is not the name of a file"));
        }
        let path = Path::new(file);
        let parts: Vec<Component<'_>> = path
            .components()
            .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
            .collect();
        let mut outside = false;
        for skipped in 0..parts.len() {
            let end: PathBuf = parts[skipped..].iter().collect();
            for root in &self.0 {
                match fs::canonicalize(root.join(&end)) {
                    Ok(found) if found.starts_with(root) && found.is_file() => return Ok(found),
                    Ok(found) if !found.starts_with(root) => outside = true,
                    _ => {}
                }
            }
        }
        let roots: Vec<String> = self.0.iter().map(|root| escape::path(root).to_string()).collect();
        let roots = roots.join(", ");
        Err(match outside {
            true => format!("{file:?} leads out of {roots}; name its directory with --source-root"),
            false => format!("{file:?} is not in {roots}; name its directory with --source-root"),
        })
    }
}

/// The text of a regular file.
fn read_text(path: &Path) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let is_file = file.metadata().map_err(|error| error.to_string())?.is_file();
    if !is_file {
        return Err("not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("larger than {} MiB; it is not shown", MOST_BYTES >> 20));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_named_files_under_the_roots_are_read() {
        let place = tempfile::tempdir().unwrap();
        let (root, outside) = (place.path().join("root"), place.path().join("outside"));
        fs::create_dir_all(root.join("src")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(root.join("src/a.ml"), "let a = 1\nlet b = \u{e9}\n").unwrap();
        fs::write(outside.join("secret.ml"), "secret").unwrap();
        fs::write(root.join("large.ml"), vec![b'x'; MOST_BYTES as usize + 1]).unwrap();
        symlink(outside.join("secret.ml"), root.join("link.ml")).unwrap();
        symlink(&outside, root.join("directory")).unwrap();
        symlink(root.join("src"), root.join("inside")).unwrap();
        let absolute = outside.join("secret.ml").display().to_string();
        let names = [
            "src/a.ml",
            "/workspace_root/src/a.ml",
            "./src/../src/a.ml",
            "inside/a.ml",
            "../outside/secret.ml",
            "src/../../outside/secret.ml",
            absolute.as_str(),
            "link.ml",
            "directory/secret.ml",
            "src",
            "large.ml",
            "src/a.ml\0",
            "..",
            "",
            "none.ml",
        ];
        let named: BTreeSet<String> = names.map(str::to_owned).into();
        let roots = SourceRoots::new(std::slice::from_ref(&root)).unwrap();
        for name in &names[..4] {
            let text = roots.read(name, &named).unwrap();
            assert_eq!(text.lines, ["let a = 1", "let b = \u{e9}"], "{name}");
        }
        for name in &names[4..] {
            let refused = roots.read(name, &named).unwrap_err();
            assert!(!refused.contains("not a source file"), "{name}: {refused}");
        }
        let all = roots.read_all(&named);
        assert!(all.lines.keys().eq([
            "./src/../src/a.ml",
            "/workspace_root/src/a.ml",
            "inside/a.ml",
            "src/a.ml"
        ]));
        // The empty name is of no file.
        assert_eq!((all.missing, all.too_large), (names.len() - 5, 0));
        assert!(roots.read("large.ml", &named).unwrap_err().contains("larger than 4 MiB"));
        assert!(roots.read("link.ml", &named).unwrap_err().contains("leads out of"));
        assert!(roots.read("src/b.ml", &named).unwrap_err().contains("not a source file"));
        let none = SourceRoots::new(&[]).unwrap().read("src/a.ml", &named).unwrap_err();
        assert!(none.contains("--source-root"), "{none}");
        let missing = SourceRoots::new(&[root.join("none")]).err().unwrap();
        assert!(missing.message().unwrap().contains("name a directory"));
    }
}
