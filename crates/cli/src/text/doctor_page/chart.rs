//! The time line as a picture: heap, its part in use, RSS, and what the snapshots found reachable.

use heaptap_report::diagnosis::{Examined, TimelinePoint};
use heaptap_report::figures::units::{bytes, short_duration};

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 240.0;
/// Around the picture: left, top, right, bottom.
const MARGINS: [f64; 4] = [80.0, 10.0, 10.0, 30.0];

/// Maps times and sizes to places.
struct Scale {
    from: u64,
    to: u64,
    most: f64,
}

impl Scale {
    fn x(&self, at: u64) -> f64 {
        let room = WIDTH - MARGINS[0] - MARGINS[2];
        let passed = at.saturating_sub(self.from) as f64;
        MARGINS[0] + room * (passed / self.to.saturating_sub(self.from).max(1) as f64).min(1.0)
    }

    fn y(&self, bytes: f64) -> f64 {
        let room = HEIGHT - MARGINS[1] - MARGINS[3];
        MARGINS[1] + room * (1.0 - (bytes / self.most).clamp(0.0, 1.0))
    }
}

/// The picture; empty if there is nothing to show.
pub(super) fn time_line(examined: &Examined) -> String {
    type Figure = fn(&TimelinePoint) -> Option<u64>;
    const LINES: [(&str, &str, Figure); 3] = [
        ("RSS", "#8a8f98", |point| point.rss_bytes),
        ("heap", "#3b6fd4", |point| point.heap_bytes),
        ("in use", "#2a9d6f", |point| point.used_bytes),
    ];
    let points = &examined.timeline.points;
    let sizes = points.iter().flat_map(|point| LINES.map(|(_, _, figure)| figure(point)));
    let found = examined.snapshots.iter().map(|snapshot| Some(snapshot.reachable_bytes));
    let most = sizes.chain(found).flatten().max().unwrap_or(0);
    if most == 0 || examined.to_us <= examined.from_us {
        return String::new();
    }
    let scale = Scale { from: examined.from_us, to: examined.to_us, most: most as f64 };
    let mut text = format!(
        "<h2>Memory over time</h2>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"memory over time\" font-size=\"12\" fill=\"currentColor\">\n"
    );
    text += &axes(&scale);
    let mut legend = MARGINS[0] + 10.0;
    let mut add_legend = |text: &mut String, name: &str, colour: &str| {
        *text += &format!(
            "<text x=\"{legend}\" y=\"{}\" fill=\"{colour}\">{name}</text>\n",
            MARGINS[1] + 12.0
        );
        legend += 12.0 + 8.0 * name.len() as f64;
    };
    for (name, colour, figure) in LINES {
        let places: Vec<String> = points
            .iter()
            .filter_map(|point| {
                Some(format!("{:.1},{:.1}", scale.x(point.at_us), scale.y(figure(point)? as f64)))
            })
            .collect();
        if !places.is_empty() {
            text += &format!(
                "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" points=\"{}\"/>\n",
                places.join(" ")
            );
            add_legend(&mut text, name, colour);
        }
    }
    for snapshot in &examined.snapshots {
        text += &format!(
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"#c0392b\"><title>{} reachable</title></circle>\n",
            scale.x(snapshot.taken_us),
            scale.y(snapshot.reachable_bytes as f64),
            bytes(snapshot.reachable_bytes as f64)
        );
    }
    if !examined.snapshots.is_empty() {
        add_legend(&mut text, "reachable in snapshots", "#c0392b");
    }
    text + "</svg>\n"
}

fn axes(scale: &Scale) -> String {
    let mut text = String::new();
    for part in [0.0, 0.5, 1.0] {
        let y = scale.y(part * scale.most);
        text += &format!(
            "<line x1=\"{}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"currentColor\" stroke-opacity=\"0.2\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
            MARGINS[0],
            WIDTH - MARGINS[2],
            MARGINS[0] - 8.0,
            y + 4.0,
            bytes(part * scale.most)
        );
    }
    let time = scale.to.saturating_sub(scale.from);
    for part in [0.0, 0.5, 1.0] {
        let at = (time as f64 * part) as u64;
        let anchor = if part == 0.0 {
            "start"
        } else if part == 1.0 {
            "end"
        } else {
            "middle"
        };
        text += &format!(
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>\n",
            scale.x(scale.from.saturating_add(at)),
            HEIGHT - 8.0,
            if at == 0 { "0 s".to_owned() } else { short_duration(at as f64) }
        );
    }
    text
}
