//! A heap snapshot as lines of text. The verb's help documents the format.

use std::io::{self, BufWriter, Write};

use heaptap_heap::{
    Block, Completion, Ephemeron, FinaliserKind, Item, KindNamespace, OutsideArea, OutsideKind,
    Reader, Root, RootOwner, SegmentKind,
};

use crate::exit_status::{Failure, VerbResult, Verdict};
use crate::io::input::Input;
use crate::io::notices::say;
use crate::io::output::raw_stdout;
use crate::text::escape;

/// Prints every item of a snapshot.
pub(super) fn print(input: &Input) -> VerbResult {
    let unwritten = |error: io::Error| Failure::writing("standard output", &error);
    let mut reader =
        Reader::new(input.snapshot_bytes()).map_err(|error| input.snapshot_failure(&error))?;
    let mut out = BufWriter::with_capacity(1 << 18, raw_stdout().map_err(unwritten)?);
    let mut line = Vec::new();
    let (verdict, error) = loop {
        match reader.next_item() {
            Ok(Some(item)) => {
                line.clear();
                // Writing to a vector does not fail.
                let _ = put_item(&mut line, &item);
                line.push(b'\n');
                out.write_all(&line).map_err(unwritten)?;
            }
            Ok(None) => break (Verdict::Sound, None),
            Err(error) => break (Verdict::Defective, Some(error)),
        }
    };
    out.flush().map_err(unwritten)?;
    input.end_progress();
    let name = input.name();
    if let Some(error) = error {
        say(&format!("{name}: {error}; the rest is left out"));
    }
    if let Completion::CutShort { valid } = reader.completion() {
        say(&format!("{name}: the snapshot is cut short after {valid} bytes; the rest is missing"));
    }
    Ok(verdict)
}

fn put_item(line: &mut Vec<u8>, item: &Item<'_>) -> io::Result<()> {
    match *item {
        Item::Meta { key, value } => {
            match key.name() {
                Some(name) => write!(line, "meta {}", name.replace(' ', "-"))?,
                None => write!(line, "meta {}", key.0)?,
            }
            put_text(line, value);
        }
        Item::Segment(segment) => {
            let kind = match segment.kind {
                SegmentKind::Major => "major",
                SegmentKind::Young => "young",
                SegmentKind::Large => "large",
                SegmentKind::Host => "other",
            };
            write!(line, "segment {kind} {:#x} {}", segment.start, segment.words)?;
        }
        Item::Block(block) => put_block(line, &block)?,
        Item::Root(root) => put_root(line, &root)?,
        Item::Finaliser(finaliser) => {
            let kind = match finaliser.kind {
                FinaliserKind::First => "first",
                FinaliserKind::Last => "last",
                FinaliserKind::Pending => "pending",
            };
            write!(line, "finaliser {kind} {:#x} {:#x}", finaliser.value, finaliser.function)?;
        }
        Item::Ephemeron(ephemeron) => put_ephemeron(line, &ephemeron)?,
        Item::Module { id, name } => {
            write!(line, "module {id}")?;
            put_text(line, name);
        }
        Item::Thread { id, domain, name } => {
            write!(line, "thread {id} {domain}")?;
            put_text(line, name);
        }
        Item::CodeSeen(address) => write!(line, "code {address:#x}")?,
        Item::CustomKind { operations, identifier } => {
            write!(line, "custom {operations:#x}")?;
            put_text(line, identifier);
        }
        Item::KindName { namespace, kind, name } => {
            let namespace = match namespace {
                KindNamespace::Tag => "tag",
                KindNamespace::HostRoot => "root",
            };
            write!(line, "kind {namespace} {kind}")?;
            put_text(line, name);
        }
        Item::Name(name) => {
            write!(line, "name {:#x}", name.address)?;
            put_text(line, name.function);
            put_text(line, name.file);
            write!(line, ":{}", name.line)?;
        }
        Item::Tracked(followed) => {
            write!(line, "followed {:#x} {}", followed.address, followed.id)?;
        }
        Item::OutsideArea(area) => {
            let kind = match area.kind {
                OutsideKind::Allocated => "allocated",
                OutsideKind::Mapped => "mapped",
            };
            let OutsideArea { block, operations, start, bytes, .. } = area;
            write!(line, "outside {kind} {block:#x} {operations:#x} {start:#x} {bytes}")?;
        }
        // A kind that the documented format has no line for.
        _ => line.extend_from_slice(b"unknown"),
    }
    Ok(())
}

fn put_block(line: &mut Vec<u8>, block: &Block<'_>) -> io::Result<()> {
    let word = if block.is_first { "block" } else { "more" };
    write!(line, "{word} {:#x} {} {}", block.address, block.words, block.tag)?;
    for pointer in block.pointers {
        write!(line, " {}={:#x}", pointer.field, pointer.target)?;
    }
    for code in block.codes {
        write!(line, " code:{}={:#x}", code.field, code.address)?;
    }
    if let Some(custom) = block.custom {
        write!(line, " custom={:#x} outside={}", custom.operations, custom.outside_bytes)?;
    }
    if let Some(string) = block.string {
        line.extend_from_slice(b" string=");
        escape::put(line, string, |byte| byte == b' ');
    }
    Ok(())
}

fn put_root(line: &mut Vec<u8>, root: &Root) -> io::Result<()> {
    write!(line, "root {:#x} ", root.target)?;
    match root.owner {
        RootOwner::Global { module, field } => write!(line, "global {module} {field}"),
        RootOwner::Stack { thread, depth, return_address, slot } => {
            write!(line, "stack {thread} {depth} {return_address:#x} {slot}")
        }
        RootOwner::LocalC { thread } => write!(line, "local {thread}"),
        RootOwner::GlobalC { slot } => write!(line, "variable {slot:#x}"),
        RootOwner::Hook { slot } => write!(line, "hook {slot:#x}"),
        RootOwner::Continuation { block, depth, return_address, slot } => {
            write!(line, "continuation {block:#x} {depth} {return_address:#x} {slot}")
        }
        RootOwner::DomainLocal { domain } => write!(line, "domain-local {domain}"),
        RootOwner::Handler { thread, fiber, return_address, slot } => {
            write!(line, "handler {thread} {fiber} {return_address:#x} {slot}")
        }
        RootOwner::Host { kind, index } => write!(line, "host {kind} {index}"),
    }
}

fn put_ephemeron(line: &mut Vec<u8>, ephemeron: &Ephemeron<'_>) -> io::Result<()> {
    let word = if ephemeron.is_first { "ephemeron" } else { "keys" };
    write!(line, "{word} {:#x}", ephemeron.address)?;
    for key in ephemeron.keys {
        write!(line, " {}={:#x}", key.index, key.target)?;
    }
    if let Some(data) = ephemeron.data {
        write!(line, " data={data:#x}")?;
    }
    Ok(())
}

/// A text, which is one field; a dash for an empty one.
fn put_text(line: &mut Vec<u8>, text: &[u8]) {
    line.push(b' ');
    if text.is_empty() {
        line.push(b'-');
    } else {
        escape::put(line, text, |byte| byte == b' ');
    }
}
