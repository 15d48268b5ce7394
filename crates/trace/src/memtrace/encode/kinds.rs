//! The names of kinds of blocks that are in a file.

use crate::model::{Code, Locate, LocationList, kind_name_code, kind_of};

/// A set of kinds.
#[derive(Default)]
pub(crate) struct NamedKinds([u64; 4]);

impl NamedKinds {
    /// Adds to the `codes` that are about to be explained for the first time the names of their
    /// kinds, unless the file has them. `list` is overwritten.
    pub(crate) fn add_names(
        &mut self,
        codes: &mut Vec<Code>,
        list: &mut LocationList,
        locate: &mut impl Locate,
    ) {
        for at in 0..codes.len() {
            let Some(kind) = codes.get(at).copied().and_then(kind_of) else { continue };
            let Some(known) = self.0.get_mut(usize::from(kind) / 64) else { continue };
            let bit = 1 << (kind % 64);
            if *known & bit != 0 {
                continue;
            }
            list.clear();
            locate.locate(kind_name_code(kind), list);
            if !list.is_empty() {
                *known |= bit;
                codes.push(kind_name_code(kind));
            }
        }
    }
}
