//! `hairspring settings`: the catalogue, with the present values of this machine and this process.

use std::path::Path;

use clap::Args;
use hairspring_settings::{Interface, Tunable, current};
use serde_json::{Value, json};

use crate::arguments::Plain;
use crate::exit::{Exit, Failure};
use crate::listing::Listing;
use crate::output;
use crate::page::{Example, Page};
use crate::table::{Side, item, table};

pub(crate) const PAGE: Page = Page {
    name: "settings",
    examples: &[
        Example { does: "List every setting with its present value", line: "hairspring settings" },
        Example { does: "Show the cost and the pitfalls of one setting", line: "hairspring settings idle" },
    ],
    files: &[],
    environment: &[],
};

/// List settings that affect timing, with their present values
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Setting to describe [default: a table of all]
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Format of the output
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    format: Plain,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let chosen: Vec<&Tunable> = match &arguments.id {
        None => Tunable::all().collect(),
        Some(id) => match Tunable::find(id) {
            Some(tunable) => vec![tunable],
            None => {
                let text = format!("no setting is called `{id}`; `hairspring settings` lists them");
                return Err(Failure::bad_request(text));
            }
        },
    };
    let width = output::style(false).width;
    output::print(&match (arguments.format, &arguments.id) {
        (Plain::Json, _) => as_json(&chosen),
        (Plain::Text, Some(_)) => chosen.iter().map(|tunable| page(tunable, width)).collect(),
        (Plain::Text, None) => overview(&chosen, width),
    })
}

/// The present value; an em dash if this machine lacks the setting.
fn now(tunable: &Tunable) -> String {
    current(Path::new("/"), tunable).unwrap_or_else(|_| "–".to_owned())
}

fn overview(tunables: &[&Tunable], width: usize) -> String {
    let mut text = "Settings that `hairspring run --set ID=VALUE -- CMD` gives to a program:\n\n".to_owned();
    let (applied, advised): (Vec<&Tunable>, Vec<&Tunable>) =
        tunables.iter().copied().partition(|tunable| tunable.can_be_applied());
    let rows: Vec<Vec<String>> = applied
        .iter()
        .map(|tunable| [tunable.id, tunable.scope.name(), &now(tunable), tunable.changes].map(str::to_owned).to_vec())
        .collect();
    let headings =
        [("setting", Side::Left), ("scope", Side::Left), ("now", Side::Left), ("what it changes", Side::Left)];
    text.push_str(&table(&headings, &rows, width));
    text.push_str("\nOther settings that affect timing, and how to change them:\n\n");
    for tunable in advised {
        text.push_str(&item("-", &format!("{}: {}", tunable.id, tunable.changes), width));
    }
    text.push_str(
        "\n`hairspring settings ID` tells the cost and the pitfalls of one. Scope machine needs --allow machine.\n",
    );
    text
}

fn page(tunable: &Tunable, width: usize) -> String {
    let mut listing = Listing::new(width);
    listing.heading(&format!("{}: {}", tunable.id, tunable.changes));
    match tunable.interface {
        Interface::Call(how) | Interface::Files(how) => {
            listing.fact("now", &now(tunable));
            listing.fact("values", tunable.values);
            listing.fact("by", how);
        }
        Interface::Advice(how) => listing.fact("how", how),
    }
    listing.fact("scope", &format!("{}: {}", tunable.scope.name(), tunable.scope.undo()));
    listing.fact("needs", tunable.needs);
    listing.fact("costs", tunable.cost);
    listing.fact("moves", &tunable.moves.join(", "));
    listing.fact("traps", tunable.traps);
    listing.finish()
}

fn as_json(tunables: &[&Tunable]) -> String {
    let one = |tunable: &&Tunable| -> Value {
        let (kind, how) = match tunable.interface {
            Interface::Call(how) => ("call", how),
            Interface::Files(how) => ("files", how),
            Interface::Advice(how) => ("advice", how),
        };
        json!({
            "id": tunable.id,
            "changes": tunable.changes,
            "scope": tunable.scope.name(),
            "interface": { "kind": kind, "how": how },
            "values": tunable.values,
            "now": current(Path::new("/"), tunable).ok(),
            "needs": tunable.needs,
            "cost": tunable.cost,
            "moves": tunable.moves,
            "undo": tunable.scope.undo(),
            "traps": tunable.traps,
        })
    };
    let value = json!({ "schema": "hairspring.settings/1", "settings": tunables.iter().map(one).collect::<Vec<_>>() });
    format!("{value:#}\n")
}
