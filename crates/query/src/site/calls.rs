//! Who calls a site, and what it calls: rows with rows below them.

use std::collections::HashMap;

use heaptap_report::figures::Sum;
use heaptap_report::rows::Site;
use heaptap_report::{CallTree, Sampled};
use serde::Serialize;

/// The most rows of a level.
const MOST_ROWS: usize = 20;

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "SiteNode"))]
pub(super) struct CallRow {
    pub(super) site: Site,
    pub(super) sum: Sum,
    pub(super) share: f64,
    pub(super) children: Vec<CallRow>,
}

/// The nodes of a site that have samples and are below no other node of it.
pub(super) fn outermost(tree: &CallTree, site: u32) -> Vec<u32> {
    let mut nodes = Vec::new();
    let mut node = 1;
    while node < tree.len() {
        if tree.samples(node).count == 0 {
            node = tree.end(node);
        } else if tree.site(node) == Some(site) {
            nodes.push(node);
            node = tree.end(node);
        } else {
            node += 1;
        }
    }
    nodes
}

pub(super) type MakeRow<'a> = dyn Fn(&Site, Sampled, Vec<CallRow>) -> CallRow + 'a;

/// The callers of nodes, each with the samples that it passes on.
pub(super) fn callers(
    tree: &CallTree,
    nodes: &[(u32, Sampled)],
    levels: usize,
    row: &MakeRow<'_>,
) -> Vec<CallRow> {
    if levels == 0 {
        return Vec::new();
    }
    let mut groups: HashMap<u32, Vec<(u32, Sampled)>> = HashMap::new();
    for &(node, samples) in nodes {
        let parent = tree.parent(node);
        if let Some(site) = tree.site(parent) {
            groups.entry(site).or_default().push((parent, samples));
        }
    }
    ranked(
        tree,
        groups,
        |group| {
            let samples = group.iter().map(|&(_, part)| part).sum();
            (samples, callers(tree, group, levels - 1, row))
        },
        row,
    )
}

pub(super) fn callees(
    tree: &CallTree,
    nodes: &[u32],
    levels: usize,
    row: &MakeRow<'_>,
) -> Vec<CallRow> {
    if levels == 0 {
        return Vec::new();
    }
    let mut groups: HashMap<u32, Vec<u32>> = HashMap::new();
    for child in nodes.iter().flat_map(|&node| tree.children(node)) {
        if let Some(site) = tree.site(child).filter(|_| tree.samples(child).count > 0) {
            groups.entry(site).or_default().push(child);
        }
    }
    ranked(
        tree,
        groups,
        |group| {
            let samples = group.iter().map(|&node| tree.samples(node)).sum();
            (samples, callees(tree, group, levels - 1, row))
        },
        row,
    )
}

/// The groups as rows, the largest first.
fn ranked<T>(
    tree: &CallTree,
    groups: HashMap<u32, Vec<T>>,
    mut below: impl FnMut(&[T]) -> (Sampled, Vec<CallRow>),
    row: &MakeRow<'_>,
) -> Vec<CallRow> {
    let mut rows: Vec<(Sampled, u32, Vec<CallRow>)> = groups
        .into_iter()
        .map(|(site, group)| {
            let (samples, children) = below(&group);
            (samples, site, children)
        })
        .collect();
    let name = |site: u32| &tree.sites()[site as usize];
    rows.sort_by(|one, other| {
        other.0.count.cmp(&one.0.count).then_with(|| name(one.1).cmp(name(other.1)))
    });
    rows.truncate(MOST_ROWS);
    rows.into_iter().map(|(samples, site, below)| row(name(site), samples, below)).collect()
}
