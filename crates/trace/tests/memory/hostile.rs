//! Files that would like to take all memory there is.

use heaptap_trace::{Input, Limits, Mode, Reader, Stream};

use crate::account::{calls, peak};
use crate::forge::{self, Forged, info, packet, trace};

const MB: usize = 1 << 20;

/// Reads to the end; how many events there were.
fn read_all<I: Input>(reader: Reader<I>) -> usize {
    let mut reader = reader;
    let mut events = 0;
    while let Ok(Some(_)) = reader.next_event() {
        events += 1;
    }
    events
}

/// The most bytes that reading takes, in both modes and of both inputs.
fn peak_of_reading(bytes: &[u8], limits: Limits) -> usize {
    let modes = [Mode::Strict, Mode::Lenient];
    let slices = modes.map(|mode| peak(|| drop(Reader::open(bytes, mode, limits).map(read_all))));
    let streams = modes
        .map(|mode| peak(|| drop(Reader::open(Stream::new(bytes), mode, limits).map(read_all))));
    *slices.iter().chain(&streams).max().unwrap()
}

/// A lost packet, so that the reader takes any common prefix for possible.
fn lost() -> Forged {
    Forged { magic: 0, ..packet(2) }
}

#[test]
fn a_file_of_200_bytes_takes_no_megabyte() {
    let hits = |entries: u16| {
        let known = packet(2).ids(0, 1).long(0, entries + 1).miss(0, 7);
        (0..entries).fold(known, |packet, _| packet.hit(0, 255))
    };
    let bare = |packet: Forged| {
        // The least trace info leaves the most room.
        let info = forge::packet(2).event(0).u64(1.0_f64.to_bits()).u8(64);
        trace(&[info.string(b"").string(b"").string(b"").u64(4242).string(b""), packet])
    };
    let mut garbage = bare(packet(2).ids(0, 1).long(i64::from(u32::MAX), 0));
    let second = garbage.len() - 66 - 18;
    garbage.insert(second, 0);
    let mut files = vec![
        bare(hits(5)),
        bare(packet(2).ids(0, 1).long(i64::from(u32::MAX), 0)),
        bare(packet(2).ids(0, 1).long(0, 65_535).miss(0, 7)),
        bare(Forged { bits: Some(8 * 32_768), ..packet(2) }),
        garbage,
    ];
    // The same with every byte at its extremes.
    for file in files.clone() {
        for at in 0..file.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut file = file.clone();
                file[at] = byte;
                files.push(file);
            }
        }
    }
    for file in files {
        assert!(file.len() <= 200, "{} bytes", file.len());
        let peak = peak_of_reading(&file, Limits::default());
        assert!(peak <= MB, "{peak} bytes for {file:02x?}");
    }
}

#[test]
fn any_number_of_domains_takes_what_the_limit_allows() {
    let domain = |number: u16| {
        let first = u64::from(number) * 10_000;
        packet(3).domain(number).ids(first, first + 1).short(0, 0)
    };
    let packets: Vec<Forged> = std::iter::once(info(3)).chain((0..=65_535).map(domain)).collect();
    let bytes = trace(&packets);
    for domains in [1, 64] {
        let limits = Limits { domains, ..Limits::default() };
        let peak = peak_of_reading(&bytes, limits);
        // 160 KiB for each, and less than 4 KiB for what is found there.
        assert!(peak <= domains * 164 * 1024 + MB, "{peak} bytes for {domains} domains");
    }
}

/// After damage the tables of each domain are marked lost, in some more memory.
#[test]
fn any_number_of_domains_in_doubt_takes_what_the_limit_allows() {
    let domain = |number: u16| packet(3).domain(number);
    let damaged = |number: u16| Forged { magic: 0, ..domain(number) };
    let sound = (0..500).map(domain);
    let packets: Vec<Forged> = std::iter::once(info(3)).chain(sound).chain([damaged(0)]).collect();
    let bytes = trace(&packets);
    let peak = peak_of_reading(&bytes, Limits::default());
    assert!(peak <= 500 * 180 * 1024 + MB, "{peak} bytes");
}

