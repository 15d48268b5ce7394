//! Which trace is of which program, where several were traced.

use std::collections::BTreeMap;
use std::path::Path;

use heaptap_report::figures::units::count;

use super::journal::Process;
use crate::io::input::Input;
use crate::text::escape;

/// The most rows. With more traces than that, each program has one.
const MOST_ROWS: usize = 8;

/// A trace, or several of one program.
struct Row {
    program: String,
    traces: usize,
    samples: u64,
    /// The first of its files.
    file: String,
}

/// One line for each trace, or for each program. `samples` has the figures of each process;
/// files are named from `directory`.
pub(super) fn lines(processes: &[Process], samples: &[u64], directory: &Path) -> Vec<String> {
    let mut rows: Vec<Row> = processes
        .iter()
        .zip(samples)
        .map(|(process, &samples)| {
            let file = process.file.strip_prefix(directory).unwrap_or(&process.file);
            let file = escape::path(file).to_string();
            Row { program: program(&process.file), traces: 1, samples, file }
        })
        .collect();
    if rows.len() > MOST_ROWS {
        rows = by_program(rows);
    }
    let left_out = rows.len().saturating_sub(MOST_ROWS);
    rows.truncate(MOST_ROWS);
    let mut lines = aligned(&rows);
    if left_out > 0 {
        lines.push(format!("  and {}", count(left_out as u64, "other program", "other programs")));
    }
    lines
}

/// The rows of each program together, the most samples first.
fn by_program(rows: Vec<Row>) -> Vec<Row> {
    let mut programs: BTreeMap<String, Row> = BTreeMap::new();
    for row in rows {
        match programs.get_mut(&row.program) {
            Some(known) => {
                known.traces += 1;
                known.samples += row.samples;
            }
            None => _ = programs.insert(row.program.clone(), row),
        }
    }
    let mut rows: Vec<Row> = programs.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.samples));
    rows
}

fn aligned(rows: &[Row]) -> Vec<String> {
    let cells: Vec<[String; 3]> = rows
        .iter()
        .map(|row| {
            let (traces, more) = match row.traces {
                1 => (String::new(), ""),
                several => (format!("{several} traces, "), ", …"),
            };
            let samples = format!("{traces}{}", count(row.samples, "sample", "samples"));
            [row.program.clone(), samples, format!("{}{more}", row.file)]
        })
        .collect();
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max();
    let (first, second) = (width(0).unwrap_or(0), width(1).unwrap_or(0));
    let line = |[program, samples, file]: &[String; 3]| {
        format!("  {program:first$}  {samples:>second$}  {file}")
    };
    cells.iter().map(line).collect()
}

/// The name of the program that a trace is of.
fn program(file: &Path) -> String {
    let read = || {
        let input = Input::open(file).ok()?.quietly();
        let executable = input.in_file_order().ok()?.info().executable.clone();
        let name = executable.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        (!name.is_empty()).then(|| escape::Escaped(name).to_string())
    };
    // Opening a pipe without a writer would wait for ever.
    let is_file = file.metadata().is_ok_and(|found| found.is_file());
    is_file.then(read).flatten().unwrap_or_else(|| "(unknown)".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(program: &str, samples: u64, file: &str) -> Row {
        Row { program: program.into(), traces: 1, samples, file: file.into() }
    }

    #[test]
    fn rows_are_aligned() {
        let rows = [row("main.exe", 1000, "main.exe-7.ctf"), row("ls", 1, "ls-8.ctf")];
        assert_eq!(
            aligned(&rows),
            ["  main.exe  1000 samples  main.exe-7.ctf", "  ls            1 sample  ls-8.ctf"]
        );
    }

    #[test]
    fn many_traces_are_listed_by_program() {
        let rows = vec![row("a", 1, "a-1"), row("b", 9, "b-2"), row("a", 2, "a-3")];
        assert_eq!(
            aligned(&by_program(rows)),
            ["  b            9 samples  b-2", "  a  2 traces, 3 samples  a-1, …"]
        );
    }
}
