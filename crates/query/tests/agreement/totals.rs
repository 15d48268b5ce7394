//! What rows have in total, with all that they call, is what `heaptap report --filter` selects by their
//! name; what they have themselves is what its table says.

use std::collections::HashMap;

use heaptap_report::rows::{By, Grouping};
use heaptap_report::{ALL_SITE_FRAMES, MOST_BLOCKS, SiteFrame};
use serde_json::{Value, json};

use super::{Dice, Program, Trace, Trial};

/// How many filters are tried on each trace, and rows with each.
const FILTERS: u64 = 40;
const ROWS: u64 = 4;

const METRICS: [&str; 5] = ["allocated", "promoted", "peak", "live", "survived"];

#[test]
fn totals_are_those_of_a_filter_by_the_name_of_the_row() {
    let mut compared = 0;
    for mut trial in [
        Trial::new("mixed", Trace::Made(Box::new(Program::mixed()))),
        Trial::new("made-trees", file("made-trees.v3.ctf")),
        Trial::new("made-maps", file("made-maps.v2.ctf")),
    ] {
        for seed in 0..FILTERS {
            compared += trial.compare_totals(&mut Dice(seed));
        }
    }
    assert!(compared > 200, "only {compared} rows had a total");
}

#[test]
fn totals_of_lines_are_those_of_their_functions() {
    // Each function of this program has one line.
    let mut trial = Trial::new("mixed", Trace::Made(Box::new(Program::mixed())));
    let mut compared = 0;
    for metric in METRICS {
        let file = "lib/module4.ml";
        let source = trial.ask(&json!({"q": "source", "metric": metric, "file": file}));
        for line in source["lines"].as_array().unwrap() {
            let name = line["functions"][0].as_str().unwrap();
            let expected =
                trial.report_of(&json!({"include": [exactly(name)]}), metric, &json!({}));
            assert_eq!(line["total"], expected["table"]["total"], "{metric}: {name}");
            compared += 1;
        }
        let expected = trial.report_of(&json!({"include": [exactly(file)]}), metric, &json!({}));
        assert_eq!(source["total"], expected["table"]["total"], "{metric}");
    }
    assert!(compared > 10, "{compared} lines");
}

/// The tree of this program reaches its bound. A table of blocks keeps the callers of its blocks; without
/// one, nothing has them any more.
#[test]
fn where_callers_are_lost_totals_come_from_the_table_or_are_not_given() {
    for (most_blocks, has_totals) in [(MOST_BLOCKS, true), (50_000, true), (0, false)] {
        let trace = Trace::Made(Box::new(Program::with_rare_paths(850_000)));
        let mut trial = Trial::bounded("rare paths", trace, most_blocks);
        let info = trial.ask(&json!({"q": "info", "trace": 0}));
        assert!(info["limits"]["samples_missing_from_callers"].as_u64().unwrap() > 0);
        assert_eq!(info["table_lacks_callers"], !has_totals);
        let table = trial.ask(&json!({"q": "table", "by": "function"}));
        assert_eq!(table["no_totals"].is_string(), !has_totals, "{}", table["no_totals"]);
        let source = trial.ask(&json!({"q": "source", "file": "lib/module4.ml"}));
        assert_eq!(source["no_totals"], table["no_totals"]);
        assert_eq!(source["total"].is_object(), has_totals);
        let rows = table["rows"].as_array().unwrap();
        assert!(rows.iter().all(|row| row["total"].is_object() == has_totals), "{rows:?}");
        let tree = trial.ask(&json!({"q": "tree", "by": "function", "fold": true, "most": 10_000}));
        assert_eq!(tree["total"]["bytes"], table["total"]["bytes"]);
        let sites = tree["sites"].as_array().unwrap();
        let is_light = |site: &Value| site["name"] == "(light call paths)";
        assert_eq!(sites.iter().any(is_light), !has_totals, "{sites:?}");
        if !has_totals {
            continue;
        }
        // The panel of a row says what the row does.
        for row in rows.iter().take(2) {
            let site = json!({"name": row["name"], "file": row["file"]});
            let ask = json!({"q": "site", "by": "function", "site": site, "levels": 2});
            assert_eq!(trial.ask(&ask)["total"], row["total"], "{row}");
        }
        let bytes = |of: &Value| of["bytes"].as_f64().unwrap();
        assert!(rows.iter().all(|row| bytes(&row["total"]) >= bytes(row)), "{rows:?}");
        for row in rows.iter().take(2) {
            let of = json!({"include": [exactly(row["name"].as_str().unwrap())]});
            let expected = trial.report_of(&of, "allocated", &json!({}));
            let (total, expected) = (&row["total"], &expected["table"]["total"]);
            if most_blocks == MOST_BLOCKS {
                assert_eq!(total, expected);
                continue;
            }
            // One in 1.7 million is further off.
            let (apart, error) = (bytes(total) - bytes(expected), total["error"].as_f64().unwrap());
            assert!(apart.abs() < 5.0 * error && apart != 0.0, "{total} is not {expected}");
            assert!(error > expected["error"].as_f64().unwrap(), "thinning is in the error");
        }
    }
}

