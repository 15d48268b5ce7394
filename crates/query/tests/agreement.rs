//! The rule of agreement: whatever the filter, the page's figures are those of a reading
//! with that filter, which is what `heaptap report` does. Where they come from a table
//! that was thinned, they differ by no more than the error that they state; where the
//! archive lacks what the filter asks for, there is no figure.

#[path = "agreement/totals.rs"]
mod totals;

use std::fs;
use std::path::Path;
use std::rc::Rc;

use heaptap_query::{Engine, Filter};
use heaptap_report::figures::{Figures, TableOptions, TableView, TraceFigures, by_name};
use heaptap_report::rows::{By, Grouping};
use heaptap_report::{
    ALL_SITE_FRAMES, Aggregator, Archive, Depth, Lifespans, MOST_BLOCKS, Metric, Options, OverTime,
    Rates,
};
use heaptap_trace::{
    Allocation, Backtrace, Code, Event, EventKind, EventSource as _, Location, LocationTable, Mode,
    Reader, Source, TraceInfo,
};
use serde_json::{Value, json};

/// How many filters are tried on each trace, and on one with many call paths.
const FILTERS: u64 = 200;
const FILTERS_OF_MANY_PATHS: u64 = 10;

#[test]
fn of_traces_of_the_original_writer() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/data");
    for name in ["made-maps.v2.ctf", "made-threads.v2.ctf", "made-trees.v3.ctf"] {
        Trial::new(name, Trace::File(fs::read(data.join(name)).unwrap())).filters(FILTERS);
    }
}

#[test]
fn of_a_published_trace_of_the_compiler() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/ocamlopt.v3.ctf");
    let Ok(bytes) = fs::read(&path) else {
        eprintln!("\n*** SKIPPED: {} is not there ***\n", path.display());
        return;
    };
    Trial::new("ocamlopt.v3.ctf", Trace::File(bytes)).filters(FILTERS);
}

#[test]
fn of_a_program_with_labels_domains_and_every_source() {
    Trial::new("mixed", Trace::Made(Box::new(Program::mixed()))).filters(FILTERS);
}

/// Nearly every block has a call path of its own.
#[test]
fn of_a_program_with_300_000_call_paths() {
    Trial::new("rare paths", Trace::Made(Box::new(Program::with_rare_paths(300_000))))
        .filters(FILTERS_OF_MANY_PATHS);
}

#[test]
fn of_a_table_that_was_thinned() {
    let trial = Trial::bounded("thinned", Trace::Made(Box::new(Program::mixed())), 2_000);
    let whole = trial.filters(FILTERS);
    assert!(whole.inexact > FILTERS / 2, "hardly any answer came from the table: {whole:?}");
}

/// Blocks of three rates, mostly one after the other.
#[test]
fn of_a_program_that_was_sampled_at_several_rates() {
    let program = || Trace::Made(Box::new(Program::mixed().at_several_rates()));
    Trial::new("several rates", program()).filters(FILTERS);
    let whole = Trial::bounded("several rates, thinned", program(), 2_000).filters(FILTERS);
    assert!(whole.inexact > FILTERS / 2, "hardly any answer came from the table: {whole:?}");
}

/// What became of the answers to all filters.
#[derive(Debug, Default)]
struct Outcomes {
    exact: u64,
    inexact: u64,
    /// Of these, the ones outside the interval that they state.
    far: u64,
    nothing: u64,
}

/// A trace that is open in the page's engine.
struct Trial {
    name: &'static str,
    trace: Trace,
    names: Vec<String>,
    engine: Engine,
    duration: u64,
    info: TraceInfo,
}

impl Trial {
    fn new(name: &'static str, trace: Trace) -> Trial {
        Trial::bounded(name, trace, MOST_BLOCKS)
    }

