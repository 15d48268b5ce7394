//! The format a second time, as `docs/heap-format.md` describes it and as plainly as possible: no bounds,
//! no speed, and a panic for everything that is wrong.

use heaptap_heap::{
    EphemeronKey, Finaliser, FinaliserKind, KindNamespace, OutsideArea, OutsideKind, Pointer, Root,
    RootOwner, Segment, SegmentKind, Tracked,
};

use crate::snapshot::{OwnedBlock, Record};

/// Everything in a complete file.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    pub(crate) records: Vec<Record>,
    pub(crate) codes_seen: Vec<u64>,
    pub(crate) totals: Vec<u64>,
}

/// Bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

pub(crate) fn decode(file: &[u8]) -> Decoded {
    assert_eq!(file[..8], [0x89, 0x48, 0x45, 0x41, 0x50, 0x0d, 0x0a, 0x1a]);
    assert_eq!((u32_at(file, 8), u32_at(file, 12)), (2, crc32c(&file[..12])));
    let mut decoded = Decoded::default();
    let mut rest = &file[16..];
    loop {
        let (header, behind) = rest.split_at(16);
        let (body, next) = behind.split_at(u32_at(header, 8) as usize);
        let mut guarded = header[..12].to_vec();
        guarded[2..4].fill(0);
        assert_eq!(header[2..4], crc32c(&guarded).to_le_bytes()[..2]);
        assert_eq!(u32_at(header, 12), crc32c(&[&header[..12], body].concat()));
        let streams = unpack(body, usize::from(header[1]));
        let raw: usize = streams.iter().map(Vec::len).sum();
        assert_eq!(raw as u32, u32_at(header, 4));
        rest = next;
        match header[0] {
            3 => blocks(&streams, &mut decoded.records),
            15 => {
                let mut bytes = Bytes::new(&streams[0]);
                decoded.totals = (0..bytes.varint()).map(|_| bytes.varint()).collect();
                assert!(bytes.is_done() && rest.is_empty());
                return decoded;
            }
            kind => records(kind, &streams[0], &mut decoded),
        }
    }
}

fn unpack(body: &[u8], count: usize) -> Vec<Vec<u8>> {
    let mut at = count * 8;
    let mut streams = Vec::new();
    for entry in body[..count * 8].chunks(8) {
        let (raw, stored) = (u32_at(entry, 0) & 0xff_ffff, u32_at(entry, 4) as usize);
        let bytes = &body[at..at + stored];
        let stream = if entry[3] == 0 { bytes.to_vec() } else { unpack_lz(bytes) };
        assert!(entry[3] < 2 && stream.len() as u32 == raw);
        streams.push(stream);
        at += stored;
    }
    assert_eq!(at, body.len());
    streams
}

fn unpack_lz(bytes: &[u8]) -> Vec<u8> {
    let mut output: Vec<u8> = Vec::new();
    let mut bytes = Bytes::new(bytes);
    let length = |half: u8, bytes: &mut Bytes<'_>| {
        let mut length = usize::from(half);
        let mut more = half == 15;
        while more {
            let byte = bytes.byte();
            length += usize::from(byte);
            more = byte == 255;
        }
        length
    };
    loop {
        let token = bytes.byte();
        for _ in 0..length(token >> 4, &mut bytes) {
            output.push(bytes.byte());
        }
        if bytes.is_done() {
            assert_eq!(token & 15, 0);
            return output;
        }
        let distance = usize::from(bytes.byte()) | usize::from(bytes.byte()) << 8;
        for _ in 0..4 + length(token & 15, &mut bytes) {
            output.push(output[output.len() - distance]);
        }
    }
}

struct Bytes<'a> {
    rest: std::slice::Iter<'a, u8>,
}

