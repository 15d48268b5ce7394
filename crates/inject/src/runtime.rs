//! The runtime of OCaml 4.12 to 4.14 in the program: the variables that are read and the three
//! words that are written, each proved by the code that uses it.
//!
//! Facts are those of `runtime/minor_gc.c`, `signals.c`, `memprof.c` and
//! `caml/domain_state.tbl`, 4.12.0 to 4.14.1, native code and bytecode alike.

use crate::code::{Code, Request, YOUNG_ALLOC_END};
use crate::elf::{Image, Kind};
use crate::images::Images;
use crate::maps::Maps;
use crate::memory::{Memory, Writable};
use crate::refusal::Refusal;
use crate::stopped::Stopped;

/// Words of the state: the table has at least 54 entries.
const STATE_WORDS: usize = 54;

/// Other indices in `domain_state.tbl`, the same in all these releases.
const YOUNG_START: usize = 4;
const YOUNG_END: usize = 5;
const YOUNG_ALLOC_START: usize = 6;
const YOUNG_TRIGGER: usize = 9;
const MINOR_HEAP_WSZ: usize = 10;

/// `Minor_heap_min` and `Minor_heap_max` (`caml/config.h`).
const MINOR_HEAP_SIZES: std::ops::RangeInclusive<u64> = 4096..=1 << 28;

/// While the runtime is being called, the young pointer may already be below the heap by what
/// is to be allocated.
const LARGEST_SMALL_ALLOCATION: u64 = 1 << 16;

/// Enough of a function to see what it uses.
const CODE: u64 = 160;

/// Addresses in the program.
#[derive(Debug)]
pub(crate) struct Runtime {
    /// `caml_minor_gc_begin_hook`
    pub(crate) hook: Writable,
    /// `Caml_state`, and where it points.
    state_variable: u64,
    state: u64,
    /// `caml_memprof_young_trigger`
    memprof_trigger: u64,
    /// `caml_something_to_do`, an `int`.
    something_to_do: u64,
    /// Whether `Gc.Memprof` was started, an `int`.
    memprof_started: u64,
    request: Request,
}

/// The runtime's words at a moment at which all threads stand still.
pub(crate) struct Moment {
    /// Where `requested_minor_gc` and `young_limit` are.
    requested: Writable,
    limit: Writable,
    alloc_end: u64,
    /// What `caml_update_young_limit` would make the limit; `None` if that is not clear.
    settled: Option<u64>,
    is_raised: bool,
}

/// Why nothing can be done at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotNow {
    /// The memory is gone.
    Gone,
    /// The runtime is changing its words, or they are not what they seemed.
    Unsettled,
    /// `Gc.Memprof` is in use.
    Memprof,
}

impl Runtime {
    pub(crate) fn find(memory: &Memory, maps: &Maps, images: &Images) -> Result<Runtime, Refusal> {
        let image = which(memory, images)?;
        let finder = Finder { memory, maps, images, image };
        let (state_variable, hook) =
            (finder.variable("Caml_state", 8)?, finder.variable("caml_minor_gc_begin_hook", 8)?);
        let memprof_trigger = finder.variable("caml_memprof_young_trigger", 8)?;
        let something_to_do = finder.variable("caml_something_to_do", 4)?;
        let request = finder.code("caml_request_minor_gc")?;
        let update = finder.code("caml_update_young_limit")?;
        finder.used(&request, state_variable, "caml_request_minor_gc and Caml_state")?;
        finder.used(&update, memprof_trigger, "the trigger of samples")?;
        finder.used(&update, something_to_do, "caml_something_to_do")?;
        finder.used(&finder.code("caml_empty_minor_heap")?, hook, "the hook")?;
        let request = request
            .request()
            .filter(|request| {
                request.young_limit <= 1 && request.requested_minor_gc < STATE_WORDS as u64
            })
            .ok_or(Refusal::UnknownLayout { what: "what caml_request_minor_gc sets" })?;
        let started = finder.code("caml_memprof_stop")?.started();
        let memprof_started = started
            .filter(|&started| maps.is_variable(started, 4))
            .ok_or(Refusal::UnknownLayout { what: "what caml_memprof_stop tests" })?;
        let state = memory.word(state_variable).ok_or(Refusal::Ended)?;
        let runtime = Runtime {
            hook: Writable { start: hook, size: 8 },
            state_variable,
            state,
            memprof_trigger,
            something_to_do,
            memprof_started,
            request,
        };
        runtime.check_started(memory, maps)?;
        Ok(runtime)
    }

    fn check_started(&self, memory: &Memory, maps: &Maps) -> Result<(), Refusal> {
        if self.state == 0 {
            return Err(Refusal::NotStarted);
        }
        if !self.state.is_multiple_of(8) || !maps.is_variable(self.state, STATE_WORDS as u64 * 8) {
            return Err(Refusal::UnknownLayout { what: "where Caml_state points" });
        }
        let end = memory.word(self.state + YOUNG_ALLOC_END * 8).ok_or(Refusal::Ended)?;
        if end == 0 { Err(Refusal::NotStarted) } else { Ok(()) }
    }