/// Damage may concern every domain; it must not cost something for each every
/// time, or a small file takes hours.
#[test]
fn damage_costs_no_more_where_there_are_many_domains() {
    let domains = (0..200).map(|number| packet(3).domain(number));
    let damages = (0..200).flat_map(|_| [Forged { magic: 0, ..packet(3) }, packet(3)]);
    let packets: Vec<Forged> = std::iter::once(info(3)).chain(domains).chain(damages).collect();
    let bytes = trace(&packets);
    let reader = Reader::from_slice(&bytes, Mode::Lenient).unwrap();
    // Some 35 calls for what one domain loses.
    let calls = calls(|| assert_eq!(read_all(reader), 0));
    assert!(calls < 100 * (200 + 200), "{calls} calls");
}

/// A packet of hits that stand for 256 frames each.
fn expanding(ids: u64, prefix: i64) -> Forged {
    let most = |packet: Forged| (0..1300).fold(packet, |packet, _| packet.hit(0, 255));
    let packet = packet(2).ids(ids, ids + 7);
    let first = packet.long(prefix, 1301).miss(0, 7);
    (1..7).fold(most(first), |packet, _| most(packet.long(prefix, 1300)))
}

#[test]
fn millions_of_frames_in_a_packet_take_what_the_limit_allows() {
    let known = packet(2).location(7);
    let bytes = trace(&[info(2), known, expanding(0, 0)]);
    assert!(bytes.len() < 32_000, "{} bytes stand for 2.3 million frames", bytes.len());
    for frames in [0, 1000, 100_000, 4 << 20] {
        let peak = peak_of_reading(&bytes, Limits { frames, ..Limits::default() });
        // A packet's new frames and the last backtrace, 8 bytes each, and what
        // is moved when either grows.
        assert!(peak <= 3 * 8 * frames + MB, "{peak} bytes for a limit of {frames}");
    }
}

/// Each backtrace begins with the one before it and adds a little.
#[test]
fn backtraces_that_grow_without_end_take_what_the_limit_allows() {
    let mut packets = vec![info(2), packet(2).location(7)];
    let added = 1 + 3 * 256;
    for number in 0..1000 {
        let packet = packet(2).ids(number, number + 1).long((number * added) as i64, 4);
        packets.push((0..3).fold(packet.miss(0, 7), |packet, _| packet.hit(0, 255)));
    }
    let bytes = trace(&packets);
    for frames in [1000, 100_000] {
        let peak = peak_of_reading(&bytes, Limits { frames, ..Limits::default() });
        assert!(peak <= 3 * 8 * frames + MB, "{peak} bytes for a limit of {frames}");
    }
    // All of it is 6 MB, which is what it takes where it is allowed.
    let peak = peak_of_reading(&bytes, Limits::default());
    assert!((6 * MB..20 * MB).contains(&peak), "{peak} bytes");
}

#[test]
fn common_prefixes_of_lost_backtraces_take_what_the_limit_allows() {
    let packets: Vec<Forged> = [info(2), lost()]
        .into_iter()
        .chain((0..100).map(|id| packet(2).ids(id, id + 1).long(i64::from(u32::MAX), 0)))
        .collect();
    let bytes = trace(&packets);
    for frames in [0, 1000, 100_000, 4 << 20] {
        let peak = peak_of_reading(&bytes, Limits { frames, ..Limits::default() });
        assert!(peak <= 2 * 8 * frames + MB, "{peak} bytes for a limit of {frames}");
    }
}

/// Names and locations are kept: their memory is in proportion to the file.
#[test]
fn locations_take_memory_in_proportion_to_the_file() {
    let smallest = (0..40).map(|number: u64| {
        let codes = number * 2000..(number + 1) * 2000;
        codes.fold(packet(2), |packet, code| packet.location(1 + code))
    });
    let names = (0..40).map(|number: u64| {
        let codes = number * 1000..(number + 1) * 1000;
        codes.fold(packet(2), |packet, code| {
            let packet = packet.event(1).u64(1 + code).u8(1).u32(7).u16(0xffc0);
            packet.string(format!("{code}").as_bytes()).string(b"")
        })
    });
    // The same code explained in another way each time.
    let changing = (0..40).map(|_| {
        (0..150).fold(packet(2), |packet, _| {
            let packet = packet.event(1).u64(7).u8(9).u32(1).u16(0xffc0).string(b"a").string(b"b");
            (0..8).fold(packet, |packet, line| packet.u32(line).u16(0))
        })
    });
    for packets in [smallest.collect::<Vec<_>>(), names.collect(), changing.collect()] {
        let bytes = trace(&[vec![info(2)], packets].concat());
        let peak = peak_of_reading(&bytes, Limits::default());
        assert!(peak <= 16 * bytes.len() + MB, "{peak} bytes for a file of {}", bytes.len());
    }
}
