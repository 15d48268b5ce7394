//! How to get from one code address's frame to its caller, from `.eh_frame`.
//!
//! Of all that DWARF can express only this is followed, which is what compilers emit for
//! C on x86-64:
//!
//! ```text
//! cfa = rsp + n | rbp + n      return address at cfa − 8
//! rbp = the same | at cfa + m  rsp = cfa
//! ```
//!
//! gimli parses the instructions. Its evaluation of rows (`UnwindContext`) is not used inside hooks,
//! which have less than 2 KiB of stack: a row has room for the rules of all registers, some
//! kilobytes (a test says how many), and `DW_CFA_remember_state` copies it by way of the stack,
//! wherever the context itself is. With storage for fewer rules, functions that save more
//! registers than that would end the backtrace; here the registers that do not matter cost
//! nothing.

use gimli::{
    BaseAddresses, CallFrameInstruction, CallFrameInstructionIter, EhFrame, EhFrameHdr,
    EndianSlice, LittleEndian, Register, UnwindSection, X86_64,
};

use super::modules::Module;

type Slice = EndianSlice<'static, LittleEndian>;

/// How deep `DW_CFA_remember_state` may nest; compilers use one level.
const REMEMBERED: usize = 3;

/// How to find the caller's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// The canonical frame address is `rbp` and not `rsp`, plus the offset.
    pub(super) cfa_from_bp: bool,
    pub(super) cfa_offset: i32,
    /// Where `rbp` is, from the canonical frame address; `None`: unchanged.
    pub(super) bp_offset: Option<i16>,
}

impl Rule {
    /// Packed in a word that is not 0.
    pub(super) fn pack(self) -> u64 {
        let cfa = u64::from(self.cfa_offset.cast_unsigned()) << 32;
        let bp = u64::from(self.bp_offset.unwrap_or(0).cast_unsigned()) << 16;
        let flags = 1 | u64::from(self.cfa_from_bp) << 1 | u64::from(self.bp_offset.is_some()) << 2;
        cfa | bp | flags
    }

    pub(super) fn unpack(word: u64) -> Option<Self> {
        (word & 1 != 0).then(|| Self {
            cfa_from_bp: word & 2 != 0,
            cfa_offset: ((word >> 32) as u32).cast_signed(),
            bp_offset: (word & 4 != 0).then_some(((word >> 16) as u16).cast_signed()),
        })
    }

    /// The rule at `pc`; `None` if there is none, or it is not simple.
    #[inline(never)]
    pub(super) fn find(module: &Module, pc: u64) -> Option<Self> {
        let header_at = module.tables.as_ptr() as u64;
        let mut bases = BaseAddresses::default().set_eh_frame_hdr(header_at);
        let header = EhFrameHdr::new(module.tables, LittleEndian).parse(&bases, 8).ok()?;
        let frames_at = header.eh_frame_ptr().direct().ok()?;
        bases = bases.set_eh_frame(frames_at);
        // `.eh_frame` follows its header, as linkers put it.
        let skip = usize::try_from(frames_at.checked_sub(header_at)?).ok()?;
        let frames = EhFrame::new(module.tables.get(skip..)?, LittleEndian);
        let table = header.table()?;
        let fde = table.fde_for_address(&frames, &bases, pc, EhFrame::cie_from_offset).ok()?;
        if fde.is_signal_trampoline() {
            return None;
        }
        let cie = fde.cie();
        let mut rows = Rows {
            state: State::default(),
            initial: State::default(),
            remembered: [State::default(); REMEMBERED],
            depth: 0,
            location: fde.initial_address(),
            code_factor: cie.code_alignment_factor(),
            data_factor: cie.data_alignment_factor(),
        };
        rows.run(cie.instructions(&frames, &bases), pc)?;
        rows.initial = rows.state;
        rows.run(fde.instructions(&frames, &bases), pc)?;
        rows.state.rule()
    }
}

/// Where the caller's value of a register is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Saved {
    Unchanged,
    /// From the canonical frame address.
    At(i32),
    /// Not found by a simple rule.
    Elsewhere,
}

/// The part of a row that matters here.
#[derive(Clone, Copy, Debug)]
struct State {
    /// `None`: an expression.
    cfa: Option<(Register, i32)>,
    bp: Saved,
    return_address: Saved,
}

impl Default for State {
    fn default() -> Self {
        Self { cfa: None, bp: Saved::Unchanged, return_address: Saved::Elsewhere }
    }
}

impl State {
    fn rule(&self) -> Option<Rule> {
        let (register, offset) = self.cfa?;
        let cfa_from_bp = match register {
            X86_64::RSP => false,
            X86_64::RBP => true,
            _ => return None,
        };
        let bp_offset = match self.bp {
            Saved::Unchanged => None,
            Saved::At(offset) => Some(i16::try_from(offset).ok()?),
            Saved::Elsewhere => return None,
        };
        if self.return_address != Saved::At(-8) {
            return None;
        }
        Some(Rule { cfa_from_bp, cfa_offset: offset, bp_offset })
    }

    fn save(&mut self, register: Register, saved: Saved) {
        match register {
            X86_64::RBP => self.bp = saved,
            X86_64::RA => self.return_address = saved,
            _ => {}
        }
    }
}

