//! Code and state in the program: written, taken back, and found again.
//!
//! All of this happens while all threads stand still, so that each function sees and leaves a
//! consistent program. An attacher may be killed between any two writes. Their order is such that
//! the program is sound after each of them:
//!
//! - A state that is over is written first, then the code, then it is armed, then the hook: what the
//!   hook leads to is whole, and code is never without a state that says where it is.
//! - The hook is put back first, then the state says so, then the code goes, then the state.
//!
//! What a killed attacher leaves is found by the first word of a state. Until the deadline an armed
//! hook may still run, and loads the library as it was asked to; afterwards it puts itself back
//! and does nothing. Either way the next attach clears it away.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::maps::Maps;
use crate::memory::{Memory, Writable};
use crate::process::{self, Process};
use crate::room::Room;
use crate::runtime::{NotNow, Runtime};
use crate::stopped::Stopped;
use crate::stub::{self, CHAINED, Header, Loader, Meant, New, Owner, STATUS, Status, Strings};

/// Space for the loader's message, if there is as much.
const MESSAGE: u64 = 256;

/// How much of each stack is searched for addresses of the code: frames of signals, and calls.
const SEARCHED_STACK: usize = 16 << 10;

/// A program, as an attacher knows it.
pub(crate) struct Target {
    pub(crate) pid: libc::pid_t,
    pub(crate) process: Process,
    pub(crate) memory: Memory,
    pub(crate) maps: Maps,
    pub(crate) runtime: Runtime,
    pub(crate) loader: Loader,
    pub(crate) room: Room,
}

/// Where code and state are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    code: Writable,
    pub(crate) state: Writable,
}

/// Why nothing was written.
#[derive(Debug)]
pub(crate) enum Obstacle {
    NotNow(NotNow),
    /// Of another attacher that is alive.
    Busy(u64),
    /// Another attacher's library is being loaded, or code of one that ended is still in use.
    Unfinished,
    /// The hook leads to something that is no code.
    Hook,
    /// There is no space; because the strings are long if true.
    NoRoom(bool),
    Failed(io::Error),
}

impl From<NotNow> for Obstacle {
    fn from(reason: NotNow) -> Obstacle {
        Obstacle::NotNow(reason)
    }
}

impl From<io::Error> for Obstacle {
    fn from(error: io::Error) -> Obstacle {
        Obstacle::Failed(error)
    }
}

impl Target {
    /// Clears away what others left, writes code and state, sets the hook, and pokes.
    pub(crate) fn arm(
        &self,
        stopped: &Stopped,
        strings: Strings<'_>,
        owner: Owner,
        deadline: u64,
    ) -> Result<Site, Obstacle> {
        let moment = self.runtime.moment(&self.memory)?;
        for &tail in &self.room.state {
            self.clear(stopped, tail)?;
        }
        let code_size = (stub::code().len() + strings.size()) as u64;
        let site = Site {
            code: self.free(&self.room.code, code_size, 0).ok_or_else(|| self.no_room())?,
            state: self
                .free(&self.room.state, Header::SIZE as u64, MESSAGE)
                .ok_or(Obstacle::NoRoom(false))?,
        };
        let hook = self.runtime.hook;
        let earlier = self.memory.word(hook.start).ok_or(NotNow::Gone)?;
        if earlier != 0 && !self.maps.is_code(earlier) {
            return Err(Obstacle::Hook);
        }
        let pid = self.process.own_pid;
        let meant =
            Meant { state: site.state.start, hook: hook.start, earlier, pid, deadline, owner };
        let written = self.write(stopped, site, meant, strings).and_then(|()| {
            self.memory.write_word(stopped, hook, site.code.start)?;
            moment.poke(&self.memory, stopped)
        });
        if let Err(error) = written {
            // The reason is what counts; what cannot be written now could not be before.
            let _ = self.memory.write_word(stopped, hook, earlier);
            let _ = self.zero(stopped, site);
            return Err(error.into());
        }
        Ok(site)
    }

