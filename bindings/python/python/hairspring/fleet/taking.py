"""Takes a sheet on every host of a fleet, and enters the sheets into an archive."""

from __future__ import annotations

import importlib
import json
import secrets
import time
from typing import Any, Callable, Iterable, Optional, Union

from ..sheet import Sheet
from ..sheet_archive import Archive
from . import host
from .answers import Answer
from .cluster import Cluster, Dask, Embedded, gather
from .report import FleetReport

#: How long a host may take to say what it is. Its worker may be starting, or busy with somebody's computation.
LOOK_LIMIT_S = 60.0
#: How long a sheet may take, in seconds, by its effort: several times what a slow machine needs.
LIMITS_S = {"quick": 300.0, "normal": 900.0, "thorough": 7200.0}
#: Beyond the limit of a sheet, for starting, interrupting and sending it.
_MORE_S = 60.0
#: A clock that is further off is remarked on.
_AHEAD_S = 2.0


class FleetError(RuntimeError):
    """A fleet could not be asked at all."""


class _Taking:
    """One run."""

    def __init__(self, cluster: Cluster, archive: Archive, told: Callable[[Answer], None]) -> None:
        self.cluster, self.archive, self.told = cluster, archive, told
        self.sheets: dict[str, dict[str, Any]] = {}
        self.answers: list[Answer] = []
        self.kept: dict[str, list[str]] = {}

    def look(self, program: str) -> dict[str, list[tuple[str, dict[str, Any]]]]:
        """Asks all workers what machine they are on. Returns them by machine, and answers for those that do not say it."""
        names = self.cluster.workers()
        if not names:
            raise FleetError("the cluster has no worker; start one on each host, with one thread")
        able: list[str] = []

        def imported(worker: str, good: bool, value: Any) -> None:
            if good:
                able.append(worker)
            else:
                self._end(_unanswered(Answer(names[worker], worker, "silent"), value, "import hairspring.fleet"))

        # A worker that cannot import a task's function ends when the task arrives. Every worker can import this one.
        gather(self.cluster, importlib.import_module, dict.fromkeys(names, host.__name__), LOOK_LIMIT_S, imported)
        machines: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        began_ns = time.time_ns()
        text = json.dumps({"protocol": host.PROTOCOL, "program": program})

        def told(worker: str, good: bool, value: Any) -> None:
            if not good:
                self._end(_unanswered(Answer(names[worker], worker, "silent"), value, "say what machine it is on"))
                return
            found = json.loads(value)
            if found.get("protocol") != host.PROTOCOL:
                reason = f"it has another version of hairspring.fleet (protocol {found.get('protocol')}, here {host.PROTOCOL})"
                self._end(Answer(found.get("host", names[worker]), worker, "skew", reason, "install the same version on both"))
                return
            ended_ns = time.time_ns()
            found["ahead_s"] = round((found["clock_ns"] - (began_ns + ended_ns) / 2) / 1e9, 3)
            found["ahead_within_s"] = round((ended_ns - began_ns) / 2e9, 3)
            machines.setdefault(found["identity"], []).append((worker, found))

        gather(self.cluster, host.look, dict.fromkeys(able, text), LOOK_LIMIT_S, told)
        for workers in machines.values():
            workers.sort(key=lambda one: (names[one[0]], one[0]))
        return machines

    def recover(self, answers: dict[str, Answer], spooled: dict[str, list[str]]) -> None:
        """Fetches the sheets of earlier runs that never came to an archive."""
        while any(spooled.values()):
            asked = {worker: json.dumps({"id": ids.pop(0)}) for worker, ids in spooled.items() if ids}

            def told(worker: str, good: bool, value: Any) -> None:
                answer = answers[worker]
                if not good:
                    answer.remarks.append(f"a sheet in its spool cannot be fetched: {value}")
                    return
                found = json.loads(value)
                try:
                    answer.recovered.append(self.archive.add(found["sheet"])[0])
                    self.kept.setdefault(worker, []).append(found["id"])
                except (ValueError, OSError) as error:
                    answer.remarks.append(f"a sheet in its spool stays there: {error}")

            gather(self.cluster, host.fetch, asked, LOOK_LIMIT_S, told)

    def measure(self, answers: dict[str, Answer], request: dict[str, Any]) -> None:
        """Takes the sheets, each on its worker."""
        run = secrets.token_hex(6)
        texts = {worker: json.dumps(request | {"id": f"{run}-{number:04}"}) for number, worker in enumerate(answers)}

        def told(worker: str, good: bool, value: Any) -> None:
            answer = answers[worker]
            if good:
                self._entered(worker, answer, json.loads(value))
            else:
                _unanswered(answer, value, "measure")
            self._end(answer)

        gather(self.cluster, host.measure, texts, request["limit_s"] + _MORE_S, told)

    def _entered(self, worker: str, answer: Answer, found: dict[str, Any]) -> None:
        answer.outcome, answer.reason, answer.remedy = found["outcome"], found.get("reason"), found.get("remedy")
        answer.took_s, answer.quieted = found.get("took_s"), found.get("quieted", [])
        if "sheet" not in found:
            return
        try:
            answer.sheet, answer.new = self.archive.add(found["sheet"])
        except (ValueError, OSError) as error:
            answer.outcome, answer.reason = "refused", f"the archive does not keep its sheet: {error}"
            answer.remedy = "mend that and repeat: the sheet stays in the host's spool, and the next run fetches it"
            return
        self.kept.setdefault(worker, []).append(found["id"])
        if answer.outcome == "partial":
            answer.reason, answer.remedy = "it was interrupted at its limit", "allow more time with --limit"
        name = answer.host if answer.host not in self.sheets else f"{answer.host} ({answer.worker})"
        self.sheets[name] = Sheet(found["sheet"]).dict

    def forget(self) -> None:
        """Lets the hosts remove what the archive has."""
        asked = {worker: json.dumps({"ids": ids}) for worker, ids in self.kept.items()}
        # A host that is gone keeps its file; the next run fetches it, and the archive knows it.
        gather(self.cluster, host.forget, asked, LOOK_LIMIT_S, lambda *_: None)

    def same_machine(self) -> None:
        """Remarks on hosts that the archive takes for one machine."""
        machines = {one.id: one.machine for one in self.archive}
        by_machine: dict[str, list[Answer]] = {}
        for answer in self.answers:
            if answer.sheet is not None and answer.sheet in machines:
                by_machine.setdefault(machines[answer.sheet], []).append(answer)
        for answers in by_machine.values():
            for answer in answers if len(answers) > 1 else []:
                others = ", ".join(other.worker for other in answers if other is not answer)
                answer.remarks.append(f"the archive takes it and {others} for one machine: their names are equal; name each host")

    def _end(self, answer: Answer) -> None:
        self.answers.append(answer)
        self.told(answer)


