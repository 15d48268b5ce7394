//! Diagnoses for who has no terminal to print them on: the web page, and `top`. Each is the one that `heaptap doctor`
//! makes of the same files.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use heaptap_heap::MetaKey;
use heaptap_report::diagnosis::{Diagnosis, PageDiagnosis, diagnose};

use crate::analysis::evidence::{EvidenceFiles, gather};
use crate::analysis::heap::page_snapshots::{PageFiles, number_of};
use crate::analysis::ocaml_types::TypeOptions;
use crate::exit_status::Failure;
use crate::io::input::Input;
use crate::io::source_files::SourceRoots;
use crate::io::trace_files::{expand, shown};
use crate::io::watch::Watch;

/// What a diagnosis is about.
#[derive(Clone)]
pub(crate) struct DiagnosedFiles {
    /// `None` for snapshots alone.
    pub(crate) trace: Option<PathBuf>,
    snapshots: Vec<PathBuf>,
    /// There are other traces, to which some of the snapshots may belong.
    has_others: bool,
}

/// How it is made.
#[derive(Clone, Default)]
pub(crate) struct DiagnosisOptions {
    pub(crate) types: TypeOptions,
    pub(crate) sources: SourceRoots,
}

impl DiagnosedFiles {
    /// Of a trace, with the snapshots that lie beside it.
    pub(crate) fn of_trace(trace: &Path) -> DiagnosedFiles {
        let trace = Some(trace.to_owned());
        DiagnosedFiles { trace, snapshots: Vec::new(), has_others: false }
    }

    /// Of each trace of a page, or, without one, of its snapshots.
    pub(crate) fn of_page(files: &PageFiles) -> Vec<DiagnosedFiles> {
        let PageFiles { traces, snapshots } = files;
        let of = |trace: Option<&PathBuf>| DiagnosedFiles {
            trace: trace.cloned(),
            snapshots: snapshots.clone(),
            has_others: traces.len() > 1,
        };
        if traces.is_empty() {
            return vec![of(None)];
        }
        traces.iter().map(|trace| of(Some(trace))).collect()
    }

    /// What is known of them now. `is_running`: the program goes on, and can be asked for more.
    pub(crate) fn diagnosis(
        &self,
        options: &DiagnosisOptions,
        is_running: bool,
    ) -> Result<Diagnosis, Failure> {
        if let Some(trace) = self.trace.as_deref().filter(|trace| is_pipe(trace)) {
            return Err(Failure::Trouble(format!(
                "{}: a pipe cannot be read again; save the trace to a file for a diagnosis",
                shown(trace)
            )));
        }
        let mut evidence = gather(&EvidenceFiles::of(&self.arguments())?, &options.types)?;
        evidence.is_running = is_running;
        let mut diagnosis = diagnose(&evidence);
        add_sources(&mut diagnosis, &options.sources);
        Ok(diagnosis)
    }

    /// The same for a page. A panic is a failure: nothing else of the page is to depend on it.
    pub(crate) fn for_page(&self, options: &DiagnosisOptions, is_running: bool) -> PageDiagnosis {
        let stopped = "the diagnosis stopped; please report this with the files";
        let made = catch_unwind(AssertUnwindSafe(|| self.diagnosis(options, is_running)))
            .unwrap_or_else(|_| Err(Failure::Trouble(stopped.to_owned())));
        match made {
            Ok(diagnosis) => {
                PageDiagnosis::Ready { so_far: is_running, diagnosis: Box::new(diagnosis) }
            }
            Err(failure) => {
                let error = failure.message().unwrap_or("the files cannot be read").to_owned();
                PageDiagnosis::Failed { error }
            }
        }
    }

    /// The same for a thread of its own, which shows no progress.
    pub(crate) fn in_background(
        &self,
        options: &DiagnosisOptions,
        is_running: bool,
    ) -> PageDiagnosis {
        Arc::<Watch>::default().during(|| self.for_page(options, is_running))
    }

    /// What `heaptap doctor` would be given.
    fn arguments(&self) -> Vec<PathBuf> {
        let of_process = self.trace.as_deref().filter(|_| self.has_others).and_then(process_of);
        let is_its = |snapshot: &&PathBuf| {
            !self.has_others
                || of_process.is_some() && number_of(snapshot, MetaKey::PID) == of_process
        };
        self.trace.iter().chain(self.snapshots.iter().filter(is_its)).cloned().collect()
    }
}

/// Adds the source of the lines that are named, as far as it is found.
pub(crate) fn add_sources(diagnosis: &mut Diagnosis, sources: &SourceRoots) {
    for finding in &mut diagnosis.findings {
        for site in &mut finding.sites {
            site.source = sources.around(&site.site.file, site.site.line);
        }
    }
}

/// Whether it is there, and neither a file nor a directory.
fn is_pipe(trace: &Path) -> bool {
    trace.as_os_str() == "-"
        || trace.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// The process that has written a trace.
fn process_of(trace: &Path) -> Option<u64> {
    let first = expand(&[trace.to_owned()]).ok()?.into_iter().next()?;
    let events =
        Input::open(&first.path).map(Input::quietly).and_then(|input| input.in_file_order());
    Some(events.ok()?.info().pid)
}