impl<'a> Bytes<'a> {
    fn new(bytes: &'a [u8]) -> Bytes<'a> {
        Bytes { rest: bytes.iter() }
    }

    fn is_done(&self) -> bool {
        self.rest.len() == 0
    }

    fn byte(&mut self) -> u8 {
        *self.rest.next().expect("another byte")
    }

    fn varint(&mut self) -> u64 {
        let byte = self.byte();
        let low = u64::from(byte & 0x7f);
        if byte < 0x80 { low } else { low | self.varint() << 7 }
    }

    fn signed(&mut self) -> u64 {
        unfold(self.varint())
    }

    fn string(&mut self) -> Vec<u8> {
        (0..self.varint()).map(|_| self.byte()).collect()
    }
}

fn unfold(folded: u64) -> u64 {
    if folded.is_multiple_of(2) { folded / 2 } else { !(folded / 2) }
}

/// The last t, a, i and n.
#[derive(Default)]
struct Last([u64; 4]);

impl Last {
    fn next(&mut self, which: usize, bytes: &mut Bytes<'_>) -> u64 {
        self.0[which] = self.0[which].wrapping_add(bytes.signed());
        self.0[which]
    }
}

fn records(kind: u8, stream: &[u8], decoded: &mut Decoded) {
    const T: usize = 0;
    const A: usize = 1;
    const I: usize = 2;
    let mut bytes = Bytes::new(stream);
    let mut last = Last::default();
    let b = &mut bytes;
    while !b.is_done() {
        let record = match kind {
            1 => Record::Meta(b.varint() as u32, b.string()),
            2 => {
                let kind = SegmentKind::ALL[b.varint() as usize];
                let start = last.next(T, b) * 8;
                Record::Segment(Segment { kind, start, words: b.varint() })
            }
            4 => {
                let owner = owner(b, &mut last);
                Record::Root(Root { owner, target: last.next(T, b) * 8 })
            }
            5 => {
                let kinds = [FinaliserKind::First, FinaliserKind::Last, FinaliserKind::Pending];
                let kind = kinds[b.varint() as usize];
                let (value, function) = (last.next(T, b) * 8, last.next(A, b) * 8);
                Record::Finaliser(Finaliser { kind, value, function })
            }
            6 => {
                ephemeron(b, &mut last, &mut decoded.records);
                continue;
            }
            7 => Record::Module(last.next(I, b) as u32, b.string()),
            8 => Record::Thread(last.next(I, b) as u32, b.varint() as u32, b.string()),
            9 => {
                decoded.codes_seen.push(last.next(A, b));
                continue;
            }
            10 => Record::CustomKind(last.next(A, b), b.string()),
            11 => {
                let namespace = [KindNamespace::Tag, KindNamespace::HostRoot][b.varint() as usize];
                Record::KindName(namespace, b.varint() as u32, b.string())
            }
            12 => Record::Name {
                address: last.next(A, b),
                function: b.string(),
                file: b.string(),
                line: b.varint() as u32,
            },
            13 => {
                let address = last.next(T, b) * 8;
                Record::Tracked(Tracked { address, id: last.next(I, b) })
            }
            16 => Record::OutsideArea(OutsideArea {
                kind: [OutsideKind::Allocated, OutsideKind::Mapped][b.varint() as usize],
                block: last.next(T, b) * 8,
                operations: last.next(I, b),
                start: last.next(A, b),
                bytes: b.varint(),
            }),
            kind => panic!("a chunk of kind {kind}"),
        };
        decoded.records.push(record);
    }
}

fn owner(b: &mut Bytes<'_>, last: &mut Last) -> RootOwner {
    const A: usize = 1;
    const I: usize = 2;
    const N: usize = 3;
    match b.varint() {
        0 => RootOwner::Global { module: last.next(I, b) as u32, field: last.next(N, b) as u32 },
        1 => RootOwner::Stack {
            thread: last.next(I, b) as u32,
            depth: last.next(N, b) as u32,
            return_address: last.next(A, b),
            slot: b.varint() as u32,
        },
        2 => RootOwner::LocalC { thread: last.next(I, b) as u32 },
        3 => RootOwner::GlobalC { slot: last.next(A, b) },
        4 => RootOwner::Hook { slot: last.next(A, b) },
        5 => RootOwner::Continuation {
            block: last.next(I, b),
            depth: last.next(N, b) as u32,
            return_address: last.next(A, b),
            slot: b.varint() as u32,
        },
        6 => RootOwner::Host { kind: last.next(I, b) as u32, index: last.next(N, b) },
        7 => RootOwner::DomainLocal { domain: last.next(I, b) as u32 },
        8 => RootOwner::Handler {
            thread: last.next(I, b) as u32,
            fiber: last.next(N, b) as u32,
            return_address: last.next(A, b),
            slot: b.varint() as u32,
        },
        kind => panic!("a root of kind {kind}"),
    }
}

fn ephemeron(b: &mut Bytes<'_>, last: &mut Last, records: &mut Vec<Record>) {
    let goes_on = b.varint() == 1;
    let word = last.next(1, b);
    let mut index = if goes_on { b.varint() } else { 0 };
    if !goes_on {
        records.push(Record::Ephemeron { address: word * 8, data: None, keys: Vec::new() });
    }
    let mut ephemerons = records.iter_mut().rev();
    let (data, keys) = ephemerons
        .find_map(|record| match record {
            Record::Ephemeron { address, data, keys } if *address == word * 8 => Some((data, keys)),
            _ => None,
        })
        .expect("its beginning");
    loop {
        match b.varint() {
            0 | 1 => return,
            2 => *data = Some(last.next(0, b) * 8),
            code => {
                index += code - 3;
                keys.push(EphemeronKey { index, target: last.next(0, b) * 8 });
                index += 1;
            }
        }
    }
}

/// The decoder of a chunk's *coded*.
struct Coded<'a> {
    bytes: Bytes<'a>,
    range: u32,
    code: u32,
}

