//! Which file of a crate imports which, by the paths in their text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

/// A module by its path from the crate's root, which itself is empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Module(Vec<String>);

impl Module {
    /// The top folder or file it belongs to; none for the root.
    pub(crate) fn room(&self) -> Option<String> {
        self.0.first().cloned()
    }

    /// The verb of the program that it belongs to.
    pub(crate) fn verb(&self) -> Option<&str> {
        match self.0.as_slice() {
            [floor, verb, ..] if floor == "verbs" => Some(verb),
            _ => None,
        }
    }
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "crate::{}", self.0.join("::"))
    }
}

/// The sources of one crate: each file that is not for tests, and its text.
pub(crate) struct Crate {
    files: BTreeMap<Module, String>,
}

impl Crate {
    pub(crate) fn read(folder: &Path) -> Crate {
        let mut files = BTreeMap::new();
        read_folder(folder, &mut Vec::new(), &mut files);
        assert!(!files.is_empty(), "no sources in {}", folder.display());
        Crate { files }
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &Module> {
        self.files.keys()
    }

    /// Every import of one file by another. The root's are left out: it is the map.
    pub(crate) fn imports(&self) -> BTreeSet<(Module, Module)> {
        let mut imports = BTreeSet::new();
        for (from, text) in self.files.iter().filter(|(from, _)| !from.0.is_empty()) {
            for path in paths(text) {
                let Some(to) = self.resolve(from, &path) else { continue };
                if to != *from && !to.0.is_empty() {
                    imports.insert((from.clone(), to));
                }
            }
        }
        imports
    }

    /// The file that a path inside `from` leads into.
    fn resolve(&self, from: &Module, path: &[String]) -> Option<Module> {
        let mut at = from.0.clone();
        let mut rest = path.iter().peekable();
        match rest.next()?.as_str() {
            "crate" => at.clear(),
            "super" => drop(at.pop()),
            _ => {}
        }
        while rest.next_if(|step| *step == "super").is_some() {
            at.pop();
        }
        for step in rest {
            at.push(step.clone());
            if !self.files.contains_key(&Module(at.clone())) {
                at.pop();
                break;
            }
        }
        Some(Module(at))
    }
}

fn read_folder(folder: &Path, at: &mut Vec<String>, files: &mut BTreeMap<Module, String>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry of a folder").path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a name").to_owned();
        if stem.ends_with("tests") || stem == "testing" {
            continue;
        }
        if path.is_dir() {
            at.push(stem);
            read_folder(&path, at, files);
            at.pop();
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let is_folder_itself = matches!(stem.as_str(), "mod" | "lib" | "main");
            let mut module = at.clone();
            module.extend((!is_folder_itself).then_some(stem));
            let text = std::fs::read_to_string(&path).expect("a source file");
            files.insert(Module(module), without_comments_and_tests(&text));
        }
    }
}

/// Unit tests are a `mod … {` at the end of a file.
fn without_comments_and_tests(text: &str) -> String {
    let mut kept = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let is_for_tests = line.trim_start().starts_with("#[cfg(test)]");
        if is_for_tests
            && lines.peek().is_some_and(|next| next.contains("mod ") && next.ends_with('{'))
        {
            break;
        }
        let code = line.split("//").next().unwrap_or("");
        kept += code;
        kept.push('\n');
    }
    kept
}

/// Every path of the text that begins at the crate, the parent or the module itself.
fn paths(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in text.match_indices(start) {
            let before = text[..at].chars().next_back();
            if !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$') {
                tree(&text[at..], &mut Vec::new(), &mut found);
            }
        }
    }
    found
}

/// Reads `a::b::{c, d::e}` into one path for each of its ends; returns the rest.
fn tree<'a>(text: &'a str, prefix: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> &'a str {
    let depth = prefix.len();
    let mut rest = text.trim_start();
    loop {
        if let Some(mut group) = rest.strip_prefix('{') {
            loop {
                group = tree(group, prefix, found).trim_start();
                match group.strip_prefix(',') {
                    Some(next) => group = next,
                    None => break,
                }
            }
            rest = group.trim_start().strip_prefix('}').unwrap_or(group);
            break;
        }
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        prefix.push(rest[..end].to_owned());
        match rest[end..].strip_prefix("::") {
            Some(next) => rest = next.trim_start(),
            None => {
                found.push(prefix.clone());
                rest = &rest[end..];
                let alias = rest.trim_start().strip_prefix("as ");
                rest = alias.map_or(rest, |alias| {
                    alias.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_')
                });
                break;
            }
        }
    }
    prefix.truncate(depth);
    rest
}

/// The groups of nodes that reach each other.
pub(crate) fn circles<'a, T: Ord + Clone + 'a>(
    arrows: impl Iterator<Item = (&'a T, &'a T)>,
) -> Vec<BTreeSet<T>> {
    let mut next: BTreeMap<T, BTreeSet<T>> = BTreeMap::new();
    for (from, to) in arrows {
        next.entry(from.clone()).or_default().insert(to.clone());
    }
    let reach = |from: &T| {
        let mut seen = BTreeSet::new();
        let mut open: Vec<T> = next.get(from).into_iter().flatten().cloned().collect();
        while let Some(node) = open.pop() {
            if seen.insert(node.clone()) {
                open.extend(next.get(&node).into_iter().flatten().cloned());
            }
        }
        seen
    };
    let reached: BTreeMap<T, BTreeSet<T>> =
        next.keys().map(|node| (node.clone(), reach(node))).collect();
    let mut circles = BTreeSet::new();
    for (node, seen) in &reached {
        if seen.contains(node) {
            let circle = seen
                .iter()
                .filter(|other| reached.get(other).is_some_and(|back| back.contains(node)));
            circles.insert(circle.cloned().collect::<BTreeSet<T>>());
        }
    }
    circles.into_iter().collect()
}

#[test]
fn paths_are_read_with_their_groups() {
    let text = "use crate::a::{b, c::{d, e as f}, self}; super::super::g::h(1); macro_crate::x";
    let read: Vec<String> = paths(text).iter().map(|path| path.join("::")).collect();
    assert_eq!(
        read,
        ["crate::a::b", "crate::a::c::d", "crate::a::c::e", "crate::a::self", "super::super::g::h"]
    );
}

#[test]
fn a_circle_is_found_and_a_line_is_none() {
    let arrows = [(1, 2), (2, 3), (3, 1), (3, 4)];
    let found = circles(arrows.iter().map(|(from, to)| (from, to)));
    assert_eq!(found, [BTreeSet::from([1, 2, 3])]);
}
