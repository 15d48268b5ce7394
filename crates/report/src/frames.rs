//! The frames that occur in backtraces, numbered.

use hashbrown::HashMap;
use heaptap_trace::{Code, LocationTable};

use crate::own_code::is_own_code;
use crate::select::{Marks, Selection, is_label};

/// Entries of the cache: 2^BITS of 16 bytes.
const BITS: u32 = 13;

/// The codes of frames by number, and the marks of the selection on each.
#[derive(Default)]
pub(crate) struct Frames {
    numbers: HashMap<Code, u32>,
    /// Codes with their numbers, by a hash of the code: a cache of `numbers`. Empty until
    /// the first frame is numbered. An entry whose number is beyond all has no code.
    recent: Vec<(Code, u32)>,
    codes: Vec<Code>,
    marks: Vec<Marks>,
    labels: Vec<bool>,
    /// Whether any function of a frame is the program's own code.
    own: Vec<bool>,
}

impl Frames {
    /// The number of a code, which is assigned on first use.
    pub(crate) fn number(
        &mut self,
        code: Code,
        table: &LocationTable,
        selection: &Selection,
    ) -> u32 {
        let slot = (code.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS)) as usize;
        if let Some(&(recent, number)) = self.recent.get(slot)
            && recent == code
            && number != u32::MAX
        {
            return number;
        }
        let number = match self.numbers.get(&code) {
            Some(&number) => number,
            None => self.add(code, table, selection),
        };
        if self.recent.is_empty() {
            self.recent.resize(1 << BITS, (0, u32::MAX));
        }
        self.recent[slot] = (code, number);
        number
    }

    fn add(&mut self, code: Code, table: &LocationTable, selection: &Selection) -> u32 {
        let number = self.codes.len() as u32;
        self.numbers.insert(code, number);
        self.codes.push(code);
        let looks = selection.looks_at_frames();
        self.marks.push(if looks { selection.marks(code, table) } else { 0 });
        self.labels.push(table.resolve(code).any(|location| is_label(&location)));
        self.own.push(is_own_code(code, table));
        number
    }

    /// Whether the frame is the program's own code.
    #[inline]
    pub(crate) fn is_own(&self, number: u32) -> bool {
        self.own[number as usize]
    }

    /// The same of numbers that stand for other frames too: those are no code.
    pub(crate) fn is_own_code(&self, number: u32) -> bool {
        self.own.get(number as usize).copied().unwrap_or(false)
    }

    /// Whether the frame is a label.
    pub(crate) fn is_label(&self, number: u32) -> bool {
        self.labels[number as usize]
    }

    pub(crate) fn marks(&self, number: u32) -> Marks {
        self.marks[number as usize]
    }

    /// The code of a frame.
    pub(crate) fn code(&self, number: u32) -> Code {
        self.codes[number as usize]
    }

    /// Whether this is the number of a code.
    #[inline]
    pub(crate) fn has_code(&self, number: u32, code: Code) -> bool {
        self.codes.get(number as usize) == Some(&code)
    }

    /// The codes by number.
    pub(crate) fn codes(&self) -> &[Code] {
        &self.codes
    }

    /// Frames that are numbered in this order, and no more.
    pub(crate) fn of_codes(codes: Vec<Code>) -> Frames {
        Frames { codes, ..Frames::default() }
    }

    /// [`Frames::is_label`], also after [`Frames::drop_index`] and for numbers that
    /// stand for other frames.
    pub(crate) fn is_label_of(&self, number: u32, table: &LocationTable) -> bool {
        let code = self.codes.get(number as usize);
        code.is_some_and(|&code| table.resolve(code).any(|location| is_label(&location)))
    }

    /// Drops all but the codes, when no more frames will be numbered.
    pub(crate) fn drop_index(&mut self) {
        *self = Frames { codes: std::mem::take(&mut self.codes), ..Frames::default() };
    }
}
