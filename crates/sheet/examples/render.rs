//! Reads a stored sheet and writes it as a page:
//! `cargo run -p hairspring-sheet --example render -- sheet.json > sheet.html`.

use hairspring_sheet::render;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let historic = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sheets/historic/fermilab-2007.json");
    let file = std::env::args().nth(1).unwrap_or_else(|| historic.to_owned());
    let sheet = render::from_json(&std::fs::read_to_string(file)?)?;
    let format = std::env::args().nth(2).unwrap_or_default();
    let text = match format.as_str() {
        "md" => render::markdown(&sheet),
        "text" => render::text(&sheet, &render::TextStyle::default()),
        _ => render::html(&sheet),
    };
    #[expect(clippy::print_stdout, reason = "an example talks to its user")]
    {
        print!("{text}");
    }
    Ok(())
}
