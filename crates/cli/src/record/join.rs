//! `hairspring join`: joins the parts of a striped recording into one recording elsewhere.

use std::path::PathBuf;

use clap::Args;
use hairspring_record::join::{JoinOptions, Joined, join};
use hairspring_recording::Recording;
use serde_json::json;

use crate::arguments::Plain;
use crate::exit::{Exit, Failure};
use crate::listing::Listing;
use crate::output;
use crate::page::{Example, Page};
use crate::record::account::{self, amount, append};
use crate::record::record::text::shortened;
use crate::record::recording::{self, ReadArguments, Reading};
use crate::record::target;

/// Examples and files, for help and manual.
pub(crate) const PAGE: Page = Page {
    name: "join",
    examples: &[Example {
        does: "Join a stripe over two disks",
        line: "hairspring join disk1/run2 disk2/run2 --to archive/run2",
    }],
    files: &super::FILES,
    environment: &[],
};

/// Join the parts of a stripe or the segments of a series
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Name of the new recording in an existing folder, without an ending
    #[arg(long, value_name = "DIR/NAME")]
    to: PathBuf,
    /// Turn missing parts and damaged blocks into declared gaps instead of refusing
    #[arg(long)]
    declare_gaps: bool,
    #[command(flatten)]
    read: ReadArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    target::check_name(&arguments.to)?;
    target::check(&arguments.to)?;
    let (mut from, mut to) = (recording::store(), recording::store());
    let recorded = recording::open(&mut *from, &arguments.read.recording)?;
    let options = JoinOptions { declare_gaps: arguments.declare_gaps };
    let joined = Reading::during(arguments.read.quiet, |progress| {
        join(&mut *from, &recorded, &mut *to, &arguments.to, options, progress)
    });
    let joined = joined.map_err(|error| recording::refused(&error))?;
    output::print(&match arguments.read.format {
        Plain::Text => text(&recorded, &joined, output::style(false).width),
        Plain::Json => json(&recorded, &joined),
    })?;
    Ok(joined.verdict.into())
}

fn text(recorded: &Recording, joined: &Joined, width: usize) -> String {
    let mut listing = Listing::new(width);
    let members = match recorded.members().len() {
        1 => "1 part, copied and checked".to_owned(),
        count => format!("{count} parts, joined and checked"),
    };
    listing.heading(&format!("{}: {members}", joined.verdict.name()));
    listing.fact("joined", &amount(joined.ledger.stored_bytes));
    account::text(&mut listing, &joined.ledger, &joined.gaps, recorded.about().layout);
    listing.facts("files", shortened(&joined.files));
    listing.finish()
}

fn json(recorded: &Recording, joined: &Joined) -> String {
    let mut value = json!({
        "schema": "hairspring.joined/1",
        "verdict": joined.verdict.name(),
        "members": recorded.members().len(),
        "files": joined.files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>(),
    });
    append(&mut value, account::json(&joined.ledger, &joined.gaps, recorded.about().layout));
    format!("{value:#}\n")
}
