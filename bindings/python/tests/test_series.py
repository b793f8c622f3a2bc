"""A series of segments opens as one recording, by its name, its index or its collection."""

import json
import subprocess

import pytest

from hairspring import GapError, open_recording

numpy = pytest.importorskip("numpy")

CARD = "virtual:2ch,14bit,200kS/s,data=counter"


def recorded(command, base, *more):
    arguments = [command, "record", "--card", CARD, "--frames", "120000", "--to", base, "--notify", "16KiB", "--segment", "100ms"]
    ended = subprocess.run([*arguments, *more, "--format", "json"], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_a_series_is_one_array_of_frames_and_each_segment_a_part_of_it(tmp_path, command):
    report = recorded(command, tmp_path / "x")
    segments = report["series"]["segments"]
    assert segments > 2 and report["lost_bytes"] == 0
    whole = open_recording(tmp_path / "x", verify=True)
    assert whole.state == "complete" and whole.gaps == [] and len(whole) == 120_000
    frames = whole[0:120_000]
    for name in ("x.hairspring-series", "x.sigmf-collection"):
        assert (open_recording(tmp_path / name)[0:120_000] == frames).all()
    end = 0
    for number in range(segments):
        part = open_recording(tmp_path / f"x-{number:06}")
        assert part.first_frame == end
        end = part.end_frame
        assert (part[part.first_frame : end] == frames[part.first_frame : end]).all()
    assert end == 120_000
    # Across a cut, by number and by channel.
    cut = open_recording(tmp_path / "x-000001").first_frame
    assert (whole[cut - 5 : cut + 5, 1] == frames[cut - 5 : cut + 5, 1]).all()


def test_what_retention_deleted_is_missing_before_the_first_frame_and_no_loss(tmp_path, command):
    report = recorded(command, tmp_path / "x", "--keep", "2")
    assert report["verdict"] == "complete" and report["series"]["dropped_segments"] > 0
    recording = open_recording(tmp_path / "x")
    assert 0 < recording.first_frame < recording.end_frame == 120_000
    assert len(recording[recording.first_frame : recording.end_frame]) == len(recording)
    with pytest.raises((IndexError, GapError)):
        recording.read(0, 10)


def test_sigmf_python_loads_the_collection_and_finds_every_segment(tmp_path, command):
    sigmf = pytest.importorskip("sigmf")
    report = recorded(command, tmp_path / "x")
    collection = sigmf.sigmffile.fromfile(str(tmp_path / "x.sigmf-collection"))
    names = collection.get_stream_names()
    assert names == [f"x-{number:06}" for number in range(report["series"]["segments"])]
    first = sigmf.sigmffile.fromfile(str(tmp_path / "x-000001.sigmf-meta"))
    assert first.get_captures()[0]["core:global_index"] == open_recording(tmp_path / "x-000001").first_frame
