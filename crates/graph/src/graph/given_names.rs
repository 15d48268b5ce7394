//! Names of blocks and variables that the snapshot does not have, such as their types.

use std::collections::HashMap;

/// The number of a name in its [`GivenNames`].
pub type GivenName = u32;

/// Names that blocks and variables of modules were given.
#[derive(Debug, Default)]
pub struct GivenNames {
    /// By block: one more than the number of its name; 0 if it has none.
    of_blocks: Vec<GivenName>,
    texts: Vec<String>,
    ids: HashMap<String, GivenName>,
    /// By module and field.
    variables: HashMap<(u32, u32), String>,
}

impl GivenNames {
    /// No names yet, for this number of blocks.
    pub fn new(blocks: usize) -> GivenNames {
        GivenNames { of_blocks: vec![0; blocks], ..GivenNames::default() }
    }

    /// The number of a name.
    pub fn id(&mut self, text: String) -> GivenName {
        let next = self.texts.len() as GivenName;
        if let Some(id) = self.ids.get(&text) {
            return *id;
        }
        self.texts.push(text.clone());
        self.ids.insert(text, next);
        next
    }

    /// Gives a block a name.
    pub fn set(&mut self, block: u32, id: GivenName) {
        if let Some(slot) = self.of_blocks.get_mut(block as usize) {
            *slot = id.saturating_add(1);
        }
    }

    /// Gives a variable of a module a name, which follows that of the module.
    pub fn set_variable(&mut self, module: u32, field: u32, text: String) {
        self.variables.insert((module, field), text);
    }

    /// The name of a block.
    pub fn of(&self, block: u32) -> Option<GivenName> {
        self.of_blocks.get(block as usize)?.checked_sub(1)
    }

    /// A name as text.
    pub fn text(&self, id: GivenName) -> Option<&str> {
        self.texts.get(id as usize).map(String::as_str)
    }

    /// The name of a variable.
    pub fn variable(&self, module: u32, field: u32) -> Option<&str> {
        self.variables.get(&(module, field)).map(String::as_str)
    }
}
