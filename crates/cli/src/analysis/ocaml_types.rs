//! The options `--types` and `--ocaml`: where the types of a program's blocks are read.

use std::path::PathBuf;

use clap::Args;
use heaptap_graph::HeapGraph;
use heaptap_ocaml_types::{CompilerFiles, TypeSummary, name_blocks};

use crate::exit_status::Failure;

/// Where types come from.
#[derive(Args, Clone, Debug)]
pub(crate) struct TypeOptions {
    /// Name the OCaml types of blocks, from the .cmt and .cmi files in this directory and all
    /// directories below, such as dune's _build; may be given several times
    #[arg(long, value_name = "DIRECTORY")]
    types: Vec<PathBuf>,
    /// The `ocaml` of the compiler that the program was built with
    #[arg(long, value_name = "PROGRAM", default_value = "ocaml", requires = "types")]
    ocaml: PathBuf,
}

impl TypeOptions {
    /// Whether types are asked for.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.types.is_empty()
    }

    /// Says what is missing if rows are types, and where types come from is not given.
    pub(crate) fn check(&self, rows_are_types: bool) -> Result<(), Failure> {
        if rows_are_types && !self.is_wanted() {
            return Err(Failure::Trouble(
                "--by type: types come from the program's .cmt files; name their directory by \
                 --types DIRECTORY, or see --by block"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// Gives blocks and variables their types as names, if these are wanted.
    pub(crate) fn name_blocks(
        &self,
        graph: &mut HeapGraph,
    ) -> Result<Option<TypeSummary>, Failure> {
        if !self.is_wanted() {
            return Ok(None);
        }
        let files = CompilerFiles { directories: &self.types, ocaml: &self.ocaml };
        name_blocks(graph, &files).map(Some).map_err(|error| Failure::Trouble(error.to_string()))
    }
}
