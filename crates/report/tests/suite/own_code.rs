//! Tables by own code: what they count, against a plain count of whole stacks.

use std::collections::BTreeMap;

use heaptap_report::rows::{By, Grouping, Row};
use heaptap_report::{
    Aggregate, Aggregator, Caller, Depth, Metric, Options, Regex, Selection, SiteFrame,
};
use heaptap_trace::{
    Block, Code, Encoder, EventSource as _, Format, Frames, Locate, Location, LocationList,
    LocationTable, Mode, Reader, Source,
};
use proptest::prelude::*;

use crate::made::{START, info};

const OWN_ROWS: Grouping = Grouping { by: By::Location, site: SiteFrame::Own };
const OWN_FUNCTIONS: Grouping = Grouping { by: By::Function, site: SiteFrame::Own };

/// A frame is a number: its functions, the outermost first. Where a function was inlined, there
/// are two.
fn functions(code: Code) -> Vec<(&'static str, &'static str, u32)> {
    const OWN: [(&str, &str); 3] =
        [("Words.f", "words.ml"), ("Words.g", "words.ml"), ("List.h", "list.ml")];
    const LIBRARY: [(&str, &str); 3] = [
        ("Stdlib__List.iter", "list.ml"),
        ("Stdlib__Map.Make.add", "map.ml"),
        ("Fmt.pr", "vendor/fmt/fmt.ml"),
    ];
    let line = 1 + code as u32;
    let own = |number: Code| {
        let (name, file) = OWN[number as usize % 3];
        (name, file, line)
    };
    let library = |number: Code| {
        let (name, file) = LIBRARY[number as usize % 3];
        (name, file, line)
    };
    match code {
        1 => vec![("GET /", "label", 0)],
        2 => Vec::new(),
        10..20 => vec![own(code)],
        20..30 => vec![library(code)],
        30..33 => vec![own(code), library(code)],
        33..36 => vec![library(code), own(code)],
        _ => vec![library(code), library(code + 1)],
    }
}

fn is_library((name, file, line): (&str, &str, u32)) -> bool {
    line == 0 || line == u32::MAX || name.starts_with("Stdlib__") || file.starts_with("vendor/")
}

/// The innermost function of own code, else the innermost, by reading the whole stack.
fn site(stack: &[Code]) -> (String, u32) {
    let all: Vec<_> = stack
        .iter()
        .flat_map(|&code| {
            let found = functions(code);
            // Of which nothing is known.
            if found.is_empty() { vec![("", "", u32::MAX)] } else { found }
        })
        .collect();
    let own = all.iter().rev().find(|&&function| !is_library(function));
    let Some(&(_, file, line)) = own.or(all.last()) else { return (String::new(), 0) };
    if line == u32::MAX { (String::new(), 0) } else { (file.to_owned(), line) }
}

struct Functions;

impl Locate for Functions {
    fn locate(&mut self, code: Code, list: &mut LocationList) {
        for (name, file, line) in functions(code) {
            let (file, definition) = (file.as_bytes(), name.as_bytes());
            list.add(Location { file, line, start_char: 0, end_char: 1, definition });
        }
    }
}

/// A trace of one sample for each of these stacks, in their domains. Every third is collected.
fn traced(stacks: &[(u16, Vec<Code>)]) -> Vec<u8> {
    let mut encoder = Encoder::new(Vec::new(), Format::V3, &info(1.0)).unwrap();
    for (at, (domain, stack)) in stacks.iter().enumerate() {
        let block = Block { length: 0, samples: 1, source: Source::Minor };
        let time = START + 2 * at as u64;
        let mut domain = encoder.domain(*domain);
        let id = domain.alloc(time, block, Frames::Whole(stack), &mut Functions).unwrap();
        if at % 3 == 0 {
            domain.collect(time + 1, id, &mut Functions).unwrap();
        }
    }
    encoder.finish(&mut Functions).unwrap()
}

fn read(trace: &[u8], options: Options) -> (Aggregate, LocationTable) {
    let mut reader = Reader::from_slice(trace, Mode::Strict).unwrap();
    let mut aggregator = Aggregator::new(reader.info(), options);
    while let Some((event, table)) = reader.next_located().unwrap() {
        aggregator.event(&event, table);
    }
    (aggregator.finish(), reader.into_locations())
}