    /// Reads the runtime's words, which no thread changes now.
    pub(crate) fn moment(&self, memory: &Memory) -> Result<Moment, NotNow> {
        let mut bytes = [0; STATE_WORDS * 8];
        memory.read(self.state, &mut bytes).ok_or(NotNow::Gone)?;
        let word = |index: usize| {
            let bytes = bytes.get(index * 8..).and_then(<[u8]>::first_chunk);
            bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        let state = memory.word(self.state_variable).ok_or(NotNow::Gone)?;
        let trigger = memory.word(self.memprof_trigger).ok_or(NotNow::Gone)?;
        let pending = memory.int(self.something_to_do).ok_or(NotNow::Gone)?;
        if state != self.state || !self.is_sound(word) {
            return Err(NotNow::Unsettled);
        }
        if memory.int(self.memprof_started).ok_or(NotNow::Gone)? != 0 {
            return Err(NotNow::Memprof);
        }
        let alloc_end = word(YOUNG_ALLOC_END as usize);
        let is_inside = (word(YOUNG_ALLOC_START)..=alloc_end).contains(&trigger);
        let settled = if pending != 0 { alloc_end } else { trigger.max(word(YOUNG_TRIGGER)) };
        let at = |index: u64| Writable { start: self.state + index * 8, size: 8 };
        Ok(Moment {
            requested: at(self.request.requested_minor_gc),
            limit: at(self.request.young_limit),
            alloc_end,
            settled: is_inside.then_some(settled),
            is_raised: word(self.request.young_limit as usize) == alloc_end
                && word(self.request.requested_minor_gc as usize) == 1,
        })
    }

    /// Whether the words of the state describe a young heap.
    fn is_sound(&self, word: impl Fn(usize) -> u64) -> bool {
        let (start, end) = (word(YOUNG_ALLOC_START), word(YOUNG_ALLOC_END as usize));
        let limit = word(self.request.young_limit as usize);
        let pointer = word(1 - self.request.young_limit as usize);
        let (lowest, highest) = (word(YOUNG_START), word(YOUNG_END));
        let heap = start..=end;
        let is_aligned = (start | end | pointer).is_multiple_of(8);
        let size = end.checked_sub(start).map(|bytes| bytes / 8);
        is_aligned
            && lowest <= start
            && end <= highest
            && size.is_some_and(|words| MINOR_HEAP_SIZES.contains(&words))
            && size == Some(word(MINOR_HEAP_WSZ))
            && heap.contains(&limit)
            && heap.contains(&word(YOUNG_TRIGGER))
            && (start.saturating_sub(LARGEST_SMALL_ALLOCATION)..=end).contains(&pointer)
            && word(self.request.requested_minor_gc as usize) <= 1
    }

    /// Whether the running thread has undone a request, as it may at the very moment it is made.
    /// Reads while threads run, so this is a hint.
    pub(crate) fn is_request_lost(&self, memory: &Memory) -> bool {
        self.moment(memory).is_ok_and(|moment| !moment.is_raised)
    }
}

impl Moment {
    #[cfg(test)]
    pub(crate) fn writable(&self) -> [Writable; 2] {
        [self.requested, self.limit]
    }

    /// Asks the program to collect at its next allocation.
    ///
    /// As `caml_request_minor_gc`, but without `caml_something_to_do`: up to 4.14.1 the runtime
    /// would run pending actions inside its handler of stack overflows (ocaml/ocaml#11303).
    /// Any thread of the runtime may be interrupted anywhere: what it does next with these
    /// words is what it does when a signal was recorded meanwhile.
    pub(crate) fn poke(&self, memory: &Memory, stopped: &Stopped) -> std::io::Result<()> {
        memory.write_word(stopped, self.requested, 1)?;
        memory.write_word(stopped, self.limit, self.alloc_end)
    }

    /// Makes the limit what the runtime would, as a call of `caml_update_young_limit`
    /// at this moment. The request stays, since the runtime may have made it too: that is
    /// one collection done early.
    pub(crate) fn settle(&self, memory: &Memory, stopped: &Stopped) -> std::io::Result<()> {
        match self.settled {
            Some(limit) => memory.write_word(stopped, self.limit, limit),
            None => Ok(()),
        }
    }
}

/// The file with the runtime, if it is one of those that are known.
fn which<'a>(memory: &Memory, images: &'a Images) -> Result<&'a Image, Refusal> {
    if let Some(image) = images.defining(memory, "Caml_state") {
        return if image.symbol(memory, "caml_memprof_main_ctx").is_some() {
            Ok(image)
        } else {
            Err(Refusal::OldOcaml)
        };
    }
    let is_five = images.has(memory, "caml_state", Kind::ThreadLocal);
    Err(if is_five { Refusal::Ocaml5 } else { Refusal::NotOcaml })
}

/// Looks up symbols and checks what they are.
struct Finder<'a> {
    memory: &'a Memory,
    maps: &'a Maps,
    images: &'a Images,
    image: &'a Image,
}

impl Finder<'_> {
    /// An aligned variable of that size.
    fn variable(&self, name: &'static str, size: u64) -> Result<u64, Refusal> {
        let symbol = self.images.symbol(self.memory, self.image, name);
        symbol
            .filter(|symbol| symbol.kind == Kind::Variable && symbol.size == size)
            .map(|symbol| symbol.address)
            .filter(|address| address.is_multiple_of(size) && self.maps.is_variable(*address, size))
            .ok_or(Refusal::UnknownLayout { what: name })
    }

    /// The beginning of a function of the runtime.
    fn code(&self, name: &'static str) -> Result<Code, Refusal> {
        let unknown = Refusal::UnknownLayout { what: name };
        let symbol = self.image.symbol(self.memory, name);
        let symbol = symbol
            .filter(|symbol| symbol.kind == Kind::Function && self.maps.is_code(symbol.address));
        let symbol = symbol.ok_or(unknown.clone())?;
        let size = usize::try_from(symbol.size.min(CODE)).unwrap_or(0);
        let mut bytes = vec![0; size];
        self.memory.read(symbol.address, &mut bytes).ok_or(unknown)?;
        Ok(Code { at: symbol.address, bytes })
    }

    fn used(&self, code: &Code, variable: u64, what: &'static str) -> Result<(), Refusal> {
        let is_used = code.uses(self.memory, variable);
        is_used.then_some(()).ok_or(Refusal::UnknownLayout { what })
    }
}
