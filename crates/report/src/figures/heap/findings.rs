//! The suspects in words.

use std::collections::HashMap;

use crate::figures::units::{bytes, count, percent};
use heaptap_graph::{
    Accumulation, Arrangement, HeapAnalysis, HolderId, OutsideMemory, RetainedId, RetainedKind,
};
use serde::Serialize;

use super::sets::{SetId, SetNames, SetTree, change, pairs};
use super::titles::Titles;

/// A suspect.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Finding {
    /// `accumulation`, `finaliser cycle`, `ephemeron chain` or `outside memory`.
    #[cfg_attr(
        feature = "typescript",
        ts(
            type = "\"accumulation\" | \"finaliser cycle\" | \"ephemeron chain\" | \"outside memory\""
        )
    )]
    pub kind: &'static str,
    /// One sentence.
    pub text: String,
    /// What holds it, from the holder down to the blocks.
    pub path: Vec<String>,
    /// How many blocks.
    pub elements: u64,
    pub retained_bytes: u64,
    pub outside_bytes: u64,
    /// Against an earlier snapshot, if there is one and the finding is about a set of blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub growth: Option<Growth>,
    /// The set that it is about, if it is about one.
    #[serde(skip)]
    node: Option<RetainedId>,
}

/// How much a set of blocks has grown.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "FindingGrowth"))]
pub struct Growth {
    pub elements: i64,
    pub retained_bytes: i64,
    pub outside_bytes: i64,
}

/// Says of each finding about a set of blocks how much it has grown since an earlier snapshot.
pub fn compare(findings: &mut [Finding], analysis: &HeapAnalysis, earlier: &HeapAnalysis) {
    let mut names = SetNames::default();
    let [old, new] = [earlier, analysis].map(|analysis| SetTree::new(analysis, &mut names));
    let known: HashMap<SetId, SetId> =
        pairs(&old, &new).into_iter().filter_map(|(old, new)| Some((new?, old?))).collect();
    for finding in findings {
        let Some(set) = finding.node.and_then(|node| new.set_of(node)) else { continue };
        let known = known.get(&set).map(|set| old.size(*set));
        let before = known.unwrap_or_default();
        // All sets of this path, as before.
        let now = new.size(set);
        let growth = Growth {
            elements: change(before.blocks, now.blocks),
            retained_bytes: change(before.retained_bytes, now.retained_bytes),
            outside_bytes: change(before.outside_bytes, now.outside_bytes),
        };
        finding.growth = Some(growth);
        finding.text += &match known {
            None => ". The earlier snapshot has none of it".to_owned(),
            Some(_) => grown(growth),
        };
    }
}

/// A sentence about what was there before.
fn grown(growth: Growth) -> String {
    let size = |change: i64| bytes(change.unsigned_abs() as f64);
    let way = |change: i64| if change > 0 { "grown" } else { "shrunk" };
    let more = if growth.elements < 0 { "fewer" } else { "more" };
    let blocks = match growth.elements {
        0 => "as many blocks".to_owned(),
        by => format!("{} {more}", count(by.unsigned_abs(), "block", "blocks")),
    };
    match (growth.retained_bytes, growth.outside_bytes) {
        (0, 0) => ". It has not grown since the earlier snapshot".to_owned(),
        (0, outside) => format!(
            ". Since the earlier snapshot it has {} by {} outside the heap, with {blocks}",
            way(outside),
            size(outside)
        ),
        (inside, 0) => format!(
            ". Since the earlier snapshot it has {} by {}, with {blocks}",
            way(inside),
            size(inside)
        ),
        (inside, outside) => format!(
            ". Since the earlier snapshot it has {} by {}, with {blocks}, and {} by {} outside the heap",
            way(inside),
            size(inside),
            way(outside),
            size(outside)
        ),
    }
}

/// What deserves a look, by kind, the biggest first.
pub fn findings(analysis: &HeapAnalysis) -> Vec<Finding> {
    let titles = Titles::new(analysis);
    let suspects = analysis.suspects();
    let mut found: Vec<Finding> = Vec::new();
    found.extend(suspects.accumulations.iter().map(|one| accumulation(analysis, &titles, one)));
    found.extend(cycles(analysis, &titles, &suspects.cycles));
    found.extend(suspects.chain.iter().map(|chain| Finding {
        kind: "ephemeron chain",
        text: format!(
            "{} hang on each other: each one's key is alive only through the data of the one before. \
             The collector goes over them once for each link. {} through the first",
            count(chain.length, "ephemeron", "ephemerons"),
            retains(chain.retained)
        ),
        path: path_to(analysis, &titles, chain.first),
        elements: chain.length,
        retained_bytes: chain.retained,
        outside_bytes: 0,
        growth: None,
        node: None,
    }));
    found.extend(suspects.outside.iter().map(|memory| outside(analysis, &titles, memory)));
    found
}

