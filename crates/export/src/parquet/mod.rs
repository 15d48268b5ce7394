//! Traces as tables in Parquet files, for `DuckDB`, Spark and other engines.
//!
//! A data set is a directory with a folder for each of [`TABLES`] and [`SIDECAR_TABLES`], partitioned as Hive does by
//! host and by the day on which a trace starts: `blocks/host=H/day=2026-11-17/PID-START.parquet`.
//! Each trace has one file in each table, so that traces of many hosts are added one by one, and
//! one that is exported again replaces itself. `docs/exports.md` describes the columns.
//!
//! `tables` and `sidecar` have the columns and fill them, `file` writes a file by the crate `parquet`, `column`
//! keeps the values until then.

mod column;
mod file;
mod sidecar;
mod tables;

use heaptap_trace::TraceInfo;

pub use sidecar::{SIDECAR_TABLES, write_sidecar};
pub use tables::{BlockTables, TraceFacts};

/// The names of the tables of a trace.
pub const TABLES: [&str; 3] = ["blocks", "stacks", "traces"];

/// How a value is called that a partition does not have.
const NO_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

/// The longest name of a directory, with room for `host=`.
const LONGEST: usize = 240;

/// Which trace it is, in all data sets.
pub fn trace_id(info: &TraceInfo) -> String {
    let host = String::from_utf8_lossy(&info.host);
    format!("{host}-{}-{}", info.pid, info.start_time)
}

/// Where the file of a trace is in the folder of a table.
pub struct Partition {
    /// `host=H`.
    pub host: String,
    /// `day=2026-11-17`, in UTC.
    pub day: String,
    /// `PID-START.parquet`.
    pub file: String,
}

impl Partition {
    /// Where a trace belongs that starts at this date in UTC, for instance `2026-11-17`.
    pub fn of(info: &TraceInfo, date: &str) -> Partition {
        // Years have more digits in damaged traces only, and engines do not read them.
        let day = if date.len() == "2026-11-17".len() { date } else { NO_VALUE };
        Partition {
            host: format!("host={}", escaped(&info.host)),
            day: format!("day={day}"),
            file: format!("{}-{}.parquet", info.pid, info.start_time),
        }
    }
}

/// A value of a partition as Hive writes it: other characters than these as `%41`.
fn escaped(value: &[u8]) -> String {
    if value.is_empty() {
        return NO_VALUE.to_owned();
    }
    let mut text = String::new();
    for &byte in value {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => {
                text.push(char::from(byte));
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
        if text.len() > LONGEST {
            break;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_cannot_leave_their_directory() {
        assert_eq!(escaped(b"web-1.example_x"), "web-1.example_x");
        assert_eq!(escaped(b"../a=b%\n"), "..%2Fa%3Db%25%0A");
        assert_eq!(escaped(b""), NO_VALUE);
        assert!(escaped(&[b'/'; 1000]).len() < 250);
    }
}
