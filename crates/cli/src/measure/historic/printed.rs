//! The figures of the documents, typed as printed; tests compare the historic sheets with them.

use hairspring_sheet::{Figure, Sheet};

use super::find;

/// Rows of the table of motherboards: write and read for PCI, PCI-X and PCI Express, in MByte/s.
const BUS: &str = "
    105 108 189 194 - -
    76 115 - - - -
    108 110 189 194 - -
    115 116 - - - -
    48 92 - - - -
    117 118 180 203 - -
    117 118 180 203 - -
    95 98 187 192 - -
    118 118 - - - -
    74 92 - - - -
    70 85 - - - -
    - - 222 220 - -
    79 117 - - - -
    108 120 40 150 - -
    94 99 - - 118 130
    104 108 - - 127 132
    103 107 - - - -
    - - 201 208 - -
    - - 196 203 - -
    105 118 142 188 - -
    99 102 - - 126 130
    94 97 - - 120 124
";
/// Plain disk tests by block size: write and read for each disk set.
const DISKS: [&str; 3] = [
    "
    132 85 55 85 62 85 80 105 67 70
    160 195 100 135 85 95 120 135 67 70
    180 195 130 135 90 102 125 138 67 69
    195 225 132 137 95 105 126 138 67 69
    195 230 132 137 95 107 134 138 67 69
    205 230 131 138 96 107 134 139 67 69
    205 230 133 138 97 108 135 139 67 69
    ",
    "
    125 100 125 130 150 50
    140 130 138 140 170 53
    150 155 150 175 180 60
    160 190 160 200 195 120
    165 200 168 210 200 215
    167 210 168 220 200 220
    167 210 168 220 200 240
    ",
    "
    139 128 225 259 247 380
    138 124 278 269 277 380
    138 133 280 278 366 375
    133 138 295 283 381 367
    132 139 290 289 391 359
    132 139 281 290 391 366
    132 139 281 290 391 366
    ",
];
/// Streaming, in the order of print: `r` for acquisition to disk, `p` for disk to output.
const STREAMS: [&str; 3] = [
    "r190 r95 r185 p180 p135 p12 r125 r80 p135 p70 r85 p101 r130 p130 r60 p63",
    "r135 r155 p80 p160 p200 p210 r140 r155 p210 p220 r160 r185 p200 p220",
    "r200 r345 r300",
];
/// User buffer, continuous kernel buffer and advantage in per cent: M2i and M3i by slot, M4i standard by notify size
/// (each read and write), M4i FIFO and M2p FIFO by notify size.
const CONTINUOUS: [&str; 4] = [
    "
    109 107 195 190 130 138
    125 122 248 238 160 170
    15 14 27 25 24 23
    ",
    "
    243 132 793 464 2271 1352 2007 1900 2687 2284
    239 133 788 457 2270 1470 2555 2121 2989 2549
    -1.6 +0.7 -0.6 -1.5 0 +8.7 +27.3 +11.6 +11.2 +11.6
    ",
    "
    455 858 1794 2005 3335 3386 3369 3331 3335
    540 833 1767 1965 3216 3386 3389 3388 3389
    +18.6 -2.9 -1.5 -2.0 -3.5 0 +0.6 +1.7 +1.6
    ",
    "
    282 462 597 800 800 799 799 799 797
    279 590 577 800 800 800 800 800 799
    -1.1 +27.7 -3.4 +0.0 +0.0 0 +0.1 +0.1 +0.3
    ",
];
/// Runs over the Bit3 adapter: the rest of the id, rounds, seconds of three reads and of three writes.
const WORDS: [(&str, u32, [f64; 3], [f64; 3]); 21] = [
    ("excel_cell.checked.protected.selector_new", 3_000, [11.64, 11.68, 11.71], [12.0, 12.05, 12.04]),
    ("excel_cell.checked.real.selector_new", 3_000, [10.61, 10.67, 10.67], [10.89, 10.96, 10.96]),
    ("vb_indirect.checked.protected.selector_new.loops_30000", 30_000, [2.8, 2.78, 2.79], [3.52, 3.64, 3.6]),
    ("vb_indirect.checked.protected.selector_new", 100_000, [8.95, 9.01, 8.93], [12.82, 12.62, 12.95]),
    ("vb_indirect.checked.real.selector_new", 300_000, [13.73, 13.76, 13.73], [20.73, 20.61, 20.83]),
    ("vb_direct.checked.protected.selector_new", 100_000, [6.51, 6.48, 6.46], [7.5, 7.32, 7.49]),
    ("vb_direct.checked.real.selector_new", 300_000, [9.76, 9.76, 9.67], [10.56, 10.59, 10.49]),
    ("c.checked.protected.selector_new", 100_000, [5.29, 5.34, 5.5], [5.03, 5.1, 5.14]),
    ("c.checked.real.selector_new", 1_000_000, [26.01, 26.04, 25.95], [25.1, 25.04, 25.14]),
    ("excel_cell.checked.protected.selector_kept", 3_000, [10.82, 10.83, 10.89], [11.96, 11.99, 12.01]),
    ("excel_cell.checked.real.selector_kept", 3_000, [10.71, 10.66, 10.67], [11.01, 11.06, 11.12]),
    ("vb_indirect.checked.protected.selector_kept.loops_30000", 30_000, [2.3, 2.14, 1.93], [2.8, 2.8, 2.83]),
    ("vb_indirect.checked.protected.selector_kept", 300_000, [19.26, 19.32, 19.43], [27.17, 27.17, 27.15]),
    ("vb_indirect.checked.real.selector_kept", 300_000, [10.11, 10.17, 10.26], [15.73, 15.76, 15.73]),
    ("vb_direct.checked.protected.selector_kept", 300_000, [13.83, 13.87, 13.95], [13.79, 13.81, 13.99]),
    ("vb_direct.checked.real.selector_kept", 300_000, [5.76, 5.79, 5.8], [5.67, 5.68, 5.72]),
    ("c.checked.protected.selector_kept", 300_000, [10.57, 10.51, 10.52], [10.8, 10.81, 10.83]),
    ("c.checked.real.selector_kept", 1_000_000, [14.35, 14.45, 14.42], [13.17, 13.23, 13.23]),
    ("pascal.checked.real.non_polling", 1_000_000, [8.65, 8.71, 8.73], [6.43, 6.39, 6.39]),
    ("pascal.unchecked.real.non_polling", 4_000_000, [11.98, 11.99, 12.07], [7.79, 7.74, 7.82]),
    ("pascal.checked.real.polling", 1_000_000, [11.55, 11.52, 11.46], [8.89, 8.79, 8.79]),
];

