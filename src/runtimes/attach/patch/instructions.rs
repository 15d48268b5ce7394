//! Instructions of a function: how long each is, and how to execute it somewhere else.
//!
//! Knows what compilers emit for the runtimes' functions, and says so where it meets anything
//! else ("Intel 64 and IA-32 Architectures Software Developer's Manual", volume 2, appendix A).

/// What an instruction does to the flow of control, or depends on its own address for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It means the same at any address.
    Plain,
    /// It uses memory at a distance from its end, which is the four bytes from here on.
    Relative(usize),
    /// It may go on at this distance from its end.
    Jump(isize),
    /// A call, a return, or a jump to where a register says.
    Transfer,
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Instruction {
    length: usize,
    kind: Kind,
}

/// How many bytes of immediate operands an opcode has.
#[derive(Clone, Copy)]
enum Immediate {
    None,
    Byte,
    /// Four bytes, or two after the prefix for operands of that size.
    Word,
}

/// Copies the first instructions of `code`, which is at `from`, so that they do the same at `to`:
/// as many as take `room` bytes or more. Returns how many bytes of `code` they are, and the copy.
///
/// `None` if that cannot be done: one of them is not known, is a jump or a call, or refers to what
/// is too far from `to`; or what follows is not known, or jumps back to them.
pub(super) fn displace(
    code: &[u8],
    from: usize,
    to: usize,
    room: usize,
) -> Option<(usize, Vec<u8>)> {
    let (mut at, mut copy) = (0, Vec::new());
    while at < room {
        let Instruction { length, kind } = decode(code.get(at..)?)?;
        let start = copy.len();
        copy.extend_from_slice(code.get(at..at + length)?);
        match kind {
            Kind::Plain => {}
            Kind::Relative(distance_at) => {
                let place = copy.get_mut(start + distance_at..start + distance_at + 4)?;
                let distance = i64::from(i32::from_le_bytes((&*place).try_into().ok()?));
                // All instructions before were copied with the same length.
                let moved = (from as i64).wrapping_sub(to as i64).checked_add(distance)?;
                place.copy_from_slice(&i32::try_from(moved).ok()?.to_le_bytes());
            }
            Kind::Jump(_) | Kind::Transfer => return None,
        }
        at += length;
    }
    is_not_entered(code, at).then_some((at, copy))
}

/// Whether no jump behind the first bytes leads back into them.
fn is_not_entered(code: &[u8], first: usize) -> bool {
    let mut at = first;
    while let Some(rest) = code.get(at..).filter(|rest| !rest.is_empty()) {
        let Some(Instruction { length, kind }) = decode(rest) else { return false };
        at += length;
        if let Kind::Jump(distance) = kind
            && at.checked_add_signed(distance).is_some_and(|target| target < first)
        {
            return false;
        }
    }
    true
}

