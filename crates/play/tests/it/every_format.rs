//! Compares every format × recordings that lack frames × cuts with an independent reader: it knows the raw files and
//! the captures in their JSON, but no blocks, journals or time lines.

mod pieces;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use std::process::Command;

use hairspring_play::export::{ArrayCut, Csv, Cut, ExportUnits, GapChoice, csv, flac, hdf5, hdf5_copy, npy, wav, zarr};
use hairspring_recording::channels::ChannelDescription;
use hairspring_recording::testing::Spec;
use hairspring_recording::{Files, Recording};
use hairspring_ring::layout::{Container, Layout};
use hairspring_ring::units::Frames;
use hairspring_source::pattern::Pattern;
use hairspring_store::{Store, Ways, best};

/// Makes a recording in a folder and opens it.
fn made(spec: &Spec, folder: &Path) -> Recording {
    spec.make().write_to(folder).expect("written");
    Recording::open(&[folder.join("d0/x")]).expect("opens").whole().expect("whole")
}

fn store() -> Box<dyn Store> {
    best(8, Ways::ALL)
}

fn refusing(cut: Cut) -> ArrayCut {
    ArrayCut { cut, gaps: GapChoice::Refuse, units: ExportUnits::Codes }
}

fn counted() -> Spec {
    Spec { pattern: Pattern::Counter, ..Spec::plain() }
}

/// A recording as it must be read.
struct Truth {
    /// The existing rows, by the number of their frame.
    rows: BTreeMap<u64, Vec<f64>>,
    extent: std::ops::Range<u64>,
    /// First frame, frames, cause.
    missing: Vec<(u64, u64, String)>,
}

impl Truth {
    /// The truth of rows whose missing frames have these causes; others are in no file.
    fn of(
        rows: BTreeMap<u64, Vec<f64>>,
        extent: std::ops::Range<u64>,
        causes: &[(u64, u64, &str)],
        other: &str,
    ) -> Self {
        let cause = |frame: u64| {
            let claim = causes.iter().find(|(first, frames, _)| (*first..first + frames).contains(&frame));
            claim.map_or(other, |(.., cause)| cause)
        };
        let mut missing: Vec<(u64, u64, String)> = Vec::new();
        for frame in extent.clone().filter(|frame| !rows.contains_key(frame)) {
            match missing.last_mut() {
                Some((first, frames, last)) if *first + *frames == frame && last == cause(frame) => *frames += 1,
                _ => missing.push((frame, 1, cause(frame).to_owned())),
            }
        }
        Self { rows, extent, missing }
    }

    /// The missing frames of a cut.
    fn within(&self, cut: Cut) -> Vec<(u64, u64, String)> {
        let (from, to) = self.clipped(cut);
        let clipped = self.missing.iter().map(|(first, frames, cause)| {
            let (first, end) = ((*first).max(from), (first + frames).min(to));
            (first, end.saturating_sub(first), cause.clone())
        });
        clipped.filter(|(_, frames, _)| *frames > 0).collect()
    }

    fn clipped(&self, cut: Cut) -> (u64, u64) {
        let from = cut.first.0.max(self.extent.start);
        (from, cut.first.0.saturating_add(cut.frames.0).min(self.extent.end).max(from))
    }
}

/// The samples of whole frames as numbers.
fn decoded(layout: Layout, bytes: &[u8]) -> Vec<f64> {
    let word = |size: usize| bytes.chunks_exact(size);
    match layout.container() {
        Container::I8 => bytes.iter().map(|byte| f64::from(*byte as i8)).collect(),
        Container::U8 => bytes.iter().map(|byte| f64::from(*byte)).collect(),
        Container::I16 => word(2).map(|it| f64::from(i16::from_le_bytes([it[0], it[1]]))).collect(),
        Container::U16 => word(2).map(|it| f64::from(u16::from_le_bytes([it[0], it[1]]))).collect(),
        Container::I32 => word(4).map(|it| f64::from(i32::from_le_bytes(it.try_into().expect("four")))).collect(),
        Container::F32 => word(4).map(|it| f64::from(f32::from_le_bytes(it.try_into().expect("four")))).collect(),
        Container::Packed12 => word(3)
            .flat_map(|it| {
                let both = i32::from_le_bytes([it[0], it[1], it[2], 0]);
                [both << 20 >> 20, both << 8 >> 20].map(f64::from)
            })
            .collect(),
        Container::Bits => word((layout.channels() as usize).div_ceil(8))
            .flat_map(|it| (0..layout.channels() as usize).map(move |line| f64::from(it[line / 8] >> (line % 8) & 1)))
            .collect(),
        other => panic!("{other}"),
    }
}