    /// With a table of at most so many blocks.
    fn bounded(name: &'static str, trace: Trace, most_blocks: usize) -> Trial {
        let whole = Options {
            depth: Depth::Whole,
            over_time: OverTime::LiveSize,
            most_blocks,
            ..Options::default()
        };
        let mut reading = trace.read(whole);
        let (aggregate, blocks) = reading.aggregator.finish_with_blocks();
        let (duration, info) = (aggregate.duration(), reading.info.clone());
        let names = names(&aggregate.codes().collect::<Vec<_>>(), &reading.locations);
        let archive = Archive {
            name: name.to_owned(),
            info: reading.info,
            cut_short: None,
            incomplete: None,
            notices: Vec::new(),
            aggregate,
            blocks,
            locations: std::mem::take(&mut reading.locations),
            answers: Vec::new(),
        };
        let mut engine = Engine::default();
        // As the page has it: out of bytes.
        assert_eq!(engine.open(&archive.to_bytes()), Ok(0));
        Trial { name, trace, names, engine, duration, info }
    }

    fn filters(mut self, count: u64) -> Outcomes {
        let mut outcomes = Outcomes::default();
        for seed in 0..count {
            let mut dice = Dice(seed);
            let filter = self.filter(&mut dice);
            let metrics = ["allocated", "promoted", "peak", "live", "survived", "at"];
            let metric = metrics[dice.below(metrics.len() as u64) as usize];
            let rows = [By::Function, By::File, By::Module, By::Label, By::Source, By::Domain];
            let by = rows[dice.below(rows.len() as u64) as usize];
            let site = ALL_SITE_FRAMES[dice.below(2) as usize];
            self.compare(&json!(filter), metric, Grouping { by, site }, &mut outcomes);
        }
        let &Outcomes { exact, inexact, far, nothing } = &outcomes;
        println!("{}: {outcomes:?}", self.name);
        assert!(
            exact + inexact > 2 * nothing,
            "{}: hardly a filter selects: {outcomes:?}",
            self.name
        );
        // At most one in twenty is outside its interval.
        let most = inexact as f64 * 0.05 + 4.0 * (inexact as f64 * 0.05).sqrt();
        assert!(
            far as f64 <= most.max(3.0),
            "{}: too far from the reading: {outcomes:?}",
            self.name
        );
        outcomes
    }

    fn compare(&mut self, filter: &Value, metric: &str, rows: Grouping, outcomes: &mut Outcomes) {
        let at = self.duration / 3;
        let request = json!({
            "q": "report", "filter": filter, "metric": metric, "at": at,
            "by": by_name(rows.by), "sites": rows.site.name()
        });
        let text = request.to_string();
        let found: Value = serde_json::from_str(&self.engine.query(text.as_bytes())).unwrap();
        assert!(found.get("error").is_none(), "{}: {text}: {found}", self.name);
        let mut expected = self.report(filter, metric, at, rows);
        let exact = found["exact"].as_bool().unwrap();
        expected["exact"] = json!(exact);
        if expected["totals"]["samples"] == 0 {
            outcomes.nothing += 1;
        }
        if exact {
            outcomes.exact += 1;
            assert_eq!(found, expected, "{}: {text}", self.name);
            if matches!(metric, "allocated" | "promoted") {
                self.compare_heat_map(&request, &expected);
            }
            return;
        }
        outcomes.inexact += 1;
        let size = |answer: &Value, part: &str| answer["table"]["total"][part].as_f64().unwrap();
        let truth = size(&expected, "bytes");
        let (bytes, low, high) = (size(&found, "bytes"), size(&found, "low"), size(&found, "high"));
        // Three times as wide as the 95 % that are stated: one in 250 million is outside.
        let (lowest, highest) = (bytes - 3.0 * (bytes - low), bytes + 3.0 * (high - bytes));
        let is_near = (lowest..=highest).contains(&truth);
        assert!(is_near, "{}: {text}: {low} to {high}, not {truth}", self.name);
        outcomes.far += u64::from(!(low..=high).contains(&truth));
    }

