//! A holder by its name.

use heaptap_graph::{HeapAnalysis, HolderId, HolderTree};
use heaptap_report::figures::heap::titles::Titles;

use crate::analysis::filters::patterns;
use crate::exit_status::Failure;

/// The highest holder whose name matches; `option` is where the name was given.
pub(crate) fn find_holder(
    analysis: &HeapAnalysis,
    option: &str,
    name: &str,
) -> Result<HolderId, Failure> {
    let pattern = patterns(&format!("--{option}"), &[name.to_owned()])?;
    let titles = Titles::new(analysis);
    let matches = |id: &HolderId| {
        let title = titles.holder(*id);
        pattern.iter().all(|pattern| pattern.is_match(title.as_bytes()))
    };
    let mut holders = analysis.holders.ids().filter(|id| *id != HolderTree::PROGRAM);
    holders.find(matches).ok_or_else(|| {
        Failure::Trouble(format!(
            "--{option} {name}: no holder has such a name; `--by variable --top 0` lists the names"
        ))
    })
}