/// Reads the raw files of a recording that has ended, by their captures. Blocks that are not whole in their file are
/// missing.
fn raw(spec: &Spec, folder: &Path) -> Truth {
    let grain = spec.layout.grain();
    let channels = spec.layout.channels() as usize;
    let (mut rows, mut causes, mut produced) = (BTreeMap::new(), Vec::new(), 0);
    for member in 0..spec.members {
        let files = Files::of(&folder.join(Spec::base(member).strip_prefix("/").expect("absolute")));
        let Ok(data) = std::fs::read(&files.data) else { continue };
        let meta: Value = serde_json::from_slice(&std::fs::read(&files.meta).expect("there")).expect("JSON");
        let result = &meta["global"]["hairspring:result"];
        let number = |value: &Value| value.as_u64().expect("a number");
        produced = number(&result["ledger"]["produced_bytes"]) / grain.bytes * grain.frames;
        causes = result["gaps"]
            .as_array()
            .expect("gaps")
            .iter()
            .map(|gap| (gap, gap["cause"].as_str()))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|(gap, cause)| {
                (number(&gap["first_frame"]), number(&gap["frames"]), cause.expect("a cause").to_owned())
            })
            .chain(
                result["skips"]
                    .as_array()
                    .expect("skips")
                    .iter()
                    .map(|skip| (number(&skip["first_frame"]), number(&skip["frames"]), "left_out".to_owned())),
            )
            .collect();
        let captures = meta["captures"].as_array().expect("captures");
        let end =
            captures.iter().filter_map(|it| it["hairspring:frames"].as_u64()).sum::<u64>() / grain.frames * grain.bytes;
        let whole = if data.len() as u64 >= end { end } else { data.len() as u64 / spec.block * spec.block };
        let mut at = 0;
        for capture in captures {
            let frames = capture["hairspring:frames"].as_u64().unwrap_or(0);
            let length = frames / grain.frames * grain.bytes;
            let there = whole.saturating_sub(at).min(length);
            if let Some(first) = capture["core:global_index"].as_u64() {
                let first = first * grain.frames;
                let there = data.get(at as usize..(at + there) as usize).unwrap_or_default();
                let numbers = decoded(spec.layout, there);
                rows.extend((first..).zip(numbers.chunks_exact(channels).map(<[f64]>::to_vec)));
            }
            at += length;
        }
    }
    let causes: Vec<(u64, u64, &str)> =
        causes.iter().map(|(first, frames, cause)| (*first, *frames, &**cause)).collect();
    Truth::of(rows, 0..produced, &causes, "damaged")
}

fn npy_rows(path: &Path) -> Vec<f64> {
    let bytes = std::fs::read(path).expect("there");
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let head = String::from_utf8_lossy(&bytes[10..start]).into_owned();
    numbers(head.split('\'').nth(3).expect("descr"), &bytes[start..])
}

/// Numbers of a NumPy type; complex ones as pairs.
fn numbers(kind: &str, bytes: &[u8]) -> Vec<f64> {
    let word = |size: usize| bytes.chunks_exact(size);
    match kind {
        "|i1" => bytes.iter().map(|byte| f64::from(*byte as i8)).collect(),
        "|u1" => bytes.iter().map(|byte| f64::from(*byte)).collect(),
        "<i2" => word(2).map(|it| f64::from(i16::from_le_bytes([it[0], it[1]]))).collect(),
        "<u2" => word(2).map(|it| f64::from(u16::from_le_bytes([it[0], it[1]]))).collect(),
        "<i4" => word(4).map(|it| f64::from(i32::from_le_bytes(it.try_into().expect("four")))).collect(),
        "<u4" => word(4).map(|it| f64::from(u32::from_le_bytes(it.try_into().expect("four")))).collect(),
        "<f4" | "<c8" => word(4).map(|it| f64::from(f32::from_le_bytes(it.try_into().expect("four")))).collect(),
        "<f8" | "<c16" => word(8).map(|it| f64::from_le_bytes(it.try_into().expect("eight"))).collect(),
        other => panic!("{other}"),
    }
}

