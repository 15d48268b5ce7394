//! How much of a stack is that of the stack before.

use heaptap_trace::Code;

/// The number of leading frames that two stacks share. The prefix that the file
/// states is right unless part of the file was lost.
pub(super) fn common_prefix(last: &[Code], codes: &[Code], stated: usize) -> usize {
    let stated = stated.min(last.len()).min(codes.len());
    if last[..stated] == codes[..stated] {
        return stated;
    }
    last.iter().zip(codes).take_while(|(last, code)| last == code).count()
}

#[cfg(test)]
mod tests {
    use super::common_prefix;

    #[test]
    fn what_the_file_states_of_a_prefix_is_checked() {
        assert_eq!(common_prefix(&[1, 2, 3], &[1, 2, 4], 2), 2);
        // Something was lost in between.
        assert_eq!(common_prefix(&[1, 5, 3], &[1, 2, 3], 3), 1);
        assert_eq!(common_prefix(&[1], &[1, 2, 3], 9), 1);
        assert_eq!(common_prefix(&[], &[1], 1), 0);
    }
}
