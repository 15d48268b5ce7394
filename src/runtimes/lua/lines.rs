//! The line of an instruction.
//!
//! A function has for each instruction the difference of its line to the one before, and now and
//! then a line as it is (`ldebug.c`, Lua 5.4.4). Runs in hooks.

use super::layout::Proto;

/// Means that the line of this instruction is in the other table (`ABSLINEINFO`).
const ABSOLUTE: i8 = -0x80;

/// The line of an instruction; 0 if the chunk was stripped.
pub(super) fn line_of(proto: Proto, index: usize) -> u32 {
    let Some((mut at, mut line)) = start(proto, index) else { return 0 };
    while at < index {
        at += 1;
        match proto.line_difference(at) {
            Some(ABSOLUTE) | None => return 0,
            Some(difference) => line = line.wrapping_add(i32::from(difference)),
        }
    }
    u32::try_from(line).unwrap_or(0)
}

/// The last instruction up to this one whose line is known as it is, and that line. Before the
/// first instruction the line is that of the function.
fn start(proto: Proto, index: usize) -> Option<(usize, i32)> {
    proto.line_difference(index)?;
    let (mut low, mut high) = (0, 0);
    while proto.absolute_line(high).is_some() {
        high = high * 2 + 1;
    }
    // Which entries are at or before the instruction.
    while low < high {
        let middle = low + (high - low) / 2;
        match proto.absolute_line(middle) {
            Some((at, _)) if at <= index => low = middle + 1,
            _ => high = middle,
        }
    }
    match low.checked_sub(1) {
        Some(last) => proto.absolute_line(last),
        None => {
            let first = proto.line_difference(0)?;
            let defined = i32::try_from(proto.line_defined()).ok()?;
            Some((0, defined.wrapping_add(i32::from(first))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `Proto` with these tables, as far as lines go.
    fn with_proto(defined: i32, differences: &[i8], absolute: &[[i32; 2]], test: impl Fn(Proto)) {
        let mut memory = [0u64; 16];
        let ints = |low: i32, high: i32| u64::from(low as u32) | u64::from(high as u32) << 32;
        memory[3] = ints(differences.len() as i32, differences.len() as i32);
        memory[5] = ints(absolute.len() as i32, defined);
        memory[11] = differences.as_ptr() as u64;
        memory[12] = absolute.as_ptr() as u64;
        // SAFETY: as large as a `Proto`, with tables of these lengths.
        test(unsafe { Proto::at(memory.as_ptr() as usize) });
    }

    #[test]
    fn differences_add_up_from_the_nearest_known_line() {
        let differences = [1, 0, 2, ABSOLUTE, -1, 3, ABSOLUTE, 0];
        with_proto(10, &differences, &[[3, 500], [6, 7]], |proto| {
            let lines: Vec<_> = (0..9).map(|index| line_of(proto, index)).collect();
            assert_eq!(lines, [11, 11, 13, 500, 499, 502, 7, 7, 0]);
        });
    }

    #[test]
    fn a_stripped_function_has_no_lines() {
        with_proto(10, &[], &[], |proto| assert_eq!(line_of(proto, 0), 0));
    }
}
