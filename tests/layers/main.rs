//! The structure that the maps claim is the structure of the code.
//!
//! - Imports between the rooms of the plugin are those that the table in `src/lib.rs` allows.
//! - No crate has a circle of files that import each other.
//! - The tools do not depend on the plugin.
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

/// The column "may use" of the table of rooms in `src/lib.rs`, by room.
fn allowed_imports() -> BTreeMap<String, BTreeSet<String>> {
    let map = std::fs::read_to_string(root().join("src/lib.rs")).expect("src/lib.rs");
    let rows = map.lines().filter_map(|line| line.strip_prefix("//! | ["));
    let names = |cell: &str| -> BTreeSet<String> {
        let quoted = cell.split('`').skip(1).step_by(2);
        quoted.map(str::to_owned).collect()
    };
    rows.map(|row| {
        let cells: Vec<_> = row.split('|').collect();
        let room = names(cells[0]).pop_first().expect("the name of a room");
        (room, names(cells[3]))
    })
    .collect()
}

#[test]
fn rooms_import_only_what_the_map_allows() {
    let allowed = allowed_imports();
    let plugin = Crate::read(&root().join("src"));
    let rooms: BTreeSet<_> = plugin.files().filter_map(Module::room).collect();
    assert!(rooms.iter().eq(allowed.keys()), "the map in src/lib.rs has {:?}", allowed.keys());
    let mut forbidden = Vec::new();
    for (from, to) in plugin.imports() {
        let (Some(here), Some(there)) = (from.room(), to.room()) else { continue };
        if here != there && !allowed[&here].contains(&there) {
            forbidden.push(format!("{from} imports {to}: {here} may not use {there}"));
        }
    }
    assert!(forbidden.is_empty(), "{}", forbidden.join("\n"));
}

#[test]
fn the_map_itself_has_no_circle() {
    let allowed = allowed_imports();
    let arrows = allowed.iter().flat_map(|(from, to)| to.iter().map(move |to| (from, to)));
    let circles = modules::circles(arrows);
    assert!(circles.is_empty(), "{circles:?}");
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

/// `heaptap` without a suffix is the plugin's package.
#[test]
fn the_tools_do_not_depend_on_the_plugin() {
    for folder in source_folders() {
        let manifest = folder.with_file_name("Cargo.toml");
        let text = std::fs::read_to_string(&manifest).expect("a manifest");
        let is_plugin = text.contains("name = \"heaptap\"");
        let links_it = text.contains("name = \"heaptap-ocaml\"");
        let depends = text.lines().any(|line| line.starts_with("heaptap = "));
        assert!(is_plugin || links_it || !depends, "{}", manifest.display());
    }
}
