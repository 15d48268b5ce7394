//! Questions about single blocks and holders.

use std::fmt::Write as _;

use clap::Args;
use heaptap_graph::{HeapAnalysis, KindId, Node, PathFinder, RetainedKind};
use heaptap_report::Regex;
use heaptap_report::figures::heap::path_steps::{PathLine, path_lines};
use heaptap_report::figures::heap::titles::Titles;
use heaptap_report::figures::units::{bytes, count};
use serde_json::json;

use crate::analysis::filters::patterns;
use crate::analysis::heap::find_holder::find_holder;
use crate::exit_status::Failure;
use crate::io::output::{print, print_json};

/// A question instead of the tables.
#[derive(Args)]
pub(super) struct Question {
    /// Show what holds a block: the shortest path to it, the blocks without which it would go, and
    /// every holder that reaches it. BLOCK is an address, or a REGEX for the name of a kind of block, of
    /// which the one that retains most is shown
    #[arg(long, value_name = "BLOCK", conflicts_with_all = ["referrers", "shared"])]
    path: Option<String>,

    /// Show what points to blocks whose name matches
    #[arg(long, value_name = "REGEX", conflicts_with = "shared")]
    referrers: Option<String>,

    /// Show what two holders both reach: give it twice, each the name of a holder
    #[arg(long, value_name = "REGEX")]
    shared: Vec<String>,
}

impl Question {
    pub(super) fn is_asked(&self) -> bool {
        self.path.is_some() || self.referrers.is_some() || !self.shared.is_empty()
    }

    /// Whether fields of blocks are to be named.
    pub(super) fn wants_fields(&self) -> bool {
        self.path.is_some()
    }

    /// Fails on what needs no snapshot to be wrong.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if !matches!(self.shared.len(), 0 | 2) {
            return Err(Failure::Trouble("--shared: give it twice, once for each holder".into()));
        }
        Ok(())
    }

    pub(super) fn answer(
        &self,
        analysis: &HeapAnalysis,
        limit: usize,
        as_json: bool,
    ) -> Result<(), Failure> {
        let asker = Asker { analysis, titles: Titles::new(analysis), limit, as_json };
        if let Some(block) = &self.path {
            return asker.path(block);
        }
        if let Some(name) = &self.referrers {
            return asker.referrers(name);
        }
        match self.shared.as_slice() {
            [one, other] => asker.shared(one, other),
            _ => Ok(()),
        }
    }
}

struct Asker<'a> {
    analysis: &'a HeapAnalysis,
    titles: Titles<'a>,
    limit: usize,
    as_json: bool,
}

fn pattern(option: &str, text: &str) -> Result<Regex, Failure> {
    let mut patterns = patterns(&format!("--{option}"), &[text.to_owned()])?;
    patterns.pop().ok_or_else(|| Failure::Trouble(format!("--{option}: nothing to look for")))
}

