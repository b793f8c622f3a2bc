"""Reading frames by number: gaps, channels, scales, bad blocks; growing recordings; dask and xarray."""

import contextlib
import datetime
import fcntl
import functools
import json
import os
import pathlib
import pickle
import struct
import subprocess
import sys
import threading
import time
import warnings

import pytest

import hairspring
import test_recording
from hairspring import BlockError, Gap, GapError, Section, open_recording
from test_recording import CARD, data_of, journal, killed, written

numpy = pytest.importorskip("numpy")
pytestmark = pytest.mark.usefixtures("no_other_warning")

RATE = {"frames": 1_000_000, "seconds": 1}


def rows_of(frames, channels=3):
    return numpy.arange(frames * channels, dtype="<i2").reshape(-1, channels)


def with_keys(base, **keys):
    """Adds keys of the extension to the metadata."""
    path = base.with_name(base.name + ".sigmf-meta")
    about = json.loads(path.read_text())
    about["global"].update({f"hairspring:{key}": value for key, value in keys.items()})
    path.write_text(json.dumps(about))
    return base


@pytest.fixture
def gapped(tmp_path):
    """Frames 0-5 and 9-12; frames 6-8 are missing."""
    return open_recording(written(tmp_path, rows_of(10), channels=3, gaps=[(6, 3, "buffer_full")], rate=RATE))


def test_frames_are_read_by_their_number(tmp_path):
    rows = rows_of(11)
    recording = open_recording(written(tmp_path, rows, channels=3))
    assert len(recording) == 11 and recording.sections == [Section(0, 11)] and recording.dtype == "<i2"
    for key in [slice(None), slice(2, 7), slice(5, 5), slice(3, None), slice(None, -2), slice(-3, None), slice(4, 99), slice(-99, 2)]:
        assert (recording[key] == rows[key]).all() and recording[key].shape == rows[key].shape, key
    for number in [0, 4, 10, -1, -11]:
        assert recording[number].tolist() == rows[number].tolist()
    assert (recording[2:9, 1] == rows[2:9, 1]).all() and recording[2, 1] == rows[2, 1]
    assert (recording[2:9, [2, 0]] == rows[2:9][:, [2, 0]]).all() and (recording[:, 1:] == rows[:, 1:]).all()
    assert (recording.read(2, 9) == rows[2:9]).all() and (recording.read() == rows).all()
    for number in [11, -12]:
        with pytest.raises(IndexError, match="0 to 10"):
            recording[number]
    with pytest.raises(IndexError, match="12"):
        recording.read(0, 12)
    with pytest.raises(IndexError):
        recording.read(-1, 3)
    with pytest.raises(ValueError, match="frame by frame"):
        recording[::2]
    with pytest.raises(TypeError):
        recording["a"]
    with pytest.raises(TypeError):
        iter(recording)


def test_missing_frames_raise_unless_the_caller_says_how(gapped):
    """Symptom: frames() put what lies around a gap together without a word."""
    rows = rows_of(10)
    assert len(gapped) == 13 and gapped.sections == [Section(0, 6), Section(9, 4)]
    for read in (lambda: gapped[:], lambda: gapped[5:7], lambda: gapped[7], lambda: gapped.read(8, 13)):
        with pytest.raises(GapError, match="buffer_full.*gaps='split'"):
            read()
    with pytest.raises(GapError) as raised:
        gapped.read(7, 12)
    assert raised.value.gaps == [Gap(7, 2, "buffer_full")] and "frames 7 to 8" in str(raised.value)
    assert pickle.loads(pickle.dumps(raised.value)).gaps == raised.value.gaps
    assert (gapped[0:6] == rows[:6]).all() and (gapped[9:13] == rows[6:]).all()
    split = gapped.read(4, 11, gaps="split")
    assert [(first, values.tolist()) for first, values in split] == [(4, rows[4:6].tolist()), (9, rows[6:8].tolist())]
    assert gapped.read(6, 9, gaps="split") == []
    assert (gapped.read(gaps="skip") == rows).all() and gapped.read(6, 9, gaps="skip").shape == (0, 3)
    filled = gapped.read(4, 11, gaps="fill", fill=-7)
    assert filled[:2].tolist() == rows[4:6].tolist() and (filled[2:5] == -7).all() and filled[5:].tolist() == rows[6:8].tolist()
    assert gapped.read(6, 9, [0, 2], gaps="fill", fill=1).tolist() == [[1, 1]] * 3
    assert gapped.read(6, 8, 1, gaps="fill", fill=1).tolist() == [1, 1]
    assert gapped.valid(4, 11).tolist() == [True] * 2 + [False] * 3 + [True] * 2
    with pytest.raises(ValueError, match="needs a value"):
        gapped.read(gaps="fill")
    for fill in (0.5, 1 << 20):
        with pytest.raises((ValueError, OverflowError)):
            gapped.read(gaps="fill", fill=fill)
    with pytest.raises(ValueError, match="choose 'raise'"):
        gapped.read(gaps="ignore")


