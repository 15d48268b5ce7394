//! The rule of agreement: the table of blocks gives the figures of a reading with the
//! same options, whatever the selection.

use std::ops::Range;
use std::rc::Rc;

use heaptap_report::rows::By;
use heaptap_report::{
    ALL_SITE_FRAMES, Aggregate, Aggregator, BlockTable, Depth, Lifespans, MOST_BLOCKS, Options,
    OverTime, Regex, SelectedPaths, Selection, SiteFrame, Span, TraceEnding,
};
use heaptap_trace::{
    Allocation, Backtrace, Code, Event, EventKind, Location, LocationTable, Source,
};
use proptest::prelude::*;

use crate::figures::figures;
use crate::made::{Life, START, info, programs, stack};

/// What happens to a block.
#[derive(Clone, Copy)]
enum Step {
    Born,
    Promoted,
    Dies,
}

/// The events of a program with domains, sources and labels, in the order of time.
pub(crate) struct Program {
    lives: Vec<Life>,
    steps: Vec<(u64, Step, usize)>,
    pub(crate) locations: LocationTable,
    /// The first of two traces, if there are two.
    first: Option<FirstTrace>,
}

/// The first blocks are of a trace that ends at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstTrace {
    blocks: usize,
    end: u64,
    ending: TraceEnding,
}

pub(crate) fn first_trace() -> impl Strategy<Value = Option<FirstTrace>> {
    let ending = prop_oneof![Just(TraceEnding::Process), Just(TraceEnding::Continued)];
    let made = (0..40_usize, 0..4000_u64, ending).prop_map(|(blocks, end, ending)| FirstTrace {
        blocks,
        end,
        ending,
    });
    prop::option::of(made)
}

const LABELS: Code = 0x900_0000;

impl Program {
    pub(crate) fn new(lives: Vec<Life>) -> Program {
        let mut steps = Vec::new();
        for (number, life) in lives.iter().enumerate() {
            steps.push((life.born, Step::Born, number));
            if source(life) == Source::Minor {
                steps.extend(life.promoted.map(|at| (at, Step::Promoted, number)));
            }
            steps.extend(life.dies.map(|at| (at, Step::Dies, number)));
        }
        steps.sort_by_key(|&(time, ..)| time);
        let locations = locations(&lives);
        Program { lives, steps, locations, first: None }
    }

    /// The same, of two traces.
    pub(crate) fn with_first(mut self, first: Option<FirstTrace>) -> Program {
        if let Some(FirstTrace { blocks, end, .. }) = first {
            self.steps.retain(|&(time, _, number)| number >= blocks || time <= end);
            let lives = self.lives.iter().enumerate();
            let met = lives.filter(|(number, life)| *number >= blocks || life.born <= end);
            self.locations = locations(met.map(|(_, life)| life));
        }
        self.first = first;
        self
    }

    /// The times of all events.
    pub(crate) fn times(&self) -> impl Iterator<Item = u64> {
        self.steps.iter().map(|&(time, ..)| time)
    }

    /// The same program, killed at a time.
    pub(crate) fn until(mut self, time: u64) -> Program {
        self.steps.retain(|&(at, ..)| at <= time);
        self
    }

    /// Passes each event to a state, and the ids of a trace that ends before the last.
    fn run<S>(
        &self,
        state: &mut S,
        event: impl Fn(&mut S, &Event<'_>, &LocationTable),
        end: impl Fn(&mut S, Range<u64>, TraceEnding),
    ) {
        let mut first = self.first;
        for &(at, step, number) in &self.steps {
            if let Some(FirstTrace { blocks, ending, .. }) = first.take_if(|first| at > first.end) {
                end(state, 0..blocks as u64 * 3, ending);
            }
            let (life, id) = (&self.lives[number], number as u64 * 3);
            let frames = frames(life);
            let kind = match step {
                Step::Promoted => EventKind::Promote(id),
                Step::Dies => EventKind::Collect(id),
                Step::Born => EventKind::Alloc(Allocation {
                    id,
                    length: life.length,
                    samples: 1 + life.length % 5,
                    source: source(life),
                    backtrace: Backtrace { frames: &frames, common_prefix: 0, new: &frames },
                }),
            };
            let domain = (life.site % 3) as u16;
            event(state, &Event { time: START + at, domain, kind }, &self.locations);
        }
    }

    /// Passes all events to an aggregator.
    pub(crate) fn pass_to(&self, aggregator: &mut Aggregator) {
        self.run(aggregator, Aggregator::event, Aggregator::end_trace);
    }

    /// A reading of all events, and its table of blocks.
    pub(crate) fn read(&self, rate: f64, options: Options) -> (Aggregate, BlockTable) {
        let mut aggregator = Aggregator::new(&info(rate), options);
        self.pass_to(&mut aggregator);
        aggregator.finish_with_blocks()
    }

    /// The aggregate of a reading that selects.
    pub(crate) fn stream(&self, rate: f64, options: &Options) -> Aggregate {
        let mut options = options.clone();
        if !options.selection.lifetime.is_all() {
            let mut lifespans = Lifespans::new(options.selection.lifetime);
            self.run(&mut lifespans, Lifespans::event, Lifespans::end_trace);
            assert!(lifespans.finish());
            options.lifespans = Some(Rc::new(lifespans));
        }
        self.read(rate, options).0
    }
}

fn locations<'a>(lives: impl IntoIterator<Item = &'a Life>) -> LocationTable {
    let mut locations = LocationTable::default();
    for life in lives {
        for code in frames(life) {
            let (file, line) = if code >= LABELS { ("label", 0) } else { ("bin/x.ml", 3) };
            let library = if code % 3 == 2 { "Stdlib__" } else { "" };
            let definition = format!("{library}Mod{}.f{code:x}", code % 3);
            locations.insert(
                code,
                &[Location {
                    file: file.as_bytes(),
                    line,
                    start_char: (code % 7) as u32,
                    end_char: 9,
                    definition: definition.as_bytes(),
                }],
            );
        }
    }
    locations
}

