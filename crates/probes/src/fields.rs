//! The bytes of events: each is written down once, as its fields in their order, for the encoder and
//! the decoder.

use heaptap_codec::Cursor;

use crate::event::{
    Event, Heap, Pauses, ProbeKind, SliceKind, Spacing, Start, System, TagSize, Timed,
};
use crate::{MAX_PROBES, MAX_TEXT};

/// Bytes that make no sense, and why.
pub(crate) type Taken<T> = Result<T, &'static str>;

pub(crate) const OVERRUN: &str = "an event ends behind its packet";

/// An optional number that is absent.
const NONE: u64 = u64::MAX;

/// What has bytes in a file.
pub(crate) trait Field: Sized {
    /// Appends them.
    fn put(&self, out: &mut Vec<u8>);

    /// Reads them.
    fn take(input: &mut Cursor<'_>) -> Taken<Self>;
}

macro_rules! numbers {
    ($($number:ident)*) => {$(
        impl Field for $number {
            #[inline]
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn take(input: &mut Cursor<'_>) -> Taken<Self> {
                input.$number().ok_or(OVERRUN)
            }
        }
    )*};
}

numbers! { u8 u16 u32 u64 f64 }

impl Field for Option<u64> {
    fn put(&self, out: &mut Vec<u8>) {
        self.unwrap_or(NONE).put(out);
    }

    fn take(input: &mut Cursor<'_>) -> Taken<Self> {
        Ok(Some(u64::take(input)?).filter(|&value| value != NONE))
    }
}

impl Field for String {
    fn put(&self, out: &mut Vec<u8>) {
        // The first bytes, or a few less: no character is cut in two.
        let is_end = |&length: &usize| self.is_char_boundary(length);
        let length = (0..=self.len().min(MAX_TEXT)).rev().find(is_end).unwrap_or(0);
        (length as u16).put(out);
        out.extend_from_slice(self.as_bytes().get(..length).unwrap_or_default());
    }

    /// Bytes that are no UTF-8 are replaced: names come from the program.
    fn take(input: &mut Cursor<'_>) -> Taken<Self> {
        let length = usize::from(u16::take(input)?);
        if length > MAX_TEXT {
            return Err("a text that is too long");
        }
        Ok(String::from_utf8_lossy(input.take(length).ok_or(OVERRUN)?).into_owned())
    }
}

impl Field for ProbeKind {
    fn put(&self, out: &mut Vec<u8>) {
        self.number().put(out);
    }

    fn take(input: &mut Cursor<'_>) -> Taken<Self> {
        ProbeKind::from_number(u8::take(input)?.into()).ok_or("a probe of an unknown kind")
    }
}

impl Field for SliceKind {
    fn put(&self, out: &mut Vec<u8>) {
        self.number().put(out);
    }

    fn take(input: &mut Cursor<'_>) -> Taken<Self> {
        SliceKind::from_number(u8::take(input)?).ok_or("a slice of an unknown kind")
    }
}

impl Field for TagSize {
    fn put(&self, out: &mut Vec<u8>) {
        let (how, words) = match *self {
            TagSize::Unknown => (0_u8, 0),
            TagSize::Exactly(words) => (1, words),
            TagSize::AtLeast(words) => (2, words),
        };
        how.put(out);
        words.put(out);
    }

    fn take(input: &mut Cursor<'_>) -> Taken<Self> {
        match (u8::take(input)?, u64::take(input)?) {
            (0, _) => Ok(TagSize::Unknown),
            (1, words) => Ok(TagSize::Exactly(words)),
            (2, words) => Ok(TagSize::AtLeast(words)),
            _ => Err("a tag's size of an unknown kind"),
        }
    }
}

macro_rules! records {
    ($($record:ident { $($field:ident),* })*) => {$(
        impl Field for $record {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }

            // Fields are evaluated in the order in which they are written.
            fn take(input: &mut Cursor<'_>) -> Taken<Self> {
                Ok($record { $($field: Field::take(input)?),* })
            }
        }
    )*};
}

records! {
    Start { trace_start, pid, word_size, host, program }
    Pauses { kind, count, total_ns, longest_ns }
    Heap {
        minor_words, promoted_words, major_words, minor_collections,
        major_collections, compactions, heap_words, live_words
    }
    System { rss, cgroup_usage, cgroup_limit, threads, domains }
    Spacing { until, ns }
}

macro_rules! events {
    ($($number:literal $event:ident $({ $($field:ident),* })? $(($record:ident))?)*) => {
        /// Its number, its time, and its fields.
        impl Field for Timed {
            fn put(&self, out: &mut Vec<u8>) {
                match &self.event {$(
                    Event::$event $({ $($field),* })? $(($record))? => {
                        out.push($number);
                        self.time.put(out);
                        $($($field.put(out);)*)?
                        $($record.put(out);)?
                    }
                )*}
            }

            fn take(input: &mut Cursor<'_>) -> Taken<Self> {
                let (number, time) = (u8::take(input)?, u64::take(input)?);
                let event = match number {
                    $($number => Event::$event
                        $({ $($field: Field::take(input)?),* })?
                        $(({ let $record = Field::take(input)?; $record }))?,)*
                    _ => return Err("an event that this heaptap does not know"),
                };
                match event.probe() {
                    Some(probe) if probe as usize >= MAX_PROBES => {
                        Err("a probe with too high a number")
                    }
                    _ => Ok(Timed { time, event }),
                }
            }
        }
    };
}

events! {
    0 Start(start)
    1 Probe { probe, kind, name }
    2 Count { probe, total }
    3 Timer { probe, total_ns, runs, running }
    4 Value { probe, last, least, greatest }
    5 Text { probe, text }
    6 Tag { probe, live, marked, size }
    7 Log { text }
    8 Pause { text }
    9 Lost { logs, slices }
    10 Slice { kind, domain, ns }
    11 Pauses(pauses)
    12 Heap(heap)
    13 System(system)
    14 Pressure { headroom }
    15 End
    16 Spacing(spacing)
    17 Replaced
    18 Cycle { number, began }
}
