//! The command line: one declaration, which generates help, manual pages and completions.

use clap::builder::StyledStr;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::exit::{Exit, Failure};
use crate::host::{self, SystemCommand};
use crate::page::{self, Declaration, NAME};
use crate::{measure, reference};

/// Width of the names in the help, with the space after them.
const WIDTH: usize = 15;

/// Measure timing, record without silent loss, drive devices on time
///
/// Every result states its conditions. Figures that could not be measured, and data that were lost, are reported with
/// the reason.
#[derive(Debug, Parser)]
#[command(name = NAME, version, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Measure(measure::Command),
    /// Measure one round of a sheet; `sheet` starts it
    #[command(hide = true)]
    Round,
    #[command(flatten)]
    System(SystemCommand),
    #[command(flatten)]
    Reference(reference::Command),
}

impl Line {
    /// Reads the arguments of this process; ends the process if they ask for help or are invalid.
    pub(crate) fn of_this_process() -> Self {
        Self::from_arg_matches(&declared().command.get_matches()).unwrap_or_else(|error| error.exit())
    }

    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        match &self.command {
            Command::Measure(command) => {
                host::before_measuring();
                command.run()
            }
            Command::Round => {
                host::before_measuring();
                measure::round::run()
            }
            Command::System(command) => command.run(),
            Command::Reference(command) => command.run(declared()),
        }
    }
}

/// The declaration, with the groups as headings and with examples below the help of each command.
fn declared() -> Declaration {
    let groups = [&measure::GROUP].into_iter().chain(host::GROUPS.iter().copied()).chain([&reference::GROUP]).collect();
    let mut declared = Declaration { command: Line::command(), groups };
    for page in declared.pages().collect::<Vec<_>>() {
        declared.command =
            declared.command.mut_subcommand(page.name, |command| command.after_long_help(page::examples(page)));
    }
    let template = template(&declared);
    declared.command = declared.command.help_template(template);
    declared
}

/// The help of the command as a whole.
fn template(Declaration { command, groups }: &Declaration) -> StyledStr {
    let (heading, literal) = (command.get_styles().get_header(), command.get_styles().get_literal());
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for group in groups {
        text.push_str(&format!("\n{heading}{}:{heading:#}\n", group.heading));
        for page in group.pages {
            let about = command.find_subcommand(page.name).and_then(clap::Command::get_about);
            let about = about.map_or_else(String::new, ToString::to_string);
            text.push_str(&format!("  {literal}{:<WIDTH$}{literal:#}{about}\n", page.name));
        }
    }
    text.push_str(&format!("\n{heading}Options:{heading:#}\n"));
    for (option, what) in [("-h, --help", "Print this help"), ("-V, --version", "Print the version")] {
        text.push_str(&format!("  {literal}{option:<WIDTH$}{literal:#}{what}\n"));
    }
    text.push_str("\n`hairspring COMMAND --help` explains a command and shows examples.");
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit;

    #[test]
    fn every_command_that_is_shown_stands_in_a_group_once() {
        let mut named: Vec<&str> = declared().pages().map(|page| page.name).collect();
        let declared = Line::command();
        let mut shown: Vec<&str> =
            declared.get_subcommands().filter(|one| !one.is_hide_set()).map(clap::Command::get_name).collect();
        named.sort_unstable();
        shown.sort_unstable();
        assert_eq!(named, shown);
    }

    #[test]
    fn exit_codes_are_explained_for_commands_that_exist() {
        for name in exit::commands() {
            assert!(declared().pages().any(|page| page.name == name), "{name}");
        }
    }

    #[test]
    fn every_example_is_understood() {
        for page in declared().pages() {
            assert!(!page.examples.is_empty(), "{} has no example", page.name);
            for example in page.examples {
                let words = page::words(example.line);
                let read = declared().command.try_get_matches_from(&words);
                assert!(
                    read.is_ok(),
                    "{}: {}",
                    example.line,
                    read.err().map_or_else(String::new, |error| error.to_string())
                );
                assert_eq!(words[..2], [NAME, page.name], "{}", example.line);
            }
        }
    }

    #[test]
    fn the_declaration_holds_what_clap_asks_of_it() {
        declared().command.debug_assert();
    }

    #[test]
    fn the_help_fits_into_80_columns() {
        let help = declared().command.render_help().to_string();
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    }
}
