"""Live taps: frames of a recording that another process makes."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

import hairspring

numpy = pytest.importorskip("numpy")

PATIENCE = 60.0


@pytest.fixture
def recording(command, tmp_path):
    """Starts recordings with a tap; ends those that a failed test leaves."""
    started = []

    def start(*arguments, card="virtual:3ch,16bit,1MS/s", name="x"):
        line = [command, "record", "--buffer", "4MiB", "--quiet", "--card", card, "--to", str(tmp_path / name)]
        line += ["--tap", str(tmp_path / "adc"), *arguments]
        started.append(subprocess.Popen(line, stdout=subprocess.DEVNULL))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def opened(path, process):
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return hairspring.tap(str(path))
        except FileNotFoundError:
            assert process.poll() is None and time.monotonic() < end, "nobody offers it"
            time.sleep(0.01)


def test_frames_are_those_of_the_file_and_every_frame_is_read_or_counted(recording, tmp_path):
    process = recording("--frames", "600_000", "--channel", "1=name:pressure,unit:kPa,scale:0.5")
    tap = opened(tmp_path / "adc", process)
    assert (tap.channels, tap.sample_rate, tap.dtype) == (3, 1e6, numpy.int16)
    assert tap.channel_descriptions[1]["name"] == "pressure" and tap.channel_descriptions[1]["scale"] == 0.5
    assert tap.recorder == (os.geteuid(), process.pid)
    pieces = list(tap)
    assert process.wait(PATIENCE) == 0 and tap.state == "finished"
    assert pieces and tap.lost == 0
    stored = numpy.fromfile(tmp_path / "x.sigmf-data", dtype="<i2").reshape(-1, 3)
    seen = pieces[0].first_frame
    for piece in pieces:
        seen += piece.missed
        assert piece.first_frame == seen
        seen += len(piece.samples)
        assert numpy.array_equal(piece.samples, stored[piece.first_frame : seen])
    assert seen == 600_000 and sum(piece.missed for piece in pieces) == tap.missed
    assert tap.clock_pairs and tap.clock_marks[0][0] == 0
    assert "finished" in repr(tap)


def test_the_newest_frames_pass_over_the_others(recording, tmp_path):
    process = recording()
    tap = opened(tmp_path / "adc", process)
    assert len(tap.read(1000, timeout=PATIENCE).samples) == 1000
    first = tap.newest(500)
    second = tap.read(500, timeout=PATIENCE)
    assert len(first.samples) == 500 and second.first_frame == first.first_frame + 500 + second.missed
    # No array of a tap can be written to by mistake.
    with pytest.raises(ValueError):
        first.samples[0, 0] = 1


def test_a_recorder_that_is_killed_is_noticed(recording, tmp_path):
    process = recording()
    tap = opened(tmp_path / "adc", process)
    assert tap.state == "running"
    process.kill()
    for _ in tap:
        pass
    assert tap.state == "gone"


@pytest.mark.parametrize("card", ["virtual:3ch,12bit,100kS/s,packed", "virtual:9ch,100kS/s,digital", "virtual:2ch,100kS/s,float"])
def test_every_container_has_its_shape(recording, tmp_path, card):
    process = recording(card=card)
    tap = opened(tmp_path / "adc", process)
    samples = tap.read(100, timeout=PATIENCE).samples
    assert samples.shape == (100, tap.channels) and samples.dtype == tap.dtype


def test_ctrl_c_ends_a_wait(recording, tmp_path):
    process = recording()
    tap = opened(tmp_path / "adc", process)
    process.send_signal(signal.SIGSTOP)
    try:
        tap.newest(1)
        signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(InterruptedError("rung")))
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(InterruptedError, match="rung"):
            while True:
                tap.read(10_000_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        process.send_signal(signal.SIGCONT)


def test_what_is_no_tap_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="no recorder offers it"):
        hairspring.tap(str(tmp_path / "nothing"))
    with pytest.raises(ValueError, match="names no tap"):
        hairspring.tap("a b")
    (tmp_path / "file").write_text("no socket")
    with pytest.raises(OSError):
        hairspring.tap(str(tmp_path / "file"))


def test_the_example_of_the_documentation_runs(recording, tmp_path):
    process = recording("--frames", "300_000")
    opened(tmp_path / "adc", process)
    example = pathlib.Path(__file__).parent.parent / "examples" / "live_tap.py"
    run = subprocess.run([sys.executable, example, tmp_path / "adc"], capture_output=True, text=True, timeout=PATIENCE)
    # One that is started too late finds no tap.
    if "no recorder offers it" not in run.stderr:
        assert run.returncode == 0, run.stderr
        assert run.stdout.splitlines()[-1].startswith("finished missed ")
