//! The lives of objects: allocated once, promoted at most once, then collected
//! at most once. External memory has no generation and is never promoted.
//!
//! There are four bits for each id, in pages of 65,536 ids that are allocated on
//! first use. In a file, packets of several domains are not in the order of time:
//! an object may be collected in a packet that precedes the one it is allocated
//! in. So whether an object was allocated at all is checked at the end, and whether
//! it was promoted after its collection only while there is one domain.

use std::collections::HashMap;
use std::mem::size_of;

use heaptap_report::figures::units::{count, duration};
use heaptap_trace::{End, Event, EventKind, Losses, Source};

use crate::exit_status::Verdict;

/// A violation of an object's life cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offence {
    PromotedTwice,
    CollectedTwice,
    PromotedAfterCollection,
    NeverAllocated,
    ExternalPromoted,
}

impl Offence {
    pub(crate) const ALL: [Offence; 5] = [
        Offence::PromotedTwice,
        Offence::CollectedTwice,
        Offence::PromotedAfterCollection,
        Offence::NeverAllocated,
        Offence::ExternalPromoted,
    ];

    /// What the object did wrong, after its name.
    pub(crate) fn description(self) -> &'static str {
        match self {
            Offence::PromotedTwice => "promoted twice",
            Offence::CollectedTwice => "collected twice",
            Offence::PromotedAfterCollection => "promoted after collection",
            Offence::NeverAllocated => "promoted or collected, but never allocated",
            Offence::ExternalPromoted => {
                "promoted, but external memory, which other readers refuse"
            }
        }
    }

    /// Whether this is a defect with --strict only: no number is wrong.
    pub(crate) fn is_harmless(self) -> bool {
        self == Offence::ExternalPromoted
    }
}

/// How often an offence was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cases {
    pub(crate) count: u64,
    /// The object of the first one.
    pub(crate) first: u64,
    /// When it happened, if that is known.
    pub(crate) time: Option<u64>,
}

impl Cases {
    /// One line about them. `start` is the time at which the trace begins.
    pub(crate) fn line(&self, offence: Offence, start: u64) -> String {
        let objects = count(self.count, "object", "objects");
        let line = format!("{objects} {}, the first is {}", offence.description(), self.first);
        match self.time {
            Some(time) => format!("{line} after {}", duration(time.saturating_sub(start))),
            None => line,
        }
    }
}

/// What a report needs to know of the trace that was read.
pub(crate) struct ReadTrace<'a> {
    pub(crate) losses: &'a Losses,
    /// The time at which it begins.
    pub(crate) start: u64,
}

const PAGE_BITS: u32 = 16;
/// Pages below this number are found without hashing: a billion ids.
const LOW_PAGES: usize = 1 << 14;
const WORDS: usize = (1 << PAGE_BITS) / 64;

/// One bit for each id of a page.
type Plane = [u64; WORDS];

struct Page {
    allocated: Plane,
    promoted: Plane,
    collected: Plane,
    external: Plane,
}

impl Page {
    fn new() -> Box<Page> {
        let none = [0; WORDS];
        Box::new(Page { allocated: none, promoted: none, collected: none, external: none })
    }
}

/// The events of each object so far.
pub(crate) struct Lives {
    /// The pages of low ids, by number.
    low_pages: Vec<Option<Box<Page>>>,
    high_pages: HashMap<u64, Box<Page>>,
    page_count: usize,
    most_pages: usize,
    cases: [Cases; Offence::ALL.len()],
    /// The object of the first event that was not checked, because memory is bounded.
    unchecked: Option<u64>,
    domain: Option<u16>,
    several_domains: bool,
}

impl Lives {
    /// The memory for pages where the check is the purpose: enough for 500 million
    /// objects.
    pub(crate) const MOST_MEMORY: usize = 256 << 20;

    /// The memory for pages where it is not: enough for 130 million objects.
    pub(crate) const MEMORY: usize = 64 << 20;

    /// `memory` bounds the bytes that pages may take.
    pub(crate) fn new(memory: usize) -> Self {
        Lives {
            low_pages: Vec::new(),
            high_pages: HashMap::new(),
            page_count: 0,
            most_pages: memory / size_of::<Page>(),
            cases: Default::default(),
            unchecked: None,
            domain: None,
            several_domains: false,
        }
    }