/// FESA's table of two processes: both priorities, the least and the greatest of the first and of the second process,
/// in µs.
const PROCESSES: &str = "
    17 17 1026 1116 1252 1348
    50 17 588 684 1620 1900
    17 50 1620 1900 604 688
    100 50 596 688 1220 1352
    50 50 1004 1120 1248 1368
    100 100 1004 1152 1252 1392
    17 100 1640 1940 590 710
";

/// The values of a grid of text, by row.
fn grid(text: &str) -> Vec<Vec<Option<f64>>> {
    let rows = text.lines().map(|line| line.split_whitespace().map(|word| word.parse().ok()).collect());
    rows.filter(|row: &Vec<_>| !row.is_empty()).collect()
}

/// The values of a grid of text, column after column.
fn columns(text: &str) -> Vec<Option<f64>> {
    let rows = grid(text);
    (0..rows[0].len()).flat_map(|column| rows.iter().map(move |row| row[column]).collect::<Vec<_>>()).collect()
}

/// The rates of a chapter in MByte/s of 2^20 bytes and its ratios in per cent; `None` where there is no figure.
fn chapter(sheet: &Sheet, index: usize) -> Vec<Option<f64>> {
    let rows = sheet.chapters[index].tables.iter().flat_map(|table| &table.rows);
    rows.map(|row| row.figure().map(value)).collect()
}

fn value(figure: &Figure) -> f64 {
    assert!(figure.is_single(), "one value is printed");
    let scale = match figure.unit {
        hairspring_sheet::Unit::BytesPerS => 1.0 / f64::from(1 << 20),
        _ => 100.0,
    };
    (figure.median.expect("single") * scale * 1e6).round() / 1e6
}

