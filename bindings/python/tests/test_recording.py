"""Recordings as memory maps: made by hand after docs/recording-format.md, and by the command."""

import json
import os
import subprocess
import sys

import pytest

from hairspring import Gap, open_recording

numpy = pytest.importorskip("numpy")


def written(folder, container, channels, columns, rows, captures, gaps=None, rate=None):
    """Writes a recording of one member; without `gaps` one that was cut off."""
    about = {
        "core:num_channels": columns,
        "hairspring:layout": {"channels": channels, "resolution_bits": 12, "container": container},
        "hairspring:recording": {"rate": rate},
        "hairspring:state": "recording" if gaps is None else "incomplete",
    }
    if gaps is not None:
        about["hairspring:result"] = {"gaps": [dict(zip(("first_frame", "frames", "cause"), gap)) for gap in gaps]}
    base = folder / "made"
    (folder / "made.sigmf-meta").write_text(json.dumps({"global": about, "captures": captures}))
    (folder / "made.sigmf-data").write_bytes(rows.tobytes())
    return base


def capture(start, first, frames):
    return {"core:sample_start": start, "core:global_index": first, "hairspring:frames": frames}


def test_samples_are_a_memory_map_with_the_gaps_beside_it(tmp_path):
    rows = numpy.arange(40, dtype="<i2").reshape(-1, 4)
    captures = [capture(0, 0, 6), capture(6, 9, 4)]
    rate = {"frames": 1_000_000, "seconds": 2}
    base = written(tmp_path, "i16", 4, 4, rows, captures, [(6, 3, "buffer_full")], rate)
    recording = open_recording(base)
    assert isinstance(recording.data, numpy.memmap) and (recording.data == rows).all()
    assert not recording.data.flags.writeable
    assert recording.gaps == [Gap(6, 3, "buffer_full")] and recording.sample_rate == 500_000
    assert recording.channels == 4 and len(recording) == 10 and recording.state == "incomplete"
    assert [(first, len(values)) for first, values in recording.runs()] == [(0, 6), (9, 4)]
    assert recording.frames() is recording.data
    assert recording.metadata["global"]["core:num_channels"] == 4
    assert "10 frames of 4 channels, 1 gaps" in repr(recording)


def test_any_of_its_files_names_it(tmp_path):
    base = written(tmp_path, "u8", 1, 1, numpy.arange(3, dtype="u1"), [capture(0, 0, 3)], [])
    for end in ["", ".sigmf-data", ".sigmf-meta", ".hairspring-journal"]:
        assert len(open_recording(f"{base}{end}")) == 3


def test_a_recording_that_was_cut_off_tells_its_gaps_from_its_captures(tmp_path):
    rows = numpy.arange(10, dtype="<f4").reshape(-1, 1)
    recording = open_recording(written(tmp_path, "f32", 1, 1, rows, [capture(0, 2, 4), capture(4, 16, 6)]))
    assert recording.gaps == [Gap(0, 2, None), Gap(6, 10, None)] and recording.state == "recording"
    assert recording.sample_rate is None


def test_holes_are_left_out(tmp_path):
    rows = numpy.arange(9, dtype="<i4").reshape(-1, 1)
    hole = {"core:sample_start": 3, "hairspring:frames": 3}
    recording = open_recording(written(tmp_path, "i32", 1, 1, rows, [capture(0, 0, 3), hole, capture(6, 6, 3)], []))
    assert [first for first, _ in recording.runs()] == [0, 6]
    assert recording.frames().ravel().tolist() == [0, 1, 2, 6, 7, 8]


def test_packed_samples_are_unpacked(tmp_path):
    values = numpy.array([-2048, 2047, 1, -1, 0, 5], dtype=numpy.int16)
    pairs = values.reshape(-1, 2).astype(numpy.uint16) & 0xFFF
    packed = numpy.stack([pairs[:, 0] & 255, pairs[:, 0] >> 8 | (pairs[:, 1] & 15) << 4, pairs[:, 1] >> 4], axis=1)
    # One channel: a row of the file is two frames.
    recording = open_recording(written(tmp_path, "packed12", 1, 3, packed.astype("u1"), [capture(0, 10, 6)], []))
    assert recording.frames().ravel().tolist() == values.tolist() and len(recording) == 6
    assert [first for first, _ in recording.runs()] == [20]


