//! [`Page`]: the texts of a command in help and manual beside its arguments. Each command's file has its own.
//!
//! The file of a command has `Arguments`, whose doc comment is its help, `PAGE` and `run`. The list of its group names
//! it ([`commands`]).

/// The name of the program.
pub(crate) const NAME: &str = "hairspring";

/// The declared command line, for generated texts.
pub(crate) struct Declaration {
    pub(crate) command: clap::Command,
    /// In the order of the help.
    pub(crate) groups: Vec<&'static Group>,
}

impl Declaration {
    /// Every visible command.
    pub(crate) fn pages(&self) -> impl Iterator<Item = &'static Page> {
        self.groups.iter().flat_map(|group| group.pages)
    }
}

/// A group of commands: a folder of the sources and a heading in the help.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) heading: &'static str,
    /// In the order of the help.
    pub(crate) pages: &'static [Page],
}

/// Makes `GROUP` and the enum `Command` of a group's heading and its list of `Variant(module)`, in the order of the
/// help.
macro_rules! commands {
    ($heading:literal: $($name:ident($module:ident),)*) => {
        /// Texts of the commands for help and manual.
        pub(crate) const GROUP: $crate::page::Group =
            $crate::page::Group { heading: $heading, pages: &[$($module::PAGE),*] };

        /// The commands of this folder.
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum Command {
            $($name(Box<$module::Arguments>),)*
        }

        impl Command {
            pub(crate) fn run(&self) -> Result<$crate::exit::Exit, $crate::exit::Failure> {
                match self {
                    $(Self::$name(arguments) => $module::run(arguments),)*
                }
            }
        }
    };
}
pub(crate) use commands;

/// One command.
#[derive(Debug)]
pub(crate) struct Page {
    /// The command's name.
    pub(crate) name: &'static str,
    pub(crate) examples: &'static [Example],
    /// Files that it reads or writes, with descriptions.
    pub(crate) files: &'static [(&'static str, &'static str)],
    /// Environment variables that only this command reads.
    pub(crate) environment: &'static [(&'static str, &'static str)],
}

impl Page {
    /// A page with only these examples.
    pub(crate) const fn new(name: &'static str, examples: &'static [Example]) -> Self {
        Self { name, examples, files: &[], environment: &[] }
    }
}

/// An example: a command line, and its effect.
#[derive(Debug)]
pub(crate) struct Example {
    /// A sentence without its full stop.
    pub(crate) does: &'static str,
    /// The command as typed in a shell.
    pub(crate) line: &'static str,
}

/// Environment variables that every command reads.
pub(crate) const ENVIRONMENT: [(&str, &str); 3] = [
    ("NO_COLOR", "if set and not empty, text has no colours"),
    ("TERM", "if \"dumb\", text has no colours"),
    ("COLUMNS", "the width of help texts, if the terminal does not say"),
];

/// The greatest width of a line: a manual page indents it by 11, and a backslash may follow. A longer example is broken
/// before an option, a pipe or a redirection.
const COLUMNS: usize = 67;

/// The examples below the help of a command.
pub(crate) fn examples(page: &Page) -> String {
    let examples = page.examples.iter().map(|example| {
        let lines = broken(example.line).iter().map(|line| format!("    {line}\n")).collect::<String>();
        format!("  {}:\n{lines}", example.does)
    });
    format!("Examples:\n{}", examples.collect::<Vec<_>>().join("\n")).trim_end().to_owned()
}

/// Breaks a command line into short lines that a shell still understands.
pub(crate) fn broken(line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let parts = words.chunk_by(|_, next| !next.starts_with("--") && !["|", ">"].contains(next));
    let mut lines = vec![String::new()];
    for part in parts.map(|part| part.join(" ")) {
        match lines.last_mut() {
            Some(last) if last.is_empty() => last.push_str(&part),
            Some(last) if last.len() + 1 + part.len() <= COLUMNS => {
                last.push(' ');
                last.push_str(&part);
            }
            last => {
                last.into_iter().for_each(|last| last.push_str(" \\"));
                lines.push(format!("  {part}"));
            }
        }
    }
    lines
}

/// Splits a command line into words like a shell, up to a pipe or a redirection.
#[cfg(test)]
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for character in line.chars() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (None, '|' | '>') => break,
            (None, ' ') => words.push(String::new()),
            _ => words.last_mut().expect("there is one from the beginning").push(character),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_broken_before_an_option_as_a_shell_allows_it() {
        assert_eq!(broken("hairspring delay 250us"), ["hairspring delay 250us"]);
        let long = "hairspring record --card virtual:4ch,14bit,1MS/s --to disk1/run2,disk2/run2 --for 2s";
        let lines = broken(long);
        let first = "hairspring record --card virtual:4ch,14bit,1MS/s \\";
        assert_eq!(lines, [first, "  --to disk1/run2,disk2/run2 --for 2s"]);
    }

    #[test]
    fn words_are_those_of_a_shell() {
        assert_eq!(words("a --b 'c d>e' | f"), ["a", "--b", "c d>e"]);
        assert_eq!(words("a b > c"), ["a", "b"]);
    }
}