impl Asker<'_> {
    /// The kind with this name whose blocks retain most.
    fn kind(&self, option: &str, name: &str) -> Result<KindId, Failure> {
        let pattern = pattern(option, name)?;
        let rows = self.analysis.kind_rows();
        let matches = |kind: KindId| pattern.is_match(self.titles.kind(kind).as_bytes());
        rows.iter().map(|row| row.kind).find(|kind| matches(*kind)).ok_or_else(|| {
            Failure::Trouble(format!(
                "--{option} {name}: no block has such a name; `--by block --top 0` lists the names"
            ))
        })
    }

    fn block(&self, text: &str) -> Result<u32, Failure> {
        let graph = &self.analysis.graph;
        if let Some(digits) = text.strip_prefix("0x") {
            let address = u64::from_str_radix(digits, 16);
            let block = address.ok().and_then(|address| graph.number(address));
            return block.ok_or_else(|| {
                Failure::Trouble(format!(
                    "--path {text}: no block begins there; an address is that of the first field"
                ))
            });
        }
        let kind = self.kind("path", text)?;
        let biggest = self.analysis.biggest_of(&[kind]).into_iter().flatten().next();
        biggest.ok_or_else(|| {
            Failure::Trouble(format!("--path {text}: nothing holds blocks of that name"))
        })
    }

    fn path(&self, text: &str) -> Result<(), Failure> {
        let block = self.block(text)?;
        let name = self.titles.node(Node::Block(block));
        let Some(held) = PathFinder::new(self.analysis).held_by(block) else {
            let garbage = format!("{name}: nothing holds it; it is garbage not collected yet");
            return if self.as_json {
                print_json(
                    &json!({ "block": name, "shortest": [], "dominators": [], "holders": [] }),
                )
            } else {
                print(format!("{garbage}\n").as_bytes())
            };
        };
        let shortest = path_lines(self.analysis, &held.shortest);
        let dominators = path_lines(self.analysis, &held.dominators);
        let holders: Vec<_> = held.holders.iter().map(|id| self.titles.holder(*id)).collect();
        let retained = |node: Node| {
            let position = self.analysis.dominators.position(node);
            position.map_or(0, |position| self.analysis.dominators.retained(position))
        };
        let own = retained(Node::Block(block));
        if self.as_json {
            let texts = |lines: &[PathLine]| -> Vec<String> {
                lines.iter().map(|line| line.text.clone()).collect()
            };
            return print_json(&json!({
                "block": name, "retained_bytes": own, "shortest": texts(&shortest),
                "dominators": texts(&dominators), "holders": holders,
            }));
        }
        let mut out = format!("{name}\n  retains {}\n\nShortest path\n", bytes(own as f64));
        self.put_path(&mut out, &shortest, None);
        let _ = writeln!(out, "\nWithout any of these it would go");
        self.put_path(&mut out, &dominators, Some(&retained));
        let _ =
            writeln!(out, "\nReachable from {}", count(holders.len() as u64, "holder", "holders"));
        let shown = if self.limit == 0 { holders.len() } else { self.limit };
        holders.iter().take(shown).for_each(|holder| _ = writeln!(out, "  {holder}"));
        if holders.len() > shown {
            let _ = writeln!(out, "  … and {} more; --top 0 shows all", holders.len() - shown);
        }
        print(out.as_bytes())
    }

    /// A long path is shown by its ends.
    fn put_path(
        &self,
        out: &mut String,
        path: &[PathLine],
        retained: Option<&dyn Fn(Node) -> u64>,
    ) {
        let most = if self.limit == 0 { usize::MAX } else { self.limit.max(4) };
        let hidden = path.len().saturating_sub(most);
        for (index, line) in path.iter().enumerate() {
            if hidden > 0 && index >= most / 2 && index < most / 2 + hidden {
                if index == most / 2 {
                    let _ = writeln!(out, "  … {hidden} more; --top 0 shows all");
                }
                continue;
            }
            let size =
                retained.map(|retained| format!(", retains {}", bytes(retained(line.node) as f64)));
            let _ = writeln!(out, "  {}{}", line.text, size.unwrap_or_default());
        }
    }

    fn referrers(&self, name: &str) -> Result<(), Failure> {
        let kind = self.kind("referrers", name)?;
        let referrers = self.analysis.referrers(kind);
        let from = |kind: RetainedKind| match kind {
            RetainedKind::Holder(holder) => self.titles.holder(holder),
            RetainedKind::Blocks(kind) => self.titles.kind(kind),
            RetainedKind::Others => "blocks of several kinds".into(),
        };
        let shown = if self.limit == 0 { referrers.len() } else { self.limit.min(referrers.len()) };
        let rows: Vec<_> =
            referrers.iter().take(shown).map(|one| (one.pointers, from(one.from))).collect();
        let name = self.titles.kind(kind);
        if self.as_json {
            let rows: Vec<_> = rows
                .iter()
                .map(|(count, from)| json!({ "pointers": count, "from": from }))
                .collect();
            return print_json(&json!({ "block": name, "referrers": rows }));
        }
        let mut out = format!("Pointers to \"{name}\"\n");
        for (pointers, from) in rows {
            let _ = writeln!(out, "{pointers:>12}  {from}");
        }
        if referrers.len() > shown {
            let _ = writeln!(out, "{:>12}  ({} others)", "", referrers.len() - shown);
        }
        print(out.as_bytes())
    }

    fn shared(&self, one: &str, other: &str) -> Result<(), Failure> {
        let find = |name| find_holder(self.analysis, "shared", name);
        let [one, other] = [find(one)?, find(other)?];
        let graph = &self.analysis.graph;
        let holders = &self.analysis.holders;
        let reach = |id| holders.reachable(graph, id);
        let (shared, first, second) = (holders.shared(graph, one, other), reach(one), reach(other));
        let [one, other] = [one, other].map(|id| self.titles.holder(id));
        if self.as_json {
            return print_json(&json!({
                "holders": [one, other],
                "reachable_bytes": [first.bytes, second.bytes],
                "shared_bytes": shared.bytes,
                "shared_blocks": shared.blocks,
            }));
        }
        let size = |bytes_: u64| bytes(bytes_ as f64);
        print(
            format!(
                "{one} reaches {}\n{other} reaches {}\nboth reach {} in {}\n",
                size(first.bytes),
                size(second.bytes),
                size(shared.bytes),
                count(shared.blocks, "block", "blocks")
            )
            .as_bytes(),
        )
    }
}
