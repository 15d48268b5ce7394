//! What is wrong with several files.

use crate::exit_status::Verdict;
use crate::io::notices::say;

/// What is wrong with the files, and with those that are left out.
#[derive(Default)]
pub(crate) struct Findings {
    /// The lines of each file that has any.
    files: Vec<Vec<String>>,
    verdict: Option<Verdict>,
}

impl Findings {
    pub(crate) fn add(&mut self, lines: Vec<String>, verdict: Verdict) {
        if !lines.is_empty() {
            self.files.push(lines);
        }
        self.verdict = self.verdict.max(Some(verdict));
    }

    /// The lines of all files.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &String> {
        self.files.iter().flatten()
    }

    /// Prints them on standard error.
    pub(crate) fn report(&self) -> Verdict {
        /// Files that are named.
        const MOST_NAMED: usize = 20;
        self.files.iter().take(MOST_NAMED).flatten().for_each(|line| say(line));
        if self.files.len() > MOST_NAMED {
            say(&format!(
                "{} more traces are damaged, cut short or left out; `heaptap check FILE` says \
                 what is wrong with one",
                self.files.len() - MOST_NAMED
            ));
        }
        self.verdict.unwrap_or(Verdict::Sound)
    }
}
