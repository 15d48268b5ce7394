//! An injection from beginning to end.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::examine::{examine, refused, tracer};
use crate::library::{self, Placed};
use crate::process::Process;
use crate::refusal::Refusal;
use crate::runtime::NotNow;
use crate::site::{Obstacle, Site, Target, myself, now};
use crate::stopped::{NotStopped, Stopped, while_stopped};
use crate::stub::{Header, Status, Strings};

/// This process injects into one program at a time. So what it finds in a program that names this
/// process is from an earlier injection.
static TURN: Mutex<()> = Mutex::new(());

/// How often the state is looked at.
const LOOK: Duration = Duration::from_millis(1);

/// How long a moment is awaited at which something can be written or erased: other attachers
/// and short stops of threads pass, a debugger does not.
const SHORT: Duration = Duration::from_millis(500);

/// No timeout is longer.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The stub's own deadline is later than ours by this much, in seconds, so that ours decides.
const GRACE: u64 = 2;

/// How long loader and entry may take once they have begun.
const ENTRY: Duration = Duration::from_secs(10);

/// What is to be loaded and called.
#[derive(Clone, Copy, Debug)]
pub struct Injection<'a> {
    /// The absolute path of a shared library.
    pub library: &'a Path,
    /// Its function: `int entry(const char *argument, char *answer, size_t answer_size)`. It is called
    /// under the master lock, at the beginning of a minor collection, on a stack of 1 MiB, with the
    /// thread's signal mask as it was. It returns before the collection goes on, and must not run
    /// OCaml code. It may write a text of fewer bytes with a NUL.
    pub entry: &'a str,
    /// What the function is given. Gone when it returns.
    pub argument: &'a str,
    /// How long to wait until the program calls it.
    pub timeout: Duration,
    /// Nobody waits any more once this is true.
    pub cancelled: &'a AtomicBool,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Injected {
    /// What the entry has returned.
    pub result: i32,
    /// And the text that it has written, as far as there was room; escaped.
    pub answer: String,
    /// How long all threads stood still, the longest time.
    pub stopped: Duration,
    /// From the call of [`inject`] to the entry's return.
    pub took: Duration,
    /// Whether the program's text is as in its file again. If not, unused code is left behind it,
    /// which the next injection clears away.
    pub restored: bool,
}

/// Loads a library into a process and calls its entry, once.
///
/// This process gets a `SIGCHLD` whenever a thread of the program stops.
///
/// # Errors
/// A refusal says why it was not called, and what to do. The program then goes on as if nothing
/// had happened, unless [`Refusal::StillRunning`], [`Refusal::NotLoaded`] or
/// [`Refusal::NoEntry`] say what did.
pub fn inject(pid: i32, injection: &Injection<'_>) -> Result<Injected, Refusal> {
    let begin = Instant::now();
    check_strings(injection)?;
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let target = settled(pid)?;
    let placed = library::place(pid, &target.maps, injection.library)?;
    let mut attempt = Attempt { target: &target, begin, stopped: Duration::ZERO };
    let outcome = attempt.run(injection, &placed);
    if matches!(outcome, Err(Refusal::StillRunning { .. })) {
        placed.keep();
    }
    outcome
}

fn check_strings(injection: &Injection<'_>) -> Result<(), Refusal> {
    let check = |what, bytes: &[u8]| {
        let is_good = !bytes.contains(&0) && bytes.len() < 4096;
        is_good.then_some(()).ok_or(Refusal::BadString { what })
    };
    check("the library's path", injection.library.as_os_str().as_bytes())?;
    check("the entry's name", injection.entry.as_bytes())?;
    check("the command", injection.argument.as_bytes())?;
    let is_absolute = injection.library.is_absolute();
    is_absolute.then_some(()).ok_or(Refusal::BadString { what: "the library's path" })
}

/// Examines the process. One that is starting becomes what it is within a moment, and one that
/// ends or executes another program looks like anything: what is said twice counts.
fn settled(pid: i32) -> Result<Target, Refusal> {
    let deadline = Instant::now() + SHORT;
    let mut before = None;
    loop {
        let refusal = match examine(pid) {
            Ok(target) => return Ok(target),
            Err(refusal) => refusal,
        };
        let may_pass = refusal == Refusal::NotStarted && Instant::now() < deadline;
        if !may_pass && before.as_ref() == Some(&refusal) {
            return Err(refusal);
        }
        before = Some(refusal);
        sleep(LOOK * 20);
    }
}

