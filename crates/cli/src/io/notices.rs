//! Messages on standard error, about defects and losses above all.

use std::io::{Write as _, stderr};

use heaptap_report::figures::units::{count, short_duration};
use heaptap_trace::{CutReason, CutShort, FileKind, Located, Losses, Unreadable};

use crate::exit_status::Verdict;

/// Prints a message on standard error. Failure to do so is ignored.
pub(crate) fn say(message: &str) {
    let _ = writeln!(stderr(), "heaptap: {message}");
}

/// A defect that ends the reading, with the remedy if there is one.
pub(crate) fn with_remedy(located: &Located) -> String {
    let remedy = match located.defect.unreadable() {
        Some(Unreadable::Empty) => "the traced program wrote nothing: did it run, and to its end?",
        Some(Unreadable::Other { found }) if located.offset == 0 => {
            return format!("not a memtrace file; {}", other_file(found));
        }
        Some(Unreadable::Version { newer: true }) => "a newer heaptap is needed",
        Some(Unreadable::Truncated) if located.packet == 0 => {
            "nothing can be read before the first packet is whole: copy the file again"
        }
        _ => return located.to_string(),
    };
    format!("{located}; {remedy}")
}

/// Whether the defect means that the file is no trace, or none that can be read.
pub(crate) fn is_no_trace(located: &Located) -> bool {
    match located.defect.unreadable() {
        Some(Unreadable::Empty) => true,
        Some(Unreadable::Other { .. }) => located.offset == 0,
        Some(Unreadable::Version { .. } | Unreadable::Truncated) => located.packet == 0,
        None => false,
    }
}

/// What a file that does not begin like a trace may be.
fn other_file(found: u32) -> String {
    let program = match FileKind::of(&found.to_le_bytes()) {
        Some(FileKind::HeapSnapshot) => {
            return "it is a heap snapshot: `heaptap info FILE` sums it up, `heaptap heap FILE` shows what holds \
                    its memory, `heaptap snapshot --check FILE` checks it, and `heaptap export FILE` takes it \
                    from a file, not from a pipe"
                .to_owned();
        }
        // Only a verb that tails a trace gets here with one of these.
        Some(FileKind::Gzip | FileKind::Zstd) => {
            return "it is compressed, and only a trace that is written as it is can be followed: \
                    decompress it, or read it by `heaptap report FILE`"
                .to_owned();
        }
        Some(FileKind::Xz) => "xzcat",
        Some(FileKind::Bzip2) => "bzcat",
        _ => return format!("it begins with {found:#010x} instead of 0xc1fc1fc1"),
    };
    format!("it is compressed: pass it through `{program}`, and `-` for FILE")
}

/// The losses in reading a trace, and what follows for it.
pub(crate) fn of_losses(losses: &Losses) -> (Vec<String>, Verdict) {
    let verdict = if losses.defect_count == 0 { Verdict::Sound } else { Verdict::Defective };
    (lines(losses), verdict)
}

/// One line for each kind of loss.
pub(crate) fn lines(losses: &Losses) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(first) = losses.defects.first() {
        let more = match losses.defect_count {
            0 | 1 => String::new(),
            several => format!("; {several} defects in all"),
        };
        lines.push(format!("{first}{more}"));
    }
    if let Some(located) = &losses.truncated {
        lines.push(format!(
            "{located}; its program was killed or still runs, what comes before is used"
        ));
    }
    if let Some(cut) = &losses.cut_short {
        lines.push(cut_short(cut));
    }
    if let Some(line) = left_out(losses) {
        lines.push(line);
    }
    if losses.foreign_packets > 0 {
        let packets = count(losses.foreign_packets, "packet", "packets");
        lines.push(format!("{packets} of other processes left out (a fork wrote into the file)"));
    }
    lines
}

/// Why the end of a trace is missing, and until when it covers its program.
pub(crate) fn cut_short(cut: &CutShort) -> String {
    let why = match cut.reason {
        CutReason::Unfinished => "its program was killed or still runs",
        CutReason::WriteFailed => {
            "the file could not be written any further (a full disk, a quota or a limit?)"
        }
    };
    let after = short_duration(cut.until as f64);
    let until = match (cut.reason, cut.until) {
        (_, 0) => "it covers nothing of the program".to_owned(),
        // It may have been idle for long before it was killed.
        (CutReason::Unfinished, _) => {
            format!("its last event is {after} after its start, and later ones may be missing")
        }
        (CutReason::WriteFailed, _) => {
            format!("it covers the program until {after} after its start, not to the end")
        }
    };
    format!("the trace is cut short: {why}; {until}")
}

/// Why a trace does not have all that its program did; `None` if it has.
pub(crate) fn incomplete(losses: &Losses) -> Option<String> {
    let damaged = || match left_out(losses) {
        Some(amounts) => format!("it is damaged, and not all of it could be read ({amounts})"),
        None => "it is damaged, and not all of it could be read".to_owned(),
    };
    if let Some(cut) = &losses.cut_short {
        return Some(cut_short(cut));
    }
    if losses.truncated.is_some() {
        return Some("it ends inside a packet: its program was killed or still runs".to_owned());
    }
    (losses.defect_count > 0 || losses.allocations > 0).then(damaged)
}

/// The amounts that could not be used.
fn left_out(losses: &Losses) -> Option<String> {
    let parts = [
        (losses.packets, "packet left out", "packets left out"),
        (losses.bytes, "byte passed over", "bytes passed over"),
        (losses.allocations, "allocation missing", "allocations missing"),
        (losses.partial_backtraces, "backtrace with lost frames", "backtraces with lost frames"),
    ];
    let said: Vec<String> = parts
        .into_iter()
        .filter(|&(number, _, _)| number > 0)
        .map(|(number, one, many)| count(number, one, many))
        .collect();
    (!said.is_empty()).then(|| said.join(", "))
}
