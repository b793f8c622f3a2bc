//! Parquet files, read back by the library that wrote them; other readers are tested from Python.

use std::fs::File;

use hairspring_archive::Exported;
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::{ID, archive, text};

#[test]
fn the_table_has_a_row_for_each_row_of_each_sheet() {
    let (folder, mut archive) = archive();
    for day in 0..5 {
        archive.add(&text(day, "6.8", 1.0 + day as f64)).expect("added");
    }
    let out = folder.path().join("table");
    assert_eq!(archive.export(&out).expect("written"), Exported { sheets: 5, rows: 10, files: 1 });
    assert!(archive.export(&out).is_err(), "the folder is not empty");
    let machine = &archive.list().expect("listed")[0].machine;
    let file = out.join(format!("machine={machine}/year=2025/part-0000.parquet"));
    let reader = SerializedFileReader::new(File::open(file).expect("there")).expect("Parquet");
    let rows: Vec<String> =
        reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row").to_string()).collect();
    assert_eq!(rows.len(), 10);
    assert!(
        rows[0].contains(ID) && rows[0].contains("2025-01-01 04:00:00.250") && rows[0].contains("bench"),
        "{}",
        rows[0]
    );
    let ids: Vec<bool> = rows.iter().map(|row| row.contains(ID)).collect();
    assert_eq!(ids, [[true; 5], [false; 5]].concat(), "sorted by id");
}
