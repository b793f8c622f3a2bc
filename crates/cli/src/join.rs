//! `hairspring join`: the stripes of a recording as one recording in a new place.

use hairspring_stream::join::{Joined, Options, join};
use hairspring_stream::recording::Recording;
use serde_json::json;

use crate::account::{self, amount, append};
use crate::arguments::{JoinArguments, Plain};
use crate::exit::{Exit, Failure};
use crate::listing::Listing;
use crate::recording::Reading;
use crate::{output, recording, target};

pub(crate) fn run(arguments: &JoinArguments) -> Result<Exit, Failure> {
    target::check_name(&arguments.to)?;
    target::check(&arguments.to)?;
    let (mut from, mut to) = (recording::store(), recording::store());
    let recorded = recording::open(&mut *from, &arguments.recording)?;
    let options = Options { declare_gaps: arguments.declare_gaps };
    let mut reading = Reading::new(arguments.quiet);
    let joined = join(&mut *from, &recorded, &mut *to, &arguments.to, options, &mut |progress| reading.show(progress));
    reading.end();
    let joined = joined.map_err(|error| recording::refused(&error))?;
    output::print(&match arguments.format {
        Plain::Text => text(&recorded, &joined, output::style(false).width),
        Plain::Json => json(&recorded, &joined),
    })?;
    Ok(joined.verdict.into())
}

fn text(recorded: &Recording, joined: &Joined, width: usize) -> String {
    let mut listing = Listing::new(width);
    let members = match recorded.members().len() {
        1 => "1 member, copied and proven".to_owned(),
        count => format!("{count} members, joined and proven"),
    };
    listing.heading(&format!("{}: {members}", joined.verdict.name()));
    listing.fact("joined", &amount(joined.ledger.stored_bytes));
    account::text(&mut listing, &joined.ledger, &joined.gaps, recorded.about().layout);
    for (number, file) in joined.files.iter().enumerate() {
        listing.fact(if number == 0 { "files" } else { "" }, &file.display().to_string());
    }
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
