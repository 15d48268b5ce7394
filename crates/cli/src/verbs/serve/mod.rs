//! `heaptap serve`: the web page over the loopback.
//!
//! - [`http`]: the server; [`access`]: who may ask; [`routes`]: what is answered;
//!   [`go_profiles`]: what `go tool pprof` asks for.
//! - [`traces`] and [`snapshots`]: read in the background; [`reading`]: how far that is, and what there
//!   is of a trace; [`live`]: traces that are tailed; [`exact`]: read again, for exact figures;
//!   [`available`]: what a request gets of these.
//! - [`diagnoses`]: what `heaptap doctor` says of each trace. [`sidecars`]: what programs say of themselves. [`browser`] opens the page, [`token_file`] keeps
//!   the token for the next server.
//!
//! Threads: the main one waits for a signal or for the news that no trace can be read; one
//! reads the traces; each that is tailed has one; one accepts connections, each of which has
//! its own. A reading for exact figures has one too.

mod access;
mod available;
mod browser;
mod diagnoses;
mod exact;
mod go_profiles;
mod http;
mod live;
mod reading;
mod routes;
mod sidecars;
mod snapshots;
mod token_file;
mod traces;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use clap::{Args, ValueHint};
use heaptap_report::Selection;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::analysis::archive::{Compression, Packing, PageSize};
use crate::analysis::heap::page_snapshots::PageFiles;
use crate::analysis::ocaml_types::TypeOptions;
use crate::analysis::page_diagnosis::DiagnosisOptions;
use crate::exit_status::{Failure, VerbResult, Verdict};
use crate::io::input::Input;
use crate::io::live_target::LiveTarget;
use crate::io::newest::named_or_newest;
use crate::io::notices::say;
use crate::io::output::print;
use crate::io::source_files::SourceRoots;
use crate::io::trace_files::{is_snapshot, page_names};
use crate::text::escape::Escaped;
use crate::text::page::{PageConfig, PageContents, PageMode, page};

use access::Access;
use diagnoses::Diagnoses;
use go_profiles::GoProfiles;
use routes::Site;
use sidecars::Sidecars;
use snapshots::Snapshots;
use traces::Traces;

/// The most traces that are tailed: each takes memory of its own.
const MOST_LIVE: usize = 8;

/// Show traces and heap snapshots in the browser: over time, as flames, tables, leaks,
/// differences, and what holds the memory
///
/// Prints the address of the page, opens the browser, and serves it until Ctrl-C. The
/// page is there at once and shows the progress of the reading.
///
/// It listens on the loopback only, and answers only requests that know the random token
/// in the address. To look at a trace on another machine, forward the port:
/// `ssh -L 8080:127.0.0.1:8080 HOST heaptap serve --port 8080 --no-open FILE`.
///
/// A trace that is still being written is followed: the page shows what it has so far, and
/// stays up to date. So is that of a process, by its number. `--live` follows a pipe, or a file of
/// which that cannot be seen, such as one that is copied from another machine.
///
/// A page that needs no server, for mailing: `heaptap export FILE --to html -o page.html`.
///
/// Takes less than 600 MB of memory, whatever the traces, and for each of them the size
/// of its page, 10 MB at most; each trace that is followed takes 500 MB more at most, and 500 MB while its diagnosis is made, one at a time. If the page asks for exact figures of a trace with more
/// than a million blocks, it takes 500 MB more.
#[derive(Args)]
#[command(after_help = "Examples:
  heaptap serve trace.ctf
  heaptap serve before.ctf after.ctf
  heaptap serve trace.ctf early.heap late.heap
  heaptap serve traces/
  heaptap serve trace.ctf --source-root ~/src/project
  heaptap serve trace.ctf --port 8080 --no-open
  heaptap serve 4711
  ssh host tail -c +1 -f trace.ctf | heaptap serve --live -

Exit status:
  0  it was ended by Ctrl-C or SIGTERM
  1  every trace is defective, and nothing can be made of it
  2  a wrong call, a port that cannot be used, or no file that could be read")]
pub(crate) struct Serve {
    /// The traces, each for itself; the page compares any two of them. A directory stands
    /// for the traces in it, merged by time, `-` for standard input, and a number for the trace
    /// of that process. Heap snapshots have a tab of their own, and marks on the time line of their
    /// trace [default: the newest trace in this directory]
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    files: Vec<PathBuf>,

    /// Follow a trace while it is written: a file, the number of a process that is traced, or
    /// `-` for standard input. Can be given several times
    #[arg(long, value_name = "FILE|PID", value_hint = ValueHint::FilePath)]
    live: Vec<PathBuf>,

