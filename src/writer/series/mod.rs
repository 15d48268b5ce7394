//! A series of files that is read as one trace (`docs/series-format.md`).
//!
//! - `live_blocks`: what is alive, with its stacks.
//! - `sidecar`: the file beside a part: what was alive when the part began, and what became later
//!   of blocks that are not in the part.
//! - `store`: where the parts are, in files or in memory.
//! - `records`: reads records while a series is written. A plain trace never comes here.
//! - here: [`Series`], which goes on from part to part.
//!
//! A block has one id in the series, in whatever file it appears: the id that it has in its part,
//! plus how many ids the parts before have used.
//! The blocks of a part have its rate. A mutator takes up a new rate at a moment of its own, and a
//! budget changes the rate often: blocks that are sampled at another rate than the part's go into the
//! sidecar. So a trace of one file can have several rates too: it is then a series of one part.
//!
//! # Killed at any moment
//!
//! The sidecar of a part is written up to its first live bytes before its trace exists, and the
//! old part is ended after the new one has begun. Whatever of that is missing, each part that
//! has a trace has a sidecar with all that was alive when it began.

mod live_blocks;
mod records;
mod sidecar;
mod store;

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use heaptap_trace::{
    Block, CarriedEnds, End, Locate, STRAY_IDS, SeriesHead, SeriesId, series_name,
};

use crate::sys::file::{FileError, create_series_sidecar};
use live_blocks::{Birth, LiveBlocks};
pub(crate) use records::SeriesLane;
use sidecar::PartSidecar;
use store::StoredFile;
pub(crate) use store::{ClaimedPart, PartOutput, SharedFiles, Store};

/// When a new part begins, besides when somebody asks for one, and how much is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RotationLimits {
    /// The most bytes of a part, sidecars included.
    pub(crate) bytes: Option<u64>,
    /// The longest time of a part.
    pub(crate) age: Option<Duration>,
    /// The most parts.
    pub(crate) keep: usize,
}

impl RotationLimits {
    /// Those that somebody asks for, in the words of the settings; what is not said is as in the
    /// program's settings. An error says what is possible.
    pub(crate) fn asked_for(
        rotate: Option<&str>,
        keep: Option<u64>,
        settings: Option<RotationLimits>,
    ) -> Result<Option<RotationLimits>, String> {
        let mut limits = settings;
        if let Some(rotate) = rotate {
            let heaptap_settings::Rotation { bytes, age } =
                heaptap_settings::Rotation::parse(rotate).ok_or_else(|| {
                    format!("rotate=WHEN: not {}", heaptap_settings::ROTATE.syntax)
                })?;
            let keep = settings.map_or(heaptap_settings::DEFAULT_KEEP as usize, |known| known.keep);
            limits = Some(RotationLimits { bytes, age, keep });
        }
        if let Some(keep) = keep {
            let limits = limits.as_mut().ok_or("keep=N is for a series: add rotate=WHEN")?;
            let keep = heaptap_settings::KEEP.integer(&keep.to_string());
            limits.keep =
                keep.map_err(|invalid| format!("keep=N: not {}", invalid.expected))? as usize;
        }
        Ok(limits)
    }

    /// A part is left this many bytes before it has the most: what is read from the event buffers
    /// until then must fit.
    fn due_bytes(&self) -> Option<u64> {
        self.bytes.map(|bytes| bytes - bytes / 4)
    }

    /// The most bytes of the list of what is alive, for a part to have room for anything else.
    fn most_base(&self) -> u64 {
        self.bytes.map_or(u64::MAX, |bytes| bytes / 2)
    }
}

/// The frames of different stacks of blocks that are not in the trace, at which those of dead ones are
/// forgotten: some 10 MB.
const MOST_NODES: usize = if cfg!(test) { 16 } else { 1 << 18 };

/// A series that is being written.
pub(crate) struct Series {
    store: Store,
    pub(crate) limits: RotationLimits,
    id: SeriesId,
    /// When it begins, in microseconds since the epoch; 0 before.
    start: u64,
    /// How many parts have begun.
    begun: u64,
    /// The rates by number. Those that nothing has any more are forgotten when a part begins.
    rates: Vec<f64>,
    /// The number of the part's rate.
    rate: u32,
    /// By lane, the number of the rate at which its blocks are sampled.
    lane_rates: Vec<u32>,
    /// That of lanes which have not said theirs: they began before rates changed.
    silent_rate: u32,
    live: LiveBlocks,
    /// `None` before the first part.
    sidecar: Option<PartSidecar>,
    /// The ids of the parts before are below this.
    first_id: u64,
    /// The id of the next block that is sampled at an earlier rate.
    next_stray: u64,
    part_began: Instant,
    /// Anything has happened since.
    part_is_used: bool,
    /// With as many nodes the call tree is rebuilt.
    most_nodes: usize,
}

