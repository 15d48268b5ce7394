//! Packets of a Perfetto trace, one after the other: a `Trace` message of which each is a field.
//!
//! Times are nanoseconds since the epoch, on the clock `REALTIME`, which is declared to be that of
//! the trace.

use std::io::{self, Write};

use super::proto::{
    Clock, ClockSnapshot, CounterDescriptor, CounterValue, InternedData, ProcessDescriptor,
    ProfilePacket, ThreadDescriptor, TracePacket, TrackDescriptor, TrackEvent,
};

const CLOCK_REALTIME: u32 = 1;
/// The clock of the time of a heap profile, and the one that tools take for the trace's if none is
/// declared.
const OTHER_CLOCKS: [u32; 3] = [3, 4, 6];

const INCREMENTAL_STATE_CLEARED: u32 = 1;
const NEEDS_INCREMENTAL_STATE: u32 = 2;

const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;
const INSTANT: i32 = 3;
const COUNTER: i32 = 4;

/// A track: where events are shown.
#[derive(Clone, Copy)]
pub(super) struct Track(u64);

/// What a counter counts.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    Number = 0,
    Nanoseconds = 1,
    Count = 2,
    Bytes = 3,
}

/// The packets that are written.
pub(super) struct Packets<'a> {
    out: &'a mut dyn Write,
    tracks: u64,
}

impl<'a> Packets<'a> {
    /// Begins a trace at this time.
    pub(super) fn new(out: &'a mut dyn Write, start: u64) -> io::Result<Self> {
        let mut packets = Packets { out, tracks: 0 };
        let clocks = [CLOCK_REALTIME].into_iter().chain(OTHER_CLOCKS);
        let clocks = clocks.map(|clock_id| Clock { clock_id, timestamp: start }).collect();
        let snapshot = ClockSnapshot { clocks, primary_trace_clock: CLOCK_REALTIME as i32 };
        packets.put(TracePacket {
            clock_snapshot: Some(snapshot),
            sequence_flags: Some(INCREMENTAL_STATE_CLEARED),
            ..TracePacket::default()
        })?;
        Ok(packets)
    }

    fn put(&mut self, packet: TracePacket) -> io::Result<()> {
        let packet = TracePacket { trusted_packet_sequence_id: 1, ..packet };
        let mut bytes = Vec::new();
        prost::encoding::message::encode(1, &packet, &mut bytes);
        self.out.write_all(&bytes)
    }

    fn add_track(&mut self, descriptor: TrackDescriptor) -> io::Result<Track> {
        self.tracks += 1;
        let descriptor = TrackDescriptor { uuid: self.tracks, ..descriptor };
        self.put(TracePacket { track_descriptor: Some(descriptor), ..TracePacket::default() })?;
        Ok(Track(self.tracks))
    }

    pub(super) fn process(&mut self, pid: u64, name: &str) -> io::Result<Track> {
        let process = ProcessDescriptor { pid: pid as i32, process_name: name.to_owned() };
        let process = Some(process);
        let track = self.add_track(TrackDescriptor { process, ..TrackDescriptor::default() })?;
        // Its first thread has its number.
        let thread_name = name.rsplit('/').next().unwrap_or(name).to_owned();
        let thread = Some(ThreadDescriptor { pid: pid as i32, tid: pid as i64, thread_name });
        self.add_track(TrackDescriptor {
            thread,
            parent_uuid: Some(track.0),
            ..TrackDescriptor::default()
        })?;
        Ok(track)
    }

    /// A track of slices or instants, or one that has others below it.
    pub(super) fn track(&mut self, parent: Track, name: &str) -> io::Result<Track> {
        let (name, parent_uuid) = (Some(name.to_owned()), Some(parent.0));
        self.add_track(TrackDescriptor { name, parent_uuid, ..TrackDescriptor::default() })
    }

    pub(super) fn counter(&mut self, parent: Track, name: &str, unit: Unit) -> io::Result<Track> {
        self.add_track(TrackDescriptor {
            name: Some(name.to_owned()),
            parent_uuid: Some(parent.0),
            counter: Some(CounterDescriptor { unit: unit as i32 }),
            ..TrackDescriptor::default()
        })
    }

    fn event(&mut self, time: u64, event: TrackEvent) -> io::Result<()> {
        self.put(TracePacket {
            timestamp: Some(time),
            timestamp_clock_id: Some(CLOCK_REALTIME),
            track_event: Some(event),
            ..TracePacket::default()
        })
    }

    /// The value of a counter from this time on.
    pub(super) fn count(&mut self, counter: Track, time: u64, value: f64) -> io::Result<()> {
        // Most values are whole, and shorter so.
        let value = match value as i64 {
            whole if whole as f64 == value => CounterValue::Integer(whole),
            _ => CounterValue::Double(value),
        };
        let (r#type, value) = (COUNTER, Some(value));
        self.event(time, TrackEvent { r#type, track_uuid: counter.0, name: None, value })
    }

    pub(super) fn instant(&mut self, track: Track, time: u64, name: &str) -> io::Result<()> {
        let (r#type, name) = (INSTANT, Some(name.to_owned()));
        self.event(time, TrackEvent { r#type, track_uuid: track.0, name, value: None })
    }

    /// The begin of a slice with this name, or the end of the slice that began last.
    pub(super) fn slice(&mut self, track: Track, time: u64, begin: Option<&str>) -> io::Result<()> {
        let r#type = if begin.is_some() { SLICE_BEGIN } else { SLICE_END };
        let name = begin.map(str::to_owned);
        self.event(time, TrackEvent { r#type, track_uuid: track.0, name, value: None })
    }

    /// Strings, frames and stacks that profiles refer to.
    pub(super) fn intern(&mut self, data: InternedData) -> io::Result<()> {
        self.put(TracePacket {
            interned_data: Some(data),
            sequence_flags: Some(NEEDS_INCREMENTAL_STATE),
            ..TracePacket::default()
        })
    }

    /// A part of a heap profile.
    pub(super) fn profile(&mut self, time: u64, profile: ProfilePacket) -> io::Result<()> {
        self.put(TracePacket {
            timestamp: Some(time),
            timestamp_clock_id: Some(CLOCK_REALTIME),
            profile_packet: Some(profile),
            sequence_flags: Some(NEEDS_INCREMENTAL_STATE),
            ..TracePacket::default()
        })
    }
}
