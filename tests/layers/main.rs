//! The structure that the maps claim is the structure of the code.
//!
//! - Imports between the rooms of the plugin are those that the table in `src/lib.rs` allows, those
//!   between the floors of the program those of `crates/cli/src/main.rs`.
//! - Crates depend on each other as the table in `docs/architecture.md` has it.
//! - No crate has a circle of files that import each other, and no verb imports another one.
//!
//! The sources are read as text: paths that begin with `crate::`, `super::` or `self::` are
//! resolved to files. Test code is left out; it may look into anything.

mod modules;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use modules::{Crate, Module};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The plugin's sources, and those of every crate beside it.
fn source_folders() -> Vec<PathBuf> {
    let crates = std::fs::read_dir(root().join("crates")).expect("crates/");
    let mut folders: Vec<_> =
        crates.map(|entry| entry.expect("an entry of crates/").path().join("src")).collect();
    folders.push(root().join("src"));
    folders.retain(|folder| folder.is_dir());
    folders.sort();
    folders
}

/// The rows of a table by the name in their first column, with the names in the last one, "may use".
fn allowed_uses(file: &str, row_prefix: &str) -> BTreeMap<String, BTreeSet<String>> {
    let map = std::fs::read_to_string(root().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
    let rows = map.lines().filter_map(|line| line.strip_prefix(row_prefix));
    let names = |cell: &str| -> BTreeSet<String> {
        let quoted = cell.split('`').skip(1).step_by(2);
        quoted.map(str::to_owned).collect()
    };
    rows.map(|row| {
        let mut cells = row.trim_end().trim_end_matches('|').split('|');
        let first = names(cells.next().unwrap_or_default()).pop_first();
        let name = first.unwrap_or_else(|| panic!("{file}: no name in {row}"));
        (name, names(cells.next_back().unwrap_or_default()))
    })
    .collect()
}

/// Where each crate's map of its rooms is.
const MAPS: [(&str, &str); 2] =
    [("src", "src/lib.rs"), ("crates/cli/src", "crates/cli/src/main.rs")];

#[test]
fn rooms_import_only_what_the_map_allows() {
    let mut forbidden = Vec::new();
    for (folder, map) in MAPS {
        let allowed = allowed_uses(map, "//! | [");
        let sources = Crate::read(&root().join(folder));
        let rooms: BTreeSet<_> = sources.files().filter_map(Module::room).collect();
        assert!(rooms.iter().eq(allowed.keys()), "the map in {map} has {:?}", allowed.keys());
        for (from, to) in sources.imports() {
            let (Some(here), Some(there)) = (from.room(), to.room()) else { continue };
            if here != there && !allowed[&here].contains(&there) {
                forbidden.push(format!("{from} imports {to}: {here} may not use {there}"));
            }
        }
    }
    assert!(forbidden.is_empty(), "{}", forbidden.join("\n"));
}

#[test]
fn the_maps_themselves_have_no_circle() {
    let rooms = MAPS.map(|(_, map)| allowed_uses(map, "//! | ["));
    for allowed in rooms.into_iter().chain([allowed_uses(ARCHITECTURE, CRATE_ROW)]) {
        let arrows = allowed.iter().flat_map(|(from, to)| to.iter().map(move |to| (from, to)));
        let circles = modules::circles(arrows);
        assert!(circles.is_empty(), "{circles:?}");
    }
}

#[test]
fn no_verb_imports_another() {
    let sources = Crate::read(&root().join("crates/cli/src"));
    let between = |(from, to): &(Module, Module)| matches!((from.verb(), to.verb()), (Some(here), Some(there)) if here != there);
    let found: Vec<_> = sources.imports().into_iter().filter(between).collect();
    let lines: Vec<_> = found.iter().map(|(from, to)| format!("{from} imports {to}")).collect();
    assert!(lines.is_empty(), "{}", lines.join("\n"));
}

const ARCHITECTURE: &str = "docs/architecture.md";
const CRATE_ROW: &str = "| crate ";

/// The packages of this repository that a manifest lists as dependencies, by their folders.
fn dependencies(manifest: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(manifest).expect("a manifest");
    let section = text.split("\n[").find_map(|part| part.strip_prefix("dependencies]"));
    let lines = section.unwrap_or_default().lines();
    let names = lines.filter_map(|line| line.strip_prefix("heaptap")?.split(['.', ' ']).next());
    names.map(|name| folder_of(name.trim_start_matches('-'))).collect()
}

/// `heaptap` without a suffix is the plugin's package, in `src`.
fn folder_of(package: &str) -> String {
    if package.is_empty() { "src".to_owned() } else { format!("crates/{package}") }
}

#[test]
fn crates_depend_on_each_other_as_the_architecture_says() {
    let allowed = allowed_uses(ARCHITECTURE, CRATE_ROW);
    let mut found = BTreeMap::new();
    for sources in source_folders() {
        let folder = sources.parent().expect("a crate's folder");
        let name = match folder.strip_prefix(root()).expect("within the repository").to_str() {
            Some("") => "src".to_owned(),
            Some(name) => name.to_owned(),
            None => panic!("{}", folder.display()),
        };
        found.insert(name, dependencies(&folder.join("Cargo.toml")));
    }
    for (name, uses) in &found {
        assert_eq!(
            allowed.get(name),
            Some(uses),
            "{name}: its row in {ARCHITECTURE}, its manifest"
        );
    }
    assert!(allowed.keys().eq(found.keys()), "{ARCHITECTURE} names {:?}", allowed.keys());
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut found = String::new();
    for folder in source_folders() {
        let sources = Crate::read(&folder);
        let imports = sources.imports();
        for circle in modules::circles(imports.iter().map(|(from, to)| (from, to))) {
            let within = |(from, to): &&(_, _)| circle.contains(from) && circle.contains(to);
            found += &format!("a circle in {}:\n", folder.display());
            for (from, to) in imports.iter().filter(within) {
                found += &format!("  {from} -> {to}\n");
            }
        }
    }
    assert!(found.is_empty(), "{found}");
}