def test_floats_are_filled_with_nan(tmp_path):
    rows = numpy.arange(4, dtype="<f4").reshape(-1, 1)
    recording = open_recording(written(tmp_path, rows, "f32", gaps=[(2, 2, "source")]))
    filled = recording.read(gaps="fill")
    assert numpy.isnan(filled[2:4]).all() and filled[[0, 1, 4, 5], 0].tolist() == [0, 1, 2, 3] and filled.dtype == "<f4"


def test_what_is_read_is_the_callers_own_and_small_pieces_keep_nothing(tmp_path):
    rows = rows_of(4000)
    base = written(tmp_path, rows, channels=3, per_block=1000)
    recording = open_recording(base)
    whole = recording.read()
    # No copy: the array lies in the memory into which the disk was read.
    owner = whole
    while getattr(owner, "base", None) is not None:
        owner = owner.base
    assert type(owner).__name__ == "Piece"
    whole[:] = 0
    assert (recording.read() == rows).all() and whole.flags.writeable
    assert recording[5:7].base is None and recording[:, 0].base is None
    assert (recording.read(gaps="skip")[5] == rows[5]).all()


@pytest.mark.parametrize(("container", "channels"), [("packed12", 1), ("bits", 10)])
def test_packed_samples_and_bits_are_cut_at_any_frame(tmp_path, container, channels):
    if container == "bits":
        stored = numpy.array([[0b0000_0101, 1], [0, 2], [7, 3]] * 5, dtype="u1")
        values = numpy.unpackbits(stored, axis=1, bitorder="little")[:, :channels]
        base = written(tmp_path, stored, container, channels=channels)
    else:
        values = numpy.arange(-15, 15, dtype=numpy.int16).reshape(-1, 1)
        pairs = values.reshape(-1, 2).astype(numpy.uint16) & 0xFFF
        stored = numpy.stack([pairs[:, 0] & 255, pairs[:, 0] >> 8 | (pairs[:, 1] & 15) << 4, pairs[:, 1] >> 4], axis=1).astype("u1")
        base = written(tmp_path, stored, container, channels=channels, frames_in_row=2)
    recording = open_recording(base)
    assert recording.dtype == values.dtype
    for first in range(len(values)):
        for end in range(first, len(values) + 1):
            read = recording.read(first, end)
            assert read.shape == (end - first, channels) and (read == values[first:end]).all(), (first, end)


def test_a_bad_block_raises_with_its_place(tmp_path):
    rows = rows_of(12)
    base = written(tmp_path, rows, channels=3, gaps=[(4, 100, "source")])
    recording = open_recording(base)
    damaged = bytearray(data_of(base).read_bytes())
    damaged[4 * 6 + 1] ^= 1
    data_of(base).write_bytes(damaged)
    assert (recording[0:4] == rows[:4]).all() and (recording[108:112] == rows[8:]).all()
    for read in (lambda: recording[104:105], lambda: recording.read(2, 110, gaps="skip"), lambda: recording[104:106, 2]):
        with pytest.raises(BlockError, match="block 1.*frames 104 to 107.*byte 24.*made.sigmf-data.*checksum.*recover") as raised:
            read()
        bad = raised.value
        assert (bad.block, bad.first_frame, bad.frames, bad.offset, bad.length) == (1, 104, 4, 24, 24)
        assert os.fspath(bad.path) == os.fspath(data_of(base)) and isinstance(bad, OSError)
        again = pickle.loads(pickle.dumps(bad))
        assert again.block == 1 and str(again) == str(bad)
    unchecked = recording.read(104, 108, verify=False)
    assert (unchecked != rows[4:8]).sum() == 1
    os.truncate(data_of(base), 30)
    with pytest.raises(BlockError, match="file ends within it"):
        recording[104:105]
    data_of(base).unlink()
    with pytest.raises(FileNotFoundError):
        recording[104:105]