/// One injection into one program.
struct Attempt<'a> {
    target: &'a Target,
    begin: Instant,
    /// The longest stop.
    stopped: Duration,
}

impl Attempt<'_> {
    fn run(&mut self, injection: &Injection<'_>, placed: &Placed) -> Result<Injected, Refusal> {
        let strings = Strings {
            library: &placed.path,
            entry: injection.entry.as_bytes(),
            argument: injection.argument.as_bytes(),
        };
        let timeout = injection.timeout.min(LONGEST);
        let site = self.arm(strings, timeout)?;
        let header = self.outcome(site, timeout, injection.cancelled)?;
        let took = self.begin.elapsed();
        let message = self.message(site, &header);
        let restored = self.erase(site);
        match header.status {
            Status::Returned => {
                let (result, answer) = (header.result, message);
                Ok(Injected { result, answer, stopped: self.stopped, took, restored })
            }
            Status::NotLoaded => Err(Refusal::NotLoaded { message }),
            Status::NoEntry => Err(Refusal::NoEntry { message }),
            Status::NoStack => Err(Refusal::NoMemory),
            _ => Err(Refusal::Asleep { waited: took }),
        }
    }

    /// Writes everything, as soon as there is a moment for it.
    fn arm(&mut self, strings: Strings<'_>, timeout: Duration) -> Result<Site, Refusal> {
        let patience = Instant::now() + SHORT;
        let owner = myself();
        loop {
            let deadline = now().saturating_add(timeout.as_secs() + GRACE);
            let target = self.target;
            let refusal = match self.stop(|stopped| target.arm(stopped, strings, owner, deadline)) {
                Ok(Ok(site)) => return Ok(site),
                Ok(Err(obstacle)) => self.refusal(obstacle)?,
                Err(reason) => self.not_stopped(reason)?,
            };
            if Instant::now() > patience {
                return Err(refusal);
            }
            sleep(LOOK);
        }
    }

    /// Waits until the stub has begun, and finished. Takes everything back if it does not begin.
    fn outcome(
        &mut self,
        site: Site,
        timeout: Duration,
        cancelled: &AtomicBool,
    ) -> Result<Header, Refusal> {
        let deadline = self.begin + timeout;
        let mut next_poke = Instant::now() + LOOK;
        let mut pause = LOOK;
        loop {
            let Some(header) = self.target.header(site.state) else { return Err(self.gone()) };
            let now = Instant::now();
            if header.status != Status::Armed {
                return self.finish(site);
            }
            if now >= deadline || cancelled.load(Ordering::Relaxed) {
                return self.take_back(site);
            }
            if now >= next_poke {
                pause = (pause * 2).min(Duration::from_millis(200));
                next_poke = now + pause;
                self.poke_again();
            }
            sleep(LOOK);
        }
    }

    /// Waits for the end of what has begun, or was taken back.
    fn finish(&self, site: Site) -> Result<Header, Refusal> {
        let patience = Instant::now() + ENTRY;
        loop {
            let header = self.target.header(site.state).ok_or_else(|| self.gone())?;
            if header.status.is_over() {
                return Ok(header);
            }
            if Instant::now() > patience {
                return Err(Refusal::StillRunning { waited: self.begin.elapsed() });
            }
            sleep(LOOK);
        }
    }

    /// Repeats the request, if the program has undone it. Another look follows if this fails.
    fn poke_again(&mut self) {
        let Target { runtime, memory, .. } = self.target;
        if !runtime.is_request_lost(memory) {
            return;
        }
        let _ =
            self.stop(|stopped| runtime.moment(memory).map(|moment| moment.poke(memory, stopped)));
    }

    /// Takes everything back, unless the stub begins before all threads stand still.
    fn take_back(&mut self, site: Site) -> Result<Header, Refusal> {
        let target = self.target;
        let patience = Instant::now() + ENTRY;
        loop {
            let is_late = Instant::now() > patience;
            let back = |stopped: &Stopped| {
                let moment = target.runtime.moment(&target.memory);
                if matches!(moment, Err(NotNow::Unsettled)) && !is_late {
                    return Ok(false);
                }
                if let (true, Ok(moment)) = (target.disarm(stopped, site)?, moment) {
                    moment.settle(&target.memory, stopped)?;
                }
                std::io::Result::Ok(true)
            };
            match self.stop(back) {
                // Taken back, or it has begun in this very moment.
                Ok(Ok(true)) => return self.finish(site),
                Ok(Ok(false)) => sleep(LOOK),
                Ok(Err(error)) => return Err(refused(target.pid, &target.process, &error)),
                Err(NotStopped::Gone) => return Err(self.gone()),
                // It puts itself back when the program wakes up.
                Err(reason) if is_late => return Err(self.not_stopped(reason)?),
                Err(_) => sleep(LOOK),
            }
        }
    }

    /// Restores the zeros, as soon as no thread is in the code.
    fn erase(&mut self, site: Site) -> bool {
        let target = self.target;
        let patience = Instant::now() + 4 * SHORT;
        let mut pause = LOOK;
        loop {
            match self.stop(|stopped| target.erase(stopped, site)) {
                // Nothing is left of a program that is gone.
                Ok(Ok(true)) | Err(NotStopped::Gone) => return true,
                Ok(Err(_)) => return false,
                Ok(Ok(false)) | Err(_) if Instant::now() > patience => return false,
                Ok(Ok(false)) | Err(_) => sleep(pause),
            }
            pause = (pause * 2).min(SHORT / 4);
        }
    }

    fn stop<T: Send>(&mut self, work: impl FnOnce(&Stopped) -> T + Send) -> Result<T, NotStopped> {
        let (done, stopped) = while_stopped(self.target.pid, work)?;
        self.stopped = self.stopped.max(stopped);
        Ok(done)
    }

    /// What the loader says.
    fn message(&self, site: Site, header: &Header) -> String {
        let room = usize::try_from(header.state_size).unwrap_or(0).min(4096);
        let start = site.state.start + Header::SIZE as u64;
        let message = self.target.memory.string(start, room.saturating_sub(Header::SIZE));
        String::from_utf8_lossy(&message).escape_debug().collect()
    }

    /// Why the memory is gone.
    fn gone(&self) -> Refusal {
        match Process::read(self.target.pid) {
            Some(process) if process.start == self.target.process.start && process.is_zombie() => {
                Refusal::Zombie
            }
            _ => Refusal::Ended,
        }
    }

    /// What an obstacle means, if it passes, else as an error.
    fn refusal(&self, obstacle: Obstacle) -> Result<Refusal, Refusal> {
        match obstacle {
            Obstacle::NotNow(NotNow::Gone) => Err(self.gone()),
            Obstacle::NotNow(NotNow::Memprof) => Err(Refusal::MemprofInUse),
            Obstacle::Busy(attacher) => Err(Refusal::Busy { attacher }),
            Obstacle::NoRoom(strings) => Err(Refusal::NoRoom { strings }),
            Obstacle::Hook => Err(Refusal::UnknownLayout { what: "the hook" }),
            Obstacle::Failed(error) => Err(refused(self.target.pid, &self.target.process, &error)),
            Obstacle::NotNow(NotNow::Unsettled) => {
                Ok(Refusal::UnknownLayout { what: "the state of the young heap" })
            }
            Obstacle::Unfinished => Ok(Refusal::Unfinished),
        }
    }

    fn not_stopped(&self, reason: NotStopped) -> Result<Refusal, Refusal> {
        let Target { pid, process, .. } = self.target;
        match reason {
            NotStopped::Gone => Err(self.gone()),
            NotStopped::Late => Ok(Refusal::DoesNotStop),
            NotStopped::Failed(error) => Err(refused(*pid, process, &error)),
            NotStopped::Denied => {
                let denied = std::io::Error::from_raw_os_error(libc::EPERM);
                Ok(tracer(*pid).unwrap_or_else(|| refused(*pid, process, &denied)))
            }
        }
    }
}