/// The array of a Zarr and the gaps in its attributes.
fn zarr_rows(path: &Path, array: &str, kind: &str) -> (Vec<f64>, Vec<(u64, u64, String)>) {
    let json = |path: PathBuf| -> Value { serde_json::from_slice(&std::fs::read(path).expect("there")).expect("JSON") };
    let (group, facts) = (json(path.join("zarr.json")), json(path.join(array).join("zarr.json")));
    let gaps = group["attributes"]["gaps"].as_array().expect("gaps").iter();
    let gaps = gaps.map(|gap| {
        (gap[0].as_u64().expect("first"), gap[1].as_u64().expect("frames"), gap[2].as_str().expect("cause").to_owned())
    });
    let shape: Vec<u64> =
        facts["shape"].as_array().expect("shape").iter().map(|it| it.as_u64().expect("a size")).collect();
    let sharding = &facts["codecs"][0]["configuration"]["chunk_shape"];
    let shard = facts["chunk_grid"]["configuration"]["chunk_shape"][0].as_u64().expect("rows");
    let chunk = sharding[0].as_u64().unwrap_or(shard);
    let columns = shape.get(1).copied().unwrap_or(1) as usize;
    let fill = facts["fill_value"].as_f64().unwrap_or(if facts["fill_value"] == "NaN" { f64::NAN } else { 0.0 });
    let mut rows = Vec::new();
    for number in 0..shape[0].div_ceil(shard) {
        let name = if sharding.is_null() { format!("{number}") } else { format!("{number}/0") };
        let file = std::fs::read(path.join(array).join("c").join(name)).ok();
        for inner in 0..shard / chunk {
            let packed = file.as_ref().and_then(|file| {
                if sharding.is_null() {
                    return Some(&file[..]);
                }
                let index = &file[file.len() - 4 - 16 * (shard / chunk) as usize..][inner as usize * 16..][..16];
                let [at, length] =
                    [0, 8].map(|half| u64::from_le_bytes(index[half..half + 8].try_into().expect("eight")));
                (at != u64::MAX).then(|| &file[at as usize..(at + length) as usize])
            });
            match packed {
                Some(packed) => rows.extend(numbers(kind, &zstd::bulk::decompress(packed, 1 << 24).expect("zstd"))),
                None => rows.resize(rows.len() + chunk as usize * columns, fill),
            }
        }
    }
    rows.truncate(shape[0] as usize * columns);
    (rows, gaps.collect())
}