#[test]
fn the_sheets_of_an006_have_every_rate_that_was_printed() {
    assert_eq!(chapter(&find("an006-bus").expect("built in"), 0), columns(BUS));
    for (index, (disks, streams)) in DISKS.iter().zip(STREAMS).enumerate() {
        let sheet = find(&format!("an006-reference-{}", index + 1)).expect("built in");
        assert_eq!(chapter(&sheet, 0), columns(disks), "system {}", index + 1);
        let printed = |direction: char| {
            streams.split(' ').filter_map(move |word| word.strip_prefix(direction)).map(|word| word.parse().ok())
        };
        assert_eq!(chapter(&sheet, 1), printed('r').chain(printed('p')).collect::<Vec<_>>(), "system {}", index + 1);
    }
}

#[test]
fn the_buffers_of_an006_have_every_rate_and_advantage_that_was_printed() {
    let sheet = find("an006-continuous").expect("built in");
    for (index, printed) in CONTINUOUS.iter().enumerate() {
        let mut printed = grid(printed);
        if index == 1 {
            // The sheet lists the reads before the writes; the document alternates them.
            for row in &mut printed {
                let turn = |first: usize| row.iter().skip(first).step_by(2).copied();
                *row = turn(0).chain(turn(1)).collect();
            }
        }
        assert_eq!(chapter(&sheet, index), printed.concat(), "chapter {index}");
    }
}

#[test]
fn the_sheet_of_bit3_has_every_run() {
    let sheet = find("fermilab-bit3").expect("built in");
    assert_eq!(sheet.rows().filter_map(|row| row.figure()).filter(|figure| figure.n == 3).count(), 2 * WORDS.len());
    for (rest, rounds, reads, writes) in WORDS {
        for (access, mut runs) in [("read", reads), ("write", writes)] {
            runs.sort_by(f64::total_cmp);
            let id = format!("transfer.word.{access}.{rest}");
            let figure = sheet.row(&id).and_then(|row| row.figure()).unwrap_or_else(|| panic!("no {id}"));
            let found = [figure.min, figure.median, figure.max, figure.mean].map(|value| value.expect("stated"));
            let mean = runs.iter().sum::<f64>() / 3.0;
            for (found, seconds) in found.into_iter().zip([runs[0], runs[1], runs[2], mean]) {
                assert!((found * 1e-9 * f64::from(rounds) / seconds - 1.0).abs() < 1e-6, "{id}: {found}");
            }
        }
    }
}

#[test]
fn the_sheet_of_fesa_has_every_time_that_was_printed_and_no_statistic_that_was_not() {
    let sheet = find("fesa-2007").expect("built in");
    let figure = |id: &str| sheet.row(id).and_then(|row| row.figure()).unwrap_or_else(|| panic!("no {id}"));
    let micros = |value: Option<f64>| value.map(|nanos| nanos / 1e3);
    for row in grid(PROCESSES) {
        let row: Vec<f64> = row.into_iter().flatten().collect();
        let [first, second] =
            [1, 2].map(|process| figure(&format!("reaction.matrix.{}_{}.none.process{process}", row[0], row[1])));
        let found = [first.min, first.max, second.min, second.max].map(micros);
        assert_eq!(found.map(|value| value.expect("printed")), row[2..], "{row:?}");
        for figure in [first, second] {
            assert_eq!((figure.median, figure.mean), (None, None), "{row:?}");
            // The document prints 1900+.
            assert_eq!(figure.caveats.iter().any(|caveat| caveat.contains("1900+")), figure.max == Some(1.9e6));
        }
    }
    for (id, printed) in [("read", 1.25), ("write", 1.25), ("init", 3.75)] {
        assert_eq!(micros(figure(&format!("reaction.call.{id}")).median), Some(printed), "{id}");
    }
    for (id, printed) in [("", 430.0), (".before", 560.0), (".o2", 350.0), (".o3", 350.0), (".os", 338.0)] {
        let figure = figure(&format!("reaction.lynxos.total{id}"));
        assert_eq!((micros(figure.min), figure.median, figure.max), (Some(printed), None, None), "{id}");
    }
    assert_eq!(micros(figure("reaction.lynxos.handover").mean), Some(250.0));
    assert_eq!(sheet.rows().count(), 3 + 6 + 2 * 7);
}
