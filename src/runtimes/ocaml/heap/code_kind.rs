//! Native code or bytecode.

use crate::runtimes::attach::Refusal;
use crate::runtimes::attach::symbols::needed;
use crate::runtimes::ocaml::bytecode::Code;
use crate::runtimes::ocaml::{Descriptors, MajorVersion};

/// What only one kind of program has.
pub(crate) enum CodeKind {
    Native {
        /// `caml_globals`
        globals: usize,
        descriptors: Descriptors,
    },
    Bytecode {
        /// `caml_global_data`
        global_data: usize,
        /// Where the bytecode is, if that is known.
        code: Option<Code>,
    },
}

impl CodeKind {
    /// Before `main`, or when the runtime starts.
    pub(crate) fn find(version: MajorVersion, is_native: bool) -> Result<CodeKind, Refusal> {
        if !is_native {
            let global_data = needed(c"caml_global_data")?;
            return Ok(CodeKind::Bytecode { global_data, code: Code::find() });
        }
        let descriptors =
            Descriptors::find(version).ok_or(Refusal::Layout("the index of frame descriptors"))?;
        Ok(CodeKind::Native { globals: needed(c"caml_globals")?, descriptors })
    }

    pub(crate) fn is_native(&self) -> bool {
        matches!(self, CodeKind::Native { .. })
    }
}
