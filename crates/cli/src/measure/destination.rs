//! [`Destination`]: in which format a document is written, and where to.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hairspring_sheet::TextStyle;

use crate::exit::Failure;
use crate::output::{self, OutputFile};

/// The formats of a sheet or a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Plain text for a terminal
    Text,
    /// Markdown
    Md,
    /// JSON, as `hairspring schema` describes it
    Json,
    /// One self-contained page with plots
    Html,
}

/// The arguments of every command that writes a document.
#[derive(Args, Debug)]
pub(crate) struct Destination {
    /// Format [default: by the ending of --out, otherwise text]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Write to this file instead of the standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Destination {
    /// The requested format, or the one for the ending of the file.
    pub(crate) fn format(&self) -> Result<Format, Failure> {
        if let Some(format) = self.format {
            return Ok(format);
        }
        let Some(file) = &self.out else { return Ok(Format::Text) };
        match file.extension().and_then(|ending| ending.to_str()) {
            Some("json") => Ok(Format::Json),
            Some("html" | "htm") => Ok(Format::Html),
            Some("md" | "markdown") => Ok(Format::Md),
            Some("txt" | "text") | None => Ok(Format::Text),
            Some(other) => Err(Failure::bad_request(format!(
                "no format has the ending .{other}: name the file .txt, .md, .json or .html, or add --format"
            ))),
        }
    }

    /// The file, if one is named. Checks that it can be written.
    pub(crate) fn file(&self) -> Result<Option<OutputFile>, Failure> {
        self.out.as_deref().map(OutputFile::create).transpose()
    }

    /// The style of text. A file has neither colours nor the width of a terminal.
    pub(crate) fn style(&self, verbose: bool) -> TextStyle {
        match self.out {
            Some(_) => TextStyle { width: output::WIDTH_USUAL, colour: false, verbose },
            None => output::style(verbose),
        }
    }
}
