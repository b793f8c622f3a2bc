//! `docs/commands.md`: every command with its arguments, examples, exit codes and environment, from the manual pages
//! that the command prints.
//!
//! A manual page is roff. This file turns the parts of roff that clap and the command write into Markdown: sections,
//! terms with their meaning, lists, examples. The generation fails at anything else, so that no text is lost silently.

/// The manual page of a command.
pub(super) struct Manual {
    /// Without `hairspring`; empty for the command as a whole.
    pub(super) name: String,
    pub(super) roff: String,
}

const OPENING: &str = "# Commands

`hairspring COMMAND --help` prints the same, and `man hairspring-COMMAND` where it is installed. [Exit codes](exit-codes.md) have a page of their own.
";

/// The page, from the manual pages.
pub(super) fn page(manuals: &[Manual]) -> Result<String, String> {
    let mut page = OPENING.to_owned();
    for manual in manuals {
        let title =
            if manual.name.is_empty() { "hairspring".to_owned() } else { format!("hairspring {}", manual.name) };
        page += &format!("\n## {title}\n");
        page += &markdown(&manual.roff).map_err(|line| format!("set the manual of {title} as Markdown: {line:?}"))?;
    }
    Ok(page)
}

/// The commands in the manual of the command as a whole.
pub(super) fn names(roff: &str) -> Vec<String> {
    let lines = roff.lines().filter(|line| line.contains("hairspring\\-") && line.contains("(1)"));
    let names = lines.map(plain).filter(|line| !line.contains(','));
    names.filter_map(|line| Some(line.strip_prefix("hairspring-")?.strip_suffix("(1)")?.to_owned())).collect()
}

/// A manual page as Markdown, without its title and name; or the line that cannot be converted.
fn markdown(roff: &str) -> Result<String, String> {
    let mut page = Page { text: String::new(), paragraph: String::new(), shape: Shape::Plain };
    let (mut section, mut is_term, mut is_literal, mut is_nested) = (String::new(), false, false, false);
    for line in roff.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            ".TH" | ".ie" | ".el" | ".br" | ".nh" | ".ad" | "" => {}
            ".RS" => is_nested = rest.is_empty(),
            ".SH" | ".SS" => {
                page.begin(Shape::Plain);
                section = plain(rest.trim_matches('"'));
                // The name is the heading, and the description follows it.
                if !matches!(section.as_str(), "NAME" | "DESCRIPTION" | "SYNOPSIS" | "VERSION") {
                    page.text += &format!("\n**{}**\n", sentence(&section));
                }
            }
            ".PP" => page.begin(Shape::Plain),
            ".IP" => page.begin(Shape::Item),
            ".RE" if is_nested => {
                page.begin(Shape::Plain);
                is_nested = false;
            }
            ".RE" => page.begin(if page.shape == Shape::Item { Shape::Rest } else { Shape::Plain }),
            ".TP" => {
                page.begin(if is_nested { Shape::Item } else { Shape::Term });
                is_term = true;
            }
            ".nf" => {
                page.begin(Shape::Plain);
                page.text += "\n```text\n";
                is_literal = true;
            }
            ".fi" => {
                page.text += "```\n";
                is_literal = false;
            }
            _ if word.starts_with('.') => return Err(line.to_owned()),
            _ if section == "NAME" || section == "VERSION" => {}
            _ if is_literal => page.text += &format!("{}\n", plain(line)),
            _ if section == "SYNOPSIS" => page.text += &format!("\n```text\n{}\n```\n", plain(line).trim_end()),
            _ if is_term && is_nested => {
                page.paragraph = format!("{}:", named(&plain(line)));
                is_term = false;
            }
            _ if is_term => {
                let (name, default) = line
                    .split_once(" [default")
                    .map_or((line, String::new()), |(name, default)| (name, format!(" [default{}", marked(default))));
                page.text += &format!("\n{}{default}\n", named(&plain(name)));
                is_term = false;
            }
            _ => {
                let space = if page.paragraph.is_empty() { "" } else { " " };
                page.paragraph += &format!("{space}{}", marked(line));
            }
        }
    }
    page.begin(Shape::Plain);
    Ok(page.text)
}

/// The place of a paragraph.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Plain,
    /// The meaning of a term.
    Term,
    /// An item of a list within it.
    Item,
    /// Text after such a list.
    Rest,
}

struct Page {
    text: String,
    paragraph: String,
    shape: Shape,
}

impl Page {
    /// Ends the paragraph, and begins one of this shape.
    fn begin(&mut self, next: Shape) {
        let paragraph = std::mem::take(&mut self.paragraph);
        let shape = std::mem::replace(&mut self.shape, next);
        if !paragraph.is_empty() {
            self.text += &match shape {
                Shape::Plain => format!("\n{paragraph}\n"),
                Shape::Term => format!(":   {paragraph}\n"),
                Shape::Item => format!("    * {paragraph}\n"),
                Shape::Rest => format!("\n    {paragraph}\n"),
            };
        }
        if shape == Shape::Term && next == Shape::Item {
            self.text.push('\n');
        }
    }
}