#[test]
fn at_rate_one_the_number_of_blocks_is_counted() {
    let trace = Trace::Made(Box::new(Program::mixed().at_rate_one()));
    let mut trial = Trial::new("whole", trace);
    for metric in METRICS {
        let table = trial.ask(&json!({"q": "table", "by": "domain", "metric": metric}));
        for row in table["rows"].as_array().unwrap() {
            let blocks = &row["blocks"];
            assert_eq!(blocks["count"], blocks["sampled"].as_f64().unwrap(), "{metric}: {row}");
            assert_eq!(blocks["error"], 0.0, "{metric}: {row}");
        }
        assert!(!table["rows"].as_array().unwrap().is_empty(), "{metric}");
    }
}

#[test]
fn rows_are_sorted_and_searched() {
    let mut trial = Trial::new("mixed", Trace::Made(Box::new(Program::mixed())));
    let mut rows = |shape: Value| {
        let mut request = json!({"q": "table", "by": "function", "sites": "innermost"});
        request.as_object_mut().unwrap().extend(shape.as_object().unwrap().clone());
        trial.ask(&request)
    };
    let numbers = |table: &Value, of: &dyn Fn(&Value) -> f64| -> Vec<f64> {
        table["rows"].as_array().unwrap().iter().map(of).collect()
    };
    for (sort, of) in [
        ("self", &(|row: &Value| row["bytes"].as_f64().unwrap()) as &dyn Fn(&Value) -> f64),
        ("total", &|row| row["total"]["bytes"].as_f64().unwrap()),
        ("blocks", &|row| row["blocks"]["count"].as_f64().unwrap_or(0.0)),
    ] {
        let down = numbers(&rows(json!({"sort": sort})), of);
        let up = numbers(&rows(json!({"sort": sort, "ascending": true})), of);
        assert!(down.len() > 5 && down.is_sorted_by(|a, b| a >= b), "{sort}: {down:?}");
        assert!(up.is_sorted() && up.len() == down.len(), "{sort}: {up:?}");
    }
    let names = |table: &Value| -> Vec<String> {
        let rows = table["rows"].as_array().unwrap().iter();
        rows.map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    };
    let all = rows(json!({"sort": "name", "ascending": true}));
    assert!(names(&all).is_sorted(), "{:?}", names(&all));
    let some = rows(json!({"text": "module3", "top": 2}));
    assert!(names(&some).iter().all(|name| name.starts_with("Module3.")), "{some}");
    let [matching, count] = ["matching", "all"].map(|part| some[part].as_u64().unwrap());
    assert!(2 < matching && matching < count && names(&some).len() == 2);
    let shown: f64 = numbers(&some, &|row| row["bytes"].as_f64().unwrap()).iter().sum();
    let left = some["others"]["bytes"].as_f64().unwrap();
    let matched = some["matched"]["bytes"].as_f64().unwrap();
    assert!((shown + left - matched).abs() < 1e-6 * matched);
    assert_eq!(rows(json!({"text": "MODULE3"}))["matching"], 0, "upper case counts");
}