    /// Takes the next event. Returns the violation, if it is one, and the object.
    #[inline]
    pub(crate) fn event(&mut self, event: &Event<'_>) -> Option<(Offence, u64)> {
        self.several_domains |= *self.domain.get_or_insert(event.domain) != event.domain;
        let id = event.kind.block_id()?;
        let one_domain = !self.several_domains;
        let Some(page) = self.page(id) else {
            self.unchecked.get_or_insert(id);
            return None;
        };
        let offence = match event.kind {
            EventKind::Alloc(allocation) => {
                set(&mut page.allocated, id);
                let external = allocation.source == Source::External;
                if external {
                    set(&mut page.external, id);
                }
                (external && has(&page.promoted, id)).then_some(Offence::ExternalPromoted)
            }
            EventKind::Promote(_) if set(&mut page.promoted, id) => Some(Offence::PromotedTwice),
            EventKind::Promote(_) if has(&page.external, id) => Some(Offence::ExternalPromoted),
            EventKind::Promote(_) => {
                (one_domain && has(&page.collected, id)).then_some(Offence::PromotedAfterCollection)
            }
            EventKind::Collect(_) => {
                set(&mut page.collected, id).then_some(Offence::CollectedTwice)
            }
            // No rule about other kinds.
            _ => None,
        };
        if let Some(offence) = offence {
            self.count(offence, id, event.time);
        }
        offence.map(|offence| (offence, id))
    }

    #[inline]
    fn page(&mut self, id: u64) -> Option<&mut Page> {
        let number = (id >> PAGE_BITS) as usize;
        // Looked up twice, which the borrow checker asks for.
        if self.low_pages.get(number).is_some_and(Option::is_some) {
            return self.low_pages[number].as_deref_mut();
        }
        self.rare_page(id)
    }

    /// The page of an id, if it is new or a high one.
    #[cold]
    fn rare_page(&mut self, id: u64) -> Option<&mut Page> {
        let number = id >> PAGE_BITS;
        let is_known = match usize::try_from(number) {
            Ok(index) if index < LOW_PAGES => {
                if index >= self.low_pages.len() {
                    self.low_pages.resize_with(index + 1, || None);
                }
                self.low_pages[index].is_some()
            }
            _ => self.high_pages.contains_key(&number),
        };
        if !is_known {
            if self.page_count >= self.most_pages {
                return None;
            }
            self.page_count += 1;
        }
        Some(match self.low_pages.get_mut(number as usize) {
            Some(page) if number < LOW_PAGES as u64 => page.get_or_insert_with(Page::new),
            _ => self.high_pages.entry(number).or_insert_with(Page::new),
        })
    }

    fn count(&mut self, offence: Offence, id: u64, time: u64) {
        let cases = &mut self.cases[offence as usize];
        if cases.count == 0 {
            (cases.first, cases.time) = (id, Some(time));
        }
        cases.count += 1;
    }

    /// At the end of a trace of which nothing is missing: finds objects that were
    /// never allocated.
    pub(crate) fn find_never_allocated(&mut self) {
        let low = (0..).zip(&self.low_pages);
        let low = low.filter_map(|(number, page)| Some((number, page.as_deref()?)));
        let mut high: Vec<(u64, &Page)> =
            self.high_pages.iter().map(|(&number, page)| (number, &**page)).collect();
        high.sort_unstable_by_key(|&(number, _)| number);
        for (number, page) in low.chain(high) {
            let planes = page.allocated.iter().zip(&page.promoted).zip(&page.collected);
            let orphans = planes
                .map(|((allocated, promoted), collected)| (promoted | collected) & !allocated);
            let mut found = Cases::default();
            for (at, word) in orphans.enumerate().filter(|&(_, word)| word != 0) {
                if found.count == 0 {
                    let bit = at as u64 * 64 + u64::from(word.trailing_zeros());
                    found.first = number << PAGE_BITS | bit;
                }
                found.count += u64::from(word.count_ones());
            }
            let cases = &mut self.cases[Offence::NeverAllocated as usize];
            if cases.count == 0 {
                cases.first = found.first;
            }
            cases.count += found.count;
        }
    }

    /// The violations that occurred, and how often.
    pub(crate) fn offences(&self) -> impl Iterator<Item = (Offence, Cases)> + '_ {
        Offence::ALL.into_iter().zip(self.cases).filter(|(_, cases)| cases.count > 0)
    }

    /// After the last event: whether an object cannot have had this event, however the
    /// domains were ordered.
    pub(crate) fn forbids(&self, end: End, id: u64) -> bool {
        let number = id >> PAGE_BITS;
        let low = self.low_pages.get(number as usize).filter(|_| number < LOW_PAGES as u64);
        let page = match low {
            Some(page) => page.as_deref(),
            None => self.high_pages.get(&number).map(|page| &**page),
        };
        page.is_some_and(|page| {
            !has(&page.allocated, id) || end == End::Promote && has(&page.external, id)
        })
    }

    /// After the last event: a line about each kind of violation. `outcome` says what
    /// became of the events; without one, there is no line.
    pub(crate) fn findings(
        &mut self,
        trace: &ReadTrace<'_>,
        outcome: &dyn Fn(Offence) -> Option<&'static str>,
    ) -> (Vec<String>, Verdict) {
        // If something is missing, an object's allocation may be, too.
        if trace.losses.is_clean() {
            self.find_never_allocated();
        }
        let (mut lines, mut verdict) = (Vec::new(), Verdict::Sound);
        for (offence, cases) in self.offences() {
            let Some(outcome) = outcome(offence) else { continue };
            lines.push(format!("{}: {outcome}", cases.line(offence, trace.start)));
            if !offence.is_harmless() {
                verdict = Verdict::Defective;
            }
        }
        (lines, verdict)
    }

    /// The first object that was not checked.
    pub(crate) fn unchecked(&self) -> Option<u64> {
        self.unchecked
    }
}