impl Series {
    pub(crate) fn new(store: Store, limits: RotationLimits, id: SeriesId) -> Series {
        Series {
            store,
            limits,
            id,
            start: 0,
            begun: 0,
            rates: Vec::new(),
            rate: 0,
            lane_rates: Vec::new(),
            silent_rate: 0,
            live: LiveBlocks::default(),
            sidecar: None,
            first_id: 0,
            next_stray: STRAY_IDS,
            part_began: Instant::now(),
            part_is_used: false,
            most_nodes: MOST_NODES,
        }
    }

    /// A series of one file, whose only part has this trace: for blocks that are sampled at other
    /// rates. Nothing goes on in another file, so it is not noted what is alive.
    pub(crate) fn beside(trace: &Path, id: SeriesId) -> Result<(Series, ClaimedPart), FileError> {
        let sidecar = create_series_sidecar(Path::new(&series_name(trace.as_os_str())))?;
        let mut series = Series::new(Store::OneFile, RotationLimits::default(), id);
        series.live = LiveBlocks::of_one_file();
        let sidecar = StoredFile::File(sidecar);
        Ok((series, ClaimedPart { trace: trace.to_owned(), sidecar }))
    }

    /// The id of another series of the same process.
    pub(crate) fn next_id(&self) -> SeriesId {
        u128::from_le_bytes(self.id).wrapping_add(1).to_le_bytes()
    }

    /// The lanes are at the rates that they have in another series of one file, which ends.
    pub(crate) fn take_rates_of(&mut self, other: &Series) {
        self.rates.clone_from(&other.rates);
        self.lane_rates.clone_from(&other.lane_rates);
        self.silent_rate = other.silent_rate;
    }

    /// Claims the files of the next part.
    pub(crate) fn claim(&self) -> Result<ClaimedPart, FileError> {
        self.store.claim(self.limits.bytes)
    }

    /// Makes the trace of a part.
    pub(crate) fn open(&self, trace: &Path) -> Result<PartOutput, FileError> {
        self.store.open(trace)
    }

    /// Begins a part: writes what is alive into its sidecar. The part before has used so many ids.
    /// If this fails the series is over. Returns the name of its trace, and the sidecar of the
    /// part before.
    pub(crate) fn begin_part(
        &mut self,
        part: ClaimedPart,
        rate: f64,
        start_time: u64,
        used_ids: u64,
        locate: &mut impl Locate,
    ) -> io::Result<(PathBuf, Option<PartSidecar>)> {
        let ClaimedPart { trace, sidecar } = part;
        if self.begun == 0 {
            self.start = start_time;
        }
        let number = self.rate_number(rate);
        if self.begun == 0 && self.lane_rates.is_empty() {
            self.silent_rate = number;
        }
        self.forget_rates(number);
        self.live.compact();
        let first_id = self.first_id + used_ids;
        let head = SeriesHead {
            series: self.id,
            part: self.begun,
            rate,
            start_time,
            series_start: self.start,
            first_id,
        };
        let most = self.store.most_base().unwrap_or(self.limits.most_base());
        let out = (sidecar, self.store.clone());
        let sidecar = PartSidecar::begin(out, &head, &self.rates, &self.live, most, locate)
            .inspect_err(|_| self.store.abandon())?;
        self.first_id = first_id;
        self.begun += 1;
        self.part_began = Instant::now();
        self.part_is_used = false;
        Ok((trace, self.sidecar.replace(sidecar)))
    }

    /// The part before this one is over.
    pub(crate) fn end_before(&mut self, before: Option<PartSidecar>, time: u64) -> io::Result<()> {
        let ended = before.map_or(Ok(()), |mut sidecar| sidecar.end(time));
        self.store.end_before();
        ended
    }

    /// Whether it is time for another part.
    pub(crate) fn is_due(&self) -> bool {
        let is_old = self.limits.age.is_some_and(|age| self.part_began.elapsed() >= age);
        // Of what is in memory, a part in which nothing happens is left only when something does.
        (is_old && (self.part_is_used || !self.store.is_memory()))
            || self.limits.due_bytes().is_some_and(|due| {
                let pending = self.sidecar.as_ref().map_or(0, PartSidecar::pending);
                self.store.bytes() + pending as u64 >= due
            })
    }

    /// The part begins again in its trace, after that was truncated: what it had, which has used so
    /// many ids, is not in it.
    pub(crate) fn restarted(&mut self, used_ids: u64) {
        self.first_id += used_ids;
        if let Some(sidecar) = &mut self.sidecar {
            sidecar.restarted(self.first_id);
        }
    }

    /// The id in the series of the block with this id in the part.
    fn id_of(&self, in_part: u64) -> u64 {
        self.first_id + in_part
    }

    /// The ids in the part of blocks that are in it.
    fn ids_in_part(&self, ids: &Range<u64>) -> Range<u64> {
        ids.start - self.first_id..ids.end - self.first_id
    }

