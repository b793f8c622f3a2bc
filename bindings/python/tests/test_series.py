"""A series of segments opens as one recording, by its name, its index or its collection."""

import json
import subprocess

import pytest

import hairspring
from hairspring import Gap, GapError, open_recording

numpy = pytest.importorskip("numpy")

CARD = "virtual:2ch,14bit,200kS/s,data=counter"


def recorded(command, base, *more, code=0):
    arguments = [command, "record", "--card", CARD, "--frames", "120000", "--to", base, "--notify", "16KiB", "--segment", "100ms"]
    ended = subprocess.run([*arguments, *more, "--format", "json"], capture_output=True, text=True, timeout=120)
    assert ended.returncode == code, ended.stderr
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


def following(command, tmp_path, monkeypatch, **how):
    """A reader that has read one piece of a series before retention deletes what follows."""
    monkeypatch.setattr(hairspring.recording, "_FOLLOWED", 64 << 10)
    recorded(command, tmp_path / "x")
    recording = open_recording(tmp_path / "x")
    pieces = recording.follow(**how)
    first = next(pieces)
    # The pause is a gap.
    recorded(command, tmp_path / "x", "--resume", "--keep", "2", code=4)
    return recording, first, pieces


def test_following_goes_on_behind_what_retention_deleted(tmp_path, command, monkeypatch):
    """Symptom: IndexError."""
    _, (first, rows), pieces = following(command, tmp_path, monkeypatch, gaps="split")
    assert first == 0 and len(rows) > 0
    left = open_recording(tmp_path / "x")
    assert left.first_frame > len(rows)
    at = left.first_frame
    for first, rows in pieces:
        assert first >= at
        at = first + len(rows)
        if first >= left.first_frame:
            assert (rows == left[first:at]).all()
    assert at == left.end_frame


def test_following_without_gaps_says_what_retention_deleted(tmp_path, command, monkeypatch):
    recording, (_, rows), pieces = following(command, tmp_path, monkeypatch)
    at = recording.first_frame + len(rows)
    with pytest.raises(GapError, match="deleted") as raised:
        for first, rows in pieces:
            at = first + len(rows)
    left = open_recording(tmp_path / "x").first_frame
    assert raised.value.gaps == [Gap(at, left - at, "deleted")]


def test_following_opens_only_the_segments_that_are_still_to_be_read(tmp_path, command):
    segments = recorded(command, tmp_path / "x")["series"]["segments"]
    recording = open_recording(tmp_path / "x")
    assert len(recording._contents.data) == segments > 3
    for at, members in ((0, segments), (open_recording(tmp_path / "x-000002").first_frame, segments - 2), (recording.end_frame, 1)):
        looked, _ = recording._looked(at)
        assert len(looked._contents.data) == members
        assert (looked.end_frame, looked.state, looked.id) == (recording.end_frame, recording.state, recording.id)
        assert looked.first_frame <= at


def test_frames_that_no_trigger_asked_for_are_missing_and_no_loss(tmp_path, command):
    card = "virtual:1ch,14bit,100kS/s,data=sine,frames=20000"
    trigger = ["--trigger", "rising:ch0@0.5", "--pre", "10", "--post", "20", "--shots", "3"]
    ended = subprocess.run([command, "record", "-q", "--card", card, *trigger, "--to", tmp_path / "t"], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    recording = open_recording(tmp_path / "t")
    assert len(recording.sections) == 3 and recording.gaps == []
    first, second = recording.sections[:2]
    left_out = [Gap(first.first_frame + 30, second.first_frame - first.first_frame - 30, "left_out")]
    assert recording.missing(first.first_frame, second.first_frame) == left_out
    filled = recording.read(first.first_frame, second.first_frame + 30, gaps="fill", fill=-1)
    assert (filled[30:-30] == -1).all() and (filled[-30:] == recording[second.first_frame : second.first_frame + 30]).all()
    with pytest.raises(GapError, match="left_out"):
        recording.to_dask()
