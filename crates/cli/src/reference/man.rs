//! The manual pages: one for the command as a whole and one for each of its commands, from the declaration of the
//! arguments, the table of exit codes and the commands' own [`Page`]s.

use std::fs;
use std::path::PathBuf;

use clap::builder::Str;
use clap::{Arg, Args};
use clap_mangen::roff::{Roff, bold, italic, roman};

use crate::exit::{self, Exit, Failure};
use crate::output;
use crate::page::{Declaration, ENVIRONMENT, Example, NAME, Page, broken};

/// Examples and files, for help and manual.
pub(crate) const PAGE: Page = Page::new(
    "man",
    &[
        Example { does: "Read the page of a command", line: "hairspring man record | man -l -" },
        Example { does: "Write all pages into a folder", line: "hairspring man --out ." },
    ],
);

/// The examples of the main page.
const FIRST: [Example; 3] = [
    Example { does: "Measure this computer's clocks, delays and wake-ups", line: "hairspring sheet" },
    Example { does: "Measure how exact delays of 250 us are", line: "hairspring delay 250us" },
    Example {
        does: "Record a virtual card for two seconds, and check every byte",
        line: "hairspring record --card virtual:4ch,14bit,1MS/s --to run1 --for 2s && hairspring verify run1",
    },
];

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Command whose page is printed [default: the page that lists all commands]
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
    /// Write all pages into this existing folder instead
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    out: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, declared: Declaration) -> Result<Exit, Failure> {
    let declared = built(declared);
    if let Some(folder) = &arguments.out {
        for page in std::iter::once(None).chain(declared.pages().map(Some)) {
            let name = page.map_or_else(|| NAME.to_owned(), |page| format!("{NAME}-{}", page.name));
            let file = folder.join(format!("{name}.1"));
            fs::write(&file, rendered(&declared, page)).map_err(|error| {
                Failure::bad_request(format!(
                    "cannot write {}: {error}; choose another folder for --out",
                    file.display()
                ))
            })?;
        }
        return Ok(Exit::Success);
    }
    let page = arguments.command.as_deref().map(|name| {
        declared.pages().find(|page| page.name == name).ok_or_else(|| {
            Failure::bad_request(format!("there is no command {name}; `hairspring --help` lists all commands"))
        })
    });
    output::print(&rendered(&declared, page.transpose()?))
}

/// One page; without a command the main page.
fn rendered(declared: &Declaration, page: Option<&Page>) -> String {
    let (command, name) = match page.and_then(|page| declared.command.find_subcommand(page.name)) {
        Some(command) => (command.clone(), format!("{NAME}-{}", command.get_name())),
        None => (declared.command.clone(), NAME.to_owned()),
    };
    let source = format!("{NAME} {}", env!("CARGO_PKG_VERSION"));
    let mut roff = Roff::new();
    roff.control("TH", [name.to_uppercase().as_str(), "1", "", source.as_str(), "Hairspring"]);
    // Neither hyphens nor wide spaces in names and values.
    roff.control("nh", []).control("ad", ["l"]);
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    roff.control("SH", ["NAME"]).text([roman(format!("{name} - {about}"))]);
    roff.control("SH", ["SYNOPSIS"]);
    synopsis(&mut roff, &command);
    roff.control("SH", ["DESCRIPTION"]);
    let long = command.get_long_about().map_or_else(|| format!("{about}."), ToString::to_string);
    for (number, paragraph) in long.split("\n\n").enumerate() {
        if number > 0 {
            roff.control("PP", []);
        }
        let stop = if paragraph.ends_with('.') { "" } else { "." };
        roff.text([roman(format!("{paragraph}{stop}"))]);
    }
    if page.is_none() {
        commands(&mut roff, declared);
    }
    arguments(&mut roff, &command);
    if page.is_some() {
        actions(&mut roff, &command);
    }
    examples(&mut roff, page.map_or(&FIRST, |page| page.examples));
    roff.control("SH", ["EXIT STATUS"]);
    let codes = match page {
        Some(page) => exit::codes_of(page.name),
        None => exit::codes().map(|(code, meaning)| (code, meaning.to_owned())).collect(),
    };
    for (code, meaning) in codes {
        roff.control("TP", []).text([bold(code.to_string())]).text([roman(format!("{meaning}."))]);
    }
    pairs(&mut roff, "ENVIRONMENT", page.into_iter().flat_map(|page| page.environment).chain(&ENVIRONMENT));
    pairs(&mut roff, "FILES", page.into_iter().flat_map(|page| page.files));
    see_also(&mut roff, declared, page);
    in_ascii(&roff.render())
}

/// The page with groff's names for characters beyond ASCII: groff reads its input as Latin-1.
fn in_ascii(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    for one in page.chars() {
        match one.is_ascii() {
            true => text.push(one),
            false => text.push_str(&format!("\\[u{:04X}]", u32::from(one))),
        }
    }
    text
}

/// The declaration with all names, without the command `help`, which needs no page.
fn built(declared: Declaration) -> Declaration {
    let mut command = declared.command.disable_help_subcommand(true);
    command.build();
    Declaration { command, ..declared }
}

/// The synopsis: commands and options in bold, values in italics.
fn synopsis(roff: &mut Roff, command: &clap::Command) {
    let usage = command.clone().render_usage().to_string();
    let words = usage.trim_start_matches("Usage:").split_whitespace();
    let word = |word: &str| match word.starts_with(|c: char| c.is_ascii_lowercase() || c == '-') {
        true => [bold(word), roman(" ")],
        false => [italic(word.replace(['<', '>'], "")), roman(" ")],
    };
    roff.text(words.flat_map(word).collect::<Vec<_>>());
}

