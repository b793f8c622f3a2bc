"""The published state of a station: read while it runs, and when it is dead."""

import os
import pathlib
import struct
import subprocess
import time

import pytest

from hairspring.station import LATENCY_EDGES_NS, Station

PATIENCE = 30


def eventually(look):
    """What `look` returns, as soon as that is true."""
    begun = time.monotonic()
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() - begun < PATIENCE, found
        time.sleep(0.02)


@pytest.fixture
def served(tmp_path):
    command = os.environ.get("HAIRSPRING_COMMAND")
    if not command:
        pytest.skip("HAIRSPRING_COMMAND does not name the command hairspring")
    file = tmp_path / "station.toml"
    file.write_text(
        f'[source.beat]\nfrom = "timer:1ms"\n[unit.tell]\non = "beat"\ndo = {{ fire = "{tmp_path}/done" }}\n'
        f'[source.done]\nfrom = "signal:{tmp_path}/done"\n[device.board]\ndriver = "virtual:{tmp_path}/board"\n'
        '[unit.look]\non = "done"\ndevice = "board"\ndo = "read"\n'
    )
    folder = tmp_path / "published"
    process = subprocess.Popen([command, "serve", str(file), "--publish", str(folder), "-q"], stdout=subprocess.PIPE)
    eventually((folder / "state").exists)
    yield folder, process
    process.kill()
    process.communicate()


def test_a_running_station_is_seen_and_a_killed_one_keeps_its_last_state(served):
    folder, process = served
    station = Station(folder, silent_after=5)
    state = eventually(lambda: (seen := station.state())["units"][1]["events"] > 20 and seen)
    assert (state["validity"], state["phase"], state["process"]) == ("live", "Running", process.pid)
    tell, look = state["units"]
    assert (tell["name"], look["name"]) == ("tell", "look")
    assert tell["events"] == tell["activations"] + tell["missed"] and look["stamped_by"] == "sender"
    assert abs(look["event_realtime_ns"] - time.time_ns()) < 60e9
    assert sum(look["histogram"]) <= look["activations"] and len(look["histogram"]) == len(LATENCY_EDGES_NS) + 1
    process.kill()
    process.wait()
    late = Station(folder, silent_after=0.01)
    last = eventually(lambda: (seen := late.state())["validity"] == "silent" and seen)
    assert last["units"][0]["events"] >= tell["events"] and last["silent_ns"] > 10_000_000


def test_a_station_that_ends_says_so(served):
    folder, process = served
    eventually(lambda: Station(folder).state()["units"][0]["events"] > 0)
    process.terminate()
    process.wait()
    state = Station(folder, silent_after=60).state()
    assert (state["phase"], state["message"]) == ("Ended", "the station has ended")


def test_a_page_that_is_half_written_gives_the_last_whole_state(served):
    folder, process = served
    station = Station(folder, silent_after=60)
    before = eventually(lambda: (seen := station.state())["units"][0]["events"] > 0 and seen)
    process.kill()
    process.wait()
    before = station.state()
    with open(folder / "state", "r+b") as page:
        words = bytearray(page.read())
        sequence = struct.unpack_from("Q", words, 8)[0]
        struct.pack_into("Q", words, 8, sequence | 1)
        struct.pack_into("Q", words, 16 + 64 * 8 + 8 * 8, 12345)
        page.seek(0)
        page.write(words)
    torn = station.state()
    assert torn["validity"] == "torn" and torn["units"] == before["units"]
    with pytest.raises(OSError, match="no station has written a whole state"):
        Station(folder).state()


def test_what_is_not_there_or_no_page_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="start the station"):
        Station(tmp_path / "none")
    (tmp_path / "state").write_text("Dear Sir or Madam")
    with pytest.raises(OSError, match="another content"):
        Station(pathlib.Path(tmp_path))