    /// The number of a rate, which is added if it is new.
    fn rate_number(&mut self, rate: f64) -> u32 {
        let known = self.rates.iter().position(|&known| known == rate);
        known.unwrap_or_else(|| {
            self.rates.push(rate);
            self.rates.len() - 1
        }) as u32
    }

    /// Forgets all rates but those of live blocks, of lanes, and the one with this number, which
    /// becomes that of the part.
    fn forget_rates(&mut self, part: u32) {
        let mut numbers = vec![None; self.rates.len()];
        let old = std::mem::take(&mut self.rates);
        let rates = &mut self.rates;
        let mut number = |rate: u32| {
            let Some(place) = numbers.get_mut(rate as usize) else { return 0 };
            *place.get_or_insert_with(|| {
                rates.extend(old.get(rate as usize));
                rates.len() as u32 - 1
            })
        };
        self.rate = number(part);
        self.silent_rate = number(self.silent_rate);
        self.lane_rates.iter_mut().for_each(|rate| *rate = number(*rate));
        self.live.renumber_rates(number);
    }

    /// Has a rate in the sidecar at which blocks may be sampled from now on. Returns its number.
    pub(crate) fn know_rate(&mut self, rate: f64) -> u32 {
        let number = self.rate_number(rate);
        if let Some(sidecar) = &mut self.sidecar {
            sidecar.know_rates(&self.rates);
        }
        number
    }

    /// The blocks of a lane are sampled at this rate from now on.
    fn set_lane_rate(&mut self, lane: u16, rate: f64) {
        let number = self.know_rate(rate);
        let lane = usize::from(lane);
        if self.lane_rates.len() <= lane {
            self.lane_rates.resize(lane + 1, self.silent_rate);
        }
        if let Some(place) = self.lane_rates.get_mut(lane) {
            *place = number;
        }
    }

    /// The number of the rate of a lane; `None` if it is that of the part.
    fn other_rate(&self, lane: u16) -> Option<u32> {
        let rate = self.lane_rates.get(usize::from(lane)).copied().unwrap_or(self.silent_rate);
        Some(rate).filter(|&rate| rate != self.rate)
    }

    /// A block of the part was allocated.
    fn born(&mut self, id: u64, time: u64, lane: u16, block: Block, frames: &[u64]) {
        if self.live.is_of_one_file() {
            return;
        }
        self.part_is_used = true;
        self.live.born(&Birth { id, time, lane, block, frames, rate: self.rate });
    }

    /// A block was allocated that was sampled at another rate than the part's. Returns its id.
    fn stray(
        &mut self,
        rate: u32,
        birth: (u64, u16, Block),
        frames: &[u64],
        position: u64,
        locate: &mut impl Locate,
    ) -> u64 {
        let (time, lane, block) = birth;
        self.part_is_used = true;
        self.bound_stacks();
        let id = self.next_stray;
        self.next_stray += 1;
        let alive = self.live.born(&Birth { id, time, lane, block, frames, rate });
        if let Some(sidecar) = &mut self.sidecar {
            let node = sidecar.node(alive.node, &self.live.tree, locate);
            sidecar.block(&sidecar::carried(id, &alive, node, position));
        }
        id
    }

    /// Forgets stacks that nothing has any more, before there are so many that they are a burden for the
    /// program and for readers: a part may be written for months.
    fn bound_stacks(&mut self) {
        if self.live.tree.len() >= self.most_nodes {
            self.live.compact();
            self.most_nodes = MOST_NODES.max(2 * self.live.tree.len());
            if let Some(sidecar) = &mut self.sidecar {
                sidecar.forget_nodes();
            }
        }
    }

    /// Whether a block is in the trace of this part.
    fn is_in_part(&self, id: u64) -> bool {
        (self.first_id..STRAY_IDS).contains(&id)
    }

    /// A block was promoted or collected. `position`: the id of the domain's next allocation.
    fn ended(&mut self, end: End, id: u64, time: u64, domain: u16, position: u64) {
        self.part_is_used = true;
        match end {
            End::Promote => self.live.promoted(id, time),
            End::Collect => self.live.died(id),
        }
        if !self.is_in_part(id)
            && let Some(sidecar) = &mut self.sidecar
        {
            sidecar.ends(CarriedEnds { end, time, domain, position, first: id, count: 1 });
        }
    }

    /// Writes everything that was added to the sidecar.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.sidecar.as_mut().map_or(Ok(()), PartSidecar::flush)
    }

    /// The same as often as much was added.
    fn flush_full(&mut self) -> io::Result<()> {
        self.sidecar.as_mut().map_or(Ok(()), PartSidecar::flush_full)
    }

    /// Ends the part at this time.
    pub(crate) fn end_part(&mut self, time: u64) -> io::Result<()> {
        match self.sidecar.take() {
            Some(mut sidecar) => sidecar.end(time),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
