//! What several traces say about themselves together.

use crate::model::TraceInfo;

/// Why two traces cannot be merged. The numbers are their indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// A word of one has more bytes than one of the other.
    WordSize(usize, usize),
}

impl TraceInfo {
    /// What traces say together: the earliest start, the lowest sampling rate, and of the program,
    /// host, runtime parameters, process and context what all have in common. `None` of no traces.
    pub fn merged<'a>(
        infos: impl IntoIterator<Item = &'a TraceInfo>,
    ) -> Result<Option<TraceInfo>, Mismatch> {
        let mut infos = infos.into_iter().enumerate();
        let Some((_, first)) = infos.next() else { return Ok(None) };
        let mut merged = first.clone();
        for (index, info) in infos {
            if info.word_size != first.word_size {
                return Err(Mismatch::WordSize(0, index));
            }
            merged.sample_rate = merged.sample_rate.min(info.sample_rate);
            merged.start_time = merged.start_time.min(info.start_time);
            clear_unless_same(&mut merged.executable, &info.executable);
            clear_unless_same(&mut merged.host, &info.host);
            clear_unless_same(&mut merged.runtime_params, &info.runtime_params);
            clear_unless_same(&mut merged.context, &info.context);
            merged.pid = if merged.pid == info.pid { info.pid } else { 0 };
            merged.domain = if merged.domain == info.domain { info.domain } else { 0 };
        }
        Ok(Some(merged))
    }
}

fn clear_unless_same(merged: &mut Vec<u8>, other: &[u8]) {
    if merged.as_slice() != other {
        merged.clear();
    }
}
