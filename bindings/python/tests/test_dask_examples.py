"""The examples that compute on recordings: against references that see the whole recording, on threads and on two processes."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

from hairspring import open_recording
from test_recording import written

numpy = pytest.importorskip("numpy")
pytest.importorskip("dask.array")

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"
RATE = {"frames": 50_000, "seconds": 1}


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def rows():
    """Two channels of noise, one with a sine of 7 kHz."""
    noise = numpy.random.default_rng(3).normal(0, 300, (30_000, 2))
    noise[:, 1] += 2000 * numpy.sin(2 * numpy.pi * 7000 / 50_000 * numpy.arange(30_000))
    return noise.round().astype("<i2")


@pytest.fixture(scope="module")
def base(rows, tmp_path_factory):
    return written(tmp_path_factory.mktemp("examples"), rows, channels=2, per_block=1000, rate=RATE)


def test_a_power_spectrum_is_that_of_the_whole_recording(base, rows):
    module, recording = example("power_spectrum"), open_recording(base)
    density, frequencies, windows = module.power_spectrum(recording, window=512)
    # One chunk: every window of the recording, one by one.
    starts = range(0, 30_000 - 511, 256)
    shape = numpy.hanning(512)
    parts = [rows[start : start + 512] - rows[start : start + 512].mean(axis=0) for start in starts]
    reference = numpy.mean([numpy.abs(numpy.fft.rfft(part * shape[:, None], axis=0)) ** 2 for part in parts], axis=0)
    reference *= 2 / (50_000 * (shape**2).sum())
    reference[[0, -1]] /= 2
    assert windows == len(starts) and numpy.allclose(density, reference, rtol=1e-3)
    assert frequencies[density[:, 1].argmax()] == pytest.approx(7000, abs=50_000 / 512)
    # The density holds the power of the noise, whose standard deviation is 300.
    assert density[:, 0].sum() * 50_000 / 512 == pytest.approx(300**2, rel=0.05)
    # In five chunks at most two windows are lost at each border.
    pieces, _, fewer = module.power_spectrum(recording, window=512, chunk_bytes=24_000)
    assert windows - 8 <= fewer < windows and numpy.allclose(pieces[1:], density[1:], rtol=0.5)


def test_triggers_are_those_of_a_walk_through_all_frames(base, rows):
    module, recording = example("find_triggers"), open_recording(base)

    def walk(level, hysteresis):
        found, armed = [], False
        for frame, value in enumerate(rows[:, 1].tolist()):
            if value >= level and armed:
                found.append(frame)
            armed = False if value >= level else True if value < level - hysteresis else armed
        return found

    for level, hysteresis in [(0, 100), (1500, 0), (1500, 3000), (2500, 200), (9000, 10), (-9000, 10)]:
        expected = walk(level, hysteresis)
        for chunk_bytes in [4000, 20_000, 1 << 20]:
            found = module.find_triggers(recording, level, channel=1, hysteresis=hysteresis, chunk_bytes=chunk_bytes)
            assert found == expected, (level, hysteresis, chunk_bytes)
    assert len(walk(1500, 3000)) > 1000


def test_two_processes_find_what_the_threads_find(base):
    distributed = pytest.importorskip("distributed")

    def says(name, *arguments):
        line = [sys.executable, str(EXAMPLES / f"{name}.py"), str(base), *arguments]
        ended = subprocess.run(line, capture_output=True, text=True, timeout=120)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        for name, arguments in [("power_spectrum", []), ("find_triggers", ["1500"])]:
            assert says(name, *arguments, cluster.scheduler_address) == says(name, *arguments) != ""


def test_one_worker_and_two_are_timed_in_turns(base):
    pytest.importorskip("distributed")
    line = [sys.executable, str(EXAMPLES / "two_workers.py"), str(base), "1500", "1"]
    ended = subprocess.run(line, capture_output=True, text=True, timeout=240)
    assert ended.returncode == 0, ended.stderr
    said = [dict(part.split("=") for part in line.split()) for line in ended.stdout.splitlines()]
    assert [turn["workers"] for turn in said[:-1]] == ["1", "2", "2", "1"], ended.stdout
    assert all(float(said[-1][ratio]) > 0 for ratio in ("ratio_spectrum", "ratio_triggers")), ended.stdout