fn retains(size: u64) -> String {
    format!("{} are retained", bytes(size as f64))
}

/// The beginning of a sentence about what a holder keeps.
fn keeps(titles: &Titles<'_>, holder: Option<HolderId>) -> String {
    holder.map_or_else(
        || "Several holders together keep".to_owned(),
        |holder| format!("{} keeps", titles.holder(holder)),
    )
}

fn accumulation(analysis: &HeapAnalysis, titles: &Titles<'_>, one: &Accumulation) -> Finding {
    let share = one.retained as f64 / analysis.reachable_bytes().max(1) as f64;
    let held = keeps(titles, one.holder);
    let node = analysis.retained.node(one.node);
    let above = node.and_then(|node| analysis.retained.node(node.parent));
    let container = match above.map(|above| above.kind) {
        Some(RetainedKind::Blocks(kind)) => format!(", below {}", titles.kind(kind)),
        _ => String::new(),
    };
    let arrangement = match one.arrangement {
        Arrangement::Linked => "linked to each other as a list or a tree",
        Arrangement::SideBySide => "side by side",
        Arrangement::Buckets => "in many short chains, as a hash table has them",
    };
    let text = format!(
        "{held} {} ({}) in {} of \"{}\", {arrangement}{container}: {} each with all they hold",
        bytes(one.retained as f64),
        percent(share),
        count(one.elements, "block", "blocks"),
        titles.retained_blocks(one.node),
        bytes(one.retained as f64 / one.elements.max(1) as f64),
    );
    Finding {
        kind: "accumulation",
        text,
        path: titles.path_from_holder(one.node),
        elements: one.elements,
        retained_bytes: one.retained,
        outside_bytes: one.outside,
        growth: None,
        node: Some(one.node),
    }
}

/// One finding for all values and functions of the same names.
fn cycles(
    analysis: &HeapAnalysis,
    titles: &Titles<'_>,
    cycles: &[heaptap_graph::FinaliserCycle],
) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for cycle in cycles {
        let value = titles.kind(analysis.kind(cycle.value));
        let function = titles.kind(analysis.kind(cycle.function));
        let path = vec![function, value];
        match found.iter_mut().find(|finding| finding.path == path) {
            Some(finding) => {
                finding.elements += 1;
                finding.retained_bytes = finding.retained_bytes.saturating_add(cycle.retained);
                finding.outside_bytes = finding.outside_bytes.saturating_add(cycle.outside);
            }
            None => found.push(Finding {
                kind: "finaliser cycle",
                text: String::new(),
                path,
                elements: 1,
                retained_bytes: cycle.retained,
                outside_bytes: cycle.outside,
                growth: None,
                node: None,
            }),
        }
    }
    for finding in &mut found {
        let (function, value) = (&finding.path[0], &finding.path[1]);
        finding.text = format!(
            "{} of \"{value}\" will never be collected: the finaliser, {function}, holds the value \
             it waits for. {}; let the function take the value as its argument only",
            count(finding.elements, "block", "blocks"),
            retains(finding.retained_bytes),
        );
    }
    found
}

fn outside(analysis: &HeapAnalysis, titles: &Titles<'_>, memory: &OutsideMemory) -> Finding {
    let held = keeps(titles, memory.holder);
    Finding {
        kind: "outside memory",
        text: format!(
            "{held} {} outside the heap through {} of \"{}\", which {} only {} in it",
            bytes(memory.outside as f64),
            count(memory.blocks, "block", "blocks"),
            titles.retained_blocks(memory.node),
            if memory.blocks == 1 { "takes" } else { "take" },
            bytes(memory.bytes as f64),
        ),
        path: titles.path_from_holder(memory.node),
        elements: memory.blocks,
        retained_bytes: analysis.retained.node(memory.node).map_or(0, |node| node.retained),
        outside_bytes: memory.outside,
        growth: None,
        node: Some(memory.node),
    }
}

/// What holds a block, from the holder down.
fn path_to(analysis: &HeapAnalysis, titles: &Titles<'_>, block: u32) -> Vec<String> {
    let position = analysis.dominators.position(heaptap_graph::Node::Block(block));
    let node = position.and_then(|position| analysis.retained.node_of(position));
    node.map(|node| titles.path_from_holder(node)).unwrap_or_default()
}