def test_bits_are_unpacked(tmp_path):
    rows = numpy.array([[0b0000_0101, 1], [0, 2]], dtype="u1")
    recording = open_recording(written(tmp_path, "bits", 10, 2, rows, [capture(0, 0, 2)], []))
    assert recording.frames().tolist() == [[1, 0, 1, 0, 0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]]


def test_an_empty_recording_has_no_frames(tmp_path):
    recording = open_recording(written(tmp_path, "i16", 2, 2, numpy.empty((0, 2), "<i2"), [], []))
    assert len(recording) == 0 and recording.data.shape == (0, 2) and recording.frames().shape == (0, 2)


def test_what_is_no_recording_is_told(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_recording(tmp_path / "none")
    (tmp_path / "foreign.sigmf-meta").write_text('{"global": {"core:datatype": "ri16_le"}, "captures": []}')
    with pytest.raises(ValueError, match="hairspring:layout"):
        open_recording(tmp_path / "foreign")
    (tmp_path / "broken.sigmf-meta").write_text("{")
    with pytest.raises(ValueError):
        open_recording(tmp_path / "broken")
    with pytest.raises(TypeError):
        open_recording(3)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("core:num_channels", 0),
        ("core:num_channels", "two"),
        ("hairspring:layout", {"container": "i16"}),
        ("hairspring:layout", {"container": "i16", "channels": 0}),
        ("hairspring:recording", {"rate": 5}),
        ("hairspring:recording", {"rate": {"frames": 5, "seconds": 0}}),
        ("hairspring:result", {"gaps": [{}]}),
        ("hairspring:result", 5),
    ],
    ids=repr,
)
def test_metadata_that_make_no_sense_are_no_recording(tmp_path, key, value):
    base = written(tmp_path, "i16", 2, 2, numpy.zeros((3, 2), "<i2"), [capture(0, 0, 3)], [])
    metadata = json.loads((tmp_path / "made.sigmf-meta").read_text())
    metadata["global"][key] = value
    (tmp_path / "made.sigmf-meta").write_text(json.dumps(metadata))
    with pytest.raises(ValueError, match="no recording of hairspring"):
        open_recording(base)


@pytest.mark.parametrize("document", [[], {"global": 3}, {"global": {}, "captures": {}}], ids=repr)
def test_a_document_of_another_kind_is_no_recording(tmp_path, document):
    (tmp_path / "other.sigmf-meta").write_text(json.dumps(document))
    with pytest.raises(ValueError, match="no recording of hairspring"):
        open_recording(tmp_path / "other")


@pytest.mark.parametrize("captures", [5, [5], [{}]], ids=repr)
def test_captures_that_make_no_sense_are_no_recording(tmp_path, captures):
    base = written(tmp_path, "i16", 2, 2, numpy.zeros((3, 2), "<i2"), captures, [])
    with pytest.raises(ValueError, match="no recording of hairspring"):
        open_recording(base)


def test_without_numpy_it_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(ImportError, match="pip install numpy"):
        open_recording(tmp_path / "any")


def test_what_the_command_records_is_opened(tmp_path):
    command = os.environ.get("HAIRSPRING_COMMAND")
    if not command:
        pytest.skip("HAIRSPRING_COMMAND does not name the command hairspring")
    base = tmp_path / "real"
    record = [command, "record", "--card", "virtual:4ch,14bit,100kS/s", "--for", "200ms", "--to", base]
    ended = subprocess.run(record, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    recording = open_recording(base)
    assert recording.state == "complete" and recording.gaps == [] and recording.sample_rate == 100_000
    assert recording.data.dtype == "<i2" and recording.channels == 4
    result = recording.metadata["global"]["hairspring:result"]
    assert recording.data.nbytes == result["ledger"]["stored_bytes"] > 0