    /// Whether there would be room for code with shorter strings.
    fn no_room(&self) -> Obstacle {
        let usual = (stub::code().len() + Meant::SIZE + 256) as u64;
        Obstacle::NoRoom(self.free(&self.room.code, usual, 0).is_some())
    }

    /// Writes code and state, armed.
    fn write(
        &self,
        stopped: &Stopped,
        site: Site,
        meant: Meant,
        strings: Strings<'_>,
    ) -> io::Result<()> {
        let Site { code, state } = site;
        let new = New {
            code: code.start,
            code_size: code.size,
            state: state.start,
            state_size: state.size,
            constants: code.start + stub::code().len() as u64,
            meant,
            loader: self.loader,
            strings,
        };
        self.memory.write(stopped, state, &new.state())?;
        self.memory.write(stopped, code, &[stub::code(), &new.constants()].concat())?;
        self.write_state(stopped, site, STATUS, Status::Armed as u64)
    }

    /// The first space of that size with zeros only, and some more if there is.
    fn free(&self, tails: &[Writable], size: u64, more: u64) -> Option<Writable> {
        let fitting = tails.iter().filter(|tail| tail.size >= size);
        let mut ranges = fitting.map(|tail| Writable { size: tail.size.min(size + more), ..*tail });
        ranges.find(|&range| {
            self.memory.bytes(range).is_some_and(|bytes| bytes.iter().all(|&byte| byte == 0))
        })
    }

    /// What is known about the injection whose state begins here, if one does.
    pub(crate) fn header(&self, state: Writable) -> Option<Header> {
        Header::parse(&self.memory.array(state.start)?)
    }

    /// What was meant by it; `None` if the code was not written, or is erased again.
    fn meant(&self, site: Site, header: &Header) -> Option<Meant> {
        let end = header.constants.checked_add(Meant::SIZE as u64)?;
        let is_inside =
            header.constants >= site.code.start && end <= site.code.start + site.code.size;
        is_inside.then_some(())?;
        let meant = Meant::parse(&self.memory.array(header.constants)?);
        (meant.state == site.state.start && meant.hook == self.runtime.hook.start).then_some(meant)
    }

    /// Clears away what others left. Says whether nothing is left.
    pub(crate) fn clear_all(&self, stopped: &Stopped) -> Result<bool, Obstacle> {
        for &tail in &self.room.state {
            self.clear(stopped, tail)?;
        }
        let is_left =
            |tail: &Writable| tail.size >= Header::SIZE as u64 && self.header(*tail).is_some();
        Ok(!self.room.state.iter().any(is_left))
    }

    /// Clears away what another attacher left at the beginning of this space.
    fn clear(&self, stopped: &Stopped, tail: Writable) -> Result<(), Obstacle> {
        if tail.size < Header::SIZE as u64 {
            return Ok(());
        }
        let Some(header) = self.header(tail) else { return Ok(()) };
        let code = self.room.code_at(header.code, header.code_size);
        let state = self.room.state_at(tail.start, header.state_size);
        // If these are not places that we would have chosen, nothing is known about them.
        let Some((code, state)) = code.zip(state) else { return Ok(()) };
        let site = Site { code, state };
        if let Some(meant) = self.meant(site, &header) {
            // A child that was forked meanwhile has a copy that nobody waits for.
            let is_inherited = meant.pid != self.process.own_pid;
            if !is_inherited && is_alive(&meant) {
                return Err(Obstacle::Busy(meant.owner.pid));
            }
        }
        if header.status == Status::Armed {
            self.disarm(stopped, site)?;
        } else if !header.status.is_over() {
            return Err(Obstacle::Unfinished);
        }
        // If somebody else's hook calls the code for ever, it stays, and there may be other space.
        if self.erase(stopped, site)? || self.is_chained(site) {
            Ok(())
        } else {
            Err(Obstacle::Unfinished)
        }
    }

