//! The page of a diagnosis: one file without scripts, which says everything that was found and on what it rests.
//!
//! Names come from the program and from files: every text goes through [`html`].

mod chart;

use heaptap_report::diagnosis::{Diagnosis, Finding, GainedSite, HolderGrowth, Outcome};
use heaptap_report::figures::units::{bytes, count, percent, short_duration, utc};
use heaptap_report::rows::Site;

use crate::text::escape::Escaped;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:64em;padding:0 1em;\
color:#1b1f24;background:#fff}h1{font-size:1.5em;margin-bottom:.2em}h2{font-size:1.15em;margin-top:2em}\
table{border-collapse:collapse;margin:.6em 0}td,th{text-align:left;padding:.15em 1.2em .15em 0;vertical-align:top}\
td.n,th.n{text-align:right}pre,code,.name{font:13px/1.45 ui-monospace,monospace}pre{background:#f5f6f8;\
padding:.6em;overflow-x:auto}.hot{background:#ffe9c7;display:block}.found{color:#a11}.fine{color:#176b2c}\
.unsure{color:#7a5200}.faint{color:#667}section{border-top:1px solid #ddd;margin-top:1.4em}\
svg{max-width:100%;height:auto}.sure{background:#a11}.likely{background:#c06a00}.possible,.note{background:#667}\
.tag{color:#fff;border-radius:3px;padding:0 .5em;font-size:.85em}\
@media(prefers-color-scheme:dark){body{background:#15181c;color:#dde}pre{background:#1f242a}.hot{background:#4a3a12}\
section{border-color:#333}.found{color:#ff8a80}.fine{color:#7ddc96}.unsure{color:#f0c36d}.faint{color:#99a}}";

/// The page.
pub(crate) fn page(diagnosis: &Diagnosis) -> String {
    let program = html(&diagnosis.examined.program);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <title>heaptap doctor: {program}</title><style>{STYLE}</style></head><body>\n"
    );
    page += &head(diagnosis);
    page += &chart::time_line(&diagnosis.examined);
    page += &findings(&diagnosis.findings);
    page += &holders(diagnosis);
    page += &examined(diagnosis);
    page += "</body></html>\n";
    page
}

/// Text that can neither begin an element nor write to a terminal, if the page is shown on one.
pub(super) fn html(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in Escaped(text.as_bytes()).to_string().chars() {
        match c {
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '&' => safe += "&amp;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            c => safe.push(c),
        }
    }
    safe
}

fn head(diagnosis: &Diagnosis) -> String {
    let examined = &diagnosis.examined;
    let class = match diagnosis.verdict.outcome {
        Outcome::Found => "found",
        Outcome::NothingWrong => "fine",
        Outcome::CannotTell => "unsure",
    };
    let pid = examined.pid.map_or_else(String::new, |pid| format!(", process {pid}"));
    let time = short_duration(examined.to_us.saturating_sub(examined.from_us) as f64);
    let command = diagnosis.verdict.command.as_ref();
    let command = command.map(|command| format!("<p>Try <code>{}</code></p>", html(command)));
    format!(
        "<h1 class=\"{class}\">{}</h1><p class=\"faint\">{}{pid}, watched for {time} from {}</p>{}\n",
        html(&diagnosis.verdict.sentence),
        html(&examined.program),
        html(&utc(examined.from_us)),
        command.unwrap_or_default()
    )
}

fn findings(findings: &[Finding]) -> String {
    let mut text = "<h2>Findings</h2>\n".to_owned();
    if findings.is_empty() {
        text += "<p>None.</p>\n";
    }
    findings.iter().for_each(|one| text += &finding(one));
    text
}

fn finding(finding: &Finding) -> String {
    let tag = if finding.is_problem { finding.certainty.name() } else { "note" };
    let mut text = format!(
        "<section><p><span class=\"tag {tag}\">{tag}</span> {}</p>\n",
        html(&finding.sentence)
    );
    if let Some(holder) = &finding.holder {
        text += &held(holder);
    }
    let mut facts = Vec::new();
    facts.extend(finding.bytes_per_second.map(|rate| format!("grows by {}/s", bytes(rate))));
    facts.extend(finding.since_us.map(|since| format!("since {}", utc(since))));
    facts.extend(finding.full_in_us.map(|full| format!("memory lasts {}", short_duration(full))));
    if !facts.is_empty() {
        text += &format!("<p>{}</p>\n", html(&facts.join("; ")));
    }
    if let Some(advice) = &finding.advice {
        text += &format!("<p>{}</p>\n", html(advice));
    }
    finding.sites.iter().for_each(|one| text += &site(one));
    text + "</section>\n"
}

fn held(holder: &HolderGrowth) -> String {
    let sizes: Vec<String> = holder.sizes.iter().map(|size| bytes(*size as f64)).collect();
    let path = match holder.elements {
        Some(elements) => {
            let blocks = count(elements, "block", "blocks");
            format!("<br><span class=\"name\">{}</span>, {blocks}", html(&holder.path.join(" > ")))
        }
        None => String::new(),
    };
    format!(
        "<p>Held by <span class=\"name\">{}</span>: {} ({} of all growth){path}</p>\n",
        html(&holder.name),
        html(&sizes.join(" → ")),
        percent(holder.share_of_growth)
    )
}

fn site(site: &GainedSite) -> String {
    let via =
        site.via.as_ref().map(|via| format!(" via <span class=\"name\">{}</span>", named(via)));
    let mut text = format!(
        "<p>Allocated at <span class=\"name\">{}</span>{}: {} gained, {} of the growth, the oldest {} ago</p>\n",
        named(&site.site),
        via.unwrap_or_default(),
        bytes(site.gained_bytes),
        percent(site.share),
        short_duration(site.oldest_us as f64)
    );
    if !site.called_from.is_empty() {
        let callers: Vec<String> = site.called_from.iter().map(named).collect();
        text += &format!(
            "<p class=\"faint\">called from <span class=\"name\">{}</span></p>\n",
            callers.join(" &lt; ")
        );
    }
    if let Some(source) = &site.source {
        text += "<pre>";
        for (number, line) in (source.first..).zip(&source.lines) {
            let line = format!("{number:>5}  {}", html(line));
            if number == site.site.line {
                text += &format!("<span class=\"hot\">{line}</span>");
            } else {
                text += &line;
                text.push('\n');
            }
        }
        text += "</pre>\n";
    }
    text
}

fn named(site: &Site) -> String {
    let (name, more) = site.parts();
    if more.is_empty() { html(&name) } else { format!("{} ({})", html(&name), html(&more)) }
}

/// The holders of the last snapshot beside those of the first.
fn holders(diagnosis: &Diagnosis) -> String {
    let snapshots = &diagnosis.examined.snapshots;
    let (Some(first), Some(last)) = (snapshots.first(), snapshots.last()) else {
        return String::new();
    };
    let mut text =
        "<h2>Who holds the memory</h2>\n<table><tr><th>Holder</th><th class=\"n\">first</th>\
                    <th class=\"n\">last</th><th class=\"n\">outside the heap</th></tr>\n"
            .to_owned();
    for holder in &last.holders {
        let before = first.holders.iter().find(|before| before.name == holder.name);
        let before = before.map_or_else(|| "-".to_owned(), |before| bytes(before.bytes as f64));
        text += &format!(
            "<tr><td class=\"name\">{}</td><td class=\"n\">{before}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
            html(&holder.name),
            bytes(holder.bytes as f64),
            bytes(holder.outside_bytes as f64)
        );
    }
    text += "</table>\n";
    for pile in &last.piles {
        text += &format!("<p>{}</p>\n", html(&pile.text));
    }
    text
}

fn examined(diagnosis: &Diagnosis) -> String {
    let examined = &diagnosis.examined;
    let mut text = "<h2>What was looked at</h2>\n".to_owned();
    if let Some(trace) = &examined.trace {
        text += &format!(
            "<p>The trace <span class=\"name\">{}</span>, {} at rate {}. Alone it says: {}</p>\n",
            html(&trace.file),
            short_duration(trace.duration_us as f64),
            trace.rate,
            html(&trace.verdict)
        );
    }
    if !examined.snapshots.is_empty() {
        text += "<table><tr><th>Snapshot</th><th>at</th><th class=\"n\">reachable</th><th class=\"n\">garbage</th>\
                 <th class=\"n\">outside</th></tr>\n";
    }
    for snapshot in &examined.snapshots {
        let at = snapshot.taken_us.saturating_sub(examined.from_us);
        text += &format!(
            "<tr><td class=\"name\">{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
            html(&snapshot.file),
            short_duration(at as f64),
            bytes(snapshot.reachable_bytes as f64),
            bytes(snapshot.garbage_bytes as f64),
            bytes(snapshot.outside_bytes as f64)
        );
    }
    if !examined.snapshots.is_empty() {
        text += "</table>\n";
    }
    for remark in &diagnosis.remarks {
        text += &format!("<p class=\"faint\">{}</p>\n", html(remark));
    }
    text
}

#[cfg(test)]
mod tests {
    use heaptap_report::diagnosis::{Evidence, HolderSize, SnapshotEvidence, diagnose};

    use super::*;

    #[test]
    fn no_name_begins_an_element() {
        let hostile = "<script>alert(1)</script>\"'&\u{1b}";
        let holder =
            |bytes| HolderSize { name: hostile.to_owned(), bytes, ..HolderSize::default() };
        let snapshot = |at: u64| SnapshotEvidence {
            file: hostile.to_owned(),
            taken_us: (1 + at) * 10_000_000,
            reachable_bytes: (1 + at) << 20,
            holders: vec![holder((1 + at) << 20)],
            ..SnapshotEvidence::default()
        };
        let evidence = Evidence {
            program: hostile.to_owned(),
            snapshots: (0..6).map(snapshot).collect(),
            remarks: vec![hostile.to_owned()],
            ..Evidence::default()
        };
        let diagnosis = diagnose(&evidence);
        assert_eq!(diagnosis.verdict.outcome, Outcome::Found);
        let page = page(&diagnosis);
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;"), "{page}");
        assert!(!page.contains("<script") && !page.contains('\u{1b}'), "{page}");
        assert!(page.contains("<svg") && page.contains("class=\"found\""));
    }
}
