//! `heaptap thin`.

use std::collections::HashMap;
use std::fs;

use heaptap_trace::Format;

use crate::program::{Place, assert_sound, dump, heaptap, info};
use crate::traces::{real, workload};

#[test]
fn thinning_is_unbiased_over_seeds() {
    let place = Place::new();
    let output = place.path("thin.ctf");
    for (trace_seed, domains, rate) in [(40, 1, 0.003), (41, 3, 0.0071)] {
        let format = if domains == 1 { Format::V2 } else { Format::V3 };
        let input = place.file("trace.ctf", &workload(format, domains, 4000, trace_seed));
        let all = info(&input)["events"]["samples"].as_f64().unwrap();
        let share = rate / 0.01;
        let (mean, variance) = (all * share, all * share * (1.0 - share));
        let mut sum = 0.0;
        const SEEDS: u32 = 25;
        for seed in 0..SEEDS {
            let call = format!("thin --rate {rate} --seed {seed}");
            assert_eq!(heaptap(&call, &[&input, &output]).text(0), "");
            let kept = info(&output)["events"]["samples"].as_f64().unwrap();
            let sigmas = (kept - mean) / variance.sqrt();
            println!("seed {seed}: {kept} of {all} samples, {sigmas:+.2} sigma");
            // One in 150,000 for a single seed.
            assert!(sigmas.abs() < 4.5, "seed {seed}: {sigmas} sigma");
            sum += kept;
        }
        let sigmas = (sum - f64::from(SEEDS) * mean) / (f64::from(SEEDS) * variance).sqrt();
        assert!(sigmas.abs() < 4.0, "all seeds: {sigmas} sigma");
    }
}

/// A dumped allocation without its domain, id and samples, and what became of
/// the object, in the order of the dump.
struct Object {
    what: String,
    samples: u64,
    fate: Vec<String>,
}

/// Objects by id, and the ids in the order of allocation.
fn objects(lines: impl Iterator<Item = String>) -> (HashMap<u64, Object>, Vec<u64>) {
    let mut objects: HashMap<u64, Object> = HashMap::new();
    let mut ids = Vec::new();
    for line in lines {
        let fields: Vec<&str> = line.split(' ').collect();
        let id: u64 = fields[2].parse().unwrap();
        if fields[3] == "alloc" {
            let samples = fields[5].strip_prefix("samples=").unwrap().parse().unwrap();
            let kept = [&fields[..2], &fields[4..5], &fields[6..8], &fields[9..]].concat();
            ids.push(id);
            objects.insert(id, Object { what: kept.join(" "), samples, fate: Vec::new() });
        } else {
            let happened = [fields[0], fields[1], fields[3]].join(" ");
            objects.get_mut(&id).expect("allocated before").fate.push(happened);
        }
    }
    (objects, ids)
}

#[test]
fn what_stays_is_as_it_was_with_its_whole_life() {
    let place = Place::new();
    let output = place.path("thin.ctf");
    for (format, domains, seed) in [(Format::V2, 1, 42), (Format::V3, 4, 43)] {
        let input = place.file("trace.ctf", &workload(format, domains, 20_000, seed));
        assert_eq!(heaptap("thin --rate 0.002 --seed 9", &[&input, &output]).text(0), "");
        assert_sound(&output);
        assert_eq!(info(&output)["sample_rate"], 0.002);
        let merged = |path| heaptap("dump --merge", &[path]).text(0);
        let (before, order) = objects(merged(&input).lines().map(String::from));
        let (after, new_order) = objects(merged(&output).lines().map(String::from));
        assert!(after.len() > 1000 && after.len() < before.len());
        if domains == 1 {
            assert!(new_order.iter().copied().eq(0..after.len() as u64), "ids count allocations");
        }
        // Every object that stays is one of the old ones, in the same order.
        let mut old = order.iter();
        for id in &new_order {
            let object = &after[id];
            let origin = old
                .find(|id| before[id].what == object.what && before[id].fate == object.fate)
                .unwrap_or_else(|| panic!("object {id} comes from nowhere: {}", object.what));
            assert!((1..=before[origin].samples).contains(&object.samples));
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_does_not() {
    let place = Place::new();
    let input = place.file("trace.ctf", &workload(Format::V2, 1, 5000, 44));
    let thinned = |seed: &str| {
        let output = place.path("thin.ctf");
        let run = heaptap(&format!("thin --rate 0.001 {seed}"), &[&input, &output]);
        assert_eq!(run.status, 0, "{}", run.err);
        (fs::read(&output).unwrap(), run.err)
    };
    assert!(thinned("--seed 1") == thinned("--seed 1"));
    assert!(thinned("--seed 1") != thinned("--seed 2"));
    // Without a seed, the one that was taken can be used again.
    let (trace, said) = thinned("");
    let seed = said.trim_end().rsplit("--seed ").next().unwrap();
    assert!(thinned(&format!("--seed {seed}")).0 == trace, "{said}");
}

#[test]
fn the_traces_own_rate_keeps_everything() {
    let place = Place::new();
    let output = place.path("thin.ctf");
    let mut inputs = vec![place.file("trace.ctf", &workload(Format::V2, 1, 5000, 45))];
    inputs.extend(real("ocamlopt.v2.ctf"));
    for input in inputs {
        let rate = info(&input)["sample_rate"].as_f64().unwrap();
        let call = format!("thin --rate {rate:e} --seed 1");
        assert_eq!(heaptap(&call, &[&input, &output]).text(0), "");
        assert!(dump(&input) == dump(&output));
    }
}

#[test]
fn a_rate_above_the_traces_own_is_refused_with_both() {
    let place = Place::new();
    let input = place.file("trace.ctf", &workload(Format::V2, 1, 100, 46));
    let output = place.path("thin.ctf");
    heaptap("thin --rate 0.5", &[&input, &output]).says(2, &["trace.ctf", "0.01", "0.5"]);
    assert_eq!(place.names(), ["trace.ctf"]);
}