impl Coded<'_> {
    fn bit(&mut self, p: &mut u32) -> bool {
        let bound = (self.range >> 15) * *p;
        let bit = self.code >= bound;
        if bit {
            self.code -= bound;
            self.range -= bound;
            *p -= *p >> 5;
        } else {
            self.range = bound;
            *p += (32768 - *p) >> 5;
        }
        while self.range < 1 << 24 {
            self.code = self.code << 8 | u32::from(self.bytes.byte());
            self.range <<= 8;
        }
        bit
    }

    fn symbol(&mut self, expected: &mut usize, p: &mut u32, tree: &mut [u32]) -> usize {
        if self.bit(p) {
            let mut index = 1;
            while index < 256 {
                index = 2 * index + usize::from(self.bit(&mut tree[index]));
            }
            *expected = index - 256;
        }
        *expected
    }
}

/// The state of a chunk of blocks.
struct Chunk<'a> {
    coded: Coded<'a>,
    bits: Bytes<'a>,
    /// Bits of the last byte that are left, and their number.
    left: (u64, u32),
    fields: Bytes<'a>,
    extras: Bytes<'a>,
    /// By slot: the last target, its distance, the expected symbol and its probability.
    slots: Vec<(u64, u64, usize, u32)>,
    symbol_trees: Vec<Vec<u32>>,
    target_before: u64,
    cache: Vec<u64>,
}

impl Chunk<'_> {
    fn plain_bits(&mut self, count: u32) -> u64 {
        let mut bits = 0;
        for bit in 0..count {
            if self.left.1 == 0 {
                self.left = (u64::from(self.bits.byte()), 8);
            }
            bits |= (self.left.0 & 1) << bit;
            self.left = (self.left.0 >> 1, self.left.1 - 1);
        }
        bits
    }

    fn target(&mut self, shape: usize, ordinal: usize, own: u64) -> u64 {
        let slot = shape * 24 + ordinal.min(23);
        let (last, distance, mut expected, mut p) = self.slots[slot];
        let symbol = self.coded.symbol(&mut expected, &mut p, &mut self.symbol_trees[shape]);
        let target = match symbol {
            216 => own.wrapping_add(distance),
            217 => {
                let index = self.plain_bits(10);
                self.cache[index as usize]
            }
            218 => own.wrapping_add(self.fields.signed()),
            symbol => {
                let from = [own, self.target_before, last][symbol / 72];
                let c = symbol as u64 % 72;
                let folded = if c < 16 {
                    c
                } else {
                    let w = (c - 16) / 2 + 3;
                    ((2 + (c - 16) % 2) << w) + self.plain_bits(w as u32)
                };
                from.wrapping_add(unfold(folded))
            }
        };
        self.slots[slot] = (target, target.wrapping_sub(own), expected, p);
        self.target_before = target;
        let index = target.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
        self.cache[index as usize] = target;
        target
    }
}

