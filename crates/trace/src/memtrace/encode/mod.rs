//! Writing traces, byte for byte as the original writer does.
//!
//! An [`Encoder`] holds one open packet for each domain. It writes the packet,
//! preceded by the locations it needs, when the format's rules close it. Once
//! warm it allocates nothing: packets, caches and names live in fixed memory.
//!
//! The layers, from the bottom up:
//!
//! - `names`: location events.
//! - `kinds`: the names of kinds of blocks that are in the file.
//! - `stack`: backtraces, entry by entry as the format defines them; `cached`:
//!   the same bytes, faster, for backtraces whose codes are all in the cache.
//! - `domain`: a domain's open packet, any event; `common`: the same bytes,
//!   faster, for the events that need nothing but room.
//! - `domains`: all domains of a trace and what they share.
//! - `domain_encoder`: [`DomainEncoder`], checked events of one domain.
//! - `encoder`: [`Encoder`].
//!
//! With plain `inline` in place of `inline(always)`, the plugin takes 1.2 to 1.7 % more
//! instructions in traced programs (trees and JSON of `benches/overhead`, all threads).

mod cached;
mod common;
mod domain;
mod domain_encoder;
mod domains;
mod encoder;
mod kinds;
mod names;
mod stack;

pub use crate::memtrace::encode::domain_encoder::DomainEncoder;
pub use crate::memtrace::encode::encoder::{Encoder, Format};
