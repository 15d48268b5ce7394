//! Help texts, manual pages and completions.

use crate::program::{Place, heaptap};

const VERBS: [&str; 24] = [
    "run",
    "attach",
    "top",
    "ps",
    "start",
    "stop",
    "mark",
    "flush",
    "snapshot",
    "report",
    "probes",
    "leaks",
    "hot",
    "diff",
    "export",
    "serve",
    "info",
    "dump",
    "check",
    "recode",
    "thin",
    "anonymise",
    "man",
    "completions",
];

#[test]
fn every_verb_has_help_with_examples_and_exit_status() {
    for verb in VERBS {
        for call in [format!("{verb} --help"), format!("{verb} -h"), format!("help {verb}")] {
            let help = heaptap(&call, &[]).text(0);
            for part in ["Usage: heaptap", "Examples:\n  ", "Exit status:\n  0 "] {
                assert!(help.contains(part), "{verb}: no `{part}` in {help}");
            }
            assert!(help.contains(&format!("heaptap {verb}")), "{verb} is not in its examples");
        }
    }
}

#[test]
fn the_program_lists_its_verbs_and_its_version() {
    let help = heaptap("--help", &[]).text(0);
    for verb in VERBS {
        assert!(help.contains(&format!("\n  {verb} ")), "{verb} is not listed in {help}");
    }
    let version = heaptap("--version", &[]).text(0);
    assert_eq!(version, format!("heaptap {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_wrong_call_ends_with_2_and_says_what_is_right() {
    heaptap("", &[]).says(2, &["Usage"]);
    heaptap("inof", &[]).says(2, &["inof", "info"]);
    heaptap("check", &[]).says(2, &["<FILE>"]);
    // Here there is no trace that could be taken.
    heaptap("info", &[]).says(2, &["there is none in this directory", "heaptap run"]);
    heaptap("recode a b --format 4", &[]).says(2, &["2", "3"]);
    for rate in ["0", "-1", "1.5", "nan", "many"] {
        heaptap(&format!("thin a b --rate={rate}"), &[]).says(2, &["above 0 and at most 1"]);
    }
}

#[test]
fn there_is_a_manual_page_for_the_program_and_each_verb() {
    let place = Place::new();
    let directory = place.path("deep/man1");
    assert_eq!(heaptap("man", &[&directory]).text(0), "");
    let page = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
    assert!(page("heaptap.1").contains(".TH heaptap 1"));
    for verb in VERBS {
        let page = page(&format!("heaptap-{verb}.1"));
        for section in ["SYNOPSIS", "EXAMPLES", "\"EXIT STATUS\"", "\"SEE ALSO\""] {
            assert!(page.contains(&format!(".SH {section}\n")), "{verb}: no {section}: {page}");
        }
        assert!(!page.contains("EXTRA") && !page.contains("Exit status:"), "{verb}: {page}");
        let mut examples = section(&page, "EXAMPLES").lines();
        assert!(
            examples.any(|line| line.starts_with(&format!("heaptap {verb}"))),
            "{verb}: {page}"
        );
    }
    let page = page("heaptap-run.1");
    let environment = section(&page, "ENVIRONMENT");
    for variable in &heaptap_settings::VARIABLES {
        for name in variable.names() {
            assert!(environment.contains(name), "no {name} in {environment}");
        }
    }
}

/// The text of a section of a page.
fn section<'a>(page: &'a str, title: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!(".SH {title}\n")).expect("a section");
    rest.split(".SH ").next().unwrap_or(rest)
}

/// The text of a section without fonts and escapes.
fn plain(section: &str) -> String {
    let lines = section.lines().filter(|line| !line.starts_with('.'));
    let text = lines.collect::<Vec<_>>().join(" ");
    ["\\fB", "\\fI", "\\fR", "\\"].iter().fold(text, |text, escape| text.replace(escape, ""))
}

#[test]
fn a_manual_page_has_values_in_the_synopsis_and_a_table_of_exit_statuses() {
    let place = Place::new();
    let directory = place.path("man1");
    assert_eq!(heaptap("man", &[&directory]).text(0), "");
    let page = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
    let synopsis = plain(section(&page("heaptap-run.1"), "SYNOPSIS"));
    assert!(
        synopsis.starts_with("heaptap run [-o FILE] [-r RATE] [--budget PERCENT]"),
        "{synopsis}"
    );
    assert!(synopsis.trim_end().ends_with(" PROGRAM [ARGUMENT]..."), "{synopsis}");
    let synopsis = plain(section(&page("heaptap-thin.1"), "SYNOPSIS"));
    assert!(synopsis.contains(" --rate R"), "{synopsis}");
    assert!(synopsis.contains(" IN OUT"), "{synopsis}");
    // The table is that of `--help`.
    for (verb, status) in [("run", "127"), ("diff", "3"), ("report", "2")] {
        let help = heaptap(&format!("{verb} --help"), &[]).text(0);
        let line = help.lines().find_map(|line| line.trim().strip_prefix(status)).expect(status);
        let statuses = page(&format!("heaptap-{verb}.1"));
        let statuses = section(&statuses, "\"EXIT STATUS\"");
        let entry = format!(".TP\n\\fB{status}\\fR\n{}", line.trim());
        assert!(statuses.replace("\\-", "-").contains(&entry), "{entry:?} in {statuses}");
    }
    assert!(section(&page("heaptap-report.1"), "ENVIRONMENT").contains("NO_COLOR"));
}

#[test]
fn there_are_completions_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = heaptap(&format!("completions {shell}"), &[]).text(0);
        for verb in VERBS {
            assert!(script.contains(verb), "{shell}: no {verb}");
        }
    }
}
