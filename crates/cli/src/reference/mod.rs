//! The commands that print texts generated from the declarations.

pub(crate) mod man;
pub(crate) mod probes;

use clap::{Subcommand, ValueEnum};
use clap_complete::Shell;
use hairspring_sheet::render;

use crate::exit::{self, Exit, Failure};
use crate::output;
use crate::page::{Declaration, Example, Group, NAME, Page};

/// Texts of the commands for help and manual.
pub(crate) const GROUP: Group = Group {
    heading: "Reference",
    pages: &[
        probes::PAGE,
        Page::new(
            "schema",
            &[
                Example { does: "Keep the schema of a sheet", line: "hairspring schema > sheet.schema.json" },
                Example {
                    does: "Keep the schema of a comparison",
                    line: "hairspring schema verdicts > verdicts.schema.json",
                },
            ],
        ),
        Page::new("exit-codes", &[Example { does: "Print the table", line: "hairspring exit-codes" }]),
        Page::new(
            "completions",
            &[Example {
                does: "Complete arguments in bash from now on",
                line: "hairspring completions bash > ~/.local/share/bash-completion/completions/hairspring",
            }],
        ),
        man::PAGE,
    ],
};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List every row that a sheet can have
    Probes(probes::Arguments),
    /// Print the JSON Schema of a sheet or a comparison
    Schema {
        /// Document that it describes
        #[arg(value_enum, default_value = "sheet")]
        of: Document,
    },
    /// Print the table of exit codes
    ExitCodes,
    /// Print completions for a shell
    Completions {
        /// Shell to complete arguments in
        shell: Shell,
    },
    /// Print the manual page of a command, or write all of them
    Man(man::Arguments),
}

/// Documents with a schema.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Document {
    /// `hairspring.sheet/1`: what `sheet` writes
    Sheet,
    /// `hairspring.comparison/1`: the pairs that `ab` writes
    Pairs,
    /// `hairspring.verdicts/1`: what `compare` writes
    Verdicts,
}

impl Command {
    pub(crate) fn run(&self, declared: Declaration) -> Result<Exit, Failure> {
        match self {
            Self::Probes(arguments) => probes::run(arguments),
            Self::Schema { of } => output::print(&match of {
                Document::Sheet => render::schema(),
                Document::Pairs => render::pairs_schema(),
                Document::Verdicts => render::verdicts_schema(),
            }),
            Self::ExitCodes => output::print(&exit::table()),
            Self::Completions { shell } => completions(*shell, declared),
            Self::Man(arguments) => man::run(arguments, declared),
        }
    }
}

fn completions(shell: Shell, mut declared: Declaration) -> Result<Exit, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut declared.command, NAME, &mut text);
    output::print(&String::from_utf8_lossy(&text))
}
