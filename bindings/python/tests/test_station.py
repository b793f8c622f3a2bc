"""The published state of a station: read while it runs, and when it is dead."""

import os
import pathlib
import struct
import subprocess
import sys
import time

import pytest

from hairspring.station import LATENCY_EDGES_NS, Refused, Station
from waiting import PATIENCE, eventually, is_published


@pytest.fixture
def served(command, tmp_path):
    file = tmp_path / "station.toml"
    file.write_text(
        f'[source.beat]\nfrom = "timer:1ms"\n[unit.tell]\non = "beat"\ndo = {{ fire = "{tmp_path}/done" }}\n'
        f'[source.done]\nfrom = "signal:{tmp_path}/done"\n[device.board]\ndriver = "virtual:{tmp_path}/board"\n'
        '[unit.look]\non = "done"\ndevice = "board"\ndo = "read"\n'
    )
    folder = tmp_path / "published"
    process = subprocess.Popen([command, "serve", str(file), "--publish", str(folder), "-q"], stdout=subprocess.PIPE)
    eventually(lambda: is_published(folder, process))
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


@pytest.fixture
def settable(command, tmp_path):
    """A station whose pulse can be set, and what it logs; restarted by calling it again."""
    file, folder, log = tmp_path / "station.toml", tmp_path / "published", tmp_path / "log"
    file.write_text(
        f'[publish]\nkeep = "{tmp_path}/kept"\naccounts = ["ann"]\n'
        f'[source.beat]\nfrom = "timer:5ms"\n[device.board]\ndriver = "virtual:{tmp_path}/board"\n'
        '[unit.shutter]\non = "beat"\ndevice = "board"\ndo = { pulse = { line = 3, width = "10us" } }\n'
        'settable = { enable = true, width = { least = "5us", most = "90us" } }\n'
    )
    running = []

    def start():
        process = subprocess.Popen(
            [command, "serve", str(file), "--publish", str(folder), "-q"], stdout=subprocess.PIPE, stderr=log.open("a")
        )
        running.append(process)
        eventually(lambda: is_published(folder, process) and Station(folder).state()["phase"] == "Running")
        return Station(folder), process

    yield start, log
    for process in running:
        process.kill()
        process.communicate()


def test_a_put_is_checked_answered_applied_logged_and_kept(settable):
    start, log = settable
    station, process = start()
    assert station.get("shutter", "width") == 10_000
    station.put("shutter", "width", 20_000)
    eventually(lambda: station.get("shutter", "width") == 20_000)
    width = station.state()["units"][0]["properties"]["width"]
    assert width == {"set_point": 20_000, "read_back": 20_000}
    station.put("shutter", "enable", 0, peer="10.0.0.7:4711", account="ann")
    eventually(lambda: station.state()["units"][0]["skipped"] > 0)
    for asked, says in [
        ((("shutter", "width", 95_000), {}), "95000 ns is outside the limits of width: 5000 to 90000 ns"),
        ((("shutter", "value", 1), {}), "value is read-only"),
        ((("other", "width", 6_000), {}), 'there is no unit "other"'),
        ((("shutter", "width", 6_000), {"account": "eve"}), 'the account "eve" is a stranger here'),
        ((("shutter", "width", 6_000), {"peer": "10.0.0.7:1"}), "the client says no account"),
    ]:
        with pytest.raises(Refused, match=says):
            station.put(*asked[0], **asked[1])
    with pytest.raises(Refused, match="there is no property"):
        station.get("shutter", "colour")
    logged = log.read_text()
    assert "set shutter.enable 0: accepted, by process" in logged and 'for 10.0.0.7:4711, who says to be "ann"' in logged
    assert 'set shutter.width 6000: refused, by process' in logged and 'who says to be "eve"' in logged
    # A kill loses no set-point that was accepted.
    station.put("shutter", "width", 30_000)
    process.kill()
    process.wait()
    with pytest.raises(OSError, match="is it running"):
        station.put("shutter", "width", 40_000)
    again, _ = start()
    assert [again.get("shutter", name) for name in ("enable", "width")] == [0, 30_000]
    assert eventually(lambda: again.state()["units"][0]["skipped"] > 0)


def test_a_stranger_is_refused_by_the_kernels_word(settable):
    if os.geteuid() != 0:
        pytest.skip("only root can become a stranger")
    start, _ = settable
    station, _ = start()
    path = station.folder / "command"
    # The file's mode keeps strangers away; here it lets them in, and the station looks at who they are.
    path.chmod(0o666)
    for folder in [station.folder, *station.folder.parents[:-1]]:
        if not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o001)
    asked = (
        "import socket, sys\n"
        "asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
        "asking.connect(sys.argv[1])\nasking.send(b'set shutter.width 6000')\nprint(asking.recv(999).decode())\n"
    )
    said = subprocess.run(
        ["/usr/bin/env", "python3", "-I", "-c", asked, str(path)],
        user=65534,
        group=65534,
        extra_groups=[],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    if "Permission denied" in said.stderr:
        pytest.skip("another user cannot run Python here")
    assert said.stdout == "no user 65534 is a stranger here: join the group of the station's user\n", said.stderr
    assert station.get("shutter", "width") == 10_000


def test_the_example_shows_a_station_and_what_it_refuses(served, tmp_path):
    folder, process = served
    named = tmp_path / "run" / "hairspring"
    named.mkdir(parents=True)
    (named / "shutter").symlink_to(folder)
    example = pathlib.Path(__file__).parents[1] / "examples" / "station.py"
    said = subprocess.run(
        [sys.executable, str(example)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path / "run")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    if pathlib.Path("/run/hairspring/shutter").exists():
        pytest.skip("a station is published as shutter on this computer")
    assert "validity: live\nunit tell: " in said.stdout and "not set: failed to ask the station" in said.stdout, said
