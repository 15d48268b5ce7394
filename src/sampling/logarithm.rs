//! A logarithm that the compiler can vectorise.
//!
//! The logarithm of the C library is a call with branches for each argument. This one has
//! neither calls nor branches, so the compiler computes several at a time (bench `gap` in
//! `benches/sampling.rs`). It only uses sums, products and quotients, which IEEE 754 rounds
//! the same way everywhere: a seed gives the same gaps on every machine.
//!
//! Write the argument as 2ᵏ·m with m between √½ and √2, and let s = (m − 1) ÷ (m + 1). Then
//! ln m = 2 artanh s = 2 (s + s³ ÷ 3 + s⁵ ÷ 5 + …) (Abramowitz and Stegun, *Handbook of
//! Mathematical Functions*, 4.1.27). As |s| < 0.172, the terms after s¹⁷ ÷ 17 are less than
//! 10⁻¹⁵ of the sum. Uniforms close to 1 have k = 0, so their logarithms, which are close to
//! 0, have the same relative accuracy.

use std::f64::consts::LN_2;

/// The number of fraction bits of an `f64`.
const FRACTION: u32 = f64::MANTISSA_DIGITS - 1;

/// The bits of √½, the smallest m.
const LEAST: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();

/// The stored (biased) exponent of 1.
const EXPONENT_OF_1: u64 = 1.0f64.to_bits() >> FRACTION;

/// 2⁵²: an integer below 2⁵² in its fraction bits is added to it.
const WHOLE: f64 = (1u64 << FRACTION) as f64;

/// −ln((r + ½) ÷ 2⁶⁴): from 0 to 45.1.
#[inline]
pub(super) fn minus_ln_uniform(r: u64) -> f64 {
    let bits = (r as f64 + 0.5).to_bits();
    // Shifted so that the exponent changes at √½ instead of 1.
    let from_1 = bits.wrapping_sub(LEAST).wrapping_add(1.0f64.to_bits());
    let exponent = f64::from_bits(WHOLE.to_bits() | from_1 >> FRACTION);
    let m = f64::from_bits(LEAST + (from_1 & ((1 << FRACTION) - 1)));
    let halvings = WHOLE + (EXPONENT_OF_1 + 64) as f64 - exponent;
    let s = (m - 1.0) / (m + 1.0);
    halvings * LN_2 - 2.0 * (s + s * s * s * series(s * s))
}

/// ⅓ + z ÷ 5 + z² ÷ 7 + … + z⁷ ÷ 17. In two halves, whose latencies overlap, instead of
/// Horner's scheme.
#[inline]
fn series(z: f64) -> f64 {
    let z2 = z * z;
    let first = (1.0 / 3.0 + z * (1.0 / 5.0)) + z2 * (1.0 / 7.0 + z * (1.0 / 9.0));
    let second = (1.0 / 11.0 + z * (1.0 / 13.0)) + z2 * (1.0 / 15.0 + z * (1.0 / 17.0));
    first + z2 * z2 * second
}

/// The floor of `value`, which is from 0 to 2³². `f64::floor` is a call on amd64 before
/// SSE4.1.
#[inline]
pub(super) fn floor(value: f64) -> u32 {
    // At this magnitude there are no fraction bits; the sum may have been rounded up.
    let sum = value + WHOLE;
    let up = sum - WHOLE > value;
    (sum.to_bits() as u32).wrapping_sub(u32::from(up))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The largest relative error allowed: a few units in the last place.
    const TOLERANCE: f64 = 2e-15;

    fn off(r: u64) -> f64 {
        let uniform = (r as f64 + 0.5) * 2f64.powi(-64);
        let exact = -uniform.ln();
        let ours = minus_ln_uniform(r);
        if exact == ours { 0.0 } else { (ours - exact).abs() / exact }
    }

    #[test]
    fn it_is_accurate_at_both_ends_and_near_powers_of_two() {
        assert_eq!(minus_ln_uniform(u64::MAX), 0.0);
        assert!((minus_ln_uniform(0) / (65.0 * LN_2) - 1.0).abs() < TOLERANCE);
        for bit in 0..64 {
            for near in -3000..3000 {
                let r = (1u64 << bit).wrapping_add_signed(near);
                let root = (2f64.powi(bit) * f64::sqrt(2.0)) as u64;
                for r in [r, root.wrapping_add_signed(near)] {
                    assert!(off(r) < TOLERANCE, "{r}: {}", off(r));
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn it_agrees_with_the_library(r: u64, smaller in 0..64u32) {
            prop_assert!(off(r >> smaller) < TOLERANCE, "small {}", off(r >> smaller));
            let near_1 = !(r >> smaller);
            prop_assert!(off(near_1) < TOLERANCE, "near 1 {}", off(near_1));
        }

        #[test]
        fn it_agrees_with_the_librarys_floor(value in 0.0..4e9f64, whole: u32) {
            prop_assert_eq!(floor(value), value.floor() as u32);
            let whole = f64::from(whole);
            for value in [whole, whole.next_down().max(0.0), whole.next_up()] {
                prop_assert_eq!(floor(value), value.floor() as u32);
            }
        }
    }
}