def _unanswered(answer: Answer, error: Any, what: str) -> Answer:
    """Fills in why a worker has no answer."""
    killed = type(error).__name__ == "KilledWorker"
    if killed or isinstance(error, ConnectionError):
        answer.outcome = "died"
        answer.reason = f"it died or left the cluster before it could {what}: {error}"
        answer.remedy = "look at the worker's log; if its measurement goes on, the next run fetches the sheet from the spool"
    elif isinstance(error, TimeoutError):
        answer.outcome = "silent" if what != "measure" else "late"
        answer.reason = f"it did not {what}: {error}; its worker hangs, or is busy with another computation"
        answer.remedy = "repeat when the cluster is idle, or look at the worker's log"
    elif isinstance(error, (ImportError, AttributeError)):
        answer.outcome = "skew"
        answer.reason, answer.remedy = f"its Python cannot run hairspring.fleet: {error}", "install hairspring[fleet] of this version there"
    else:
        answer.outcome = "failed"
        answer.reason = f"it failed to {what}: {type(error).__name__}: {error}"
        answer.remedy = "look at the worker's log"
    return answer


def take(
    client: Any = None,
    *,
    archive: Archive,
    only: Union[str, Iterable[str]] = (),
    effort: str = "quick",
    limit_s: Optional[float] = None,
    cpu: Optional[int] = None,
    priority: Optional[int] = None,
    program: str = "hairspring",
    told: Callable[[Answer], None] = lambda _: None,
) -> FleetReport:
    """Takes a sheet on every host of a cluster, at the same time, once on each, and enters the sheets into an archive.

    ``client`` is a ``distributed.Client``; without one this host alone is measured, on a thread. ``only``, ``effort``, ``cpu`` and ``priority``
    are those of ``hairspring sheet``; ``program`` is the command on the hosts. A sheet that takes longer than ``limit_s`` is interrupted, and
    what it has is kept. ``told`` is called with each answer as it comes. Blocks until every host has answered or its time is over.

    Raises FleetError if the cluster has no worker, and ValueError for a wrong effort or limit. Everything that happens to single hosts is in
    the answers.
    """
    if effort not in LIMITS_S:
        raise ValueError(f"there is no effort {effort!r}: choose 'quick', 'normal' or 'thorough'")
    limit_s = LIMITS_S[effort] if limit_s is None else float(limit_s)
    if not 0 < limit_s <= 86_400:
        raise ValueError(f"a limit of {limit_s:g} s is not between 0 and a day")
    cluster = client if isinstance(client, Embedded) else Embedded() if client is None else Dask(client)
    taking = _Taking(cluster, archive, told)
    answers: dict[str, Answer] = {}
    spooled: dict[str, list[str]] = {}
    for workers in taking.look(program).values():
        (worker, found), *others = workers
        answer = Answer(found["host"], worker, "silent", ahead_s=found["ahead_s"], ahead_within_s=found["ahead_within_s"])
        answer.command, answer.versions = found["command"], found["versions"]
        answer.other_workers = [other for other, _ in others]
        answer.remarks = _remarks(found)
        answers[worker], spooled[worker] = answer, found["spooled"]
    taking.recover(answers, spooled)
    arguments = [] if effort == "normal" else [f"--{effort}"]
    for row in [only] if isinstance(only, str) else only:
        arguments += ["--only", row]
    for name, value in (("--cpu", cpu), ("--priority", priority)):
        arguments += [] if value is None else [name, str(value)]
    request = {"protocol": host.PROTOCOL, "arguments": arguments, "limit_s": limit_s, "program": program}
    taking.measure(answers, request)
    taking.forget()
    taking.same_machine()
    return FleetReport.of(taking.answers, taking.sheets)


def _remarks(found: dict[str, Any]) -> list[str]:
    remarks = []
    ahead_s = found["ahead_s"]
    if abs(ahead_s) - found["ahead_within_s"] > _AHEAD_S:
        way = "ahead" if ahead_s > 0 else "behind"
        remarks.append(f"its clock is {_span(abs(ahead_s))} {way}: its sheet has that time, and stands there in the archive; set its clock")
    own, there = host.versions(), found["versions"]
    differ = [f"{name} {there.get(name, 'none')} (here {own[name]})" for name in own if there.get(name) != own[name]]
    if differ:
        remarks.append(f"other versions on it: {', '.join(differ)}")
    return remarks


def _span(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"
