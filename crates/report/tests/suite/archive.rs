//! An archive gives the figures of the trace it was made from, and damaged ones do no
//! harm.

use heaptap_report::rows::{By, Row};
use heaptap_report::{Archive, Metric, Options};
use proptest::prelude::*;

use crate::blocks::{Program, first_trace, options, whole};
use crate::figures::figures;
use crate::made::{METRICS, info, programs};

fn archive(program: Program, most_blocks: usize) -> Archive {
    let (aggregate, blocks) = program.read(0.01, Options { most_blocks, ..whole() });
    Archive {
        name: "made.ctf".to_owned(),
        info: info(0.01),
        cut_short: Some("the disk was full".to_owned()),
        incomplete: Some("it covers half of the run".to_owned()),
        notices: vec!["a packet was left out".to_owned()],
        aggregate,
        blocks,
        locations: program.locations,
        answers: vec![("leaks".to_owned(), "{}".to_owned())],
    }
}

proptest! {
    #[test]
    fn an_archive_is_read_as_it_was_written(
        program in programs(50),
        options in options(),
        most_blocks in prop_oneof![Just(1 << 20), Just(40)],
        first in first_trace(),
    ) {
        let written = archive(Program::new(program).with_first(first), most_blocks);
        let bytes = written.to_bytes();
        let read = Archive::from_bytes(&bytes).unwrap();
        prop_assert_eq!(&read.name, &written.name);
        prop_assert_eq!(&read.cut_short, &written.cut_short);
        prop_assert_eq!(&read.incomplete, &written.incomplete);
        prop_assert_eq!(&read.notices, &written.notices);
        prop_assert_eq!(&read.answers, &written.answers);
        prop_assert_eq!(&read.info, &written.info);
        let extent = |archive: &Archive| (archive.blocks.len(), archive.blocks.thinning());
        prop_assert_eq!(extent(&read), extent(&written));
        let all = |archive: &Archive| {
            let Archive { aggregate, blocks, locations, .. } = archive;
            let selected = blocks.aggregate(aggregate, locations, &options);
            let rows = aggregate.rows(locations, By::Function, Metric::Allocated);
            let samples = METRICS.map(|metric| {
                let samples = |row: &Row| (row.site.clone(), metric.samples(&row.counts));
                rows.iter().map(samples).collect::<Vec<_>>()
            });
            let (timeline, lifetimes) = (aggregate.timeline(), aggregate.lifetimes());
            let totals = (aggregate.peak(), aggregate.promotion_rate(), aggregate.external());
            format!("{samples:?} {timeline:?} {lifetimes:?} {totals:?}")
                + &figures(&selected, locations, &options)
        };
        prop_assert_eq!(all(&read), all(&written));
        prop_assert_eq!(read.to_bytes(), bytes);
    }

    #[test]
    fn damaged_archives_do_no_harm(
        program in programs(50),
        options in options(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        keep in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = archive(Program::new(program), 1 << 20).to_bytes();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(keep) = keep {
            bytes.truncate(keep.index(bytes.len()));
        }
        if let Ok(read) = Archive::from_bytes(&bytes) {
            let Archive { aggregate, blocks, locations, .. } = &read;
            let selected = blocks.aggregate(aggregate, locations, &options);
            prop_assert!(!figures(&selected, locations, &options).is_empty());
        }
    }
}
