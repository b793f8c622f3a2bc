//! Exports hold the recorded data; and other programs read them: sigmf-python, NumPy and h5py, by
//! `tests/other_programs.py`; zarr, soundfile and flac, by `tests/other_arrays.py`.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::*;
use hairspring_recording::Recording;
use hairspring_recording::channels::ChannelDescription;
use hairspring_recording::testing::Spec;
use hairspring_ring::layout::{Container, Layout};
use hairspring_source::pattern::Pattern;
use hairspring_store::{Store, Ways};

/// Makes a recording in a folder and opens it.
fn made(spec: &Spec, folder: &Path) -> Recording {
    spec.make().write_to(folder).expect("written");
    Recording::open(&[folder.join("d0/x")]).expect("opens").whole().expect("whole")
}

fn store() -> Box<dyn Store> {
    hairspring_store::best(8, Ways::ALL)
}

fn refusing(cut: Cut) -> ArrayCut {
    ArrayCut { cut, gaps: GapChoice::Refuse, units: ExportUnits::Codes }
}

fn counted() -> Spec {
    Spec { pattern: Pattern::Counter, ..Spec::plain() }
}

#[test]
fn npy_holds_the_frames_of_the_cut_and_refuses_holes() {
    let folder = tempfile::tempdir().expect("a folder");
    let spec = Spec { gaps: vec![(8000, 10)], members: 2, ..counted() };
    let recording = made(&spec, folder.path());
    let path = folder.path().join("x.npy");
    let whole = refusing(Cut::ALL);
    let refused = npy(&mut *store(), &recording, whole, &path, &mut |_| {}).expect_err("a hole").to_string();
    assert!(refused.contains("frames 2000 to 2009 are missing"), "{refused}");
    let partly = Cut { first: Frames(2005), frames: Frames(1005) };
    let refused = npy(&mut *store(), &recording, refusing(partly), &path, &mut |_| {}).expect_err("a hole").to_string();
    assert!(refused.contains("frames 2005 to 2009 are missing"), "{refused}");
    let cut = Cut { first: Frames(2010), frames: Frames(1000) };
    let exported = npy(&mut *store(), &recording, refusing(cut), &path, &mut |_| {}).expect("written");
    assert_eq!((exported.first, exported.frames), (Frames(2010), Frames(1000)));
    let bytes = std::fs::read(&path).expect("there");
    assert_eq!(bytes.len(), 128 + 4000);
    assert!(
        bytes.starts_with(b"\x93NUMPY\x01\x00\x76\x00{'descr': '<i2', 'fortran_order': False, 'shape': (1000, 2), }")
    );
    assert!(bytes[128..] == spec.content(8000, 4000));
    let again = npy(&mut *store(), &recording, refusing(cut), &path, &mut |_| {});
    assert!(again.expect_err("exists").to_string().contains("exists already"));
    let path = folder.path().join("all.npy");
    npy(
        &mut *store(),
        &recording,
        ArrayCut { cut: Cut::ALL, gaps: GapChoice::LeaveOut, units: ExportUnits::Codes },
        &path,
        &mut |_| {},
    )
    .expect("written");
    assert!(std::fs::read(&path).expect("there")[128..] == spec.content(0, spec.stored));
}

#[test]
fn csv_says_where_frames_are_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let spec = Spec { gaps: vec![(8000, 10), (43_008, 3)], ..counted() };
    let recording = made(&spec, folder.path());
    let path = folder.path().join("x.csv");
    let cut = Cut { first: Frames(1999), frames: Frames(12) };
    let exported = csv(&mut *store(), &recording, Csv::of(cut), &path, &mut |_| {}).expect("written");
    assert_eq!((exported.first, exported.frames, exported.missing.len()), (Frames(1999), Frames(2), 1));
    let text = std::fs::read_to_string(&path).expect("there");
    let expected = "frame [1],time [s],channel 0 [code],channel 1 [code]\n\
                    1999,0.001999000000,1999,2000\n\
                    # frames 2000 to 2009 are missing: the buffer was full\n\
                    2010,0.002010000000,2010,2011\n";
    assert_eq!(text, expected);
    let path = folder.path().join("y.csv");
    let few = Csv { most_frames: Frames(100), ..Csv::of(Cut::ALL) };
    let refused = csv(&mut *store(), &recording, few, &path, &mut |_| {}).expect_err("too many").to_string();
    assert!(refused.contains("10752 frames are more than the 100"), "{refused}");
    assert!(!path.exists());
}

