//! Mutations that leave packets whole.
//!
//! A byte inserted or removed anywhere moves all that follows, and most changes
//! break a header that states sizes, ids and times. So most mutations here are
//! of one packet's body or header, and the headers are then made to fit again:
//! what is fuzzed is the decoding of events, not only the finding of packets.

use libfuzzer_sys::fuzzer_mutate;

const MAGIC: [u8; 4] = 0xc1fc_1fc1_u32.to_le_bytes();
const MAX_PACKET: usize = 32_768;

/// No packet is copied in a longer trace.
const MOST_COPIED: usize = 8_192;

/// Changes `data[..size]`; returns its new size.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut packets = split(&data[..size]);
    let kind = seed % 16;
    if packets.len() < 2 || kind == 0 {
        return fuzzer_mutate(data, size, max_size);
    }
    let at = 1 + (seed / 16) as usize % (packets.len() - 1);
    let other = 1 + (seed / 4096) as usize % (packets.len() - 1);
    match kind {
        // Not without end: short inputs are read more often.
        1 if size < MOST_COPIED => packets.insert(other, packets[at].clone()),
        2 if packets.len() > 2 => drop(packets.remove(at)),
        3 => packets.swap(at, other),
        4 | 5 => mutate_header(&mut packets[at]),
        _ => mutate_body(&mut packets[at]),
    }
    // A few stay as they are, for the reader to notice.
    if !seed.is_multiple_of(7) {
        repair(&mut packets);
    }
    let bytes = packets.concat();
    let size = bytes.len().min(max_size);
    data[..size].copy_from_slice(&bytes[..size]);
    size
}

/// The packets, as far as each says where the next begins; the rest is a last
/// one.
fn split(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    while !bytes.is_empty() {
        let whole = bytes.starts_with(&MAGIC) && bytes.len() >= 68;
        let stated = if whole { number(bytes, 4, 4) as usize / 8 } else { bytes.len() };
        let size = if (66..=bytes.len()).contains(&stated) { stated } else { bytes.len() };
        let (packet, rest) = bytes.split_at(size);
        packets.push(packet.to_vec());
        bytes = rest;
    }
    packets
}

fn header_len(packet: &[u8]) -> usize {
    let version = if packet.len() > 68 { number(packet, 28, 2) } else { 0 };
    packet.len().min(if version == 3 { 68 } else { 66 })
}

fn mutate_header(packet: &mut [u8]) {
    let len = header_len(packet);
    // Behind the magic number, at the same length.
    if let Some(fields) = packet.get_mut(4..len).filter(|fields| !fields.is_empty()) {
        let mut changed = fields.to_vec();
        let size = changed.len();
        fuzzer_mutate(&mut changed, size, size);
        fields.copy_from_slice(&changed);
    }
}

fn mutate_body(packet: &mut Vec<u8>) {
    let body = packet.split_off(header_len(packet));
    let room = (2 * body.len() + 64).min(MAX_PACKET - packet.len().min(MAX_PACKET));
    if room == 0 {
        return;
    }
    let mut changed = body;
    let size = changed.len().min(room);
    changed.resize(room, 0);
    let size = fuzzer_mutate(&mut changed, size, room);
    packet.extend(&changed[..size]);
}

/// Makes sizes, ids and times fit the bodies, and leaves out the cache checks.
fn repair(packets: &mut [Vec<u8>]) {
    let mut next_ids = std::collections::HashMap::new();
    for packet in packets {
        let header = header_len(packet);
        if header < 66 {
            continue;
        }
        let domain = if header == 68 { number(packet, 38, 2) } else { 0 };
        let (allocations, span) = count(packet, header);
        let first = number(packet, header - 16, 8);
        let next_id = next_ids.entry(domain).or_insert(0);
        // Version 3 may go on in another block.
        let new_block = header == 68 && first.is_multiple_of(10_000) && *next_id % 10_000 == 0;
        let first = if new_block { first } else { *next_id };
        *next_id = first.wrapping_add(allocations);
        let bits = 8 * packet.len() as u64;
        let end = number(packet, 8, 8).wrapping_add(span);
        put(packet, 4, 4, bits);
        put(packet, 16, 8, end);
        put(packet, header - 28, 2, 0xffff);
        put(packet, header - 16, 8, first);
        put(packet, header - 8, 8, *next_id);
    }
}

/// How many allocations a packet has, and how long after its beginning its last
/// event is, as far as it can be followed.
fn count(packet: &[u8], header: usize) -> (u64, u64) {
    let begin = number(packet, 8, 8);
    let (mut at, mut allocations, mut span) = (header, 0, 0);
    while at + 4 <= packet.len() {
        let event = number(packet, at, 4);
        let code = event >> 25;
        let Some(end) = event_end(packet, at + 4, code) else { break };
        span = span.max(event.wrapping_sub(begin) % (1 << 25));
        allocations += u64::from(code == 2 || code > 100);
        at = end;
    }
    (allocations, span)
}

/// Where an event of this kind ends whose body begins at `at`.
fn event_end(packet: &[u8], mut at: usize, code: u64) -> Option<usize> {
    match code {
        1 => {
            let places = *packet.get(at + 8)?;
            at += 9;
            for _ in 0..places {
                let packed = number(packet, at, 6);
                at += 6;
                for name in [packed >> 38 & 31, packed >> 43 & 31] {
                    if name == 31 {
                        at += 1 + packet.get(at..)?.iter().position(|&byte| byte == 0)?;
                    }
                }
            }
        }
        2 | 101..=116 => {
            if code == 2 {
                at += vint_len(packet, at)?;
                at += vint_len(packet, at)? + 1;
            }
            at += vint_len(packet, at)?;
            let entries = number(packet, at, if code == 2 { 2 } else { 1 });
            at += if code == 2 { 2 } else { 1 };
            for _ in 0..entries {
                at += [2, 2, 3, 10][usize::from(*packet.get(at)? & 3)];
            }
        }
        3 | 4 => at += vint_len(packet, at)?,
        _ => return None,
    }
    (at <= packet.len()).then_some(at)
}

fn vint_len(packet: &[u8], at: usize) -> Option<usize> {
    packet.get(at).map(|tag| match tag {
        253 => 3,
        254 => 5,
        255 => 9,
        _ => 1,
    })
}

/// A little-endian number; 0 where the bytes end.
fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    let bytes = bytes.get(at..at + size).unwrap_or(&[]);
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn put(bytes: &mut [u8], at: usize, size: usize, value: u64) {
    if let Some(place) = bytes.get_mut(at..at + size) {
        place.copy_from_slice(&value.to_le_bytes()[..size]);
    }
}
