//! Snapshots as values: generated, written, read again.

use heaptap_heap::{
    Completion, Encoder, EphemeronKey, Finaliser, FinaliserKind, Item, KindNamespace, MetaKey,
    Name, OutsideArea, OutsideKind, Pointer, ReadError, Reader, Root, RootOwner, Segment,
    SegmentKind, Sink, Totals, Tracked, Workspace,
};
use proptest::prelude::*;

/// An item of a snapshot, owned. Parts of a block or of an ephemeron are joined.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record {
    Meta(u32, Vec<u8>),
    Segment(Segment),
    Block(OwnedBlock),
    Root(Root),
    Finaliser(Finaliser),
    Ephemeron { address: u64, data: Option<u64>, keys: Vec<EphemeronKey> },
    Module(u32, Vec<u8>),
    Thread(u32, u32, Vec<u8>),
    CustomKind(u64, Vec<u8>),
    KindName(KindNamespace, u32, Vec<u8>),
    Name { address: u64, function: Vec<u8>, file: Vec<u8>, line: u32 },
    Tracked(Tracked),
    OutsideArea(OutsideArea),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OwnedBlock {
    pub(crate) address: u64,
    pub(crate) words: u64,
    pub(crate) tag: u32,
    pub(crate) pointers: Vec<Pointer>,
    pub(crate) codes: Vec<(u64, u64)>,
    pub(crate) custom: Option<(u64, u64)>,
    pub(crate) string: Option<Vec<u8>>,
}

pub(crate) fn write_record<S: Sink>(
    encoder: &mut Encoder<'_, S>,
    record: &Record,
) -> Result<(), i32> {
    match record {
        Record::Meta(key, value) => encoder.meta(MetaKey(*key), value),
        Record::Segment(segment) => encoder.segment(*segment),
        Record::Block(block) => write_block(encoder, block),
        Record::Root(root) => encoder.root(*root),
        Record::Finaliser(finaliser) => encoder.finaliser(*finaliser),
        Record::Ephemeron { address, data, keys } => {
            encoder.begin_ephemeron(*address)?;
            for (number, key) in keys.iter().enumerate() {
                if number == keys.len() / 2
                    && let Some(data) = data
                {
                    encoder.ephemeron_data(*data)?;
                }
                encoder.ephemeron_key(key.index, key.target)?;
            }
            if keys.is_empty()
                && let Some(data) = data
            {
                encoder.ephemeron_data(*data)?;
            }
            encoder.end_ephemeron()
        }
        Record::Module(id, name) => encoder.module(*id, name),
        Record::Thread(id, domain, name) => encoder.thread(*id, *domain, name),
        Record::CustomKind(operations, identifier) => encoder.custom_kind(*operations, identifier),
        Record::KindName(namespace, kind, name) => encoder.kind_name(*namespace, *kind, name),
        Record::Name { address, function, file, line } => {
            encoder.name(Name { address: *address, function, file, line: *line })
        }
        Record::Tracked(tracked) => encoder.tracked(*tracked),
        Record::OutsideArea(area) => encoder.outside_area(*area),
    }
}

fn write_block<S: Sink>(encoder: &mut Encoder<'_, S>, block: &OwnedBlock) -> Result<(), i32> {
    encoder.begin_block(block.address, block.words, block.tag)?;
    if let Some(string) = &block.string {
        encoder.string(string)?;
    }
    for pointer in &block.pointers {
        encoder.pointer(pointer.field, pointer.target)?;
    }
    if let Some((operations, outside)) = block.custom {
        encoder.custom(operations, outside)?;
    }
    for &(field, address) in &block.codes {
        encoder.code(field, address)?;
    }
    encoder.end_block()
}

/// Writes a snapshot into memory.
pub(crate) fn write(records: &[Record]) -> (Totals, Vec<u8>) {
    let mut workspace = Box::new(Workspace::new());
    let mut encoder = Encoder::new(Vec::new(), &mut workspace, 1);
    for record in records {
        write_record(&mut encoder, record).expect("memory takes everything");
    }
    encoder.finish().expect("memory takes everything")
}

/// Everything that a reader returns.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) records: Vec<Record>,
    pub(crate) codes_seen: Vec<u64>,
    pub(crate) completion: Completion,
    pub(crate) totals: Option<Totals>,
    /// Whether the last block or ephemeron has no last part.
    pub(crate) is_broken_off: bool,
    pub(crate) error: Option<ReadError>,
}

pub(crate) fn read(bytes: &[u8]) -> Result<Reading, ReadError> {
    let mut reader = Reader::new(bytes)?;
    let mut reading = Reading {
        records: Vec::new(),
        codes_seen: Vec::new(),
        completion: Completion::Unknown,
        totals: None,
        is_broken_off: false,
        error: None,
    };
    loop {
        match reader.next_item() {
            Ok(Some(item)) => reading.take(item),
            Ok(None) => break,
            Err(error) => {
                reading.error = Some(error);
                break;
            }
        }
    }
    reading.completion = reader.completion();
    reading.totals = reader.totals().copied();
    Ok(reading)
}

