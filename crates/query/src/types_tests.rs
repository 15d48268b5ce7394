//! The page's TypeScript types are those of the answers, of snapshots and of sidecars.
//!
//! `HEAPTAP_UPDATE_TYPES=1 cargo test -p heaptap-query types` writes them anew.

use std::collections::BTreeMap;
use std::path::Path;

use heaptap_report::diagnosis::PageDiagnosis;
use heaptap_report::figures::heap::page::PageSnapshots;
use heaptap_report::figures::probes::page::PageSidecar;
use heaptap_report::figures::{Comparison, Figures, Fragments};
use ts_rs::{Config, TS, TypeVisitor};

const TYPES: &str = "../../viewer/src/query/figures.ts";

const HEAD: &str = "\
// What the page is told, as JSON. Written by the test `types_tests` of crates/query from the
// structs in crates/report/src/figures and crates/query/src: do not edit.

import type { By } from \"./types\";
";

/// Declarations by their names.
struct Declarations {
    config: Config,
    found: BTreeMap<String, String>,
}

impl TypeVisitor for Declarations {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        // Other types are written where they are used.
        if T::output_path().is_some() && !self.found.contains_key(&T::ident(&self.config)) {
            let docs = T::docs().unwrap_or_default();
            let text = format!("{docs}export {}\n", T::decl(&self.config));
            self.found.insert(T::ident(&self.config), text);
            T::visit_dependencies(self);
        }
    }
}

fn typescript() -> String {
    // A number of JSON is a `number`, however large it is.
    let config = Config::new().with_large_int("number");
    let mut all = Declarations { config, found: BTreeMap::new() };
    all.visit::<Figures>();
    all.visit::<Comparison>();
    all.visit::<Fragments>();
    all.visit::<crate::diff::MergedTree>();
    all.visit::<crate::heat_map::HeatMapAnswer>();
    all.visit::<crate::info::Info>();
    all.visit::<crate::info::Names>();
    all.visit::<crate::leaks::Answer>();
    all.visit::<crate::site::SiteAnswer>();
    all.visit::<crate::source::SourceAnswer>();
    all.visit::<crate::table::TableAnswer>();
    all.visit::<crate::timeline::TimelineAnswer>();
    all.visit::<crate::tree::TreeAnswer>();
    all.visit::<PageSnapshots>();
    all.visit::<PageSidecar>();
    all.visit::<PageDiagnosis>();
    let texts: Vec<String> = all.found.into_values().collect();
    format!("{HEAD}\n{}", texts.join("\n"))
}

#[test]
fn the_types_of_the_page_are_those_of_the_answers() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(TYPES);
    if std::env::var_os("HEAPTAP_UPDATE_TYPES").is_some() {
        std::fs::write(&path, typescript()).expect(TYPES);
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == typescript(),
        "viewer/src/query/figures.ts is not what the structs say: \
         HEAPTAP_UPDATE_TYPES=1 cargo test -p heaptap-query types writes it"
    );
}
