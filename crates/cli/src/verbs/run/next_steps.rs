//! What to try next, for people at a terminal: the commands that show what was traced.

use std::io::{IsTerminal as _, stderr};
use std::path::Path;

use super::journal::Process;
use crate::io::notices::say;

/// The verbs, and what they show.
const STEPS: [(&str, &str); 3] = [
    ("report", "where the memory goes"),
    ("leaks", "what keeps growing"),
    ("serve", "the same in the browser"),
];

/// The width that a terminal has at least.
const WIDTH: usize = 80;

/// Prints the commands, if somebody reads them.
pub(super) fn print(processes: &[Process]) {
    if !stderr().is_terminal() {
        return;
    }
    let here = std::env::current_dir().unwrap_or_default();
    if let Some(argument) = argument(processes, &here) {
        say(&text(&argument));
    }
}

/// What the commands take: nothing if the one trace is the newest here. `None` for what
/// cannot be read again, or cannot be typed.
fn argument(processes: &[Process], here: &Path) -> Option<String> {
    let is_file = |process: &&Process| process.file.metadata().is_ok_and(|found| found.is_file());
    let mut files = processes.iter().filter(is_file).map(|process| process.file.as_path());
    let first = files.next()?;
    let directory = first.parent()?;
    match files.next() {
        None if directory == here => Some(String::new()),
        None => typed(first, here),
        Some(second) => {
            let is_there = |file: &Path| file.parent() == Some(directory);
            let all_there = is_there(second) && files.all(is_there);
            all_there.then(|| typed(directory, here))?
        }
    }
}

/// A path as it is typed in a shell, from this directory.
fn typed(path: &Path, here: &Path) -> Option<String> {
    let path = path.strip_prefix(here).unwrap_or(path).to_str()?;
    if path.is_empty() {
        return Some(" .".into());
    }
    if path.chars().any(char::is_control) {
        return None;
    }
    let plain = |c: char| c.is_alphanumeric() || "/._-+,=@%:".contains(c);
    if path.chars().all(plain) && !path.starts_with('-') {
        return Some(format!(" {path}"));
    }
    // Nothing that begins with a dot is an option.
    let before = if path.starts_with('/') { "" } else { "./" };
    Some(format!(" '{before}{}'", path.replace('\'', r"'\''")))
}

/// One command a line, each with what it shows if there is room.
fn text(argument: &str) -> String {
    const BEFORE: &str = "next: ";
    let commands = STEPS.map(|(verb, shows)| (format!("heaptap {verb}{argument}"), shows));
    let width = commands.iter().map(|(command, _)| command.chars().count()).max().unwrap_or(0);
    let indent = "heaptap: ".len() + BEFORE.len();
    let longest = STEPS.iter().map(|(_, shows)| shows.len()).max().unwrap_or(0);
    let lines = commands.map(|(command, shows)| {
        let has_room = indent + width + 2 + longest <= WIDTH;
        if has_room { format!("{command:width$}  {shows}") } else { command }
    });
    format!("{BEFORE}{}", lines.join(&format!("\n{:indent$}", "")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::run::journal::End;

    fn process(file: &Path) -> Process {
        Process { pid: 7, file: file.to_owned(), end: End::Flushed }
    }

    #[test]
    fn the_newest_trace_here_needs_no_name() {
        let place = tempfile::tempdir().unwrap();
        let there = place.path().join("traces");
        std::fs::create_dir(&there).unwrap();
        let files = ["1.ctf", "2.ctf"].map(|name| there.join(name));
        for file in &files {
            std::fs::write(file, "").unwrap();
        }
        let one = [process(&files[0])];
        assert_eq!(argument(&one, &there), Some(String::new()));
        assert_eq!(argument(&one, place.path()), Some(" traces/1.ctf".into()));
        let two = [process(&files[0]), process(&files[1])];
        assert_eq!(argument(&two, &there), Some(" .".into()));
        assert_eq!(argument(&two, place.path()), Some(" traces".into()));
        assert_eq!(argument(&[process(&place.path().join("none"))], &there), None);
    }

    #[test]
    fn names_are_quoted_for_the_shell() {
        let here = Path::new("/h");
        let typed = |name: &str| typed(Path::new(name), here);
        assert_eq!(typed("/h/a b.ctf"), Some(" './a b.ctf'".into()));
        assert_eq!(typed("/x/it's.ctf"), Some(r" '/x/it'\''s.ctf'".into()));
        assert_eq!(typed("/h/-r.ctf"), Some(" './-r.ctf'".into()));
        assert_eq!(typed("/h/a\nb.ctf"), None);
    }

    #[test]
    fn what_is_shown_stands_beside_if_there_is_room() {
        let text = text(" t.ctf");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "next: heaptap report t.ctf  where the memory goes");
        assert_eq!(lines[2], "               heaptap serve t.ctf   the same in the browser");
        let long = super::text(&format!(" {}", "x".repeat(60)));
        assert!(!long.contains("memory"), "{long}");
    }
}
