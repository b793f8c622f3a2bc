//! The HTML sheet in a real browser: headless Chromium opens it without a network.
//!
//! It fails at any message on the console (such as an uncaught error), any request outside the file, any reference that
//! would cause one, or fewer than two plots. First the detector itself is tested: it must find the defect in pages with
//! exactly one defect each, and accept a page without any.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{Context, needs, netlog};
use crate::tally::Tally;

/// Time limit of a page, which opens in half a second on an idle machine.
const ONE_PAGE: Duration = Duration::from_secs(60);
const ONE_SHEET: Duration = Duration::from_secs(150);
/// The least number of plots in a sheet.
const PLOTS: usize = 2;

/// The most sides on which a sheet with folded chapters prints.
const SIDES_MOST: usize = 4;

/// A page, and the words that must report its defect; none for the page without defects.
const PAGES: &[(&str, Option<&str>)] = &[
    ("<p>sound</p><svg></svg><svg></svg><a href='#top'>up</a>", None),
    ("<svg></svg><svg></svg><script>console.error('deliberate')</script>", Some("console: ")),
    ("<svg></svg><svg></svg><script>throw new Error('deliberate')</script>", Some("console: ")),
    ("<svg></svg><svg></svg><img src='missing.png'>", Some("refers to missing.png")),
    ("<svg></svg><svg></svg><style>p{background:url(missing.png)}</style>", Some("refers to missing.png")),
    ("<svg></svg><svg></svg><script>new Image().src='http://x.invalid/'</script>", Some("asked for http://x.invalid/")),
    ("<svg></svg>", Some("1 of at least 2 plots")),
];

pub(crate) fn check(context: &Context, name: &str) -> Tally {
    let mut tally = Tally::default();
    for (body, defect) in PAGES {
        let found = match open(context, &format!("{name} detector"), &page(body)) {
            Ok(found) => found,
            Err(why) => return Tally::fail(name, why, ""),
        };
        let right = match defect {
            Some(defect) => found.iter().any(|line| line.contains(defect)),
            None => found.is_empty(),
        };
        if !right {
            let expected = defect.unwrap_or("nothing");
            tally.failure(name, format!("the detector said {found:?} instead of {expected} about {body}"), "");
        }
    }
    if !tally.succeeded() {
        return tally;
    }
    let sheet = context.workspace.scratch("html").join("sheet.html");
    let _ = fs::remove_file(&sheet);
    let mut command = Command::new(context.workspace.release_binary("hairspring"));
    command.args(["sheet", "--quick", "--format", "html", "--out"]).arg(&sheet);
    let ended = context.run_at_most(&format!("{name} sheet"), &mut command, ONE_SHEET);
    if !ended.succeeded() {
        return Tally::fail(name, format!("hairspring sheet: {}", ended.how), ended.tail());
    }
    let found = fs::read_to_string(&sheet)
        .map_err(|error| format!("the sheet cannot be read: {error}"))
        .and_then(|text| open(context, name, &text));
    match found {
        Ok(found) if found.is_empty() => match printed_sides(context, name, &sheet) {
            Ok(1..=SIDES_MOST) => Tally::pass(),
            Ok(sides) => {
                Tally::fail(name, format!("{} prints on {sides} sides, not on 1 to {SIDES_MOST}", sheet.display()), "")
            }
            Err(why) => Tally::fail(name, why, ""),
        },
        Ok(found) => Tally::fail(name, format!("{} defects in {}", found.len(), sheet.display()), found.join("\n")),
        Err(why) => Tally::fail(name, why, ""),
    }
}

/// Prints a page to PDF, and counts the sides.
fn printed_sides(context: &Context, label: &str, page: &Path) -> Result<usize, String> {
    let browser = needs::chromium().ok_or("chromium is not installed")?;
    let folder = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
    let print = folder.path().join("page.pdf");
    let mut command = Command::new(browser);
    command.args(FLAGS).arg(flag("user-data-dir", &folder.path().join("profile")));
    command.arg("--no-pdf-header-footer").arg(flag("print-to-pdf", &print)).arg(format!("file://{}", page.display()));
    let ended = context.run_at_most(&format!("{label} print"), &mut command, ONE_PAGE);
    let print = fs::read(&print).map_err(|error| format!("chromium printed nothing: {error}\n{}", ended.tail()))?;
    Ok(sides(&print))
}

/// The number of pages of a PDF file written by Chromium.
fn sides(print: &[u8]) -> usize {
    const PAGE: &[u8] = b"/Type /Page\n";
    print.windows(PAGE.len()).filter(|part| *part == PAGE).count()
}

fn page(body: &str) -> String {
    format!("<!doctype html><html><head><title>page</title></head><body>{body}</body></html>")
}