def test_channels_have_names_and_scales(tmp_path, gapped):
    rows = rows_of(5)
    described = [{"name": "pressure", "unit": "kPa", "scale": 0.5, "offset": 10}, {"name": "valve"}, {"unit": "V", "scale": 2.0}]
    base = with_keys(written(tmp_path, rows, channels=3, gaps=[(2, 1, "source")], name="named"), channels=described)
    recording = open_recording(base)
    assert recording.channel_names == ["pressure", "valve", "2"] and gapped.channel_names == ["0", "1", "2"]
    assert (recording[0:2, "valve"] == rows[:2, 1]).all() and (recording[0:2, ["2", "pressure"]] == rows[:2, [2, 0]]).all()
    assert recording.read(0, 2, "pressure", scaled=True).tolist() == (rows[:2, 0] * 0.5 + 10).tolist()
    filled = recording.read(1, 4, [2, 0], scaled=True, gaps="fill")
    assert filled[[0, 2]].tolist() == [[rows[at, 2] * 2.0, rows[at, 0] * 0.5 + 10] for at in (1, 2)] and numpy.isnan(filled[1]).all()
    with pytest.raises(KeyError, match="choose from pressure, valve"):
        recording[0:2, "flow"]
    with pytest.raises(ValueError, match="no scale for channel 1"):
        recording.read(0, 2, scaled=True)
    with pytest.raises(ValueError, match="no scale for channel 0"):
        gapped.read(0, 2, scaled=True)


def test_a_segment_keeps_the_numbers_of_its_series(tmp_path):
    base = written(tmp_path, rows_of(10), channels=3, gaps=[(0, 1000, "source")])
    recording = open_recording(with_keys(base, series={"id": "0" * 32, "name": "made", "number": 3, "first_frame": 1000, "epoch_frame": 0}))
    assert (recording.first_frame, recording.end_frame, len(recording)) == (1000, 1010, 10)
    assert (recording[1003:1005] == rows_of(10)[3:5]).all() and (recording[:] == rows_of(10)).all()
    assert (recording[-2:] == rows_of(10)[8:]).all() and recording.missing() == []
    with pytest.raises(IndexError):
        recording[3]


