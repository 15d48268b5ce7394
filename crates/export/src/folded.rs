//! Folded stacks: one line for each stack, its functions from the outermost to
//! the innermost, then bytes.

use std::io::{self, Write};

use heaptap_report::Stacks;
use heaptap_report::escape;
use heaptap_report::rows::By;

use crate::{ExportInput, Format};

pub(crate) const FORMAT: Format = Format {
    name: "folded",
    help: "One line for each stack, for flamegraph.pl, inferno and others",
    is_binary: false,
    takes_sidecar: false,
    by: By::Function,
    write,
};

fn write(input: &ExportInput<'_>, stacks: &Stacks<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut line = Vec::new();
    for stack in stacks.iter() {
        let bytes = input.bytes(input.metric, &stack.counts);
        if bytes == 0.0 {
            continue;
        }
        line.clear();
        for &site in stack.sites().iter().rev() {
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
