//! Entries laid out by a second writing of the compiler's rules, and hostile memory.

use proptest::prelude::*;

use super::*;

/// Bytes at an address.
struct Bytes {
    start: u64,
    bytes: Vec<u8>,
}

impl Memory for Bytes {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let found = address.checked_sub(self.start).and_then(|from| {
            let from = usize::try_from(from).ok()?;
            self.bytes.get(from..from.checked_add(into.len())?)
        });
        found.map(|bytes| into.copy_from_slice(bytes)).is_some()
    }
}

/// A location as the compiler has it (`Debuginfo.item`).
#[derive(Clone, Debug)]
struct Item {
    file: String,
    definition: String,
    line: u64,
    /// How many lines further it ends.
    lines: u64,
    start: u64,
    /// From the beginning of its first line to that of its last.
    bol: u64,
    /// From the beginning of its last line.
    end: u64,
}

/// What a reader should find.
type Found = (String, u32, u32, u32, String);

fn found(memory: &Bytes, packing: Packing) -> Option<Vec<Found>> {
    let mut locations = Vec::new();
    let any = locate(memory, memory.start, packing, &mut |location| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let SourceLocation { file, line, start_char, end_char, function } = location;
        locations.push((text(file), line, start_char, end_char, text(function)));
    });
    assert_eq!(any, !locations.is_empty());
    any.then_some(locations)
}

/// Lays entries out as `emit_debuginfo` in `asmcomp/emitaux.ml` does (4.14.1,
/// 5.3.0), innermost first: the entries, then for each its file and names.
fn lay_out(items: &[Item], packing: Packing) -> Bytes {
    let mut entries = Vec::new();
    let mut names = Vec::new();
    let names_start = 8 * items.len();
    for (index, item) in items.iter().enumerate() {
        let file = names.len();
        names.extend_from_slice(item.file.as_bytes());
        names.push(0);
        names.resize(names.len().next_multiple_of(4), 0);
        let record = names.len();
        let to_file = file as i32 - record as i32;
        names.extend_from_slice(&to_file.to_le_bytes());
        let next = u64::from(index + 1 < items.len());
        let packed = match packing {
            Packing::Until5_1 => {
                item.line.min(0xf_ffff) << 44
                    | item.start.min(0xff) << 36
                    | (item.bol + item.end).min(0x3ff) << 26
            }
            Packing::Since5_2 if is_small(item) => {
                item.line << 51
                    | item.lines << 48
                    | item.start << 42
                    | item.end << 35
                    | item.bol << 26
            }
            Packing::Since5_2 => {
                names.extend_from_slice(&(item.start.min(0xffff) as u16).to_le_bytes());
                names.extend_from_slice(&(item.end.min(0xffff) as u16).to_le_bytes());
                let end = (item.bol + item.end).min(0x3fff_ffff) as u32;
                names.extend_from_slice(&end.to_le_bytes());
                1 << 63 | item.line.min(0x7_ffff) << 44 | item.lines.min(0x3_ffff) << 26
            }
        };
        names.extend_from_slice(item.definition.as_bytes());
        names.push(0);
        let distance = (names_start + record - 8 * index) as u64;
        entries.extend_from_slice(&(packed | distance | next).to_le_bytes());
    }
    entries.extend_from_slice(&names);
    // Names are read in whole pieces, up to the end of a page.
    entries.resize(entries.len().next_multiple_of(64), 0xee);
    Bytes { start: 0x40_0000, bytes: entries }
}

fn is_small(item: &Item) -> bool {
    item.line <= 0xfff
        && item.lines <= 7
        && item.start <= 0x3f
        && item.end <= 0x7f
        && item.bol <= 0x1ff
}

fn wanted(items: &[Item], packing: Packing) -> Vec<Found> {
    let location = |item: &Item| {
        let end = item.bol + item.end;
        let (line, start, end) = match packing {
            Packing::Until5_1 => (item.line.min(0xf_ffff), item.start.min(0xff), end.min(0x3ff)),
            Packing::Since5_2 if is_small(item) => (item.line, item.start, end),
            Packing::Since5_2 => {
                (item.line.min(0x7_ffff), item.start.min(0xffff), end.min(0x3fff_ffff))
            }
        };
        (item.file.clone(), line as u32, start as u32, end as u32, item.definition.clone())
    };
    items.iter().rev().map(location).collect()
}

fn item() -> impl Strategy<Value = Item> {
    let small = (1..0x1000_u64, 0..8_u64, 0..64_u64, 0..0x200_u64, 0..0x80_u64);
    let large = (1..0x20_0000_u64, 0..0x10_0000_u64, 0..100_000_u64, 0..90_000_u64, 0..70_000_u64);
    ("[a-z/]{1,80}\\.ml", "[A-Z][A-Za-z_.()+]{0,150}", prop_oneof![small, large]).prop_map(
        |(file, definition, (line, lines, start, bol, end))| Item {
            file,
            definition,
            line,
            lines,
            start,
            bol,
            end,
        },
    )
}

fn packing() -> impl Strategy<Value = Packing> {
    prop::sample::select(vec![Packing::Until5_1, Packing::Since5_2])
}

fn plain(line: u64) -> Item {
    let (file, definition) = ("a.ml".to_string(), "A.f".to_string());
    Item { file, definition, line, lines: 0, start: 1, bol: 0, end: 9 }
}

#[test]
fn as_many_inlined_calls_as_a_trace_holds_and_no_more() {
    for packing in [Packing::Until5_1, Packing::Since5_2] {
        let most: Vec<Item> = (1..=255).map(plain).collect();
        assert_eq!(found(&lay_out(&most, packing), packing), Some(wanted(&most, packing)));
        let more: Vec<Item> = (1..=256).map(plain).collect();
        assert_eq!(found(&lay_out(&more, packing), packing), None);
    }
}

#[test]
fn a_name_without_end_is_cut() {
    let long = Item { definition: "x".repeat(5000), ..plain(3) };
    let locations = found(&lay_out(&[long], Packing::Until5_1), Packing::Until5_1).unwrap();
    assert_eq!(locations[0].4, "x".repeat(MAX_NAME));
}

#[test]
fn what_cannot_be_read_is_not_shown_in_part() {
    let items: Vec<Item> = (1..4).map(plain).collect();
    let whole = lay_out(&items, Packing::Since5_2);
    for length in 0..whole.bytes.len() - 64 {
        let cut = Bytes { start: whole.start, bytes: whole.bytes[..length].to_vec() };
        assert_eq!(found(&cut, Packing::Since5_2), None, "{length}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_the_compiler_packs_is_unpacked(
        items in prop::collection::vec(item(), 1..6),
        packing in packing(),
    ) {
        prop_assert_eq!(found(&lay_out(&items, packing), packing), Some(wanted(&items, packing)));
    }

    #[test]
    fn any_memory_is_decoded_without_a_panic(
        bytes in prop::collection::vec(prop_oneof![Just(0), Just(1), any::<u8>()], 0..700),
        start in prop_oneof![Just(0), Just(u64::MAX - 100), any::<u64>()],
        packing in packing(),
    ) {
        if let Some(locations) = found(&Bytes { start, bytes }, packing) {
            prop_assert!(locations.len() <= MAX_INLINED);
        }
    }
}