impl Reading {
    fn take(&mut self, item: Item<'_>) {
        let record = match item {
            Item::Meta { key, value } => Record::Meta(key.0, value.to_vec()),
            Item::Segment(segment) => Record::Segment(segment),
            Item::Block(part) => {
                self.is_broken_off = !part.is_last;
                let block = OwnedBlock {
                    address: part.address,
                    words: part.words,
                    tag: part.tag,
                    pointers: part.pointers.to_vec(),
                    codes: part.codes.iter().map(|code| (code.field, code.address)).collect(),
                    custom: part.custom.map(|custom| (custom.operations, custom.outside_bytes)),
                    string: part.string.map(<[u8]>::to_vec),
                };
                if !part.is_first {
                    let Some(Record::Block(first)) =
                        self.last_of_kind(|record| matches!(record, Record::Block(_)))
                    else {
                        panic!("a part without a first one")
                    };
                    assert_eq!(
                        (first.address, first.words, first.tag),
                        (block.address, block.words, block.tag)
                    );
                    first.pointers.extend(block.pointers);
                    first.codes.extend(block.codes);
                    first.custom = first.custom.or(block.custom);
                    first.string = first.string.take().or(block.string);
                    return;
                }
                Record::Block(block)
            }
            Item::Root(root) => Record::Root(root),
            Item::Finaliser(finaliser) => Record::Finaliser(finaliser),
            Item::Ephemeron(part) => {
                self.is_broken_off = !part.is_last;
                if !part.is_first {
                    let Some(Record::Ephemeron { data, keys, .. }) =
                        self.last_of_kind(|record| matches!(record, Record::Ephemeron { .. }))
                    else {
                        panic!("a part without a first one")
                    };
                    keys.extend_from_slice(part.keys);
                    *data = data.or(part.data);
                    return;
                }
                Record::Ephemeron {
                    address: part.address,
                    data: part.data,
                    keys: part.keys.to_vec(),
                }
            }
            Item::Module { id, name } => Record::Module(id, name.to_vec()),
            Item::Thread { id, domain, name } => Record::Thread(id, domain, name.to_vec()),
            Item::CodeSeen(address) => return self.codes_seen.push(address),
            Item::CustomKind { operations, identifier } => {
                Record::CustomKind(operations, identifier.to_vec())
            }
            Item::KindName { namespace, kind, name } => {
                Record::KindName(namespace, kind, name.to_vec())
            }
            Item::Name(Name { address, function, file, line }) => {
                Record::Name { address, function: function.to_vec(), file: file.to_vec(), line }
            }
            Item::Tracked(tracked) => Record::Tracked(tracked),
            Item::OutsideArea(area) => Record::OutsideArea(area),
            other => panic!("{other:?}"),
        };
        self.records.push(record);
    }

    fn last_of_kind(&mut self, is_of_kind: impl Fn(&Record) -> bool) -> Option<&mut Record> {
        self.records.iter_mut().rev().find(|record| is_of_kind(record))
    }
}

/// Records by kind, each kind in its order: that is what a file keeps.
pub(crate) fn by_kind(records: &[Record]) -> Vec<Record> {
    let mut sorted = records.to_vec();
    sorted.sort_by_key(|record| match record {
        Record::Meta(..) => 0,
        Record::Segment(_) => 1,
        Record::Block(_) => 2,
        Record::Root(_) => 3,
        Record::Finaliser(_) => 4,
        Record::Ephemeron { .. } => 5,
        Record::Module(..) => 6,
        Record::Thread(..) => 7,
        Record::CustomKind(..) => 8,
        Record::KindName(..) => 9,
        Record::Name { .. } => 10,
        Record::Tracked(_) => 11,
        Record::OutsideArea(_) => 12,
    });
    sorted
}

/// The address of a block: mostly near others, sometimes anywhere.
pub(crate) fn address() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => (0u64..4096).prop_map(|word| 0x7f00_0000_0000 + word * 8),
        1 => any::<u64>().prop_map(|address| address & !7),
    ]
}

fn string() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        9 => prop::collection::vec(any::<u8>(), 0..20),
        1 => prop::collection::vec(97u8..100, 0..=heaptap_heap::MAX_STRING),
    ]
}

/// Pseudo-random numbers, the same for the same seed: much cheaper than a strategy for each.
fn numbers(mut seed: u64) -> impl Iterator<Item = u64> + Clone {
    std::iter::repeat_with(move || {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        seed ^ (seed >> 29)
    })
}

/// The address of a block near others, or sometimes anywhere.
fn target(number: u64) -> u64 {
    if number & 7 == 0 { number & !7 } else { 0x7f00_0000_0000 + ((number >> 40) & !7) }
}