/// A term as code; that of another manual page as a link to its section.
fn named(term: &str) -> String {
    match term.strip_prefix("hairspring-").and_then(|rest| rest.strip_suffix("(1)")) {
        Some(name) => format!("[`hairspring {name}`](#hairspring-{name})"),
        None => format!("`{term}`"),
    }
}

/// `EXIT STATUS` as `Exit status`.
fn sentence(heading: &str) -> String {
    let mut letters = heading.chars();
    letters.next().map(|first| first.to_string() + &letters.as_str().to_lowercase()).unwrap_or_default()
}

/// Without roff's marks.
fn plain(line: &str) -> String {
    let marks = ["\\fB", "\\fI", "\\fR", "\\fP", "\\&"];
    let bare = marks.iter().fold(unescaped(line), |line, mark| line.replace(mark, ""));
    bare.replace("\\-", "-").replace("\\*(Aq", "'").replace("\\(aq", "'").replace("\\e", "\\")
}

/// With the characters that groff's names stand for: `\[u00D7]` is a cross.
fn unescaped(line: &str) -> String {
    let (mut text, mut rest) = (String::new(), line);
    while let Some((before, after)) = rest.split_once("\\[u") {
        text.push_str(before);
        let name = after.split_once(']');
        let found = name.and_then(|(hex, after)| Some((char::from_u32(u32::from_str_radix(hex, 16).ok()?)?, after)));
        let (known, left) = found.map_or(("\\[u".to_owned(), after), |(one, after)| (one.to_string(), after));
        text.push_str(&known);
        rest = left;
    }
    text + rest
}

/// With the words that roff sets in bold as code.
fn marked(line: &str) -> String {
    let line = line.replace("\\fIPossible values:\\fR", "Possible values:");
    let line = line.replace("\\fB", "`").replace("\\fR", "\u{1}").replace("\\fI", "\u{2}");
    // An end belongs to the beginning before it.
    let (mut text, mut open) = (String::new(), ' ');
    for letter in line.chars() {
        match letter {
            '`' | '\u{2}' if open == ' ' => {
                open = letter;
                text.push('`');
            }
            '\u{1}' => {
                if open != ' ' {
                    text.push('`');
                }
                open = ' ';
            }
            other => text.push(other),
        }
    }
    plain(&text).replace('<', "&lt;").replace('*', "\\*")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROFF: &str = ".TH hairspring 1\n.SH NAME\nhairspring\\-x \\- does\n.SH SYNOPSIS\n\\fBhairspring x\\fR [\\fIOPTIONS\\fR]\n\
        .SH DESCRIPTION\nDoes x.\n.SH OPTIONS\n.TP\n\\fB\\-\\-on\\fR \\fI<ID>\\fR [default: 80]\nMeasure only \\fBthis\\fR\n.br\n\n.br\n\
        \\fIPossible values:\\fR\n.RS 14\n.IP \\(bu 2\ntext: for people\n.IP \\(bu 2\njson: for programs\n.RE\n.SH EXAMPLES\nRun it:\n.PP\n.RS 4\n.nf\n\
        \\fBhairspring x\\fR\n.fi\n.RE\n";

    #[test]
    fn characters_come_back_from_their_names() {
        assert_eq!(plain("machines \\[u00D7] figures \\[u00B5]s"), "machines × figures µs");
        assert_eq!(plain("\\[u00D7"), "\\[u00D7");
    }

    #[test]
    fn a_manual_becomes_markdown() {
        let expected = "\n```text\nhairspring x [OPTIONS]\n```\n\nDoes x.\n\n**Options**\n\n`--on <ID>` [default: 80]\n:   Measure only `this` Possible \
                        values:\n\n    * text: for people\n    * json: for programs\n\n**Examples**\n\nRun it:\n\n```text\nhairspring x\n```\n";
        assert_eq!(markdown(ROFF).unwrap(), expected);
        let nested = ".TP\n\\fB\\-\\-as\\fR\nKind\n.RS\n.TP 14\n\\fBcsv\\fR\nText\n.RE\n";
        assert_eq!(markdown(nested).as_deref(), Ok("\n`--as`\n:   Kind\n\n    * `csv`: Text\n"));
        let linked = "\n[`hairspring x`](#hairspring-x)\n:   Does x.\n";
        assert_eq!(markdown(".TP\n\\fBhairspring\\-x\\fR(1)\nDoes x.\n").as_deref(), Ok(linked));
        assert_eq!(markdown(".XX 1\n"), Err(".XX 1".to_owned()));
    }

    #[test]
    fn the_commands_are_those_that_the_manual_lists() {
        let roff = ".TP\nhairspring\\-sheet(1)\nMeasure\n.TP\n\\fBhairspring\\-exit\\-codes\\fR(1)\n.SH SEE ALSO\nhairspring\\-a(1), hairspring\\-b(1)\n";
        assert_eq!(names(roff), ["sheet", "exit-codes"]);
    }
}