/// The first instruction of the code, if it is known.
fn decode(code: &[u8]) -> Option<Instruction> {
    let is_prefix =
        |byte: &u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x66 | 0xf0 | 0xf2 | 0xf3);
    let prefixes = code.iter().take_while(|byte| is_prefix(byte)).count();
    let is_short = code.get(..prefixes)?.contains(&0x66);
    let rex = code.get(prefixes).copied().filter(|byte| byte & 0xf0 == 0x40);
    let (is_wide, at) =
        (rex.is_some_and(|rex| rex & 8 != 0), prefixes + usize::from(rex.is_some()));
    let opcode = *code.get(at)?;
    let behind = code.get(at + 1..)?;
    let (has_operand, immediate) = match opcode {
        0x0f => return decode_two_byte(code, at),
        0x70..=0x7f | 0xe0..=0xe3 | 0xeb => {
            let distance = isize::from(*behind.first()? as i8);
            return Some(Instruction { length: at + 2, kind: Kind::Jump(distance) });
        }
        0xe9 => return jump_far(behind, at + 5),
        0xe8 => return Some(Instruction { length: at + 5, kind: Kind::Transfer }),
        0xc3 | 0xcc | 0xf4 => return Some(Instruction { length: at + 1, kind: Kind::Transfer }),
        // mov $imm64, reg
        0xb8..=0xbf if is_wide => return plain(code, at + 9),
        0x00..=0x3f => match opcode & 7 {
            0..=3 => (true, Immediate::None),
            4 => (false, Immediate::Byte),
            5 => (false, Immediate::Word),
            _ => return None,
        },
        0x50..=0x5f | 0x90..=0x99 | 0xa4..=0xa7 | 0xaa..=0xaf | 0xc9 => (false, Immediate::None),
        0x63 | 0x84..=0x8b | 0x8d | 0xd0..=0xd3 | 0xd8..=0xdf | 0xfe => (true, Immediate::None),
        0x68 | 0xa9 | 0xb8..=0xbf => (false, Immediate::Word),
        0x6a | 0xa8 | 0xb0..=0xb7 => (false, Immediate::Byte),
        0x69 | 0x81 | 0xc7 => (true, Immediate::Word),
        0x6b | 0x80 | 0x83 | 0xc0 | 0xc1 | 0xc6 => (true, Immediate::Byte),
        // test, and others without an operand in the instruction
        0xf6 | 0xf7 => match (behind.first()? >> 3 & 7, opcode) {
            (0 | 1, 0xf6) => (true, Immediate::Byte),
            (0 | 1, _) => (true, Immediate::Word),
            _ => (true, Immediate::None),
        },
        // inc, dec, push; call and jmp
        0xff => match behind.first()? >> 3 & 7 {
            0 | 1 | 6 => (true, Immediate::None),
            2 | 4 => {
                let (length, _) = operand(behind)?;
                return Some(Instruction { length: at + 1 + length, kind: Kind::Transfer });
            }
            _ => return None,
        },
        _ => return None,
    };
    let immediate = match immediate {
        Immediate::None => 0,
        Immediate::Byte => 1,
        Immediate::Word if is_short && !is_wide => 2,
        Immediate::Word => 4,
    };
    if has_operand {
        with_operand(code, at + 1, immediate)
    } else {
        plain(code, at + 1 + immediate)
    }
}

/// An instruction whose opcode has two bytes, the first of them at `at`.
fn decode_two_byte(code: &[u8], at: usize) -> Option<Instruction> {
    match *code.get(at + 1)? {
        0x80..=0x8f => jump_far(code.get(at + 2..)?, at + 6),
        0x05 | 0x0b => Some(Instruction { length: at + 2, kind: Kind::Transfer }),
        0x31 | 0xa2 | 0xc8..=0xcf => plain(code, at + 2),
        0x70..=0x73 | 0xa4 | 0xac | 0xba | 0xc2 | 0xc4..=0xc6 => with_operand(code, at + 2, 1),
        0x0d
        | 0x10..=0x18
        | 0x1e
        | 0x1f
        | 0x28..=0x2f
        | 0x40..=0x6f
        | 0x74..=0x76
        | 0x7c..=0x7f => with_operand(code, at + 2, 0),
        0x90..=0x9f | 0xa3 | 0xa5 | 0xab | 0xad..=0xb1 | 0xb3 | 0xb6 | 0xb7 | 0xbb..=0xc1 => {
            with_operand(code, at + 2, 0)
        }
        0xd0..=0xfe => with_operand(code, at + 2, 0),
        _ => None,
    }
}

fn plain(code: &[u8], length: usize) -> Option<Instruction> {
    code.get(..length)?;
    Some(Instruction { length, kind: Kind::Plain })
}

/// A jump whose distance is the first four bytes of `distance`.
fn jump_far(distance: &[u8], length: usize) -> Option<Instruction> {
    let distance = i32::from_le_bytes(distance.get(..4)?.try_into().ok()?);
    Some(Instruction { length, kind: Kind::Jump(distance as isize) })
}

/// An instruction with an operand whose description is at `at`, and `immediate` bytes behind.
fn with_operand(code: &[u8], at: usize, immediate: usize) -> Option<Instruction> {
    let (length, is_relative) = operand(code.get(at..)?)?;
    let kind = if is_relative { Kind::Relative(at + 1) } else { Kind::Plain };
    let length = at + length + immediate;
    code.get(..length)?;
    Some(Instruction { length, kind })
}