fn block() -> impl Strategy<Value = OwnedBlock> {
    let words = prop_oneof![16 => 0u64..8, 6 => 0u64..40, 1 => 25u64..5000];
    let tag = prop_oneof![6 => 0u32..4, 2 => 245u32..256, 1 => any::<u32>()];
    let custom = prop::option::weighted(0.1, (any::<u64>(), any::<u64>()));
    let string = prop::option::weighted(0.1, string());
    // The smaller the density, the more pointers.
    let contents = (any::<u64>(), 1u64..6, any::<bool>(), custom, string);
    (address(), words, tag, contents).prop_map(
        |(address, words, tag, (seed, density, has_codes, custom, string))| {
            let fields = (0..words).zip(numbers(seed));
            let has_code = |number: u64| has_codes && (number >> 20).is_multiple_of(9);
            OwnedBlock {
                // The whole block is in the address space.
                address: address.min(u64::MAX - (words << 3) - 7) & !7,
                words,
                tag,
                pointers: fields
                    .clone()
                    .filter(|(_, number)| (number >> 33).is_multiple_of(density))
                    .map(|(field, number)| Pointer { field, target: target(number) })
                    .collect(),
                codes: fields.filter(|(_, number)| has_code(*number)).collect(),
                custom,
                string,
            }
        },
    )
}

fn owner() -> impl Strategy<Value = RootOwner> {
    let small = any::<u16>().prop_map(u32::from);
    let number = prop_oneof![3 => small, 1 => any::<u32>()].boxed();
    let code = any::<u64>().boxed();
    let frame = (number.clone(), code.clone(), number.clone());
    prop_oneof![
        (number.clone(), number.clone())
            .prop_map(|(module, field)| RootOwner::Global { module, field }),
        (number.clone(), frame.clone()).prop_map(|(thread, (depth, return_address, slot))| {
            RootOwner::Stack { thread, depth, return_address, slot }
        }),
        (number.clone(), frame.clone()).prop_map(|(thread, (fiber, return_address, slot))| {
            RootOwner::Handler { thread, fiber, return_address, slot }
        }),
        number.clone().prop_map(|domain| RootOwner::DomainLocal { domain }),
        number.clone().prop_map(|thread| RootOwner::LocalC { thread }),
        code.clone().prop_map(|slot| RootOwner::GlobalC { slot }),
        code.clone().prop_map(|slot| RootOwner::Hook { slot }),
        (address(), frame).prop_map(|(block, (depth, return_address, slot))| {
            RootOwner::Continuation { block, depth, return_address, slot }
        }),
        (number, code).prop_map(|(kind, index)| RootOwner::Host { kind, index }),
    ]
}

fn ephemeron() -> impl Strategy<Value = Record> {
    let keys = prop::collection::btree_map(0u64..10_000, address(), 0..20);
    (address(), prop::option::of(address()), keys).prop_map(|(address, data, keys)| {
        let keys = keys.into_iter().map(|(index, target)| EphemeronKey { index, target }).collect();
        Record::Ephemeron { address, data, keys }
    })
}

fn outside_area() -> impl Strategy<Value = Record> {
    let kind = prop::sample::select(vec![OutsideKind::Allocated, OutsideKind::Mapped]);
    (address(), any::<u64>(), any::<u64>(), any::<u64>(), kind).prop_map(
        |(block, operations, start, bytes, kind)| {
            Record::OutsideArea(OutsideArea { block, operations, start, bytes, kind })
        },
    )
}

pub(crate) fn record() -> impl Strategy<Value = Record> {
    let segment_kind = prop::sample::select(vec![
        SegmentKind::Major,
        SegmentKind::Young,
        SegmentKind::Large,
        SegmentKind::Host,
    ]);
    let finaliser_kind = prop::sample::select(vec![
        FinaliserKind::First,
        FinaliserKind::Last,
        FinaliserKind::Pending,
    ]);
    let namespace = prop::sample::select(vec![KindNamespace::Tag, KindNamespace::HostRoot]);
    prop_oneof![
        1 => (0u32..20, string()).prop_map(|(key, value)| Record::Meta(key, value)),
        1 => (segment_kind, address(), any::<u64>())
            .prop_map(|(kind, start, words)| Record::Segment(Segment { kind, start, words })),
        20 => block().prop_map(Record::Block),
        5 => (owner(), address()).prop_map(|(owner, target)| Record::Root(Root { owner, target })),
        1 => (finaliser_kind, address(), address()).prop_map(|(kind, value, function)| {
            Record::Finaliser(Finaliser { kind, value, function })
        }),
        2 => ephemeron(),
        1 => (any::<u32>(), string()).prop_map(|(id, name)| Record::Module(id, name)),
        1 => (any::<u32>(), any::<u32>(), string())
            .prop_map(|(id, domain, name)| Record::Thread(id, domain, name)),
        1 => (any::<u64>(), string()).prop_map(|(operations, name)| Record::CustomKind(operations, name)),
        1 => (namespace, any::<u32>(), string())
            .prop_map(|(namespace, kind, name)| Record::KindName(namespace, kind, name)),
        1 => (any::<u64>(), string(), string(), any::<u32>()).prop_map(
            |(address, function, file, line)| Record::Name { address, function, file, line }
        ),
        1 => (address(), any::<u64>())
            .prop_map(|(address, id)| Record::Tracked(Tracked { address, id })),
        1 => outside_area(),
    ]
}
