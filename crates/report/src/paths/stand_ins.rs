//! Numbers in the place of a frame's, for what has no frame: a domain, a source, an
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

/// Whether this is the number of no frame of the trace.
pub(crate) fn is_stand_in(frame: u32) -> bool {
    frame >= SOURCES
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
        for frame in [0, 1000, NOWHERE, LIGHT, u32::MAX] {
            assert_eq!(domain_of(frame), None);
        }
    }
}