/// The word of an id in a plane, and its bit in that word.
fn position(id: u64) -> (usize, u64) {
    let bit = id & ((1 << PAGE_BITS) - 1);
    ((bit / 64) as usize, 1 << (bit % 64))
}

fn has(plane: &Plane, id: u64) -> bool {
    let (word, bit) = position(id);
    plane[word] & bit != 0
}

/// Sets a bit; true if it was set.
fn set(plane: &mut Plane, id: u64) -> bool {
    let (word, bit) = position(id);
    let was = plane[word] & bit != 0;
    plane[word] |= bit;
    was
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_trace::{Allocation, Backtrace};

    fn event(domain: u16, kind: EventKind<'_>) -> Event<'_> {
        Event { time: 0, domain, kind }
    }

    fn allocation(id: u64) -> EventKind<'static> {
        let backtrace = Backtrace { frames: &[], common_prefix: 0, new: &[] };
        EventKind::Alloc(Allocation { id, length: 1, samples: 1, source: Source::Minor, backtrace })
    }

    #[test]
    fn every_offence_is_found_with_its_first_object_and_count() {
        let mut lives = Lives::new(Lives::MEMORY);
        for id in 0..200_000 {
            assert_eq!(lives.event(&event(0, allocation(id))), None);
        }
        let promote = |lives: &mut Lives, id| lives.event(&event(0, EventKind::Promote(id)));
        let collect = |lives: &mut Lives, id| lives.event(&event(0, EventKind::Collect(id)));
        assert_eq!(promote(&mut lives, 70_000), None);
        assert_eq!(promote(&mut lives, 70_000), Some((Offence::PromotedTwice, 70_000)));
        assert_eq!(collect(&mut lives, 70_000), None);
        assert_eq!(collect(&mut lives, 70_000), Some((Offence::CollectedTwice, 70_000)));
        assert_eq!(collect(&mut lives, 5), None);
        assert_eq!(promote(&mut lives, 5), Some((Offence::PromotedAfterCollection, 5)));
        assert_eq!(collect(&mut lives, 1 << 50), None);
        assert_eq!(collect(&mut lives, 250_000), None);
        lives.find_never_allocated();
        let found: Vec<_> = lives.offences().map(|(_, cases)| (cases.count, cases.first)).collect();
        assert_eq!(found, [(1, 70_000), (1, 70_000), (1, 5), (2, 250_000)]);
    }

    #[test]
    fn external_memory_is_not_promoted_in_either_order_of_the_file() {
        let external = |id| {
            let EventKind::Alloc(mut allocation) = allocation(id) else { unreachable!() };
            allocation.source = Source::External;
            EventKind::Alloc(allocation)
        };
        let mut lives = Lives::new(Lives::MEMORY);
        assert_eq!(lives.event(&event(0, external(3))), None);
        let promoted = lives.event(&event(0, EventKind::Promote(3)));
        assert_eq!(promoted, Some((Offence::ExternalPromoted, 3)));
        assert_eq!(lives.event(&event(1, EventKind::Promote(4))), None);
        let allocated = lives.event(&event(0, external(4)));
        assert_eq!(allocated, Some((Offence::ExternalPromoted, 4)));
        assert_eq!(lives.event(&event(0, EventKind::Collect(3))), None);
        let found: Vec<_> = lives.offences().collect();
        assert_eq!(
            found,
            [(Offence::ExternalPromoted, Cases { count: 2, first: 3, time: Some(0) })]
        );
    }

    #[test]
    fn in_several_domains_the_order_in_the_file_proves_nothing() {
        let mut lives = Lives::new(Lives::MEMORY);
        lives.event(&event(0, allocation(1)));
        lives.event(&event(1, EventKind::Collect(20_000)));
        lives.event(&event(0, EventKind::Promote(20_000)));
        lives.event(&event(0, allocation(20_000)));
        lives.find_never_allocated();
        assert_eq!(lives.offences().count(), 0);
    }

    #[test]
    fn memory_is_bounded_and_what_is_not_checked_is_said() {
        let mut lives = Lives::new(Lives::MEMORY);
        lives.most_pages = 2;
        for page in 0..5 {
            lives.event(&event(0, EventKind::Collect(page << PAGE_BITS)));
        }
        assert_eq!(lives.page_count, 2);
        assert_eq!(lives.unchecked(), Some(2 << PAGE_BITS));
    }
}
