//! The live size over time, in one line or many.

use heaptap_report::figures::units::{bytes, short_duration};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use crate::text::terminal::{HEIGHTS, fit, pad, width};
use crate::verbs::top::session::LiveSize;

/// The columns of the scale at the left.
pub(super) const SCALE: usize = 11;

/// The largest live size in each column.
fn columns_of(size: &LiveSize, columns: usize) -> Vec<f64> {
    let (buckets, columns) = (size.most_bytes.len(), columns.max(1));
    let largest = |column: usize| {
        let from = column * buckets / columns;
        let to = ((column + 1) * buckets / columns).max(from + 1);
        size.most_bytes.get(from..to).unwrap_or_default().iter().fold(0.0, |a: f64, &b| a.max(b))
    };
    if buckets == 0 { Vec::new() } else { (0..columns).map(largest).collect() }
}

/// A line of bars.
pub(super) fn strip(size: &LiveSize, columns: usize) -> Vec<char> {
    let values = columns_of(size, columns);
    let most = values.iter().fold(0.0_f64, |most, &value| most.max(value));
    values.into_iter().map(|value| bar(value, most)).collect()
}

/// The bar of a value, from 0 to the largest.
pub(super) fn bar(value: f64, most: f64) -> char {
    let height = if most > 0.0 { (value / most * 7.0).round() as usize } else { 0 };
    HEIGHTS[height.min(7)]
}

/// The column of a moment; `None` if it is the latest.
pub(super) fn cursor_column(size: &LiveSize, moment: Option<u64>, columns: usize) -> Option<usize> {
    let bucket = moment? / size.bucket_us.max(1);
    let buckets = size.most_bytes.len().max(1) as u64;
    let column = bucket.min(buckets - 1) * columns as u64 / buckets;
    Some(column as usize)
}

/// What a chart shows.
#[derive(Clone, Copy)]
pub(super) struct ChartOf<'a> {
    pub(super) size: &'a LiveSize,
    /// The moment in view.
    pub(super) moment: Option<u64>,
    /// The filter that selects the blocks, escaped.
    pub(super) filter: Option<&'a str>,
}

/// A chart of `height` lines, with a scale at its left and below.
pub(super) fn chart(of: ChartOf<'_>, columns: usize, height: usize) -> Vec<Line<'static>> {
    let ChartOf { size, moment, filter } = of;
    let room = columns.saturating_sub(SCALE + 2).max(1);
    let values = columns_of(size, room);
    let most = values.iter().fold(0.0_f64, |most, &value| most.max(value));
    let cursor = cursor_column(size, moment, values.len());
    let rows = height.saturating_sub(2).max(1);
    let blocks = match filter {
        None => "all blocks".to_owned(),
        Some(pattern) => format!("blocks that match /{pattern}/"),
    };
    let title = fit(&format!("live size over time, {blocks}"), room);
    let mut lines = vec![Line::styled(
        format!("{:>SCALE$} {title}", ""),
        Style::new().add_modifier(Modifier::BOLD),
    )];
    for row in 0..rows {
        // From the top: the part of the largest value that is below this row.
        let below = (rows - 1 - row) as f64;
        let label = match row {
            0 => bytes(most),
            _ if row + 1 == rows => bytes(0.0),
            _ if rows > 4 && row == rows / 2 => bytes(most * (below + 0.5) / rows as f64),
            _ => String::new(),
        };
        let mut spans = vec![Span::raw(format!("{label:>SCALE$} "))];
        for (column, &value) in values.iter().enumerate() {
            let eighths = if most > 0.0 { value / most * (rows * 8) as f64 } else { 0.0 };
            let part = (eighths - below * 8.0).round().clamp(0.0, 8.0) as usize;
            let style = match Some(column) == cursor {
                true => Style::new().add_modifier(Modifier::REVERSED),
                false => Style::new(),
            };
            let bar = part.checked_sub(1).map_or(' ', |height| HEIGHTS[height]);
            spans.push(Span::styled(bar.to_string(), style));
        }
        lines.push(Line::from(spans));
    }
    let end = short_duration((size.bucket_us.saturating_mul(size.most_bytes.len() as u64)) as f64);
    let below = pad("0", room.saturating_sub(width(&end)));
    lines.push(Line::raw(format!("{:>SCALE$} {below}{end}", "")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size() -> LiveSize {
        let most_bytes = (0..100).map(f64::from).collect();
        LiveSize { bucket_us: 8, most_bytes, ..LiveSize::default() }
    }

    fn of(size: &LiveSize, moment: Option<u64>) -> ChartOf<'_> {
        ChartOf { size, moment, filter: None }
    }

    #[test]
    fn bars_show_the_largest_value_of_their_columns() {
        assert_eq!(columns_of(&size(), 4), [24.0, 49.0, 74.0, 99.0]);
        assert_eq!(columns_of(&size(), 200)[..4], [0.0, 0.0, 1.0, 1.0]);
        assert_eq!(strip(&size(), 4), [2, 3, 5, 7].map(|height| HEIGHTS[height]));
        assert_eq!(strip(&LiveSize::default(), 4), []);
    }

    /// A program that allocates nothing stays where it is, however long that lasts.
    #[test]
    fn the_live_size_goes_on_without_samples() {
        let mut size = size();
        size.extend_to(799);
        assert_eq!((size.bucket_us, size.most_bytes.len()), (8, 100));
        size.extend_to(60_000_000);
        let (buckets, wide) = (size.most_bytes.len() as u64, size.bucket_us);
        assert!(
            buckets <= 2048 && (buckets - 1) * wide <= 60_000_000 && buckets * wide > 60_000_000
        );
        assert_eq!((size.most_bytes[0], size.most_bytes.last()), (99.0, Some(&0.0)));
        let mut nothing = LiveSize::default();
        nothing.extend_to(u64::MAX);
        assert!(nothing.most_bytes.is_empty());
        let mut size = LiveSize { bucket_us: 1, most_bytes: vec![5.0], ..LiveSize::default() };
        size.extend_to(u64::MAX);
        assert!(size.most_bytes.len() <= 2048);
    }

    #[test]
    fn the_cursor_is_at_its_moment() {
        assert_eq!(cursor_column(&size(), None, 10), None);
        assert_eq!(cursor_column(&size(), Some(0), 10), Some(0));
        assert_eq!(cursor_column(&size(), Some(400), 10), Some(5));
        assert_eq!(cursor_column(&size(), Some(u64::MAX), 10), Some(9));
        assert_eq!(cursor_column(&LiveSize::default(), Some(7), 10), Some(0));
    }

    #[test]
    fn a_chart_has_scales_and_no_line_too_long() {
        for (columns, height) in [(1, 1), (60, 10), (80, 20), (200, 50)] {
            let lines = chart(of(&size(), Some(400)), columns, height);
            assert!(lines.iter().all(|line| columns < 20 || line.width() <= columns));
            assert_eq!(lines.len(), height.max(3));
        }
        let text: Vec<String> =
            chart(of(&size(), None), 60, 6).iter().map(ToString::to_string).collect();
        assert!(text[1].contains("99 bytes") && text[4].contains("0 bytes"), "{text:#?}");
        assert!(text[1].ends_with(HEIGHTS[7]) && text[4].ends_with(HEIGHTS[7]), "{text:#?}");
        assert!(text[1].contains("bytes  ") && text[5].trim_end().ends_with("µs"), "{text:#?}");
    }
}
