//! A path to a block as lines: the field through which each block is reached, and what repeats, as in a list, once.

use heaptap_graph::{HeapAnalysis, HeapGraph, KindId, Node};

use super::titles::Titles;

/// The most lines that repeat together, such as a cell and the record in it.
const LONGEST_PERIOD: usize = 4;
/// Fewer repetitions are shown one by one.
const LEAST_TIMES: usize = 3;

/// A node of a path, and how the one before leads to it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Step {
    node: Node,
    link: Link,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    /// The first node, or a holder leads to it.
    None,
    Field(u32),
    /// A slot of a suspended stack.
    Slot,
    /// The data of an ephemeron.
    Data,
    /// Not by a pointer: all paths to it come from there.
    Indirect,
}

/// A line of a path.
pub struct PathLine {
    pub text: String,
    /// The first node that it stands for.
    pub node: Node,
}

/// The lines of a path. Fields are named if the graph was loaded with them.
pub fn path_lines(analysis: &HeapAnalysis, path: &[Node]) -> Vec<PathLine> {
    let mut data: Vec<(u32, u32)> =
        analysis.graph.ephemerons().filter_map(|(block, data, _)| Some((block, data?))).collect();
    data.sort_unstable();
    let links = Links { graph: &analysis.graph, data };
    let steps: Vec<Step> = (0..path.len()).filter_map(|at| links.step(path, at)).collect();
    let titles = Titles::new(analysis);
    let mut lines = Vec::new();
    let mut at = 0;
    while let Some(first) = steps.get(at) {
        let (period, times) = repetition(analysis, &steps, at);
        if times < LEAST_TIMES {
            lines.push(PathLine { text: line(&titles, first), node: first.node });
            at += 1;
            continue;
        }
        let all = steps.get(at..at + period * times).unwrap_or_default();
        lines.extend(repeated(&titles, all, period));
        at += period * times;
    }
    lines
}

/// How blocks lead to each other.
struct Links<'a> {
    graph: &'a HeapGraph,
    /// Ephemerons and their data, ascending.
    data: Vec<(u32, u32)>,
}

impl Links<'_> {
    fn step(&self, path: &[Node], at: usize) -> Option<Step> {
        let node = *path.get(at)?;
        let before = at.checked_sub(1).and_then(|before| path.get(before));
        let link = match (before, node) {
            (Some(Node::Block(from)), Node::Block(to)) => self.link(*from, to),
            _ => Link::None,
        };
        Some(Step { node, link })
    }

    fn link(&self, from: u32, to: u32) -> Link {
        let targets = self.graph.targets(from);
        match targets.iter().position(|target| *target == to) {
            Some(at) => match self.graph.fields(from).get(at) {
                Some(&HeapGraph::NO_FIELD) => Link::Slot,
                Some(field) => Link::Field(*field),
                None => Link::None,
            },
            None if self.data.binary_search(&(from, to)).is_ok() => Link::Data,
            None => Link::Indirect,
        }
    }
}

fn kind(analysis: &HeapAnalysis, step: &Step) -> Option<KindId> {
    match step.node {
        Node::Block(block) => Some(analysis.kind(block)),
        Node::Holder(_) => None,
    }
}

/// How many steps from here on repeat, and how often, so that most are covered. The first of them may be reached
/// in another way than the others: the head of a list.
fn repetition(analysis: &HeapAnalysis, steps: &[Step], at: usize) -> (usize, usize) {
    let is_like = |one: usize, other: usize| match (steps.get(one), steps.get(other)) {
        (Some(one_step), Some(other_step)) => {
            let kinds = kind(analysis, one_step).zip(kind(analysis, other_step));
            let is_linked_alike = one_step.link == other_step.link || one == at;
            kinds.is_some_and(|(one, other)| one == other) && is_linked_alike
        }
        _ => false,
    };
    let times = |period: usize| {
        let alike = (at..).take_while(|one| is_like(*one, one + period)).count();
        if alike == 0 { 1 } else { alike / period + 1 }
    };
    let periods = (1..=LONGEST_PERIOD).map(|period| (period, times(period)));
    // Of equal coverage the shortest period.
    periods
        .rev()
        .max_by_key(|(period, times)| if *times > 1 { period * times } else { 0 })
        .unwrap_or((1, 1))
}

fn linked(link: Link) -> String {
    match link {
        Link::None => String::new(),
        Link::Field(field) => format!("field {field}: "),
        Link::Slot => "slot: ".into(),
        Link::Data => "data: ".into(),
        Link::Indirect => "further below: ".into(),
    }
}

fn line(titles: &Titles<'_>, step: &Step) -> String {
    format!("{}{}", linked(step.link), titles.node(step.node))
}

/// One line for a run of blocks that are alike; more that repeat have a line each, and one that says how often.
fn repeated(titles: &Titles<'_>, steps: &[Step], period: usize) -> Vec<PathLine> {
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else { return Vec::new() };
    let times = steps.len() / period;
    if period == 1 {
        let by = match steps.get(1).map(|step| step.link) {
            Some(Link::Field(field)) => format!(" by field {field}"),
            _ => String::new(),
        };
        let text = format!(
            "{}{times} × {}, linked{by}, the last {}",
            linked(first.link),
            titles.node(first.node),
            titles.address(last.node)
        );
        return vec![PathLine { text, node: first.node }];
    }
    let mut lines: Vec<PathLine> = steps
        .iter()
        .take(period)
        .map(|step| PathLine { text: line(titles, step), node: step.node })
        .collect();
    let node = steps.get(period).map_or(first.node, |step| step.node);
    let text = format!(
        "… these {period} another {} times, the last {}",
        times - 1,
        titles.address(last.node)
    );
    lines.push(PathLine { text, node });
    lines
}