#[test]
fn a_damaged_block_is_never_exported() {
    let folder = tempfile::tempdir().expect("a folder");
    let recording = made(&counted(), folder.path());
    let data = folder.path().join("d0/x.sigmf-data");
    let mut bytes = std::fs::read(&data).expect("there");
    bytes[5000] ^= 1;
    std::fs::write(&data, bytes).expect("written");
    let path = folder.path().join("x.npy");
    let whole = refusing(Cut::ALL);
    let refused = npy(&mut *store(), &recording, whole, &path, &mut |_| {}).expect_err("damaged").to_string();
    assert!(refused.contains("block 1") && refused.contains("recover"), "{refused}");
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).expect("a folder").flatten().map(|file| file.file_name()).collect();
    assert_eq!(left, ["d0"], "nothing is left behind");
}

/// Channels with some known fields.
fn channels() -> Vec<ChannelDescription> {
    let text = |text: &str| Some(text.to_owned());
    let (scale, offset) = (Some(0.02), Some(-1.0));
    vec![
        ChannelDescription {
            name: text("a, \"b\""),
            unit: text("kPa"),
            scale,
            offset,
            ..ChannelDescription::default()
        },
        ChannelDescription { unit: text("V"), ..ChannelDescription::default() },
    ]
}

#[test]
fn the_heads_of_csv_say_what_the_codes_stand_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let recording = made(&Spec { channels: channels(), ..counted() }, folder.path());
    let path = folder.path().join("x.csv");
    let cut = Cut { first: Frames(0), frames: Frames(1) };
    csv(&mut *store(), &recording, Csv::of(cut), &path, &mut |_| {}).expect("written");
    let text = std::fs::read_to_string(&path).expect("there");
    let expected = "frame [1],time [s],\"a, \"\"b\"\" [code; kPa = 0.02 * code + -1]\",\"channel 1 [code; V, scale unknown]\"\n\
                    0,0.000000000000,0,1\n";
    assert_eq!(text, expected);
}

#[test]
fn channels_that_are_too_many_for_attributes_are_left_out_of_a_view_and_it_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let layout = Layout::analogue(1000, 8).expect("exists");
    let name = Some("n".repeat(100));
    let channels = vec![ChannelDescription { name, ..ChannelDescription::default() }; 1000];
    let recording = made(&Spec { layout, block: 4000, stored: 8000, channels, ..counted() }, folder.path());
    let path = folder.path().join("view.h5");
    hdf5(&recording, &path).expect("a view");
    let bytes = std::fs::read(path).expect("there");
    let has = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    assert!(has(b"channels_left_out") && !has(b"channel_names"));
}

/// A Python with these packages, or the reason why there is none.
fn python(packages: &str) -> Result<String, String> {
    let python = std::env::var("HAIRSPRING_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let mut command = Command::new(&python);
    command.args(["-c", &format!("import {packages}")]).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(python),
        _ => Err(format!("{python} has not all of {packages}; `cargo xtask test --setup` installs them")),
    }
}