    /// The port; a free one if not given
    #[arg(long, value_name = "NUMBER", default_value_t = 0, hide_default_value = true)]
    port: u16,

    /// Do not open the browser
    #[arg(long)]
    no_open: bool,

    /// Show source files that the traces name, if they are under this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    source_root: Vec<PathBuf>,

    /// Keep the token of the address in this file, which only you can read, so that the next
    /// server has the same: pages that are open and programs that ask go on. Made if it is not
    /// there
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    token_file: Option<PathBuf>,

    #[command(flatten)]
    types: TypeOptions,

    #[command(flatten)]
    page_size: PageSize,

    /// Listen on this address, where other machines may reach it; the connection is not
    /// encrypted
    #[arg(long, value_name = "ADDRESS", default_value_t = Ipv4Addr::LOCALHOST.into(), hide_default_value = true)]
    bind: IpAddr,
}

impl Serve {
    pub(crate) fn run(&self) -> VerbResult {
        let sources = SourceRoots::new(&self.source_root)?;
        let token = match &self.token_file {
            Some(path) => token_file::token(path)?,
            None => access::secret()?,
        };
        let (files, processes) = self.files_and_processes();
        let live = self.live_targets(&processes)?;
        let files = if live.is_empty() { named_or_newest(&files)? } else { files };
        if live.is_empty() {
            check_files(&files)?;
        }
        let listener = self.listen()?;
        let address = listener.local_addr().map_err(|error| self.cannot_listen(&error))?;
        let PageFiles { traces: files, snapshots } = PageFiles::new(&files);
        let served = Self::served(files, live);
        let trace_files: Vec<PathBuf> = served.iter().map(|(path, ..)| path.clone()).collect();
        let sidecars = Sidecars::new(&trace_files);
        let page_files = PageFiles { traces: trace_files.clone(), snapshots: snapshots.clone() };
        let options = DiagnosisOptions { types: self.types.clone(), sources: sources.clone() };
        let diagnoses = Arc::new(Diagnoses::new(&page_files, options));
        let packing = Packing {
            selection: Selection::default(),
            most_blocks: self.page_size.most_blocks(),
            // A fifth larger than it could be, which the loopback does not notice.
            effort: Compression::fast(),
            at: None,
        };
        let traces = Arc::new(Traces::new(served.into_iter(), &packing));
        let snapshots = Arc::new(Snapshots::new(snapshots, trace_files, self.types.clone()));
        let mut config = PageConfig::new(PageMode::Serve, traces.names());
        config.snapshots = snapshots.count();
        config.source = !sources.is_empty();
        let page: Arc<[u8]> = page(&config, &PageContents::default()).into_bytes().into();
        let access = Access::new(address, token);
        let (url, ticket_url) = (access.url(), access.ticket_url()?);
        let names: Vec<String> = traces.names().chain(snapshots.names()).collect();
        let ending = read_until_signal(&traces, &snapshots, &diagnoses)?;
        let site = Site {
            access,
            page,
            traces,
            snapshots,
            sidecars,
            diagnoses,
            sources,
            exact: Arc::default(),
            go: GoProfiles::default(),
        };
        thread::spawn(move || http::connections::accept(&listener, move |new| site.handle(new)));
        if !address.ip().is_loopback() {
            say(&format!(
                "{address}: others may reach it, and the connection is not encrypted; \
                 `ssh -L` to a server on the loopback is safer"
            ));
        }
        let names = Escaped(names.join(", ").as_bytes()).to_string();
        print(format!("serving {names} at {url} (Ctrl-C ends it)\n").as_bytes())?;
        if !self.no_open {
            browser::open(&ticket_url);
        }
        ending.recv().unwrap_or(Ok(Verdict::Sound))
    }

    /// What is to be shown: files, and the numbers of processes. A number is a process unless there
    /// is a file of that name.
    fn files_and_processes(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let is_number =
            |path: &PathBuf| path.to_str().is_some_and(|text| text.parse::<u32>().is_ok());
        self.files.iter().cloned().partition(|path| !is_number(path) || path.exists())
    }

    /// What `--live` asks for, and these. Fails if one of them cannot be tailed.
    fn live_targets(&self, processes: &[PathBuf]) -> Result<Vec<LiveTarget>, Failure> {
        if self.live.len() + processes.len() > MOST_LIVE {
            let message = format!("--live: at most {MOST_LIVE} traces can be followed at a time");
            return Err(Failure::Trouble(message));
        }
        let checked = |argument: &PathBuf| {
            let target = LiveTarget::find(argument)?;
            if !target.is_pipe() {
                target.open()?.info()?;
            }
            Ok(target)
        };
        processes.iter().chain(&self.live).map(checked).collect()
    }