/// Samples by site.
fn by_site(rows: &[Row]) -> BTreeMap<(String, u32), u64> {
    let of_row = |row: &Row| ((row.site.file.clone(), row.site.line), row.counts.allocated);
    let mut sums = BTreeMap::new();
    for (site, samples) in rows.iter().map(of_row) {
        *sums.entry(site).or_default() += samples;
    }
    sums
}

fn stacks() -> impl Strategy<Value = Vec<(u16, Vec<Code>)>> {
    // Most of a stack is library code, so that runs of it are long.
    let code = prop_oneof![1 => Just(2), 2 => 10..16_u64, 6 => 20..26_u64, 2 => 30..39_u64];
    let stack = (any::<bool>(), prop::collection::vec(code, 0..12), 0..10_usize);
    prop::collection::vec((0..3_u16, stack), 1..120).prop_map(|drawn| {
        let mut last: Vec<Code> = Vec::new();
        let make = |(domain, (labelled, mut tail, shared)): (u16, (bool, Vec<Code>, usize))| {
            // A stack mostly begins like the one before.
            let mut stack: Vec<Code> = last.iter().copied().take(shared).collect();
            if stack.is_empty() && labelled {
                stack.push(1);
            }
            stack.append(&mut tail);
            last.clone_from(&stack);
            (domain, stack)
        };
        drawn.into_iter().map(make).collect()
    })
}

proptest! {
    #[test]
    fn rows_of_own_code_are_those_of_a_plain_count(stacks in stacks(), filter in any::<bool>()) {
        let include = filter.then(|| Regex::new("Words").unwrap()).into_iter().collect();
        let selection = Selection { include, ..Selection::default() };
        let is_selected = |stack: &[Code]| {
            let has_words = |&code: &Code| functions(code).iter().any(|f| f.0.contains("Words"));
            !filter || stack.iter().any(has_words)
        };
        let mut expected: BTreeMap<(String, u32), u64> = BTreeMap::new();
        for (_, stack) in stacks.iter().filter(|(_, stack)| is_selected(stack)) {
            *expected.entry(site(stack)).or_default() += 1;
        }
        let trace = traced(&stacks);
        for depth in [Depth::OwnCode, Depth::Whole] {
            let options = Options { selection: selection.clone(), depth, ..Options::default() };
            let (aggregate, table) = read(&trace, options);
            let rows = aggregate.rows(&table, OWN_ROWS, Metric::Allocated);
            prop_assert_eq!(&by_site(&rows), &expected, "{:?}", depth);
            for metric in [Metric::Allocated, Metric::Peak, Metric::Live] {
                for by in [By::Function, By::Location, By::File, By::Module] {
                    let rows = aggregate.rows(&table, Grouping { by, site: SiteFrame::Own }, metric);
                    let sum: u64 = rows.iter().map(|row| metric.samples(&row.counts)).sum();
                    prop_assert_eq!(sum, aggregate.total(metric).count);
                }
            }
        }
    }

    #[test]
    fn callers_of_own_code_have_all_of_it(stacks in stacks()) {
        let options = Options { depth: Depth::Whole, ..Options::default() };
        let (aggregate, table) = read(&traced(&stacks), options);
        let rows = aggregate.rows(&table, OWN_FUNCTIONS, Metric::Allocated);
        let sites: Vec<_> = rows.iter().map(|row| row.site.clone()).collect();
        let callers = aggregate.callers(&table, OWN_FUNCTIONS, Metric::Allocated, &sites, 3);
        for (row, callers) in rows.iter().zip(callers) {
            let sum: u64 = callers.iter().map(|caller| caller.samples.count).sum();
            prop_assert!(sum <= row.counts.allocated);
            prop_assert!(callers.iter().all(no_two_libraries), "{callers:?}");
        }
    }
}

/// Whether no library code calls library code.
fn no_two_libraries(caller: &Caller) -> bool {
    caller.callers.iter().all(|next| !(caller.library && next.library) && no_two_libraries(next))
}

/// One stack: `Words.g` calls `List.iter`, which calls `Map.add` and that `Words.f`, which calls
/// a library function that allocates in another.
const CALLED: [Code; 6] = [11, 21, 22, 12, 23, 21];