#[test]
fn other_programs_read_recordings_and_views() {
    let python = match python("sigmf, numpy, h5py") {
        Ok(python) => python,
        Err(reason) => {
            testing::skip("other_programs_read_recordings_and_views", reason);
            return;
        }
    };
    let folder = tempfile::tempdir().expect("a folder");
    let layout = |channels, bits, container| Layout::stored_as(channels, bits, container).expect("exists");
    let gaps = vec![(0, 8), (8064, 10), (20_160, 1_000_000)];
    let specs = [
        ("plain", counted()),
        ("gapped", Spec { gaps: gaps.clone(), ..counted() }),
        ("striped", Spec { members: 3, gaps: gaps.clone(), ..counted() }),
        ("eight_channels", Spec { layout: layout(8, 14, Container::I16), gaps: vec![(8064, 10)], ..counted() }),
        ("bytes", Spec { layout: layout(3, 8, Container::I8), block: 3072, stored: 30_000, ..counted() }),
        ("described", Spec { channels: channels(), ..counted() }),
        ("unsigned", Spec { layout: layout(1, 16, Container::U16), ..counted() }),
        ("words", Spec { layout: layout(2, 24, Container::I32), ..counted() }),
        ("digital", Spec { layout: layout(20, 1, Container::Bits), block: 3072, stored: 30_000, ..counted() }),
        (
            "packed",
            Spec {
                layout: layout(3, 12, Container::Packed12),
                block: 9 * 512,
                stored: 9 * 5000,
                gaps: vec![(9 * 700, 4)],
                members: 2,
                ..counted()
            },
        ),
        ("noise", Spec { gaps, pattern: Pattern::Noise { seed: 1 }, ..counted() }),
        ("killed", Spec { ended: false, pattern: Pattern::Noise { seed: 1 }, ..counted() }),
    ];
    for (name, spec) in specs {
        let folder = folder.path().join(name);
        let recording = made(&spec, &folder);
        if spec.pattern != Pattern::Counter {
            continue;
        }
        hdf5(&recording, &folder.join("view.h5")).expect("a view");
        // From the second grain of the recording on, until the first gap.
        let run = piece::Piece::of(&recording, Cut::ALL).expect("a piece").runs()[0].clone();
        let grain = spec.layout.grain().frames;
        let cut = Cut { first: Frames(run.start + grain), frames: Frames((run.end - run.start).min(900) - grain) };
        let path = folder.join(format!("from_{}.npy", cut.first.0));
        npy(&mut *store(), &recording, refusing(cut), &path, &mut |_| {}).expect("written");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(python)
        .arg(root.join("tests/other_programs.py"))
        .arg(root.join("../../docs/recording-format.md"))
        .arg(folder.path())
        .output()
        .expect("python runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("12 recordings"), "{said}");
}

/// Reads exports with zarr, soundfile and flac. The script computes what must be in them from the pattern and the gaps.
#[test]
fn other_programs_read_arrays() {
    let skip = |reason: String| testing::skip("other_programs_read_arrays", reason);
    let python = match python("numpy, soundfile, zarr") {
        Ok(python) => python,
        Err(reason) => return skip(reason),
    };
    let flac_there = Command::new("flac").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !flac_there.is_ok_and(|status| status.success()) {
        return skip("flac is not installed; `cargo xtask test --setup` installs it".to_owned());
    }
    let folder = tempfile::tempdir().expect("a folder");
    let layout = |channels, bits, container| Layout::stored_as(channels, bits, container).expect("exists");
    let large = |layout, block| Spec { layout, block, stored: block * 40, ..counted() };
    let specs = [
        // Larger than a block of FLAC, with a gap at the beginning, within and longer than chunks.
        ("gapped", Spec { gaps: vec![(0, 8), (8064, 10), (20_160, 1_000_000)], channels: channels(), ..counted() }),
        ("sine", Spec { pattern: Pattern::Sine, ..large(layout(2, 16, Container::I16), 4096) }),
        ("noise", Spec { pattern: Pattern::Noise { seed: 1 }, ..large(layout(3, 32, Container::I32), 12 * 512) }),
        ("eight", large(layout(8, 14, Container::I16), 8192)),
        ("bytes", large(layout(3, 8, Container::I8), 3072)),
        ("unsigned_bytes", large(layout(1, 8, Container::U8), 4096)),
        ("unsigned", large(layout(2, 16, Container::U16), 4096)),
        ("words", large(layout(2, 24, Container::I32), 8192)),
        ("digital", large(layout(6, 1, Container::Bits), 4096)),
        ("packed", Spec { gaps: vec![(9 * 700, 4)], members: 2, ..large(layout(3, 12, Container::Packed12), 9 * 512) }),
        ("floats", large(layout(2, 32, Container::F32), 8192)),
    ];
    for (name, spec) in specs {
        let folder = folder.path().join(name);
        let recording = made(&spec, &folder);
        let out = |ending: &str| folder.join(format!("x.{ending}"));
        let refused = zarr(&mut *store(), &recording, refusing(Cut::ALL), &out("zarr"), &mut |_| {});
        assert_eq!(refused.is_err(), !spec.gaps.is_empty(), "{name}");
        for (gaps, prefix) in [(GapChoice::Fill(1.0), ""), (GapChoice::LeaveOut, "left_out_")] {
            let all = ArrayCut { cut: Cut::ALL, gaps, units: ExportUnits::Codes };
            let path = |ending: &str| folder.join(format!("{prefix}{name}.{ending}"));
            npy(&mut *store(), &recording, all, &path("npy"), &mut |_| {}).expect("npy");
            zarr(&mut *store(), &recording, all, &path("zarr"), &mut |_| {}).expect("zarr");
            wav(&mut *store(), &recording, all, &path("wav"), &mut |_| {}).expect("wav");
            let flac = flac(&mut *store(), &recording, all, &path("flac"), &mut |_| {});
            match name {
                "floats" => assert!(flac.expect_err("floats").to_string().contains("npy or zarr")),
                _ => assert!(flac.is_ok(), "{flac:?}"),
            }
        }
        let left = std::fs::read_dir(&folder).expect("a folder").flatten();
        assert!(!left.into_iter().any(|file| file.file_name().to_string_lossy().ends_with(".tmp")));
    }
    // Beyond 4 GiB: the head, followed only by a hole.
    let frames = 5 << 28;
    let head = super::wav::head_of_four(frames);
    let rf64 = std::fs::File::create(folder.path().join("large.wav")).expect("a file");
    (&rf64).write_all(&head).expect("written");
    rf64.set_len(head.len() as u64 + frames * 16).expect("a hole");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/other_arrays.py");
    let output = Command::new(python).arg(script).arg(folder.path()).output().expect("python runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("22 arrays"), "{said}");
}

#[test]
fn arrays_are_refused_where_their_format_cannot_hold_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x");
    let nine = made(
        &Spec { layout: Layout::analogue(9, 8).expect("exists"), block: 9 * 512, stored: 9 * 512, ..counted() },
        folder.path(),
    );
    let told = |written: Result<ExportedPiece, ExportError>| written.expect_err("refused").to_string();
    assert!(told(flac(&mut *store(), &nine, refusing(Cut::ALL), &path, &mut |_| {})).contains("8 channels"));
    for (value, fits) in [(128.0, false), (0.5, false), (f64::NAN, false), (-128.0, true)] {
        let filled = ArrayCut { cut: Cut::ALL, gaps: GapChoice::Fill(value), units: ExportUnits::Codes };
        let path = folder.path().join(format!("{value}.npy"));
        assert_eq!(npy(&mut *store(), &nine, filled, &path, &mut |_| {}).is_ok(), fits, "{value}");
    }
}

#[test]
fn a_view_of_too_many_pieces_says_to_join() {
    let folder = tempfile::tempdir().expect("a folder");
    let layout = Layout::analogue(1, 8).expect("exists");
    let spec = Spec { layout, block: 8, stored: 8 * 3000, members: 2, sync_every: 100_000, ..counted() };
    let recording = made(&spec, folder.path());
    let path = folder.path().join("view.h5");
    let refused = hdf5(&recording, &path).expect_err("too many").to_string();
    assert!(refused.contains("join"), "{refused}");
    assert!(!path.exists());
}
