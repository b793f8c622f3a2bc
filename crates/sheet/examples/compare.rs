//! Two sheets beside each other: what differs in the conditions, the ratio of each pair of figures, and a gate for a build server.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_sheet::render;
use hairspring_sheet::{ComparisonGate, compare};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let read = |name: &str| {
        let file = format!("{}/../../sheets/historic/{name}.json", env!("CARGO_MANIFEST_DIR"));
        render::from_json(&std::fs::read_to_string(file)?).map_err(Box::<dyn std::error::Error>::from)
    };
    let comparison = compare(&read("amx86-486sx")?, &[read("amx86-net186")?]);
    for row in &comparison.rows {
        if let Some(ratio) = row.others[0].ratio {
            println!("{:45} {ratio:.2} {:?}", row.id, row.others[0].verdict);
        }
    }
    let gate = ComparisonGate::parse("executive.amx86.mailbox>5")?;
    println!("{} rows fail the gate", gate.check(&comparison).len());
    Ok(())
}
