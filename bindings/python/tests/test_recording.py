"""Recordings and what proves them: made by hand after docs/recording-format.md, and by the command.

Symptom that these tests come from: a recording whose process was killed opened as 400,556,032 frames without a gap, where 11.5 million had
been written. The length was taken from the size of the file, most of which was reserved space.
"""

import copy
import functools
import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import time

import pytest

import hairspring
from hairspring import Gap, GapError, open_recording

numpy = pytest.importorskip("numpy")
pytestmark = pytest.mark.usefixtures("no_other_warning")

ID = "0123456789abcdef0123456789abcdef"
CAUSES = ["buffer_full", "served_late", "overwritten", "source", "write_failed", "damaged", "resumed"]
BLOCK, GAP, SYNC, END = 2, 3, 6, 8


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82F63B78 * (crc & 1)
    return crc ^ 0xFFFFFFFF


def journal(records):
    """The journal with these records: kind and payload."""
    text = b""
    for sequence, (kind, payload) in enumerate(records):
        body = struct.pack("<QB", sequence, kind) + payload
        body += bytes(56 - len(body))
        text += b"hsJ1" + struct.pack("<I", crc32c(body)) + body
    return text


def written(folder, rows, container="i16", channels=1, frames_in_row=1, gaps=(), rate=None, ended=True, name="made", per_block=4):
    """Writes a recording of one member: the rows in blocks of `per_block` of them. A gap is the row before which it lies, how many frames,
    and why. Without `ended` it was cut off."""
    data, row = rows.tobytes(), rows.itemsize * (rows.shape[1] if rows.ndim > 1 else 1)
    block, blocks = row * per_block, range(0, len(rows.tobytes()), row * per_block)
    produced = len(data) + sum(frames // frames_in_row * row for _, frames, _ in gaps)
    records = [(1, bytes.fromhex(ID) + struct.pack("<IIIHHq", block, row, frames_in_row, 0, 1, 0))]
    first, missing, captures, listed = 0, 0, [], []
    for start, frames, cause in [*gaps, (len(rows), 0, None)]:
        if start > first:
            number, length = first * frames_in_row + missing, (start - first) * frames_in_row
            captures.append({"core:sample_start": first, "core:global_index": number // frames_in_row, "hairspring:frames": length})
        if cause:
            place = start * frames_in_row + missing
            listed.append({"first_frame": place, "frames": frames, "cause": cause, "found_ns": 0})
            records.append((GAP, struct.pack("<QQQBq", start * row, place, frames, CAUSES.index(cause) + 1, 0)))
        first, missing = start, missing + frames
    for index, offset in enumerate(blocks):
        piece = data[offset : offset + block]
        records.append((BLOCK, struct.pack("<QQIIQq", index, offset, len(piece), crc32c(piece), produced, 0)))
    lost = produced - len(data)
    about = {
        "core:datatype": {"i8": "ri8", "u8": "ru8", "i16": "ri16_le", "i32": "ri32_le", "f32": "rf32_le"}.get(container, "ru8"),
        "core:version": "1.2.5",
        "core:num_channels": channels if container in ("i8", "u8", "i16", "u16", "i32", "f32") else row,
        "core:extensions": [{"name": "hairspring", "version": "1.0.0", "optional": True}],
        "hairspring:layout": {
            "channels": channels,
            "resolution_bits": {"packed12": 12, "bits": 1, "f32": 32, "i32": 32, "u8": 8}.get(container, 16),
            "container": container,
        },
        "hairspring:recording": {
            "id": ID, "member": 0, "members": [str(folder / name)], "block_bytes": block, "rate": rate, "pattern": None, "clocked": True,
            "on_overrun": "gap", "started_realtime_ns": 0, "started_monotonic_ns": 0,
        },
        "hairspring:state": "recording",
    }  # fmt: skip
    if ended:
        verdict = "incomplete" if gaps else "complete"
        records.append((SYNC, struct.pack("<QQq", len(records), len(data), 0)))
        number = {"complete": 1, "incomplete": 3}[verdict]
        records.append((END, struct.pack("<BBQQQQ", number, 0, produced, len(data), lost, 0)))
        about["hairspring:state"] = verdict
        ledger = {
            "produced_bytes": produced, "stored_bytes": len(data), "durable_bytes": len(data), "in_flight_bytes": 0, "in_ring_bytes": 0,
            "in_fifo_bytes": 0, "lost_bytes": lost, "left_out_bytes": 0,
        }  # fmt: skip
        about["hairspring:result"] = {
            "verdict": verdict, "reason": "by hand", "ledger": ledger, "gaps": listed, "skips": [], "triggers": [], "ladder": [],
            "direct_io_proven": False, "worst_stall_ns": 0, "buffer_high_water_bytes": 0, "buffer_bytes": 0, "elapsed_ns": 0,
        }  # fmt: skip
    base = folder / name
    (folder / f"{name}.sigmf-meta").write_text(json.dumps({"global": about, "captures": captures if ended else [], "annotations": []}))
    (folder / f"{name}.sigmf-data").write_bytes(data)
    (folder / f"{name}.hairspring-journal").write_bytes(journal(records))
    return base


def data_of(base):
    return base.with_name(base.name + ".sigmf-data")


def opened_with_warning(*arguments, **named):
    with pytest.warns(hairspring.RecordingWarning, match="hairspring recover") as caught:
        recording = open_recording(*arguments, **named)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert not recording.is_in_order and recording.faults and recording.state != "complete"
    return recording


def compressed(data):
    """As hairspring compress leaves it: one zstd frame of a raw block, and the table."""
    size = len(data)
    frame = struct.pack("<IBI", 0xFD2FB528, 0b1010_0000, size) + ((size << 3) | 1).to_bytes(3, "little") + data
    return frame + struct.pack("<IIIIIBI", 0x184D2A5E, 17, len(frame), size, 1, 0, 0x8F92EAB1)


def test_compressed_samples_are_read_and_checked_and_cannot_be_mapped(tmp_path):
    rows = numpy.arange(40, dtype="<i2").reshape(-1, 4)
    base = written(tmp_path, rows, channels=4, gaps=[(6, 3, "buffer_full")])
    path = data_of(base).with_suffix(".sigmf-data.zst")
    data = bytearray(data_of(base).read_bytes())
    path.write_bytes(compressed(data))
    data_of(base).unlink()
    recording = open_recording(base, verify=True)
    assert recording.is_in_order and (recording.read(gaps="skip") == rows).all()
    assert [(first, values.tolist()) for first, values in recording.runs()] == [(0, rows[:6].tolist()), (9, rows[6:].tolist())]
    with pytest.raises(ValueError, match="compress --undo"):
        recording.data
    # Other samples, whose file is sound.
    data[0] ^= 1
    path.write_bytes(compressed(data))
    with pytest.raises(hairspring.BlockError):
        open_recording(base)[0:4]


def test_samples_are_a_memory_map_with_the_gaps_beside_it(tmp_path):
    rows = numpy.arange(40, dtype="<i2").reshape(-1, 4)
    base = written(tmp_path, rows, channels=4, gaps=[(6, 3, "buffer_full")], rate={"frames": 1_000_000, "seconds": 2})
    recording = open_recording(base)
    assert isinstance(recording.data, numpy.memmap) and (recording.data == rows).all()
    assert not recording.data.flags.writeable
    assert recording.gaps == [Gap(6, 3, "buffer_full")] and recording.sample_rate == 500_000
    assert recording.channels == 4 and len(recording) == 13 and recording.state == "incomplete"
    assert [(first, len(values)) for first, values in recording.runs()] == [(0, 6), (9, 4)]
    assert next(recording.runs())[1].base is not None and len(recording.sections) == 2
    assert recording.metadata["global"]["core:num_channels"] == 4
    assert recording.is_in_order and recording.faults == []
    assert "13 frames of 4 channels, 1 gaps" in repr(recording)


def test_any_of_its_files_names_it(tmp_path):
    base = written(tmp_path, numpy.arange(3, dtype="u1"), "u8")
    for end in ["", ".sigmf-data", ".sigmf-meta", ".hairspring-journal"]:
        recording = open_recording(f"{base}{end}")
        assert len(recording) == 3 and recording.state == "complete"


def test_a_recording_that_was_cut_off_is_what_its_journal_proves(tmp_path):
    rows = numpy.arange(10, dtype="<f4").reshape(-1, 1)
    base = written(tmp_path, rows, "f32", gaps=[(4, 10, "source")], ended=False)
    with data_of(base).open("ab") as file:
        file.truncate(1 << 24)  # Space that was reserved.
    recording = opened_with_warning(base)
    assert len(recording) == 20 and recording.gaps == [Gap(4, 10, "source")] and recording.state == "recording"
    assert recording.read(gaps="skip").ravel().tolist() == rows.ravel().tolist() and recording.sample_rate is None
    assert "cut off" in recording.faults[0]


def test_what_does_not_match_its_checksum_is_a_gap(tmp_path):
    rows = numpy.arange(12, dtype="<i4").reshape(-1, 1)
    base = written(tmp_path, rows, "i32", ended=False)
    damaged = bytearray(data_of(base).read_bytes())
    damaged[17] ^= 1
    data_of(base).write_bytes(damaged)
    recording = opened_with_warning(base)
    assert recording.gaps == [Gap(4, 4, "damaged")]
    assert [(first, values.ravel().tolist()) for first, values in recording.runs()] == [(0, [0, 1, 2, 3]), (8, [8, 9, 10, 11])]
    assert recording.read(gaps="skip").ravel().tolist() == [0, 1, 2, 3, 8, 9, 10, 11]
    with pytest.raises(ValueError, match=r"runs\(\)"):
        recording.data


def test_a_bit_that_turned_later_is_found_by_reading_everything(tmp_path):
    base = written(tmp_path, numpy.arange(12, dtype="<i4").reshape(-1, 1), "i32")
    whole = data_of(base).read_bytes()
    damaged = bytearray(whole)
    damaged[1] ^= 1
    data_of(base).write_bytes(damaged)
    assert open_recording(base).is_in_order  # Of what a sync covers only the two newest blocks are read again.
    recording = opened_with_warning(base, verify=True)
    assert recording.gaps == [Gap(0, 4, "damaged")] and recording.state == "incomplete"
    damaged = bytearray(whole)
    damaged[17] ^= 1
    data_of(base).write_bytes(damaged)
    assert opened_with_warning(base).gaps == [Gap(4, 4, "damaged")]


@pytest.mark.parametrize("length", [0, 3, 16, 47])
def test_a_file_that_was_cut_does_not_open_as_complete(tmp_path, length):
    rows = numpy.arange(12, dtype="<i4").reshape(-1, 1)
    base = written(tmp_path, rows, "i32")
    os.truncate(data_of(base), length)
    recording = opened_with_warning(base)
    whole = length // 16 * 4
    with pytest.raises(GapError, match=f"frames {whole} to 11 .damaged"):
        recording.read()
    filled = recording.read(gaps="fill", fill=-1)
    assert filled.ravel().tolist() == [*range(whole), *[-1] * (12 - whole)] and recording.missing() == recording.gaps
    assert len(recording) == 12 and sum(part.frames for part in recording.sections) == whole and recording.state == "incomplete"
    assert recording.read(gaps="skip").ravel().tolist() == list(range(whole)) and recording.gaps == [Gap(whole, 12 - whole, "damaged")]


def test_without_its_journal_nothing_of_it_is_proven(tmp_path):
    base = written(tmp_path, numpy.arange(12, dtype="<i4").reshape(-1, 1), "i32")
    base.with_name(base.name + ".hairspring-journal").unlink()
    recording = opened_with_warning(base)
    assert recording.sections == [] and recording.data.shape == (0, 1)


def test_packed_samples_are_unpacked(tmp_path):
    values = numpy.array([-2048, 2047, 1, -1, 0, 5], dtype=numpy.int16)
    pairs = values.reshape(-1, 2).astype(numpy.uint16) & 0xFFF
    packed = numpy.stack([pairs[:, 0] & 255, pairs[:, 0] >> 8 | (pairs[:, 1] & 15) << 4, pairs[:, 1] >> 4], axis=1)
    # One channel: a row of the file is two frames.
    recording = open_recording(written(tmp_path, packed.astype("u1"), "packed12", frames_in_row=2, gaps=[(0, 20, "source")]))
    assert recording.read(gaps="skip").ravel().tolist() == values.tolist() and len(recording) == 26
    assert [first for first, _ in recording.runs()] == [20]


def test_bits_are_unpacked(tmp_path):
    rows = numpy.array([[0b0000_0101, 1], [0, 2]], dtype="u1")
    recording = open_recording(written(tmp_path, rows, "bits", channels=10))
    assert recording.read(gaps="skip").tolist() == [[1, 0, 1, 0, 0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]]


def test_an_empty_recording_has_no_frames(tmp_path):
    recording = open_recording(written(tmp_path, numpy.empty((0, 4), "<i2"), channels=4))
    assert len(recording) == 0 and recording.data.shape == (0, 4) and recording.read(gaps="skip").shape == (0, 4)
    rows = numpy.empty((0, 4), "<i2")
    for key in [slice(None), slice(0, 0), slice(0, 5), slice(-3, None), slice(5, 2)]:
        assert recording[key].shape == rows[key].shape and recording[key].dtype == rows.dtype
    assert recording.read().shape == (0, 4) and recording.read(channels=[1, 0]).shape == (0, 2) and recording.read(gaps="split") == []
    assert recording.read(gaps="fill", fill=0).shape == (0, 4) and recording.valid().shape == (0,)
    assert recording.missing() == recording.sections == list(recording.runs()) == list(recording.follow()) == []
    for number in [0, -1]:
        with pytest.raises(IndexError, match="the recording has none"):
            recording[number]
    with pytest.raises(IndexError, match="the recording has none"):
        recording.read(0, 1)


def test_what_is_no_recording_is_told(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_recording(tmp_path / "none")
    (tmp_path / "broken.sigmf-meta").write_text("{")
    with pytest.raises(ValueError):
        open_recording(tmp_path / "broken")
    with pytest.raises(TypeError):
        open_recording(3)
    with pytest.raises(TypeError):
        open_recording()


def test_a_recording_of_another_program_is_called_that(tmp_path):
    about = {"core:datatype": "ci16_le", "core:version": "1.2.5", "core:sample_rate": 48_000}
    captures = [{"core:sample_start": 0}, {"core:sample_start": 2, "core:global_index": 10}]
    (tmp_path / "foreign.sigmf-meta").write_text(json.dumps({"global": about, "captures": captures, "annotations": []}))
    (tmp_path / "foreign.sigmf-data").write_bytes(numpy.arange(10, dtype="<i2").tobytes())
    recording = open_recording(tmp_path / "foreign")
    # Only the size of the file tells its length.
    assert recording.state == "foreign" and recording.channels == 1 and recording.sample_rate == 48_000
    assert [(first, values.tolist()) for first, values in recording.runs()] == [(0, [[1j], [2 + 3j]]), (10, [[4 + 5j], [6 + 7j], [8 + 9j]])]
    assert recording.gaps == recording.missing() == [Gap(2, 8, "not_stated")]
    with pytest.raises(ValueError, match="nothing proves"):
        open_recording(tmp_path / "foreign", verify=True)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hairspring:layout", {"container": "i16"}),
        ("hairspring:layout", {"container": "i16", "channels": 0}),
        ("hairspring:recording", {"rate": 5}),
        ("hairspring:result", {"gaps": [{}]}),
        ("hairspring:result", 5),
    ],
    ids=repr,
)
def test_metadata_that_make_no_sense_are_no_recording(tmp_path, key, value):
    base = written(tmp_path, numpy.zeros((3, 2), "<i2"), channels=2)
    metadata = json.loads((tmp_path / "made.sigmf-meta").read_text())
    metadata["global"][key] = value
    (tmp_path / "made.sigmf-meta").write_text(json.dumps(metadata))
    with pytest.raises(ValueError, match="open the recording"):
        open_recording(base)


@pytest.mark.parametrize("document", [[], {"global": 3}, {"global": {}, "captures": {}}], ids=repr)
def test_a_document_of_another_kind_is_no_recording(tmp_path, document):
    (tmp_path / "other.sigmf-meta").write_text(json.dumps(document))
    with pytest.raises(ValueError, match="open the recording"):
        open_recording(tmp_path / "other")


def test_a_recording_is_pickled_as_its_name(tmp_path):
    rows = numpy.arange(32, dtype="<i2")
    base = written(tmp_path, rows)
    made = open_recording(os.path.relpath(base), verify=True)
    text = pickle.dumps(made)
    assert len(text) < 1000
    for again in (pickle.loads(text), copy.copy(made), pickle.loads(pickle.dumps({"held": made}))["held"]):
        assert (again.read(gaps="skip")[:, 0] == rows).all() and again.state == made.state
    os.remove(f"{base}.sigmf-meta")
    with pytest.raises(OSError):
        pickle.loads(text)


def test_a_signal_ends_reading_everything(tmp_path, monkeypatch):
    """Symptom: Ctrl-C during the verification of a large recording took effect only at its end."""
    monkeypatch.setitem(globals(), "crc32c", functools.lru_cache(maxsize=4)(crc32c))
    base = written(tmp_path, numpy.zeros(1 << 26, dtype="<i2"), per_block=1 << 15)

    def timed(verify):
        begun = time.monotonic()
        verify()
        return time.monotonic() - begun

    def interrupted():
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        with pytest.raises(KeyboardInterrupt):
            open_recording(base, verify=True)
            time.sleep(1)

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        whole = timed(lambda: open_recording(base, verify=True))
        assert timed(interrupted) < whole * 0.7
    finally:
        signal.signal(signal.SIGALRM, before)


def test_without_numpy_it_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(ImportError, match="pip install numpy"):
        open_recording(tmp_path / "any")


CARD = ["--card", "virtual:4ch,14bit,100kS/s,data=noise,seed=7"]


def test_what_the_command_records_is_opened(tmp_path, command):
    base = tmp_path / "real"
    ended = subprocess.run([command, "record", *CARD, "--for", "200ms", "--to", base], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    recording = open_recording(base, verify=True)
    assert recording.state == "complete" and recording.gaps == [] and recording.sample_rate == 100_000
    assert recording.data.dtype == "<i2" and recording.channels == 4
    result = recording.metadata["global"]["hairspring:result"]
    assert recording.data.nbytes == result["ledger"]["stored_bytes"] > 0


def test_frames_have_times_and_recordings_of_one_boot_are_aligned(tmp_path, command):
    cards = [*CARD, "--card", "virtual:1ch,16bit,50kS/s", "--channel", "1/0=name:level,unit:m,scale:0.5"]
    ended = subprocess.run([command, "record", *cards, "--for", "400ms", "--to", tmp_path / "two"], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    a, b = open_recording(tmp_path / "two-card0"), open_recording(tmp_path / "two-card1")
    (low, high), (later_low, later_high) = a.time_of(0), a.time_of(10_000)
    assert low <= high and high - low < 1_000_000
    assert later_low - high <= 100_000_000 <= later_high - low  # 10,000 frames at 100 kS/s.
    aligned = hairspring.align(a, b, 1000)
    # Frame 1000 is at 10 ms in one and at 20 ms in the other, whose start was a little later.
    assert aligned.offset_ns[0] <= aligned.offset_ns[1] and aligned.offset_ns[1] > 10_000_000
    first, last = aligned.frames
    assert first <= last < 1000
    assert b.metadata["global"]["hairspring:channels"] == [{"name": "level", "unit": "m", "scale": 0.5, "offset": 0.0}]
    old = open_recording(written(tmp_path, numpy.zeros((3, 1), "<i2")))
    assert old.time_of(0) is None
    with pytest.raises(ValueError, match="does not state in which boot"):
        hairspring.align(a, old)


def killed(command, *folders):
    """Kills a recording when its journals list some blocks."""
    bases = [folder / "killed" for folder in folders]
    record = [command, "record", *CARD, "--for", "60s", "--notify", "16KiB", "--to", ",".join(map(str, bases))]
    running = subprocess.Popen(record, stderr=subprocess.DEVNULL)
    journals = [base.with_name("killed.hairspring-journal") for base in bases]
    try:
        while not all(file.exists() and file.stat().st_size > 64 and b"\2" in file.read_bytes()[80::64] for file in journals):
            assert running.poll() is None
            time.sleep(0.01)
    finally:
        running.send_signal(signal.SIGKILL)
        running.wait()
    return bases[0]


@pytest.mark.parametrize("members", [1, 2])
def test_a_recording_whose_process_was_killed_is_no_longer_than_what_it_wrote(tmp_path, command, members):
    folders = [tmp_path / str(number) for number in range(members)]
    for folder in folders:
        folder.mkdir()
    base = killed(command, *folders)
    recording = opened_with_warning(base)
    frames, gaps = recording.read(gaps="skip"), recording.gaps
    assert recording.state == "recording" and 0 < sum(part.frames for part in recording.sections) == len(frames) < 60 * 100_000
    ended = subprocess.run([command, "recover", base], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 4, ended.stderr  # Incomplete, and mended.
    # Recovery keeps the same samples that were offered, to the last byte.
    recovered = open_recording(base, verify=True)
    assert recovered.state == "recovered" and recovered.gaps == gaps and (recovered.read(gaps="skip") == frames).all()


def test_the_members_of_a_striped_recording_are_one(tmp_path, command):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    base = folders[0] / "striped"
    record = [command, "record", *CARD, "--for", "300ms", "--notify", "16KiB", "--to", f"{base},{folders[1] / 'striped'}"]
    ended = subprocess.run(record, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    # Any member opens it; the two files hold alternate blocks, which come in the order of the source.
    for name in (base, folders[1] / "striped"):
        recording = open_recording(name)
        assert recording.state == "complete" and recording.gaps == []
        stored = recording.metadata["global"]["hairspring:result"]["ledger"]["stored_bytes"]
        frames, expected = recording.read(gaps="skip"), 0
        assert frames.nbytes == stored > 32 * 1024
        for first, values in recording.runs():
            assert first == expected and (values == frames[first : first + len(values)]).all()
            expected += len(values)
        with pytest.raises(ValueError, match=r"runs\(\)"):
            recording.data
    # A member that was moved is asked for, not left out.
    moved = tmp_path / "elsewhere"
    folders[1].rename(moved)
    with pytest.raises(ValueError, match="member 2 of 2 is missing.*name it as well"):
        open_recording(base)
    assert (open_recording(base, moved / "striped").read(gaps="skip") == frames).all()