    /// Path, name and what to tail, of each trace.
    fn served(
        files: Vec<PathBuf>,
        live: Vec<LiveTarget>,
    ) -> Vec<(PathBuf, String, Option<LiveTarget>)> {
        let mut room = MOST_LIVE - live.len();
        let mut traces: Vec<(PathBuf, Option<LiveTarget>)> = Vec::new();
        for path in files {
            let target = LiveTarget::being_written(&path).filter(|_| room > 0);
            room -= usize::from(target.is_some());
            traces.push((path, target));
        }
        traces.extend(live.into_iter().map(|target| (target.path.clone(), Some(target))));
        let names =
            page_names(&traces.iter().map(|(path, _)| path.clone()).collect::<Vec<PathBuf>>());
        let named = |((path, target), name): ((PathBuf, Option<LiveTarget>), String)| {
            let of_process = target.as_ref().and_then(LiveTarget::process_name);
            (path, of_process.unwrap_or(name), target)
        };
        traces.into_iter().zip(names).map(named).collect()
    }

    fn listen(&self) -> Result<TcpListener, Failure> {
        TcpListener::bind(SocketAddr::new(self.bind, self.port))
            .map_err(|error| self.cannot_listen(&error))
    }

    fn cannot_listen(&self, error: &io::Error) -> Failure {
        let address = SocketAddr::new(self.bind, self.port);
        let remedy = match error.kind() {
            io::ErrorKind::AddrInUse => "choose another --port, or none for a free one",
            io::ErrorKind::PermissionDenied => {
                "choose a --port from 1024 on, or none for a free one"
            }
            io::ErrorKind::AddrNotAvailable => "--bind takes an address of this machine",
            _ => "try another --port",
        };
        Failure::Trouble(format!("cannot listen at {address}: {error}; {remedy}"))
    }
}

/// Fails if no file is a trace, before anything listens or a browser opens.
fn check_files(files: &[PathBuf]) -> Result<(), Failure> {
    let mut failures = Vec::new();
    for path in files {
        if is_snapshot(path) {
            // It is read in the background.
            return Ok(());
        }
        if !is_regular(path) && (path.as_os_str() == "-" || path.exists()) {
            // A pipe is not to be read twice, a directory holds several traces.
            return Ok(());
        }
        match Input::open(path)
            .map(Input::quietly)
            .and_then(|input| input.in_file_order().map(drop))
        {
            Ok(()) => return Ok(()),
            Err(failure) => failures.push(failure),
        }
    }
    let Some(last) = failures.pop() else { return Ok(()) };
    failures.iter().filter_map(Failure::message).for_each(say);
    Err(last)
}

/// Reads the traces in the background. What comes through the channel is the end: a
/// signal, or the news that no trace can be read.
fn read_until_signal(
    traces: &Arc<Traces>,
    snapshots: &Arc<Snapshots>,
    diagnoses: &Arc<Diagnoses>,
) -> Result<Receiver<VerbResult>, Failure> {
    let (end, ending) = channel();
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| Failure::Trouble(format!("signals cannot be caught: {error}")))?;
    let (failed, has_snapshots) = (end.clone(), snapshots.count() > 0);
    traces.tail(move |all, failure| {
        if all.all_failed() && !has_snapshots {
            // The receiver is there as long as the program runs.
            let _ = failed.send(Err(failure));
        } else {
            failure.message().into_iter().for_each(say);
        }
    })?;
    let failed = end.clone();
    let (traces, snapshots) = (Arc::clone(traces), Arc::clone(snapshots));
    let diagnoses = Arc::clone(diagnoses);
    thread::spawn(move || {
        let (of_traces, of_snapshots) = (traces.read_all(), snapshots.read_all());
        // What can be shown is worth serving: it ends only if that is nothing.
        let has_traces = of_traces.is_ok() && !traces.all_failed();
        let failure = match (of_traces.err(), of_snapshots) {
            (failure, None) => failure,
            (of_traces, Some(Err(failure))) if !has_traces => Some(of_traces.unwrap_or(failure)),
            (of_traces, of_snapshots) => {
                let failures = of_traces.into_iter().chain(of_snapshots.and_then(Result::err));
                failures.for_each(|failure| failure.message().into_iter().for_each(say));
                None
            }
        };
        // The receiver is there as long as the program runs.
        failure.into_iter().for_each(|failure| _ = failed.send(Err(failure)));
        diagnoses.make_complete(&traces);
    });
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            let _ = end.send(Ok(Verdict::Sound));
        }
    });
    Ok(ending)
}

fn is_regular(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file())
}
