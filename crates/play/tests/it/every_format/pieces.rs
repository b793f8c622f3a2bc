//! Pieces without rows, and values in units.

use super::*;

#[test]
fn an_empty_recording_and_an_empty_piece_are_arrays_without_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let empty = made(&Spec { stored: 0, ..counted() }, &folder.path().join("empty"));
    let some = made(&counted(), &folder.path().join("some"));
    for (recording, cut) in [(&empty, Cut::ALL), (&some, Cut { first: Frames(5), frames: Frames(0) })] {
        for gaps in [GapChoice::Refuse, GapChoice::LeaveOut, GapChoice::Fill(0.0)] {
            let options = ArrayCut { cut, gaps, units: ExportUnits::Codes };
            let folder = tempfile::tempdir().expect("a folder");
            let path = |name: &str| folder.path().join(name);
            let mut disk = store();
            for exported in [
                npy(&mut *disk, recording, options, &path("x.npy"), &mut |_| {}),
                wav(&mut *disk, recording, options, &path("x.wav"), &mut |_| {}),
                flac(&mut *disk, recording, options, &path("x.flac"), &mut |_| {}),
                zarr(&mut *disk, recording, options, &path("x.zarr"), &mut |_| {}),
            ] {
                assert_eq!(exported.expect("an empty array").frames, Frames(0));
            }
            assert!(npy_rows(&path("x.npy")).is_empty());
            let exported = csv(&mut *store(), recording, Csv::of(cut), &path("x.csv"), &mut |_| {}).expect("csv");
            assert_eq!(exported.frames, Frames(0));
        }
    }
    let view = hdf5(&empty, &folder.path().join("x.h5")).expect("a view");
    assert_eq!((view.datasets, view.pieces, view.exported.frames), (1, 0, Frames(0)));
    let behind = Cut { first: Frames(1_000_000), frames: Frames(1) };
    let refused = npy(&mut *store(), &some, refusing(behind), &folder.path().join("y.npy"), &mut |_| {});
    assert!(refused.expect_err("behind the end").to_string().contains("there is no frame 1000000"));
}

#[test]
fn values_are_in_the_units_of_the_channels_or_the_channel_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let scaled = |scale, offset| ChannelDescription {
        unit: Some("V".to_owned()),
        scale: Some(scale),
        offset: Some(offset),
        ..ChannelDescription::default()
    };
    let channels = vec![scaled(0.5, 1.0), scaled(-2.0, 0.0)];
    let recording = made(&Spec { channels, gaps: vec![(8000, 10)], ..counted() }, folder.path());
    let cut = Cut { first: Frames(1999), frames: Frames(13) };
    let options = ArrayCut { cut, gaps: GapChoice::Fill(f64::NAN), units: ExportUnits::Channels };
    let path = |name: &str| folder.path().join(name);
    npy(&mut *store(), &recording, options, &path("x.npy"), &mut |_| {}).expect("npy");
    let rows = npy_rows(&path("x.npy"));
    assert_eq!((rows.len(), rows[0], rows[1], rows[22], rows[23]), (26, 1000.5, -4000.0, 1006.0, -4022.0));
    assert!(rows[2..22].iter().all(|value| value.is_nan()));
    zarr(&mut *store(), &recording, options, &path("x.zarr"), &mut |_| {}).expect("zarr");
    let (values, _) = zarr_rows(&path("x.zarr"), "samples", "<f8");
    assert!(values.iter().zip(&rows).all(|(a, b)| a.to_bits() == b.to_bits()), "{values:?}");
    csv(&mut *store(), &recording, Csv { units: ExportUnits::Channels, ..Csv::of(cut) }, &path("x.csv"), &mut |_| {})
        .expect("csv");
    let text = std::fs::read_to_string(path("x.csv")).expect("there");
    assert!(
        text.starts_with("frame [1],time [s],channel 0 [V],channel 1 [V]\n1999,0.001999000000,1000.5,-4000\n# frames"),
        "{text}"
    );
    let copy = hdf5_copy(&mut *store(), &recording, cut, &path("x.h5"), &mut |_| {}).expect("a copy");
    assert_eq!((copy.datasets, copy.exported.frames), (2, Frames(3)));
    assert!(
        std::fs::read(path("x.h5"))
            .expect("there")
            .ends_with(&[1006.0_f64, -4022.0, 1006.5, -4024.0].map(f64::to_le_bytes).concat())
    );
    let refused =
        wav(&mut *store(), &recording, options, &path("x.wav"), &mut |_| {}).expect_err("codes only").to_string();
    assert!(refused.contains("WAV holds codes"), "{refused}");
    let unknown = made(
        &Spec { channels: vec![scaled(0.5, 1.0), ChannelDescription::default()], ..counted() },
        &folder.path().join("unknown"),
    );
    let refused = npy(&mut *store(), &unknown, options, &path("y.npy"), &mut |_| {}).expect_err("no scale").to_string();
    assert!(refused.contains("channel 1"), "{refused}");
}