/// How many bytes describe an operand (`ModR/M`, `SIB` and displacement), and whether it is relative
/// to the instruction's end.
fn operand(code: &[u8]) -> Option<(usize, bool)> {
    let first = *code.first()?;
    let (mode, base) = (first >> 6, first & 7);
    let has_index = mode != 3 && base == 4;
    let is_relative = mode == 0 && base == 5;
    let displacement = match mode {
        0 if is_relative => 4,
        0 if has_index && *code.get(1)? & 7 == 5 => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    Some((1 + usize::from(has_index) + displacement, is_relative))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(code: &[u8]) -> Vec<usize> {
        let mut lengths = Vec::new();
        while let Some(instruction) = decode(&code[lengths.iter().sum::<usize>()..]) {
            lengths.push(instruction.length);
        }
        lengths
    }

    #[test]
    fn instructions_have_the_lengths_that_an_assembler_gives_them() {
        // push %r15; mov %r8, %r15; lea 8(,%rsi,8), %rbp; sub $0x18, %rsp; add %rbp, 8(%rdi);
        // mov %ecx, 0xc(%rsp)
        let saves = [
            0x41, 0x57, 0x4d, 0x89, 0xc7, 0x48, 0x8d, 0x2c, 0xf5, 8, 0, 0, 0, 0x48, 0x83, 0xec,
            0x18, 0x48, 1, 0x6f, 8, 0x89, 0x4c, 0x24, 0xc,
        ];
        assert_eq!(lengths(&saves), [2, 3, 8, 4, 4, 4]);
        // mov %fs:0x28, %rax; movabs $1, %rax; movw $1, (%rax); testb $1, (%rax); movzbl 1(%rax), %eax
        let others = [
            0x64, 0x48, 0x8b, 4, 0x25, 0x28, 0, 0, 0, 0x48, 0xb8, 1, 0, 0, 0, 0, 0, 0, 0, 0x66,
            0xc7, 0, 1, 0, 0xf6, 0, 1, 0x0f, 0xb6, 0x40, 1,
        ];
        assert_eq!(lengths(&others), [9, 10, 5, 3, 4]);
        // nopw %cs:0(%rax,%rax,1); movups %xmm0, 0x10(%rbx); lock cmpxchg %rdx, (%rdi); ret
        let last = [
            0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0x0f, 0x11, 0x43, 0x10, 0xf0, 0x48, 0x0f,
            0xb1, 0x17, 0xc3,
        ];
        assert_eq!(lengths(&last), [10, 4, 5, 1]);
    }

    #[test]
    fn what_is_relative_to_an_instruction_is_found_from_elsewhere() {
        // mov 0x10(%rip), %rax; ret
        let code = [0x48, 0x8b, 5, 0x10, 0, 0, 0, 0xc3];
        let (length, copy) = displace(&code, 0x5000, 0x1000, 5).unwrap();
        assert_eq!((length, &copy[..3]), (7, &code[..3]));
        assert_eq!(copy[3..], 0x4010_i32.to_le_bytes());
        assert_eq!(displace(&code, 1 << 40, 0x1000, 5), None, "too far");
        // cmpl $1, 0x10(%rip)
        let code = [0x83, 0x3d, 0x10, 0, 0, 0, 1];
        assert_eq!(displace(&code, 0x1000, 0x1010, 5).unwrap().1, [0x83, 0x3d, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn code_that_cannot_be_moved_is_refused() {
        let is_moved = |code: &[u8]| displace(code, 0x1000, 0x2000, 5).is_some();
        let moves = [0x48, 0x89, 0xf8, 0x48, 0x89, 0xf8];
        assert!(is_moved(&[&moves[..], &[0xc3]].concat()));
        assert!(!is_moved(&[0x74, 0, 0x90, 0x90, 0x90, 0xc3]), "a jump");
        assert!(!is_moved(&[0xe8, 0, 0, 0, 0, 0xc3]), "a call");
        assert!(!is_moved(&[0x48, 0x89, 0xf8, 0xc3]), "it ends before");
        assert!(!is_moved(&[0xc5, 0xf8, 0x77, 0x90, 0x90, 0xc3]), "it is not known");
        assert!(
            !is_moved(&[&moves[..], &[0xc5, 0xf8, 0x77]].concat()),
            "what follows is not known"
        );
        assert!(is_moved(&[&moves[..], &[0x75, 0xfe, 0xc3]].concat()), "a loop behind");
        assert!(!is_moved(&[&moves[..], &[0x75, 0xfb, 0xc3]].concat()), "a loop into it");
        assert!(!is_moved(&[&moves[..], &[0x0f, 0x84, 0xf4, 0xff, 0xff, 0xff]].concat()));
    }
}