    /// Puts the hook back, unless the stub has begun. Says whether it had not.
    pub(crate) fn disarm(&self, stopped: &Stopped, site: Site) -> io::Result<bool> {
        let Some(header) = self.header(site.state) else { return Ok(false) };
        if header.status != Status::Armed {
            return Ok(false);
        }
        let Some(meant) = self.meant(site, &header) else { return Ok(false) };
        let hook = self.runtime.hook;
        let current = self.memory.word(hook.start);
        if current == Some(site.code.start) {
            self.memory.write_word(stopped, hook, meant.earlier)?;
        } else if current != Some(meant.earlier) {
            // Somebody else has set it and may call the stub, which passes on to the earlier one.
            self.write_state(stopped, site, CHAINED, 1)?;
        }
        self.write_state(stopped, site, STATUS, Status::Abandoned as u64)?;
        Ok(true)
    }

    fn write_state(&self, stopped: &Stopped, site: Site, at: u64, word: u64) -> io::Result<()> {
        let range = Writable { start: site.state.start + at, size: 8 };
        self.memory.write_word(stopped, range, word)
    }

    fn is_chained(&self, site: Site) -> bool {
        self.header(site.state).is_some_and(|header| header.chained)
    }

    /// Restores the zeros of code and state. False if the code may still run: a thread is in it or
    /// about to call it, or somebody else's hook does.
    pub(crate) fn erase(&self, stopped: &Stopped, site: Site) -> io::Result<bool> {
        let Some(header) = self.header(site.state) else { return Ok(false) };
        let hook = self.memory.word(self.runtime.hook.start);
        let is_hooked = hook.is_none_or(|hook| hook == site.code.start);
        if !header.status.is_over() || header.chained || is_hooked {
            return Ok(false);
        }
        if !self.is_left(stopped, site.code) {
            return Ok(false);
        }
        self.zero(stopped, site)?;
        Ok(true)
    }

    fn zero(&self, stopped: &Stopped, site: Site) -> io::Result<()> {
        for range in [site.code, site.state] {
            self.memory.write(stopped, range, &vec![0; range.size as usize])?;
        }
        Ok(())
    }

    /// Whether no thread has an address of the code in a register or on its stack, where the
    /// frames of signals hold registers too.
    fn is_left(&self, stopped: &Stopped, code: Writable) -> bool {
        let Some(threads) = stopped.registers() else { return false };
        let is_in_code = |word: u64| word.wrapping_sub(code.start) < code.size;
        let mut stack = vec![0; SEARCHED_STACK];
        threads.iter().all(|thread| {
            let size = self.memory.read_some(thread.rsp & !7, &mut stack);
            let words = stack.get(..size).unwrap_or_default().chunks_exact(8);
            let mut words = words.map(|word| u64::from_le_bytes(word.try_into().unwrap_or([0; 8])));
            !general(thread).into_iter().any(is_in_code) && !words.any(is_in_code)
        })
    }
}

/// The registers that may hold an address.
fn general(thread: &libc::user_regs_struct) -> [u64; 16] {
    let libc::user_regs_struct { rax, rbx, rcx, rdx, rsi, rdi, rbp, rip, .. } = *thread;
    let libc::user_regs_struct { r8, r9, r10, r11, r12, r13, r14, r15, .. } = *thread;
    [rax, rbx, rcx, rdx, rsi, rdi, rbp, rip, r8, r9, r10, r11, r12, r13, r14, r15]
}

/// This process, as the owner of an injection.
pub(crate) fn myself() -> Owner {
    let pid = std::process::id();
    Owner {
        pid: u64::from(pid),
        start: Process::read(pid as libc::pid_t).map_or(0, |process| process.start),
        namespace: process::namespace("self", "pid").unwrap_or(0),
    }
}

/// Whether another attacher may still wait for the outcome: is there, or, where it cannot be
/// seen, has time left. This one is about to begin, so it waits for nothing.
fn is_alive(meant: &Meant) -> bool {
    let owner = meant.owner;
    if owner == myself() {
        return false;
    }
    if Some(owner.namespace) != process::namespace("self", "pid") {
        return now() <= meant.deadline;
    }
    let process = libc::pid_t::try_from(owner.pid).ok().and_then(Process::read);
    process.is_some_and(|process| process.start == owner.start && !process.is_zombie())
}

/// Seconds of `CLOCK_REALTIME`.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
