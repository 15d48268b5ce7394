//! What a trace may cost.

/// The lowest and the highest budget, in per cent.
pub const BUDGETS: std::ops::RangeInclusive<f64> = 0.01..=50.0;

/// What a value may be, for messages.
pub(crate) const SYNTAX: &str =
    "a share of the program's processor time with its percent sign, from 0.01% to 50%, such as 1%";

/// The share that a value such as `1%` asks for: 0.01. A number without a percent sign is none, since
/// `1` could be meant either way.
pub fn budget(value: &str) -> Option<f64> {
    let percent = value.trim().strip_suffix('%')?;
    let is_plain = percent.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let percent: f64 = percent.parse().ok().filter(|_| is_plain)?;
    BUDGETS.contains(&percent).then_some(percent / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_has_its_percent_sign() {
        for (text, share) in [("1%", 0.01), (" 0.5% ", 0.005), ("50%", 0.5), ("0.01%", 1e-4)] {
            assert_eq!(budget(text), Some(share), "{text}");
        }
        for text in [
            "", "%", "1", "0.01", "0%", "0.009%", "51%", "200%", "-1%", "nan%", "inf%", "1e0%",
            "1 %", "1%%",
        ] {
            assert_eq!(budget(text), None, "{text}");
        }
    }
}
