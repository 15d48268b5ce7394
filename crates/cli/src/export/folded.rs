//! Folded stacks: a line for each, functions from `main` on, then bytes.

use std::collections::BTreeMap;

use super::Exported;
use crate::escape;

pub(super) fn write(exported: &Exported<'_>) -> Vec<u8> {
    let names: Vec<Vec<u8>> = exported
        .stacks
        .sites
        .iter()
        .map(|site| {
            let mut name = Vec::new();
            escape::put(&mut name, site.name.as_bytes(), |byte| byte == b';');
            name
        })
        .collect();
    // Stacks that differ in lines only are one here.
    let mut lines: BTreeMap<Vec<u8>, f64> = BTreeMap::new();
    for (sites, counts) in &exported.stacks.stacks {
        let bytes = exported.bytes(exported.metric, counts);
        if bytes > 0.0 {
            let frames: Vec<&[u8]> =
                sites.iter().rev().map(|&site| names[site as usize].as_slice()).collect();
            *lines.entry(frames.join(&b';')).or_default() += bytes;
        }
    }
    let mut text = Vec::new();
    for (line, bytes) in lines {
        text.extend_from_slice(&line);
        text.extend_from_slice(format!(" {bytes:.0}\n").as_bytes());
    }
    text
}