/// Exports every cut in every format that can be read here, and compares.
#[track_caller]
fn check(name: &str, recording: &Recording, truth: &Truth, folder: &Path, kind: &str) {
    let end = truth.extent.end;
    let start = truth.extent.start;
    let cuts = [
        (start, u64::MAX),
        (start + 1, 7),
        (start + 995, 1501),
        (start + 2003, 3),
        (end.saturating_sub(5), 100),
        (end, 1),
        (start + 700, 0),
    ];
    let mut number = 0;
    for (first, frames) in cuts {
        let cut = Cut { first: Frames(first), frames: Frames(frames) };
        if first > end {
            continue;
        }
        let (from, to) = truth.clipped(cut);
        let there: Vec<f64> = truth.rows.range(from..to).flat_map(|(_, row)| row.iter().copied()).collect();
        let filled: Vec<f64> = (from..to)
            .flat_map(|frame| {
                truth
                    .rows
                    .get(&frame)
                    .cloned()
                    .unwrap_or_else(|| vec![1.0; recording.about().layout.channels() as usize])
            })
            .collect();
        let missing = truth.within(cut);
        let label = format!("{name}, frames {first} and {frames} more");
        for (gaps, expected) in
            [(GapChoice::Refuse, &there), (GapChoice::LeaveOut, &there), (GapChoice::Fill(1.0), &filled)]
        {
            number += 1;
            let options = ArrayCut { cut, gaps, units: ExportUnits::Codes };
            let path = |ending: &str| folder.join(format!("{name}.{number}.{ending}"));
            let exported = npy(&mut *store(), recording, options, &path("npy"), &mut |_| {});
            let lost = missing.iter().any(|(.., cause)| cause != "left_out");
            if gaps == GapChoice::Refuse && exported.is_err() {
                assert!(!missing.is_empty(), "{label}: {exported:?}");
                continue;
            }
            assert!(gaps != GapChoice::Refuse || !lost, "{label} lacks data and is not refused");
            let exported = exported.unwrap_or_else(|error| panic!("{label}: {error}"));
            assert!(npy_rows(&path("npy")) == *expected, "{label}: other values in npy");
            let told: Vec<_> =
                exported.missing.iter().map(|it| (it.first.0, it.frames.0, it.cause.name().to_owned())).collect();
            if gaps != GapChoice::Refuse {
                assert_eq!(told, missing, "{label}");
            }
            zarr(&mut *store(), recording, options, &path("zarr"), &mut |_| {}).expect("zarr");
            let (rows, listed) = zarr_rows(&path("zarr"), "samples", kind);
            assert!(rows == *expected, "{label}: other values in Zarr");
            assert_eq!(listed, told, "{label}");
            if matches!(gaps, GapChoice::Fill(_)) {
                let (valid, _) = zarr_rows(&path("zarr"), "valid", "|u1");
                let is_there: Vec<f64> =
                    (from..to).map(|frame| f64::from(u8::from(truth.rows.contains_key(&frame)))).collect();
                assert_eq!(valid, is_there, "{label}");
            }
            wav(&mut *store(), recording, options, &path("wav"), &mut |_| {}).expect("wav");
            let integers = recording.about().layout.container() != Container::F32;
            if integers && recording.about().layout.channels() <= 8 {
                flac(&mut *store(), recording, options, &path("flac"), &mut |_| {}).expect("flac");
            }
        }
        let path = folder.join(format!("{name}.{number}.csv"));
        csv(&mut *store(), recording, Csv::of(cut), &path, &mut |_| {}).expect("csv");
        let text = std::fs::read_to_string(&path).expect("there");
        let (comments, lines): (Vec<&str>, Vec<&str>) = text.lines().skip(1).partition(|line| line.starts_with('#'));
        let rows: Vec<f64> = lines
            .iter()
            .flat_map(|line| line.split(',').skip(2).map(|code| code.parse::<f64>().expect("a number")))
            .collect();
        // A 32-bit float is written with as few digits as identify it.
        let near = |a: &f64, b: &f64| a == b || kind == "<f4" && *a as f32 == *b as f32;
        assert!(
            rows.len() == there.len() && rows.iter().zip(&there).all(|(a, b)| near(a, b)),
            "{label}: other values in CSV"
        );
        let frames: Vec<u64> =
            lines.iter().map(|line| line.split(',').next().expect("a field").parse().expect("a frame")).collect();
        assert_eq!(frames, truth.rows.range(from..to).map(|(frame, _)| *frame).collect::<Vec<_>>(), "{label}");
        let lost: Vec<&str> = comments.iter().copied().filter(|line| line.starts_with("# frames ")).collect();
        assert_eq!(lost.len(), missing.len(), "{label}: {comments:?}");
        for (comment, (first, frames, _)) in lost.iter().zip(&missing) {
            assert!(
                comment.starts_with(&format!("# frames {first} to {} are missing", first + frames - 1)),
                "{comment}"
            );
        }
    }
}