def test_stripes_are_read_as_one(tmp_path, command):
    folders = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    for folder in folders:
        folder.mkdir()
    bases = [folder / "striped" for folder in folders]
    record = [command, "record", *CARD, "--for", "300ms", "--notify", "16KiB", "--to", ",".join(map(str, bases))]
    ended = subprocess.run(record, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    recording = open_recording(bases[1])
    whole = numpy.concatenate([values for _, values in recording.runs()])
    assert len(recording) == len(whole) > 20_000
    for first, end in [(0, len(whole)), (2047, 2049), (5_000, 17_001), (len(whole) - 1, len(whole))]:
        assert (recording[first:end] == whole[first:end]).all()
    lazy = recording.to_dask(chunk_bytes=50_000)
    assert len(lazy.chunks[0]) > 3 and all(end % 2048 == 0 for end in numpy.cumsum(lazy.chunks[0])[:-1])
    assert (lazy.compute(scheduler="threads") == whole).all()


def test_other_threads_run_while_a_recording_is_read(tmp_path, monkeypatch):
    """The GIL is free: a thread goes on counting."""
    monkeypatch.setattr(test_recording, "crc32c", functools.lru_cache(maxsize=4)(test_recording.crc32c))
    recording = open_recording(written(tmp_path, numpy.zeros((1 << 25, 1), "<i2"), per_block=1 << 15))
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    switch = sys.getswitchinterval()
    # No thread is made to release the GIL.
    sys.setswitchinterval(60)
    thread.start()
    try:
        before = counted[0]
        recording._contents.read(0, 1 << 25, True)
        assert counted[0] > before
    finally:
        stop.set()
        sys.setswitchinterval(switch)
        thread.join()


def test_a_growing_recording_is_followed(tmp_path, command):
    base = tmp_path / "growing"
    record = [command, "record", *CARD, "--for", "1s", "--notify", "16KiB", "--to", base]
    running = subprocess.Popen(record, stderr=subprocess.DEVNULL)
    try:
        journal_file = base.with_name("growing.hairspring-journal")
        while not (journal_file.exists() and b"\2" in journal_file.read_bytes()[80::64]):
            assert running.poll() is None
            time.sleep(0.01)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hairspring.RecordingWarning)
            recording = open_recording(base)
        pieces, states = [], set()
        for first, values in recording.follow(channels=[1, 0], poll=0.01, timeout=30):
            pieces.append((first, values))
            states.add(running.poll())
        assert None in states and len(pieces) > 2, "nothing came while it grew"
    finally:
        running.wait(timeout=60)
    whole = open_recording(base, verify=True)
    assert whole.state == "complete" and len(whole) == 100_000
    assert [first for first, _ in pieces] == [0, *numpy.cumsum([len(values) for _, values in pieces])[:-1]]
    assert (numpy.concatenate([values for _, values in pieces]) == whole[:][:, [1, 0]]).all()
    ((first, rest),) = whole.follow(99_990)
    assert first == 99_990 and (rest == whole[99_990:]).all()


def test_a_recording_whose_recorder_died_is_not_followed_for_ever(tmp_path, command):
    base = killed(command, tmp_path)
    with pytest.warns(hairspring.RecordingWarning):
        recording = open_recording(base)
    got = 0
    # Nobody owns its files any more, so nothing is waited for.
    with pytest.warns(hairspring.RecordingWarning, match="cut off at frame"):
        for first, values in recording.follow():
            got = first + len(values)
    assert got > 0 and not recording.valid(got).any()


def test_without_locks_a_recording_is_followed_until_its_end_or_the_timeout(tmp_path, monkeypatch):
    """Nobody owns files on such a file system, whether they are recorded or not."""
    base = written(tmp_path, rows_of(12), channels=3, ended=False)
    with pytest.warns(hairspring.RecordingWarning):
        recording = open_recording(base)

    class WithoutLocks:
        def __init__(self, contents):
            self._contents = contents

        def __getattr__(self, name):
            return getattr(self._contents, name)

        def is_owner_known(self):
            return False

    read = hairspring.recording._read
    monkeypatch.setattr(hairspring.recording, "_read", lambda *how: (WithoutLocks(read(*how)[0]), read(*how)[1]))
    with pytest.raises(TimeoutError, match="killed"):
        list(recording.follow(timeout=0.05, poll=0.01))


#: F_OFD_SETLK, which fcntl has since Python 3.9 on Linux with a new C library only.
OFD_SETLK = 37


