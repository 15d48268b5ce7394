//! Folded stacks: a line for each, functions from `main` on, then bytes.

use std::io::{self, Write};

use heaptap_report::rows::By;

use super::Exported;
use crate::text::escape;

pub(super) fn write(exported: &Exported<'_>, out: &mut dyn Write) -> io::Result<()> {
    let stacks = exported.stacks(By::Function);
    let mut line = Vec::new();
    for stack in stacks.iter() {
        let bytes = exported.bytes(exported.metric, &stack.counts);
        if bytes == 0.0 {
            continue;
        }
        line.clear();
        for &site in stack.sites.iter().rev() {
            if !line.is_empty() {
                line.push(b';');
            }
            let name = stacks.sites()[site as usize].name.as_bytes();
            escape::put(&mut line, name, |byte| byte == b';');
        }
        writeln!(line, " {bytes:.0}")?;
        out.write_all(&line)?;
    }
    Ok(())
}
