//! Folded stacks: a line for each, functions from `main` on, then bytes.

use std::io::{self, Write};

use super::Exported;
use crate::escape;

pub(super) fn write(exported: &Exported<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut line = Vec::new();
    exported.aggregate.each_stack_of_functions(
        exported.locations,
        exported.metric,
        |sites, samples| {
            line.clear();
            for site in sites {
                if !line.is_empty() {
                    line.push(b';');
                }
                escape::put(&mut line, site.name.as_bytes(), |byte| byte == b';');
            }
            let bytes = exported.aggregate.estimate(exported.metric, samples).bytes;
            writeln!(line, " {bytes:.0}")?;
            out.write_all(&line)
        },
    )
}