@contextlib.contextmanager
def owned(base):
    """Owns a recording as its recorder does: by a lock of an open file description on its journal."""
    with open(f"{base}.hairspring-journal", "r+b") as journal:
        fcntl.fcntl(journal, OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        yield


def test_a_block_that_is_still_being_written_is_waited_for(tmp_path):
    """Blocks complete in any order: block 2 may be in the journal before block 1."""
    base = written(tmp_path, rows_of(12), channels=3, ended=False)
    path = base.with_name("made.hairspring-journal")
    records = [path.read_bytes()[at : at + 64] for at in range(0, path.stat().st_size, 64)]
    path.write_bytes(journal([(record[16], record[17:]) for number, record in enumerate(records) if number != 2]))
    with owned(base):
        with pytest.warns(hairspring.RecordingWarning, match="is being recorded by"):
            recording = open_recording(base)
        pieces = recording.follow(timeout=0.05, poll=0.01)
        first, values = next(pieces)
        assert first == 0 and (values == rows_of(12)[:4]).all()
        with pytest.raises(TimeoutError):
            next(pieces)


def test_following_meets_gaps_as_reading_does(gapped):
    with pytest.raises(GapError):
        list(gapped.follow())
    assert [(first, len(values)) for first, values in gapped.follow(gaps="split")] == [(0, 6), (9, 4)]
    with pytest.raises(ValueError, match="follow"):
        next(gapped.follow(gaps="fill"))


def test_importing_the_package_imports_no_extra():
    code = "import sys, hairspring; assert not {'numpy', 'dask', 'xarray', 'pandas'} & set(sys.modules), set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(("module", "method"), [("dask.array", "to_dask"), ("xarray", "to_xarray")])
def test_without_an_extra_it_says_what_to_install(tmp_path, module, method):
    base = written(tmp_path, rows_of(3), channels=3)
    code = (
        f"import sys; sys.modules[{module!r}] = None\n"
        f"import hairspring\ntry:\n    hairspring.open_recording({os.fspath(base)!r}).{method}()\n"
        f"except ImportError as error:\n    assert \"pip install 'hairspring[{method[3:]}]'\" in str(error), error\nelse:\n    raise SystemExit(1)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


class TestDask:
    def test_chunks_are_whole_blocks(self, tmp_path):
        rows = rows_of(41)
        recording = open_recording(written(tmp_path, rows, channels=3))
        lazy = recording.to_dask(chunk_bytes=8 * 6)
        assert lazy.chunks == ((8, 8, 8, 8, 8, 1), (3,)) and lazy.dtype == "<i2"
        assert (lazy.compute(scheduler="sync") == rows).all()
        part = recording.to_dask(3, 30, chunk_bytes=12 * 6)
        assert part.chunks[0] == (9, 12, 6) and (part[5:20, 1].compute(scheduler="sync") == rows[8:23, 1]).all()
        assert recording.to_dask().name == recording.to_dask().name != part.name
        assert recording.to_dask().chunks == ((41,), (3,))

    def test_only_what_is_used_is_read(self, tmp_path):
        base = written(tmp_path, rows_of(40), channels=3)
        recording = open_recording(base)
        damaged = bytearray(data_of(base).read_bytes())
        damaged[4 * 6] ^= 1
        data_of(base).write_bytes(damaged)
        lazy = recording.to_dask(chunk_bytes=24)
        assert len(lazy.chunks[0]) == 10
        assert (lazy[8:].compute(scheduler="sync") == rows_of(40)[8:]).all()
        with pytest.raises(BlockError, match="block 1"):
            lazy.compute(scheduler="sync")

    def test_gaps_raise_when_the_array_is_made(self, gapped):
        with pytest.raises(GapError):
            gapped.to_dask()
        filled = gapped.to_dask(gaps="fill", fill=9)
        assert (filled.compute(scheduler="sync") == gapped.read(gaps="fill", fill=9)).all()
        with pytest.raises(ValueError, match="choose 'raise' or 'fill'"):
            gapped.to_dask(gaps="skip")
        with pytest.raises(ValueError, match="needs a value"):
            gapped.to_dask(gaps="fill")

    def test_a_long_gap_has_many_chunks(self, tmp_path):
        recording = open_recording(written(tmp_path, rows_of(10), channels=3, gaps=[(6, 10**9, "source")]))
        lazy = recording.to_dask(gaps="fill", fill=0)
        assert lazy.shape == (10**9 + 10, 3) and max(lazy.chunks[0]) * 6 <= 2 * (96 << 20)
        assert lazy[-2:].compute(scheduler="sync").tolist() == rows_of(10)[-2:].tolist()

    def test_workers_open_the_same_recording_or_none(self, tmp_path):
        from hairspring.dask_array import Handle

        base = written(tmp_path, rows_of(10), channels=3)
        recording = open_recording(base)
        text = pickle.dumps(Handle(recording, "seen"))
        assert len(text) < 1000 and (pickle.loads(text).recording.read() == rows_of(10)).all()
        assert pickle.loads(text) is pickle.loads(text)
        other = tmp_path / "other"
        other.mkdir()
        changed = written(other, rows_of(10), channels=3)
        about = json.loads((other / "made.sigmf-meta").read_text())
        about["global"]["hairspring:recording"]["id"] = "f" * 32
        (other / "made.sigmf-meta").write_text(json.dumps(about))
        whole = (other / "made.hairspring-journal").read_bytes()
        (other / "made.hairspring-journal").write_bytes(whole)
        code = "import pickle, sys; pickle.loads(bytes.fromhex(sys.argv[1]))"
        os.replace(other / "made.sigmf-meta", tmp_path / "made.sigmf-meta")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ended = subprocess.run([sys.executable, "-c", code, text.hex()], capture_output=True, text=True, timeout=60)
        assert ended.returncode != 0 and "another recording" in ended.stderr, changed


class TestXarray:
    @pytest.fixture(autouse=True)
    def xarray(self):
        return pytest.importorskip("xarray")

    @pytest.fixture
    def begun(self, tmp_path):
        """200 frames at 1 MHz, whose first frame was taken at a known time."""
        base = written(tmp_path, rows_of(200), channels=3, rate=RATE)
        path = tmp_path / "made.sigmf-meta"
        about = json.loads(path.read_text())
        about["global"]["hairspring:recording"] |= {"started_realtime_ns": 1_700_000_000_000_000_123, "started_within_ns": 70}
        path.write_text(json.dumps(about))
        return base

    def test_an_array_reads_what_is_used(self, begun):
        array = open_recording(begun).to_xarray()
        assert array.dims == ("frame", "channel") and array.shape == (200, 3) and array.dtype == "<i2"
        assert not array.variable._in_memory
        rows = rows_of(200)
        assert (array[5:9].values == rows[5:9]).all() and (array.isel(frame=7, channel=[2, 0]).values == rows[7, [2, 0]]).all()
        assert (array.isel(frame=[3, 150, 4]).values == rows[[3, 150, 4]]).all() and (array[::-7].values == rows[::-7]).all()
        assert array.attrs["state"] == "complete" and array.attrs["sample_rate_hz"] == 1e6
        assert array.channel.values.tolist() == [0, 1, 2]

    def test_frames_and_times_select(self, begun):
        array = open_recording(begun).to_xarray()
        start = numpy.datetime64(1_700_000_000_000_000_123, "ns")
        micro = numpy.timedelta64(1000, "ns")
        assert array.time.values[7] == start + 7 * micro and array.frame.values[7] == 7
        part = array.sel(frame=slice(10, 20))
        assert part.frame.values.tolist() == list(range(10, 21)) and (part.values == rows_of(200)[10:21]).all()
        assert array.sel(time=slice(start + 10 * micro, start + 20 * micro)).frame.values.tolist() == list(range(10, 21))
        assert array.sel(time=slice(start + 9 * micro + 1, start + 12 * micro - 1)).frame.values.tolist() == [10, 11]
        assert int(array.sel(time=start + 5 * micro).frame) == 5 and int(part.sel(frame=15).frame) == 15
        assert int(array.sel(time=start + 5 * micro + 600, method="nearest").frame) == 6
        assert int(array.sel(time=start + 5 * micro + 400, method="nearest").frame) == 5
        assert int(array.sel(time=start + 5 * micro + 600, method="pad").frame) == 5
        assert array.sel(frame=[3, 1]).frame.values.tolist() == [3, 1]
        assert array[::10].sel(frame=slice(15, 41)).frame.values.tolist() == [20, 30, 40]
        for labels in ({"time": start + 1}, {"frame": 200}, {"frame": -1}, {"time": start - micro}):
            with pytest.raises(KeyError):
                array.sel(labels)
        assert array.sel(frame=slice(500, 600)).shape == (0, 3)

    @pytest.mark.parametrize(("start_ns", "rate"), [(1_795_910_399_987_654_321, 10**7), (1_795_910_390_000_000_000, 10), (1_795_910_398_500_000_000, 3000)])
    def test_times_select_as_with_the_usual_index(self, tmp_path, xarray, start_ns, rate):
        """Symptom: Timestamps lost their nanoseconds, and dates and seconds as text selected nothing."""
        pandas = pytest.importorskip("pandas")
        base = written(tmp_path, rows_of(5000), channels=3, rate={"frames": rate, "seconds": 1}, per_block=500)
        path = tmp_path / "made.sigmf-meta"
        about = json.loads(path.read_text())
        about["global"]["hairspring:recording"] |= {"started_realtime_ns": start_ns, "started_within_ns": 70}
        path.write_text(json.dumps(about))
        array = open_recording(base).to_xarray()
        times = array.time.values
        usual = xarray.DataArray(numpy.arange(5000), dims="frame", coords={"time": ("frame", times)}).swap_dims(frame="time")
        stamp = pandas.Timestamp
        day, second, minute = str(times[0])[:10], str(times[3000])[:19], str(times[2000])[:16]
        texts = [day, day[:7], day[:4], second, minute, second.replace("T", " "), str(times[7]), str(times[7])[:-3], "1999", "2199", "20261129", "2026-11-29T00:00:00Z", "abc"]
        points = [times[1005], stamp(times[1005]), datetime.datetime(2026, 11, 28, 1, 2, 3), datetime.datetime.fromisoformat(second), stamp(times[1005], tz="UTC"), times[0] - 1, times[-1] + 1, 5]
        points += [numpy.datetime64(second), numpy.array(times[9]), [times[3], times[1]], [stamp(times[3])], times[[5, 2]], [str(times[4])], [str(times[4]), day]]
        slices = [(times[1005], times[2008]), (stamp(times[1005]), stamp(times[2008])), (day, day), (None, second), (second, None), (minute, second)]
        slices += [("1999", "2199"), ("2199", None), (None, "1999"), (times[9], times[3]), (times[5] + 1, times[9] - 1), (5, 9), ("abc", None), (stamp(times[5], tz="UTC"), None)]
        asked = [dict(time=label) for label in texts + points + [slice(*ends) for ends in slices] + [slice(times[5], times[50], 7)]]
        asked += [dict(time=label, method=method) for label in (times[0] - 1, times[9] + 1, times[-1] + 9, stamp(times[9]), [times[9] + 1]) for method in ("nearest", "pad", "backfill")]
        asked += [dict(time=times[9] + 1, method="nearest", tolerance=numpy.timedelta64(most, "ns")) for most in (0, 1, 2)]
        asked += [dict(time=slice(day, day), method="nearest")]
        for one in asked:
            found = []
            for which in (usual, array.frame):
                try:
                    found.append(which.sel(**one).values.tolist())
                except Exception as error:
                    found.append(type(error))
            refused = [answer for answer in found if isinstance(answer, type)]
            if len(refused) == 2:
                assert issubclass(found[1], (KeyError, TypeError, ValueError, NotImplementedError)), (one, found)
                continue
            assert found[0] == found[1], one

    def test_pieces_are_joined_and_compared(self, begun, xarray):
        array = open_recording(begun).to_xarray()
        joined = xarray.concat([array[:50], array[50:120], array[120:]], "frame")
        assert joined.identical(array.load()) and joined.sel(frame=77).values.tolist() == rows_of(200)[77].tolist()
        assert (array[:5] + array[:5]).values.tolist() == (rows_of(200)[:5] * 2).tolist()
        with pytest.raises(ValueError, match="follow one another"):
            xarray.concat([array[:50], array[60:]], "frame")

    def test_a_coordinate_of_many_frames_takes_no_memory(self, tmp_path, xarray):
        from hairspring.xarray_engine import FrameClock, FrameIndex

        most = 10**11
        clock = FrameClock(0, 1_700_000_000_000_000_000, 44_100 * 3, 7)
        index = FrameIndex(range(most), clock)
        made = xarray.Dataset(coords=xarray.Coordinates.from_xindex(index))
        assert made.sizes["frame"] == most and len(repr(made)) < 10_000
        frame = most - 12_345
        exact = 1_700_000_000_000_000_000 + frame * 7 * 10**9 // (44_100 * 3)
        assert int(made.isel(frame=frame).time.values.astype("int64")) == exact
        one = made.sel(time=numpy.datetime64(exact, "ns"))
        assert int(one.frame) == frame
        piece = made.sel(time=slice(numpy.datetime64(exact, "ns"), None))
        assert piece.sizes["frame"] == 12_345 and int(piece.time.values[0].astype("int64")) == exact
        with pytest.raises(ValueError, match="pandas index"):
            made.to_dataframe() if made.sizes["frame"] < most else made.xindexes["frame"].to_pandas_index()

    def test_times_are_exact_for_any_rate(self):
        from hairspring.xarray_engine import FrameClock

        for frames, seconds in [(1, 1), (3, 7), (44_100, 1), (999_999_937, 1), (10_000_000_019, 3), (1, 3600)]:
            clock = FrameClock(5, 1_700_000_000_000_000_003, frames, seconds)
            for number in [0, 5, 6, 10**6 + 1, 10**9 + 7]:
                exact = 1_700_000_000_000_000_003 + (number - 5) * seconds * 10**9 // frames
                if exact < 1 << 63:
                    assert int(clock.times([number])[0].astype("int64")) == exact, (frames, seconds, number)

    def test_gaps_raise_when_they_are_loaded(self, gapped):
        array = gapped.to_xarray()
        assert array[9:].values.tolist() == rows_of(10)[6:].tolist()
        with pytest.raises(GapError):
            array.load()
        assert (gapped.to_xarray(gaps="fill", fill=0).values == gapped.read(gaps="fill", fill=0)).all()
        with pytest.raises(ValueError, match="choose 'raise' or 'fill'"):
            gapped.to_xarray(gaps="split")

    def test_the_engine_opens_recordings_by_their_files(self, begun, xarray, tmp_path):
        assert "hairspring" in xarray.backends.list_engines()
        with xarray.open_dataset(f"{begun}.sigmf-meta") as found:
            assert (found.samples.values == rows_of(200)).all() and "time" in found.coords and "valid" not in found
        chunked = xarray.open_dataset(f"{begun}.sigmf-data", engine="hairspring", chunks={})
        assert chunked.samples.chunks is not None and (chunked.samples[3:9].compute().values == rows_of(200)[3:9]).all()
        (tmp_path / "other.sigmf-meta").write_text("{}")
        with pytest.raises(ValueError):
            xarray.open_dataset(tmp_path / "other.sigmf-meta")

    def test_the_engine_fills_and_says_where(self, tmp_path, xarray):
        base = written(tmp_path, rows_of(10), channels=3, gaps=[(6, 3, "buffer_full")])
        made = xarray.open_dataset(f"{base}.sigmf-meta", gaps="fill", fill=0)
        assert made.valid.values.tolist() == [True] * 6 + [False] * 3 + [True] * 4 and made.samples[7].values.tolist() == [0] * 3
        assert "time" not in made.coords

    def test_scaled_channels_have_names_and_a_unit(self, tmp_path):
        described = [{"name": name, "unit": "V", "scale": 0.5} for name in "abc"]
        base = with_keys(written(tmp_path, rows_of(5), channels=3), channels=described)
        array = open_recording(base).to_xarray(scaled=True)
        assert array.attrs["units"] == "V" and array.sel(channel="b").values.tolist() == (rows_of(5)[:, 1] * 0.5).tolist()

    def test_what_is_written_as_zarr_is_read_by_zarr(self, begun, xarray, tmp_path):
        zarr = pytest.importorskip("zarr")
        made = xarray.open_dataset(f"{begun}.sigmf-meta", chunks={}).chunk(frame=64)
        made.to_zarr(tmp_path / "out.zarr", zarr_format=3, consolidated=False)
        group = zarr.open_group(tmp_path / "out.zarr", mode="r")
        assert (group["samples"][:] == rows_of(200)).all() and group["samples"].chunks == (64, 3)
        assert group["frame"][:].tolist() == list(range(200))


@pytest.mark.parametrize("example", ["read_recording", "follow_recording"])
def test_the_examples_run(tmp_path, example):
    base = written(tmp_path, rows_of(2000), channels=3, per_block=500)
    file = pathlib.Path(__file__).parents[1] / "examples" / f"{example}.py"
    ended = subprocess.run([sys.executable, file, base], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0 and "frame=0" in ended.stdout, ended.stderr
