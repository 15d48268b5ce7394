//! Numbers in the place of a frame's, for what has no frame: a domain, a source, a kind, an
//! allocation without a backtrace, the rest of a path that was too light to keep.

use heaptap_trace::Source;

/// Stands in for the frames of paths that were too light to keep.
pub(crate) const LIGHT: u32 = u32::MAX - 1;

/// Stands in for the frame of an allocation without a backtrace.
pub(crate) const NOWHERE: u32 = u32::MAX - 2;

/// Stands in for the frames of a domain, where paths are domains.
const DOMAINS: u32 = u32::MAX - 3 - u16::MAX as u32;

/// Stands in for the frames of sources, where paths are sources.
const SOURCES: u32 = DOMAINS - 3;

/// Stands in for the frames of kinds, where paths are kinds.
const KINDS: u32 = SOURCES - 1 - u8::MAX as u32;

/// Whether this is the number of no frame of the trace.
pub(crate) fn is_stand_in(frame: u32) -> bool {
    frame >= KINDS
}

/// The frame that stands for a source.
pub(crate) fn source_frame(source: Source) -> u32 {
    SOURCES + source as u32
}

/// The source that a frame stands for.
pub(crate) fn source_of(frame: u32) -> Option<Source> {
    [Source::Minor, Source::Major, Source::External]
        .into_iter()
        .find(|&source| source_frame(source) == frame)
}

/// The frame that stands for a domain.
pub(crate) fn domain_frame(domain: u16) -> u32 {
    DOMAINS + u32::from(domain)
}

/// The frame that stands for a kind: [`NOWHERE`] for 0, the kind of blocks whose kind is not known.
pub(crate) fn kind_frame(kind: u8) -> u32 {
    if kind == 0 { NOWHERE } else { KINDS + u32::from(kind) }
}

/// The kind that a frame stands for.
pub(crate) fn kind_of_frame(frame: u32) -> Option<u8> {
    let kind = frame.checked_sub(KINDS).and_then(|number| u8::try_from(number).ok());
    kind.filter(|&kind| kind != 0)
}

/// The domain that a frame stands for.
pub(crate) fn domain_of(frame: u32) -> Option<u16> {
    frame.checked_sub(DOMAINS).and_then(|number| u16::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_domains_and_sources_are_no_others() {
        for source in [Source::Minor, Source::Major, Source::External] {
            assert_eq!(source_of(source_frame(source)), Some(source));
            assert_eq!(domain_of(source_frame(source)), None);
        }
        for domain in [0, 1, u16::MAX] {
            assert_eq!(domain_of(domain_frame(domain)), Some(domain));
            assert_eq!(source_of(domain_frame(domain)), None);
        }
        for kind in 1..=u8::MAX {
            let frame = kind_frame(kind);
            assert_eq!((kind_of_frame(frame), source_of(frame)), (Some(kind), None));
            assert!(is_stand_in(frame) && domain_of(frame).is_none());
        }
        assert_eq!(kind_of_frame(source_frame(Source::Minor)), None);
        for frame in [0, 1000, NOWHERE, LIGHT, u32::MAX] {
            assert_eq!(domain_of(frame), None);
        }
    }
}