/// Opens a page in a fresh profile and returns its defects.
fn open(context: &Context, label: &str, text: &str) -> Result<Vec<String>, String> {
    let browser = needs::chromium().ok_or("chromium is not installed")?;
    let folder = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
    let (file, network) = (folder.path().join("page.html"), folder.path().join("network.json"));
    fs::write(&file, text).map_err(|error| format!("write {}: {error}", file.display()))?;
    let picture = context.workspace.scratch("html").join("sheet.png");
    fs::create_dir_all(context.workspace.scratch("html")).map_err(|error| format!("a folder for pictures: {error}"))?;
    let mut command = Command::new(browser);
    command.args(FLAGS).arg(flag("user-data-dir", &folder.path().join("profile")));
    command.arg(flag("log-net-log", &network)).arg(flag("screenshot", &picture)).arg("--dump-dom");
    command.arg(format!("file://{}", file.display()));
    let ended = context.run_at_most(label, &mut command, ONE_PAGE);
    if !ended.succeeded() {
        return Err(format!("chromium: {}\n{}", ended.how, ended.tail()));
    }
    if !ended.output.contains("</html>") {
        return Err(format!("chromium did not print the page\n{}", ended.tail()));
    }
    let log = fs::read(&network).map_err(|error| format!("chromium left no network log: {error}"))?;
    let requests = netlog::requests_of_pages(&String::from_utf8_lossy(&log))?;
    Ok(defects(&ended.output, text, &requests))
}

const FLAGS: &[&str] = &[
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--enable-logging=stderr",
    "--v=0",
    "--window-size=1200,2400",
];

fn flag(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

/// `said` is the browser's log with the final document in it, `text` the page as written.
fn defects(said: &str, text: &str, requests: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in said.lines() {
        // The log writes `[…:INFO:CONSOLE:12] "message", source: …`, older browsers `CONSOLE(12)`.
        if line.starts_with('[')
            && let Some((_, message)) = line.split_once(":CONSOLE")
        {
            found.push(format!("console: {}", message.split_once(']').map_or(message, |(_, rest)| rest.trim())));
        }
    }
    found.extend(requests.iter().map(|address| format!("the page asked for {address}")));
    found.extend(references(text).into_iter().map(|address| format!("the page refers to {address}")));
    let plots = said.matches("<svg").count();
    if plots < PLOTS {
        found.push(format!("{plots} of at least {PLOTS} plots (svg elements)"));
    }
    found
}

/// References that make a browser load something: not anchors, embedded data, or links (`<a href>`), which load on a
/// click only.
fn references(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for tag in text.split('<').skip(1).filter_map(|rest| rest.split('>').next()) {
        let link = tag.starts_with("a ") || tag.starts_with("a\n");
        for attribute in ["src=", "href=", "srcset=", "poster=", "data="] {
            if link && attribute == "href=" {
                continue;
            }
            let values = tag.match_indices(attribute).filter(|(at, _)| {
                tag[..*at].ends_with([' ', '\n', ':', '"', '\'']) // not the end of a longer name
            });
            found.extend(values.map(|(at, _)| value(&tag[at + attribute.len()..], &[' ', '\n', '/'])));
        }
    }
    for begin in ["url(", "@import "] {
        found.extend(text.match_indices(begin).map(|(at, _)| value(&text[at + begin.len()..], &[')', ';'])));
    }
    found.retain(|address| !address.is_empty() && !address.starts_with('#') && !address.starts_with("data:"));
    found
}

/// An attribute's value: up to its closing quote, or to one of `ends` when it has none.
fn value(text: &str, ends: &[char]) -> String {
    let text = text.trim_start();
    let end = match text.chars().next() {
        Some(quote @ ('"' | '\'')) => return text[1..].split(quote).next().unwrap_or("").trim().to_owned(),
        _ => text.find(ends).unwrap_or(text.len()),
    };
    text[..end].trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_found_in_tags_and_styles() {
        let text = r##"<img src="a.png"><image xlink:href='b.png'/><link rel=x href=c.css><i style="background:url(d)">
            <a href="https://example.org">link</a><use href="#mark"/><img src="data:image/png;base64,AA">
            <p data-src="no"></p><style>@import "e.css";</style><b srcset="f.png 2x">"##;
        assert_eq!(references(text), ["a.png", "b.png", "c.css", "f.png 2x", "d", "e.css"]);
    }

    #[test]
    fn pages_are_counted_and_their_list_is_not() {
        let print = b"<</Type /Pages\n/Count 2>>\n<</Type /Page\n/Resources 1>>\n<</Type /Page\n>>";
        assert_eq!(sides(print), 2);
    }

    #[test]
    fn console_lines_requests_and_missing_plots_are_defects() {
        let said = "[1:2:0101/1.2:INFO:CONSOLE:1] \"boom\", source: file:///x (1)\n<svg></svg>\n";
        let found = defects(said, "<svg></svg>", &["http://x.invalid/".to_owned()]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("console: \"boom\""), "{found:?}");
        assert!(defects("<svg/><svg/>", "<svg/><svg/> CONSOLE", &[]).is_empty());
    }
}
