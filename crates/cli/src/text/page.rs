//! The web page: the template from `viewer/`, filled with the query in WebAssembly, the
//! configuration and, in a page that stands alone, the traces.
//!
//! Whatever is put in cannot end its `<script>` element: base64 has no `<`, and in JSON
//! it is written as `\u003c`. The elements are data, which a browser does not run, and
//! the policy in the template runs no script but its own.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

/// Built from `viewer/` and `crates/query`; CI builds them again and compares.
const TEMPLATE: &str = include_str!("../../../../viewer/built/page.html");
/// The query, compressed: the program has no other use for it than to put it into pages.
const QUERY: &[u8] = include_bytes!("../../../../viewer/built/page.wasm.gz");

/// How the page gets its traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PageMode {
    /// They are in it, and it makes no request.
    File,
    /// From the server that it comes from.
    Serve,
}

/// What the page is told. The field names are those of its JSON.
#[derive(Serialize)]
pub(crate) struct PageConfig {
    pub(crate) mode: PageMode,
    pub(crate) traces: Vec<PageTrace>,
    /// How many heap snapshots there are, with those that cannot be read.
    pub(crate) snapshots: usize,
    /// Whether there is the text of source files, in the page or from the server.
    pub(crate) source: bool,
    /// Whether the server reads traces again for exact figures.
    exact: bool,
    version: &'static str,
}

/// A trace in the configuration.
#[derive(Serialize)]
pub(crate) struct PageTrace {
    name: String,
}

impl PageConfig {
    pub(crate) fn new(mode: PageMode, names: impl IntoIterator<Item = String>) -> Self {
        let traces = names.into_iter().map(|name| PageTrace { name }).collect();
        let exact = mode == PageMode::Serve;
        PageConfig {
            mode,
            traces,
            snapshots: 0,
            source: false,
            exact,
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

/// What a page that stands alone has in it.
#[derive(Clone, Copy, Default)]
pub(crate) struct PageContents<'a> {
    /// Compressed archives.
    pub(crate) traces: &'a [&'a [u8]],
    /// The lines of source files by name, as compressed JSON.
    pub(crate) sources: Option<&'a [u8]>,
    /// The heap snapshots, as compressed JSON.
    pub(crate) snapshots: Option<&'a [u8]>,
    /// What the programs say of themselves, one for each trace, as compressed JSON.
    pub(crate) sidecars: Option<&'a [u8]>,
    /// What is wrong with the programs, one for each trace, as compressed JSON.
    pub(crate) diagnoses: Option<&'a [u8]>,
}

/// The page.
pub(crate) fn page(config: &PageConfig, contents: &PageContents<'_>) -> String {
    let mut data = String::new();
    let traces = contents.traces.iter().enumerate();
    let named = traces.map(|(number, bytes)| (format!("heaptap-trace-{number}"), *bytes));
    let sources = contents.sources.map(|bytes| ("heaptap-sources".to_owned(), bytes));
    let snapshots = contents.snapshots.map(|bytes| ("heaptap-snapshots".to_owned(), bytes));
    let sidecars = contents.sidecars.map(|bytes| ("heaptap-probes".to_owned(), bytes));
    let diagnoses = contents.diagnoses.map(|bytes| ("heaptap-diagnoses".to_owned(), bytes));
    for (id, bytes) in named.chain(sources).chain(snapshots).chain(sidecars).chain(diagnoses) {
        // Writing to a string does not fail.
        let _ = writeln!(data, "{}", binary(&id, &STANDARD.encode(bytes)));
    }
    let query = binary("heaptap-wasm", &STANDARD.encode(QUERY));
    let config_json = serde_json::to_string(config).unwrap_or_default().replace('<', "\\u003c");
    let config_element =
        format!("<script type=\"application/json\" id=\"heaptap-config\">{config_json}</script>");
    let parts = [
        ("<!--heaptap:config-->", &config_element),
        ("<!--heaptap:wasm-->", &query),
        ("<!--heaptap:traces-->", &data),
    ];
    let mut page = TEMPLATE.to_owned();
    if config.mode == PageMode::File {
        page = page.replacen("connect-src 'self'", "connect-src 'none'", 1);
    }
    fill(&page, &parts)
}

fn binary(id: &str, base64: &str) -> String {
    format!("<script type=\"application/octet-stream\" id=\"{id}\">{base64}</script>")
}

/// The template with the first of each placeholder replaced. Placeholders in what was put
/// in are left alone.
fn fill(template: &str, parts: &[(&str, &String)]) -> String {
    let mut found: Vec<(usize, &str, &str)> = parts
        .iter()
        .filter_map(|(mark, part)| template.find(mark).map(|at| (at, *mark, part.as_str())))
        .collect();
    found.sort_unstable();
    let length: usize = found.iter().map(|(_, _, part)| part.len()).sum();
    let mut page = String::with_capacity(template.len() + length);
    let mut end = 0;
    for (at, mark, part) in found {
        page.push_str(&template[end..at]);
        page.push_str(part);
        end = at + mark.len();
    }
    page.push_str(&template[end..]);
    page
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn the_template_has_each_placeholder_once_and_a_policy() {
        for text in [
            "<!--heaptap:config-->",
            "<!--heaptap:wasm-->",
            "<!--heaptap:traces-->",
            "connect-src 'self'",
        ] {
            assert_eq!(TEMPLATE.matches(text).count(), 1, "{text}");
        }
        let mut magic = [0; 4];
        flate2::read::GzDecoder::new(QUERY).read_exact(&mut magic).unwrap();
        assert_eq!(&magic, b"\0asm", "viewer/built/page.wasm.gz is no WebAssembly");
    }

    #[test]
    fn a_name_can_neither_end_its_element_nor_stand_for_another() {
        let hostile = "</script><script>alert(1)</script><!--heaptap:traces-->".to_owned();
        let config = PageConfig::new(PageMode::File, [hostile]);
        let contents = PageContents {
            traces: &[b"trace"],
            sources: Some(b"source"),
            snapshots: Some(b"heap"),
            sidecars: Some(b"probes"),
            diagnoses: Some(b"wrong"),
        };
        let filled = page(&config, &contents);
        assert_eq!(filled.matches("id=\"heaptap-sources\">c291cmNl</script>").count(), 1);
        assert_eq!(filled.matches("id=\"heaptap-snapshots\">aGVhcA==</script>").count(), 1);
        assert_eq!(filled.matches("id=\"heaptap-probes\">cHJvYmVz</script>").count(), 1);
        assert_eq!(filled.matches("id=\"heaptap-diagnoses\">d3Jvbmc=</script>").count(), 1);
        assert!(!filled.contains("<script>alert"), "{filled}");
        let trace = "id=\"heaptap-trace-0\">dHJhY2U=</script>";
        assert_eq!(filled.matches(trace).count(), 1);
        assert!(filled.contains("connect-src 'none'") && !filled.contains("connect-src 'self'"));
        let served = page(&PageConfig::new(PageMode::Serve, []), &PageContents::default());
        assert!(served.contains("connect-src 'self'") && !served.contains("heaptap-trace-0\""));
    }
}