#[test]
fn library_code_between_own_frames_is_one_step() {
    let (aggregate, table) = read(
        &traced(&[(0, CALLED.to_vec())]),
        Options { depth: Depth::Whole, ..Options::default() },
    );
    let rows = aggregate.rows(&table, OWN_FUNCTIONS, Metric::Allocated);
    assert_eq!(rows.len(), 1);
    let site = rows[0].site.clone();
    assert_eq!(site.name, functions(12)[0].0);
    let sites = [site];
    let callers = aggregate.callers(&table, OWN_FUNCTIONS, Metric::Allocated, &sites, 9).remove(0);
    let mut steps = Vec::new();
    let mut level = &callers;
    while let [caller] = &level[..] {
        steps.push((caller.site.name.as_str(), caller.library));
        level = &caller.callers;
    }
    // Of a run of library code, what own code calls.
    let entered = functions(21)[0].0.replace("Stdlib__", "Stdlib.");
    assert_eq!(steps, [(entered.as_str(), true), (functions(11)[0].0, false)]);
    let calls = aggregate.library_calls(&table, By::Function, Metric::Allocated, &sites).remove(0);
    let calls: Vec<_> =
        calls.iter().map(|call| (call.site.name.as_str(), call.samples.count)).collect();
    assert_eq!(calls, [(functions(23)[0].0.replace("Stdlib__", "Stdlib.").as_str(), 1)]);
}

proptest! {
    #[test]
    fn a_folded_tree_has_all_samples_and_no_library_calls_library(stacks in stacks()) {
        let options = Options { depth: Depth::Whole, ..Options::default() };
        let (aggregate, table) = read(&traced(&stacks), options);
        let tree = |grouping: Grouping| {
            aggregate.call_tree(&aggregate.call_shape(&table, grouping, false), Metric::Allocated)
        };
        let (whole, folded) = (tree(By::Location.into()), tree(OWN_ROWS));
        prop_assert_eq!(folded.samples(0), whole.samples(0));
        prop_assert!(folded.len() <= whole.len());
        let is_library_node = |node: u32| {
            let site = &folded.sites()[folded.site(node).unwrap() as usize];
            let name = site.name.replace("Stdlib.", "Stdlib__");
            !site.name.is_empty() && !name.starts_with('(') && name != "GET /"
                && (name.starts_with("Stdlib__") || site.file.starts_with("vendor/"))
        };
        let own: Vec<bool> = (0..folded.len())
            .map(|node| node > 0 && ["Words", "List.h"].iter().any(|own| {
                folded.sites()[folded.site(node).unwrap() as usize].name.starts_with(own)
            }))
            .collect();
        let mut below_own = vec![false; own.len()];
        for node in 1..folded.len() {
            let parent = folded.parent(node);
            below_own[node as usize] = own[parent as usize] || below_own[parent as usize];
            if below_own[node as usize] && is_library_node(node) {
                prop_assert!(parent == 0 || !is_library_node(parent), "{:?}", stacks);
            }
        }
        // A site of own code is the innermost own one of what is at it and in the library below it.
        let mut sums: BTreeMap<(String, u32), u64> = BTreeMap::new();
        for node in 1..folded.len() {
            let mut at = node;
            while at > 0 && !own[at as usize] {
                at = folded.parent(at);
            }
            if at > 0 {
                let site = &folded.sites()[folded.site(at).unwrap() as usize];
                *sums.entry((site.file.clone(), site.line)).or_default() += folded.own_samples(node).count;
            }
        }
        let rows = by_site(&aggregate.rows(&table, OWN_ROWS, Metric::Allocated));
        for (site, sum) in sums.into_iter().filter(|&(_, sum)| sum > 0) {
            prop_assert_eq!(rows.get(&site), Some(&sum), "{:?}", site);
        }
    }
}

#[test]
fn a_program_without_own_code_is_shown_as_it_is() {
    let (aggregate, table) = read(
        &traced(&[(0, vec![20, 21, 22])]),
        Options { depth: Depth::Whole, ..Options::default() },
    );
    let rows = |site| {
        let rows = aggregate.rows(&table, Grouping { by: By::Function, site }, Metric::Allocated);
        rows.into_iter().map(|row| row.site).collect::<Vec<_>>()
    };
    let sites = rows(SiteFrame::Innermost);
    assert_eq!(rows(SiteFrame::Own), sites);
    let callers = aggregate.callers(&table, OWN_FUNCTIONS, Metric::Allocated, &sites, 9).remove(0);
    // All of them are library code, so none is folded.
    assert_eq!(callers[0].callers.len(), 1);
    assert!(!callers[0].library && !callers[0].callers[0].library);
}
