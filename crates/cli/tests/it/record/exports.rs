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
