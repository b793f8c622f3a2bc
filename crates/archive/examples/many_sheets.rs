//! Times an archive with many sheets: `cargo run --release -p hairspring-archive --example many_sheets -- 10000`.
//!
//! A few sheets are added as they are in life; every number in them differs from the real sheet that they come from.
//! The others copy the compressed documents of those, and have medians of their own, because compressing takes a second
//! for each. Sizes and times are those of real sheets then; the copies could not be rebuilt.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use fastrand::Rng;
use hairspring_archive::{Archive, read_sheet_text};
use hairspring_sheet::{CompareTerms, ComparedSheets, RowPattern, TextStyle, compare, render, trends};
use rusqlite::{Connection, params};
use serde_json::{Number, Value};

const SHEET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sheets/2026-11-22-kvm-guest.json.zst");
/// Most sheets that are really added; also at most a sixth.
const REAL_MAX: usize = 8;
const FIGURE: &str = "clocks.read.now.later";
/// Repeats of each measurement, of which the median counts.
const REPEATED: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let count: usize = std::env::args().nth(1).map_or(Ok(12), |text| text.parse())?;
    let real_count = (count / 6).clamp(1, REAL_MAX);
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("sheets.db");
    let real: Value = serde_json::from_str(&read_sheet_text(SHEET.as_ref())?)?;
    let mut rng = Rng::with_seed(1);
    let mut archive = Archive::create(&path)?;
    let before = Instant::now();
    for day in 0..real_count {
        archive.add(&varied(&real, day, &mut rng)?)?;
    }
    println!("figure: add of one, s: {:.2}", before.elapsed().as_secs_f64() / real_count as f64);
    drop(archive);
    copy(&path, real_count, count, &mut rng)?;
    println!("figure: sheets: {count}");
    println!("figure: size of a sheet, kB: {:.1}", std::fs::metadata(&path)?.len() as f64 / count as f64 / 1000.0);
    timed("list", || {
        let list = Archive::open(&path)?.list()?;
        Ok(list.iter().map(|sheet| format!("{} {}\n", sheet.short_id(), sheet.taken)).collect::<String>().len())
    })?;
    timed("trend of one figure", || {
        let archive = Archive::open(&path)?;
        let history =
            archive.history(&archive.machine(None)?, None, &[RowPattern::parse(FIGURE).ok_or("no pattern")?])?;
        Ok(render::trend_text(&trends(&history), &TextStyle { width: 100, colour: false, verbose: false }).len())
    })?;
    timed("compare of two", || {
        let archive = Archive::open(&path)?;
        let list = archive.list()?;
        let side = |place: usize| -> Result<ComparedSheets, Box<dyn Error>> {
            Ok(ComparedSheets { name: list[place].short_id().to_owned(), sheets: vec![archive.sheet(&list[place])?] })
        };
        let sides = [side(0)?, side(list.len() - 1)?];
        let ledger = archive.ledger(&[&sides[0].sheets[0], &sides[1].sheets[0]])?;
        let found = compare(&sides, &CompareTerms { ledger, ..CompareTerms::default() });
        Ok(render::comparison(&found, &TextStyle { width: 100, colour: false, verbose: false }).len())
    })
}

/// Prints the time from opening the archive on: the median, and the worst.
fn timed(what: &str, mut act: impl FnMut() -> Result<usize, Box<dyn Error>>) -> Result<(), Box<dyn Error>> {
    let mut took = Vec::new();
    for _ in 0..REPEATED {
        let before = Instant::now();
        let length = act()?;
        took.push(before.elapsed().as_secs_f64());
        assert!(length > 0, "{what} has a result");
    }
    took.sort_by(f64::total_cmp);
    println!("figure: {what}, s: {:.4}", took[REPEATED / 2]);
    println!("figure: {what}, s at worst of {REPEATED}: {:.4}", took[REPEATED - 1]);
    Ok(())
}

/// The sheet of another day: every number with a fraction, and every count, is another one.
fn varied(real: &Value, day: usize, rng: &mut Rng) -> Result<String, Box<dyn Error>> {
    let mut sheet = real.clone();
    for chapter in sheet["chapters"].as_array_mut().ok_or("no chapters")? {
        vary(chapter, rng);
    }
    sheet["taken"]["start"] = format!("2016-01-{:02}T04:00:00Z", day + 1).into();
    Ok(serde_json::to_string_pretty(&sheet)? + "\n")
}

fn vary(value: &mut Value, rng: &mut Rng) {
    match value {
        Value::Array(parts) => parts.iter_mut().for_each(|part| vary(part, rng)),
        Value::Object(parts) => parts.values_mut().for_each(|part| vary(part, rng)),
        Value::Number(number) => {
            let factor = 1.0 + 0.03 * (rng.f64() - 0.5);
            if let Some(count) = number.as_u64().filter(|count| *count > 20) {
                *number = ((count as f64 * factor).round() as u64).into();
            } else if let Some(float) = number.as_f64().filter(|_| number.is_f64()) {
                // With as many digits as before.
                let digits = number.to_string().split('.').nth(1).map_or(0, str::len);
                let text = format!("{:.digits$}", float * factor);
                *number = text.parse().ok().and_then(Number::from_f64).unwrap_or_else(|| number.clone());
            }
        }
        _ => {}
    }
}

/// Copies the first sheets until there are `count`, one for each day, each with other medians.
fn copy(path: &Path, real_count: usize, count: usize, rng: &mut Rng) -> Result<(), Box<dyn Error>> {
    const DAY_NS: i64 = 86_400_000_000_000;
    let mut connection = Connection::open(path)?;
    let transaction = connection.transaction()?;
    for number in real_count + 1..=count {
        let of = 1 + number % real_count;
        let (number, of) = (number as i64, of as i64);
        transaction.execute(
            "INSERT INTO document SELECT ?1, bytes, base, packed FROM document WHERE sheet = ?2",
            params![number, of],
        )?;
        transaction.execute(
            "INSERT INTO sheet SELECT ?1, ?3, taken_ns + ?4, strftime('%Y-%m-%d 04:00:00 UTC', (taken_ns + ?4) / 1000000000, 'unixepoch'),
             machine, conditions, version, build, effort, interrupted, figures, absent FROM sheet WHERE number = ?2",
            params![number, of, format!("{:032x}", rng.u128(..)), (number - of) * DAY_NS],
        )?;
        transaction.execute(
            "INSERT INTO figure SELECT ?1, quantity, n, median * (1 + (random() % 1000) / 50000.0), half_width FROM figure WHERE sheet = ?2",
            params![number, of],
        )?;
    }
    transaction.commit()?;
    Ok(())
}