fn file(name: &str) -> Trace {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/data");
    Trace::File(std::fs::read(data.join(name)).unwrap())
}

/// A pattern for this text alone.
fn exactly(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|c| if c.is_alphanumeric() { c.to_string() } else { format!("\\x{{{:x}}}", c as u32) })
        .collect();
    format!("^{escaped}$")
}

impl Trial {
    fn ask(&mut self, request: &Value) -> Value {
        let answer: Value =
            serde_json::from_str(&self.engine.query(request.to_string().as_bytes())).unwrap();
        assert!(answer.get("error").is_none(), "{}: {request}: {answer}", self.name);
        answer
    }

    /// What `heaptap report` finds, by the function that allocates. At the peak: at that of `whole`, not
    /// at that of what the filter selects.
    fn report_of(&mut self, filter: &Value, metric: &str, whole: &Value) -> Value {
        let (metric, at) = match metric {
            "peak" => {
                let report = self.ask(&json!({"q": "report", "filter": whole}));
                ("at", report["totals"]["peak_us"].as_u64().unwrap())
            }
            other => (other, 0),
        };
        self.report(filter, metric, at, Grouping { by: By::Function, site: SiteFrame::Innermost })
    }

    /// Compares some rows, and returns how many.
    fn compare_totals(&mut self, dice: &mut Dice) -> u64 {
        let filter = if dice.below(3) == 0 { json!({}) } else { self.filter(dice) };
        let metric = METRICS[dice.below(METRICS.len() as u64) as usize];
        let by = [By::Function, By::File][dice.below(2) as usize];
        let site = ALL_SITE_FRAMES[dice.below(2) as usize];
        let name = |row: &Value| {
            let part = if by == By::File { "file" } else { "name" };
            row[part].as_str().unwrap_or_default().to_owned()
        };
        let kind = if by == By::File { "file" } else { "function" };
        let table = self.ask(&json!({
            "q": "table", "filter": filter, "metric": metric, "by": kind, "sites": site.name()
        }));
        let expected = self.report(&filter, metric, 0, Grouping { by, site });
        let rows = table["rows"].as_array().unwrap();
        // Several functions may have one name, and some stand for what has no name.
        let mut named: HashMap<String, u64> = HashMap::new();
        rows.iter().for_each(|row| *named.entry(name(row)).or_default() += 1);
        for row in expected["table"]["rows"].as_array().unwrap() {
            let same =
                |other: &&Value| ["name", "file"].iter().all(|part| other[part] == row[part]);
            let found = rows.iter().find(same).unwrap_or_else(|| panic!("no {row}"));
            for part in ["samples", "bytes", "error", "share"] {
                assert_eq!(found[part], row[part], "{}: {filter} {metric}: {row}", self.name);
            }
        }
        let mut compared = 0;
        for _ in 0..ROWS.min(rows.len() as u64) {
            let row = &rows[dice.below(rows.len() as u64) as usize];
            let name = name(row);
            if named[&name] > 1 || name.is_empty() || name.starts_with('(') {
                continue;
            }
            let mut selects = filter.clone();
            let mut include = selects["include"].as_array().cloned().unwrap_or_default();
            include.push(json!(exactly(&name)));
            selects["include"] = json!(include);
            let expected = self.report_of(&selects, metric, &filter);
            let expected = &expected["table"]["total"];
            assert_eq!(&row["total"], expected, "{}: {filter} {metric}: {name}", self.name);
            compared += 1;
        }
        compared
    }
}