fn source(life: &Life) -> Source {
    [Source::Minor, Source::Major, Source::External, Source::Minor][(life.site % 4) as usize]
}

fn frames(life: &Life) -> Vec<Code> {
    match life.site % 5 {
        0 => Vec::new(),
        1 | 2 => {
            let mut frames = stack(life.site);
            frames.insert(0, LABELS + life.site % 2);
            frames
        }
        _ => stack(life.site),
    }
}

/// A reading from which a table serves all selections.
pub(crate) fn whole() -> Options {
    Options {
        depth: Depth::Whole,
        over_time: OverTime::LiveSize,
        most_blocks: MOST_BLOCKS,
        ..Options::default()
    }
}

fn patterns() -> impl Strategy<Value = Vec<Regex>> {
    let some = prop_oneof![Just("Mod1"), Just("f1[0-9]*"), Just("x.ml"), Just("Mod[02]")];
    let regex = some.prop_map(|text| Regex::new(text).unwrap());
    prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(regex, 1..3)]
}

fn span(most: u64) -> impl Strategy<Value = Span> {
    let some = (0..most, 0..most).prop_map(|(a, b)| Span { from: a.min(b), to: a.max(b) });
    prop_oneof![2 => Just(Span::default()), 1 => some]
}

fn selections() -> impl Strategy<Value = Selection> {
    let domains = prop_oneof![2 => Just(vec![]), 1 => Just(vec![0, 2])];
    let sources = prop_oneof![2 => Just(vec![]), 1 => Just(vec![Source::Minor])];
    let of_frames = (patterns(), patterns(), patterns());
    (of_frames, span(4000), span(300), span(4000), domains, sources).prop_map(
        |((include, exclude, labels), time, size, lifetime, domains, sources)| Selection {
            include,
            exclude,
            labels,
            time,
            size,
            lifetime,
            domains,
            sources,
        },
    )
}

pub(crate) fn options() -> impl Strategy<Value = Options> {
    let depth = prop_oneof![
        Just(Depth::Whole),
        Just(Depth::Label),
        Just(Depth::Domain),
        Just(Depth::Source)
    ];
    let over_time =
        prop_oneof![Just(OverTime::Nothing), Just(OverTime::LiveSize), Just(OverTime::Flows)];
    (selections(), depth, over_time, prop::option::of(0..4000_u64)).prop_map(
        |(selection, depth, over_time, at)| Options {
            selection,
            depth,
            over_time,
            at,
            ..Options::default()
        },
    )
}

proptest! {
    #[test]
    fn the_table_gives_the_figures_of_a_reading(
        program in prop_oneof![programs(2), programs(50), programs(50_000)],
        options in options(),
        rate in prop_oneof![Just(1.0), Just(0.01)],
        first in first_trace(),
    ) {
        let program = Program::new(program).with_first(first);
        let (aggregate, blocks) = program.read(rate, whole());
        let table = &program.locations;
        let found = blocks.aggregate(&aggregate, table, &options);
        let expected = program.stream(rate, &options);
        prop_assert_eq!(
            figures(&found, table, &options),
            figures(&expected, table, &options)
        );
        if options.depth == Depth::Whole && options.over_time == OverTime::LiveSize {
            for site in ALL_SITE_FRAMES {
                let leaks = leaks_of_table(&aggregate, &blocks, table, site, &options);
                prop_assert_eq!(leaks, format!("{:?}", expected.leaks(table, site, 3)));
            }
        }
    }
}

