//! Seeds of sidecars of series: a base and what follows, a base that is left out, a trace that was
//! truncated.

use heaptap_trace::{CarriedBlock, CarriedEnds, End, STRAY_IDS, SeriesEncoder, SeriesHead, Source};

use super::Names;

/// Their names and bytes.
pub fn all() -> [(&'static str, Vec<u8>); 4] {
    [
        ("whole", sidecar(false, false)),
        ("chunks", sidecar(true, false)),
        ("truncated", sidecar(true, true)),
        ("left-out", left_out()),
    ]
}

const HEAD: SeriesHead = SeriesHead {
    series: *b"0123456789abcdef",
    part: 3,
    rate: 0.25,
    start_time: 1_000_000,
    series_start: 10,
    first_id: 500,
};

fn block(id: u64, node: u32) -> CarriedBlock {
    CarriedBlock {
        id,
        birth: 900_000 + id % 500,
        promotion: (id % 2 == 0).then_some(950_000),
        length: 7 + id % 5,
        samples: 2,
        source: Source::ALL[id as usize % 3],
        domain: (id % 3) as u16,
        node,
        rate: (id % 2) as u32,
        position: 500 + id % 4,
    }
}

fn ends(end: End, first: u64, count: u64) -> CarriedEnds {
    CarriedEnds { end, time: 1_000_007, domain: 1, position: 501, first, count }
}

fn sidecar(in_chunks: bool, restarts: bool) -> Vec<u8> {
    let mut encoder = SeriesEncoder::new(&HEAD);
    let mut file = Vec::new();
    let mut end_chunk = |encoder: &mut SeriesEncoder| {
        if in_chunks {
            file.extend(encoder.take().unwrap_or_default());
        }
    };
    encoder.rate(0.25);
    encoder.rate(1.0);
    let mut node = 0;
    for id in 3..9 {
        let code = encoder.code(id % 4, &mut Names);
        node = encoder.node(node, code);
        encoder.block(&block(id, node));
        end_chunk(&mut encoder);
    }
    encoder.base_complete();
    encoder.ends(&ends(End::Promote, 5, 1));
    encoder.ends(&ends(End::Collect, 3, 4));
    encoder.block(&block(STRAY_IDS, node));
    end_chunk(&mut encoder);
    if restarts {
        encoder.restarted(700);
        encoder.ends(&ends(End::Collect, 510, 9));
    }
    encoder.ends(&ends(End::Collect, STRAY_IDS, 1));
    encoder.part_complete(5_000_000);
    file.extend(encoder.take().unwrap_or_default());
    file
}

fn left_out() -> Vec<u8> {
    let mut encoder = SeriesEncoder::new(&HEAD);
    encoder.rate(0.25);
    encoder.base_left_out(12);
    encoder.ends(&ends(End::Collect, 30, 12));
    encoder.take().unwrap_or_default()
}
