//! Finalisers and ephemerons (`runtime/caml/finalise.h` and `weak.h`, 5.3.0).

use heaptap_heap::FinaliserKind;

use super::domains::Domains;
use super::variables::Variables;
use crate::runtimes::ocaml::heap::{BlockWriter, FINALISER_WORDS};
use crate::snapshot::WalkError;
use crate::tracer::WORD;

/// `struct caml_final_info`: words of two `struct finalisable` (table, old, young, size), of
/// the list of those that are due, and of the next one among orphans.
const TABLES: [(usize, FinaliserKind); 2] = [(0, FinaliserKind::First), (5, FinaliserKind::Last)];
const YOUNG: usize = 2;
const DUE: usize = 10;
const NEXT: usize = 13;

/// `struct final_todo`: next, size, items.
const DUE_SIZE: usize = WORD;
const DUE_ITEMS: usize = 2 * WORD;

/// `struct caml_ephe_info`: the heads of its two lists.
const EPHEMERONS: [usize; 2] = [0, 1];

/// Writes those of all domains, and those that domains have left behind.
pub(super) fn write(
    variables: &Variables,
    domains: &Domains,
    writer: &mut BlockWriter<'_, '_>,
) -> Result<(), WalkError> {
    let words = writer.words;
    for state in domains.waiting() {
        write_info(writer, words.field(state, variables.layout.final_info))?;
    }
    let mut orphan = words.field(variables.orphans, 1);
    while orphan != 0 {
        write_info(writer, orphan)?;
        orphan = words.field(orphan, NEXT);
    }
    let none = words.word(variables.ephemeron_none);
    for state in domains.waiting() {
        let info = words.field(state, variables.heap.ephe_info);
        for list in EPHEMERONS {
            writer.ephemerons(words.field(info, list), none)?;
        }
    }
    writer.ephemerons(words.field(variables.orphans, 0), none)
}

fn write_info(writer: &mut BlockWriter<'_, '_>, info: usize) -> Result<(), WalkError> {
    let words = writer.words;
    for (table, kind) in TABLES {
        let (start, entries) = (words.field(info, table), words.field(info, table + YOUNG));
        write_entries(writer, start, entries, kind)?;
    }
    let mut due = words.field(info, DUE);
    while due != 0 {
        let entries = usize::try_from(words.int(due + DUE_SIZE)).unwrap_or(0);
        write_entries(writer, due + DUE_ITEMS, entries, FinaliserKind::Pending)?;
        due = words.field(due, 0);
    }
    Ok(())
}

fn write_entries(
    writer: &mut BlockWriter<'_, '_>,
    start: usize,
    entries: usize,
    kind: FinaliserKind,
) -> Result<(), WalkError> {
    let words = writer.words;
    for index in 0..entries {
        let entry = start + index * FINALISER_WORDS * WORD;
        writer.finaliser(kind, words.field(entry, 0), words.field(entry, 1))?;
    }
    Ok(())
}
