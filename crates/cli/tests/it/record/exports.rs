//! Exports as arrays by the real command.

use super::{CARD, about, number, recorded, refused};
use crate::folder;

#[test]
fn arrays_hold_the_samples_of_a_cut_or_are_refused_with_what_to_write() {
    let folder = folder();
    recorded(folder.path(), &["--card", CARD, "--frames", "20000", "--to", "x"], 0);
    let data = std::fs::read(folder.path().join("x.sigmf-data")).expect("it is there");
    let cut = ["export", "x", "--from", "1000", "--frames", "10", "--out"];
    for ending in ["wav", "flac", "zarr"] {
        let exported = about(folder.path(), &[&cut[..], &[&format!("cut.{ending}")]].concat(), 0);
        assert_eq!((&exported["form"], number(&exported, "frames")), (&ending.into(), 10));
        refused(folder.path(), &[&cut[..], &[&format!("cut.{ending}")]].concat(), 2, "exists already");
    }
    let wav = std::fs::read(folder.path().join("cut.wav")).expect("it is there");
    assert!(wav.ends_with(&data[4000..4040]), "the samples of the cut are the last of the file");
    refused(folder.path(), &["export", "x", "--out", "y.h5", "--gaps", "skip"], 2, "HDF5 views");
    refused(folder.path(), &[&cut[..], &["y.npy", "--fill", "3"]].concat(), 2, "--gaps fill");
    refused(folder.path(), &[&cut[..], &["y.npy", "--gaps", "fill", "--fill", "0.5"]].concat(), 2, "another value");
    about(folder.path(), &["export", "x", "--out", "x.h5"], 0);
}

/// Regression: a sixth of a recording was exported with exit code 0 and without a message.
#[test]
fn an_export_of_a_copy_that_was_cut_short_says_what_is_missing_and_ends_with_its_code() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    recorded(folder.path(), &["--card", CARD, "--frames", "20000", "--notify", "4KiB", "--to", "x"], 0);
    std::fs::File::options().write(true).open(path("x.sigmf-data")).expect("there").set_len(20_000).expect("cut");
    let export = |rest: &[&'static str]| [&["export", "x", "--out"], rest].concat();
    for ending in ["x.npy", "x.wav", "x.flac", "x.zarr"] {
        refused(folder.path(), &export(&[ending]), 2, "are missing in this piece");
        let exported = about(folder.path(), &export(&[ending, "--gaps", "skip"]), 4);
        assert_eq!(number(&exported, "frames") + number(&exported, "missing_frames"), 20_000, "{exported:#}");
        assert_eq!(exported["missing"][0]["cause"], "damaged", "{exported:#}");
    }
    let exported = about(folder.path(), &export(&["x.CSV"]), 4);
    let text = std::fs::read_to_string(path("x.CSV")).expect("there");
    let expected = format!("# frames {} to 19999 are missing", number(&exported, "frames"));
    assert!(text.lines().last().is_some_and(|line| line.starts_with(&expected)), "{expected}");
    let whole = ["x.npy.1.npy", "--frames", "100"];
    assert_eq!(number(&about(folder.path(), &export(&whole), 0), "missing_frames"), 0);
    refused(folder.path(), &export(&["y.npy", "--from", "20001"]), 2, "there is no frame 20001");
    refused(folder.path(), &export(&["y.npy", "--scaled", "--frames", "9"]), 2, "channel 0");
}

#[test]
fn several_recordings_are_verified_with_a_line_for_each_and_the_highest_code() {
    let folder = folder();
    for name in ["a", "b"] {
        recorded(folder.path(), &["--card", CARD, "--frames", "2000", "--to", name], 0);
    }
    let path = folder.path().join("b.sigmf-data");
    let mut bytes = std::fs::read(&path).expect("there");
    bytes[17] ^= 1;
    std::fs::write(&path, bytes).expect("written");
    let output = crate::hairspring(&["verify", "a.sigmf-meta", "a", "b", "c"]).current_dir(folder.path()).output();
    let output = output.expect("it starts");
    let text = crate::stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), crate::code(&output)), (3, 4), "{text}");
    assert!(lines[0].starts_with("a: complete") && lines[1].starts_with("b: incomplete: 1 block"), "{text}");
    assert!(lines[2].starts_with("c: not verified: no recording c"), "{text}");
    let all = about(folder.path(), &["verify", "a", "b"], 4);
    assert_eq!(crate::items(&all, "recordings").len(), 2, "{all:#}");
}