/// The interpreter of one function's unwind instructions.
struct Rows {
    state: State,
    /// After the instructions of the CIE, for `DW_CFA_restore`.
    initial: State,
    remembered: [State; REMEMBERED],
    depth: usize,
    location: u64,
    code_factor: u64,
    data_factor: i64,
}

impl Rows {
    /// Runs instructions up to the row of `pc`; `None` if they are malformed.
    fn run(
        &mut self,
        mut instructions: CallFrameInstructionIter<'_, Slice>,
        pc: u64,
    ) -> Option<()> {
        while let Some(instruction) = instructions.next().ok()? {
            match instruction {
                CallFrameInstruction::SetLoc { address } => self.location = address,
                CallFrameInstruction::AdvanceLoc { delta } => {
                    let bytes = u64::from(delta).checked_mul(self.code_factor)?;
                    self.location = self.location.checked_add(bytes)?;
                }
                ref other => self.apply(other)?,
            }
            if self.location > pc {
                return Some(());
            }
        }
        Some(())
    }

    fn apply(&mut self, instruction: &CallFrameInstruction<usize>) -> Option<()> {
        use CallFrameInstruction as I;
        match *instruction {
            I::DefCfa { register, offset } => {
                self.state.cfa = Some((register, i32::try_from(offset).ok()?));
            }
            I::DefCfaSf { register, factored_offset } => {
                self.state.cfa = Some((register, self.factored(factored_offset)?));
            }
            I::DefCfaRegister { register } => self.state.cfa.as_mut()?.0 = register,
            I::DefCfaOffset { offset } => {
                self.state.cfa.as_mut()?.1 = i32::try_from(offset).ok()?;
            }
            I::DefCfaOffsetSf { factored_offset } => {
                self.state.cfa.as_mut()?.1 = self.factored(factored_offset)?;
            }
            I::DefCfaExpression { .. } => self.state.cfa = None,
            I::Offset { register, factored_offset } => {
                let offset = self.factored(i64::try_from(factored_offset).ok()?)?;
                self.state.save(register, Saved::At(offset));
            }
            I::OffsetExtendedSf { register, factored_offset } => {
                let offset = self.factored(factored_offset)?;
                self.state.save(register, Saved::At(offset));
            }
            I::SameValue { register } => self.state.save(register, Saved::Unchanged),
            I::Undefined { register }
            | I::ValOffset { register, .. }
            | I::ValOffsetSf { register, .. }
            | I::Expression { register, .. }
            | I::ValExpression { register, .. }
            | I::Register { dest_register: register, .. } => {
                self.state.save(register, Saved::Elsewhere);
            }
            I::Restore { register } => match register {
                X86_64::RBP => self.state.bp = self.initial.bp,
                X86_64::RA => self.state.return_address = self.initial.return_address,
                _ => {}
            },
            I::RememberState => {
                *self.remembered.get_mut(self.depth)? = self.state;
                self.depth += 1;
            }
            I::RestoreState => {
                self.depth = self.depth.checked_sub(1)?;
                self.state = *self.remembered.get(self.depth)?;
            }
            _ => {}
        }
        Some(())
    }

    fn factored(&self, offset: i64) -> Option<i32> {
        i32::try_from(offset.checked_mul(self.data_factor)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_pack_into_a_word_and_back() {
        for cfa_from_bp in [false, true] {
            for cfa_offset in [8, 16, 1 << 20, -8, i32::MIN, i32::MAX] {
                for bp_offset in [None, Some(-16), Some(0), Some(i16::MIN), Some(8)] {
                    let rule = Rule { cfa_from_bp, cfa_offset, bp_offset };
                    assert_ne!(rule.pack(), 0);
                    assert_eq!(Rule::unpack(rule.pack()), Some(rule));
                }
            }
        }
        assert_eq!(Rule::unpack(0), None);
    }

    /// Why gimli does not evaluate the rows. If this fails, it can.
    #[test]
    fn a_row_of_gimli_does_not_fit_on_the_stack_of_a_hook() {
        let row = size_of::<gimli::UnwindTableRow<usize, gimli::StoreOnHeap>>();
        assert!(row > 2 << 10, "{row} bytes");
    }

    fn state(cfa: Option<(Register, i32)>, bp: Saved, return_address: Saved) -> State {
        State { cfa, bp, return_address }
    }

    #[test]
    fn only_simple_rows_are_followed() {
        let sp = Some((X86_64::RSP, 32));
        let ra = Saved::At(-8);
        let rule = Rule { cfa_from_bp: false, cfa_offset: 32, bp_offset: None };
        assert_eq!(state(sp, Saved::Unchanged, ra).rule(), Some(rule));
        let saved = Rule { bp_offset: Some(-16), ..rule };
        assert_eq!(state(sp, Saved::At(-16), ra).rule(), Some(saved));
        assert_eq!(state(None, Saved::Unchanged, ra).rule(), None);
        assert_eq!(state(Some((X86_64::RBX, 8)), Saved::Unchanged, ra).rule(), None);
        assert_eq!(state(sp, Saved::Elsewhere, ra).rule(), None);
        assert_eq!(state(sp, Saved::Unchanged, Saved::Elsewhere).rule(), None);
    }
}