    /// The rows of the heat map are those of the report, and its cells add up to them.
    fn compare_heat_map(&mut self, request: &Value, report: &Value) {
        let mut request = request.clone();
        request["q"] = json!("heat_map");
        (request["top"], request["points"]) = (json!(128), json!(37));
        let text = request.to_string();
        let map: Value = serde_json::from_str(&self.engine.query(text.as_bytes())).unwrap();
        let rows = map["rows"].as_array().unwrap_or_else(|| panic!("{text}: {map}"));
        let expected = report["table"]["rows"].as_array().unwrap();
        let all = rows.len() as u64 + map["other_rows"].as_u64().unwrap();
        assert_eq!(all, expected.len() as u64, "{}: {text}", self.name);
        for (row, expected) in rows.iter().zip(expected) {
            let (name, size) = (&row["site"]["name"], &row["size"]);
            assert_eq!(name, &expected["name"], "{}: {text}", self.name);
            for part in ["bytes", "error", "low", "high"] {
                assert_eq!(size[part], expected[part], "{}: {text}: {part} of {name}", self.name);
            }
            let cells = row["bytes"].as_array().unwrap().iter().map(|cell| cell.as_f64().unwrap());
            let (sum, whole) = (cells.sum::<f64>(), size["bytes"].as_f64().unwrap());
            assert!((sum - whole).abs() <= 1e-9 * whole, "{}: {text}: {name}: {sum}", self.name);
        }
    }

    /// What `heaptap report` finds with this filter, in a reading of its own.
    fn report(&self, filter: &Value, metric: &str, at: u64, rows: Grouping) -> Value {
        let filter: Filter = serde_json::from_value(filter.clone()).unwrap();
        let selection = filter.selection().unwrap();
        let depth = rows.depth();
        let metric = metric_of(metric);
        let at = (metric == Metric::At).then_some(at);
        let mut options = Options { selection, depth, at, ..Options::default() };
        if !options.selection.lifetime.is_all() {
            options.lifespans = Some(self.trace.lifespans(options.selection.lifetime));
        }
        let Reading { info, locations, aggregator } = self.trace.read(options);
        let figures = TraceFigures {
            name: self.name,
            info: &info,
            cut_short: None,
            incomplete: None,
            aggregate: &aggregator.finish(),
            locations: &locations,
            selected: filter != Filter::default(),
        };
        let Grouping { by, site } = rows;
        let view = TableView { by, site, metric, at: Some(self.duration / 3) };
        let options = TableOptions { view, top: 0, callers: None };
        // As text and back, as the answer is.
        serde_json::from_str(&json!(Figures::of(&figures, &options)).to_string()).unwrap()
    }

    /// One condition or two.
    fn filter(&self, dice: &mut Dice) -> Value {
        let mut filter = json!({});
        for _ in 0..=dice.below(2) {
            self.add_condition(&mut filter, dice);
        }
        filter
    }

    fn add_condition(&self, filter: &mut Value, dice: &mut Dice) {
        let word = u64::from(self.info.word_size / 8);
        match dice.below(9) {
            0 | 1 => filter["include"] = json!([self.pattern(dice)]),
            2 => filter["include"] = json!([self.pattern(dice), self.pattern(dice)]),
            3 => filter["exclude"] = json!([self.pattern(dice)]),
            4 => filter["size"] = span(dice, 40 * word),
            5 => filter["lifetime"] = span(dice, self.duration / 2),
            6 => filter["time"] = span(dice, self.duration),
            7 => {
                let names: Vec<&str> = Source::ALL.iter().map(|source| source.name()).collect();
                filter["sources"] = json!([names[dice.below(names.len() as u64) as usize]]);
            }
            _ => match dice.below(2) {
                0 => filter["domains"] = json!([dice.below(3)]),
                _ => filter["labels"] = json!(["log|b"]),
            },
        }
    }

    /// A name, or the module before it, as a pattern.
    fn pattern(&self, dice: &mut Dice) -> String {
        let name = &self.names[dice.below(self.names.len() as u64) as usize];
        let module = name.split('.').next().unwrap_or(name);
        let text = if dice.below(2) == 0 { name } else { module };
        let escaped = text.chars().map(|c| if c.is_alphanumeric() { c } else { '.' });
        escaped.collect()
    }
}

fn span(dice: &mut Dice, to: u64) -> Value {
    let from = dice.below(to / 2 + 1);
    json!([from, from + dice.below(to)])
}

fn metric_of(name: &str) -> Metric {
    match name {
        "promoted" => Metric::Promoted,
        "peak" => Metric::Peak,
        "at" => Metric::At,
        "live" => Metric::Live,
        "survived" => Metric::Survived,
        _ => Metric::Allocated,
    }
}

