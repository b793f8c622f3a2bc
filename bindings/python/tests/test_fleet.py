"""Fleets: a real scheduler and real workers on machines of their own, as far as programs can see; and what can go wrong with them."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time
import types
import uuid

import pytest

import hairspring
from hairspring import archive, fleet
from hairspring.fleet import host, taking

distributed = pytest.importorskip("distributed")

ROWS = "clocks.read"
EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"
#: Makes the clock of a worker three hours ahead, for all that Python asks it. Dask loads it twice.
AHEAD = """
import time
real = time.__dict__.setdefault("real", time.time_ns)
time.time_ns = lambda: real() + 3 * 3600 * 10**9
"""
#: Generous: the machine of the tests may be slow and loaded.
PATIENCE_S = 120


def wait_for(what, of):
    """Waits until something is true."""
    until = time.monotonic() + PATIENCE_S
    while not (value := what()):
        assert time.monotonic() < until, f"{of} within {PATIENCE_S} s"
        time.sleep(0.05)
    return value


@pytest.fixture(scope="module")
def unshare():
    """A command that gives a process a host name and a boot id of its own, so that it is on another machine as far as programs can see."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    line = ["unshare", *user, "--mount", "--uts"]
    if subprocess.run([*line, "true"], capture_output=True).returncode != 0:
        pytest.skip("unshare cannot make name spaces of hosts and mounts here")
    return line


