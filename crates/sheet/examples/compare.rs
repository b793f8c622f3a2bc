//! Compares two sheets: the ratio of each pair of figures, its verdict, and a gate for a build server.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_sheet::render;
use hairspring_sheet::{CompareTerms, ComparedSheets, ComparisonGate, Sheet, compare};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let read = |name: &str| -> Result<ComparedSheets, Box<dyn std::error::Error>> {
        let file = format!("{}/../../sheets/historic/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let sheet: Sheet = render::from_json(&std::fs::read_to_string(file)?)?;
        Ok(ComparedSheets { name: name.to_owned(), sheets: vec![sheet] })
    };
    // Three sheets a side would have verdicts.
    let comparison = compare(&[read("amx86-486sx")?, read("amx86-net186")?], &CompareTerms::default());
    for row in &comparison.rows {
        if let Some(ratio) = row.others[0].ratio {
            println!("{:45} {ratio:.2} {:?}", row.id, row.others[0].verdict);
        }
    }
    let report = ComparisonGate::parse("executive.amx86.mailbox>5")?.check(&comparison);
    println!("the gate {}: {}", report.outcome, report.findings[0].text);
    Ok(())
}