/// The names of functions and files.
fn names(codes: &[Code], locations: &LocationTable) -> Vec<String> {
    let all = codes.iter().flat_map(|&code| locations.resolve(code).collect::<Vec<_>>());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut names: Vec<String> =
        all.flat_map(|location| [text(location.definition), text(location.file)]).collect();
    names.retain(|name| !name.is_empty());
    names.sort();
    names.dedup();
    names
}

/// A reading of a trace.
struct Reading {
    info: TraceInfo,
    locations: LocationTable,
    aggregator: Aggregator,
}

/// Where events come from.
enum Trace {
    File(Vec<u8>),
    Made(Box<Program>),
}

impl Trace {
    fn read(&self, options: Options) -> Reading {
        let info = self.info();
        let rates = match self {
            Trace::Made(program) => program.rates(),
            Trace::File(_) => Rates::default(),
        };
        let rate_of = |event: &Event<'_>| match (self, event.kind) {
            (Trace::Made(program), EventKind::Alloc(allocation)) => {
                rates.number(program.rate_of(allocation.id)).unwrap_or(0)
            }
            _ => 0,
        };
        let mut aggregator = Aggregator::new(&info, Options { rates: rates.clone(), ..options });
        let locations = self.run(|event, table| aggregator.event_at(event, table, rate_of(event)));
        Reading { info, locations, aggregator }
    }

    fn lifespans(&self, span: heaptap_report::Span) -> Rc<Lifespans> {
        let mut found = Lifespans::new(span);
        self.run(|event, table| found.event(event, table));
        assert!(found.finish());
        Rc::new(found)
    }

    fn info(&self) -> TraceInfo {
        match self {
            Trace::File(bytes) => Reader::from_slice(bytes, Mode::Strict).unwrap().info().clone(),
            Trace::Made(program) => TraceInfo {
                sample_rate: program.sample_rate,
                word_size: 64,
                executable: b"made".to_vec(),
                host: Vec::new(),
                runtime_params: Vec::new(),
                pid: 1,
                context: Vec::new(),
                start_time: 0,
                domain: 0,
            },
        }
    }

    /// Passes on all events, and returns the locations.
    fn run(&self, mut pass: impl FnMut(&Event<'_>, &LocationTable)) -> LocationTable {
        match self {
            Trace::File(bytes) => {
                let mut reader = Reader::from_slice(bytes, Mode::Strict).unwrap();
                while let Some((event, table)) = reader.next_located().unwrap() {
                    pass(&event, table);
                }
                reader.into_locations()
            }
            Trace::Made(program) => program.run(pass),
        }
    }
}

/// A made program: a block at each step.
struct Program {
    blocks: Vec<MadeBlock>,
    locations: LocationTable,
    /// The lowest, if there are several.
    sample_rate: f64,
    /// The rates of its stretches, if there are several.
    stretches: Vec<f64>,
}

struct MadeBlock {
    stack: Vec<Code>,
    length: u64,
    samples: u64,
    source: Source,
    domain: u16,
    /// Steps after its birth.
    promoted: Option<u64>,
    dies: Option<u64>,
}

const LABELS: [&str; 3] = ["login", "browse", "admin"];
const LABEL: Code = 1_000_000;

impl Program {
    /// Few call paths, all kinds of blocks.
    fn mixed() -> Program {
        let block = |number: u64, dice: &mut Dice| {
            let mut stack: Vec<Code> = vec![1, 2 + dice.below(5), 10 + dice.below(30)];
            if dice.below(3) == 0 {
                stack.insert(0, LABEL + dice.below(LABELS.len() as u64));
            }
            MadeBlock {
                stack: if number.is_multiple_of(50) { Vec::new() } else { stack },
                length: dice.below(60),
                samples: 1 + dice.below(3) * dice.below(3),
                source: Source::ALL[dice.below(3) as usize],
                domain: dice.below(3) as u16,
                promoted: (dice.below(2) == 0).then(|| 1 + dice.below(20)),
                dies: (dice.below(4) > 0).then(|| 21 + dice.below(900)),
            }
        };
        Program::new(8_000, block)
    }