class Stand:
    """A scheduler with workers, each of which may be on a machine of its own."""

    def __init__(self, folder, unshare, command, tls=()):
        self.folder, self.unshare, self.tls, self.processes = folder, unshare, list(tls), []
        self.command = str(folder / "gated")
        # Waits at its host's gate, if there is one, and says so before; is the real command then.
        wait = 'touch "$HAIRSPRING_GATE.reached" && cat "$HAIRSPRING_GATE" >/dev/null'
        script = f'#!/bin/sh\n[ "$1" = sheet ] && [ -p "$HAIRSPRING_GATE" ] && {wait}\nexec "{command}" "$@"\n'
        (folder / "gated").write_text(script)
        (folder / "gated").chmod(0o755)
        self.file = folder / "scheduler.json"
        self.start("scheduler", ["--scheduler-file", str(self.file), "--no-dashboard", "--host", "127.0.0.1", "--port", "0"])
        wait_for(self.file.exists, "the scheduler is there")
        self.address = json.loads(self.file.read_text())["address"]

    def start(self, what, arguments, before=(), **environment):
        line = [*before, sys.executable, "-m", f"distributed.cli.dask_{what}", *arguments, *self.tls]
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"} | environment
        log = open(self.folder / f"{what}-{len(self.processes)}.log", "wb")
        self.processes.append(subprocess.Popen(line, stdout=log, stderr=log, env=environment))
        return self.processes[-1]

    def worker(self, machine, name=None, preload=None):
        """Starts a worker; those with one machine share its host name and boot id."""
        own = self.folder / machine
        own.mkdir(exist_ok=True)
        boot = own / "boot_id"
        if not boot.exists():
            boot.write_text(f"{uuid.uuid4()}\n")
        inside = f"mount --bind {boot} /proc/sys/kernel/random/boot_id && hostname {machine} && exec \"$@\""
        arguments = [self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--name", name or machine]
        arguments += ["--host", "127.0.0.1", "--local-directory", str(own)]
        if preload:
            (own / "preload.py").write_text(preload)
            arguments += ["--preload", str(own / "preload.py")]
        before = [*self.unshare, "sh", "-c", inside, "sh"]
        return self.start("worker", arguments, before, XDG_STATE_HOME=str(own), HAIRSPRING_GATE=str(own / "gate"))

    def spool(self, machine):
        folder = self.folder / machine / "hairspring" / "fleet"
        return sorted(file.name for file in folder.iterdir()) if folder.exists() else []

    def end(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


@pytest.fixture(scope="module")
def stand(tmp_path_factory, unshare, command):
    stand = Stand(tmp_path_factory.mktemp("fleet"), unshare, command)
    try:
        stand.worker("stand-1", "first")
        stand.worker("stand-1", "second")
        stand.worker("stand-2", preload=AHEAD)
        yield stand
    finally:
        stand.end()


@pytest.fixture
def client(stand):
    with distributed.Client(stand.address, set_as_default=False, timeout=PATIENCE_S) as client:
        client.wait_for_workers(3, timeout=PATIENCE_S)
        yield client


@pytest.fixture
def kept(tmp_path):
    return archive(tmp_path / "kept.db", create=True)


def addresses(client):
    workers = client.scheduler_info(n_workers=-1)["workers"]
    return {worker["name"]: address for address, worker in workers.items()}


def by_host(report):
    return {answer.host: answer for answer in report.answers}


def test_each_machine_is_measured_once_whatever_its_workers_and_clock(stand, client, kept):
    told = []
    report = fleet.take(client, archive=kept, only=ROWS, program=stand.command, told=told.append)
    answers = by_host(report)
    assert set(answers) == {"stand-1", "stand-2"} and report.complete, report.text()
    assert sorted(answer.host for answer in told) == ["stand-1", "stand-2"]
    assert len(answers["stand-1"].other_workers) == 1 and answers["stand-2"].other_workers == []
    assert {one.host: one.id for one in kept} == {host: answer.sheet for host, answer in answers.items()}
    # What the workers did for themselves was stopped, and goes on.
    assert "profile" in answers["stand-1"].quieted and "tick" in answers["stand-1"].quieted
    running = client.run(lambda dask_worker: all(call.is_running() for call in dask_worker.periodic_callbacks.values()))
    assert all(running.values()), running
    # The clock is three hours off, which is told, and nothing else depends on it.
    assert answers["stand-2"].ahead_s == pytest.approx(3 * 3600, abs=PATIENCE_S)
    assert any("3.0 h ahead" in remark for remark in answers["stand-2"].remarks) and answers["stand-1"].remarks == []
    # The hosts keep what is in the archive no longer.
    assert [name for machine in answers for name in stand.spool(machine) if name.endswith(".json")] == []
    assert "2 hosts asked, 2 sheets" in report.text() and "too few to say which is odd" in report.text()
    assert report.object()["asked"] == report.object()["answered"] == 2


def test_a_worker_that_is_killed_in_its_measurement_is_named_and_its_sheet_is_not_lost(stand, client, kept):
    gate = stand.folder / "stand-3" / "gate"
    gate.parent.mkdir(exist_ok=True)
    os.mkfifo(gate)
    doomed = stand.worker("stand-3")
    wait_for(lambda: "stand-3" in addresses(client), "stand-3 is there")
    reports = []
    taking_ = threading.Thread(
        target=lambda: reports.append(fleet.take(client, archive=kept, only=ROWS, program=stand.command)), daemon=True
    )
    taking_.start()
    wait_for(gate.with_name("gate.reached").exists, "the measurement runs, in a process of its own")
    started = [name for name in stand.spool("stand-3") if name.endswith(".started")]
    doomed.send_signal(signal.SIGKILL)
    doomed.wait()
    taking_.join(PATIENCE_S)
    assert reports, "the report does not wait for a dead worker"
    answers = by_host(reports[0])
    assert answers["stand-3"].outcome == "died" and answers["stand-3"].remedy, reports[0].text()
    assert answers["stand-1"].outcome == answers["stand-2"].outcome == "sheet" and not reports[0].complete
    assert {one.host for one in kept} == {"stand-1", "stand-2"}
    # A worker that replaces it does not measure beside the measurement that goes on.
    stand.worker("stand-3", "stand-3-again")
    wait_for(lambda: "stand-3-again" in (there := addresses(client)) and "stand-3" not in there, "it is replaced")
    busy = by_host(fleet.take(client, archive=kept, only=ROWS, program=stand.command))
    assert busy["stand-3"].outcome == "busy" and busy["stand-2"].outcome == "sheet", busy["stand-3"]
    with open(gate, "w"):
        pass
    gate.unlink()
    wait_for(lambda: any(name.endswith(".json") for name in stand.spool("stand-3")), "the measurement that was left ends")
    assert [name for name in stand.spool("stand-3") if name.endswith(".started")] == started, "it was started once"
    again = by_host(fleet.take(client, archive=kept, only=ROWS, program=stand.command))
    assert len(again["stand-3"].recovered) == 1 and again["stand-3"].outcome == "sheet", again["stand-3"]
    assert len([one for one in kept if one.host == "stand-3"]) == 2


def test_hosts_that_cannot_answer_are_rows_with_reasons(stand, client, kept, monkeypatch, tmp_path):
    # A worker without the package, and one that somebody's computation occupies.
    old = stand.worker("stand-4", preload="import sys\nsys.modules['hairspring.fleet'] = None\n")
    wait_for(lambda: "stand-4" in addresses(client), "stand-4 is there")
    release = tmp_path / "release"
    occupied = client.submit(
        subprocess.call, ["sh", "-c", f"until [ -e {release} ]; do sleep 0.1; done"], workers=[addresses(client)["stand-2"]], pure=False
    )
    monkeypatch.setattr(taking, "LOOK_LIMIT_S", 15.0)
    try:
        answers = by_host(fleet.take(client, archive=kept, only=ROWS, program=stand.command))
    finally:
        release.write_text("")
    occupied.result(timeout=PATIENCE_S)
    assert answers["stand-4"].outcome == "skew" and "hairspring.fleet" in answers["stand-4"].reason, answers["stand-4"]
    assert answers["stand-2"].outcome == "silent" and "another computation" in answers["stand-2"].reason, answers["stand-2"]
    assert answers["stand-1"].outcome == "sheet"
    assert old.poll() is None, "a worker that cannot help lives on"
    old.kill()
    old.wait()


def request(**more):
    base = {"protocol": host.PROTOCOL, "id": uuid.uuid4().hex, "arguments": ["--quick", "--only", ROWS], "limit_s": 60}
    return json.dumps(base | more)


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """A spool of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "hairspring" / "fleet"


def test_a_task_that_is_started_again_measures_nothing(command, alone):
    asked = request(program=command, id="once")
    first = json.loads(host.measure(asked))
    assert first["outcome"] == "sheet" and json.loads(first["sheet"])["schema"] == "hairspring.sheet/1"
    # Its answer was lost: the spool has the sheet. Without that, the mark says that it began.
    assert json.loads(host.measure(asked))["sheet"] == first["sheet"]
    assert json.loads(host.fetch(json.dumps({"id": "once"})))["sheet"] == first["sheet"]
    assert json.loads(host.look(json.dumps({"program": command})))["spooled"] == ["once"]
    host.forget(json.dumps({"ids": ["once", "../../etc/passwd"]}))
    again = json.loads(host.measure(asked))
    assert again["outcome"] == "died" and "sheet" not in again
    with pytest.raises(ValueError):
        host.fetch(json.dumps({"id": "../once"}))


def test_without_a_cluster_this_host_is_measured_on_a_thread(command, alone, kept):
    report = fleet.take(archive=kept, only=ROWS, program=command)
    (answer,) = report.answers
    assert report.complete and answer.worker == "embedded" and [one.id for one in kept] == [answer.sheet]
    assert list(kept[answer.sheet]) == hairspring.probes([ROWS]) and answer.quieted == []


def test_the_examples_measure_a_fleet_and_start_a_cluster(command, alone, tmp_path):
    def says(name, *arguments):
        path = os.pathsep.join([str(pathlib.Path(command).parent), os.environ["PATH"]])
        line = [sys.executable, EXAMPLES / name, *arguments]
        ended = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, env=os.environ | {"PATH": path})
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    assert says("measure_fleet.py", tmp_path / "kept.db").endswith(" sheet \n") and len(archive(tmp_path / "kept.db")) == 1
    assert says("fleet_clusters.py") == "2 workers\n"


def test_what_a_sheet_has_at_its_limit_is_kept(command, alone, kept):
    report = fleet.take(archive=kept, program=command, limit_s=2)
    (answer,) = report.answers
    assert answer.outcome == "partial" and kept[answer.sheet].dict["taken"]["interrupted"], report.text()
    assert "1 of them partial" in report.text() and not report.complete


def test_commands_that_fail_hang_or_are_of_another_version_are_told(command, alone, kept, tmp_path):
    def outcome(script, **more):
        program = tmp_path / f"program-{uuid.uuid4().hex}"
        program.write_text(f"#!/bin/sh\n[ $1 = sheet ] || exec '{command}' \"$@\"\n{script}\n")
        program.chmod(0o755)
        (answer,) = fleet.take(archive=kept, only=ROWS, program=str(program), **more).answers
        assert answer.reason and answer.remedy
        return answer

    failed = outcome("echo no counter here >&2; exit 3")
    assert failed.outcome == "failed" and "exit 3: no counter here" in failed.reason
    assert outcome("exec sleep 1000", limit_s=0.5).outcome == "late"
    later = outcome(f"'{command}' \"$@\" && sed -i s,hairspring.sheet/1,hairspring.sheet/2, \"$5\"")
    assert later.outcome == "refused" and "hairspring.sheet/2" in later.reason and len(kept) == 0
    assert len(list(alone.glob("*.json"))) == 1, "what the archive refused stays in the spool"
    assert json.loads(host.measure(request(protocol=2, program=command)))["outcome"] == "skew"
    (missing,) = fleet.take(archive=kept, program="/no/such/command").answers
    assert missing.outcome == "failed" and "there is no command" in missing.reason
    (alone / "x").write_text("")
    with pytest.raises(ValueError, match="no effort"):
        fleet.take(archive=kept, effort="some")


def test_a_spool_that_cannot_be_written_is_told(command, kept, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    (answer,) = fleet.take(archive=kept, only=ROWS, program=command).answers
    assert answer.outcome == "failed" and "the spool" in answer.reason and "XDG_STATE_HOME" in answer.remedy


def test_two_measurements_on_one_machine_never_run_at_once(command, alone):
    with host._alone():
        assert json.loads(host.measure(request(program=command)))["outcome"] == "busy"
    assert json.loads(host.measure(request(program=command)))["outcome"] == "sheet"


def test_a_cluster_without_workers_and_a_scheduler_that_is_not_there_are_refused(kept, tmp_path, capsys):
    from hairspring.fleet.__main__ import main

    empty = types.SimpleNamespace(scheduler_info=lambda n_workers: {"workers": {}})
    with pytest.raises(fleet.FleetError, match="no worker"):
        fleet.take(empty, archive=kept)
    path = str(tmp_path / "kept.db")
    assert main(["tls://127.0.0.1:1", "--archive", path]) == 2 and "--tls-ca" in capsys.readouterr().err
    assert main(["--report", "--archive", str(tmp_path / "none.db")]) == 2
    (tmp_path / "later.db").write_text("notes " * 1000)
    assert main(["--archive", str(tmp_path / "later.db")]) == 2 and "not an archive" in capsys.readouterr().err


@pytest.fixture(scope="module")
def sheet():
    return hairspring.take_sheet(ROWS, effort="quick").dict


def varied(sheet, number, times=1.0, facts=(), findings=()):
    """The sheet of another equal machine: its medians differ by up to 2 %, and by a factor."""
    document = json.loads(json.dumps(sheet))
    for chapter in document["chapters"]:
        for table in chapter["tables"]:
            for place, row in enumerate(table["rows"]):
                if row.get("figure", {}).get("median") is not None:
                    factor = times * (1 + 0.02 * ((number * 7 + place * 3) % 11) / 11)
                    row["figure"]["median"] *= factor
                    low, high = row["figure"]["median_interval"] or (row["figure"]["median"],) * 2
                    row["figure"]["median_interval"] = [low * factor, high * factor]
    for id, value in facts:
        document["conditions"]["facts"].append({"id": id, "label": id, "value": value})
    document["summary"] = {"characteristics": [], "not_measured": [], "findings": list(findings)}
    return document


def test_machines_that_differ_are_named_with_what_only_they_have(sheet):
    slow = {"text": "An idle CPU takes about 28 µs to wake", "rows": [], "remedy": "idle=off", "effect": ""}
    slower = slow | {"text": "An idle CPU takes about 41 µs to wake"}
    common = {"text": "The hypervisor takes this CPU away", "rows": [], "remedy": "pin the CPUs", "effect": ""}
    fleet_ = {f"stand-{number}": varied(sheet, number, findings=[common], facts=[("x.idle", "POLL")]) for number in range(8)}
    for host_, finding in (("stand-8", slow), ("stand-9", slower)):
        fleet_[host_] = varied(sheet, 9, times=5.0, findings=[common, finding], facts=[("x.idle", "POLL C6")])
    (group,) = fleet.groups(fleet_)
    assert len(group.hosts) == 10 and group.compared > 100
    (odd,) = group.outliers
    assert odd.hosts == ["stand-8", "stand-9"] and odd.facts == [("x.idle", "POLL C6", "POLL")]
    assert odd.findings == [("An idle CPU takes about 28 µs to wake", "idle=off")] or odd.findings[0][1] == "idle=off"
    (shift,) = odd.shifts
    assert shift.chapter == "clocks" and 4.8 < shift.factor < 5.2
    text = fleet.FleetReport.of([], fleet_).text()
    assert "2 of 10 differ: stand-8, stand-9" in text and "5 × as long" in text and "→ idle=off" in text, text
    # Without them nothing differs, and two machines cannot say which is odd.
    (quiet,) = fleet.groups({name: one for name, one in fleet_.items() if name < "stand-8"})
    assert quiet.outliers == []
    (two,) = fleet.groups({"a": fleet_["stand-1"], "b": fleet_["stand-9"]})
    assert two.outliers == [] and two.compared == 0


def test_machines_of_another_build_or_processor_are_not_compared(sheet):
    other, newer = varied(sheet, 1), varied(sheet, 2)
    for fact in other["conditions"]["facts"]:
        if fact["id"] == "cpu.model":
            fact.clear()
            fact |= {"id": "cpu.model", "label": "Processor", "value": "Another"}
    newer["hairspring"]["version"] = "99.0.0"
    assert sorted(len(group.hosts) for group in fleet.groups({"a": sheet, "b": varied(sheet, 3), "c": other, "d": newer})) == [1, 1, 2]


def test_mutual_tls_lets_in_who_has_a_certificate_and_nobody_else(tmp_path, unshare, command, kept):
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")

    def made(*line):
        subprocess.run([openssl, *line], check=True, capture_output=True, cwd=tmp_path)

    made("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=stands", "-days", "2")
    made("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "own.key", "-out", "own.csr", "-subj", "/CN=stand")
    made("x509", "-req", "-in", "own.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "own.pem", "-days", "2")
    ca, cert, key = (str(tmp_path / name) for name in ("ca.pem", "own.pem", "own.key"))
    tls = ["--tls-ca-file", ca, "--tls-cert", cert, "--tls-key", key, "--protocol", "tls"]
    stand = Stand(tmp_path, unshare, command, tls)
    try:
        stand.worker("stand-1")
        line = [sys.executable, "-m", "hairspring.fleet", stand.address, "--archive", str(kept.path), "--only", ROWS]
        line += ["--program", stand.command, "--format", "json"]
        with distributed.Client(
            stand.address, set_as_default=False, timeout=PATIENCE_S,
            security=distributed.Security(tls_ca_file=ca, tls_client_cert=cert, tls_client_key=key, require_encryption=True),
        ) as client:  # fmt: skip
            client.wait_for_workers(1, timeout=PATIENCE_S)
        ended = subprocess.run(
            [*line, "--tls-ca", ca, "--tls-cert", cert, "--tls-key", key], capture_output=True, text=True, timeout=PATIENCE_S
        )
        assert ended.returncode == 0, ended.stderr
        assert json.loads(ended.stdout)["answered"] == 1 and [one.host for one in kept] == ["stand-1"]
        with pytest.raises((OSError, TimeoutError)):
            distributed.Client(stand.address.replace("tls:", "tcp:"), timeout=3, set_as_default=False)
    finally:
        stand.end()