#[test]
fn every_format_holds_what_an_independent_reader_finds_in_the_raw_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let layout = |channels, bits, container| Layout::stored_as(channels, bits, container).expect("exists");
    let short = |spec: Spec| Spec {
        block: spec.layout.grain().bytes * 512,
        stored: spec.layout.grain().bytes * 512 * 5 + spec.layout.grain().bytes * 100,
        ..spec
    };
    let plain = || Spec { pattern: Pattern::Noise { seed: 3 }, ..Spec::plain() };
    let gaps = |grain: u64| vec![(0, 8), (grain * 1000, 10), (grain * 2660, 4)];
    let specs = [
        ("plain", short(plain()), "<i2"),
        ("gaps", short(Spec { gaps: gaps(4), ..plain() }), "<i2"),
        ("skips", short(Spec { skips: vec![(0, 70), (4 * 1500, 900), (4 * 2660, 50)], ..plain() }), "<i2"),
        ("both", short(Spec { gaps: vec![(4 * 600, 10)], skips: vec![(4 * 1500, 900)], ..plain() }), "<i2"),
        ("stripe", short(Spec { members: 2, gaps: gaps(4), ..plain() }), "<i2"),
        ("unwritten", short(Spec { unwritten: vec![1, 3], gaps: vec![(4 * 100, 2)], ..plain() }), "<i2"),
        (
            "packed",
            short(Spec { layout: layout(3, 12, Container::Packed12), gaps: vec![(9 * 500, 4)], ..plain() }),
            "<i2",
        ),
        ("packed_one", short(Spec { layout: layout(1, 12, Container::Packed12), members: 2, ..plain() }), "<i2"),
        ("lines", short(Spec { layout: layout(6, 1, Container::Bits), gaps: vec![(700, 3)], ..plain() }), "|u1"),
        ("unsigned", short(Spec { layout: layout(2, 16, Container::U16), ..plain() }), "<u2"),
        ("words", short(Spec { layout: layout(2, 24, Container::I32), gaps: gaps(8), ..plain() }), "<i4"),
        ("floats", short(Spec { layout: layout(2, 32, Container::F32), gaps: gaps(8), ..plain() }), "<f4"),
        ("bytes", short(Spec { layout: layout(3, 8, Container::I8), ..plain() }), "|i1"),
    ];
    for (name, spec, kind) in specs {
        let cuts = [None, Some(0), Some(700), Some(spec.block * 2 + 5)];
        let cuts = if ["gaps", "stripe", "packed"].contains(&name) { &cuts[..] } else { &cuts[..1] };
        for cut_at in cuts.iter().copied() {
            let name = format!("{name}{}", cut_at.map_or(String::new(), |at| format!("_{at}")));
            let folder = folder.path().join(&name);
            spec.make().write_to(&folder).expect("written");
            if let Some(at) = cut_at {
                let data = Files::of(&folder.join("d0/x")).data;
                std::fs::File::options().write(true).open(data).expect("there").set_len(at).expect("cut");
            }
            let recording = Recording::open(&[folder.join("d0/x")]).expect("opens");
            // Holes in a file are in its captures.
            let truth = raw(&spec, &folder);
            check(&name, &recording, &truth, &folder, kind);
        }
    }
}