/// The leaks that the table finds without a replay that follows live sizes.
pub(crate) fn leaks_of_table(
    whole: &Aggregate,
    blocks: &BlockTable,
    table: &LocationTable,
    site: SiteFrame,
    options: &Options,
) -> String {
    let paths = SelectedPaths::new(whole, table, &options.selection);
    let selected = blocks.select(whole, &paths, &options.selection);
    let options = Options { over_time: OverTime::Nothing, ..options.clone() };
    let found = blocks.aggregate_of(&selected, whole, table, &options);
    let history = blocks.history(whole, table, site, &selected);
    format!("{:?}", found.leaks_with(&history, table, 3))
}

#[test]
fn the_table_finds_the_leaks_of_a_reading() {
    let program = crowd(40_000);
    let table = &program.locations;
    let (aggregate, blocks) = program.read(0.5, whole());
    let options = |selection| Options {
        selection,
        depth: Depth::Whole,
        over_time: OverTime::LiveSize,
        ..Options::default()
    };
    let two_domains = Selection { domains: vec![0, 2], ..Selection::default() };
    let mut found = 0;
    for selection in [Selection::default(), two_domains] {
        let options = options(selection);
        let stream = program.stream(0.5, &options);
        for site in ALL_SITE_FRAMES {
            let expected = stream.leaks(table, site, 3);
            found += expected.found.len();
            let leaks = leaks_of_table(&aggregate, &blocks, table, site, &options);
            assert_eq!(leaks, format!("{expected:?}"));
        }
    }
    assert!(found > 0, "the program leaks");
}

/// What tables show: totals, and the rows of each metric.
fn tables(aggregate: &Aggregate, table: &LocationTable, depth: Depth) -> String {
    let by = match depth {
        Depth::Label => By::Label,
        Depth::Domain => By::Domain,
        _ => By::Source,
    };
    let mut shown = format!(
        "{} {} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {}",
        aggregate.events(),
        aggregate.duration(),
        aggregate.peak(),
        aggregate.external(),
        aggregate.live_young(),
        aggregate.peak_external(),
        aggregate.live_external(),
        aggregate.promotion_rate(),
        aggregate.timeline(),
        aggregate.lifetimes().survivors().count,
    );
    for metric in crate::made::METRICS {
        let total = aggregate.total(metric);
        shown += &format!("\n{metric:?} {:?}", aggregate.estimate(metric, total));
        for row in aggregate.rows(table, by, metric) {
            shown += &format!(" {} {}", row.site.name, metric.samples(&row.counts));
        }
    }
    shown
}

proptest! {
    /// However thinned the table is.
    #[test]
    fn a_reading_has_the_figures_by_label_domain_and_source(
        program in prop_oneof![programs(2), programs(50), programs(50_000)],
        depth in prop_oneof![Just(Depth::Label), Just(Depth::Domain), Just(Depth::Source)],
        at in prop::option::of(0..4000_u64),
        first in first_trace(),
    ) {
        let program = Program::new(program).with_first(first);
        let (aggregate, _) = program.read(0.01, Options { most_blocks: 4, at, ..whole() });
        let table = &program.locations;
        let options = Options { depth, at, ..Options::default() };
        let found = aggregate.regrouped(depth, table).expect("it was counted");
        let expected = program.stream(0.01, &options);
        prop_assert_eq!(tables(&found, table, depth), tables(&expected, table, depth));
        let unread = program.stream(0.01, &Options { depth: Depth::Whole, ..Options::default() });
        prop_assert!(unread.regrouped(Depth::Domain, table).is_none());
    }
}

/// A steady program of many blocks.
pub(crate) fn crowd(blocks: u64) -> Program {
    let lives = (0..blocks).map(|number| Life {
        length: number * number % 37,
        site: number * 7 % 12,
        born: number,
        promoted: (number % 3 == 0).then_some(number + 1),
        dies: (number % 4 != 0).then_some(number + 500 + number % 997),
    });
    Program::new(lives.collect())
}

#[test]
fn a_thinned_table_gives_estimates_within_their_errors() {
    let program = crowd(40_000);
    let table = &program.locations;
    let (aggregate, blocks) = program.read(0.01, Options { most_blocks: 4000, ..whole() });
    assert!(blocks.thinning() >= 4 && blocks.len() <= 4000 && blocks.len() > 1500);
    let selection = Selection { domains: vec![0, 2], ..Selection::default() };
    let options =
        Options { selection, at: Some(20_000), depth: Depth::Whole, ..Options::default() };
    let (rough, exact) =
        (blocks.aggregate(&aggregate, table, &options), program.stream(0.01, &options));
    for metric in crate::made::METRICS {
        let size = |aggregate: &Aggregate| aggregate.estimate(metric, aggregate.total(metric));
        let (rough, exact) = (size(&rough), size(&exact));
        assert!(rough.error > 2.0 * exact.error, "{metric:?}: {rough:?} for {exact:?}");
        let apart = (rough.bytes - exact.bytes).abs();
        assert!(apart < 4.0 * rough.error, "{metric:?}: {rough:?} for {exact:?}");
    }
}