/// The commands under the headings of their groups.
fn commands(roff: &mut Roff, declared: &Declaration) {
    roff.control("SH", ["COMMANDS"]);
    for group in &declared.groups {
        roff.control("SS", [group.heading]);
        for page in group.pages {
            let about = declared.command.find_subcommand(page.name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            roff.control("TP", []).text([bold(format!("{NAME}-{}", page.name)), roman("(1)")]);
            roff.text([roman(format!("{about}."))]);
        }
    }
}

/// The commands below a command, each with its own arguments.
fn actions(roff: &mut Roff, command: &clap::Command) {
    for action in command.get_subcommands().filter(|action| !action.is_hide_set()) {
        roff.control("SS", [format!("{} {}", command.get_name(), action.get_name()).as_str()]);
        synopsis(roff, action);
        let about = action.get_long_about().or(action.get_about()).map(ToString::to_string).unwrap_or_default();
        roff.control("PP", []).text([roman(format!("{about}."))]);
        let is_own = |one: &&Arg| !one.is_hide_set() && !one.is_global_set() && one.get_id() != "help";
        action.get_arguments().filter(is_own).for_each(|one| argument(roff, one));
    }
}

/// The arguments: positional ones first, then the options under their headings.
fn arguments(roff: &mut Roff, command: &clap::Command) {
    let shown: Vec<&Arg> = command.get_arguments().filter(|argument| !argument.is_hide_set()).collect();
    let (positional, options): (Vec<&Arg>, Vec<&Arg>) = shown.into_iter().partition(|one| one.is_positional());
    let (usual, headed): (Vec<&Arg>, Vec<&Arg>) = options.into_iter().partition(|one| one.get_help_heading().is_none());
    for (heading, group) in [("ARGUMENTS", positional), ("OPTIONS", usual)] {
        if !group.is_empty() {
            roff.control("SH", [heading]);
            group.into_iter().for_each(|one| argument(roff, one));
        }
    }
    for group in headed.chunk_by(|one, next| one.get_help_heading() == next.get_help_heading()) {
        roff.control("SS", group.first().and_then(|one| one.get_help_heading()));
        group.iter().for_each(|one| argument(roff, one));
    }
}

fn argument(roff: &mut Roff, argument: &Arg) {
    let takes_value = argument.get_action().takes_values();
    let mut header = Vec::new();
    if let Some(short) = argument.get_short() {
        header.extend([bold(format!("-{short}")), roman(", ")]);
    }
    if let Some(long) = argument.get_long() {
        header.extend([bold(format!("--{long}")), roman(if takes_value { " " } else { "" })]);
    }
    if takes_value {
        let names = argument.get_value_names().unwrap_or_default();
        header.push(italic(names.iter().map(Str::as_str).collect::<Vec<_>>().join(" ")));
    }
    roff.control("TP", []).text(header);
    let mut help = match argument.get_id().as_str() {
        "help" => "Print help; -h prints a summary".to_owned(),
        _ => argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default(),
    };
    let values = if takes_value { argument.get_possible_values() } else { Vec::new() };
    let (explained, plain): (Vec<_>, Vec<_>) = values.iter().partition(|value| value.get_help().is_some());
    if !plain.is_empty() {
        let names: Vec<&str> = plain.iter().map(|value| value.get_name()).collect();
        help.push_str(&format!(": {}", names.join(", ")));
    }
    let usual: Vec<_> = argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if takes_value && !usual.is_empty() {
        help.push_str(&format!(" [default: {}]", usual.join(",")));
    }
    for (number, paragraph) in help.split("\n\n").enumerate() {
        if number > 0 {
            roff.control("IP", []);
        }
        roff.text([roman(paragraph)]);
    }
    if explained.is_empty() {
        return;
    }
    roff.control("RS", []);
    for value in explained {
        let help = value.get_help().map(ToString::to_string).unwrap_or_default();
        roff.control("TP", ["14"]).text([bold(value.get_name())]).text([roman(help)]);
    }
    roff.control("RE", []);
}

fn examples(roff: &mut Roff, examples: &[Example]) {
    roff.control("SH", ["EXAMPLES"]);
    for (number, example) in examples.iter().enumerate() {
        if number > 0 {
            roff.control("PP", []);
        }
        roff.text([roman(format!("{}:", example.does))]);
        roff.control("PP", []).control("RS", ["4"]).control("nf", []);
        for line in broken(example.line) {
            roff.text([bold(line)]);
        }
        roff.control("fi", []).control("RE", []);
    }
}

fn pairs<'p>(roff: &mut Roff, heading: &str, pairs: impl Iterator<Item = &'p (&'p str, &'p str)>) {
    for (number, (name, what)) in pairs.enumerate() {
        if number == 0 {
            roff.control("SH", [heading]);
        }
        roff.control("TP", []).text([bold(*name)]).text([roman(format!("{what}."))]);
    }
}

/// The other commands of the group, and the main page.
fn see_also(roff: &mut Roff, declared: &Declaration, page: Option<&Page>) {
    let Some(page) = page else { return };
    let group = declared.groups.iter().find(|group| group.pages.iter().any(|one| one.name == page.name));
    let others = group.into_iter().flat_map(|group| group.pages).filter(|one| one.name != page.name);
    let names = std::iter::once(NAME.to_owned()).chain(others.map(|one| format!("{NAME}-{}", one.name)));
    let mut line = Vec::new();
    for (number, name) in names.enumerate() {
        if number > 0 {
            line.push(roman(", "));
        }
        line.push(bold(name));
        line.push(roman("(1)"));
    }
    roff.control("SH", ["SEE ALSO"]).text(line);
}