/// Frames that are missing: the first, how many, and the cause.
type Causes = Vec<(u64, u64, &'static str)>;

/// A file of another program, and its expected content.
type ForeignCase =
    (&'static str, &'static str, String, Vec<u8>, BTreeMap<u64, Vec<f64>>, std::ops::Range<u64>, Causes, &'static str);

#[test]
fn recordings_of_other_programs_are_exported_as_their_keys_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let counted = |frames: &mut dyn Iterator<Item = u64>, values: std::ops::Range<i32>, channels: usize| {
        let values: Vec<f64> = values.map(f64::from).collect();
        frames.zip(values.chunks_exact(channels).map(<[f64]>::to_vec)).collect::<BTreeMap<u64, Vec<f64>>>()
    };
    let le = |value: i32| (value as i16).to_le_bytes().to_vec();
    let be = |value: i32| (value as i16).to_be_bytes().to_vec();
    let data = |of: &dyn Fn(i32) -> Vec<u8>| (0..1000).flat_map(of).collect::<Vec<u8>>();
    let rate = r#""core:version": "1.2.5", "core:sample_rate": 1000.0"#;
    let capture = |start: u64, index: u64| format!(r#"{{"core:sample_start": {start}, "core:global_index": {index}}}"#);
    let jump = format!("{}, {}", capture(0, 0), capture(500, 1000));
    let late = capture(0, 1_700_000_000_000);
    let split = format!("{}, {}", capture(1000, 1000), capture(1500, 2500));
    let headers =
        r#"{"core:sample_start": 0, "core:header_bytes": 7}, {"core:sample_start": 400, "core:header_bytes": 3}"#;
    let with_headers = [&b"1234567"[..], &data(&le)[..800], b"abc", &data(&le)[800..], b"tail"].concat();
    let missing = |first: u64, frames: u64| vec![(first, frames, "not_stated")];
    let cases: [ForeignCase; 9] = [
        (
            "jump",
            r#""core:datatype": "ri16_le""#,
            jump.clone(),
            data(&le),
            counted(&mut (0..500).chain(1000..1500), 0..1000, 1),
            0..1500,
            missing(500, 500),
            "<i2",
        ),
        (
            "late",
            r#""core:datatype": "ri16_le""#,
            late,
            data(&le),
            counted(&mut (1_700_000_000_000..), 0..1000, 1),
            1_700_000_000_000..1_700_000_001_000,
            vec![],
            "<i2",
        ),
        (
            "split",
            r#""core:datatype": "ri16_le", "core:offset": 1000"#,
            split,
            data(&le),
            counted(&mut (1000..1500).chain(2500..3000), 0..1000, 1),
            1000..3000,
            missing(1500, 1000),
            "<i2",
        ),
        (
            "offset",
            r#""core:datatype": "ri16_le", "core:offset": 1000"#,
            String::new(),
            data(&le),
            counted(&mut (1000..2000), 0..1000, 1),
            1000..2000,
            vec![],
            "<i2",
        ),
        (
            "trailing",
            r#""core:datatype": "ri16_le", "core:trailing_bytes": 10"#,
            capture(0, 0),
            [data(&le), vec![127; 10]].concat(),
            counted(&mut (0..), 0..1000, 1),
            0..1000,
            vec![],
            "<i2",
        ),
        (
            "headers",
            r#""core:datatype": "ri16_le", "core:trailing_bytes": 4, "core:dataset": "headers.bin""#,
            headers.to_owned(),
            with_headers,
            counted(&mut (0..), 0..1000, 1),
            0..1000,
            vec![],
            "<i2",
        ),
        (
            "big",
            r#""core:datatype": "ri16_be", "core:num_channels": 2"#,
            capture(0, 0),
            data(&be),
            counted(&mut (0..), 0..1000, 2),
            0..500,
            vec![],
            "<i2",
        ),
        (
            "complex",
            r#""core:datatype": "ci16_be""#,
            capture(0, 0),
            data(&be),
            counted(&mut (0..), 0..1000, 2),
            0..500,
            vec![],
            "<c8",
        ),
        (
            "short",
            r#""core:datatype": "ri16_le""#,
            format!("{}, {}", capture(0, 0), capture(1200, 1300)),
            data(&le),
            counted(&mut (0..), 0..1000, 1),
            0..1300,
            vec![(1000, 300, "damaged")],
            "<i2",
        ),
    ];
    for (name, global, captures, bytes, rows, extent, causes, kind) in cases {
        let place = folder.path().join(name);
        std::fs::create_dir(&place).expect("a folder");
        let meta = format!(r#"{{"global": {{{rate}, {global}}}, "captures": [{captures}], "annotations": []}}"#);
        std::fs::write(place.join(format!("{name}.sigmf-meta")), &meta).expect("written");
        let ending = if name == "headers" { "bin" } else { "sigmf-data" };
        std::fs::write(place.join(format!("{name}.{ending}")), &bytes).expect("written");
        let recording = Recording::open(&[place.join(name)]).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(recording.faults().is_empty(), name != "short", "{name}: {:?}", recording.faults());
        let truth = Truth::of(rows, extent, &causes, "not_stated");
        if kind != "<c8" {
            check(name, &recording, &truth, &place, kind);
        } else {
            let path = place.join("x.npy");
            let exported = npy(&mut *store(), &recording, refusing(Cut::ALL), &path, &mut |_| {}).expect("complex");
            let values: Vec<f64> = truth.rows.values().flatten().copied().collect();
            assert_eq!((exported.frames, npy_rows(&path)), (Frames(500), values));
            let path = place.join("x.csv");
            csv(&mut *store(), &recording, Csv::of(Cut::ALL), &path, &mut |_| {}).expect("csv");
            let text = std::fs::read_to_string(path).expect("there");
            assert!(text.starts_with("frame [1],time [s],channel 0 I [code],channel 0 Q [code]\n0,"), "{text}");
        }
        // The same in an archive, which is read in place.
        let archive = place.join(format!("{name}.sigmf"));
        let made = Command::new("tar")
            .current_dir(folder.path())
            .arg("cf")
            .arg(&archive)
            .arg(format!("{name}/{name}.sigmf-meta"))
            .arg(format!("{name}/{name}.{ending}"))
            .status();
        if !made.is_ok_and(|status| status.success()) {
            testing::skip(
                "recordings_of_other_programs_are_exported_as_their_keys_say",
                "tar is not installed".to_owned(),
            );
            continue;
        }
        let archived = Recording::open(&[archive]).unwrap_or_else(|error| panic!("{name}.sigmf: {error}"));
        let all = ArrayCut { cut: Cut::ALL, gaps: GapChoice::LeaveOut, units: ExportUnits::Codes };
        for (recording, file) in [(&recording, "beside.npy"), (&archived, "archived.npy")] {
            npy(&mut *store(), recording, all, &place.join(file), &mut |_| {}).expect("written");
        }
        assert!(
            std::fs::read(place.join("beside.npy")).expect("there")
                == std::fs::read(place.join("archived.npy")).expect("there"),
            "{name}"
        );
        assert!(recording.about().id != archived.about().id, "two files, two identities");
    }
}