    /// Calls of few functions in so many orders that hardly a path occurs twice.
    fn with_rare_paths(count: u64) -> Program {
        let block = |_, dice: &mut Dice| MadeBlock {
            stack: std::iter::once(1).chain((0..8).map(|_| 10 + dice.below(25))).collect(),
            length: 2 + dice.below(5),
            samples: 1,
            source: Source::Minor,
            domain: 0,
            promoted: (dice.below(8) == 0).then(|| 1 + dice.below(20)),
            dies: (dice.below(4) > 0).then(|| 21 + dice.below(2_000)),
        };
        Program::new(count, block)
    }

    fn new(count: u64, block: impl Fn(u64, &mut Dice) -> MadeBlock) -> Program {
        let mut dice = Dice(7);
        let blocks: Vec<_> = (0..count).map(|number| block(number, &mut dice)).collect();
        let mut locations = LocationTable::default();
        for code in 1..50 {
            let definition = format!("Module{}.f{code}", code % 7);
            // Some of them are library code.
            let folder = if code % 3 == 0 { "vendor" } else { "lib" };
            let file = format!("{folder}/module{}.ml", code % 7);
            insert(&mut locations, code, &definition, &file, code as u32);
        }
        for (number, label) in LABELS.iter().enumerate() {
            insert(&mut locations, LABEL + number as Code, label, "label", 0);
        }
        Program { blocks, locations, sample_rate: 0.01, stretches: Vec::new() }
    }

    /// The same with a sample for each word.
    fn at_rate_one(mut self) -> Program {
        self.blocks.iter_mut().for_each(|block| block.samples = block.length + 1);
        Program { sample_rate: 1.0, ..self }
    }

    /// The same in stretches of different rates.
    fn at_several_rates(self) -> Program {
        Program { sample_rate: 5e-4, stretches: vec![0.01, 0.3, 5e-4, 0.01], ..self }
    }

    /// The rate of a block. A thread takes up a new one after a while.
    fn rate_of(&self, block: u64) -> f64 {
        let stretch = block as usize * self.stretches.len() / self.blocks.len();
        let late = usize::from(block.is_multiple_of(13));
        self.stretches.get(stretch.saturating_sub(late)).copied().unwrap_or(self.sample_rate)
    }

    fn rates(&self) -> Rates {
        let blocks = (0..).zip(&self.blocks);
        Rates::of(blocks.map(|(number, block)| (self.rate_of(number), block.samples)))
    }

    fn run(&self, mut pass: impl FnMut(&Event<'_>, &LocationTable)) -> LocationTable {
        let mut due: std::collections::BTreeMap<u64, Vec<EventKind<'_>>> = Default::default();
        for (number, block) in self.blocks.iter().enumerate() {
            let (id, time) = (number as u64, number as u64 * 10);
            let mut happen = |time, kind| {
                pass(&Event { time, domain: block.domain, kind }, &self.locations);
            };
            while let Some(first) = due.first_entry().filter(|first| *first.key() <= time) {
                let (at, kinds) = first.remove_entry();
                kinds.into_iter().for_each(|kind| happen(at, kind));
            }
            let frames = &block.stack[..];
            happen(
                time,
                EventKind::Alloc(Allocation {
                    id,
                    length: block.length,
                    samples: block.samples,
                    source: block.source,
                    backtrace: Backtrace { frames, common_prefix: 0, new: frames },
                }),
            );
            let promoted = block.promoted.filter(|_| block.source == Source::Minor);
            if let Some(after) = promoted {
                due.entry(time + 10 * after).or_default().push(EventKind::Promote(id));
            }
            if let Some(after) = block.dies {
                due.entry(time + 10 * after).or_default().push(EventKind::Collect(id));
            }
        }
        self.locations.clone()
    }
}

fn insert(locations: &mut LocationTable, code: Code, definition: &str, file: &str, line: u32) {
    let (file, definition) = (file.as_bytes(), definition.as_bytes());
    locations.insert(code, &[Location { file, line, start_char: 1, end_char: 9, definition }]);
}

/// Numbers that are the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit.max(1)
    }
}