fn blocks(streams: &[Vec<u8>], records: &mut Vec<Record>) {
    let mut parameters = Bytes::new(&streams[0]);
    let (header_words, parts) = (parameters.varint(), parameters.varint());
    let code = u32::from_be_bytes(streams[1][..4].try_into().unwrap());
    let mut chunk = Chunk {
        coded: Coded { bytes: Bytes::new(&streams[1][4..]), range: u32::MAX, code },
        bits: Bytes::new(&streams[2]),
        left: (0, 0),
        fields: Bytes::new(&streams[3]),
        extras: Bytes::new(&streams[4]),
        slots: vec![(0, 0, 0, 16384); 256 * 24],
        symbol_trees: vec![vec![16384; 256]; 256],
        target_before: 0,
        cache: vec![0; 1024],
    };
    let (mut h1, mut h2) = (0, 0);
    let (mut gaps, mut others) = (vec![16384; 256], vec![16384; 256]);
    let mut expected_heads = vec![0; 4096];
    let mut head_trees = vec![vec![16384; 256]; 256];
    let mut next_field = 16384;
    let mut shapes = vec![(0, 0, 0, false); 252];
    let mut new_shape = 0;
    let (mut word, mut last_code, mut last_operations) = (0u64, 0u64, 0u64);
    for _ in 0..parts {
        if chunk.coded.bit(&mut gaps[h1]) {
            word = word.wrapping_add(chunk.fields.signed());
        }
        let expected = &mut expected_heads[((h1 << 4) ^ h2) % 4096];
        let head = chunk.coded.symbol(expected, &mut others[h1], &mut head_trees[h1]);
        (h1, h2) = (head, h1);
        let mut shape = head;
        if head == 252 {
            shape = new_shape;
            let words = chunk.fields.varint();
            let (tag, bitmap) = (chunk.fields.varint(), chunk.fields.varint());
            shapes[shape] = (words / 2, tag, bitmap, words % 2 == 1);
            new_shape = (new_shape + 1) % 252;
        }
        let mut block = OwnedBlock { address: word * 8, ..OwnedBlock::default() };
        let mut has_extras = true;
        if shape < 252 {
            let (words, tag, bitmap, extras) = shapes[shape];
            (block.words, block.tag, has_extras) = (words, tag as u32, extras);
            let fields = (0..24).filter(|field| bitmap >> field & 1 == 1);
            for (ordinal, field) in fields.enumerate() {
                let target = chunk.target(shape, ordinal, word) * 8;
                block.pointers.push(Pointer { field, target });
            }
        } else {
            (block.words, block.tag) = (chunk.fields.varint(), chunk.fields.varint() as u32);
            let mut field = if head == 254 { chunk.fields.varint() } else { 0 };
            loop {
                if !chunk.coded.bit(&mut next_field) {
                    match chunk.fields.varint() {
                        0 | 1 => break,
                        code => field += code - 2,
                    }
                }
                let target = chunk.target(253, 0, word) * 8;
                block.pointers.push(Pointer { field, target });
                field += 1;
            }
        }
        while has_extras {
            match chunk.extras.byte() {
                0 => has_extras = false,
                1 => {
                    let field = chunk.extras.varint();
                    last_code = last_code.wrapping_add(chunk.extras.signed());
                    block.codes.push((field, last_code));
                }
                2 => {
                    last_operations = last_operations.wrapping_add(chunk.extras.signed());
                    block.custom = Some((last_operations, chunk.extras.varint()));
                }
                3 => block.string = Some(chunk.extras.string()),
                byte => panic!("an extra of kind {byte}"),
            }
        }
        word = word + block.words + header_words;
        if head != 254 {
            records.push(Record::Block(block));
            continue;
        }
        let mut blocks = records.iter_mut().rev();
        let Some(Record::Block(first)) = blocks.find(|record| matches!(record, Record::Block(_)))
        else {
            panic!("a piece without a beginning")
        };
        first.pointers.extend(block.pointers);
        first.codes.extend(block.codes);
        first.custom = first.custom.or(block.custom);
        first.string = first.string.take().or(block.string);
    }
    assert!(chunk.fields.is_done() && chunk.extras.is_done());
    assert!(chunk.bits.is_done() && chunk.coded.bytes.is_done());
}
