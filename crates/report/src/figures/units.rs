//! Times, durations and sizes for people to read.

/// A time in UTC, to the microsecond.
pub fn utc(micros: u64) -> String {
    let seconds = micros / 1_000_000;
    let (year, month, day) = civil_date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let fraction = micros % 1_000_000;
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{fraction:06} UTC")
}

/// The date that many days after 1970-01-01: Howard Hinnant's
/// `civil_from_days`, for days that are not negative.
fn civil_date(days: u64) -> (u64, u64, u64) {
    // Years begin in March here, so that the leap day comes last.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// A duration, in the largest unit that keeps it above 1.
pub fn duration(micros: u64) -> String {
    let seconds = micros as f64 / 1e6;
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{:.3} ms", seconds * 1e3),
        1_000_000..60_000_000 => format!("{seconds:.3} s"),
        60_000_000..3_600_000_000 => format!("{:.1} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

/// The same to three digits or so, of an estimate in microseconds.
pub fn short_duration(micros: f64) -> String {
    let (value, unit) = match micros {
        ..1e3 => (micros, "µs"),
        ..1e6 => (micros / 1e3, "ms"),
        ..6e7 => (micros / 1e6, "s"),
        ..3.6e9 => (micros / 6e7, "min"),
        _ => (micros / 3.6e9, "h"),
    };
    let digits = if value >= 99.95 || unit == "µs" { 0 } else { 1 };
    format!("{value:.digits$} {unit}")
}

/// A number of bytes in binary units.
pub fn bytes(count: f64) -> String {
    const UNITS: [&str; 7] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = count;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if unit == 0 { 0 } else { 1 };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// A share as a percentage, with as many digits as its size needs.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent.abs() {
        0.0 => "0 %".to_owned(),
        size if size < 0.995 => format!("{percent:.2} %"),
        _ => format!("{percent:.1} %"),
    }
}

/// A count and what is counted.
pub fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01 00:00:00.000000 UTC");
        assert_eq!(utc(951_782_400_000_001), "2000-02-29 00:00:00.000001 UTC");
        assert_eq!(utc(1_586_965_711_174_340), "2020-04-15 15:48:31.174340 UTC");
        assert_eq!(utc(4_107_542_399_000_000), "2100-02-28 23:59:59.000000 UTC");
        assert_eq!(utc(4_107_542_400_000_000), "2100-03-01 00:00:00.000000 UTC");
        // The largest time a trace can hold.
        assert_eq!(utc(i64::MAX as u64), "294247-01-10 04:00:54.775807 UTC");
    }

    #[test]
    fn durations_and_sizes_choose_their_unit() {
        assert_eq!(duration(7), "7 µs");
        assert_eq!(duration(851_795), "851.795 ms");
        assert_eq!(duration(90_000_000), "1.5 min");
        assert_eq!(short_duration(1227.4), "1.2 ms");
        assert_eq!(short_duration(934_703.0), "935 ms");
        assert_eq!(short_duration(0.4), "0 µs");
        assert_eq!(short_duration(5.4e9), "1.5 h");
        assert_eq!(bytes(0.0), "0 bytes");
        assert_eq!(bytes(1023.0), "1023 bytes");
        assert_eq!(bytes(1536.0), "1.5 KiB");
        assert_eq!(bytes(f64::from(1u32 << 31)), "2.0 GiB");
        assert_eq!(percent(0.1234), "12.3 %");
        assert_eq!(percent(0.00123), "0.12 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(count(1, "packet", "packets"), "1 packet");
        assert_eq!(count(0, "packet", "packets"), "0 packets");
    }
}
