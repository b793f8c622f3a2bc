//! Reads a sheet and prints its contents: `cargo run -p hairspring-sheet --example read_sheet -- sheet.json`.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_sheet::render;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let historic = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sheets/historic/fermilab-2007.json");
    let file = std::env::args().nth(1).unwrap_or_else(|| historic.to_owned());
    let sheet = render::from_json(&std::fs::read_to_string(file)?)?;
    println!("host {}", sheet.conditions.value("cpu.model").unwrap_or("unknown"));
    println!("chapters {}", sheet.chapters.len());
    println!("rows {}", sheet.rows().count());
    println!("absent {}", sheet.rows().filter(|row| row.figure().is_none()).count());
    Ok(())
}
