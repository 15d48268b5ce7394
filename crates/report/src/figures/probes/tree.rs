//! Probes as a tree, by the parts of their names.

/// Deeper parts of a name are one: a hostile name may have hundreds.
const MOST_LEVELS: usize = 16;

/// A line of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeTreeLine {
    /// How far it is indented.
    pub level: usize,
    /// The last part of the name; of a line without a probe, with `/` at its end.
    pub label: String,
    /// The probe, by its number in what the tree was made of; `None` for a line above others.
    pub probe: Option<usize>,
}

/// The tree of these names, in the order of the names.
pub fn probe_tree<'a>(names: impl Iterator<Item = &'a str>) -> Vec<ProbeTreeLine> {
    let mut sorted: Vec<(Vec<&str>, usize)> =
        names.enumerate().map(|(at, name)| (parts(name), at)).collect();
    sorted.sort();
    let mut lines = Vec::new();
    let mut above: Vec<&str> = Vec::new();
    for (parts, probe) in &sorted {
        let Some((last, path)) = parts.split_last() else { continue };
        let common = above.iter().zip(path).take_while(|(one, other)| one == other).count();
        above.truncate(common);
        for part in path.iter().skip(common) {
            let label = format!("{part}/");
            lines.push(ProbeTreeLine { level: above.len(), label, probe: None });
            above.push(part);
        }
        let label = (*last).to_owned();
        lines.push(ProbeTreeLine { level: path.len(), label, probe: Some(*probe) });
    }
    lines
}

/// The parts of a name, at least one and at most [`MOST_LEVELS`]. Empty ones are dropped.
fn parts(name: &str) -> Vec<&str> {
    let mut rest = name.trim_matches('/');
    let mut parts = Vec::new();
    while parts.len() + 1 < MOST_LEVELS
        && let Some((part, behind)) = rest.split_once('/')
    {
        parts.push(part);
        rest = behind.trim_start_matches('/');
    }
    parts.push(if rest.is_empty() { "(no name)" } else { rest });
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(names: &[&str]) -> Vec<String> {
        let lines = probe_tree(names.iter().copied());
        let drawn = |line: &ProbeTreeLine| {
            let probe = line.probe.map(|at| format!(" = {at}")).unwrap_or_default();
            format!("{}{}{probe}", "  ".repeat(line.level), line.label)
        };
        lines.iter().map(drawn).collect()
    }

    #[test]
    fn parts_of_names_are_branches() {
        let names = ["parser/depth", "requests", "parser/lexer/tokens", "parser", "a b"];
        let expected = [
            "a b = 4",
            "parser = 3",
            "parser/",
            "  depth = 0",
            "  lexer/",
            "    tokens = 2",
            "requests = 1",
        ];
        assert_eq!(drawn(&names), expected);
    }

    #[test]
    fn names_without_parts_and_with_too_many_are_lines_too() {
        assert_eq!(
            drawn(&["", "//", "/a//b/"]),
            ["(no name) = 0", "(no name) = 1", "a/", "  b = 2"]
        );
        let deep = "x/".repeat(500);
        let lines = probe_tree([deep.as_str()].into_iter());
        assert_eq!(lines.len(), MOST_LEVELS);
        assert!(lines.last().unwrap().label.starts_with("x/x/x/"));
        // Names that differ only behind the last level are two.
        assert_eq!(drawn(&[&format!("{deep}y"), &format!("{deep}z")]).len(), MOST_LEVELS + 1);
    }
}
