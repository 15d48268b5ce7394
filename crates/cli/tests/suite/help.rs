//! Help texts, manual pages and completions.

use crate::program::{Place, heaptap};

const VERBS: [&str; 14] = [
    "run",
    "report",
    "leaks",
    "hot",
    "diff",
    "export",
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
    heaptap("info", &[]).says(2, &["<FILE>"]);
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
        assert!(page.contains("Examples:"), "{verb}: {page}");
        assert!(page.contains("Exit status:"), "{verb}: {page}");
    }
    let page = page("heaptap-run.1");
    let (_, environment) = page.split_once(".SH ENVIRONMENT\n").expect("a section");
    for variable in &heaptap_settings::VARIABLES {
        for name in variable.names() {
            assert!(environment.contains(name), "no {name} in {environment}");
        }
    }
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
