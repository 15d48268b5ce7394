//! The program as its users meet it: every test runs the real binary.
//!
//! [`program`] runs it, [`traces`] makes what it runs on. The real traces lie
//! outside the repository; tests that need them say so loudly when they are
//! not there.

mod agreement;
mod anonymise;
mod certainty;
mod check;
mod compressed;
mod consumers;
mod damage;
mod domains;
mod dump;
mod export;
mod files;
mod go_profiles;
mod heap;
mod heap_graph;
mod heap_snapshots;
mod held;
mod help;
mod info;
mod labels;
mod leak_snapshots;
mod made_sidecar;
mod made_snapshot;
mod narrow;
mod page_diagnosis;
mod page_snapshots;
mod parquet;
mod parquet_tables;
mod perfetto;
mod probes;
mod program;
mod progress;
mod recode;
mod report;
mod run;
mod serve;
mod serve_live;
mod several;
mod snapshot;
mod snapshot_exports;
mod snapshot_hprof;
mod survivors;
mod thin;
mod timeline;
mod top;
mod top_probes;
mod traces;
